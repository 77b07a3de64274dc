//! Types of logs: append-only entries that are dropped when they are too old or too many.
//!
//! A log and the records of a space with the same name are independent.

use std::time::Duration;

use bytes::Bytes;

use crate::{ErrorKind, StoreError, Timestamp};

/// Maximum size of a log entry.
pub const MAX_ENTRY_BYTES: usize = 1 << 20;

/// Maximum number of entries that one query returns.
pub const LOG_PAGE_ENTRIES: usize = 1000;

/// An entry to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Time of the event, by its author's clock.
    pub at: Timestamp,
    /// Opaque content.
    pub value: Bytes,
}

/// An entry as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Sequence number, unique and increasing across all processes.
    pub number: i64,
    /// Time of the event, by its author's clock.
    pub at: Timestamp,
    /// Opaque content.
    pub value: Bytes,
}

/// How much of a log to retain. The oldest entries are dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Entries older than this are dropped.
    pub max_age: Duration,
    /// Maximum size of all values together.
    pub max_bytes: u64,
}

/// Selects entries of a log, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Only entries at or after this time.
    pub since: Option<Timestamp>,
    /// Only entries with a lower number: the last one of the previous page.
    pub before: Option<i64>,
    /// At most this many; capped at [`LOG_PAGE_ENTRIES`], which is the default.
    pub limit: Option<usize>,
}

impl LogQuery {
    pub(crate) fn page(&self) -> usize {
        self.limit.unwrap_or(LOG_PAGE_ENTRIES).min(LOG_PAGE_ENTRIES)
    }
}

/// Rejects entries over the size limit, before anything is written.
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
