//! `switchboard clients connect`: plans, previews and writes the entries.

use serde_json::{Value, json};
use switchboard_config::clients::{Client, ENTRY, MovedServer, Record, StoreError};
use switchboard_config::entry::ServerEntry;

use super::moving::{Fate, MovePlanner, PlannedMove};
use super::{Found, Machine, file_of, not_changed, worst};
use crate::cli::ConnectArguments;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::servers::Servers;
use crate::{journal, report, terminal, time};

/// A change of one client's file.
struct Plan {
    found: Found,
    after: String,
    profile: Option<String>,
    record: Option<Record>,
    moves: Vec<PlannedMove>,
    /// Whether the client's own settings keep it from starting the bridge.
    is_disabled: bool,
}

/// What becomes of one client.
enum Step {
    Change(Box<Plan>),
    /// Nothing to do.
    Unchanged(Box<Found>, Vec<PlannedMove>),
    /// Left out on purpose, for this reason.
    Skipped(Client, String),
    Failed(Client, Failure),
}

pub(super) fn run(arguments: &ConnectArguments, machine: &Machine<'_>) -> Outcome {
    let printer = &machine.context.printer;
    let mut clients = machine.clients(&arguments.clients)?;
    if arguments.clients.is_empty() {
        clients.retain(|client| client.is_found);
    }
    if clients.is_empty() {
        printer.note(
            "no MCP clients found; `switchboard clients list` shows where they are looked for",
        );
    }
    if let Some(profile) = &arguments.profile {
        Servers::load_quietly(machine.context).need_profile(profile)?;
    }
    let mut planner = arguments.moves.then(|| MovePlanner::new(machine.context));
    let mut steps = Vec::new();
    for client in clients {
        steps.push(step(client, arguments, planner.as_mut(), machine));
    }
    let mut is_change = false;
    for step in &steps {
        let Step::Change(plan) = step else { continue };
        is_change = true;
        let before = plan.found.text.as_deref();
        warn_of_losses(plan, machine);
        let preview = machine.preview(&plan.found.client, before, Some(&plan.after));
        let lines = plan
            .moves
            .iter()
            .map(|each| each.describe(plan.found.client.tool));
        let text = lines.fold(preview, |text, line| format!("{text}  {line}\n"));
        if arguments.dry_run && !printer.json {
            printer.data(text)?;
        } else {
            printer.note(text.trim_end());
        }
    }
    if is_change && !arguments.dry_run && !arguments.yes {
        let count = steps
            .iter()
            .filter(|step| matches!(step, Step::Change(_)))
            .count();
        let what = if count == 1 {
            "this file"
        } else {
            "these files"
        };
        if !terminal::consent(&format!("change {what}? [y/N] "), machine.context)? {
            printer.note("nothing was changed");
            return Ok(Exit::Denied);
        }
    }
    finish(steps, arguments, machine)
}

/// Decides what to do with one client.
fn step(
    client: Client,
    arguments: &ConnectArguments,
    planner: Option<&mut MovePlanner<'_>>,
    machine: &Machine<'_>,
) -> Step {
    if let Some(older) = &client.replaces {
        let reason = format!(
            "it uses {}, which it would ignore if {} existed; convert it in {} first",
            machine.shown(older),
            machine.shown(&client.path),
            client.tool
        );
        return Step::Skipped(client, reason);
    }
    match plan(&client, arguments, planner, machine) {
        Ok(step) => step,
        Err(failure) => Step::Failed(client, failure),
    }
}

