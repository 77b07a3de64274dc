//! Prints diagnostics of configuration files: in full for `config check`, in short for every other command.

use std::fmt::Write as _;

use serde_json::{Value, json};
use switchboard_config::diagnostic::{Diagnostic, Place, Severity};
use switchboard_config::source::Position;
use switchboard_config::text::visible;

use crate::excerpt::excerpt;
use crate::printer::{Printer, Verbosity, paint, style};

/// Diagnostics printed in short; the rest is left to `config check`.
const IN_PASSING: usize = 10;

/// Whether [`in_passing`] prints all of the diagnostics.
pub(crate) fn shows_all(diagnostics: &[Diagnostic], printer: &Printer) -> bool {
    printer.verbosity == Verbosity::Verbose || diagnostics.len() <= IN_PASSING
}

/// Prints diagnostics as warnings, for commands that are about something else.
pub(crate) fn in_passing(diagnostics: &[Diagnostic], printer: &Printer) {
    let shown = if printer.verbosity == Verbosity::Verbose {
        diagnostics.len()
    } else {
        IN_PASSING
    };
    for diagnostic in diagnostics.iter().take(shown) {
        let place = diagnostic.place.to_string();
        let message = format!("{}: {}", visible(&place), visible(&diagnostic.message));
        let hint = diagnostic.hint.as_deref().map(visible);
        printer.warning(message, hint.as_deref());
    }
    if diagnostics.len() > shown {
        let rest = diagnostics.len() - shown;
        let hint = "run `switchboard config check` to see all of them";
        printer.warning(format!("{rest} more findings are not shown"), Some(hint));
    }
}

/// One diagnostic in full, with its source line.
pub(crate) fn at_length(diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => style::ERROR,
        Severity::Warning => style::WARNING,
    };
    let heading = format!("{}[{}]", diagnostic.severity, diagnostic.code);
    let mut text = format!(
        "{}: {}\n",
        paint(severity, heading),
        paint(style::NAME, visible(&diagnostic.message))
    );
    let place = diagnostic.place.to_string();
    let _ = writeln!(text, "  {} {}", paint(style::QUIET, "-->"), visible(&place));
    let lines = match &diagnostic.place {
        Place::At(origin) => excerpt(origin),
        _ => None,
    };
    if let Some(lines) = lines {
        let number = lines.line_number.to_string();
        let gutter = " ".repeat(number.len());
        let bar = paint(style::QUIET, format!("{gutter} |"));
        let numbered = paint(style::QUIET, format!("{number} |"));
        let mark = paint(severity, "^".repeat(lines.width));
        let indent = " ".repeat(lines.indent);
        let _ = writeln!(
            text,
            "{bar}\n{numbered} {}\n{bar} {indent}{mark}",
            lines.line
        );
    }
    if let Some(server) = &diagnostic.server {
        let _ = writeln!(text, "  server: {}", visible(server));
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(text, "  {} {}", paint(style::HINT, "hint:"), visible(hint));
    }
    text
}

/// One diagnostic as JSON, for scripts.
pub(crate) fn to_json(diagnostic: &Diagnostic) -> Value {
    let (file, position) = match &diagnostic.place {
        Place::At(origin) => (Some(origin.path().to_owned()), Some(origin.position())),
        Place::Position(path, position) => (Some(path.clone()), Some(*position)),
        Place::File(path) => (Some(path.clone()), Some(Position { line: 1, column: 1 })),
        Place::Outside(_) => (None, None),
    };
    json!({
        "severity": diagnostic.severity.to_string(),
        "code": diagnostic.code,
        "message": diagnostic.message,
        "file": file.map(|path| path.display().to_string()),
        "line": position.map(|position| position.line),
        "column": position.map(|position| position.column),
        "server": diagnostic.server,
        "hint": diagnostic.hint,
    })
}
