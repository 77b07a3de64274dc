//! Files that values come from, and the places in them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::scope::Scope;
use crate::tree::Span;

/// One configuration file as it was read: path, scope and text.
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    scope: Scope,
    text: String,
    line_starts: OnceLock<Vec<u32>>,
}

impl SourceFile {
    /// A file with its text. A byte order mark is no part of the text.
    pub fn new(path: impl Into<PathBuf>, scope: Scope, text: impl Into<String>) -> Arc<Self> {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Arc::new(Self {
            path: path.into(),
            scope,
            text,
            line_starts: OnceLock::new(),
        })
    }

    /// Where the file is. Cloud and run-time sources have a descriptive pseudo path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The scope the file belongs to.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// The line and column of a byte offset, both counted from one; columns count characters.
    pub fn position(&self, offset: u32) -> Position {
        let starts = self.line_starts.get_or_init(|| {
            let breaks = self
                .text
                .bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0)
                .chain(breaks.map(|(at, _)| Span::new(at + 1, at + 1).start))
                .collect()
        });
        let line = starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1);
        let start = starts.get(line).copied().unwrap_or(0) as usize;
        let before = self
            .text
            .as_bytes()
            .get(start..(offset as usize).min(self.text.len()))
            .unwrap_or_default();
        // Continuation bytes of UTF-8 do not start a character.
        let column = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
        Position {
            line: line + 1,
            column: column + 1,
        }
    }
}

/// A place in a file, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// Where a value comes from: the file, and the bytes in it.
#[derive(Clone)]
pub struct Origin {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The bytes.
    pub span: Span,
}

impl Origin {
    /// The scope of the file.
    pub fn scope(&self) -> Scope {
        self.file.scope()
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The line and column at which the value starts.
    pub fn position(&self) -> Position {
        self.file.position(self.span.start)
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.span == other.span && self.path() == other.path() && self.scope() == other.scope()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position();
        write!(formatter, "{}:{line}:{column}", self.path().display())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self} ({})", self.scope())
    }
}
