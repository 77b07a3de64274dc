//! A server's process on Unix: started, watched and ended, with or without a supervisor.
//!
//! | where | what |
//! |---|---|
//! | `supervised` | one server under a supervisor, as the host sees it |
//! | `shared_supervisor` | the supervisor shared by all servers with the same supervisor command |
//! | `alone` | a server without a supervisor, ended by process group and parent-death signal |
//!
//! The rest of the transport uses [`Process`] for either kind.

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

/// Stack size of the threads that own processes, which need little.
const STACK: usize = 128 * 1024;

/// A running process and its pipes.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) stdin: Outlet,
    pub(super) stdout: Inlet,
    pub(super) stderr: pipe::Receiver,
}

/// Starts a server. Dropping the future undoes what was started.
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

/// The server's input.
#[derive(Debug)]
pub(super) struct Outlet(pub(super) pipe::Sender);

impl Outlet {
    /// Writes as much as the pipe accepts without blocking.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    /// Bytes in the pipe that the server has not read; 0 if the system does not report them.
    pub(super) fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.0).unwrap_or_default()
    }

    /// Waits until the pipe is writable, and writes.
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

/// The server's output.
#[derive(Debug)]
pub(super) struct Inlet(pub(super) pipe::Receiver);

impl Inlet {
    /// Reads what is available into the buffer's free capacity, without waiting for readiness.
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
    /// Process id of the server; `None` before it runs.
    pub(super) fn id(&self) -> Option<u32> {
        let id = match self {
            Self::Supervised(handle) => handle.id(),
            Self::Alone(handle) => handle.id(),
        };
        u32::try_from(id).ok().filter(|id| *id != 0)
    }

    pub(super) fn life(&self) -> Life {
        *self.life_sender().borrow()
    }

    pub(super) async fn ended(&self) {
        self.reached(|life| *life != Life::Running).await;
    }

    /// Waits until no process of the server is left.
    pub(super) async fn gone(&self) {
        self.reached(|life| matches!(life, Life::Gone(_))).await;
    }

    async fn reached(&self, condition: impl FnMut(&Life) -> bool) {
        // The sender is in `self`, so this does not fail.
        let _ = self.life_sender().subscribe().wait_for(condition).await;
    }

    /// Starts an orderly shutdown: its input is about to be closed; SIGTERM and SIGKILL follow after their grace
    /// periods.
    pub(super) fn end(&self) {
        match self {
            Self::Supervised(handle) => handle.end(),
            Self::Alone(handle) => handle.end(),
        }
    }

    /// Starts an orderly shutdown that the supervisor completes when this process is gone; `false` without a
    /// supervisor.
    pub(super) fn leave(&self) -> bool {
        match self {
            Self::Supervised(handle) => {
                handle.leave();
                true
            }
            Self::Alone(_) => false,
        }
    }

    /// Lets a package runner continue as long as it makes progress, if a supervisor can watch it.
    pub(super) fn finish(&self) {
        match self {
            Self::Supervised(handle) => handle.finish(),
            Self::Alone(handle) => handle.end(),
        }
    }

    /// Kills it from here, whatever its supervisor does, with all descendants that can be found.
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

/// The server's ends of the pipes.
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
            // Other code in this program has reaped the child.
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
        format!("cannot start the server's process: {error}"),
    )
}
