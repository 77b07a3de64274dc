//! A line that is typed in the middle of something else: one field of a form.
//!
//! The line editor of the chat's prompt cannot be called off from outside; this one can, because whoever asked may go
//! away before anybody answers.

use std::io;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printer::Printer;
use crate::terminal::{self, Key, Keyboard};

/// More than anybody types into a form.
const LONGEST: usize = 16 * 1024;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Line(String),
    /// Escape, Ctrl-D, or the end of the input.
    Left,
}

/// Reads a line after a prompt. The prompt is safe to show.
pub(super) async fn line(
    keyboard: &mut Keyboard,
    printer: &Printer,
    prompt: &str,
) -> io::Result<Entered> {
    printer.ask(prompt);
    let mut text = String::new();
    let entered = loop {
        match keyboard.key().await? {
            Key::Enter => break Entered::Line(text),
            Key::Escape => break Entered::Left,
            Key::End if text.is_empty() => break Entered::Left,
            Key::Character(character) if text.len() < LONGEST => {
                // A character that could not be seen cannot be meant.
                if character.width().is_some_and(|width| width > 0) {
                    text.push(character);
                    if printer.can_draw {
                        redraw(printer, prompt, &text);
                    } else {
                        printer.draw(character.encode_utf8(&mut [0; 4]));
                    }
                }
            }
            Key::Backspace => erase(printer, prompt, &mut text, 1),
            Key::EraseLine => {
                let all = text.chars().count();
                erase(printer, prompt, &mut text, all);
            }
            Key::EraseWord => {
                let kept = text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                let word = text.get(kept..).unwrap_or_default().chars().count();
                erase(printer, prompt, &mut text, word);
            }
            Key::Character(_) | Key::End | Key::Other => {}
        }
    };
    printer.ask("\n");
    Ok(entered)
}

fn erase(printer: &Printer, prompt: &str, text: &mut String, count: usize) {
    for _ in 0..count {
        let Some(gone) = text.pop() else { break };
        if !printer.can_draw {
            for _ in 0..gone.width().unwrap_or_default() {
                printer.draw("\u{8} \u{8}");
            }
        }
    }
    if printer.can_draw {
        redraw(printer, prompt, text);
    }
}

/// Draws the line anew: the prompt, and as much of the end of the text as there is room for.
fn redraw(printer: &Printer, prompt: &str, text: &str) {
    let columns = terminal::error_size().map_or(80, |size| size.columns);
    let plain = anstream::adapter::strip_str(prompt).to_string();
    let room = columns.saturating_sub(plain.width() + 1).max(8);
    let mut shown = text;
    while shown.width() > room {
        let mut characters = shown.chars();
        characters.next();
        shown = characters.as_str();
    }
    let prompt = if printer.colors.stderr {
        prompt
    } else {
        &plain
    };
    let shown = printer.styled(Style::new(), shown);
    printer.draw(&format!("\r\u{1b}[K{prompt}{shown}"));
}
