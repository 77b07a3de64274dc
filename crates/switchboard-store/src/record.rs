//! Types of records: values, revisions, conditional writes, size limits.

use bytes::Bytes;

use crate::{ErrorKind, Key, StoreError, Timestamp};

/// Maximum size of a value. A catalogue of 10,000 tools has about 6 MB.
pub const MAX_VALUE_BYTES: usize = 32 << 20;

/// Maximum number of entries per page of [`Store::list`](crate::Store::list).
pub const PAGE_ENTRIES: usize = 1000;

/// Identifies a write. Unique within a store, even for a key that was removed and written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub(crate) i64);

/// A record as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Opaque content.
    pub value: Bytes,
    /// The write that created this version.
    pub revision: Revision,
    /// By the store's clock.
    pub written_at: Timestamp,
    /// The record is absent from this time on; `None`: never expires.
    pub expires_at: Option<Timestamp>,
}

/// A record without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Unique within its space.
    pub key: Key,
    /// Size of the value.
    pub size: u64,
    /// The write that created this version.
    pub revision: Revision,
    /// By the store's clock.
    pub written_at: Timestamp,
    /// The record is absent from this time on; `None`: never expires.
    pub expires_at: Option<Timestamp>,
}

/// One page of a space's records, ordered by the bytes of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// At most [`PAGE_ENTRIES`] records.
    pub entries: Vec<Summary>,
    /// Whether more follow: list again after the last key.
    pub more: bool,
}

/// A value to write, its expiry and its precondition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub(crate) value: Bytes,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) expected: Expected,
}

impl Write {
    /// Writes unconditionally, without expiry.
    pub fn new(value: impl Into<Bytes>) -> Self {
        Self {
            value: value.into(),
            expires_at: None,
            expected: Expected::Anything,
        }
    }

    /// Sets the time from which the record is absent.
    #[must_use]
    pub fn expires_at(mut self, moment: Timestamp) -> Self {
        self.expires_at = Some(moment);
        self
    }

    /// Writes only if the current record matches.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Rejects a value over the size limit, before anything is written.
    pub(crate) fn check_size(&self) -> Result<(), StoreError> {
        if self.value.len() <= MAX_VALUE_BYTES {
            return Ok(());
        }
        Err(StoreError::new(
            ErrorKind::TooLarge {
                size: self.value.len() as u64,
            },
            format!(
                "a value of {} bytes is over the limit of {MAX_VALUE_BYTES}",
                self.value.len()
            ),
        ))
    }
}

/// The precondition of a change. An expired record counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No condition.
    Anything,
    /// The record must not exist.
    Absent,
    /// The record must have this revision.
    Revision(Revision),
}

impl Expected {
    /// Requires that the record is still as it was read.
    pub fn seen(record: Option<&Record>) -> Self {
        record.map_or(Self::Absent, |record| Self::Revision(record.revision))
    }

    /// Returns [`ErrorKind::Conflict`] if the condition does not hold.
    pub(crate) fn check(self, current: Option<Revision>) -> Result<(), StoreError> {
        let holds = match self {
            Self::Anything => true,
            Self::Absent => current.is_none(),
            Self::Revision(revision) => current == Some(revision),
        };
        if holds {
            return Ok(());
        }
        Err(StoreError::new(
            ErrorKind::Conflict { current },
            "the record was changed by another writer",
        ))
    }
}
