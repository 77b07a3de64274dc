//! Logs: entries that are only ever added, in the order they come, and dropped when they are old or too many.
//!
//! Owns what an entry, a bound and a question are. A log has a space of its own; it shares nothing with the records of
//! that name.

use std::time::Duration;

use bytes::Bytes;

use crate::{ErrorKind, StoreError, Timestamp};

/// The largest entry of a log.
pub const MAX_ENTRY_BYTES: usize = 1 << 20;

/// The most entries that one question brings.
pub const LOG_PAGE_ENTRIES: usize = 1000;

/// One entry to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// When it happened, by its author's clock.
    pub at: Timestamp,
    /// What it says.
    pub value: Bytes,
}

/// One entry as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its number. A later entry has a higher one, whichever process added it, and none comes twice.
    pub number: i64,
    /// When it happened, by its author's clock.
    pub at: Timestamp,
    /// What it says.
    pub value: Bytes,
}

/// How much of a log is kept. The oldest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Entries older than this go.
    pub max_age: Duration,
    /// When all values together have more bytes, the oldest go.
    pub max_bytes: u64,
}

/// Which entries of a log are wanted: the newest come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Only those that happened then or later.
    pub since: Option<Timestamp>,
    /// Only those with a lower number, to go on from the last one of the page before.
    pub before: Option<i64>,
    /// At most so many, and at most [`LOG_PAGE_ENTRIES`]; that many if not stated.
    pub limit: Option<usize>,
}

impl LogQuery {
    pub(crate) fn page(&self) -> usize {
        self.limit.unwrap_or(LOG_PAGE_ENTRIES).min(LOG_PAGE_ENTRIES)
    }
}

/// Refuses entries over the limit, before anything is touched.
pub(crate) fn check_sizes(entries: &[LogEntry]) -> Result<(), StoreError> {
    let too_large = entries
        .iter()
        .map(|entry| entry.value.len())
        .find(|size| *size > MAX_ENTRY_BYTES);
    too_large.map_or(Ok(()), |size| {
        Err(StoreError::new(
            ErrorKind::TooLarge { size: size as u64 },
            format!("an entry of {size} bytes is over the limit of {MAX_ENTRY_BYTES}"),
        ))
    })
}