fn plan(
    client: &Client,
    arguments: &ConnectArguments,
    planner: Option<&mut MovePlanner<'_>>,
    machine: &Machine<'_>,
) -> Result<Step, Failure> {
    let found = machine.read(client)?;
    if found.content.is_name_taken && !arguments.force {
        let message = format!(
            "{} was not changed: its entry `{ENTRY}` starts something else",
            client.tool
        );
        return Err(Failure::failed(message).hint("rename that entry, or replace it with --force"));
    }
    let record = machine.record(client.tool)?;
    if let Some(other) = record.as_ref().filter(|record| record.file != client.path) {
        let message = format!(
            "{} was not changed: it is connected in {}",
            client.tool,
            machine.shown(&other.file)
        );
        let hint = format!(
            "run `switchboard clients disconnect {}` first",
            client.tool.name()
        );
        return Err(Failure::failed(message).hint(hint));
    }
    let has_other = found.content.bridge.is_none() && found.content.other_bridge.is_some();
    let moves = match planner {
        Some(planner) => planner.plan(&found)?,
        None => Vec::new(),
    };
    let bridge = machine.bridge(arguments.profile.as_deref(), record.as_ref(), &found);
    let text = found.text.clone().unwrap_or_default();
    let refused = |error| machine.refused(client, &error);
    let connected = match &found.content.bridge {
        _ if has_other => text.clone(),
        Some(standing) if is_equal(&standing.entry, &bridge.entry()) => text.clone(),
        _ => file_of(client, &text)
            .with_bridge(&bridge, &machine.program.path)
            .map_err(refused)?,
    };
    let leaving = moves.iter().filter(|each| each.leaves_client());
    let names: Vec<&str> = leaving.map(|each| each.name.as_str()).collect();
    let after = file_of(client, &connected)
        .without(&names, false)
        .map_err(refused)?;
    if found.text.as_deref() == Some(after.as_str()) {
        return Ok(Step::Unchanged(Box::new(found), moves));
    }
    let is_disabled = verify(client, &after, &found, &names, machine)?;
    Ok(Step::Change(Box::new(Plan {
        found,
        after,
        profile: bridge.profile,
        record,
        moves,
        is_disabled,
    })))
}

fn is_equal(standing: &ServerEntry, wanted: &ServerEntry) -> bool {
    (&standing.command, &standing.args) == (&wanted.command, &wanted.args)
}

/// Reads the new text as the client's file: the bridge is in it, and of the servers only the moved ones are missing.
/// Returns whether the client has the bridge disabled.
fn verify(
    client: &Client,
    after: &str,
    found: &Found,
    moved: &[&str],
    machine: &Machine<'_>,
) -> Result<bool, Failure> {
    let content = file_of(client, after)
        .read(&machine.program.path)
        .map_err(|error| machine.refused(client, &error))?;
    let names = |content: &switchboard_config::clients::FileContent| -> Vec<String> {
        let servers = content.servers.iter();
        servers.map(|server| server.name.clone()).collect()
    };
    let mut expected = names(&found.content);
    expected.retain(|name| !moved.contains(&name.as_str()));
    let has_bridge = content.bridge.is_some() || content.other_bridge.is_some();
    if has_bridge && names(&content) == expected {
        let bridge = content.bridge.as_ref();
        return Ok(bridge.is_some_and(|bridge| bridge.entry.enabled == Some(false)));
    }
    let message = format!("{} was not changed", client.tool);
    Err(Failure::failed(message)
        .because("the new text does not have the servers that it should have")
        .hint("edit the file by hand, and report this file's shape"))
}

