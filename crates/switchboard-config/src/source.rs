//! Source files of values, and positions in them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::scope::Scope;
use crate::tree::Span;

/// A configuration file as read: path, scope and text.
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    scope: Scope,
    text: String,
    marks: OnceLock<Vec<Mark>>,
}

/// An offset with a known position: the start of a line, or a point on a long line.
#[derive(Debug, Clone, Copy)]
struct Mark {
    offset: u32,
    position: Position,
}

/// Maximum distance in bytes between marks.
const MARK_DISTANCE: u32 = 1024;

impl SourceFile {
    /// Strips a byte order mark.
    pub fn new(path: impl Into<PathBuf>, scope: Scope, text: impl Into<String>) -> Arc<Self> {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Arc::new(Self {
            path: path.into(),
            scope,
            text,
            marks: OnceLock::new(),
        })
    }

    /// Path of the file. Cloud and run-time sources have a descriptive pseudo path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Scope of the file.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The whole text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Text of a span; empty if out of range.
    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// Line and column of a byte offset, both from one; columns count characters.
    pub fn position(&self, offset: u32) -> Position {
        let marks = self.marks.get_or_init(|| marks(&self.text));
        let after = marks.partition_point(|mark| mark.offset <= offset);
        let Some(mark) = after.checked_sub(1).and_then(|at| marks.get(at)) else {
            return Position { line: 1, column: 1 };
        };
        let end = (offset as usize).min(self.text.len());
        let between = self.text.as_bytes().get(mark.offset as usize..end);
        let characters = between
            .unwrap_or_default()
            .iter()
            .filter(|byte| starts_character(**byte));
        Position {
            line: mark.position.line,
            column: mark.position.column + characters.count(),
        }
    }
}

fn marks(text: &str) -> Vec<Mark> {
    let mut mark = Mark {
        offset: 0,
        position: Position { line: 1, column: 1 },
    };
    let mut marks = vec![mark];
    let mut position = mark.position;
    for (offset, byte) in (1_u32..).zip(text.bytes()) {
        if byte == b'\n' {
            position = Position {
                line: position.line + 1,
                column: 1,
            };
        } else if starts_character(byte) {
            position.column += 1;
        }
        if byte == b'\n' || offset - mark.offset == MARK_DISTANCE {
            mark = Mark { offset, position };
            marks.push(mark);
        }
    }
    marks
}

/// Whether a byte is not a continuation byte of UTF-8.
fn starts_character(byte: u8) -> bool {
    (byte & 0xC0) != 0x80
}

/// A position in a file, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// From one.
    pub line: usize,
    /// In characters, from one.
    pub column: usize,
}

/// Origin of a value: file and byte range.
#[derive(Clone)]
pub struct Origin {
    /// Shared by all values of the file.
    pub file: Arc<SourceFile>,
    /// Byte range of the value.
    pub span: Span,
}

impl Origin {
    /// Scope of the file.
    pub fn scope(&self) -> Scope {
        self.file.scope()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Line and column of the start.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_right_on_short_and_on_long_lines() {
        let text = format!("aü\n\n{}x\nend", "ü€".repeat(3_000));
        let file = SourceFile::new("a.toml", Scope::User, text.as_str());
        let mut expected = Position { line: 1, column: 1 };
        for (offset, character) in text.char_indices() {
            let offset = Span::new(offset, offset).start;
            assert_eq!(file.position(offset), expected, "{offset}");
            if character == '\n' {
                expected = Position {
                    line: expected.line + 1,
                    column: 1,
                };
            } else {
                expected.column += 1;
            }
        }
        assert_eq!(file.position(u32::MAX), expected);
    }
}
