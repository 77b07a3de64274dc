//! `switchboard trust …`: reviews, approves and revokes what a project's files may do.

use std::collections::HashSet;
use std::fmt::Write as _;

use anstyle::Style;
use serde_json::{Value, json};
use switchboard_config::text::visible;
use switchboard_config::trust::{Component, FILE_PART, Fingerprint, SECTION_TEXT, Verdict};

use crate::cli::TrustCommand;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, paint, style};
use crate::trust_items::{self, TrustItem};
use crate::{store, terminal, view};

pub(crate) fn run(command: TrustCommand, context: &Context) -> Outcome {
    match command {
        TrustCommand::List => list(context),
        TrustCommand::Approve { name, yes } => approve(name.as_deref(), yes, context),
        TrustCommand::Revoke { name } => revoke(name.as_deref(), context),
        TrustCommand::Diff { name } => diff(name.as_deref(), context),
    }
}

fn list(context: &Context) -> Outcome {
    let printer = &context.printer;
    let decisions = context.decisions();
    context.warn_of_findings(&decisions);
    let items = trust_items::all(context, &decisions);
    let names: HashSet<String> = items.iter().map(|each| each.subject.to_string()).collect();
    // Approvals of items that no file contains any more are listed, so that they can be revoked.
    let gone: Vec<&str> = decisions
        .approvals(&context.project)
        .map(|(name, _)| name)
        .filter(|name| !names.contains(*name))
        .collect();
    if printer.json {
        let present = items.iter().map(|each| {
            json!({
                "name": each.subject.to_string(),
                "state": each.word(),
                "file": each.file(context),
                "parts": parts_json(&each.fingerprint),
            })
        });
        let gone = gone
            .iter()
            .map(|name| json!({"name": name, "state": "gone", "file": null, "parts": []}));
        printer.json(&present.chain(gone).collect())?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        Column::new("STATE"),
        Column::key("NAME"),
        Column::path("FILE").dropped(1),
    ]);
    for each in &items {
        let file = view::path(each.file(context).as_ref(), &context.environment.home);
        let subject = each.subject.to_string();
        table.row([
            (word_style(each), each.word()),
            (style::NAME, &subject),
            (style::QUIET, &file),
        ]);
    }
    for name in &gone {
        table.row([
            (style::QUIET, "gone"),
            (style::NAME, name),
            (style::QUIET, ""),
        ]);
    }
    if items.is_empty() && gone.is_empty() {
        let project = view::path(&context.project, &context.environment.home);
        printer.note(format!("nothing in {project} requires trust"));
        return Ok(Exit::Done);
    }
    printer.table(&table)?;
    if items.iter().any(TrustItem::waits) {
        printer
            .note("approve with `switchboard trust approve [NAME]`; until then it has no effect");
    }
    Ok(Exit::Done)
}

fn approve(name: Option<&str>, yes: bool, context: &Context) -> Outcome {
    let printer = &context.printer;
    let decisions = context.try_decisions()?;
    context.warn_of_findings(&decisions);
    let mut selected = chosen(name, trust_items::all(context, &decisions))?;
    selected.retain(TrustItem::waits);
    if selected.is_empty() {
        printer.note("nothing to approve");
        return finish(&[], context);
    }
    for each in &selected {
        printer.note(description(each, context));
    }
    refuse_unreadable(&selected)?;
    if !yes && !consent(&selected, context)? {
        printer.note("nothing was approved");
        return Ok(Exit::Denied);
    }
    store::change_decisions(context, |decisions, now| {
        for each in &selected {
            decisions.approve(
                &context.project,
                &each.subject,
                each.fingerprint.clone(),
                now,
            );
        }
    })?;
    let names: Vec<String> = selected
        .iter()
        .map(|each| each.subject.to_string())
        .collect();
    for name in &names {
        printer.note(format!(
            "{} {}",
            paint(style::GOOD, "approved"),
            paint(style::NAME, visible(name))
        ));
    }
    finish(&names, context)
}

fn finish(approved: &[String], context: &Context) -> Outcome {
    if context.printer.json {
        context.printer.json(&json!({"approved": approved}))?;
    }
    Ok(Exit::Done)
}

/// Refuses to approve an item with an unreadable file.
fn refuse_unreadable(selected: &[TrustItem]) -> Result<(), Failure> {
    for each in selected {
        if let Some(reason) = each.fingerprint.unreadable().next() {
            let name = each.subject.to_string();
            let message = format!("`{}` cannot be approved", visible(&name));
            return Err(Failure::new(Exit::Denied, message)
                .because(visible(reason))
                .hint("make the file readable, or remove it from the entry: an approval covers the file's content"));
        }
    }
    Ok(())
}

/// Asks for approval. Fails without a terminal.
fn consent(selected: &[TrustItem], context: &Context) -> Result<bool, Failure> {
    let what = if selected.len() == 1 {
        "this".to_owned()
    } else {
        format!("these {}", selected.len())
    };
    terminal::consent(&format!("approve {what}? [y/N] "), context)
}

