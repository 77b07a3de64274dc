//! The time that a person takes to answer, which is no time of the call that waits for it.
//!
//! Owns one count for each piece of work that is [timed](working_time). Whoever waits for a person within it adds to
//! the count: an approval by itself, and what a server asks during a call by the time it took to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

tokio::task_local! {
    /// Microseconds that a person has taken.
    static THOUGHT: Arc<AtomicU64>;
}

/// Runs some work, and tells how long it took without the time that a person took to answer.
pub async fn working_time<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let thought = Arc::new(AtomicU64::new(0));
    let output = THOUGHT.scope(Arc::clone(&thought), work).await;
    let thought = Duration::from_micros(thought.load(Ordering::Relaxed));
    // Work within other work: whoever waits for it does not wait for the person either.
    add(thought);
    (output, started.elapsed().saturating_sub(thought))
}

/// Waits for a person.
pub(crate) async fn thinking<T>(wait: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let output = wait.await;
    add(started.elapsed());
    output
}

/// Counts time that a person took.
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
        // Nobody counts elsewhere.
        thinking(tokio::time::sleep(second)).await;
    }
}
