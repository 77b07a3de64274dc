//! A second supervisor process above the one that works, for the case that the latter is killed.
//!
//! A daemon that has cleared its environment and left its session is recognised by nothing but its parent, and when the
//! supervisor is killed, that parent is gone. So the supervisor forks as soon as it starts: the child works, and the
//! parent, this module, does nothing but wait. It is a child subreaper too, so what a killed supervisor leaves becomes its
//! child, and is killed. If the watcher itself is killed, the kernel tells the supervisor, which ends everything as it
//! does when it is told to end. The end of the host is the supervisor's business: its socket closes, and the watcher stays until
//! the servers have had their time. It must not touch that socket, which closes with the process that works.

#![expect(
    unsafe_code,
    reason = "a process that goes on in two roles can only be made by fork"
)]

use std::fs::File;
use std::io;
use std::process::ExitCode;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, wait};

use super::KILL_PATIENCE;
use super::descendants::{self, Children};

/// Which of the two processes this is.
pub(super) enum Role {
    /// The one that works. Its parent is the watcher.
    Supervisor,
    /// The one that waits for that child.
    Watcher(Pid),
}

/// Becomes two processes. Only while the program has a single thread.
pub(super) fn split() -> io::Result<Role> {
    set_child_subreaper(Some(getpid()))?;
    // SAFETY: The program has one thread here, so the child finds every lock as a single-threaded program would.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Role::Supervisor),
        child => {
            let child = Pid::from_raw(child).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Role::Watcher(child))
        }
    }
}

/// Waits for the supervisor, and ends what it leaves if it does not end by itself.
pub(super) fn watch(supervisor: Pid) -> ExitCode {
    // The host sees the end of its socket when the supervisor closes it, so it must not be open here.
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(nothing);
    }
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == supervisor => match status.exit_status() {
                Some(0) => return ExitCode::SUCCESS,
                _ => break,
            },
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    descendants::kill_all(KILL_PATIENCE, reap);
    ExitCode::FAILURE
}

fn reap() -> Children {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Children::Left(Vec::new()),
            Err(_) => return Children::None,
        }
    }
}
