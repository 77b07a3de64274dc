//! The permission prompt on the terminal: shows the call and the reason for asking, and reads a one-key answer.
//!
//! Owns the layout. The content comes from the host's [`ConsentView`]; approving requires that all of it has been on
//! the screen.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use switchboard::internal::catalog::text::neutralise;
use switchboard::permissions::{
    Approver, Because, ConsentView, GrantPlace, Offer, PromptAnswer, Question, Screen,
};
use switchboard_config::edit::NewRule;
use switchboard_config::text::visible;
use switchboard_config::trust;

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr as _;

use crate::cli::WritableScope;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::local_file::Target;
use crate::printer::{Printer, paint, style};
use crate::terminal::{self, Key, Keyboard, Size, fitted};
use crate::{live, store, view};

/// Assumed size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size {
    columns: 100,
    rows: 30,
};
/// Rows that the prompt needs besides the call.
const ROWS_AROUND: usize = 8;
/// Characters shown of one argument.
const MAX_ARGUMENT_CHARS: usize = 2000;
/// Arguments shown in the summary.
const MAX_ARGUMENTS: usize = 8;

/// Prompts on the terminal.
pub(crate) struct Terminal {
    context: Context,
}

impl Terminal {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
        }
    }

    fn printer(&self) -> &Printer {
        &self.context.printer
    }

    /// Returns the prompt's text, cut to the terminal, and whether it contains the complete call.
    fn question(&self, question: &Question<'_>, view: &ConsentView, size: Size) -> (String, bool) {
        let tool = paint(style::NAME, &view.tool);
        let mut lines = vec![match &view.server {
            Some(server) => {
                let server = paint(style::NAME, server);
                format!(
                    "{} {tool} of server {server}?",
                    paint(style::WARNING, "call")
                )
            }
            None => format!("{} {tool}?", paint(style::WARNING, "call")),
        }];
        let folded = view.folded(Screen {
            columns: size.columns.saturating_sub(1),
            rows: size.rows.saturating_sub(ROWS_AROUND),
        });
        let has_preview = question.preview.is_some();
        lines.extend(folded.rows.iter().map(|row| painted(row, has_preview)));
        let because = match question.because {
            Because::Rule { tool, origin } => {
                let place = view::place(origin, &self.context.environment.home);
                format!("the rule \"{}\" asks, at {place}", safe(tool))
            }
            Because::Hook {
                origin: Some(origin),
            } => format!(
                "the hook at {} asks",
                view::place(origin, &self.context.environment.home)
            ),
            other => safe(&other.to_string()),
        };
        lines.push(paint(style::QUIET, format!("  because {because}")));
        if let Some(remark) = question.remark {
            let room = size.columns.saturating_sub(3);
            lines.push(format!("  {}", fitted(&safe(remark), room)));
        }
        (lines.join("\n"), folded.is_complete())
    }

    /// Returns the line of possible keys. `width` is the index of the offered grant.
    fn choices(&self, offers: &[Offer], width: usize, is_shown: bool, columns: usize) -> String {
        let key = |key: &str| paint(style::NAME, key);
        let mut text = String::new();
        let offer = offers.get(width);
        let is_written = offer.is_some_and(|offer| offer.rule.is_some());
        if let Some(offer) = offer {
            let keys = match (is_written, self.has_project()) {
                (true, true) => "s, p, a",
                (true, false) => "s, a",
                (false, _) => "s",
            };
            let wider = match offers.len() {
                1 => String::new(),
                _ => format!("  ({} other)", key("w")),
            };
            text = format!(
                "  {} allow from now on: {}{wider}\n",
                key(keys),
                offer.words
            );
        }
        let mut choices = Vec::new();
        if !is_shown {
            choices.push(format!("{} show all of it", key("v")));
        }
        choices.push(format!("{} once", key("y")));
        if offer.is_some() {
            choices.push(format!("{} until this program ends", key("s")));
        }
        if is_written && self.has_project() {
            choices.push(format!("{} in this project", key("p")));
        }
        if is_written {
            choices.push(format!("{} everywhere", key("a")));
        }
        choices.push(format!("{} no (default) ", key("n")));
        let mut used = 0;
        for choice in choices {
            let needed = strip_str(&choice).to_string().width() + 2;
            if used > 0 && used + needed >= columns {
                text.push('\n');
                used = 0;
            }
            used += needed;
            text.push_str("  ");
            text.push_str(&choice);
        }
        text
    }

    fn has_project(&self) -> bool {
        !self.context.flags.no_project
    }

    /// Prompts until the user gives a valid answer.
    async fn answer(&self, question: &Question<'_>) -> PromptAnswer {
        let printer = self.printer();
        let size = terminal::error_size().unwrap_or(DEFAULT_SIZE);
        let view = ConsentView::of(question);
        let (text, mut is_shown) = self.question(question, &view, size);
        printer.ask(format!("{text}\n"));
        let mut width = 0;
        // One keyboard for all keys: keys typed ahead must not be lost between two reads.
        let Ok(mut keyboard) = Keyboard::open() else {
            return PromptAnswer::No;
        };
        loop {
            printer.ask(self.choices(question.offers, width, is_shown, size.columns));
            let Ok(Key::Character(key)) = keyboard.key().await else {
                printer.ask("\n");
                return PromptAnswer::No;
            };
            printer.ask(format!("{}\n", safe(&key.to_string())));
            let offer = question.offers.get(width);
            let place = match key.to_ascii_lowercase() {
                'v' => {
                    let rows = view.unfolded(size.columns.saturating_sub(1));
                    let has_preview = question.preview.is_some();
                    for row in rows {
                        printer.ask(format!("{}\n", painted(&row, has_preview)));
                    }
                    is_shown = true;
                    continue;
                }
                'w' if question.offers.len() > 1 => {
                    width = (width + 1) % question.offers.len();
                    continue;
                }
                'y' => None,
                's' if offer.is_some() => Some(GrantPlace::Session),
                'p' if self.has_project() && offer.is_some_and(|offer| offer.rule.is_some()) => {
                    Some(GrantPlace::Project)
                }
                'a' if offer.is_some_and(|offer| offer.rule.is_some()) => Some(GrantPlace::User),
                _ => return PromptAnswer::No,
            };
            // Nothing can be approved before it has been shown.
            if !is_shown {
                let refusal = "  part of the call is not shown: press v to see it first";
                printer.ask(format!("{}\n", paint(style::WARNING, refusal)));
                continue;
            }
            return match place {
                None => PromptAnswer::Once,
                Some(place) => PromptAnswer::Grant {
                    offer: width,
                    place,
                },
            };
        }
    }

    fn write_rule(&self, rule: &NewRule, place: GrantPlace) -> Result<(), String> {
        let scope = match place {
            GrantPlace::Project => WritableScope::Local,
            _ => WritableScope::User,
        };
        let target = Target::of_scope(scope, &self.context);
        let written = match scope {
            WritableScope::Local => self.write_local_rule(rule, &target),
            _ => store::add_rule(&target, &self.context, rule),
        };
        let file = view::path(&target.path, &self.context.environment.home);
        match written {
            Ok(()) => {
                let tool = paint(style::NAME, safe(&rule.tool));
                self.printer().note(format!(
                    "a rule for {tool} was added to {file}; delete it to be asked again"
                ));
                Ok(())
            }
            Err(failure) => {
                let causes = failure.causes.join("; ");
                let message = format!("no rule was written: {}: {causes}", failure.message);
                self.printer()
                    .warning(&message, Some("this call is allowed, once"));
                Err(message)
            }
        }
    }

    /// Adds a rule to the project's local file and approves the file. Fails if it contains rules that are not approved
    /// yet: they would be approved along with it.
    fn write_local_rule(&self, rule: &NewRule, target: &Target) -> Result<(), Failure> {
        let context = &self.context;
        let name = target.path.file_name().map(|name| name.to_string_lossy());
        let is_local = |question: &trust::Question| match &question.subject {
            trust::Subject::Section { file, part } => {
                *part == "permissions" && Some(file.as_str()) == name.as_deref()
            }
            trust::Subject::Server(_) => false,
        };
        let before = context.load_files(context.decisions());
        if !context.flags.trust_project && before.questions.iter().any(|each| is_local(each)) {
            let message = format!("the rules in {} are not approved", target.shown());
            return Err(Failure::new(Exit::Denied, message)
                .because("adding a rule would approve the others, too")
                .hint("review them with `switchboard trust diff`, then approve or remove them"));
        }
        store::add_rule(target, context, rule)?;
        let after = context.load_files(context.decisions());
        let Some(question) = after.questions.iter().find(|each| is_local(each)) else {
            return Ok(());
        };
        let (subject, fingerprint) = (question.subject.clone(), question.fingerprint.clone());
        store::change_decisions(context, |decisions, now| {
            decisions.approve(&context.project, &subject, fingerprint, now);
        })
    }
}

