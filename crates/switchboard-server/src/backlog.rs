//! Queue of outgoing frames for a client that may read slowly.
//!
//! Answers and requests to the client are always queued: they belong to running requests, which are bounded elsewhere.
//! Progress reports are dropped once the queue exceeds its limit; duplicate change notifications are coalesced.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use switchboard::internal::service::Purpose;

/// Memory per queued frame beyond its bytes: its slots in the queue and in the set of changes.
const OVERHEAD: usize = 64;

/// Queued frames, oldest first.
#[derive(Debug)]
pub(crate) struct Backlog {
    waiting: VecDeque<Waiting>,
    /// Total cost of the queued frames.
    bytes: usize,
    /// Reports are dropped while more bytes than this are queued.
    limit: usize,
    /// Queued change notifications, to skip duplicates.
    changes: HashSet<Bytes>,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) frame: Bytes,
    /// Sequence number over all frames ever queued.
    pub(crate) number: u64,
    purpose: Purpose,
}

impl Waiting {
    /// Bytes counted against the limit.
    pub(crate) fn cost(&self) -> usize {
        self.frame.len() + OVERHEAD
    }
}

impl Backlog {
    /// Drops reports while more than `limit` bytes are queued.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
            changes: HashSet::new(),
            next: 1,
        }
    }

    /// Queues a frame; returns `false` if it was dropped.
    pub(crate) fn push(&mut self, frame: Bytes, purpose: Purpose) -> bool {
        let is_left_out = match purpose {
            Purpose::Answer(_) | Purpose::Message => false,
            Purpose::Report => self.is_over(),
            Purpose::Change => !self.changes.insert(frame.clone()),
        };
        if is_left_out {
            return false;
        }
        let waiting = Waiting {
            frame,
            number: self.next,
            purpose,
        };
        self.next += 1;
        self.bytes += waiting.cost();
        self.waiting.push_back(waiting);
        true
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.cost();
        if waiting.purpose == Purpose::Change {
            self.changes.remove(&waiting.frame);
        }
        Some(waiting)
    }

    /// Returns a frame to the front of the queue, to be written again.
    pub(crate) fn put_back(&mut self, waiting: Waiting) {
        self.bytes += waiting.cost();
        self.waiting.push_front(Waiting {
            // Clears the purpose so that a later change is not taken for a duplicate: this frame was written before it.
            purpose: Purpose::Message,
            ..waiting
        });
    }

    /// The purpose of the oldest frame.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        self.waiting.front().map(|waiting| waiting.purpose)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Total cost of the queued frames.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether more bytes are queued than the limit allows.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.limit
    }
}

#[cfg(test)]
mod tests {
    use switchboard::internal::service::Answered;

    use super::*;

    fn drained(backlog: &mut Backlog) -> Vec<(u64, String)> {
        std::iter::from_fn(|| backlog.pop())
            .map(|waiting| {
                let text = String::from_utf8_lossy(&waiting.frame).into_owned();
                (waiting.number, text)
            })
            .collect()
    }

    fn numbered(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
        let expected = expected.iter();
        expected
            .map(|(number, text)| (*number, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn only_reports_are_left_out_when_the_client_lags() {
        let mut backlog = Backlog::new(100);
        assert!(backlog.push("report".into(), Purpose::Report));
        assert!(backlog.push("question".into(), Purpose::Message));
        assert!(backlog.is_over());
        assert!(!backlog.push("late report".into(), Purpose::Report));
        assert!(backlog.push("answer".into(), Purpose::Answer(Answered::Result)));
        assert_eq!(
            drained(&mut backlog),
            numbered(&[(1, "report"), (2, "question"), (3, "answer")])
        );
        assert_eq!((backlog.bytes(), backlog.is_empty()), (0, true));
        assert!(backlog.push("report".into(), Purpose::Report));
    }

    #[test]
    fn a_queued_change_is_not_queued_twice() {
        let mut backlog = Backlog::new(1_000);
        assert!(backlog.push("tools".into(), Purpose::Change));
        assert!(!backlog.push("tools".into(), Purpose::Change));
        assert!(backlog.push("prompts".into(), Purpose::Change));
        let first = backlog.pop().unwrap();
        assert_eq!(&first.frame[..], b"tools");
        // No longer queued, so the next one is not a duplicate.
        assert!(backlog.push("tools".into(), Purpose::Change));
        backlog.put_back(first);
        assert_eq!(
            drained(&mut backlog),
            numbered(&[(1, "tools"), (2, "prompts"), (3, "tools")])
        );
        assert_eq!(backlog.bytes(), 0);
        assert!(backlog.push("tools".into(), Purpose::Change));
    }
}
