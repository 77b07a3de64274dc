//! Prints: data to standard output, everything else to standard error. No other file of this crate prints.
//!
//! Callers sanitize text from files with [`switchboard_config::text::visible`]; JSON is escaped here.

use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde_json::Value;
use switchboard_config::text::is_invisible;

use crate::error::Failure;
use crate::live::Line;
use crate::theme::Theme;
use crate::{json_text, screen, terminal};

pub(crate) use crate::table::{Column, Table};

/// What has been printed to standard output so far.
static PRINTED: AtomicU8 = AtomicU8::new(NOTHING);
const NOTHING: u8 = 0;
const LINES: u8 = 1;
const DOCUMENT: u8 = 2;

/// Whether `--json` occurs anywhere on the command line.
static WANTS_JSON: AtomicBool = AtomicBool::new(false);

/// Makes failures print as JSON from now on.
pub(crate) fn want_json() {
    WANTS_JSON.store(true, Ordering::Relaxed);
}

/// Makes failures print as one line of JSON from now on.
pub(crate) fn want_json_lines() {
    want_json();
    PRINTED.store(LINES, Ordering::Relaxed);
}

/// Never prints failures as JSON: standard output carries another protocol.
pub(crate) fn never_json() {
    WANTS_JSON.store(false, Ordering::Relaxed);
    PRINTED.store(DOCUMENT, Ordering::Relaxed);
}

pub(crate) mod style {
    use super::{AnsiColor, Style};

    pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
    pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    pub(crate) const REMOVED: Style = AnsiColor::Red.on_default();
    pub(crate) const NAME: Style = Style::new().bold();
    pub(crate) const QUIET: Style = Style::new().dimmed();
}

/// Styles a text. The printer removes the style if colour is off.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    let style = Theme::current().of(style);
    format!("{style}{text}{style:#}")
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Colors {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

/// How much is printed besides data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Also warnings and notes.
    Normal,
    /// Also details.
    Verbose,
}

#[derive(Debug, Clone)]
pub(crate) struct Printer {
    pub(crate) colors: Colors,
    pub(crate) verbosity: Verbosity,
    /// Whether the command's output is one JSON document.
    pub(crate) json: bool,
    /// Whether standard error is a terminal with a movable cursor.
    pub(crate) can_draw: bool,
}

impl Printer {
    /// Prints human-readable data, with a final line break.
    pub(crate) fn data(&self, text: impl Display) -> Result<(), Failure> {
        let mut text = text.to_string();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        self.write_data(&text)
    }

    /// Prints a table: fitted to a terminal, complete in a pipe.
    pub(crate) fn table(&self, table: &Table) -> Result<(), Failure> {
        self.data(table.fitted(terminal::width()))
    }

