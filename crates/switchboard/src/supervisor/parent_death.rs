//! Pre-exec hooks for child processes: the parent-death signal, and a session of the child's own.

#![expect(
    unsafe_code,
    reason = "std has no safe interface for code between fork and exec"
)]

use std::process::Command;

/// Makes the kernel kill the child of `command` when the thread that spawns it ends.
///
/// It is tied to the *thread*, which must live as long as the child is wanted. Does nothing on systems without this
/// signal.
pub(crate) fn kill_with_parent(command: &mut Command) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::io;
        use std::os::unix::process::CommandExt;

        use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

        let parent = getpid();
        let arm = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // If the parent exited before the line above, the signal is never sent.
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

/// Makes the child of `command` the leader of a new session, and so of a process group.
///
/// The child then has no controlling terminal: a program that prompts for a password fails at once instead of prompting
/// on the user's terminal or being stopped for it. Use it instead of `process_group`, after which `setsid` fails.
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
