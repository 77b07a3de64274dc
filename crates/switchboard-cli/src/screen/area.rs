//! The live area as the terminal shows it: computes the bytes that turn one set of rows into another.
//!
//! All movements are relative to the top of the area, so the position on the screen need not be known. An area has at
//! least one row, which may be empty. No row fills the terminal's width: some terminals wrap a line that does.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthChar as _;

use crate::live::Line;
use crate::theme::Theme;

/// Unchanged columns that are written again rather than skipped, since skipping them takes more bytes.
const MIN_SKIP: usize = 6;

/// One character with the combining characters after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    text: String,
    style: Style,
    width: usize,
}

type Row = Vec<Cell>;

/// Row and column in the area, counted from 0.
pub(crate) type Position = (usize, usize);

#[derive(Debug)]
pub(super) struct Area {
    rows: Vec<Row>,
    /// Where the terminal's cursor is.
    at: Position,
    is_styled: bool,
    is_cursor_hidden: bool,
    /// Rows that the last update changed.
    changed: usize,
}

impl Area {
    pub(super) fn new(is_styled: bool) -> Self {
        Self {
            rows: vec![Row::new()],
            at: (0, 0),
            is_styled,
            is_cursor_hidden: false,
            changed: 0,
        }
    }

    /// Number of rows, at least 1.
    pub(super) fn height(&self) -> usize {
        self.rows.len()
    }

    /// Number of rows that the last update changed.
    pub(super) fn changed(&self) -> usize {
        self.changed
    }

    /// Erases the area; the cursor is then at its start.
    pub(super) fn erase(&mut self) -> String {
        let is_blank = self.rows.len() == 1 && self.rows.iter().all(Vec::is_empty);
        let mut out = String::new();
        if !is_blank || self.at != (0, 0) {
            self.go(&mut out, (0, 0));
            out.push_str("\u{1b}[J");
        }
        self.rows = vec![Row::new()];
        out
    }

    /// Puts rows above the area, which leave it, and replaces its own rows. Writes only what is new.
    pub(super) fn update(
        &mut self,
        above: &[Line],
        rows: &[Line],
        cursor: Option<Position>,
        columns: usize,
    ) -> String {
        let room = columns.saturating_sub(1).max(1);
        let mut wanted: Vec<Row> = above
            .iter()
            .chain(rows)
            .map(|row| cells(row, room))
            .collect();
        if rows.is_empty() {
            wanted.push(Row::new());
        }
        let same = |(one, other): &(&Row, &Row)| one == other;
        let before = self.rows.iter().zip(&wanted).take_while(same).count();
        let most = self.rows.len().min(wanted.len()) - before;
        let pairs = self.rows.iter().rev().zip(wanted.iter().rev());
        let after = pairs.take_while(same).count().min(most);

        let mut out = String::new();
        self.resize(&mut out, wanted.len(), before, after);
        let changed = before..wanted.len() - after;
        for index in changed.clone() {
            let old = std::mem::take(&mut self.rows[index]);
            self.write_row(&mut out, index, &old, &wanted[index]);
        }
        self.rows = wanted.split_off(above.len());
        // The rows above are no longer part of the area.
        let start = above.len();
        let (row, column) = cursor.unwrap_or((self.rows.len() - 1, 0));
        let row = row.min(self.rows.len() - 1);
        if cursor.is_some() || !out.is_empty() {
            self.go(&mut out, (row + start, column));
        }
        self.at.0 = self.at.0.saturating_sub(start);
        if cursor.is_none() != self.is_cursor_hidden {
            self.is_cursor_hidden = cursor.is_none();
            out.push_str(if cursor.is_none() {
                "\u{1b}[?25l"
            } else {
                "\u{1b}[?25h"
            });
        }
        self.changed = changed.len();
        out
    }

    /// Inserts or removes rows between the unchanged ones at the top and those at the bottom.
    fn resize(&mut self, out: &mut String, wanted: usize, before: usize, after: usize) {
        let current = self.rows.len();
        if wanted > current {
            let added = wanted - current;
            self.go(out, (current - 1, 0));
            // Scrolls the screen if the area is at its bottom.
            out.push_str(&"\n".repeat(added));
            self.at = (wanted - 1, 0);
            let place = current - after;
            if after > 0 {
                self.go(out, (place, 0));
                let _ = write!(out, "\u{1b}[{added}L");
            }
            let blank = std::iter::repeat_n(Row::new(), added);
            self.rows.splice(place..place, blank);
        } else if wanted < current {
            let removed = current - wanted;
            let place = wanted - after;
            let place = place.max(before);
            self.go(out, (place, 0));
            let _ = write!(out, "\u{1b}[{removed}M");
            self.rows.drain(place..place + removed);
        }
    }

    /// Writes the parts of a row that differ.
    fn write_row(&mut self, out: &mut String, index: usize, old: &Row, new: &Row) {
        let mut runs: Vec<(usize, usize, usize)> = Vec::new();
        let (mut column, mut old_column) = (0, 0);
        for (place, cell) in new.iter().enumerate() {
            let is_same = column == old_column && old.get(place) == Some(cell);
            if !is_same {
                match runs.last_mut() {
                    Some((_, _, end)) if place - *end < MIN_SKIP => *end = place + 1,
                    _ => runs.push((column, place, place + 1)),
                }
            }
            column += cell.width;
            old_column += old.get(place).map_or(0, |cell| cell.width);
        }
        for (start, first, end) in runs {
            self.go(out, (index, start));
            let mut style = Style::new();
            for cell in new.get(first..end).unwrap_or_default() {
                let wanted = Theme::current().of(cell.style);
                if self.is_styled && wanted != style {
                    let _ = write!(out, "{style:#}{wanted}");
                    style = wanted;
                }
                out.push_str(&cell.text);
                self.at.1 += cell.width;
            }
            if self.is_styled {
                let _ = write!(out, "{style:#}");
            }
        }
        let width = |row: &Row| row.iter().map(|cell| cell.width).sum::<usize>();
        if width(old) > width(new) {
            self.go(out, (index, width(new)));
            out.push_str("\u{1b}[K");
        }
    }