fn finish(steps: Vec<Step>, arguments: &ConnectArguments, machine: &Machine<'_>) -> Outcome {
    let printer = &machine.context.printer;
    let (mut rows, mut exit, mut is_done) = (Vec::new(), Exit::Done, false);
    for step in steps {
        match step {
            Step::Change(plan) if arguments.dry_run => {
                rows.push(row(
                    &plan.found.client,
                    "would connect",
                    None,
                    &plan,
                    machine,
                ));
            }
            Step::Change(plan) => match commit(&plan, machine) {
                Ok(backup) => {
                    is_done = true;
                    let client = &plan.found.client;
                    let backup = backup.map(|name| machine.store.backups().join(name));
                    let kept = match &backup {
                        Some(path) => format!("; backup: {}", machine.shown(path)),
                        None => String::new(),
                    };
                    printer.note(format!(
                        "{} {}: {}{kept}",
                        paint(style::GOOD, "connected"),
                        paint(style::NAME, client.tool),
                        machine.shown(&client.path)
                    ));
                    if plan.is_disabled {
                        printer.warning(
                            format!("{} has `{ENTRY}` disabled in its settings", client.tool),
                            Some("enable it there"),
                        );
                    }
                    warn_of_secrets(&plan.moves, machine);
                    let mut row = row(client, "connected", None, &plan, machine);
                    row["backup"] = backup.map(|path| path.display().to_string()).into();
                    rows.push(row);
                }
                Err(failure) => {
                    exit = worst(exit, &failure);
                    rows.push(failed(&plan.found.client, &failure));
                    complain(&failure, machine);
                }
            },
            Step::Unchanged(found, moves) => {
                let client = &found.client;
                let how = match &found.content.other_bridge {
                    Some(name) if found.content.bridge.is_none() => format!(
                        " by its entry `{}`",
                        switchboard_config::text::visible(name)
                    ),
                    _ => String::new(),
                };
                printer.note(format!(
                    "{} is connected already{how}; nothing changed",
                    paint(style::NAME, client.tool)
                ));
                for each in &moves {
                    printer.note(format!("  {}", each.describe(client.tool)));
                }
                rows.push(json!({
                    "client": client.tool.name(),
                    "file": client.path.display().to_string(),
                    "result": "unchanged",
                    "reason": null,
                    "moves": moves.iter().map(move_json).collect::<Vec<_>>(),
                }));
            }
            Step::Skipped(client, reason) => {
                printer.warning(format!("{} was skipped: {reason}", client.tool), None);
                rows.push(json!({
                    "client": client.tool.name(),
                    "file": client.path.display().to_string(),
                    "result": "skipped",
                    "reason": reason,
                    "moves": [],
                }));
            }
            Step::Failed(client, failure) => {
                exit = worst(exit, &failure);
                rows.push(failed(&client, &failure));
                complain(&failure, machine);
            }
        }
    }
    if printer.json {
        printer.json(&rows.into())?;
    }
    if is_done {
        printer.note("restart the clients, or reload their MCP servers; `switchboard clients disconnect` undoes it");
    }
    Ok(exit)
}

/// Prints a failure of one client; the others go on.
pub(super) fn complain(failure: &Failure, machine: &Machine<'_>) {
    let causes = failure.causes.join("; ");
    let message = if causes.is_empty() {
        failure.message.clone()
    } else {
        format!("{}: {causes}", failure.message)
    };
    let hint = failure.hints.first().map(String::as_str);
    machine.context.printer.warning(message, hint);
}

/// Backs up, records and writes. Undoes the moves if the file cannot be written. Returns the name of the backup.
fn commit(plan: &Plan, machine: &Machine<'_>) -> Result<Option<String>, Failure> {
    let Found { client, text, .. } = &plan.found;
    let store = &machine.store;
    let failed = |error| not_changed(client, &error);
    let backup = match text {
        Some(text) => {
            let backup = store.back_up(client.tool, &time::compact_now(), &client.path, text);
            Some(backup.map_err(failed)?)
        }
        None => None,
    };
    let taken = machine.take_over(&plan.moves, &plan.found)?;
    let record = record(plan, backup.as_deref(), &taken, machine);
    let written = store
        .save(client.tool, &record)
        .and_then(|()| store.write(&client.path, text.as_deref(), &plan.after));
    if let Err(error) = written {
        // Once the new text was in the file, the record and the moved servers are needed to undo it.
        let now = store.read(&client.path).ok().flatten();
        let is_written = matches!(error, StoreError::NotVerified(_))
            || now.as_deref() == Some(plan.after.as_str());
        if !is_written {
            machine.take_back(&taken);
            let _ = match &plan.record {
                Some(record) => store.save(client.tool, record),
                None => store.forget(client.tool),
            };
        }
        return Err(failed(error));
    }
    let about = client.path.display().to_string();
    journal::changed("connect", about, machine.context);
    Ok(backup)
}

