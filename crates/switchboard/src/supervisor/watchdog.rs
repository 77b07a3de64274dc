//! The watchdog: a process above the supervisor that kills everything if the supervisor is killed.
//!
//! The process that the host spawns forks once, before it has threads or a runtime: the child is the supervisor, the
//! parent only waits. Both are child subreapers, so when the supervisor is killed, its descendants (daemons included)
//! become children of the watchdog, which kills them. When the watchdog is killed, its pipe closes and the supervisor
//! ends its servers.
//!
//! The host knows the watchdog's process id, and so everything below it. Linux only: other systems have no subreaper.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::descendants::{self, Children};
use super::fork::{self, Side};
use super::{KILL_PATIENCE, become_subreaper, parent};

/// The byte that signals that the host is gone. A closed pipe means that the watchdog is gone.
pub(super) const HOST_GONE: u8 = b'H';

pub(super) enum Role {
    /// The supervisor, with the pipe from its watchdog; `None` if there is no watchdog.
    Supervisor(Option<OwnedFd>),
    /// The watchdog, after the supervisor has ended.
    Done(ExitCode),
}

/// Forks the supervisor and waits until it exits.
///
/// A process with several threads is not forked; it becomes a supervisor without a watchdog.
pub(super) fn split() -> io::Result<Role> {
    become_subreaper()?;
    let host = parent();
    let (receiver, sender) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match fork::fork()? {
        None => Ok(Role::Supervisor(None)),
        Some(Side::Child) => {
            drop(sender);
            // The subreaper attribute is not inherited.
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
    // The host must see the socket close when the supervisor exits.
    let watched = release_stdin().and_then(|()| wait_for(supervisor, host, pipe));
    match watched {
        Ok(status) if status.exit_status() == Some(0) => ExitCode::SUCCESS,
        // The supervisor was killed or cannot be watched: kill everything below this process.
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

/// Waits until the supervisor exits, forwarding the end of the host and signals meanwhile.
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
            // Checked before the first wait too: the supervisor may have exited before the signal handler was
            // installed.
            if let Some(status) = reap_until(supervisor)? {
                return Ok(status);
            }
            let ends = tokio::select! {
                _ = child.recv() => false,
                // The kernel sends this signal when the *thread* that spawned us ends, and any process may send it.
                _ = parent_death.recv() => {
                    host_gone = host_gone || host_has_gone(host, &mut pipe);
                    false
                }
                _ = terminate.recv() => true,
                _ = interrupt.recv() => true,
                _ = hang_up.recv() => true,
            };
            if ends {
                // The supervisor is not reaped yet, so its id is still valid.
                let _ = kill_process(supervisor, Signal::TERM);
            }
        }
    })
}

/// Notifies the supervisor if the host has gone.
fn host_has_gone(host: Option<u32>, pipe: &mut std::fs::File) -> bool {
    let is_gone = parent() != host;
    if is_gone {
        // One byte always fits in the pipe, and a supervisor that has exited does not need it.
        let _ = pipe.write_all(&[HOST_GONE]);
    }
    is_gone
}

/// Reaps exited children, up to the supervisor.
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
