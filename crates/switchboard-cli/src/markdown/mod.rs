//! Streaming Markdown renderer for the terminal.
//!
//! Splits a model's text into units (a paragraph, a list item, a table, a line of code) and renders each as soon as it
//! is complete; [`Markdown::preview`] renders the incomplete rest. The rows do not depend on how the text is split into
//! chunks.
//! All text is neutralised. Nothing here prints.

mod highlight;
mod render;
mod table;
mod wrap;

use anstyle::Style;
use switchboard::internal::catalog::text::neutralise;

pub(crate) use self::highlight::DiffColors;
use self::highlight::Language;
use self::render::Renderer;
use self::wrap::{Margin, wrap};
use crate::live::Line;

/// Longer lines and units are split here, so that buffered text is bounded.
const MAX_UNIT_BYTES: usize = 64 * 1024;
/// Lines indented at least this far belong to the preceding list item.
const ITEM_INDENT: usize = 2;
/// Minimum width for wrapping, in columns.
const MIN_WIDTH: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// In columns.
    pub(crate) width: usize,
    /// Whether styles are visible. If not, the Markdown markers are printed.
    pub(crate) styled: bool,
}

/// Wraps plain text into indented rows.
pub(crate) fn wrapped(text: &str, indent: &str, width: usize) -> Vec<String> {
    let side = vec![(Style::new(), indent.to_owned())];
    let margin = Margin {
        first: side.clone(),
        others: side,
    };
    let rows = wrap(&[(Style::new(), text.to_owned())], &margin, width);
    let text = |row: &Line| row.iter().map(|(_, text)| text.as_str()).collect();
    rows.iter().map(text).collect()
}

/// A partially received text.
#[derive(Debug)]
pub(crate) struct Markdown {
    look: Look,
    /// Text after the last line break.
    tail: String,
    /// Bytes of `tail` already searched for a line break.
    searched: usize,
    open: Open,
    /// Whether an empty row precedes the next unit.
    gap: bool,
    /// Whether any rows have been returned.
    has_rows: bool,
}

/// The unit that is not complete yet.
#[derive(Debug, Clone)]
enum Open {
    Nothing,
    /// Fenced code, rendered line by line.
    Code(Fence),
    Unit(Unit),
}

#[derive(Debug, Clone)]
struct Unit {
    kind: Kind,
    source: String,
    /// An open fence inside the unit.
    fence: Option<Fence>,
    /// Whether the last line was empty.
    ends_empty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Item,
    Quote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    language: Language,
}

impl Markdown {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look: Look {
                width: look.width.max(MIN_WIDTH),
                ..look
            },
            tail: String::new(),
            searched: 0,
            open: Open::Nothing,
            gap: false,
            has_rows: false,
        }
    }

    /// Appends text and returns the rows that are now final.
    pub(crate) fn push(&mut self, more: &str) -> Vec<Line> {
        self.tail.push_str(more);
        let mut rows = Vec::new();
        while let Some(line) = self.next_line() {
            self.line(&line, &mut rows);
        }
        rows
    }

    /// Ends the text and returns the remaining rows.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let mut rows = Vec::new();
        let last = std::mem::take(&mut self.tail);
        if !last.is_empty() {
            self.line(&last, &mut rows);
        }
        self.close(&mut rows);
        rows
    }

    /// The remaining rows if the text ended here.
    pub(crate) fn preview(&self) -> Vec<Line> {
        let rest = Self {
            look: self.look,
            tail: self.tail.clone(),
            searched: 0,
            open: self.open.clone(),
            gap: self.gap,
            has_rows: self.has_rows,
        };
        rest.finish()
    }

    /// The next complete line, without its line break.
    fn next_line(&mut self) -> Option<String> {
        let within = boundary(&self.tail, MAX_UNIT_BYTES);
        let unsearched = self.tail.get(self.searched..within).unwrap_or_default();
        let found = line_end(unsearched).map(|at| self.searched + at);
        let (end, next) = match found {
            Some(end) => (end, end + 1),
            None if self.tail.len() >= MAX_UNIT_BYTES + 4 => (within, within),
            None => {
                self.searched = within;
                return None;
            }
        };
        self.searched = 0;
        let rest = self.tail.split_off(next);
        let mut line = std::mem::replace(&mut self.tail, rest);
        line.truncate(end);
        if line.ends_with('\r') {
            line.pop();
        }
        Some(line)
    }

    fn line(&mut self, line: &str, rows: &mut Vec<Line>) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Code(fence) => {
                if !fence.is_closed_by(line) {
                    self.code(line, fence, rows);
                    self.open = Open::Code(fence);
                }
            }
            Open::Unit(mut unit) => {
                if unit.continues_with(line) {
                    unit.add(line);
                    self.open = Open::Unit(unit);
                } else {
                    let ends_empty = unit.ends_empty;
                    self.show(&unit.source, rows);
                    self.gap = ends_empty;
                    self.begin(line, rows);
                }
            }
            Open::Nothing => self.begin(line, rows),
        }
        if self.is_too_long() {
            self.close(rows);
        }
    }

    /// Starts a new unit with this line.
    fn begin(&mut self, line: &str, rows: &mut Vec<Line>) {
        let start = line.trim_start();
        if start.is_empty() {
            self.gap = self.has_rows;
        } else if let Some(fence) = Fence::opened_by(line) {
            self.space(rows);
            self.open = Open::Code(fence);
        } else if is_heading(line) || is_rule(line) {
            self.show(line, rows);
        } else {
            let kind = if is_item(line) {
                Kind::Item
            } else if start.starts_with('>') {
                Kind::Quote
            } else {
                Kind::Text
            };
            let mut unit = Unit {
                kind,
                source: String::new(),
                fence: None,
                ends_empty: false,
            };
            unit.add(line);
            self.open = Open::Unit(unit);
        }
    }

    fn is_too_long(&self) -> bool {
        matches!(&self.open, Open::Unit(unit) if unit.source.len() >= MAX_UNIT_BYTES)
    }

    /// Renders the open unit.
    fn close(&mut self, rows: &mut Vec<Line>) {
        if let Open::Unit(unit) = std::mem::replace(&mut self.open, Open::Nothing) {
            self.show(&unit.source, rows);
            self.gap = unit.ends_empty;
        }
    }

    fn show(&mut self, source: &str, rows: &mut Vec<Line>) {
        self.space(rows);
        rows.extend(Renderer::rows(&neutralise(source), self.look));
    }

    fn code(&self, line: &str, fence: Fence, rows: &mut Vec<Line>) {
        // Remove the fence's own indentation from the code.
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = line.get(indent.min(fence.indent)..).unwrap_or(line);
        rows.push(render::code(&neutralise(line), fence.language, self.look));
    }

    /// Adds the empty row before the next unit, if any.
    fn space(&mut self, rows: &mut Vec<Line>) {
        if self.gap && self.has_rows {
            rows.push(Line::new());
        }
        self.gap = false;
        self.has_rows = true;
    }
}

