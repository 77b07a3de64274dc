//! Text buffer for edits: lines, blank lines, comments and splices.
//!
//! Independent of keys and values.

use std::ops::Range;

use crate::format::Format;

/// A text with pending splices. All offsets refer to the original text.
pub(super) struct Page<'t> {
    pub(super) text: &'t str,
    /// Line ending of the first line.
    pub(super) newline: &'static str,
    comments: Comments,
    splices: Vec<(Range<usize>, Splice)>,
}

enum Splice {
    Text(String),
    /// Whole lines, each with its terminator.
    Lines(String),
}

/// Comment syntax of the format.
#[derive(Clone, Copy)]
struct Comments {
    hash: bool,
    slashes: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Trivia {
    Newline,
    Comma(usize),
    /// A comment without its line end.
    Comment {
        range: Range<usize>,
        to_line_end: bool,
    },
}

/// Which of the two blank lines around a removed statement is removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Blank {
    Above,
    Below,
    Keep,
}

impl<'t> Page<'t> {
    pub(super) fn new(text: &'t str, format: Format) -> Self {
        let newline = match text.find('\n') {
            Some(at) if text.as_bytes().get(at.wrapping_sub(1)) == Some(&b'\r') => "\r\n",
            _ => "\n",
        };
        let comments = Comments {
            hash: matches!(format, Format::Toml | Format::Hcl),
            slashes: matches!(format, Format::Json | Format::Hcl),
        };
        Self {
            text,
            newline,
            comments,
            splices: Vec::new(),
        }
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.splices.push((range, Splice::Text(text.into())));
    }

    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    pub(super) fn delete(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    /// Applies all splices. Insertions at the same offset keep their order.
    pub(super) fn finish(mut self) -> String {
        self.splices
            .sort_by_key(|(range, _)| (range.start, range.end));
        let mut result = String::with_capacity(self.text.len() + 256);
        let mut done = 0;
        for (range, splice) in &self.splices {
            result.push_str(self.slice(done..range.start.max(done)));
            match splice {
                Splice::Text(text) => result.push_str(text),
                Splice::Lines(lines) => {
                    if !result.is_empty() && !result.ends_with('\n') {
                        result.push_str(self.newline);
                    }
                    result.push_str(lines);
                }
            }
            done = done.max(range.end);
        }
        result.push_str(self.slice(done..self.text.len()));
        // Preserve a missing final line terminator.
        let terminated = self.text.is_empty() || self.text.ends_with('\n');
        if let (false, Some(rest)) = (terminated, result.strip_suffix('\n')) {
            result.truncate(rest.strip_suffix('\r').unwrap_or(rest).len());
        }
        result
    }

    /// Start of the line that contains `at`.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.slice(0..at).rfind('\n').map_or(0, |found| found + 1)
    }

