//! What can go wrong with a store, told apart as far as somebody can act on it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Revision;

/// An operation of a store failed. Whatever was stored before is still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct StoreError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What happened, for people: a lowercase fragment.
    pub message: String,
    /// The file it is about, where there is one.
    pub path: Option<PathBuf>,
}

impl StoreError {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
        }
    }

    /// Names the file it is about.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            ErrorKind::Corrupt => Some(
                "move the file aside, together with the ones that end in -wal and -shm; a new one is made on the next start",
            ),
            ErrorKind::Foreign => Some("choose another path; the file belongs to another program"),
            ErrorKind::NewerSchema { .. } => Some(
                "a newer version of the program has used this file: update, or choose another path",
            ),
            ErrorKind::ReadOnly => {
                Some("make the folder and the file writable for this user, or choose another path")
            }
            ErrorKind::NotAFile => Some("move the folder aside, or choose another path"),
            ErrorKind::Full => {
                Some("free some space, and check the quota and limits on file sizes")
            }
            ErrorKind::Busy => {
                Some("another process holds the file for long: look for one that hangs")
            }
            ErrorKind::TooLarge { .. }
            | ErrorKind::Conflict { .. }
            | ErrorKind::InvalidKey
            | ErrorKind::Unavailable => None,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(formatter, "{}: {}", path.display(), self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The record is not as the author of the change has seen it.
    Conflict {
        /// The write it comes from now; `None` when there is no record.
        current: Option<Revision>,
    },
    /// The value is over the limit on size.
    TooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// The key is empty, too long or contains NUL.
    InvalidKey,
    /// The file is damaged, or no database at all.
    Corrupt,
    /// The file is a database of another program.
    Foreign,
    /// The file was made by a newer version of this program.
    NewerSchema {
        /// Its version.
        found: i64,
        /// The newest this program knows.
        known: i64,
    },
    /// A folder stands where the file should be.
    NotAFile,
    /// The file cannot be opened by this user, or the file or its folder cannot be written.
    ReadOnly,
    /// The file system takes no more: full, over a quota or a limit.
    Full,
    /// Another process did not let go of the file in time.
    Busy,
    /// Anything else: the store cannot be reached.
    Unavailable,
}
