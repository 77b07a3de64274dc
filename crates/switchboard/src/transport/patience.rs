//! Whether the current thread may wait briefly for an answer itself.
//!
//! A program in another language waits for a call outside the runtime: its own thread sends the request, and the runtime's
//! thread receives the answer and wakes it. Each of these wakeups can take longer than a fast server needs to answer. A
//! thread that polls a call [`patiently`] looks for the answer a little longer after it has sent the request. Threads of a
//! runtime must not do so: other tasks wait for them.

use std::cell::Cell;

thread_local! {
    static IS_PATIENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs something on a thread that may wait, for less than a millisecond, for the answer to a request that it sends.
pub fn patiently<T>(work: impl FnOnce() -> T) -> T {
    let _reset = Reset(IS_PATIENT.replace(true));
    work()
}

pub(crate) fn is_patient() -> bool {
    IS_PATIENT.get()
}

/// Restores the state of the thread, also if the work panics.
struct Reset(bool);

impl Drop for Reset {
    fn drop(&mut self) {
        IS_PATIENT.set(self.0);
    }
}
