//! Lifetime of a link that consists of several tasks: starts, stops and awaits them together.
//!
//! Owns the tasks and two signals (stop requested, ended). One *supervisor* task per link waits for the first signal or
//! for the end of the connection, stops the other tasks, and sends the second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

/// How long closing a link waits at most. The shutdown itself has shorter deadlines.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(in crate::transport) struct Lifetime {
    runtime: Handle,
    /// `None` once the shutdown has started: no task can be spawned then.
    tasks: Mutex<Option<JoinSet<()>>>,
    stop: Notify,
    ended: watch::Sender<bool>,
}

impl Lifetime {
    /// Must be called within the runtime that is to run the tasks.
    pub(in crate::transport) fn new() -> Self {
        Self {
            runtime: Handle::current(),
            tasks: Mutex::new(Some(JoinSet::new())),
            stop: Notify::new(),
            ended: watch::Sender::new(false),
        }
    }

    /// Spawns the supervisor task, which is not one of the link's other tasks.
    pub(in crate::transport) fn supervise(
        &self,
        supervisor: impl Future<Output = ()> + Send + 'static,
    ) {
        self.runtime.spawn(supervisor);
    }

    /// Spawns a task, unless the shutdown has started.
    pub(in crate::transport) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let mut tasks = lock(&self.tasks);
        let tasks = tasks.as_mut()?;
        // Finished tasks would otherwise accumulate until the end.
        while tasks.try_join_next().is_some() {}
        Some(tasks.spawn_on(task, &self.runtime))
    }

    /// Asks the supervisor to end the link.
    pub(in crate::transport) fn stop(&self) {
        self.stop.notify_one();
    }

    /// For the supervisor: waits until a stop is requested.
    pub(in crate::transport) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// For the supervisor: aborts all tasks and waits until they are gone.
    pub(in crate::transport) async fn end_tasks(&self) {
        let tasks = lock(&self.tasks).take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    /// For the supervisor: signals that the link has ended.
    pub(in crate::transport) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Requests the end and waits for it.
    pub(in crate::transport) async fn close(&self) {
        self.stop();
        let mut ended = self.ended.subscribe();
        let _ = tokio::time::timeout(CLOSE_DEADLINE, ended.wait_for(|ended| *ended)).await;
    }
}

/// Ignores poisoning: none of these mutexes guards a state that could be left inconsistent.
pub(in crate::transport) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
