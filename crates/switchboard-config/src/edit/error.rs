//! Errors of edits.

use std::fmt;

use thiserror::Error;

use crate::source::Position;

/// A rejected edit. The text is unchanged.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("cannot edit `{path}`: {kind}")]
#[non_exhaustive]
pub struct EditError {
    /// The edited key, with its parts joined by dots.
    pub path: String,
    /// The cause.
    pub kind: EditErrorKind,
}

impl EditError {
    pub(super) fn new(path: &[&str], kind: EditErrorKind) -> Self {
        let path = path.join(".");
        Self { path, kind }
    }

    /// Suggested fix.
    pub fn hint(&self) -> &'static str {
        match self.kind {
            EditErrorKind::Syntax { .. } => "fix the syntax first, then repeat the edit",
            EditErrorKind::NotFound => "check the name, or list what is there",
            EditErrorKind::NotATable { .. } => "remove that value first, or make it a table",
            EditErrorKind::Duplicate { .. } => "remove or rename one of the two by hand",
            EditErrorKind::Unrepresentable(_) => "use another value, or a file of another format",
            EditErrorKind::ReadOnlyFormat => "import it, and edit the imported entries",
            EditErrorKind::NotClean => "edit the file by hand, and report this file's shape",
        }
    }
}

/// Cause of an [`EditError`].
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum EditErrorKind {
    /// The file does not parse, so positions in it are unreliable.
    #[error("the file has a syntax error at {}: {message}", At(*position))]
    Syntax {
        /// Position of the first error.
        position: Position,
        /// Parser message.
        message: String,
    },
    /// The key to remove does not exist.
    #[error("no such key")]
    NotFound,
    /// A part of the path is not a table.
    #[error("{} is not a table", Named(key))]
    NotATable {
        /// The path up to that part; empty for the whole file.
        key: String,
    },
    /// A key on the path is defined more than once, so the edit is ambiguous.
    #[error("`{key}` is defined more than once")]
    Duplicate {
        /// The path up to that key.
        key: String,
    },
    /// The format cannot represent the value or the key.
    #[error("{0}")]
    Unrepresentable(String),
    /// The format is read-only.
    #[error("YAML files are imported, not edited")]
    ReadOnlyFormat,
    /// Verification failed, so the new text was discarded.
    #[error("the change would not have read back as asked, so nothing was changed")]
    NotClean,
}

struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => formatter.write_str("the file as a whole"),
            key => write!(formatter, "`{key}`"),
        }
    }
}

struct At(Position);

impl fmt::Display for At {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.0;
        write!(formatter, "line {line}, column {column}")
    }
}
