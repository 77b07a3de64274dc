//! The one place with unsafe code: a child that does not outlive its parent, and one with a session of its own.

#![expect(
    unsafe_code,
    reason = "what runs between fork and exec cannot be said in safe code"
)]

use std::process::Command;

/// Lets the child of `command` be killed when the thread that starts it ends.
///
/// It is the *thread* that counts, so it has to live as long as the child is wanted. Where the system has no such
/// signal this does nothing.
pub(crate) fn kill_with_parent(command: &mut Command) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::io;
        use std::os::unix::process::CommandExt;

        use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

        let parent = getpid();
        let arm = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // A parent that ended before the line above sends no signal any more.
            if getppid() == Some(parent) {
                Ok(())
            } else {
                Err(io::Error::from(rustix::io::Errno::SRCH))
            }
        };
        // SAFETY: `pre_exec` is unsafe because the closure runs in a forked copy of a process that may have other
        // threads: it must call only what is async-signal-safe, that is, take no lock and allocate nothing. `arm`
        // makes two system calls, `prctl` and `getppid`, which rustix makes with no lock and no allocation, and
        // compares two integers. Both errors are built from an error number, which `io::Error` holds without
        // allocating. The closure owns one integer, so nothing is shared, and dropping it does nothing.
        unsafe {
            command.pre_exec(arm);
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = command;
}

/// Lets the child of `command` lead a session of its own, and so a process group.
///
/// It has no terminal then: a program that wants a password fails at once, where it would otherwise ask past whoever
/// holds the terminal, or be stopped for trying to. It takes the place of `process_group`, after which the system
/// refuses it.
pub(crate) fn lead_session(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let lead = || {
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: As above, the closure must take no lock and allocate nothing. It makes one system call, `setsid`, which
    // rustix makes with neither, and its error is built from an error number, which `io::Error` holds without
    // allocating. The closure owns nothing.
    unsafe {
        command.pre_exec(lead);
    }
}
