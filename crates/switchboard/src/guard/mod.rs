//! The guard: a small process between the host and one server, so that nothing outlives the host (CON-8).
//!
//! The guard is the same program as the host, started with a hidden subcommand that calls [`run`]. It owns the
//! server's process tree: it is the tree's subreaper, and ends all of it when the host goes away (the socket between
//! them closes, whatever the reason), when the host asks for it, when the server's main process ends, or when a
//! signal tells it to. The server's pipes pass through it only in the sense that it hands them on: data goes directly
//! between host and server. It must not read or write them, and has no configuration of its own.

mod confined;
mod descendants;
pub(crate) mod parent_death;
pub(crate) mod wire;

use std::fs::OpenOptions;
use std::future::pending;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, WaitStatus};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use descendants::Children;
use wire::{CLOSE, Instructions, Report};

/// How long the tree may take to end on a signal once nobody waits for it: the host has gone, or the server itself.
const SHORT_GRACE: Duration = Duration::from_millis(250);

/// How long to try to end what does not die.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Runs the guard until nothing of the server is left.
///
/// It takes its instructions from standard input, which has to be the socket that the host gave it; standard output
/// and standard error are those of the server.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(
                io::stderr(),
                "the guard of a server cannot work: {error} (it is started by the host, not by hand)"
            );
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let control = BlockingStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    become_subreaper()?;
    let (instructions, stdin) = Instructions::receive(&control)?;
    control.set_nonblocking(true)?;
    // One thread, the main one, for two reasons: the server's parent-death signal depends on the thread that starts
    // it, and a guard should cost next to nothing.
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?
        .block_on(async {
            let control = UnixStream::from_std(control)?;
            let signals = Signals::new()?;
            if host_has_gone(&instructions) {
                return Ok(());
            }
            let Some(guard) = Guard::start(instructions, stdin.into(), control, signals).await?
            else {
                return Ok(());
            };
            guard.watch().await;
            Ok(())
        })
}

/// The server runs.
struct Guard {
    instructions: Instructions,
    control: UnixStream,
    signals: Signals,
    main: Pid,
    /// Whether the host can still say something.
    host_is_there: bool,
    /// Whether the main process runs.
    main_runs: bool,
    /// The folder for temporary files of a server in a sandbox, which goes when the server is gone.
    _temporary: Option<TempDir>,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The server serves.
    Serving,
    /// Its input is closed; it may end by itself until then.
    Closing(Instant),
    /// It has been told to end, and may do so until then.
    Terminating(Instant),
}

/// What the guard waits for.
enum Event {
    /// The host wants an orderly end.
    Close,
    /// The host has gone, or somebody tells the guard to end.
    EndNow,
    /// A child has ended.
    Child,
    /// The time of the stage is up.
    TimeIsUp,
}

impl Guard {
    /// Starts the server and tells the host how that went. `None` if the system refused.
    async fn start(
        instructions: Instructions,
        stdin: Stdio,
        mut control: UnixStream,
        signals: Signals,
    ) -> io::Result<Option<Self>> {
        let mut command = Command::new(&instructions.program);
        command
            .args(&instructions.args)
            .env_clear()
            .envs(instructions.env.iter().map(|(name, value)| (name, value)))
            .stdin(stdin);
        if let Some(cwd) = &instructions.cwd {
            command.current_dir(cwd);
        }
        parent_death::kill_with_parent(&mut command);
        let started = match &instructions.sandbox {
            None => {
                let spawned = command.spawn();
                drop(command);
                Ok((spawned, None))
            }
            Some(policy) => confined::start(policy, command),
        };
        let (spawned, temporary) = match started {
            Ok(started) => started,
            Err(error) => {
                let report = Report::NoSandbox(error.code());
                let _ = control.write_all(&report.encode()).await;
                return Ok(None);
            }
        };
        let main = match &spawned {
            Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            Err(_) => None,
        };
        let report = match (main, spawned) {
            (Some(main), _) => Report::Started(main.as_raw_pid()),
            (None, Err(error)) => Report::NotStarted(error.raw_os_error().unwrap_or(0)),
            (None, Ok(_)) => Report::NotStarted(0),
        };
        // If the host has gone, the next read says so.
        let _ = control.write_all(&report.encode()).await;
        let Some(main) = main else {
            return Ok(None);
        };
        let guard = Self {
            instructions,
            control,
            signals,
            main,
            host_is_there: true,
            main_runs: true,
            _temporary: temporary,
        };
        // From here on an error must not end the guard: the server would die with it, but not the server's children.
        // Copies of the pipes that stay open cost the host only the end of the stream, until the guard ends.
        let _ = release_output();
        Ok(Some(guard))
    }

