//! Requests that wait for their answers.
//!
//! Owns the table from id to waiter. An entry leaves the table exactly once: with its answer, with its failure, with
//! the end of the link, or because nobody waits any longer. Nothing here knows what a request means.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_protocol::ErrorObject;
use tokio::sync::oneshot;
use tokio::time::Instant;

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
    /// The link says that none will come.
    Failed(RequestFailure),
    /// The link has ended.
    Closed(Closed),
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

/// Gets a request's progress. It runs on the task that reads, so it must be short and must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// All requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    waiting: HashMap<u64, Waiting, BuildHasherDefault<IdHasher>>,
    last_id: u64,
    closed: Option<Closed>,
}

struct Waiting {
    reply: oneshot::Sender<Reply>,
    /// When something was last heard of it.
    heard: Instant,
    progress: Option<ProgressSink>,
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
    /// Enters a request under a fresh id.
    pub(crate) fn enter(
        &self,
        progress: Option<ProgressSink>,
    ) -> Result<(u64, oneshot::Receiver<Reply>), Closed> {
        let (reply, receiver) = oneshot::channel();
        let heard = Instant::now();
        let mut table = self.table();
        if let Some(closed) = &table.closed {
            return Err(closed.clone());
        }
        table.last_id += 1;
        let id = table.last_id;
        table.waiting.insert(
            id,
            Waiting {
                reply,
                heard,
                progress,
            },
        );
        Ok((id, receiver))
    }

    /// Gives a request its reply; `false` if nobody waits under this id.
    pub(crate) fn settle(&self, id: u64, reply: Reply) -> bool {
        let waiting = self.table().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.reply.send(reply).is_ok())
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
        let sink = {
            let mut table = self.table();
            let Some(waiting) = table.waiting.get_mut(&id) else {
                return false;
            };
            waiting.heard = Instant::now();
            waiting.progress.clone()
        };
        // Outside the lock: what a sink does is not ours to know.
        if let Some(sink) = sink {
            sink(progress());
        }
        true
    }

    /// When something was last heard of a request that still waits.
    pub(crate) fn heard(&self, id: u64) -> Option<Instant> {
        self.table().waiting.get(&id).map(|waiting| waiting.heard)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.table().waiting.len()
    }

    /// Ends every request that waits, and all that would come.
    pub(crate) fn close(&self, closed: &Closed) {
        let waiting = {
            let mut table = self.table();
            table.closed.get_or_insert_with(|| closed.clone());
            std::mem::take(&mut table.waiting)
        };
        for waiting in waiting.into_values() {
            let _ = waiting.reply.send(Reply::Closed(closed.clone()));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids are ours and count up: they are spread well enough as they are.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The table takes its buckets from the low bits and its tags from the high ones.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn closing_fails_those_who_wait_and_those_who_come() {
        let pending = Pending::default();
        let (_, first) = pending.enter(None).unwrap();
        pending.close(&Closed::ByServer);
        assert!(matches!(first.await, Ok(Reply::Closed(Closed::ByServer))));
        assert_eq!(pending.enter(None).err(), Some(Closed::ByServer));
        assert_eq!(pending.len(), 0);
    }

    #[tokio::test]
    async fn an_entry_leaves_once() {
        let pending = Pending::default();
        let (id, waiting) = pending.enter(None).unwrap();
        assert_eq!(pending.only(), Some(id));
        let (other, _kept) = pending.enter(None).unwrap();
        assert_eq!(pending.only(), None);
        assert!(pending.settle(id, Reply::Unreadable("odd".into())));
        assert!(!pending.settle(id, Reply::Unreadable("again".into())));
        assert!(matches!(waiting.await, Ok(Reply::Unreadable(text)) if text == "odd"));
        assert!(pending.forget(other));
        assert!(!pending.forget(other));
    }
}
