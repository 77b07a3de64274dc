//! Requests that wait for their answers.
//!
//! Owns the table from id to waiter, and the deadlines of each. An entry leaves the table exactly once: with its answer,
//! with its failure, with the end of the link, or because nobody waits any longer. Nothing here knows what a request means.

use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use switchboard_protocol::ErrorObject;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::id_map::IdMap;
use crate::json::SharedJson;
use crate::transport::{Closed, RequestFailure};

/// What comes of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A result.
    Result(SharedJson),
    /// An error.
    Error(Box<ErrorObject<'static>>),
    /// Something with the right id that is no answer.
    Unreadable(String),
    /// An answer that is nested too deep: where, and the whole message.
    TooDeep(String, Bytes),
    /// Nothing was heard of it for too long, or it took too long in all.
    Overdue(Overdue),
    /// The link says that none will come.
    Failed(RequestFailure),
    /// The link has ended.
    Closed(Closed),
}

/// Which of its deadlines a request has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// That for its silence.
    Idle,
    /// That for the whole.
    Total,
}

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How long nothing may be heard of it.
    pub(crate) idle: Duration,
    /// How long it may take in all.
    pub(crate) total: Duration,
}

/// How far a request is, as its server tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far it is.
    pub progress: f64,
    /// How far it goes, if that is known.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// Gets a request's progress. It runs on a task that reads or sends, so it must be short and must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Gets the progress of many requests, each under a number that whoever asked chose for it. As short as a sink.
pub trait ProgressListener: Send + Sync {
    /// The request of that number is so far.
    fn progress(&self, number: u64, progress: Progress);
}

/// Where the progress of one request goes.
#[derive(Clone)]
pub struct ProgressRoute {
    /// Who gets it.
    pub listener: Arc<dyn ProgressListener>,
    /// The request's number there.
    pub number: u64,
}

impl ProgressRoute {
    /// Tells who listens.
    pub fn tell(&self, progress: Progress) {
        self.listener.progress(self.number, progress);
    }
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    table: Mutex<Table>,
    alarm: Alarm,
}

#[derive(Debug, Default)]
struct Table {
    waiting: IdMap<Waiting>,
    last_id: u64,
    closed: Option<Closed>,
}

struct Waiting {
    /// Gone when the request is overdue; then only whoever waits takes the entry out.
    reply: Option<oneshot::Sender<Reply>>,
    /// When something was last heard of it.
    heard: Instant,
    limits: Option<Limits>,
    progress: Option<ProgressRoute>,
}

/// The deadlines of a request.
#[derive(Debug, Clone, Copy)]
struct Limits {
    idle: Duration,
    end: Instant,
}

impl Limits {
    fn due(self, heard: Instant) -> Instant {
        self.end.min(later(heard, self.idle))
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Waiting")
            .field("heard", &self.heard)
            .finish_non_exhaustive()
    }
}

impl Pending {
    /// Enters a request under a fresh id. Without `patience` it waits for ever.
    pub(crate) fn enter(
        &self,
        patience: Option<Patience>,
        progress: Option<ProgressRoute>,
    ) -> Result<(u64, oneshot::Receiver<Reply>), Closed> {
        let (reply, receiver) = oneshot::channel();
        let heard = Instant::now();
        let limits = patience.map(|Patience { idle, total }| Limits {
            idle,
            end: later(heard, total),
        });
        let waiting = Waiting {
            reply: Some(reply),
            heard,
            limits,
            progress,
        };
        let id = {
            let mut table = self.table();
            if let Some(closed) = &table.closed {
                return Err(closed.clone());
            }
            table.last_id += 1;
            let id = table.last_id;
            table.waiting.insert(id, waiting);
            id
        };
        if let Some(limits) = limits {
            self.alarm.by(limits.due(heard));
        }
        Ok((id, receiver))
    }

    /// Tells those whose deadlines pass, for as long as it is awaited.
    ///
    /// While `is_asking` says so, the server waits for us, and is not silent.
    pub(crate) async fn watch(&self, is_asking: impl Fn() -> bool) {
        self.alarm.run(|now| self.sweep(now, is_asking())).await;
    }

