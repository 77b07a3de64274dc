//! `switchboard pins …`: lists pinned definitions, shows changes, and approves them.
//!
//! Works from the store and starts no server. The current definitions are those listed at the last connection, and an
//! approval covers exactly these.

use std::fmt::Write as _;

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::internal::pins::review::INSTRUCTIONS;
use switchboard::pins::{Line, Pin, Review, Side, Standing, Subject};
use switchboard_config::text::visible;
use switchboard_store::SqliteStore;

use crate::cli::PinsCommand;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, paint, style};
use crate::servers::Servers;
use crate::{session, terminal};

/// Characters of a hash that are shown.
const DIGEST_CHARS: usize = 12;

pub(crate) fn run(command: &PinsCommand, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let reviews = reviews(&servers, context);
    match command {
        PinsCommand::List { target } => list(&chosen(target.as_deref(), &reviews)?, context),
        PinsCommand::Diff { target } => diff(&chosen(target.as_deref(), &reviews)?, context),
        PinsCommand::Approve { target, all, yes } => {
            if target.is_none() && !all {
                return Err(Failure::usage("nothing to approve was named")
                    .hint("name SERVER, SERVER/TOOL, SERVER#instructions, SERVER#prompt:NAME or SERVER#template:URI, or pass --all"));
            }
            approve(&chosen(target.as_deref(), &reviews)?, *yes, context)
        }
    }
}

/// A pin and its review.
struct Reviewed<'r> {
    review: &'r Review,
    pin: Pin,
}

impl Reviewed<'_> {
    fn waits(&self) -> bool {
        self.pin.standing.waits()
    }

    /// Its name on the command line, not sanitized.
    fn target(&self) -> String {
        let server = self.review.server();
        match &self.pin.subject {
            Subject::Instructions => format!("{server}#{INSTRUCTIONS}"),
            Subject::Tool(tool) => format!("{server}/{tool}"),
            Subject::Content(kind, name) => format!("{server}#{}:{name}", kind.word()),
        }
    }

    fn tool(&self) -> Option<&str> {
        match &self.pin.subject {
            Subject::Tool(tool) => Some(tool.as_str()),
            Subject::Instructions | Subject::Content(..) => None,
        }
    }

    fn word(&self) -> &'static str {
        self.pin.standing.word()
    }

    fn to_json(&self) -> Value {
        let (parts, before) = match &self.pin.standing {
            Standing::Changed(parts) => (parts.as_slice(), None),
            Standing::Renamed(before) => (&["name"][..], Some(before.as_str())),
            _ => (&[][..], None),
        };
        json!({
            "kind": self.pin.subject.kind(),
            "before": before,
            "server": self.review.server().as_str(),
            "tool": self.tool(),
            "target": self.target(),
            "state": self.word(),
            "changed": parts,
            "digest": self.pin.digest,
        })
    }
}

fn reviews(servers: &Servers, context: &Context) -> Vec<Review> {
    let (outlines, remembered) = servers.remembered(context);
    let pairs = outlines.iter().zip(&remembered);
    pairs
        // Ignore old pins of servers whose pins are switched off.
        .filter(|(outline, _)| outline.rules.pins())
        .filter_map(|(outline, remembered)| Review::of(outline, remembered))
        .collect()
}

/// Selects the pins of a target: a server, one of its tools, or its instructions. `None` selects all.
fn chosen<'r>(target: Option<&str>, reviews: &'r [Review]) -> Result<Vec<Reviewed<'r>>, Failure> {
    let all = reviews.iter().flat_map(|review| {
        let pins = review.pins().into_iter();
        pins.map(move |pin| Reviewed { review, pin })
    });
    let Some(target) = target else {
        return Ok(all.collect());
    };
    let all: Vec<Reviewed<'_>> = all.collect();
    let known: Vec<String> = all.iter().map(Reviewed::target).collect();
    let is_meant =
        |each: &Reviewed<'_>| each.review.server().as_str() == target || each.target() == target;
    let meant: Vec<Reviewed<'_>> = all.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        let failure = Failure::failed(format!("no pins for `{}`", visible(target)));
        let near =
            switchboard_config::entry::keys::nearest(target, known.iter().map(String::as_str));
        return Err(match near {
            Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
            None => failure.hint("`switchboard pins list` shows all pins"),
        });
    }
    Ok(meant)
}

fn list(pins: &[Reviewed<'_>], context: &Context) -> Outcome {
    let printer = &context.printer;
    if printer.json {
        printer.json(&pins.iter().map(Reviewed::to_json).collect())?;
        return Ok(Exit::Done);
    }
    if pins.is_empty() {
        printer.note("no pins yet: tools are pinned when their server first connects");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        Column::new("STATE"),
        Column::new("KIND").dropped(2),
        Column::key("NAME"),
        Column::new("HASH").dropped(1),
    ]);
    for each in pins {
        let target = each.target();
        table.row([
            (word_style(each), each.word()),
            (style::QUIET, each.pin.subject.kind()),
            (style::NAME, &target),
            (
                style::QUIET,
                each.pin.digest.get(..DIGEST_CHARS).unwrap_or_default(),
            ),
        ]);
    }
    printer.table(&table)?;
    if pins.iter().any(Reviewed::waits) {
        printer.note("changed items are set aside; see `switchboard pins diff`");
    }
    Ok(Exit::Done)
}

