//! Signals that ask the program to end: the first ends it in order, the second at once. A program that has something to
//! interrupt may answer the first one, and the next one is the first again.
//!
//! A thread of its own listens, so that the second one counts even while the rest of the program is busy or blocked.

use std::io;
use std::process::exit;
use std::sync::Arc;

use tokio::sync::watch;

use crate::exit::Exit;
use crate::terminal;

/// Hears of the first signal. The listening thread lives as long as the program.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    heard: Arc<watch::Sender<Option<Exit>>>,
    news: watch::Receiver<Option<Exit>>,
}

impl Interrupts {
    /// Listens from now on. From here on a signal no longer ends the program by itself.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, news) = watch::channel(None);
        let heard = Arc::new(sender);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let mut signals = {
            let _within = runtime.enter();
            platform::Signals::new()?
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn({
            let heard = Arc::clone(&heard);
            move || {
                runtime.block_on(async {
                    loop {
                        let signal = signals.next().await;
                        if heard.send_replace(Some(signal)).is_some() {
                            terminal::restore();
                            // The supervisors end the servers: they see that this process is gone.
                            exit(signal.code().into());
                        }
                    }
                });
            }
        })?;
        Ok(Self { heard, news })
    }

    /// Waits for the first signal; tells how the program is to end because of it.
    pub(crate) async fn first(&mut self) -> Exit {
        match self.news.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Interrupted),
            // The thread has ended without a signal, so none can come.
            Err(_) => std::future::pending().await,
        }
    }

    /// The signal has had its effect. The next one is the first again.
    pub(crate) fn answer(&self) {
        self.heard.send_replace(None);
    }
}

#[cfg(unix)]
mod platform {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use crate::exit::Exit;

    /// Ctrl-C, a polite kill, and a terminal that was closed.
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