/// The item to approve.
fn description(each: &TrustItem, context: &Context) -> String {
    let file = view::path(each.file(context).as_ref(), &context.environment.home);
    let mut text = format!(
        "{}  {}  {}",
        paint(style::NAME, visible(&each.subject.to_string())),
        paint(word_style(each), each.word()),
        paint(style::QUIET, file)
    );
    if let Some(remark) = each.remark() {
        let _ = write!(text, "\n    {}", paint(style::WARNING, remark));
    }
    match &each.verdict {
        Verdict::Changed(earlier) if !earlier.is_of_earlier_version() => {
            text.push_str(&changes(&each.fingerprint, earlier));
        }
        _ => {
            for component in &each.fingerprint.components {
                let name = visible(&component.name);
                let _ = write!(text, "\n    {name}:{}", lines(component));
            }
        }
    }
    text
}

/// A component's value on one line, so that a line break in an argument cannot look like another part or hide the rest.
/// Only a section of a file has several lines; empty ones are omitted.
fn lines(component: &Component) -> String {
    if component.name != SECTION_TEXT {
        return format!(" {}", visible(&component.shown));
    }
    let mut text = String::new();
    for line in component
        .shown
        .lines()
        .filter(|line| !line.trim().is_empty())
    {
        let _ = write!(text, "\n        {}", visible(line));
    }
    text
}

fn changes(now: &Fingerprint, earlier: &Fingerprint) -> String {
    let mut text = String::new();
    for (part, before, after) in now.changes(earlier) {
        let _ = write!(text, "\n    {}", visible(part));
        text.push_str(match (before, after) {
            _ if part.starts_with(FILE_PART) && before.is_some() && after.is_some() => {
                " (its content changed)"
            }
            // Both sides look the same if only a masked value changed.
            _ if before == after => " (a masked value changed)",
            (None, _) => " (added)",
            (_, None) => " (removed)",
            _ => "",
        });
        for (sign, color, value) in [("-", style::ERROR, before), ("+", style::GOOD, after)] {
            let value = value.unwrap_or_default();
            let lines: Vec<&str> = match part {
                SECTION_TEXT => value
                    .lines()
                    .filter(|line| !line.trim().is_empty())
                    .collect(),
                _ if value.is_empty() => Vec::new(),
                _ => vec![value],
            };
            for line in lines {
                let _ = write!(
                    text,
                    "\n      {}",
                    paint(color, format!("{sign} {}", visible(line)))
                );
            }
        }
    }
    text
}

fn revoke(name: Option<&str>, context: &Context) -> Outcome {
    let printer = &context.printer;
    context.warn_of_findings(&context.decisions());
    let revoked = store::change_decisions(context, |decisions, _| {
        decisions.revoke(&context.project, name)
    })?;
    if let (Some(name), true) = (name, revoked.is_empty()) {
        return Err(
            Failure::failed(format!("`{}` was not approved", visible(name)))
                .hint("`switchboard trust list` shows approvals"),
        );
    }
    if revoked.is_empty() {
        printer.note("this project has no approvals");
    }
    for name in &revoked {
        printer.note(format!(
            "{} {}",
            paint(style::GOOD, "revoked"),
            paint(style::NAME, visible(name))
        ));
    }
    if printer.json {
        printer.json(&json!({"revoked": revoked}))?;
    }
    Ok(Exit::Done)
}

fn diff(name: Option<&str>, context: &Context) -> Outcome {
    let printer = &context.printer;
    let decisions = context.decisions();
    context.warn_of_findings(&decisions);
    let items = chosen(name, trust_items::all(context, &decisions))?;
    if printer.json {
        let waiting = items.iter().filter(|each| each.waits());
        printer.json(&waiting.map(diff_json).collect())?;
        return Ok(Exit::Done);
    }
    let waiting: Vec<String> = items
        .iter()
        .filter(|each| each.waits())
        .map(|each| description(each, context))
        .collect();
    if waiting.is_empty() {
        printer.note("no changes since approved");
    }
    printer.data(waiting.join("\n"))?;
    Ok(Exit::Done)
}

fn diff_json(each: &TrustItem) -> Value {
    let none = Fingerprint::of_nothing();
    let earlier = match &each.verdict {
        Verdict::Changed(earlier) => earlier,
        _ => &none,
    };
    let changes = each.fingerprint.changes(earlier);
    let changes = changes
        .into_iter()
        .map(|(part, before, now)| json!({"part": part, "before": before, "now": now}));
    json!({
        "name": each.subject.to_string(),
        "state": each.word(),
        "remark": each.remark(),
        "changes": changes.collect::<Vec<_>>(),
    })
}

fn parts_json(fingerprint: &Fingerprint) -> Value {
    fingerprint
        .components
        .iter()
        .map(|component| json!({"part": component.name, "now": component.shown}))
        .collect()
}

/// Selects the items of a name; `None` selects all.
fn chosen(name: Option<&str>, mut items: Vec<TrustItem>) -> Result<Vec<TrustItem>, Failure> {
    let Some(name) = name else {
        return Ok(items);
    };
    let known: Vec<String> = items.iter().map(|each| each.subject.to_string()).collect();
    items.retain(|each| each.subject.to_string() == name);
    if items.is_empty() {
        let failure = Failure::failed(format!("no item named `{}` requires trust", visible(name)));
        let near = switchboard_config::entry::keys::nearest(name, known.iter().map(String::as_str));
        return Err(match near {
            Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
            None => failure.hint("`switchboard trust list` shows all items"),
        });
    }
    Ok(items)
}

fn word_style(each: &TrustItem) -> Style {
    match each.verdict {
        Verdict::Trusted => style::GOOD,
        Verdict::New | Verdict::Changed(_) => style::WARNING,
    }
}