fn diff(pins: &[Reviewed<'_>], context: &Context) -> Outcome {
    let printer = &context.printer;
    let waiting: Vec<&Reviewed<'_>> = pins.iter().filter(|each| each.waits()).collect();
    if printer.json {
        printer.json(&waiting.iter().map(|each| diff_json(each)).collect())?;
        return Ok(Exit::Done);
    }
    if waiting.is_empty() {
        printer.note("no changes since pinned");
        return Ok(Exit::Done);
    }
    let shown: Vec<String> = waiting.iter().map(|each| description(each)).collect();
    printer.data(shown.join("\n"))?;
    printer.note(
        "approve with `switchboard pins approve SERVER[/TOOL]`; until then these are set aside",
    );
    Ok(Exit::Done)
}

fn approve(pins: &[Reviewed<'_>], yes: bool, context: &Context) -> Outcome {
    let printer = &context.printer;
    let waiting: Vec<&Reviewed<'_>> = pins.iter().filter(|each| each.waits()).collect();
    if waiting.is_empty() {
        printer.note("nothing to approve");
        return finish(&[], context);
    }
    for each in &waiting {
        printer.note(description(each));
    }
    if !yes && !consent(waiting.len(), context)? {
        printer.note("nothing was approved");
        return Ok(Exit::Denied);
    }
    write(&waiting, context)?;
    let targets: Vec<String> = waiting.iter().map(|each| each.target()).collect();
    for target in &targets {
        printer.note(format!(
            "{} {}",
            paint(style::GOOD, "approved"),
            paint(style::NAME, visible(target))
        ));
    }
    finish(&targets, context)
}

fn finish(approved: &[String], context: &Context) -> Outcome {
    if context.printer.json {
        context.printer.json(&json!({"approved": approved}))?;
    }
    Ok(Exit::Done)
}

fn write(waiting: &[&Reviewed<'_>], context: &Context) -> Result<(), Failure> {
    let unable = |error: &dyn std::fmt::Display| {
        Failure::failed("nothing was approved").because(visible(&error.to_string()))
    };
    let runtime = session::runtime().map_err(|error| unable(&error))?;
    let store = SqliteStore::new(session::store_file(context));
    let mut rest = waiting;
    while let Some(first) = rest.first() {
        // The pins of one server are adjacent.
        let is_other = |each: &&Reviewed<'_>| each.review.server() != first.review.server();
        let count = rest.iter().position(is_other).unwrap_or(rest.len());
        let (own, others) = rest.split_at(count);
        rest = others;
        let subjects: Vec<Subject> = own.iter().map(|each| each.pin.subject.clone()).collect();
        runtime
            .block_on(first.review.approve(&store, &subjects))
            .map_err(|error| {
                let failure = unable(&error);
                match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            })?;
    }
    Ok(())
}

/// Asks for approval. Fails without a terminal.
fn consent(count: usize, context: &Context) -> Result<bool, Failure> {
    let what = if count == 1 {
        "this".to_owned()
    } else {
        format!("these {count}")
    };
    terminal::consent(&format!("approve {what}? [y/N] "), context)
}

/// The change to approve, sanitized.
fn description(each: &Reviewed<'_>) -> String {
    let mut text = format!(
        "{}  {}",
        paint(style::NAME, visible(&each.target())),
        paint(word_style(each), each.word()),
    );
    match &each.pin.standing {
        Standing::Unreadable => {
            text.push_str("\n    its pin cannot be read; approving pins the current definition");
            return text;
        }
        Standing::Renamed(before) => {
            let _ = write!(text, "\n    formerly named {}", visible(before.as_str()));
        }
        _ => {}
    }
    for change in each.review.changes(&each.pin.subject) {
        let _ = write!(text, "\n    {}", change.part);
        for line in &change.lines {
            let (sign, color) = mark(line);
            let line = format!("{sign} {}", line.text);
            let _ = write!(text, "\n      {}", paint(color, line.trim_end()));
        }
    }
    text
}

fn diff_json(each: &Reviewed<'_>) -> Value {
    let mut value = each.to_json();
    let changes = each.review.changes(&each.pin.subject);
    let changes = changes.iter().map(|change| {
        let lines = change.lines.iter();
        let lines = lines.map(|line| format!("{} {}", mark(line).0, line.text));
        json!({"part": change.part, "lines": lines.collect::<Vec<_>>()})
    });
    value["changes"] = changes.collect();
    value
}

fn mark(line: &Line) -> (char, Style) {
    match line.side {
        Side::Both => (' ', style::QUIET),
        Side::Before => ('-', style::ERROR),
        Side::Now => ('+', style::GOOD),
    }
}

fn word_style(each: &Reviewed<'_>) -> Style {
    match each.pin.standing {
        _ if each.waits() => style::WARNING,
        Standing::Pinned => style::GOOD,
        _ => style::QUIET,
    }
}