    /// Tells those whose deadlines have passed; when the next ones do.
    fn sweep(&self, now: Instant, is_asking: bool) -> Option<Instant> {
        let mut next = None;
        let mut overdue = Vec::new();
        for waiting in self.table().waiting.values_mut() {
            let (Some(limits), Some(_)) = (waiting.limits, &waiting.reply) else {
                continue;
            };
            if is_asking {
                waiting.heard = now;
            }
            let due = limits.due(waiting.heard);
            if due > now {
                next = Some(next.map_or(due, |next: Instant| next.min(due)));
                continue;
            }
            let which = if limits.end <= now {
                Overdue::Total
            } else {
                Overdue::Idle
            };
            overdue.extend(waiting.reply.take().map(|reply| (reply, which)));
        }
        for (reply, which) in overdue {
            let _ = reply.send(Reply::Overdue(which));
        }
        next
    }

    /// Gives a request its reply; `false` if nobody waits under this id.
    pub(crate) fn settle(&self, id: u64, reply: Reply) -> bool {
        let sender = {
            let mut table = self.table();
            let Entry::Occupied(mut waiting) = table.waiting.entry(id) else {
                return false;
            };
            let Some(sender) = waiting.get_mut().reply.take() else {
                return false;
            };
            waiting.remove();
            sender
        };
        sender.send(reply).is_ok()
    }

    /// The id of the only request that waits, for an answer that does not say whose it is.
    pub(crate) fn only(&self) -> Option<u64> {
        let table = self.table();
        let mut ids = table.waiting.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    /// Takes a request out; `false` if it has been settled.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.table().waiting.remove(&id).is_some()
    }

    /// Notes that something was heard of a request.
    pub(crate) fn progressed(&self, id: u64, progress: impl FnOnce() -> Progress) -> bool {
        let route = {
            let mut table = self.table();
            let Some(waiting) = table.waiting.get_mut(&id) else {
                return false;
            };
            waiting.heard = Instant::now();
            waiting.progress.clone()
        };
        // Outside the lock: what a listener does is not ours to know.
        if let Some(route) = route {
            route.tell(progress());
        }
        true
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.table().waiting.len()
    }

    /// How many have been entered so far.
    pub(crate) fn entered(&self) -> u64 {
        self.table().last_id
    }

    /// Refuses all that would come, unless more than so many wait; whether it does. Those that wait go on waiting.
    pub(crate) fn close_unless_more_than(&self, waiting: usize, closed: &Closed) -> bool {
        let mut table = self.table();
        let is_over = table.waiting.len() <= waiting;
        if is_over {
            table.closed.get_or_insert_with(|| closed.clone());
        }
        is_over
    }

    /// Ends every request that waits, and all that would come.
    pub(crate) fn close(&self, closed: &Closed) {
        let waiting = {
            let mut table = self.table();
            table.closed.get_or_insert_with(|| closed.clone());
            std::mem::take(&mut table.waiting)
        };
        for reply in waiting.into_values().filter_map(|waiting| waiting.reply) {
            let _ = reply.send(Reply::Closed(closed.clone()));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No code that can panic runs under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That long after, or as long as a clock can tell.
pub(super) fn later(start: Instant, duration: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    start + duration.min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closing_fails_those_who_wait_and_those_who_come() {
        let pending = Pending::default();
        let (_, first) = pending.enter(None, None).unwrap();
        pending.close(&Closed::ByServer);
        assert!(matches!(first.await, Ok(Reply::Closed(Closed::ByServer))));
        assert_eq!(pending.enter(None, None).err(), Some(Closed::ByServer));
        assert_eq!(pending.len(), 0);
    }

    #[tokio::test]
    async fn an_entry_leaves_once() {
        let pending = Pending::default();
        let (id, waiting) = pending.enter(None, None).unwrap();
        assert_eq!(pending.only(), Some(id));
        let (other, _kept) = pending.enter(None, None).unwrap();
        assert_eq!(pending.only(), None);
        assert!(pending.settle(id, Reply::Unreadable("odd".into())));
        assert!(!pending.settle(id, Reply::Unreadable("again".into())));
        assert!(matches!(waiting.await, Ok(Reply::Unreadable(text)) if text == "odd"));
        assert!(pending.forget(other));
        assert!(!pending.forget(other));
    }
}
