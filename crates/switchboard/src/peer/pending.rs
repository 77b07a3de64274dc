//! Table of requests that await their response, with their deadlines.
//!
//! An entry leaves the table exactly once: with its response, with a failure, when the link ends, or when its waiter is
//! dropped. Nothing here depends on the meaning of a request.

use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use switchboard_protocol::ErrorObject;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::caller::{AskedBy, Caller};
use crate::id_map::IdMap;
use crate::json::SharedJson;
use crate::transport::{Closed, RequestFailure};

/// Outcome of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(SharedJson),
    Error(Box<ErrorObject<'static>>),
    /// A message with the id of the request that is not a valid response.
    Unreadable(String),
    /// A response nested too deeply: the position, and the whole message.
    TooDeep(String, Bytes),
    Overdue(Overdue),
    /// The link reports that no response will arrive.
    Failed(RequestFailure),
    Closed(Closed),
}

/// The deadline that a request missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// No response and no progress for too long.
    Idle,
    /// Too long in all.
    Total,
}

/// Deadlines of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Longest time without a response or progress.
    pub(crate) idle: Duration,
    /// Longest time in all.
    pub(crate) total: Duration,
}

/// Progress of a request, as reported by the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Amount done so far, in the server's unit.
    pub progress: f64,
    /// Amount at completion; `None` if unknown.
    pub total: Option<f64>,
    /// Description of the current work.
    pub message: Option<String>,
}

/// Receives a request's progress. Called from a task that reads or sends: must be short and never block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// Receives the progress of many requests, each under a number chosen by the caller. Must be short and never block.
pub trait ProgressListener: Send + Sync {
    /// Reports progress of the request with this number.
    fn progress(&self, number: u64, progress: Progress);
}

/// Destination of one request's progress.
#[derive(Clone)]
pub struct ProgressRoute {
    /// Receiver of the progress.
    pub listener: Arc<dyn ProgressListener>,
    /// The request's number at the listener.
    pub number: u64,
}

