//! Markdown on a terminal, while it is still being written.
//!
//! Owns the way from a model's text to rows of a terminal. The text is taken apart into units (a paragraph, a list item,
//! a table, a line of code), each of which becomes rows as soon as its end is known; the rest can be looked at with
//! [`Markdown::preview`] and may yet change. What rows come of a text does not depend on the pieces it arrives in.
//!
//! Nothing of the text reaches a terminal unneutralised. Nothing here prints.

mod render;
mod table;
mod wrap;

use anstyle::Style;
use switchboard::catalog::text::neutralise;

use self::render::Renderer;
use crate::live::Line;

/// A line without an end is ended here, and so is a unit: no text grows without bounds before it is shown.
const LONGEST_UNIT: usize = 64 * 1024;
/// Lines that are indented so far belong to the list item before them.
const ITEM_INDENT: usize = 2;
/// Text is never wrapped to less.
const NARROWEST: usize = 20;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// How many columns there are.
    pub(crate) width: usize,
    /// Whether styles are seen. Where they are not, the marks of the source stay.
    pub(crate) styled: bool,
}

/// A text on its way to the terminal.
#[derive(Debug)]
pub(crate) struct Markdown {
    look: Look,
    /// What has no line break yet.
    tail: String,
    /// So much of it was searched for one.
    searched: usize,
    open: Open,
    /// Whether an empty line stands before what comes next.
    gap: bool,
    /// Whether there were rows already.
    begun: bool,
}

/// What has begun and not ended.
#[derive(Debug, Clone)]
enum Open {
    Nothing,
    /// Code between fences, of which each line is shown when it is whole.
    Code(Fence),
    Unit(Unit),
}

#[derive(Debug, Clone)]
struct Unit {
    kind: Kind,
    source: String,
    /// A fence within it that is open.
    fence: Option<Fence>,
    /// Whether an empty line was the last one.
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
}

impl Markdown {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look: Look {
                width: look.width.max(NARROWEST),
                ..look
            },
            tail: String::new(),
            searched: 0,
            open: Open::Nothing,
            gap: false,
            begun: false,
        }
    }

    /// Takes more of the text, and gives the rows that are certain now.
    pub(crate) fn push(&mut self, more: &str) -> Vec<Line> {
        self.tail.push_str(more);
        let mut rows = Vec::new();
        while let Some(line) = self.next_line() {
            self.line(&line, &mut rows);
        }
        rows
    }

    /// The text has ended: the rest of the rows.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let mut rows = Vec::new();
        let last = std::mem::take(&mut self.tail);
        if !last.is_empty() {
            self.line(&last, &mut rows);
        }
        self.close(&mut rows);
        rows
    }

    /// How the rest would look if the text ended here.
    pub(crate) fn preview(&self) -> Vec<Line> {
        let rest = Self {
            look: self.look,
            tail: self.tail.clone(),
            searched: 0,
            open: self.open.clone(),
            gap: self.gap,
            begun: self.begun,
        };
        rest.finish()
    }

    /// The next whole line, without its end.
    fn next_line(&mut self) -> Option<String> {
        let within = boundary(&self.tail, LONGEST_UNIT);
        let unsearched = self.tail.get(self.searched..within).unwrap_or_default();
        let found = line_end(unsearched).map(|at| self.searched + at);
        let (end, next) = match found {
            Some(end) => (end, end + 1),
            None if self.tail.len() >= LONGEST_UNIT + 4 => (within, within),
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
                if unit.takes(line) {
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

    /// A line that goes on with nothing.
    fn begin(&mut self, line: &str, rows: &mut Vec<Line>) {
        let start = line.trim_start();
        if start.is_empty() {
            self.gap = self.begun;
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
        matches!(&self.open, Open::Unit(unit) if unit.source.len() >= LONGEST_UNIT)
    }

    /// Ends what is open.
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
        // Whatever the fence was indented by is no part of the code.
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = line.get(indent.min(fence.indent)..).unwrap_or(line);
        rows.push(render::code(&neutralise(line), self.look));
    }

    /// The empty line before what comes next, if there is one.
    fn space(&mut self, rows: &mut Vec<Line>) {
        if self.gap && self.begun {
            rows.push(Line::new());
        }
        self.gap = false;
        self.begun = true;
    }
}

impl Unit {
    /// Whether a line goes on with it.
    fn takes(&self, line: &str) -> bool {
        if self.fence.is_some() {
            return true;
        }
        let start = line.trim_start_matches(' ');
        let indent = line.len() - start.len();
        let is_empty = line.trim().is_empty();
        match self.kind {
            // What is indented after an empty line may still belong to an item.
            Kind::Item if is_empty => true,
            _ if is_empty => false,
            Kind::Item if indent >= ITEM_INDENT => true,
            Kind::Quote if start.starts_with('>') => true,
            _ => !self.ends_empty && !begins_another(line),
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
        // Three backticks in one line are code in the line.
        let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
        is_fence.then(|| Self {
            mark,
            length,
            indent: line.len() - start.len(),
        })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|character| character == self.mark)
    }
}

/// Whether a line begins something of its own, whatever comes before it.
fn begins_another(line: &str) -> bool {
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

/// Whether a line begins an item of a list that is not within another.
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

/// The last place between two characters that is no further than this.
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

/// Styles of text.
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