    /// Watches until nothing is left.
    async fn watch(mut self) {
        let mut stage = Stage::Serving;
        // A child may have ended before anybody listened.
        while self.reap().await == Children::Left {
            if !self.main_runs && !matches!(stage, Stage::Terminating(_)) {
                stage = terminate(SHORT_GRACE);
            }
            stage = match (self.event(stage).await, stage) {
                (Event::Close, Stage::Serving) => {
                    Stage::Closing(Instant::now() + self.instructions.after_close)
                }
                (Event::Child | Event::Close, stage) => stage,
                (Event::EndNow, Stage::Terminating(until)) => {
                    Stage::Terminating(until.min(Instant::now() + SHORT_GRACE))
                }
                (Event::EndNow, _) => terminate(SHORT_GRACE),
                (Event::TimeIsUp, Stage::Terminating(_)) => break,
                (Event::TimeIsUp, _) => terminate(self.instructions.after_terminate),
            };
        }
        let mut reports = Vec::new();
        descendants::kill(KILL_PATIENCE, || {
            reap(|pid, status| {
                if pid == self.main {
                    reports.push(report(status));
                }
            })
        });
        for report in reports {
            let _ = self.control.write_all(&report.encode()).await;
        }
    }

    /// Waits for the next thing to act on.
    async fn event(&mut self, stage: Stage) -> Event {
        let time_is_up = async {
            match stage {
                Stage::Serving => pending().await,
                Stage::Closing(until) | Stage::Terminating(until) => {
                    tokio::time::sleep_until(until).await;
                }
            }
        };
        let control = &mut self.control;
        let host_is_there = &mut self.host_is_there;
        let host = async {
            if !*host_is_there {
                return pending().await;
            }
            if let Ok(CLOSE) = control.read_u8().await {
                return Event::Close;
            }
            *host_is_there = false;
            Event::EndNow
        };
        tokio::select! {
            event = host => event,
            event = self.signals.next(&self.instructions) => event,
            () = time_is_up => Event::TimeIsUp,
        }
    }

    /// Reaps the dead, and tells the host how the main process ended.
    async fn reap(&mut self) -> Children {
        let mut ended = None;
        let main = self.main;
        let children = reap(|pid, status| {
            if pid == main {
                ended = Some(report(status));
            }
        });
        if let Some(report) = ended {
            self.main_runs = false;
            let _ = self.control.write_all(&report.encode()).await;
        }
        children
    }
}

/// The signals that mean something to a guard.
struct Signals {
    child: Signal,
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    parent_death: Signal,
}

impl Signals {
    /// Listens from now on, and lets the system tell when the host ends.
    fn new() -> io::Result<Self> {
        let signals = Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            parent_death: signal(SignalKind::user_defined1())?,
        };
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::USR1))?;
        Ok(signals)
    }

    async fn next(&mut self, instructions: &Instructions) -> Event {
        loop {
            tokio::select! {
                _ = self.child.recv() => return Event::Child,
                _ = self.terminate.recv() => return Event::EndNow,
                _ = self.interrupt.recv() => return Event::EndNow,
                _ = self.hang_up.recv() => return Event::EndNow,
                // The system sends this when the *thread* that started the guard ends, and anybody else may send it.
                _ = self.parent_death.recv() => {
                    if host_has_gone(instructions) {
                        return Event::EndNow;
                    }
                }
            }
        }
    }
}

fn terminate(grace: Duration) -> Stage {
    descendants::terminate();
    Stage::Terminating(Instant::now() + grace)
}

fn reap(mut dead: impl FnMut(Pid, WaitStatus)) -> Children {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => dead(pid, status),
            Ok(None) => return Children::Left,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Children::None,
        }
    }
}

fn report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Report::Exited(status),
        (None, signal) => Report::Signalled(signal.unwrap_or(0)),
    }
}

/// Lets go of the server's output, so that it ends when the server's own copies do.
fn release_output() -> io::Result<()> {
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

fn host_has_gone(instructions: &Instructions) -> bool {
    let parent = rustix::process::getppid().map(Pid::as_raw_pid);
    parent.and_then(|pid| u32::try_from(pid).ok()) != Some(instructions.host)
}

#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    expect(
        clippy::unnecessary_wraps,
        reason = "it can fail where there is such a thing"
    )
)]
fn become_subreaper() -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}
