//! Wraps the input into rows and finds the cursor in them.

use anstyle::Style;
use switchboard_config::text::visible;
use unicode_width::UnicodeWidthStr as _;

use super::Input;
use crate::live::Line;
use crate::printer::style;
use crate::screen::Position;

/// Rows shown of a long input.
const MAX_ROWS: usize = 10;
const MARK: &str = "› ";

impl Input {
    /// The rows of the input and the cursor in them.
    pub(crate) fn rows(&self, columns: usize) -> (Vec<Line>, Position) {
        self.rows_after(MARK, columns)
    }

    pub(crate) fn rows_without_mark(&self, columns: usize) -> (Vec<Line>, Position) {
        self.rows_after("", columns)
    }

    fn rows_after(&self, mark: &str, columns: usize) -> (Vec<Line>, Position) {
        let room = columns.saturating_sub(1).max(8);
        let margin = mark.width();
        let (text, position) = self.text();
        let mut rows: Vec<Line> = vec![vec![(style::HINT, mark.to_owned())]];
        let mut used = margin;
        let mut cursor = None;
        for (at, character) in text.char_indices() {
            let piece = self.shown(character);
            let width = piece.1.width();
            if character == '\n' || used + width > room {
                if at == position && character == '\n' {
                    cursor = Some((rows.len() - 1, used));
                }
                rows.push(vec![(Style::new(), " ".repeat(margin))]);
                used = margin;
            }
            if at == position && cursor.is_none() {
                cursor = Some((rows.len() - 1, used));
            }
            if character != '\n' {
                push(&mut rows, piece);
                used += width;
            }
        }
        let (row, column) = cursor.unwrap_or((rows.len() - 1, used));
        let first = (row + 1).saturating_sub(MAX_ROWS);
        let rows = rows.into_iter().skip(first).take(MAX_ROWS).collect();
        (rows, (row - first, column))
    }

    /// The submitted text as it stays on the screen.
    pub(crate) fn echo(&self, columns: usize) -> Vec<Line> {
        let room = columns.saturating_sub(1).max(8);
        let mut rows: Vec<Line> = vec![vec![(style::HINT, MARK.to_owned())]];
        let mut used = MARK.width();
        for character in self.text().0.chars() {
            let piece = self.shown(character);
            let width = piece.1.width();
            if character == '\n' || used + width > room {
                rows.push(vec![(Style::new(), "  ".to_owned())]);
                used = MARK.width();
            }
            if character != '\n' {
                push(&mut rows, piece);
                used += width;
            }
        }
        rows
    }

    /// A character as it is shown: a fold as its number of lines.
    fn shown(&self, character: char) -> (Style, String) {
        if let Some(pasted) = self.folds.get(&character) {
            let lines = pasted.lines().count();
            let size = if lines > 1 {
                format!("[{lines} lines]")
            } else {
                format!("[{} characters]", pasted.chars().count())
            };
            return (style::QUIET, size);
        }
        let text = match character {
            '\t' => "    ".to_owned(),
            _ => visible(&character.to_string()).into_owned(),
        };
        (Style::new(), text)
    }
}

fn push(rows: &mut [Line], (style, text): (Style, String)) {
    let Some(row) = rows.last_mut() else {
        return;
    };
    match row.last_mut() {
        Some((last, piece)) if *last == style => piece.push_str(&text),
        _ => row.push((style, text)),
    }
}
