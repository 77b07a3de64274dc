//! Findings about a configuration: message, location and suggested fix.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::source::{Origin, Position};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Suspicious, but without effect.
    Warning,
    /// A value, an entry or a whole file is ignored.
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

/// A finding: message, location and suggested fix.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// Decides whether `config check` fails.
    pub severity: Severity,
    /// Stable code for scripts, such as `unknown-key`.
    pub code: &'static str,
    /// Lowercase fragment without a final dot.
    pub message: String,
    /// Location.
    pub place: Place,
    /// The server concerned; `None` if it concerns the file.
    pub server: Option<String>,
    /// Suggested fix.
    pub hint: Option<String>,
}

/// Location of a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// A byte range of a file.
    At(Origin),
    /// A line and column of a file whose text is not available, such as one that is not UTF-8.
    Position(PathBuf, Position),
    /// A whole file: unreadable, too large, a symlink loop.
    File(PathBuf),
    /// The environment or the command line.
    Outside(String),
}

impl Diagnostic {
    /// Creates an error.
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

    /// Creates a warning.
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

    /// Adds a suggested fix.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the server concerned.
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
    /// The file; `None` for the environment and the command line.
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
            // A whole file is reported at its first character, so that every finding has a line.
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
