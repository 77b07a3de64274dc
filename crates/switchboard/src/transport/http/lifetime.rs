//! The life of a link that consists of several tasks: begun together, ended together, and over at a known moment.
//!
//! Owns the tasks and the two signals (that the end is wanted, that it has come). One *supervisor* task of each link
//! waits for the first signal or for the end from outside, stops the others, and gives the second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

/// How long somebody who closes a link waits for its end at most. The end itself has shorter deadlines.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// The tasks of a link.
#[derive(Debug)]
pub(in crate::transport) struct Lifetime {
    runtime: Handle,
    /// Empty once the end has begun: from then on nothing starts.
    tasks: Mutex<Option<JoinSet<()>>>,
    stop: Notify,
    ended: watch::Sender<bool>,
}

impl Lifetime {
    /// To be called inside the runtime that is to run the tasks.
    pub(in crate::transport) fn new() -> Self {
        Self {
            runtime: Handle::current(),
            tasks: Mutex::new(Some(JoinSet::new())),
            stop: Notify::new(),
            ended: watch::Sender::new(false),
        }
    }

    /// Starts the task that ends the link, which no other task of the link may be.
    pub(in crate::transport) fn supervise(
        &self,
        supervisor: impl Future<Output = ()> + Send + 'static,
    ) {
        self.runtime.spawn(supervisor);
    }

    /// Starts a task, unless the end has begun.
    pub(in crate::transport) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let mut tasks = lock(&self.tasks);
        let tasks = tasks.as_mut()?;
        // Those that are over would otherwise pile up until the end.
        while tasks.try_join_next().is_some() {}
        Some(tasks.spawn_on(task, &self.runtime))
    }

    /// Asks the supervisor to end the link.
    pub(in crate::transport) fn stop(&self) {
        self.stop.notify_one();
    }

    /// For the supervisor: waits until the end is wanted.
    pub(in crate::transport) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// For the supervisor: ends all tasks and waits until they are gone.
    pub(in crate::transport) async fn end_tasks(&self) {
        let tasks = lock(&self.tasks).take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    /// For the supervisor: says that it is over.
    pub(in crate::transport) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Asks for the end and waits for it.
    pub(in crate::transport) async fn close(&self) {
        self.stop();
        let mut ended = self.ended.subscribe();
        let _ = tokio::time::timeout(CLOSE_DEADLINE, ended.wait_for(|ended| *ended)).await;
    }
}

/// A lock whose holder panicked is taken over: none of these guards a state that could be left half changed.
pub(in crate::transport) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
