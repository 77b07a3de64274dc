//! The question to the person at the terminal: what will happen, why it is asked, and one key for the answer.

use std::path::PathBuf;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard::catalog::text::neutralise;
use switchboard::permissions::{Answer, Approver, Because, Question};
use switchboard_config::mask;
use switchboard_config::text::visible;

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr as _;

use crate::cli::WritableScope;
use crate::context::Context;
use crate::local_file::Target;
use crate::printer::{Printer, paint, style};
use crate::terminal::{self, fitted};
use crate::{live, store, view};

/// So many arguments are shown, and of each so many columns where the terminal does not say.
const SHOWN_ARGUMENTS: usize = 8;
const COLUMNS: usize = 100;
/// No more of one argument is looked at.
const LONGEST_ARGUMENT: usize = 2000;

/// Asks on the terminal.
pub(crate) struct Terminal {
    printer: Printer,
    home: PathBuf,
    state: PathBuf,
    /// The file that a rule goes to.
    target: Target,
}

impl Terminal {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            printer: context.printer.clone(),
            home: context.environment.home.clone(),
            state: context.environment.state.clone(),
            target: Target::of_scope(WritableScope::User, context),
        }
    }

    /// The question in a few lines.
    fn question(&self, question: &Question<'_>) -> String {
        let subject = &question.subject;
        let tool = paint(style::NAME, safe(subject.tool));
        let mut lines = vec![match subject.server {
            Some(server) => {
                let server = paint(style::NAME, safe(server));
                format!(
                    "{} {tool} of the server {server}?",
                    paint(style::WARNING, "call")
                )
            }
            None => format!("{} {tool}?", paint(style::WARNING, "call")),
        }];
        let columns = terminal::error_size().map_or(COLUMNS, |size| size.columns);
        for line in arguments(question.arguments) {
            lines.push(format!("  {}", fitted(&line, columns.saturating_sub(3))));
        }
        let because = match question.because {
            Because::Rule { tool, origin } => {
                let place = view::place(origin, &self.home);
                format!("the rule \"{}\" asks, at {place}", safe(tool))
            }
            Because::Hook {
                origin: Some(origin),
            } => format!("the hook at {} asks", view::place(origin, &self.home)),
            other => safe(&other.to_string()),
        };
        lines.push(paint(style::QUIET, format!("  because {because}")));
        if let Some(remark) = question.remark {
            lines.push(format!(
                "  {}",
                fitted(&safe(remark), columns.saturating_sub(3))
            ));
        }
        let key = |key: &str| paint(style::NAME, key);
        let always = if question.can_remember {
            let file = view::path(&self.target.path, &self.home);
            format!("  {} always, a rule in {file}", key("a"))
        } else {
            String::new()
        };
        let choices = |between: &str| {
            format!(
                "  {} once  {} until this program ends{between}{always}  {} no (default) ",
                key("y"),
                key("s"),
                key("n")
            )
        };
        let line = choices("");
        let is_narrow = strip_str(&line).to_string().width() >= columns;
        lines.push(if is_narrow && question.can_remember {
            choices("\n")
        } else {
            line
        });
        lines.join("\n")
    }

    fn write_rule(&self, tool: &str) -> Result<(), String> {
        let written = store::add_rule(&self.target, &self.state, tool, "allow");
        let file = view::path(&self.target.path, &self.home);
        match written {
            Ok(()) => {
                let tool = paint(style::NAME, safe(tool));
                self.printer
                    .note(format!("{tool} is allowed from now on: {file}"));
                Ok(())
            }
            Err(failure) => {
                let causes = failure.causes.join("; ");
                let message = format!("no rule was written: {}: {causes}", failure.message);
                self.printer.warning(
                    &message,
                    Some("this call, and those until the program ends, are allowed"),
                );
                Err(message)
            }
        }
    }
}

impl Approver for Terminal {
    fn is_there(&self) -> bool {
        terminal::is_there()
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        async move {
            // Nothing that moves may be drawn over the question.
            let _floor = live::floor(&self.printer).await;
            terminal::forget_keys();
            self.printer.ask(self.question(&question));
            let key = terminal::next_key().await;
            self.printer.ask(terminal::echo(&key));
            match key {
                Ok(Some('y' | 'Y')) => Answer::Once,
                Ok(Some('s' | 'S')) => Answer::Session,
                Ok(Some('a' | 'A')) if question.can_remember => Answer::Always,
                _ => Answer::No,
            }
        }
        .boxed()
    }

    fn remember<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Result<(), String>> {
        async move { self.write_rule(tool) }.boxed()
    }
}

/// The arguments, a line each, with secrets masked and nothing in them that fools a terminal.
pub(crate) fn arguments(arguments: Option<&RawValue>) -> Vec<String> {
    let parsed = arguments.map(|raw| serde_json::from_str::<Value>(raw.get()));
    let Some(Ok(Value::Object(members))) = parsed else {
        return Vec::new();
    };
    let mut lines: Vec<String> = members
        .iter()
        .take(SHOWN_ARGUMENTS)
        .map(|(name, value)| argument(name, value))
        .collect();
    if members.len() > SHOWN_ARGUMENTS {
        lines.push(format!("… and {} more", members.len() - SHOWN_ARGUMENTS));
    }
    lines
}

fn argument(name: &str, value: &Value) -> String {
    let text = match masked(name, value) {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let short: String = text.chars().take(LONGEST_ARGUMENT).collect();
    // A line break is nothing that is hidden, and one line has to do.
    let short = short.trim_end().replace("\r\n", "\n").replace('\n', " ⏎ ");
    format!("{}: {}", safe(name), safe(&short))
}

/// A value with everything masked in it that sounds or looks secret.
fn masked(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask::named(name, text).into_owned()),
        Value::Array(items) => items.iter().map(|item| masked(name, item)).collect(),
        Value::Object(members) => {
            let shown = |(name, value): (&String, &Value)| (name.clone(), masked(name, value));
            Value::Object(members.iter().map(shown).collect())
        }
        other => other.clone(),
    }
}

fn safe(text: &str) -> String {
    visible(&neutralise(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_shown_without_secrets_and_tricks() {
        let check = |given: Value, expected: &[&str]| {
            let raw = serde_json::value::to_raw_value(&given).unwrap();
            assert_eq!(arguments(Some(&raw)), expected, "{given}");
        };
        check(json!({}), &[]);
        check(json!({"message": "hi", "n": 5}), &["message: hi", "n: 5"]);
        check(json!({"api_token": "abc"}), &["api_token: ********"]);
        check(json!({"run": "cd a\nls\n"}), &["run: cd a ⏎ ls"]);
        check(json!({"command": "cd a\nls\n"}), &["command: cd a ⏎ ls"]);
        check(
            json!({"x": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}),
            &["x: ********"],
        );
        check(
            json!({"o": {"password": "p"}}),
            &[r#"o: {"password":"********"}"#],
        );
        check(json!({"a": "\u{1b}[31mred\u{202e}"}), &["a: red\\u{202e}"]);
        let many: serde_json::Map<_, _> = (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
        assert_eq!(
            arguments(Some(&serde_json::value::to_raw_value(&many).unwrap()))
                .last()
                .unwrap(),
            "… and 12 more"
        );
    }
}
