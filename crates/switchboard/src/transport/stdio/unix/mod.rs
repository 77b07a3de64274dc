//! A server's process on Unix: started, watched and ended, under a supervisor or alone.
//!
//! | where | what |
//! |---|---|
//! | `supervised` | one server under a supervisor, as the host sees it |
//! | `shared_supervisor` | the supervisor that all servers with the same supervisor command share |
//! | `alone` | a server with no supervisor: its process group and the parent-death signal have to do |
//!
//! Everything else asks through [`Process`], whichever it is.

mod alone;
mod shared_supervisor;
mod supervised;

use std::io::{self, PipeReader, PipeWriter};

use rustix::buffer::spare_capacity;
use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::{Exit, Launch, Life};
use crate::transport::{TransportError, TransportErrorKind};

/// What a thread that keeps processes needs of a stack is little.
const STACK: usize = 128 * 1024;

/// A process that runs, and the ends of its pipes.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdin: Outlet,
    pub(super) stdout: Inlet,
    pub(super) stderr: pipe::Receiver,
}

/// Starts a server. Dropping the future ends whatever was begun.
pub(super) async fn start(mut launch: Launch) -> Result<Started, TransportError> {
    let (process, pipes) = if let Some(supervisor) = launch.supervisor.take() {
        let (handle, pipes) = supervised::start(supervisor, launch).await?;
        (Process::Supervised(handle), pipes)
    } else {
        let (handle, pipes) = alone::start(launch).await?;
        (Process::Alone(handle), pipes)
    };
    let broken = |error: io::Error| no_process(&error);
    Ok(Started {
        process,
        stdin: Outlet(pipe::Sender::from_owned_fd(pipes.stdin.into()).map_err(broken)?),
        stdout: Inlet(pipe::Receiver::from_owned_fd(pipes.stdout.into()).map_err(broken)?),
        stderr: pipe::Receiver::from_owned_fd(pipes.stderr.into()).map_err(broken)?,
    })
}

/// The way into the server's input.
#[derive(Debug)]
pub(super) struct Outlet(pub(super) pipe::Sender);

impl Outlet {
    /// Writes what the pipe takes at once.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    /// How many bytes are in the pipe that nobody has read; none where the system does not say.
    pub(super) fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.0).unwrap_or_default()
    }

    /// Waits until the pipe takes something, and writes it.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.0.writable().await?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// The way out of the server's output.
#[derive(Debug)]
pub(super) struct Inlet(pub(super) pipe::Receiver);

impl Inlet {
    /// Reads what is there, into the room that the buffer has. It does not wait for the runtime to notice it.
    pub(super) fn read_now(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, spare_capacity(buffer))?)
    }
}

/// The process of a server. Dropping it ends the process as [`end`](Process::end) does.
pub(super) enum Process {
    Supervised(supervised::Handle),
    Alone(alone::Handle),
}

impl Process {
    /// The process id of the server itself.
    pub(super) fn id(&self) -> Option<u32> {
        let id = match self {
            Self::Supervised(handle) => handle.id(),
            Self::Alone(handle) => handle.id(),
        };
        u32::try_from(id).ok().filter(|id| *id != 0)
    }

    /// How far it has come.
    pub(super) fn life(&self) -> Life {
        *self.life_sender().borrow()
    }

    /// Waits until the main process has ended.
    pub(super) async fn ended(&self) {
        self.reached(|life| *life != Life::Running).await;
    }

    /// Waits until nothing of it is left.
    pub(super) async fn gone(&self) {
        self.reached(|life| matches!(life, Life::Gone(_))).await;
    }

    async fn reached(&self, condition: impl FnMut(&Life) -> bool) {
        // The sender is in `self`, so this does not fail.
        let _ = self.life_sender().subscribe().wait_for(condition).await;
    }

    /// Begins the orderly end: its input is about to be closed; after a while it is told to end, then killed.
    pub(super) fn end(&self) {
        match self {
            Self::Supervised(handle) => handle.end(),
            Self::Alone(handle) => handle.end(),
        }
    }

    /// Begins the orderly end, and lets the supervisor see to it when this process is gone; `false` without one.
    pub(super) fn leave(&self) -> bool {
        match self {
            Self::Supervised(handle) => {
                handle.leave();
                true
            }
            Self::Alone(_) => false,
        }
    }

    /// Lets a package runner go on as long as it makes progress, where a supervisor can see to it.
    pub(super) fn finish(&self) {
        match self {
            Self::Supervised(handle) => handle.finish(),
            Self::Alone(handle) => handle.end(),
        }
    }

    /// Ends it from here, whatever its supervisor does: it, and all that can be found of it.
    pub(super) fn kill(&self) {
        match self {
            Self::Supervised(handle) => handle.kill(),
            Self::Alone(handle) => handle.kill(),
        }
    }

    fn life_sender(&self) -> &watch::Sender<Life> {
        match self {
            Self::Supervised(handle) => handle.life(),
            Self::Alone(handle) => handle.life(),
        }
    }
}

/// The host's ends of the pipes.
struct Pipes {
    stdin: PipeWriter,
    stdout: PipeReader,
    stderr: PipeReader,
}

/// The ends of the pipes that the server gets.
struct ServerEnds {
    stdin: PipeReader,
    stdout: PipeWriter,
    stderr: PipeWriter,
}

fn make_pipes() -> io::Result<(Pipes, ServerEnds)> {
    let (server_stdin, stdin) = io::pipe()?;
    let (stdout, server_stdout) = io::pipe()?;
    let (stderr, server_stderr) = io::pipe()?;
    Ok((
        Pipes {
            stdin,
            stdout,
            stderr,
        },
        ServerEnds {
            stdin: server_stdin,
            stdout: server_stdout,
            stderr: server_stderr,
        },
    ))
}

fn reap(pid: Pid) -> Exit {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some((_, status))) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(status), _) => Exit::Status(status),
                    (None, Some(signal)) => Exit::Signal(signal),
                    (None, None) => Exit::Unknown,
                };
            }
            // Somebody else reaps the children of this program.
            _ => return Exit::Unknown,
        }
    }
}

fn pid_of(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

fn no_process(error: &io::Error) -> TransportError {
    TransportError::new(
        TransportErrorKind::Spawn,
        format!("the server's process could not be started: {error}"),
    )
}