impl Unit {
    /// Whether a line continues this unit.
    fn continues_with(&self, line: &str) -> bool {
        if self.fence.is_some() {
            return true;
        }
        let start = line.trim_start_matches(' ');
        let indent = line.len() - start.len();
        let is_empty = line.trim().is_empty();
        match self.kind {
            // Indented text after an empty line may still belong to the item.
            Kind::Item if is_empty => true,
            _ if is_empty => false,
            Kind::Item if indent >= ITEM_INDENT => true,
            Kind::Quote if start.starts_with('>') => true,
            _ => !self.ends_empty && !starts_unit(line),
        }
    }

    fn add(&mut self, line: &str) {
        self.ends_empty = line.trim().is_empty();
        self.source.push_str(line);
        self.source.push('\n');
        if self.kind == Kind::Item {
            self.fence = match self.fence {
                Some(fence) if fence.is_closed_by(line) => None,
                Some(fence) => Some(fence),
                None => Fence::opened_by(line),
            };
        }
    }
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let start = line.trim_start_matches(' ');
        let mark = start.chars().next().filter(|mark| "`~".contains(*mark))?;
        let rest = start.trim_start_matches(mark);
        let length = start.len() - rest.len();
        // Three backticks closed on the same line are inline code.
        let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
        is_fence.then(|| Self {
            mark,
            length,
            indent: line.len() - start.len(),
            language: Language::of(rest),
        })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|character| character == self.mark)
    }
}

/// Whether a line starts a new unit regardless of the preceding one.
fn starts_unit(line: &str) -> bool {
    Fence::opened_by(line).is_some()
        || is_heading(line)
        || is_item(line)
        || line.trim_start().starts_with('>')
        || (is_rule(line) && !line.trim_start().starts_with('-'))
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|character| !character.is_whitespace());
    let Some(first) = marks.next().filter(|mark| "-*_".contains(*mark)) else {
        return false;
    };
    marks.clone().count() >= 2 && marks.all(|mark| mark == first)
}

/// Whether a line starts an item of a top-level list.
fn is_item(line: &str) -> bool {
    let start = line.trim_start_matches(' ');
    if line.len() - start.len() > 3 || is_rule(line) {
        return false;
    }
    let numbered = || {
        let after = start.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let digits = start.len() - after.len();
        let after = after.strip_prefix(['.', ')']);
        after.filter(|_| (1..=9).contains(&digits))
    };
    let after = start.strip_prefix(['-', '*', '+']).or_else(numbered);
    after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t']))
}

/// The last character boundary at or before `most`.
fn boundary(text: &str, most: usize) -> usize {
    let mut at = most.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn line_end(text: &str) -> Option<usize> {
    text.bytes().position(|byte| byte == b'\n')
}

mod style {
    use anstyle::AnsiColor;

    use super::Style;

    pub(super) const PLAIN: Style = Style::new();
    pub(super) const HEADING: Style = Style::new().bold();
    pub(super) const CODE: Style = AnsiColor::Cyan.on_default();
    pub(super) const QUIET: Style = Style::new().dimmed();
}

#[cfg(test)]
mod tests;
