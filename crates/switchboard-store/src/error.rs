//! Errors of a store, classified by what a user can do about them.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Revision;

/// A failed store operation. Stored data is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct StoreError {
    /// The class, which determines the hint.
    pub kind: ErrorKind,
    /// What failed: a lowercase fragment for users.
    pub message: String,
    /// The affected file, if any.
    pub path: Option<PathBuf>,
}

impl StoreError {
    /// Creates an error without a path.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            path: None,
        }
    }

    /// Sets the path, unless it is already set.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }

    /// How to fix it, if known.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            ErrorKind::Corrupt => Some(
                "move the file aside, together with the ones that end in -wal and -shm; a new one is created on the next start",
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
            ErrorKind::Busy => Some("another process has the file locked: look for one that hangs"),
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

/// The class of a [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The record was changed since the caller read it.
    Conflict {
        /// The current revision; `None` if the record does not exist.
        current: Option<Revision>,
    },
    /// The value exceeds the size limit.
    TooLarge {
        /// In bytes.
        size: u64,
    },
    /// The key is empty, too long or contains NUL.
    InvalidKey,
    /// The file is damaged or not a database.
    Corrupt,
    /// The file is a database of another program.
    Foreign,
    /// The file was created by a newer version of this program.
    NewerSchema {
        /// Its schema version.
        found: i64,
        /// The newest schema version this program supports.
        known: i64,
    },
    /// The path is a folder.
    NotAFile,
    /// The file cannot be opened by this user, or the file or its folder cannot be written.
    ReadOnly,
    /// The file system is full, or a quota or file size limit is reached.
    Full,
    /// Another process did not release its lock in time.
    Busy,
    /// Any other failure: the store cannot be used.
    Unavailable,
}
