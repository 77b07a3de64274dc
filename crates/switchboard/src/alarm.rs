//! A shared timer: one task serves the deadlines of many requests, so that setting one is cheap.
//!
//! Stores only the time of the next check; the owner of an [`Alarm`] knows the deadlines and handles those that expire.
//! Deadlines that are met, as in nearly all calls, cost no timer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// The time of the next check.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    next: Mutex<Option<Instant>>,
    sooner: Notify,
}

impl Alarm {
    /// Schedules a check at that time or earlier.
    pub(crate) fn by(&self, time: Instant) {
        let mut next = self.next();
        if next.is_none_or(|next| time < next) {
            *next = Some(time);
            drop(next);
            self.sooner.notify_one();
        }
    }

    /// Calls `look` whenever a check is due. It returns the time of the next one.
    pub(crate) async fn run(&self, mut look: impl FnMut(Instant) -> Option<Instant>) {
        loop {
            let next = *self.next();
            let Some(time) = next else {
                self.sooner.notified().await;
                continue;
            };
            tokio::select! {
                () = sleep_until(time) => {}
                () = self.sooner.notified() => continue,
            }
            // A deadline set while `look` runs finds no scheduled check, and so schedules one.
            self.next().take();
            if let Some(time) = look(Instant::now()) {
                self.by(time);
            }
        }
    }

    fn next(&self) -> MutexGuard<'_, Option<Instant>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Aborts a task when dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(AbortHandle);

impl AbortOnDrop {
    pub(crate) fn new<T>(task: &tokio::task::JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }

    pub(crate) fn abort(&self) {
        self.0.abort();
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_deadline_is_looked_at_in_time_whatever_the_order_they_are_set_in() {
        let start = Instant::now();
        let alarm = Arc::new(Alarm::default());
        let open: Arc<Mutex<BTreeSet<Instant>>> = Arc::default();
        let passed: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
        let running = tokio::spawn({
            let (alarm, open, passed) = (alarm.clone(), open.clone(), passed.clone());
            async move {
                let look = |now: Instant| {
                    let mut open = open.lock().unwrap();
                    while let Some(due) = open.first().copied().filter(|due| *due <= now) {
                        open.remove(&due);
                        let after = |time: Instant| (time - start).as_secs();
                        passed.lock().unwrap().push((after(due), after(now)));
                    }
                    open.first().copied()
                };
                alarm.run(look).await;
            }
        });
        for seconds in [60, 30, 90, 5, 61] {
            let due = start + Duration::from_secs(seconds);
            open.lock().unwrap().insert(due);
            alarm.by(due);
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_secs(100)).await;
        let late = Instant::now() + Duration::from_secs(1);
        open.lock().unwrap().insert(late);
        alarm.by(late);
        tokio::time::sleep(Duration::from_secs(2)).await;
        running.abort();
        let expected = [(5, 5), (30, 30), (60, 60), (61, 61), (90, 90), (101, 101)];
        assert_eq!(*passed.lock().unwrap(), expected);
    }
}
