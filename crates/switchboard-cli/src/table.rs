//! Tables with aligned columns and no borders: complete in a pipe, fitted to the width of a terminal.
//!
//! On a terminal that is too narrow, long cells are cut and the least important columns are dropped. The reason of a
//! failed row takes the place of the cells that a failed row does not have.

use std::fmt::{self, Display, Write as _};

use anstyle::Style;
use switchboard_config::text::visible;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printer::{paint, style};
use crate::terminal::fitted;

/// Spaces between columns.
const GAP: usize = 2;
/// Width below which a column that may be cut is dropped instead.
const MIN_CUT_WIDTH: usize = 14;
/// Width to which even columns that are not meant to be cut are narrowed, if nothing else helps.
const MIN_WIDTH: usize = 6;
/// Minimum width of a reason that is printed in its row; with less room it is printed below the row.
const MIN_REASON_WIDTH: usize = 24;
/// Most lines of one reason on a terminal; `doctor` shows the rest.
const MAX_REASON_LINES: usize = 3;
/// Most lines of one cell that wraps.
const MAX_CELL_LINES: usize = 12;
/// What a cell without a value shows.
const NO_VALUE: &str = "–";

/// How a cell that is too long is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// At its end.
    End,
    /// In its middle, so that both ends of a path stay readable.
    Middle,
    /// Not at all: it continues on further lines. Only for the last column.
    Wrap,
}

/// A column: its heading, and what happens to it on a narrow terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    cut: Cut,
    /// Whether other columns are dropped before this one is cut.
    is_whole: bool,
    /// Columns with a rank are dropped, lowest first. `None`: never.
    rank: Option<u8>,
    is_right: bool,
    is_state: bool,
}

impl Column {
    /// A column that is always shown, whole if possible.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            cut: Cut::End,
            is_whole: true,
            rank: None,
            is_right: false,
            is_state: false,
        }
    }

    /// A column of text, which may lose its end.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self {
            is_whole: false,
            ..Self::new(name)
        }
    }

    /// A column of names that are copied: whole if possible, else without their middle.
    pub(crate) const fn key(name: &'static str) -> Self {
        Self {
            cut: Cut::Middle,
            ..Self::new(name)
        }
    }

    /// A last column of text that continues on further lines.
    pub(crate) const fn wrapped(name: &'static str) -> Self {
        Self {
            cut: Cut::Wrap,
            ..Self::text(name)
        }
    }

    /// A column of paths, URLs or command lines, which may lose their middle.
    pub(crate) const fn path(name: &'static str) -> Self {
        Self {
            cut: Cut::Middle,
            ..Self::text(name)
        }
    }

    /// Marks the column as dropped on a narrow terminal; lower ranks go first.
    pub(crate) const fn dropped(self, rank: u8) -> Self {
        Self {
            rank: Some(rank),
            ..self
        }
    }

    /// Aligns the cells to the right.
    pub(crate) const fn right(self) -> Self {
        Self {
            is_right: true,
            ..self
        }
    }

    /// Marks the column after which the reason of a row is printed.
    pub(crate) const fn state(self) -> Self {
        Self {
            is_state: true,
            ..self
        }
    }
}

/// A table. [`Display`] prints it complete; [`Table::fitted`] fits it to a terminal.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    indent: usize,
}

#[derive(Debug)]
enum Row {
    Cells {
        cells: Vec<(Style, String)>,
        /// Why the row is as it is.
        remark: Option<(Style, String)>,
    },
    /// A line outside the columns, styled and sanitized.
    Line(String),
}

impl Table {
    /// A table with a heading row, unless no column has a name.
    pub(crate) fn new(columns: &[Column]) -> Self {
        let mut table = Self {
            columns: columns.to_vec(),
            ..Self::default()
        };
        if columns.iter().any(|column| !column.name.is_empty()) {
            let cell = |column: &Column| (style::QUIET, column.name.to_owned());
            table.rows.push(Row::Cells {
                cells: columns.iter().map(cell).collect(),
                remark: None,
            });
        }
        table
    }

