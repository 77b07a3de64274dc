//! One process at a time, by a lock of the system on a file.
//!
//! The system gives the lock back when its holder ends, however that happens. A lock file is never deleted: one that
//! comes and goes can be held twice. Waiting is trying again at short intervals and not a blocked thread, because a
//! thread that the system has put to sleep over a lock can be neither called off nor given a deadline.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A lock that was not to be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("another process has held it for {} s", .0.as_secs())]
    Busy(Duration),
    #[error("it cannot be locked: {0}")]
    Io(io::Error),
}

/// Waits for the lock of a file. It is held until the file is dropped.
pub(super) async fn lock(file: File, patience: Duration) -> Result<File, LockError> {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LockError::Busy(patience));
        }
        sleep(pause.min(left)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
