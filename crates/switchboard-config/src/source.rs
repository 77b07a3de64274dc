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
    marks: OnceLock<Vec<Mark>>,
}

/// A place whose position is known: the start of each line, and places on long lines.
#[derive(Debug, Clone, Copy)]
struct Mark {
    offset: u32,
    position: Position,
}

/// A position is counted from a mark that is at most so many bytes away.
const MARK_DISTANCE: u32 = 1024;

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
            marks: OnceLock::new(),
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

/// Continuation bytes of UTF-8 do not start a character.
fn starts_character(byte: u8) -> bool {
    (byte & 0xC0) != 0x80
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
