//! Cross-process lock on a file, with a deadline.
//!
//! The operating system releases the lock when its holder exits, for any reason. A lock file is never deleted: two
//! processes could otherwise hold locks on different files of the same name. Waiting polls at short intervals, because
//! a blocking lock call can be neither cancelled nor given a deadline.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Maximum delay between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    #[error("another process has held it for {} s", .0.as_secs())]
    Busy(Duration),
    #[error("it cannot be locked: {0}")]
    Io(io::Error),
}

/// Waits for the lock on a file. The lock is held until the file is dropped.
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
        pause = after(pause);
    }
}

/// Returns the delay after this one: twice as long, up to the maximum.
fn after(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_polls_less_and_less_often() {
        let pauses =
            std::iter::successors(Some(Duration::from_millis(1)), |pause| Some(after(*pause)));
        let millis: Vec<u128> = pauses.take(8).map(|pause| pause.as_millis()).collect();
        assert_eq!(millis, [1, 2, 4, 8, 16, 32, 50, 50]);
    }
}