/// The record of a change, which continues that of an earlier one.
fn record(
    plan: &Plan,
    backup: Option<&str>,
    taken: &[MovedServer],
    machine: &Machine<'_>,
) -> Record {
    let Found {
        client,
        text,
        content,
    } = &plan.found;
    let mut record = Record::new(client.path.clone(), &plan.after);
    let before = text.as_deref().unwrap_or_default();
    let had_bridge = content.bridge.is_some() || content.other_bridge.is_some();
    match &plan.record {
        Some(old) if old.is_as_written(before) => {
            record.restores.clone_from(&old.restores);
            record.is_created = old.is_created;
            record.folders.clone_from(&old.folders);
            record.adds_container = old.adds_container;
            record.moved.clone_from(&old.moved);
        }
        // The user has edited the file since: only what was added is removed again.
        Some(old) if had_bridge || !old.moved.is_empty() => {
            record.adds_container = old.adds_container;
            record.moved.clone_from(&old.moved);
        }
        _ if had_bridge && taken.is_empty() => {}
        _ => {
            record.restores = backup.filter(|_| !had_bridge).map(str::to_owned);
            record.is_created = text.is_none();
            if text.is_none() {
                record.folders = machine.store.missing_folders(&client.path);
            }
            record.adds_container = !file_of(client, before).has_container();
        }
    }
    record.profile.clone_from(&plan.profile);
    record.moved.extend(taken.iter().cloned());
    record
}

/// Reports settings of moved servers that Switchboard cannot express.
fn warn_of_losses(plan: &Plan, machine: &Machine<'_>) {
    let is_moved = |name: &String| {
        let mut moved = plan.moves.iter().filter(|each| each.fate == Fate::Moved);
        moved.any(|each| each.name == *name)
    };
    let notes = plan.found.content.notes.iter();
    let lost: Vec<_> = notes
        .filter(|note| note.server.as_ref().is_some_and(is_moved))
        .cloned()
        .collect();
    report::in_passing(&lost, &machine.context.printer);
}

fn warn_of_secrets(moves: &[PlannedMove], machine: &Machine<'_>) {
    for each in moves.iter().filter(|each| each.fate == Fate::Moved) {
        let literals = each.entry.literal_secrets();
        if literals.is_empty() {
            continue;
        }
        let visible = switchboard_config::text::visible;
        machine.context.printer.warning(
            format!(
                "`{}` has secrets in plain text in your user configuration: {}",
                visible(&each.name),
                visible(&literals.join(", "))
            ),
            Some("write ${VARIABLE} in their place, and set the variables"),
        );
    }
}

fn row(
    client: &Client,
    result: &str,
    reason: Option<&str>,
    plan: &Plan,
    machine: &Machine<'_>,
) -> Value {
    let before = plan.found.text.as_deref();
    let preview = machine.preview(client, before, Some(&plan.after));
    json!({
        "client": client.tool.name(),
        "file": client.path.display().to_string(),
        "result": result,
        "reason": reason,
        "profile": plan.profile,
        "backup": null,
        "moves": plan.moves.iter().map(move_json).collect::<Vec<_>>(),
        "diff": anstream::adapter::strip_str(&preview).to_string(),
    })
}

fn move_json(each: &PlannedMove) -> Value {
    let (other, reason) = match &each.fate {
        Fate::Moved => (Some(&each.name), None),
        Fate::Same(other) => (Some(other), None),
        Fate::Stays(reason) => (None, Some(reason)),
    };
    json!({"name": each.name, "result": each.word(), "added_as": other, "reason": reason})
}

pub(super) fn failed(client: &Client, failure: &Failure) -> Value {
    json!({
        "client": client.tool.name(),
        "file": client.path.display().to_string(),
        "result": "failed",
        "reason": format!("{}: {}", failure.message, failure.causes.join("; ")),
        "moves": [],
    })
}
