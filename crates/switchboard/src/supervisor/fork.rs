//! Forks a single-threaded process.

#![expect(unsafe_code, reason = "no safe interface exists for fork without exec")]

use std::io;

use rustix::process::Pid;

pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// Forks this process; `None` if it has more than one thread or the threads cannot be counted.
pub(super) fn fork() -> io::Result<Option<Side>> {
    if std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) != 1 {
        return Ok(None);
    }
    // SAFETY: the child of a process with other threads may only call what is async-signal-safe, since those threads
    // may have held locks. This process has one thread, which the line above has counted, and only that thread could
    // have started another since. So no lock is held by a thread that the child lacks, and the child is an ordinary
    // process. Both processes own their copies of all descriptors, as with any fork.
    match unsafe { libc::fork() } {
        0 => Ok(Some(Side::Child)),
        pid => match Pid::from_raw(pid).filter(|_| pid > 0) {
            Some(pid) => Ok(Some(Side::Parent(pid))),
            None => Err(io::Error::last_os_error()),
        },
    }
}
