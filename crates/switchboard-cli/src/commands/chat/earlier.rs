//! Prints the end of a session that is resumed.

use switchboard_agent::message::{Message, Part, Role};

use crate::error::Failure;
use crate::live::painted;
use crate::markdown::{Look, Markdown, wrapped};
use crate::printer::{Printer, paint, style};
use crate::questions::safe;
use crate::screen;
use crate::startup::counted;

/// Messages printed, and lines of each.
const MAX_MESSAGES: usize = 12;
const MAX_LINES: usize = 40;
/// Start of a note to the model.
const NOTE: &str = "[Note of the program";

/// Prints the last messages that have text.
pub(super) fn print(messages: &[Message], printer: &Printer) -> Result<(), Failure> {
    let texts: Vec<(Role, String)> = messages
        .iter()
        .map(|message| (message.role, text(message)))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    let hidden = texts.len().saturating_sub(MAX_MESSAGES);
    if hidden > 0 {
        let note = format!("… {} before", counted(hidden, "message"));
        printer.note(paint(style::QUIET, note));
        printer.note("");
    }
    for (role, text) in texts.iter().skip(hidden) {
        match role {
            Role::User => said(text, printer),
            Role::Assistant => answered(text, printer)?,
        }
        printer.note("");
    }
    Ok(())
}

/// The text of a message, without notes of the program to the model.
pub(super) fn text(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.starts_with(NOTE) => Some(text.trim()),
        _ => None,
    });
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn said(text: &str, printer: &Printer) {
    let width = screen::size().columns.saturating_sub(1);
    let rows = text
        .lines()
        .flat_map(|line| wrapped(&safe(line), "  ", width));
    for (index, row) in rows.take(MAX_LINES).enumerate() {
        let row = match (index, row.strip_prefix("  ")) {
            (0, Some(row)) => format!("{}{row}", paint(style::HINT, "› ")),
            _ => row,
        };
        printer.note(row);
    }
}

fn answered(text: &str, printer: &Printer) -> Result<(), Failure> {
    let mut markdown = Markdown::new(Look {
        width: screen::size().columns.saturating_sub(1),
        styled: printer.colors.stdout,
    });
    let mut rows = markdown.push(text);
    rows.extend(markdown.finish());
    let hidden = rows.len().saturating_sub(MAX_LINES);
    if hidden > 0 {
        let note = format!("… {} before", counted(hidden, "line"));
        printer.note(paint(style::QUIET, note));
    }
    let rows = rows.iter().skip(hidden);
    printer.data(rows.map(|row| painted(row) + "\n").collect::<String>())
}
