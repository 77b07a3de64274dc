//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::source::{Origin, Position};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something is odd, and everything still works.
    Warning,
    /// Something was left out: a value, an entry or a whole file.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One finding: what, where, and the remedy.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable word for scripts, such as `unknown-key`.
    pub code: &'static str,
    /// What is wrong: a lowercase fragment with no final dot.
    pub message: String,
    /// Where.
    pub place: Place,
    /// The server it is about, if it is about one.
    pub server: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

/// Where a finding stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// At a byte range of a file.
    At(Origin),
    /// At a line and column of a file whose text could not be kept, such as one that is not UTF-8.
    Position(PathBuf, Position),
    /// A file as a whole: unreadable, too large, a loop of links.
    File(PathBuf),
    /// The environment or the command line.
    Outside(String),
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, place: impl Into<Place>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            place: place.into(),
            server: None,
            hint: None,
        }
    }

    /// A warning at a place.
    pub fn warning(
        code: &'static str,
        place: impl Into<Place>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, place, message)
        }
    }

    /// The same finding with a remedy.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same finding about one server.
    #[must_use]
    pub fn about(mut self, server: &str) -> Self {
        self.server = Some(server.to_owned());
        self
    }
}

impl From<Origin> for Place {
    fn from(origin: Origin) -> Self {
        Place::At(origin)
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Place::File(path)
    }
}

impl Place {
    /// The file, if it is in one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::At(origin) => Some(origin.path()),
            Self::Position(path, _) | Self::File(path) => Some(path),
            Self::Outside(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::At(origin) => write!(formatter, "{origin}"),
            Place::Position(path, Position { line, column }) => {
                write!(formatter, "{}:{line}:{column}", path.display())
            }
            // A file as a whole is named by its first character, so that every finding has a line.
            Place::File(path) => write!(formatter, "{}:1:1", path.display()),
            Place::Outside(what) => formatter.write_str(what),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}