    fn go(&mut self, out: &mut String, (row, column): Position) {
        let (from, at) = self.at;
        let _ = match row.cmp(&from) {
            std::cmp::Ordering::Less => write!(out, "\u{1b}[{}A", from - row),
            std::cmp::Ordering::Greater => write!(out, "\u{1b}[{}B", row - from),
            std::cmp::Ordering::Equal => Ok(()),
        };
        if column != at {
            let _ = match column {
                0 => write!(out, "\r"),
                _ => write!(out, "\u{1b}[{}G", column + 1),
            };
        }
        self.at = (row, column);
    }
}

/// Splits a line into cells, as many as fit.
fn cells(line: &Line, room: usize) -> Row {
    let mut row = Row::new();
    let mut used = 0;
    for (style, text) in line {
        for character in text.chars() {
            match character.width() {
                Some(0) => {
                    if let Some(last) = row.last_mut() {
                        last.text.push(character);
                    }
                }
                Some(width) => {
                    if used + width > room {
                        return row;
                    }
                    used += width;
                    row.push(Cell {
                        text: character.to_string(),
                        style: *style,
                        width,
                    });
                }
                // Control characters have no place in a row.
                None => {}
            }
        }
    }
    // Blanks without a style need not be written.
    while row
        .last()
        .is_some_and(|cell| cell.text == " " && cell.style == Style::new())
    {
        row.pop();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(texts: &[&str]) -> Vec<Line> {
        let line = |text: &&str| vec![(Style::new(), (*text).to_owned())];
        texts.iter().map(line).collect()
    }

    /// A terminal that has shown `above` shell lines before the area.
    fn terminal(shell_lines: usize) -> vt100::Parser {
        let mut parser = vt100::Parser::new(10, 20, 100);
        for line in 0..shell_lines {
            parser.process(format!("shell {line}\r\n").as_bytes());
        }
        parser
    }

    /// The terminal driver turns a line feed into carriage return and line feed.
    fn feed(parser: &mut vt100::Parser, bytes: &str) {
        parser.process(bytes.replace('\n', "\r\n").as_bytes());
    }

    fn screen(parser: &mut vt100::Parser) -> Vec<String> {
        let contents = parser.screen().contents();
        let mut rows: Vec<String> = contents
            .lines()
            .map(|row| row.trim_end().to_owned())
            .collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    #[test]
    fn only_new_text_is_written() {
        let mut area = Area::new(false);
        let first = area.update(&[], &lines(&["The quick", "> "]), None, 80);
        assert!(first.contains("The quick"), "{first:?}");
        let more = area.update(&[], &lines(&["The quick brown fox", "> "]), None, 80);
        assert!(
            more.contains(" brown fox") && !more.contains("quick"),
            "{more:?}"
        );
        assert!(!more.contains('>') && more.len() < 32, "{more:?}");
        // A row that becomes final is already on the screen.
        let above = lines(&["The quick brown fox"]);
        let done = area.update(&above, &lines(&["> "]), None, 80);
        assert!(!done.contains("fox") && !done.contains('>'), "{done:?}");
    }

    #[test]
    fn wide_characters_keep_their_columns() {
        let mut parser = terminal(0);
        let mut area = Area::new(false);
        feed(
            &mut parser,
            &area.update(&[], &lines(&["漢字 a b"]), None, 20),
        );
        feed(
            &mut parser,
            &area.update(&[], &lines(&["漢x字 a c"]), None, 20),
        );
        assert_eq!(screen(&mut parser), ["漢x字 a c"]);
        feed(
            &mut parser,
            &area.update(&[], &lines(&["e\u{301}漢"]), None, 20),
        );
        assert_eq!(screen(&mut parser), ["e\u{301}漢"]);
    }

    proptest! {
        /// However the rows change, the screen shows what was printed and the rows of the area.
        #[test]
        fn the_screen_shows_the_rows(
            shell in 0_usize..12,
            steps in prop::collection::vec(
                (prop::collection::vec("[a-c]{0,3}", 0..4), prop::collection::vec("[a-c]{0,3}", 0..5)),
                1..12,
            ),
        ) {
            let mut parser = terminal(shell);
            let mut area = Area::new(false);
            let mut printed: Vec<String> = (0..shell).map(|line| format!("shell {line}")).collect();
            let mut most = printed.len() + 1;
            for (above, rows) in steps {
                let all = |texts: &[String]| lines(&texts.iter().map(String::as_str).collect::<Vec<_>>());
                feed(&mut parser, &area.update(&all(&above), &all(&rows), Some((0, 0)), 20));
                printed.extend(above);
                let mut expected: Vec<String> = printed.iter().chain(&rows).cloned().collect();
                while expected.last().is_some_and(String::is_empty) {
                    expected.pop();
                }
                // What does not fit has moved to the scrollback.
                most = most.max(printed.len() + rows.len().max(1));
                let scrolled = most.saturating_sub(10).min(expected.len());
                prop_assert_eq!(&screen(&mut parser), &expected[scrolled..]);
            }
        }
    }
}
