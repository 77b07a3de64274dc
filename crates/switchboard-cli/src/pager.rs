//! Shows a long text on the alternate screen, to be scrolled. The conversation comes back when it is left.

use std::io;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::dialog::Dialog;
use crate::live::{Line, painted};
use crate::printer::{Printer, style};
use crate::screen;
use crate::terminal::{Key, Size};

/// Prints a text that fits on the screen; shows a longer one until the user leaves it.
pub(crate) async fn show(title: &str, lines: &[Line], printer: &Printer) -> io::Result<()> {
    let size = screen::size();
    if !screen::is_active() || wrapped(lines, size.columns).len() + 6 <= size.rows {
        for line in lines {
            printer.note(painted(line));
        }
        return Ok(());
    }
    let mut dialog = Dialog::open_wanted(title, printer).await?;
    scroll(&mut dialog, title, lines, printer).await?;
    Ok(())
}

/// Shows a text above an open dialog until the user leaves it. Returns whether its end has been on the screen.
pub(crate) async fn scroll(
    dialog: &mut Dialog<'_>,
    title: &str,
    lines: &[Line],
    printer: &Printer,
) -> io::Result<bool> {
    let view = View::enter();
    let mut top = 0;
    let mut has_ended = false;
    loop {
        let size = screen::size();
        let rows = wrapped(lines, size.columns);
        let page = size.rows.saturating_sub(1).max(1);
        let last = rows.len().saturating_sub(page);
        top = top.min(last);
        view.draw(title, &rows, top, size, printer);
        has_ended |= top >= last;
        match dialog.key().await? {
            Key::Up | Key::Character('k') => top = top.saturating_sub(1),
            Key::Down | Key::Enter | Key::Character('j') => top += 1,
            Key::PageUp | Key::Character('b') => top = top.saturating_sub(page),
            Key::PageDown | Key::Character(' ') => top += page,
            Key::Character('g') => top = 0,
            Key::Character('G') => top = last,
            Key::Escape | Key::End | Key::Character('q') => return Ok(has_ended),
            _ => {}
        }
    }
}

/// The alternate screen, left when dropped.
struct View;

impl View {
    fn enter() -> Self {
        screen::suspend();
        screen::write_suspended("\u{1b}[?1049h\u{1b}[?25l");
        Self
    }

    #[expect(
        clippy::unused_self,
        reason = "only the owner of the alternate screen may draw on it"
    )]
    fn draw(&self, title: &str, rows: &[Line], top: usize, size: Size, printer: &Printer) {
        let page = size.rows.saturating_sub(1).max(1);
        let mut text = "\u{1b}[?2026h\u{1b}[H".to_owned();
        for index in top..top + page {
            if let Some(row) = rows.get(index) {
                text.push_str(&printer.shown(row));
            }
            text.push_str("\u{1b}[K\n");
        }
        let end = (top + page).min(rows.len());
        let keys = format!(
            "{title}  {}–{end} of {}  ↑↓ space b g G, q leaves",
            top + 1,
            rows.len()
        );
        let keys = crate::terminal::fitted(&keys, size.columns.saturating_sub(1)).into_owned();
        text.push_str(&printer.styled(style::QUIET, keys));
        text.push_str("\u{1b}[K\u{1b}[?2026l");
        screen::write_suspended(&text);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        screen::write_suspended("\u{1b}[?1049l\u{1b}[?25h");
        screen::resume();
    }
}

/// Breaks lines into rows that fit.
fn wrapped(lines: &[Line], columns: usize) -> Vec<Line> {
    let room = columns.saturating_sub(1).max(10);
    let mut rows = Vec::new();
    for line in lines {
        let mut row = Line::new();
        let mut used = 0;
        for (style, text) in line {
            if used + text.width() <= room {
                used += text.width();
                row.push((*style, text.clone()));
                continue;
            }
            let mut piece = String::new();
            for character in text.chars() {
                let width = character.width().unwrap_or_default();
                if used + width > room {
                    row.push((*style, std::mem::take(&mut piece)));
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                used += width;
                piece.push(character);
            }
            row.push((*style, piece));
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::Style;

    #[test]
    fn long_lines_are_broken_and_nothing_is_lost() {
        let line = vec![
            (Style::new(), "key: ".to_owned()),
            (style::HINT, "漢字".repeat(20)),
        ];
        let rows = wrapped(&[line, Line::new()], 21);
        let text: String = rows
            .iter()
            .flatten()
            .map(|(_, text)| text.as_str())
            .collect();
        assert_eq!(text, format!("key: {}", "漢字".repeat(20)));
        assert_eq!(rows.len(), 6);
        for row in &rows {
            let width: usize = row.iter().map(|(_, text)| text.width()).sum();
            assert!(width <= 20, "{row:?}");
        }
    }
}