impl Approver for Terminal {
    fn is_there(&self) -> bool {
        terminal::is_there()
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer> {
        async move {
            // Live lines must not be drawn over the prompt.
            let _lock = live::lock_terminal(self.printer()).await;
            terminal::discard_keys();
            self.answer(&question).await
        }
        .boxed()
    }

    fn remember<'a>(
        &'a self,
        rule: &'a NewRule,
        place: GrantPlace,
    ) -> BoxFuture<'a, Result<(), String>> {
        async move { self.write_rule(rule, place) }.boxed()
    }
}

/// Highlights added and removed lines of a preview.
fn painted(row: &str, has_preview: bool) -> String {
    let line = row.strip_prefix("  │ ").filter(|_| has_preview);
    match line.and_then(|line| line.chars().next()) {
        Some('+') => paint(style::GOOD, row),
        Some('-') => paint(style::REMOVED, row),
        Some('@') => paint(style::HINT, row),
        _ => row.to_owned(),
    }
}

/// Returns the arguments of a running call, one line each, with secrets masked and control characters escaped.
pub(crate) fn arguments(arguments: Option<&RawValue>) -> Vec<String> {
    let view = ConsentView::new("", None, arguments);
    let line = |entry: &switchboard::permissions::Entry| {
        let short: String = entry.text.chars().take(MAX_ARGUMENT_CHARS).collect();
        // Each argument gets one line; showing a line break as a symbol hides nothing.
        let short = short.trim_end().replace('\n', " ⏎ ").replace('\t', " ");
        format!("{}: {short}", entry.label)
    };
    let mut lines: Vec<String> = view.entries.iter().take(MAX_ARGUMENTS).map(line).collect();
    if view.entries.len() > MAX_ARGUMENTS {
        lines.push(format!("… and {} more", view.entries.len() - MAX_ARGUMENTS));
    }
    lines
}

fn safe(text: &str) -> String {
    visible(&neutralise(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
        check(json!({"o": {"password": "p"}}), &["o.password: ********"]);
        check(
            json!({"a": "\u{1b}[31mred\u{202e}"}),
            &["a: \\u{1b}[31mred\\u{202e}"],
        );
        let many: serde_json::Map<_, _> = (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
        assert_eq!(
            arguments(Some(&serde_json::value::to_raw_value(&many).unwrap()))
                .last()
                .unwrap(),
            "… and 12 more"
        );
    }
}
