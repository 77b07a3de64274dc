//! The screen of an interactive chat: what is printed goes to the terminal's scrollback, and below it is a live area.
//!
//! Owns the terminal while a chat runs. The area has three layers: the work that is in progress, and below it either a
//! panel (a question to the user) or the input. Everything goes through one lock and is written at once. The last
//! output is kept, so that it can be wrapped again when the terminal's width changes.

mod area;
mod transcript;

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::area::Area;
pub(crate) use self::area::Position;
use self::transcript::Transcript;
use crate::live::Line;
use crate::terminal::{self, Size};

/// Assumed size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

/// Rows of a layer, and the place of the cursor in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) rows: Vec<Line>,
    pub(crate) cursor: Option<Position>,
}

struct Screen {
    area: Area,
    work: Vec<Line>,
    panel: Option<Frame>,
    input: Frame,
    size: Size,
    transcript: Transcript,
    is_styled: bool,
    /// The start of a line whose end has not been printed yet.
    partial: String,
    /// Increases when the size changes.
    generation: u64,
    /// Whether another program or view has the terminal, so that nothing may be written.
    is_suspended: bool,
    /// Output printed meanwhile.
    held: String,
}

static SCREEN: Mutex<Option<Screen>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Screen>> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `change` on the screen if there is one, and writes the bytes that it returns.
fn with(change: impl FnOnce(&mut Screen) -> String) {
    let mut place = lock();
    if let Some(screen) = place.as_mut() {
        let bytes = change(screen);
        if !screen.is_suspended {
            write(&bytes);
        }
    }
}

fn write(bytes: &str) {
    if bytes.is_empty() {
        return;
    }
    let mut terminal = std::io::stderr().lock();
    // A failed write cannot be reported.
    let _ = terminal.write_all(bytes.as_bytes());
    let _ = terminal.flush();
}

/// The size of the terminal.
pub(crate) fn size() -> Size {
    terminal::error_size().unwrap_or(DEFAULT_SIZE)
}

/// Takes the terminal. The cursor must be at the start of a line.
pub(crate) fn start(is_styled: bool) {
    *lock() = Some(Screen {
        area: Area::new(is_styled),
        work: Vec::new(),
        panel: None,
        input: Frame::default(),
        size: size(),
        transcript: Transcript::new(is_styled),
        is_styled,
        partial: String::new(),
        generation: 0,
        is_suspended: false,
        held: String::new(),
    });
    // Pasted text arrives marked as such.
    write("\u{1b}[?2004h");
}

/// Removes the live area and releases the terminal.
pub(crate) fn stop() {
    let mut place = lock();
    if let Some(mut screen) = place.take() {
        let mut bytes = screen.area.erase();
        bytes.push_str(&screen.partial);
        bytes.push_str("\u{1b}[?25h\u{1b}[?2004l");
        write(&bytes);
    }
}

/// Like [`stop`], for a program that exits at once: does nothing while a thread that may hang uses the screen.
pub(crate) fn abandon() {
    let Ok(mut place) = SCREEN.try_lock() else {
        return;
    };
    if place.take().is_some() {
        write("\u{1b}[?25h\u{1b}[?2004l\n");
    }
}

pub(crate) fn is_active() -> bool {
    lock().is_some()
}

/// A number that changes with the size of the terminal.
pub(crate) fn generation() -> u64 {
    lock().as_ref().map_or(0, |screen| screen.generation)
}

/// Prints text above the live area. Returns `false` if there is no screen.
pub(crate) fn print(text: &str) -> bool {
    let mut is_there = false;
    with(|screen| {
        is_there = true;
        screen.partial.push_str(text);
        let Some(end) = screen.partial.rfind('\n') else {
            return String::new();
        };
        let rest = screen.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut screen.partial, rest);
        screen.transcript.printed(&whole);
        screen.print(&whole)
    });
    is_there
}

/// Prints rows of a text above the live area and replaces the work below them. Writes only what is new.
pub(crate) fn text(rows: &[Line], work: Vec<Line>) {
    with(|screen| {
        screen.transcript.streamed(rows);
        screen.work = work;
        screen.draw(rows)
    });
}

/// Replaces the rows of the text that is being received, after the width changed.
pub(crate) fn wrap_text_again(rows: Vec<Line>) {
    with(|screen| {
        screen.transcript.replace_stream(rows);
        screen.redraw()
    });
}

/// Ends the text that is being received. `source` is its Markdown.
pub(crate) fn end_text(source: &str) {
    with(|screen| {
        screen.transcript.end_stream(source);
        String::new()
    });
}

/// Replaces the lines about work in progress. Returns `false` if there is no screen.
pub(crate) fn set_work(rows: Vec<Line>) -> bool {
    let mut is_there = false;
    with(|screen| {
        is_there = true;
        screen.work = rows;
        screen.draw(&[])
    });
    is_there
}

