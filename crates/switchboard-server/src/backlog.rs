//! Frames on their way to a client that may read slowly.
//!
//! Owns the order and the bound. What must arrive is always taken: answers and questions come of requests that are
//! running, and those are bounded where they are taken in. What may be left out is, once the client is too far behind.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use switchboard::service::Purpose;

/// What a frame costs beside its bytes: its places in the queue and in the set of changes.
const OVERHEAD: usize = 64;

/// Frames that wait to be written, oldest first.
#[derive(Debug)]
pub(crate) struct Backlog {
    waiting: VecDeque<Waiting>,
    /// Their bytes.
    bytes: usize,
    /// From how many waiting bytes on reports are left out.
    limit: usize,
    /// The changes among them: one of several that are the same is enough.
    changes: HashSet<Bytes>,
    /// The number of the next frame.
    next: u64,
}

/// A frame that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The frame.
    pub(crate) frame: Bytes,
    /// Its place in the order of all frames ever taken.
    pub(crate) number: u64,
    purpose: Purpose,
}

impl Waiting {
    /// What it costs to keep.
    pub(crate) fn cost(&self) -> usize {
        self.frame.len() + OVERHEAD
    }
}

impl Backlog {
    /// Leaves reports out from so many waiting bytes on.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
            changes: HashSet::new(),
            next: 1,
        }
    }

    /// Takes a frame; `false` where it is left out.
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

    /// The oldest frame.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.cost();
        if waiting.purpose == Purpose::Change {
            self.changes.remove(&waiting.frame);
        }
        Some(waiting)
    }

    /// Puts a frame back in front, for it has to be written again.
    pub(crate) fn put_back(&mut self, waiting: Waiting) {
        self.bytes += waiting.cost();
        self.waiting.push_front(Waiting {
            // A change that comes now is news: what is put back was written before it.
            purpose: Purpose::Message,
            ..waiting
        });
    }

    /// What the oldest frame is for.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        self.waiting.front().map(|waiting| waiting.purpose)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the client is too far behind.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.limit
    }
}

#[cfg(test)]
mod tests {
    use switchboard::service::Answered;

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
    fn a_change_that_waits_already_is_not_told_twice() {
        let mut backlog = Backlog::new(1_000);
        assert!(backlog.push("tools".into(), Purpose::Change));
        assert!(!backlog.push("tools".into(), Purpose::Change));
        assert!(backlog.push("prompts".into(), Purpose::Change));
        let first = backlog.pop().unwrap();
        assert_eq!(&first.frame[..], b"tools");
        // It is written now, so the next one is news.
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
