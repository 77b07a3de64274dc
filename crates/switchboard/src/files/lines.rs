//! Reads a range of lines incrementally, so that the size of a file does not matter.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader, Read};

use super::FileError;
use crate::service::Cancellation;

/// Bytes per read.
const CHUNK: usize = 64 * 1024;

/// The range of lines to read.
#[derive(Debug, Clone, Copy)]
pub struct LineRange {
    /// The first line, counted from 1.
    pub first: u64,
    /// The number of lines.
    pub count: u64,
    /// The maximum number of bytes to read, rounded up to whole chunks.
    pub max_bytes: u64,
}

/// The reason reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadEnd {
    /// End of file, with the total number of lines.
    File(u64),
    /// End of the range, with the number of the next line.
    Range(u64),
    /// The receiver stopped at this line.
    Full(u64),
    /// The byte limit was reached.
    MaxBytes,
}

/// A line including its terminator.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its bytes, up to the requested maximum.
    pub start: &'a [u8],
    /// Its full length in bytes.
    pub length: usize,
}

/// A line as text, without its terminator, truncated to a maximum length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineText {
    /// The line, possibly truncated.
    pub text: String,
    /// Whether it was truncated.
    pub is_cut: bool,
    /// Whether invalid UTF-8 was replaced. A character split by the truncation does not count.
    pub is_repaired: bool,
}

/// Passes the lines of a range with their numbers to `take` until it returns `false`. Stores at most `max_line` bytes
/// of each line.
pub fn read_lines(
    file: impl Read,
    range: &LineRange,
    max_line: usize,
    cancellation: &Cancellation,
    mut take: impl FnMut(u64, Line<'_>) -> bool,
) -> Result<ReadEnd, FileError> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let end = range.first.saturating_add(range.count);
    let (mut number, mut read) = (1_u64, 0_u64);
    let (mut start, mut length) = (Vec::new(), 0_usize);
    while read <= range.max_bytes {
        if cancellation.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let mut rest = chunk;
        while !rest.is_empty() {
            if number >= end {
                return Ok(ReadEnd::Range(number));
            }
            let line_end = memchr::memchr(b'\n', rest);
            let (piece, after) = rest.split_at(line_end.map_or(rest.len(), |at| at + 1));
            rest = after;
            length += piece.len();
            if number >= range.first {
                let room = max_line - start.len();
                start.extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            if line_end.is_some() {
                let line = Line {
                    start: &start,
                    length,
                };
                if number >= range.first && !take(number, line) {
                    return Ok(ReadEnd::Full(number));
                }
                start.clear();
                length = 0;
                number += 1;
            }
        }
        let consumed = chunk.len();
        reader.consume(consumed);
        read += consumed as u64;
    }
    // The last line may lack a terminator.
    let line = Line {
        start: &start,
        length,
    };
    if length > 0 && number >= range.first && !take(number, line) {
        return Ok(ReadEnd::Full(number));
    }
    Ok(if read > range.max_bytes {
        ReadEnd::MaxBytes
    } else {
        ReadEnd::File(number - 1 + u64::from(length > 0))
    })
}

impl<'a> Line<'a> {
    /// A complete line.
    pub fn whole(line: &'a [u8]) -> Self {
        Self {
            start: line,
            length: line.len(),
        }
    }

    /// The maximum number of bytes of this many characters.
    pub const fn max_bytes(characters: usize) -> usize {
        characters * 4
    }

    /// The first characters as text.
    pub fn text(&self, characters: usize) -> LineText {
        let line = self.start.strip_suffix(b"\n").unwrap_or(self.start);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let bytes = line.get(..Self::max_bytes(characters)).unwrap_or(line);
        let is_whole = self.length == self.start.len() && bytes.len() == line.len();
        let text = String::from_utf8_lossy(bytes);
        let is_repaired = is_whole && matches!(text, Cow::Owned(_));
        let cut = text.char_indices().nth(characters).map(|(end, _)| end);
        let mut text = text.into_owned();
        text.truncate(cut.unwrap_or(text.len()));
        LineText {
            text,
            is_cut: !is_whole || cut.is_some(),
            is_repaired,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[track_caller]
    fn check(text: &str, first: u64, count: u64, expected: &str, end: ReadEnd) {
        let mut found = String::new();
        let range = LineRange {
            first,
            count,
            max_bytes: u64::MAX,
        };
        let ended = read_lines(
            text.as_bytes(),
            &range,
            26,
            &Cancellation::default(),
            |number, line| {
                let start = String::from_utf8_lossy(line.start);
                write!(found, "{number}/{}:{start}", line.length).expect("a string");
                found.len() < 30
            },
        );
        assert_eq!((found.as_str(), ended.ok()), (expected, Some(end)));
    }

    #[test]
    fn a_range_of_lines_is_read() {
        check("", 1, 9, "", ReadEnd::File(0));
        check("a\nb", 1, 9, "1/2:a\n2/1:b", ReadEnd::File(2));
        check("a\nb\n", 1, 2, "1/2:a\n2/2:b\n", ReadEnd::File(2));
        check("a\nb\nc", 2, 1, "2/2:b\n", ReadEnd::Range(3));
        check("a\n", 2, 1, "", ReadEnd::File(1));
        let long = "x".repeat(26);
        let shown = format!("1/101:{long}");
        check(
            &format!("{}\nb", "x".repeat(100)),
            1,
            9,
            &shown,
            ReadEnd::Full(1),
        );
        let shown = format!("1/100:{long}");
        check(&"x".repeat(100), 1, 9, &shown, ReadEnd::Full(1));
    }

    #[test]
    fn reading_ends_at_its_limit_and_when_it_is_cancelled() {
        let range = LineRange {
            first: 1,
            count: u64::MAX,
            max_bytes: 10,
        };
        let read = |cancellation: &Cancellation| {
            let text = "a\n".repeat(CHUNK);
            read_lines(text.as_bytes(), &range, 1, cancellation, |_, _| true)
        };
        let cancellation = Cancellation::default();
        assert_eq!(read(&cancellation).ok(), Some(ReadEnd::MaxBytes));
        cancellation.cancel();
        assert!(matches!(read(&cancellation), Err(FileError::Cancelled)));
    }

    #[test]
    fn a_line_is_cut_by_characters() {
        let check = |start: &[u8], length: usize, text: &str, is_cut: bool, is_repaired: bool| {
            let expected = LineText {
                text: text.to_owned(),
                is_cut,
                is_repaired,
            };
            assert_eq!(Line { start, length }.text(3), expected);
        };
        check("äöü\r\n".as_bytes(), 8, "äöü", false, false);
        check("äöüß\n".as_bytes(), 9, "äöü", true, false);
        check(b"ab", 3, "ab", true, false);
        check(b"a\xe9", 2, "a\u{fffd}", false, true);
        // The truncation splits a character, which is not an encoding error of the file.
        let faces = "a\u{1f600}\u{1f600}\u{1f600}";
        check(faces.as_bytes(), 13, "a\u{1f600}\u{1f600}", true, false);
    }
}