/// Shows a panel in place of the input, or the input again.
pub(crate) fn set_panel(panel: Option<Frame>) {
    with(|screen| {
        screen.panel = panel;
        screen.draw(&[])
    });
}

pub(crate) fn set_input(input: Frame) {
    with(|screen| {
        screen.input = input;
        screen.draw(&[])
    });
}

/// Draws the screen again in its current size.
pub(crate) fn resized() {
    with(|screen| {
        screen.size = size();
        screen.generation += 1;
        screen.redraw()
    });
}

/// Leaves the terminal to another view until [`resume`].
pub(crate) fn suspend() {
    with(|screen| screen.area.erase());
    if let Some(screen) = lock().as_mut() {
        screen.is_suspended = true;
    }
}

/// Asks the terminal something. The answer arrives among the keys.
#[cfg(unix)]
pub(crate) fn write_query(query: &str) {
    with(|_| query.to_owned());
}

/// Writes to the terminal while the screen is suspended.
pub(crate) fn write_suspended(bytes: &str) {
    write(bytes);
}

/// Prints an image above the live area. In another width, only its caption is printed again.
pub(crate) fn picture(sequence: &str, caption: &str) {
    with(|screen| {
        screen.transcript.printed(caption);
        screen.print(sequence) + &screen.print(caption)
    });
}

/// Takes the terminal back, with the cursor where [`suspend`] left it.
pub(crate) fn resume() {
    with(|screen| {
        screen.is_suspended = false;
        let held = std::mem::take(&mut screen.held);
        screen.size = size();
        screen.area.erase() + &held + &screen.draw(&[])
    });
}

impl Screen {
    fn print(&mut self, text: &str) -> String {
        if self.is_suspended {
            self.held.push_str(text);
            return String::new();
        }
        let erased = self.area.erase();
        let frame = self.frame();
        let drawn = self
            .area
            .update(&[], &frame.rows, frame.cursor, self.size.columns);
        synchronized(&format!("{erased}{text}{drawn}"))
    }

    /// Draws the area below new rows of text.
    fn draw(&mut self, above: &[Line]) -> String {
        if self.is_suspended {
            for row in above {
                self.held
                    .push_str(&transcript::line_text(row, self.is_styled));
            }
            return String::new();
        }
        let frame = self.frame();
        if above.len() + frame.rows.len().max(self.area.height()) >= self.size.rows {
            let line = |row| transcript::line_text(row, self.is_styled);
            let text: String = above.iter().map(line).collect();
            let erased = self.area.erase();
            let drawn = self
                .area
                .update(&[], &frame.rows, frame.cursor, self.size.columns);
            return synchronized(&format!("{erased}{text}{drawn}"));
        }
        let drawn = self
            .area
            .update(above, &frame.rows, frame.cursor, self.size.columns);
        if self.area.changed() > 1 {
            synchronized(&drawn)
        } else {
            drawn
        }
    }

    /// The rows of the area, as many as fit on the screen.
    fn frame(&self) -> Frame {
        let below = self.panel.as_ref().unwrap_or(&self.input);
        let most = self.size.rows.saturating_sub(1).max(1);
        let cut = below.rows.len().saturating_sub(most);
        let room = most.saturating_sub(below.rows.len());
        let hidden = self.work.len().saturating_sub(room);
        let work = self.work.iter().skip(hidden);
        let work_rows = self.work.len() - hidden;
        let rows = work.chain(below.rows.iter().skip(cut)).cloned().collect();
        let cursor = below
            .cursor
            .map(|(row, column)| (row.saturating_sub(cut) + work_rows, column));
        Frame { rows, cursor }
    }

    /// Clears the screen and prints the end of the output again, wrapped to the current width.
    fn redraw(&mut self) -> String {
        if self.is_suspended {
            return String::new();
        }
        let frame = self.frame();
        let room = self.size.rows.saturating_sub(frame.rows.len().max(1));
        let shown = self.transcript.tail(self.size.columns, room);
        self.area.erase();
        // What was on the screen before the chat moves to the scrollback.
        let keep = if shown.is_all {
            "\n".repeat(self.size.rows)
        } else {
            String::new()
        };
        let drawn = self
            .area
            .update(&[], &frame.rows, frame.cursor, self.size.columns);
        synchronized(&format!(
            "\u{1b}[{};1H{keep}\u{1b}[H\u{1b}[J{}{drawn}",
            self.size.rows, shown.text
        ))
    }
}

/// Has terminals that support it show a change at once.
fn synchronized(bytes: &str) -> String {
    format!("\u{1b}[?2026h{bytes}\u{1b}[?2026l")
}
