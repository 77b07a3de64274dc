//! Excludes the time that a user takes to answer from the duration of a call.
//!
//! Each [timed](working_time) future has its own counter. Code that waits for the user within it adds to the counter:
//! approvals directly, and requests from a server by the time they took to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    /// Microseconds spent waiting for the user.
    static THOUGHT: Arc<AtomicU64>;
}

/// Runs a future, and returns its duration without the time spent waiting for the user.
pub async fn working_time<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let thought = Arc::new(AtomicU64::new(0));
    let output = THOUGHT.scope(Arc::clone(&thought), work).await;
    let thought = Duration::from_micros(thought.load(Ordering::Relaxed));
    // Nested work: the outer duration excludes the wait, too.
    add(thought);
    (output, started.elapsed().saturating_sub(thought))
}

pub(crate) async fn thinking<T>(wait: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let output = wait.await;
    add(started.elapsed());
    output
}

/// Adds time spent waiting for the user.
pub(crate) fn add(time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if micros > 0 {
        let _ = THOUGHT.try_with(|thought| thought.fetch_add(micros, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn thinking_is_no_work() {
        let second = Duration::from_secs(1);
        let work = async {
            tokio::time::sleep(second).await;
            thinking(tokio::time::sleep(second * 60)).await;
            add(second);
            tokio::time::sleep(second * 2).await;
        };
        let within = async {
            tokio::time::sleep(second).await;
            working_time(work).await.1
        };
        let (inner, outer) = working_time(within).await;
        assert_eq!((inner, outer), (second * 2, second * 3));
        // Outside a timed future, nothing is counted.
        thinking(tokio::time::sleep(second)).await;
    }
}
