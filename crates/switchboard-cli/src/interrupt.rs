//! Handles termination signals: the first shuts down cleanly, the second exits immediately. A command that can
//! interrupt its work may [acknowledge](Interrupts::acknowledge) the first signal; the next one counts as the first
//! again.
//!
//! A dedicated thread listens, so that the second signal works even if the main thread is busy or blocked.

use std::io;
use std::process::exit;
use std::sync::Arc;

use tokio::sync::watch;

use crate::exit::Exit;
use crate::{screen, terminal};

/// Receives the first signal. The listening thread runs until the program exits.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    sender: Arc<watch::Sender<Option<Exit>>>,
    receiver: watch::Receiver<Option<Exit>>,
}

impl Interrupts {
    /// Installs the signal handlers: from now on a signal no longer terminates the process by itself.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, receiver) = watch::channel(None);
        let sender = Arc::new(sender);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let mut signals = {
            let _within = runtime.enter();
            platform::Signals::new()?
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn({
            let sender = Arc::clone(&sender);
            move || {
                runtime.block_on(async {
                    loop {
                        let signal = signals.next().await;
                        if sender.send_replace(Some(signal)).is_some() {
                            screen::abandon();
                            terminal::restore();
                            // The supervisors notice that this process exited, and kill the servers.
                            exit(signal.code().into());
                        }
                    }
                });
            }
        })?;
        Ok(Self { sender, receiver })
    }

    /// Waits for the first signal and returns the exit code for it.
    pub(crate) async fn first(&mut self) -> Exit {
        match self.receiver.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Interrupted),
            // The thread ended, so no signal can arrive.
            Err(_) => std::future::pending().await,
        }
    }

    /// Acts as if Ctrl-C had been pressed. Never exits by itself.
    pub(crate) fn raise(&self) {
        self.sender.send_replace(Some(Exit::Interrupted));
    }

    /// Marks the signal as handled. The next one counts as the first again.
    pub(crate) fn acknowledge(&self) {
        self.sender.send_replace(None);
    }
}

#[cfg(unix)]
mod platform {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use crate::exit::Exit;

    /// SIGINT, SIGTERM and SIGHUP.
    pub(super) struct Signals {
        interrupt: Signal,
        terminate: Signal,
        hang_up: Signal,
    }

    impl Signals {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            })
        }

        pub(super) async fn next(&mut self) -> Exit {
            tokio::select! {
                _ = self.interrupt.recv() => Exit::Interrupted,
                _ = self.terminate.recv() => Exit::Terminated,
                _ = self.hang_up.recv() => Exit::HungUp,
            }
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io;

    use crate::exit::Exit;

    /// Ctrl-C.
    pub(super) struct Signals;

    impl Signals {
        #[expect(
            clippy::unnecessary_wraps,
            reason = "the same signature on every platform"
        )]
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> Exit {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Exit::Interrupted,
                Err(_) => std::future::pending().await,
            }
        }
    }
}