    /// A table with a heading row whose columns are all equally important.
    pub(crate) fn with_heading(names: &[&'static str]) -> Self {
        let columns: Vec<Column> = names.iter().map(|name| Column::text(name)).collect();
        Self::new(&columns)
    }

    /// Moves all rows to the right.
    #[must_use]
    pub(crate) fn indented(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// Adds a row. Sanitizes the cells.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(Style, &str); N]) {
        let safe = |(style, text): (Style, &str)| (style, visible(text).into_owned());
        self.rows.push(Row::Cells {
            cells: cells.into_iter().map(safe).collect(),
            remark: None,
        });
        while self.columns.len() < N {
            self.columns.push(Column::text(""));
        }
    }

    /// Says why the row above is as it is.
    pub(crate) fn remark(&mut self, style: Style, text: &str) {
        if let Some(Row::Cells { remark, .. }) = self.rows.last_mut() {
            *remark = Some((style, visible(text).into_owned()));
        }
    }

    /// Adds a line outside the columns, already styled and sanitized.
    pub(crate) fn line(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Line(text.into()));
    }

    /// The table for a terminal with this many columns; complete without a terminal.
    pub(crate) fn fitted(&self, width: Option<usize>) -> String {
        match width {
            Some(width) => self.in_width(width),
            None => self.to_string(),
        }
    }

    fn in_width(&self, width: usize) -> String {
        let room = width.saturating_sub(self.indent);
        let natural = self.widths(|_, _| true).into_iter().enumerate();
        let natural: Vec<(usize, usize)> = natural
            .filter(|(index, _)| !self.is_blank(*index))
            .collect();
        let reason = self.remarks().map(str::width).max();
        let whole = total(&natural);
        let beside = reason.filter(|reason| whole + GAP + reason <= room);
        let layout = if beside.is_some() || whole <= room && reason.is_none() {
            natural
        } else {
            self.layout(room)
        };
        let mut text = String::new();
        for row in &self.rows {
            match row {
                Row::Line(line) => text.push_str(line),
                Row::Cells { cells, remark } => {
                    let line = Line {
                        table: self,
                        layout: &layout,
                        cells,
                        room,
                    };
                    match remark {
                        Some(remark) if beside.is_none() => line.with_reason(remark, &mut text),
                        remark => line.whole(remark.as_ref(), &mut text),
                    }
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }

    /// The width of each column, from the cells that are counted.
    fn widths(&self, counts: impl Fn(usize, bool) -> bool) -> Vec<usize> {
        let mut widths = vec![0; self.columns.len()];
        for row in &self.rows {
            let Row::Cells { cells, remark } = row else {
                continue;
            };
            for (index, (width, (_, text))) in widths.iter_mut().zip(cells).enumerate() {
                if counts(index, remark.is_some()) {
                    *width = (*width).max(text.width());
                }
            }
        }
        widths
    }

    fn remarks(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells {
                remark: Some((_, text)),
                ..
            } => Some(text.as_str()),
            _ => None,
        })
    }

    /// The index of the column after which reasons are printed.
    fn state(&self) -> usize {
        let state = self.columns.iter().position(|column| column.is_state);
        state.unwrap_or(self.columns.len())
    }

    /// Chooses the columns that are shown in `room`, and their widths.
    fn layout(&self, room: usize) -> Vec<(usize, usize)> {
        let state = self.state();
        let natural = self.widths(|index, has_reason| !has_reason || index <= state);
        let mut shown: Vec<(usize, usize)> = natural.into_iter().enumerate().collect();
        shown.retain(|(index, _)| !self.is_blank(*index));
        while self.least(&shown) > room {
            let ranked = shown.iter().filter_map(|(index, _)| {
                let rank = self.columns.get(*index)?.rank?;
                Some((rank, *index))
            });
            let Some((_, gone)) = ranked.min() else { break };
            shown.retain(|(index, _)| *index != gone);
        }
        let may_be_cut = |index: usize| !self.is_whole(index);
        narrow(&mut shown, room, MIN_CUT_WIDTH, may_be_cut);
        narrow(&mut shown, room, MIN_WIDTH, |_| true);
        shown
    }

    /// The least width of these columns without narrowing those that should stay whole.
    fn least(&self, shown: &[(usize, usize)]) -> usize {
        let least = shown.iter().map(|(index, width)| {
            let is_whole = self.is_whole(*index);
            let least = if is_whole {
                *width
            } else {
                (*width).min(MIN_CUT_WIDTH)
            };
            (*index, least)
        });
        total(&least.collect::<Vec<_>>())
    }

    fn cut(&self, index: usize) -> Cut {
        self.columns
            .get(index)
            .map_or(Cut::End, |column| column.cut)
    }

    fn is_whole(&self, index: usize) -> bool {
        self.columns
            .get(index)
            .is_some_and(|column| column.is_whole)
    }

    /// Whether a column may be dropped and has no value in any row.
    fn is_blank(&self, index: usize) -> bool {
        let may_go = |column: &Column| column.rank.is_some();
        let heading = usize::from(self.columns.iter().any(|column| !column.name.is_empty()));
        let is_empty = |row: &Row| match row {
            Row::Cells { cells, remark } => {
                let is_empty = |(_, text): &(Style, String)| text.is_empty() || text == NO_VALUE;
                remark.is_some() || cells.get(index).is_none_or(is_empty)
            }
            Row::Line(_) => true,
        };
        self.columns.get(index).is_some_and(may_go) && self.rows.iter().skip(heading).all(is_empty)
    }
}

/// The width of a row.
fn total(shown: &[(usize, usize)]) -> usize {
    let widths: usize = shown.iter().map(|(_, width)| width).sum();
    widths + GAP * shown.len().saturating_sub(1)
}

/// Narrows the widest of the columns that may be narrowed, down to `least`, until the row fits.
fn narrow(
    shown: &mut [(usize, usize)],
    room: usize,
    least: usize,
    may_be_cut: impl Fn(usize) -> bool,
) {
    while total(shown) > room {
        let wide = shown
            .iter_mut()
            .filter(|(index, width)| *width > least && may_be_cut(*index));
        let Some((_, width)) = wide.max_by_key(|(_, width)| *width) else {
            return;
        };
        *width -= 1;
    }
}

/// One row on a terminal.
struct Line<'t> {
    table: &'t Table,
    layout: &'t [(usize, usize)],
    cells: &'t [(Style, String)],
    room: usize,
}