    /// Prints a command's JSON document.
    pub(crate) fn json(&self, value: &Value) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::failed("could not write JSON").because(error))?;
        self.write_data(&(escape_invisible(&text) + "\n"))
    }

    /// Prints a command's JSON document from text, changing only its layout.
    pub(crate) fn json_text(&self, json: &str) -> Result<(), Failure> {
        self.write_data(&(escape_invisible(&json_text::indented(json)) + "\n"))
    }

    /// Prints one line of a JSON stream.
    pub(crate) fn json_line(&self, value: &Value) -> Result<(), Failure> {
        let outcome = self.write_data(&(escape_invisible(&value.to_string()) + "\n"));
        PRINTED.store(LINES, Ordering::Relaxed);
        outcome
    }

    /// Prints one line of a JSON stream from text.
    pub(crate) fn json_line_text(&self, json: &str) -> Result<(), Failure> {
        let outcome = self.write_data(&(escape_invisible(json) + "\n"));
        PRINTED.store(LINES, Ordering::Relaxed);
        outcome
    }

    pub(crate) fn is_on_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Prints bytes unchanged, for other programs to read.
    pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
        PRINTED.store(DOCUMENT, Ordering::Relaxed);
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::output(&error))
    }

    fn write_data(&self, text: &str) -> Result<(), Failure> {
        PRINTED.store(DOCUMENT, Ordering::Relaxed);
        // One write: `AutoStream` would strip styles line by line.
        let stripped;
        let text = if self.colors.stdout {
            text
        } else {
            stripped = strip_str(text).to_string();
            &stripped
        };
        if screen::print(text) {
            return Ok(());
        }
        let mut stdout = AutoStream::always_ansi(io::stdout().lock());
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::output(&error))
    }

    /// Whether live lines may be drawn on standard error.
    pub(crate) fn is_live(&self) -> bool {
        self.can_draw && self.verbosity >= Verbosity::Normal && !self.json
    }

    /// Writes to the terminal, cursor movements included.
    #[expect(clippy::unused_self, reason = "everything that prints has a printer")]
    pub(crate) fn draw(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes());
        let _ = stderr.flush();
    }

    /// Styles a text for standard error, for output that bypasses this printer.
    pub(crate) fn styled(&self, style: Style, text: impl Display) -> String {
        if self.colors.stderr {
            paint(style, text)
        } else {
            text.to_string()
        }
    }

    /// A line for standard error, for output that bypasses this printer.
    pub(crate) fn shown(&self, line: &Line) -> String {
        let piece = |(style, text): &(Style, String)| self.styled(*style, text);
        line.iter().map(piece).collect()
    }

    /// Prints a message to standard error.
    pub(crate) fn note(&self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.write_error(&format!("{text}\n"));
        }
    }

    /// Prints a message if verbose.
    pub(crate) fn detail(&self, text: impl Display) {
        if self.verbosity >= Verbosity::Verbose {
            self.write_error(&format!("{}\n", paint(style::QUIET, text)));
        }
    }

    pub(crate) fn warning(&self, message: impl Display, hint: Option<&str>) {
        if self.verbosity >= Verbosity::Normal {
            let mut text = format!("{} {message}\n", paint(style::WARNING, "warning:"));
            if let Some(hint) = hint {
                let _ = writeln!(text, "  {} {hint}", paint(style::HINT, "hint:"));
            }
            self.write_error(&for_terminal(text));
        }
    }

    /// Prints why a command failed: as text, and as JSON if requested and no document was printed yet.
    pub(crate) fn failure(&self, failure: &Failure) {
        let is_wanted = self.json || WANTS_JSON.load(Ordering::Relaxed);
        let error = failure.to_json();
        // A failed write cannot be reported.
        let _ = match PRINTED.load(Ordering::Relaxed) {
            NOTHING if is_wanted => self.json(&error),
            LINES if is_wanted => self.json_line(&error),
            _ => Ok(()),
        };
        let mut text = format!("{} {}\n", paint(style::ERROR, "error:"), failure.message);
        for cause in &failure.causes {
            let _ = writeln!(text, "  because {cause}");
        }
        for hint in &failure.hints {
            let _ = writeln!(text, "  {} {hint}", paint(style::HINT, "hint:"));
        }
        self.write_error(&for_terminal(text));
    }

    /// Prints a prompt, without a line break.
    pub(crate) fn ask(&self, question: impl Display) {
        self.write_error(&question.to_string());
    }

    /// Writes to standard error. A failed write cannot be reported.
    fn write_error(&self, text: &str) {
        if screen::is_active() {
            let plain;
            let text = if self.colors.stderr {
                text
            } else {
                plain = strip_str(text).to_string();
                &plain
            };
            screen::print(text);
            return;
        }
        let mut stderr = AutoStream::new(io::stderr().lock(), choice(self.colors.stderr));
        let _ = stderr.write_all(text.as_bytes());
        let _ = stderr.flush();
    }
}

/// Breaks lines between words if standard error is a terminal.
fn for_terminal(text: String) -> String {
    match terminal::error_size() {
        Some(size) => terminal::wrapped(&text, size.columns.saturating_sub(1)),
        None => text,
    }
}

fn choice(colored: bool) -> ColorChoice {
    if colored {
        ColorChoice::AlwaysAnsi
    } else {
        ColorChoice::Never
    }
}

/// Escapes the control and invisible characters that JSON itself leaves unescaped.
fn escape_invisible(json: &str) -> String {
    let hidden =
        |character: char| is_invisible(character) || (character.is_control() && character != '\n');
    if !json.contains(hidden) {
        return json.to_owned();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if hidden(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_no_character_that_fools_a_terminal() {
        let value = serde_json::json!({"a": "x\u{202e}y\u{9b}z\u{e0041}\u{1b}ü"});
        let text = escape_invisible(&value.to_string());
        assert_eq!(text, "{\"a\":\"x\\u202ey\\u009bz\\udb40\\udc41\\u001bü\"}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
