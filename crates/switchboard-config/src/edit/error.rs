//! Why an edit was refused.

use std::fmt;

use thiserror::Error;

use crate::source::Position;

/// An edit that was not made. The text it was asked for is unchanged.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("cannot edit `{path}`: {kind}")]
#[non_exhaustive]
pub struct EditError {
    /// The edited key, its parts joined by dots.
    pub path: String,
    /// What stood in the way.
    pub kind: EditErrorKind,
}

impl EditError {
    pub(super) fn new(path: &[&str], kind: EditErrorKind) -> Self {
        let path = path.join(".");
        Self { path, kind }
    }

    /// What to do about it.
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

/// What stood in the way of an edit.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum EditErrorKind {
    /// The file does not parse, so no place in it is known for sure.
    #[error("the file has a syntax error at {}: {message}", At(*position))]
    Syntax {
        /// Where the first error is.
        position: Position,
        /// What the parser said.
        message: String,
    },
    /// There is nothing at the path to remove.
    #[error("there is no such key")]
    NotFound,
    /// A part of the path is a value that has no members.
    #[error("{} is not a table", Named(key))]
    NotATable {
        /// The part, with those before it; empty when it is the file as a whole.
        key: String,
    },
    /// A key on the path stands more than once, so that it is not clear which one is meant.
    #[error("`{key}` is defined more than once")]
    Duplicate {
        /// The key, with those before it.
        key: String,
    },
    /// The format has no way to write the value or the key.
    #[error("{0}")]
    Unrepresentable(String),
    /// The format is read, never written.
    #[error("YAML files are imported, not edited")]
    ReadOnlyFormat,
    /// The new text would not have read back as asked, so it was thrown away.
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