impl Line<'_> {
    /// All shown cells, and the reason after them.
    fn whole(&self, reason: Option<&(Style, String)>, text: &mut String) {
        self.cells_until(usize::MAX, text);
        self.further_lines(text);
        if let Some((style, reason)) = reason {
            let _ = write!(text, "{:GAP$}{}", "", paint(*style, reason));
        }
    }

    /// The lines after the first of a last column that wraps.
    fn further_lines(&self, text: &mut String) {
        let Some((last, width)) = self.layout.last() else {
            return;
        };
        let (Cut::Wrap, Some((style, cell))) = (self.table.cut(*last), self.cells.get(*last))
        else {
            return;
        };
        let left = self.table.indent + total(self.layout).saturating_sub(*width);
        for line in wrapped(cell, *width, MAX_CELL_LINES).iter().skip(1) {
            text.truncate(text.trim_end_matches(' ').len());
            let _ = write!(text, "\n{:left$}{}", "", paint(*style, line));
        }
    }

    /// The cells up to the state, and the reason beside them; below them if there is too little room.
    fn with_reason(&self, (style, reason): &(Style, String), text: &mut String) {
        let state = self.table.state();
        let before: Vec<_> = self
            .layout
            .iter()
            .copied()
            .filter(|(index, _)| *index <= state)
            .collect();
        let taken = total(&before) + GAP;
        let beside = self.room.saturating_sub(taken);
        let fits_beside = state < self.table.columns.len() && beside >= MIN_REASON_WIDTH;
        self.cells_until(if fits_beside { state } else { usize::MAX }, text);
        let indent = self.table.indent;
        let (width, left) = if fits_beside {
            (beside, indent + taken)
        } else {
            (self.room.saturating_sub(GAP), indent + GAP)
        };
        for (number, line) in wrapped(reason, width, MAX_REASON_LINES).iter().enumerate() {
            let line = paint(*style, line);
            if number == 0 && fits_beside {
                let _ = write!(text, "{:GAP$}{line}", "");
            } else {
                text.truncate(text.trim_end_matches(' ').len());
                let _ = write!(text, "\n{:left$}{line}", "");
            }
        }
    }

    /// The shown cells with an index up to `last`, padded to their widths.
    fn cells_until(&self, last: usize, text: &mut String) {
        let indent = self.table.indent;
        let _ = write!(text, "{:indent$}", "");
        let cells = self.layout.iter().filter(|(index, _)| *index <= last);
        for (number, (index, width)) in cells.enumerate() {
            let Some((style, cell)) = self.cells.get(*index) else {
                continue;
            };
            let cell = match self.table.cut(*index) {
                Cut::Middle => cut_middle(cell, *width),
                Cut::End => fitted(cell, *width).into_owned(),
                Cut::Wrap => {
                    let mut lines = wrapped(cell, *width, MAX_CELL_LINES).into_iter();
                    lines.next().unwrap_or_default()
                }
            };
            let gap = if number == 0 { 0 } else { GAP };
            let pad = width.saturating_sub(cell.width());
            let column = self.table.columns.get(*index);
            let (left, right) = if column.is_some_and(|column| column.is_right) {
                (gap + pad, 0)
            } else {
                (gap, pad)
            };
            let _ = write!(text, "{:left$}{}{:right$}", "", paint(*style, cell), "");
        }
    }
}

