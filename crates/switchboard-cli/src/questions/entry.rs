//! A cancellable single-line editor, for form fields.
//!
//! The server may cancel its request before the user answers.

use std::io;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printer::Printer;
use crate::terminal::{self, Key, Keyboard};

/// Maximum length of a line, in bytes.
const MAX_BYTES: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    Line(String),
    /// Escape, Ctrl-D, or the end of the input.
    Left,
}

/// Reads a line after a prompt. The prompt must be sanitized.
pub(crate) async fn line(
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
            Key::Character(character) => {
                let before = text.len();
                add(&mut text, character, MAX_BYTES);
                if text.len() > before {
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
                let word_start = text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                let word = text.get(word_start..).unwrap_or_default().chars().count();
                erase(printer, prompt, &mut text, word);
            }
            _ => {}
        }
    };
    printer.ask("\n");
    Ok(entered)
}

/// Adds a character, unless the user could not see it or the text is too long.
pub(crate) fn add(text: &mut String, character: char, most: usize) {
    if text.len() < most && character.width().is_some_and(|width| width > 0) {
        text.push(character);
    }
}

fn erase(printer: &Printer, prompt: &str, text: &mut String, count: usize) {
    for _ in 0..count {
        let Some(removed) = text.pop() else { break };
        if !printer.can_draw {
            for _ in 0..removed.width().unwrap_or_default() {
                printer.draw("\u{8} \u{8}");
            }
        }
    }
    if printer.can_draw {
        redraw(printer, prompt, text);
    }
}

/// Redraws the prompt and the end of the text, as far as it fits.
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
