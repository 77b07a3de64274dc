//! Seccomp user notifications: installs the filter, receives calls and answers them.

#![expect(
    unsafe_code,
    reason = "neither the standard library nor a crate of ours has these calls"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use seccompiler::BpfProgram;

/// Receives calls.
pub(in crate::sandbox) struct Listener(OwnedFd);

/// A call that awaits its answer.
pub(super) struct Call {
    id: u64,
    /// The calling thread.
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// Installs a filter for the calling thread and its children, and returns a listener for the calls that it forwards.
pub(in crate::sandbox) fn listen(program: &BpfProgram) -> io::Result<Listener> {
    rustix::thread::set_no_new_privs(true)?;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: The kernel copies the program out of `filter`, which describes a slice that lives until the call returns,
    // and writes nothing. `seccompiler::sock_filter` and `libc::sock_filter` are both the C struct of that name.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const filter,
        )
    };
    let descriptor = i32::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidData)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: The kernel has just created this descriptor for us, with close-on-exec, and it has no other owner.
    Ok(Listener(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

impl Listener {
    /// Waits for the next call; `None` when no process is left in the sandbox.
    pub(super) fn next(&self) -> Option<Call> {
        loop {
            let mut wait = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut wait, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            }
            let [waited] = &wait;
            if !waited.revents().contains(PollFlags::IN) {
                return None;
            }
            // SAFETY: All fields are integers, for which zero is valid, and the kernel requires a zeroed struct.
            let mut notice: libc::seccomp_notif = unsafe { mem::zeroed() };
            // SAFETY: The request takes a pointer to this struct, which the kernel fills.
            let received = unsafe {
                libc::ioctl(
                    self.0.as_raw_fd(),
                    libc::SECCOMP_IOCTL_NOTIF_RECV,
                    &raw mut notice,
                )
            };
            // Fails if the caller was killed in the meantime.
            if received == 0 {
                return Some(Call {
                    id: notice.id,
                    thread: notice.pid,
                    number: i64::from(notice.data.nr),
                    arguments: notice.data.args,
                });
            }
        }
    }

    /// Whether the call is still pending, so that its thread ID is still that of the caller.
    pub(super) fn is_waiting(&self, call: &Call) -> bool {
        // SAFETY: The request takes a pointer to the id, which the kernel reads.
        let valid = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const call.id,
            )
        };
        valid == 0
    }

    /// Sends the result of a call to its caller.
    pub(super) fn answer(&self, call: &Call, outcome: Result<i64, Errno>) {
        let mut response = libc::seccomp_notif_resp {
            id: call.id,
            val: outcome.unwrap_or(0),
            error: outcome.err().map_or(0, |error| -error.raw_os_error()),
            flags: 0,
        };
        // SAFETY: The request takes a pointer to this struct, which the kernel reads. It fails if the caller is gone,
        // which needs no handling.
        let _ = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut response,
            )
        };
    }
}

#[cfg(test)]
impl Call {
    /// A call as this thread would make it.
    pub(super) fn of_this_thread(number: i64, arguments: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        Self {
            id: 0,
            thread: thread.cast_unsigned(),
            number,
            arguments: all,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::sandbox::filter;

    #[test]
    fn a_caller_waits_until_it_is_answered() {
        let (sender, receiver) = mpsc::channel();
        let caller = thread::spawn(move || {
            // A call that nothing else in the thread makes.
            let program = filter::asked(&[libc::SYS_sched_rr_get_interval]);
            sender.send(listen(&program).unwrap()).unwrap();
            let second = listen(&program).map(drop).map_err(|error| error.kind());
            let call = || {
                // SAFETY: The kernel forwards the call instead of making it, so its arguments are not used.
                let result = unsafe { libc::syscall(libc::SYS_sched_rr_get_interval, 11, 12) };
                let error = io::Error::last_os_error().raw_os_error();
                if result < 0 { Err(error) } else { Ok(result) }
            };
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            (second, thread.cast_unsigned(), [call(), call()])
        });
        let listener = receiver.recv().unwrap();
        let mut threads = Vec::new();
        for outcome in [Err(Errno::XDEV), Ok(7)] {
            let call = listener.next().unwrap();
            assert_eq!(call.number, libc::SYS_sched_rr_get_interval);
            assert_eq!(call.arguments[..2], [11, 12]);
            threads.push(call.thread);
            assert!(listener.is_waiting(&call));
            listener.answer(&call, outcome);
            assert!(!listener.is_waiting(&call));
        }
        let (second, thread, outcomes) = caller.join().unwrap();
        assert_eq!(threads, [thread; 2]);
        assert_eq!(outcomes, [Err(Some(libc::EXDEV)), Ok(7)]);
        // A thread has one listener at most.
        assert_eq!(second, Err(io::ErrorKind::ResourceBusy));
        assert!(listener.next().is_none(), "a call after the caller's end");
    }
}