/// Cuts the middle out of a text, with an ellipsis. The end stays longer: it tells paths apart.
fn cut_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = taken(text.chars(), room / 3);
    let tail = taken(text.chars().rev(), room - head.width());
    let tail: String = tail.chars().rev().collect();
    format!("{head}…{}", tail.trim_start())
}

/// The first characters that fit in `room` columns.
fn taken(characters: impl Iterator<Item = char>, room: usize) -> String {
    let mut left = room;
    let fits = |character: &char| {
        let needed = character.width().unwrap_or_default();
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    characters.take_while(fits).collect()
}

/// Breaks a text into lines of at most `width` columns, at spaces where possible. Cuts it after `most` lines.
fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut words = text.split_whitespace();
    let mut rest = words.next();
    while let Some(word) = rest {
        let count = lines.len();
        let Some(line) = lines.last_mut() else { break };
        let gap = usize::from(!line.is_empty());
        if line.width() + gap + word.width() <= width {
            line.push_str(if gap == 1 { " " } else { "" });
            line.push_str(word);
            rest = words.next();
        } else if count == most {
            let cut = format!("{line} {word}");
            *line = fitted(cut.trim_start(), width.min(cut.width().saturating_sub(1))).into_owned();
            break;
        } else if line.is_empty() {
            let part = taken(word.chars(), width.max(2));
            rest = word.get(part.len()..).filter(|left| !left.is_empty());
            *line = part;
            rest = rest.or_else(|| words.next());
            lines.push(String::new());
        } else {
            lines.push(String::new());
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

impl Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths(|_, _| true);
        let indent = self.indent;
        for row in &self.rows {
            let (cells, remark) = match row {
                Row::Cells { cells, remark } => (cells, remark),
                Row::Line(line) => {
                    writeln!(formatter, "{line}")?;
                    continue;
                }
            };
            let last = cells.len().saturating_sub(1);
            write!(formatter, "{:indent$}", "")?;
            for (index, ((style, text), width)) in cells.iter().zip(&widths).enumerate() {
                let pad = width.saturating_sub(text.width());
                let column = self.columns.get(index);
                if column.is_some_and(|column| column.is_right) {
                    write!(formatter, "{:pad$}{}", "", paint(*style, text))?;
                } else {
                    write!(formatter, "{}", paint(*style, text))?;
                    if index < last {
                        write!(formatter, "{:pad$}", "")?;
                    }
                }
                if index < last {
                    write!(formatter, "{:GAP$}", "")?;
                }
            }
            writeln!(formatter)?;
            if let Some((style, text)) = remark {
                writeln!(formatter, "{:indent$}  {}", "", paint(*style, text))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn plain(text: &str) -> String {
        strip_str(text).to_string()
    }

    fn servers() -> Table {
        let mut table = Table::new(&[
            Column::new("NAME"),
            Column::new("SCOPE").dropped(2),
            Column::new("STATE").state(),
            Column::new("TOOLS").dropped(3),
            Column::path("SOURCE").dropped(1),
        ]);
        let none = Style::new();
        table.row([
            (none, "time"),
            (none, "user"),
            (none, "connected"),
            (none, "2"),
            (none, "~/a/very/long/path/of/a/file/mcp.toml:12"),
        ]);
        table.row([
            (none, "broken"),
            (none, "user"),
            (none, "failed"),
            (none, "–"),
            (none, "~/a/very/long/path/of/a/file/mcp.toml:15"),
        ]);
        table.remark(none, "cannot start `nope`: no such program in PATH");
        table
    }

    #[test]
    fn columns_are_aligned_and_cells_made_safe() {
        let mut table = Table::with_heading(&["NAME", "STATE"]);
        table.row([(Style::new(), "größe"), (Style::new(), "a\u{1b}[31m")]);
        table.row([(Style::new(), "x"), (Style::new(), "")]);
        let expected = "NAME   STATE\ngröße  a\\u{1b}[31m\nx      \n";
        assert_eq!(plain(&table.to_string()), expected);
        assert_eq!(
            plain(&table.fitted(Some(80))),
            expected.replace("      \n", "\n")
        );
    }

    #[test]
    fn a_pipe_gets_everything() {
        let text = plain(&servers().fitted(None));
        assert!(text.contains("~/a/very/long/path/of/a/file/mcp.toml:15\n  cannot start"));
    }

    #[test]
    fn a_terminal_gets_what_fits_and_the_reason_in_its_row() {
        let at = |width| plain(&servers().fitted(Some(width)));
        for width in [20, 40, 60, 80, 100, 200] {
            let text = at(width);
            assert!(
                text.lines().all(|line| line.width() <= width),
                "{width}:\n{text}"
            );
            assert!(text.contains("broken"), "{text}");
        }
        let middle = at(60);
        let expected = "broken  user   failed     cannot start `nope`: no such\n                          program in PATH\n";
        assert!(middle.ends_with(expected), "{middle}");
        assert!(
            middle.contains("…") && middle.contains("mcp.toml:12\n"),
            "{middle}"
        );
        let narrow = at(40);
        assert!(!narrow.contains("SOURCE"), "{narrow}");
        let wide = at(200);
        let row = wide
            .lines()
            .find(|line| line.starts_with("broken"))
            .unwrap();
        assert!(
            row.contains("mcp.toml:15") && row.contains("no such program"),
            "{wide}"
        );
    }

    #[test]
    fn wide_characters_count_as_two_columns() {
        let mut table = Table::new(&[Column::path("名前"), Column::text("说明")]);
        let none = Style::new();
        table.row([
            (none, "漢字漢字漢字漢字漢字漢字"),
            (none, "日本語の説明はとても長い説明です"),
        ]);
        table.row([(none, "a"), (none, "e\u{301}e\u{301}")]);
        for width in [30, 31, 40, 41] {
            let text = plain(&table.fitted(Some(width)));
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            let starts: Vec<usize> = text
                .lines()
                .map(|line| line.rsplit_once("  ").unwrap().0.width())
                .collect();
            assert!(text.contains('…'), "{text}");
            assert_eq!(starts.len(), 3, "{text}");
        }
    }

    #[test]
    fn a_last_column_continues_on_further_lines() {
        let mut table = Table::new(&[Column::new("NAME"), Column::wrapped("ABOUT")]).indented(1);
        let none = Style::new();
        table.row([(none, "a"), (none, "one two three four five six")]);
        table.row([(none, "b"), (none, "")]);
        let expected = " NAME  ABOUT\n a     one two three\n       four five six\n b\n";
        assert_eq!(plain(&table.fitted(Some(21))), expected);
    }

    #[test]
    fn a_path_is_cut_in_its_middle() {
        for (text, width, expected) in [
            ("/a/b", 10, "/a/b"),
            ("/home/someone/project/mcp.toml", 16, "/home…t/mcp.toml"),
            ("漢字漢字漢字", 7, "漢…漢字"),
            ("abc", 1, "…"),
        ] {
            assert_eq!(cut_middle(text, width), expected);
        }
    }

    #[test]
    fn a_reason_is_wrapped_and_bounded() {
        assert_eq!(wrapped("one two three", 7, 3), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh", 3, 3), ["abc", "def", "gh"]);
        let long = "word ".repeat(100);
        let lines = wrapped(&long, 20, MAX_REASON_LINES);
        assert_eq!(lines.len(), MAX_REASON_LINES);
        assert!(
            lines[2].ends_with('…') && lines[2].width() <= 20,
            "{lines:?}"
        );
    }
}