    /// End of the line that contains `at`, before its terminator.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.slice(at..self.text.len());
        match rest.find('\n') {
            Some(found) if rest.get(..found).is_some_and(|line| line.ends_with('\r')) => {
                at + found - 1
            }
            Some(found) => at + found,
            None => self.text.len(),
        }
    }

    /// Start of the line after `at`.
    pub(super) fn next_line(&self, at: usize) -> usize {
        let rest = self.slice(at..self.text.len());
        rest.find('\n')
            .map_or(self.text.len(), |found| at + found + 1)
    }

    /// Indentation of the line that contains `at`.
    pub(super) fn indent(&self, at: usize) -> &'t str {
        let line = self.slice(self.line_start(at)..self.line_end(at));
        let width = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..width).unwrap_or_default()
    }

    /// Whether only white space precedes `at` on its line.
    pub(super) fn begins_line(&self, at: usize) -> bool {
        // Scan backwards: a file can be one long line, and this runs for each of its members.
        let blank = |character: char| character.is_whitespace() && character != '\n';
        let before = self.slice(0..at).trim_end_matches(blank);
        before.is_empty() || before.ends_with('\n')
    }

    /// End of the last non-blank line; 0 if there is none.
    pub(super) fn content_end(&self) -> usize {
        self.text.trim_end().len()
    }

    fn is_blank(&self, line: Range<usize>) -> bool {
        !line.is_empty() && self.slice(line).trim().is_empty()
    }

    fn line_above(&self, line_start: usize) -> Range<usize> {
        let above = line_start.saturating_sub(1);
        self.line_start(above).min(line_start)..line_start
    }

    /// Whether the line start `at` follows a blank line or is the start of the file.
    pub(super) fn blank_above(&self, at: usize) -> bool {
        at == 0 || self.is_blank(self.line_above(at))
    }

    /// Whether the line start `at` is a blank line or the end of the file.
    pub(super) fn blank_below(&self, at: usize) -> bool {
        at >= self.text.len() || self.is_blank(at..self.next_line(at))
    }

    /// Tokenizes a range that contains only trivia.
    pub(super) fn trivia(&self, range: Range<usize>) -> Vec<Trivia> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let rest = self.slice(at..range.end);
            let Some(first) = rest.chars().next() else {
                break;
            };
            if first == '\n' {
                found.push(Trivia::Newline);
                at += 1;
            } else if first == ',' {
                found.push(Trivia::Comma(at));
                at += 1;
            } else if self.comments.slashes && rest.starts_with("/*") {
                let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
                found.push(Trivia::Comment {
                    range: at..at + length,
                    to_line_end: false,
                });
                at += length;
            } else if (self.comments.hash && first == '#')
                || (self.comments.slashes && rest.starts_with("//"))
            {
                let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
                let length = line.trim_end_matches('\r').len();
                found.push(Trivia::Comment {
                    range: at..at + length,
                    to_line_end: true,
                });
                at += length;
            } else {
                at += first.len_utf8();
            }
        }
        found
    }

    /// Start of the comments that belong to the item at `start`: those directly above it, after `floor`. A comment on
    /// the line of `floor` belongs to the item there, unless `floor` is the start of the file.
    pub(super) fn lead(&self, floor: usize, start: usize) -> usize {
        let trivia = self.trivia(floor..start);
        let first_newline = trivia.iter().position(|item| *item == Trivia::Newline);
        let mut lead = start;
        let mut newlines = 0;
        for (index, item) in trivia.iter().enumerate().rev() {
            match item {
                Trivia::Newline => {
                    newlines += 1;
                    if newlines > 1 {
                        break;
                    }
                }
                Trivia::Comma(_) => break,
                Trivia::Comment { range, .. } => {
                    let on_floor_line =
                        floor > 0 && first_newline.is_some_and(|newline| index < newline);
                    if on_floor_line {
                        break;
                    }
                    lead = range.start;
                    newlines = 0;
                }
            }
        }
        lead
    }

    /// Deletes the lines from `start` to `end`, inclusive.
    pub(super) fn delete_lines(&mut self, start: usize, end: usize, blank: Blank) {
        let mut start = self.line_start(start);
        let mut end = self.next_line(end);
        let alone = self.blank_above(start) && self.blank_below(end);
        if alone && blank != Blank::Keep && !(start == 0 && end >= self.text.len()) {
            if start > 0 && (blank == Blank::Above || end >= self.text.len()) {
                start = self.line_above(start).start;
            } else {
                end = self.next_line(end);
            }
        }
        self.delete(start..end);
    }

    /// Inserts lines after the line of `at`.
    pub(super) fn insert_lines_after(&mut self, at: usize, lines: &[String]) {
        self.insert_lines_at(self.next_line(at), lines);
    }

    /// Inserts lines before the line that starts at `at`.
    pub(super) fn insert_lines_at(&mut self, at: usize, lines: &[String]) {
        let terminated = lines
            .iter()
            .flat_map(|line| [line.as_str(), self.newline])
            .collect();
        self.splices.push((at..at, Splice::Lines(terminated)));
    }
}