impl ProgressRoute {
    /// Passes progress to the listener.
    pub fn tell(&self, progress: Progress) {
        self.listener.progress(self.number, progress);
    }
}

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
    /// `None` once the request is overdue; then only its waiter removes the entry.
    reply: Option<oneshot::Sender<Reply>>,
    /// Time of the last progress, or of the start.
    heard: Instant,
    limits: Option<Limits>,
    progress: Option<ProgressRoute>,
    caller: Option<Arc<Caller>>,
}

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
    /// Adds a request under a new id. Without `patience` it never times out.
    pub(crate) fn enter(
        &self,
        patience: Option<Patience>,
        progress: Option<ProgressRoute>,
        caller: Option<Arc<Caller>>,
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
            caller,
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

    /// Times out overdue requests for as long as it is polled.
    ///
    /// While `is_asking` returns true, the server waits for this client, so idle deadlines do not run.
    pub(crate) async fn watch(&self, is_asking: impl Fn() -> bool) {
        self.alarm.run(|now| self.sweep(now, is_asking())).await;
    }

    /// Times out overdue requests and returns the next deadline.
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

    /// Delivers the reply of a request; `false` if no waiter has this id.
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

    /// The id of the only pending request, for a response without an id.
    pub(crate) fn only(&self) -> Option<u64> {
        let table = self.table();
        let mut ids = table.waiting.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    /// Removes a request; `false` if it has been settled.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.table().waiting.remove(&id).is_some()
    }

    /// Restarts the idle deadline of a request and passes its progress on; `false` if no request has this id.
    pub(crate) fn progressed(&self, id: u64, progress: impl FnOnce() -> Progress) -> bool {
        let route = {
            let mut table = self.table();
            let Some(waiting) = table.waiting.get_mut(&id) else {
                return false;
            };
            waiting.heard = Instant::now();
            waiting.progress.clone()
        };
        // Called outside the lock, since a listener may do anything.
        if let Some(route) = route {
            route.tell(progress());
        }
        true
    }

    /// Whose request a question of the server belongs to. `related` is the request on whose stream it arrived.
    pub(crate) fn asked_by(&self, related: Option<u64>) -> AskedBy {
        let table = self.table();
        if let Some(waiting) = related.and_then(|id| table.waiting.get(&id)) {
            return waiting.caller.as_ref().into();
        }
        // The oldest request of a client stands for all of its requests.
        let called = table.waiting.iter().filter_map(|(id, waiting)| {
            let caller = waiting.caller.as_ref()?;
            Some((id, caller))
        });
        let mut first: Option<(&u64, &Arc<Caller>)> = None;
        for (id, caller) in called {
            match first {
                Some((_, other)) if other.client != caller.client => return AskedBy::Unclear,
                Some((earlier, _)) if earlier < id => {}
                _ => first = Some((id, caller)),
            }
        }
        first.map(|(_, caller)| caller).into()
    }

    pub(crate) fn len(&self) -> usize {
        self.table().waiting.len()
    }

    /// Number of requests added so far.
    pub(crate) fn entered(&self) -> u64 {
        self.table().last_id
    }

    /// Whether new requests are rejected.
    pub(crate) fn is_closed(&self) -> bool {
        self.table().closed.is_some()
    }

    /// Rejects new requests unless more than `waiting` are pending; returns whether it does. Pending ones stay.
    pub(crate) fn close_unless_more_than(&self, waiting: usize, closed: &Closed) -> bool {
        let mut table = self.table();
        let is_over = table.waiting.len() <= waiting;
        if is_over {
            table.closed.get_or_insert_with(|| closed.clone());
        }
        is_over
    }

    /// Fails every pending request, and rejects new ones.
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

/// `start` plus `duration`, saturating at what an `Instant` can represent.
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
        let (_, first) = pending.enter(None, None, None).unwrap();
        pending.close(&Closed::ByServer);
        assert!(matches!(first.await, Ok(Reply::Closed(Closed::ByServer))));
        assert_eq!(
            pending.enter(None, None, None).err(),
            Some(Closed::ByServer)
        );
        assert_eq!(pending.len(), 0);
    }

    #[tokio::test]
    async fn an_entry_leaves_once() {
        let pending = Pending::default();
        let (id, waiting) = pending.enter(None, None, None).unwrap();
        assert_eq!(pending.only(), Some(id));
        let (other, _kept) = pending.enter(None, None, None).unwrap();
        assert_eq!(pending.only(), None);
        assert!(pending.settle(id, Reply::Unreadable("odd".into())));
        assert!(!pending.settle(id, Reply::Unreadable("again".into())));
        assert!(matches!(waiting.await, Ok(Reply::Unreadable(text)) if text == "odd"));
        assert!(pending.forget(other));
        assert!(!pending.forget(other));
    }

    #[tokio::test]
    async fn a_question_belongs_to_the_client_whose_request_is_running() {
        let caller = |client| {
            Some(Arc::new(Caller {
                client,
                owner: client,
                principal: "parent".into(),
                profile: None,
                handler: Arc::new(crate::handler::DeclineAll),
                meta: None,
                input: None,
                takes_unfinished: false,
                takes_tasks: false,
                task: None,
            }))
        };
        let client_of = |asked: AskedBy| match asked {
            AskedBy::Client(caller) => Some(caller.client),
            AskedBy::NoRequest | AskedBy::Unclear => None,
        };
        let pending = Pending::default();
        let (own, _kept) = pending.enter(None, None, None).unwrap();
        assert!(matches!(pending.asked_by(None), AskedBy::NoRequest));
        let (first, _first) = pending.enter(None, None, caller(1)).unwrap();
        let (_, _again) = pending.enter(None, None, caller(1)).unwrap();
        assert_eq!(client_of(pending.asked_by(None)), Some(1));
        let (second, _second) = pending.enter(None, None, caller(2)).unwrap();
        assert!(matches!(pending.asked_by(None), AskedBy::Unclear));
        // The stream of a request says whose it is.
        assert_eq!(client_of(pending.asked_by(Some(first))), Some(1));
        assert_eq!(client_of(pending.asked_by(Some(second))), Some(2));
        assert!(matches!(pending.asked_by(Some(own)), AskedBy::NoRequest));
    }
}
