//! The watchdog: the process above the supervisor, so that killing the supervisor leaves nothing running.
//!
//! The process that the host spawns forks once, before it has threads or a runtime. The child is the supervisor; the
//! parent does nothing but wait for it. Both are child subreapers: when the supervisor is killed, every process below it
//! becomes a child of the watchdog, including daemons that left their session and cleared their environment, and the
//! watchdog kills them. When the watchdog is killed, the supervisor sees their pipe close and ends its servers.
//!
//! The host knows the process id of the watchdog, and so everything below it. Only on Linux: other systems have no
//! subreaper, and the supervisor runs alone there.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::descendants::{self, Children};
use super::fork::{self, Side};
use super::{KILL_PATIENCE, become_subreaper, parent};

/// The byte that tells the supervisor that the host is gone. A closed pipe means that the watchdog is.
pub(super) const HOST_GONE: u8 = b'H';

/// Which of the two processes this is.
pub(super) enum Role {
    /// The supervisor, with the pipe from its watchdog; `None` if there is no watchdog.
    Supervisor(Option<OwnedFd>),
    /// The watchdog, after the supervisor has ended.
    Done(ExitCode),
}

/// Forks the supervisor and watches it to its end.
///
/// A process with several threads is not forked: it becomes a supervisor without a watchdog.
pub(super) fn split() -> io::Result<Role> {
    become_subreaper()?;
    let host = parent();
    let (receiver, sender) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match fork::fork()? {
        None => Ok(Role::Supervisor(None)),
        Some(Side::Child) => {
            drop(sender);
            // A subreaper's child is not one itself.
            become_subreaper()?;
            Ok(Role::Supervisor(Some(receiver)))
        }
        Some(Side::Parent(supervisor)) => {
            drop(receiver);
            Ok(Role::Done(watch(supervisor, host, sender)))
        }
    }
}

fn watch(supervisor: Pid, host: Option<u32>, pipe: OwnedFd) -> ExitCode {
    // The host has to see the socket close when the supervisor ends.
    let watched = release_stdin().and_then(|()| wait_for(supervisor, host, pipe));
    match watched {
        Ok(status) if status.exit_status() == Some(0) => ExitCode::SUCCESS,
        // It was killed, or it cannot be watched: what is below this process ends with it.
        _ => {
            descendants::kill_all(KILL_PATIENCE, reap_all);
            ExitCode::FAILURE
        }
    }
}

fn release_stdin() -> io::Result<()> {
    let nothing = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(nothing.as_fd())?)
}

/// Waits until the supervisor has ended, and passes on what it must know until then.
fn wait_for(supervisor: Pid, host: Option<u32>, pipe: OwnedFd) -> io::Result<WaitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut pipe = std::fs::File::from(pipe);
    runtime.block_on(async {
        let mut child = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut parent_death = signal(SignalKind::user_defined1())?;
        rustix::process::set_parent_process_death_signal(Some(Signal::USR1))?;
        let mut host_gone = host_has_gone(host, &mut pipe);
        loop {
            // Before the first wait too: it may have ended before this listened.
            if let Some(status) = reap_until(supervisor)? {
                return Ok(status);
            }
            let ends = tokio::select! {
                _ = child.recv() => false,
                // The kernel sends this when the *thread* that spawned us ends, and any process may send it.
                _ = parent_death.recv() => {
                    host_gone = host_gone || host_has_gone(host, &mut pipe);
                    false
                }
                _ = terminate.recv() => true,
                _ = interrupt.recv() => true,
                _ = hang_up.recv() => true,
            };
            if ends {
                // It is not reaped yet, so the id is its own.
                let _ = kill_process(supervisor, Signal::TERM);
            }
        }
    })
}

/// Tells the supervisor if the host has gone.
fn host_has_gone(host: Option<u32>, pipe: &mut std::fs::File) -> bool {
    let is_gone = parent() != host;
    if is_gone {
        // One byte always fits, and a supervisor that has ended needs none.
        let _ = pipe.write_all(&[HOST_GONE]);
    }
    is_gone
}

/// Reaps what has ended, up to the supervisor.
fn reap_until(supervisor: Pid) -> io::Result<Option<WaitStatus>> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == supervisor => return Ok(Some(status)),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

fn reap_all() -> Children {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Children::Left(Vec::new()),
            Err(_) => return Children::None,
        }
    }
}
