//! What a store keeps, what it is given, and what it tells.

use bytes::Bytes;

use crate::{ErrorKind, Key, StoreError, Timestamp};

/// The largest value. A catalogue of 10,000 tools has about 6 MB.
pub const MAX_VALUE_BYTES: usize = 32 << 20;

/// How many entries [`Store::list`](crate::Store::list) tells at once.
pub const PAGE_ENTRIES: usize = 1000;

/// Which of all the writes of a store a record comes from. No two writes of one store have the same, not even of a
/// record that was removed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub(crate) i64);

/// One record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its bytes.
    pub value: Bytes,
    /// Which write it comes from.
    pub revision: Revision,
    /// When it was written.
    pub written_at: Timestamp,
    /// From when on it is no longer there.
    pub expires_at: Option<Timestamp>,
}

/// One record without its value, as a list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub key: Key,
    /// How many bytes its value has.
    pub size: u64,
    /// Which write it comes from.
    pub revision: Revision,
    /// When it was written.
    pub written_at: Timestamp,
    /// From when on it is no longer there.
    pub expires_at: Option<Timestamp>,
}

/// One page of a space's records, in the order of their keys' bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The records, at most [`PAGE_ENTRIES`].
    pub entries: Vec<Summary>,
    /// Whether more follow; ask again with the last key.
    pub more: bool,
}

/// What is to be written, and on which condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub(crate) value: Bytes,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) expected: Expected,
}

impl Write {
    /// This value, for good, whatever was there before.
    pub fn new(value: impl Into<Bytes>) -> Self {
        Self {
            value: value.into(),
            expires_at: None,
            expected: Expected::Anything,
        }
    }

    /// The record is there until this moment, and from it on no longer.
    #[must_use]
    pub fn expires_at(mut self, moment: Timestamp) -> Self {
        self.expires_at = Some(moment);
        self
    }

    /// Write only if this is still so.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Refuses what is over the limit, before anything is touched.
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

/// What must be there for a change to happen. A record past its end counts as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anything or nothing.
    Anything,
    /// Nothing.
    Absent,
    /// The record of exactly this write.
    Revision(Revision),
}

impl Expected {
    /// What the author of a change has seen.
    pub fn seen(record: Option<&Record>) -> Self {
        record.map_or(Self::Absent, |record| Self::Revision(record.revision))
    }

    /// Compares with what is there; the difference is a [`ErrorKind::Conflict`].
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
            "the record was changed by somebody else in the meantime",
        ))
    }
}
