//! `switchboard clients disconnect`: undoes `connect`, byte for byte where the file was not edited since.

use serde_json::json;
use switchboard_config::clients::{Client, ENTRY, MovedServer, Record};
use switchboard_config::foreign::Tool;
use switchboard_config::text::visible;

use super::connect::{complain, failed};
use super::{Found, Machine, file_of, not_changed, worst};
use crate::cli::DisconnectArguments;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::{journal, time};

/// How a file is undone.
enum Undo {
    /// The bytes before `connect`, from the backup.
    Restore { text: String, backup: String },
    /// `connect` created the file.
    Delete,
    /// The file was edited since: the entry goes, moved servers come back, all else stays.
    Edit(String),
    /// The file is gone, or has no entry of ours.
    Nothing(&'static str),
}

pub(super) fn run(arguments: &DisconnectArguments, machine: &Machine<'_>) -> Outcome {
    let printer = &machine.context.printer;
    let (mut rows, mut exit) = (Vec::new(), Exit::Done);
    for client in machine.clients(&arguments.clients)? {
        match one(&client, arguments, machine) {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => {}
            Err(failure) => {
                exit = worst(exit, &failure);
                rows.push(failed(&client, &failure));
                complain(&failure, machine);
            }
        }
    }
    if rows.is_empty() {
        printer.note("no client is connected");
    }
    if printer.json {
        printer.json(&rows.into())?;
    }
    Ok(exit)
}

fn one(
    client: &Client,
    arguments: &DisconnectArguments,
    machine: &Machine<'_>,
) -> Result<Option<serde_json::Value>, Failure> {
    let printer = &machine.context.printer;
    let record = machine.record(client.tool)?;
    // The file of the record counts: a variable such as CODEX_HOME may have changed since.
    let mut client = client.clone();
    if let Some(record) = &record {
        client.path.clone_from(&record.file);
    }
    let client = &client;
    let found = match machine.read(client) {
        // Nothing says that this client was ever connected.
        Err(_) if record.is_none() && arguments.clients.is_empty() => return Ok(None),
        found => found?,
    };
    let is_connected = record.is_some() || found.content.bridge.is_some();
    if !is_connected && arguments.clients.is_empty() {
        return Ok(None);
    }
    let undo = undo(&found, record.as_ref(), machine)?;
    let before = found.text.as_deref();
    let after = match &undo {
        Undo::Restore { text, .. } | Undo::Edit(text) => Some(text.as_str()),
        Undo::Delete => None,
        Undo::Nothing(_) => before,
    };
    let row = |result: &str, reason: Option<&str>, moved: &[String]| {
        json!({
            "client": client.tool.name(),
            "file": client.path.display().to_string(),
            "result": result,
            "reason": reason,
            "moves": moved,
        })
    };
    if arguments.dry_run {
        if let Undo::Nothing(reason) = undo {
            printer.note(format!("{}: {reason}", client.tool));
            return Ok(Some(row("unchanged", Some(reason), &[])));
        }
        if !printer.json {
            printer.data(machine.preview(client, before, after))?;
        }
        return Ok(Some(row("would disconnect", None, &[])));
    }
    let how = match &undo {
        Undo::Nothing(reason) => {
            let moved = record.as_ref().map_or(&[][..], |record| &record.moved);
            let kept = kept_in_switchboard(moved);
            printer.note(format!(
                "{}: {reason}{kept}",
                paint(style::NAME, client.tool)
            ));
            forget(client.tool, machine)?;
            return Ok(Some(row("unchanged", Some(reason), &[])));
        }
        Undo::Restore { .. } => "its file is as it was before",
        Undo::Delete => "the file that `connect` had created is deleted",
        Undo::Edit(_) => "the entry is removed; other changes of the file stay",
    };
    write(client, &found, &undo, record.as_ref(), machine)?;
    printer.note(format!(
        "{} {}: {}; {how}",
        paint(style::GOOD, "disconnected"),
        paint(style::NAME, client.tool),
        machine.shown(&client.path)
    ));
    let mut moved = Vec::new();
    if let Some(record) = &record {
        for server in &record.moved {
            let line = give_back(client.tool, server, machine);
            printer.note(format!("  {line}"));
            moved.push(line);
        }
    }
    forget(client.tool, machine)?;
    journal::changed(
        "disconnect",
        client.path.display().to_string(),
        machine.context,
    );
    Ok(Some(row("disconnected", Some(how), &moved)))
}

fn undo(found: &Found, record: Option<&Record>, machine: &Machine<'_>) -> Result<Undo, Failure> {
    let client = &found.client;
    let Some(text) = &found.text else {
        return Ok(Undo::Nothing("its file is gone"));
    };
    let refused = |error| machine.refused(client, &error);
    let file = file_of(client, text);
    let Some(record) = record else {
        if found.content.bridge.is_none() {
            return Ok(Undo::Nothing(match found.content.other_bridge {
                Some(_) => {
                    "not connected by this command; remove its entry for Switchboard by hand"
                }
                None => "not connected",
            }));
        }
        return Ok(Undo::Edit(file.without(&[ENTRY], false).map_err(refused)?));
    };
    if record.is_as_written(text) {
        if record.is_created {
            return Ok(Undo::Delete);
        }
        let backup = record.restores.as_deref();
        let restored = backup.and_then(|name| Some((name, machine.store.backup(name)?)));
        if let Some((name, text)) = restored {
            let backup = name.to_owned();
            return Ok(Undo::Restore { text, backup });
        }
    }
    let without = match found.content.bridge {
        Some(_) => {
            let drops = record.adds_container && record.moved.is_empty();
            file.without(&[ENTRY], drops).map_err(refused)?
        }
        None => text.clone(),
    };
    let values: Vec<(&str, &str)> = record
        .moved
        .iter()
        .map(|server| (server.name.as_str(), server.value.as_str()))
        .collect();
    let text = file_of(client, &without)
        .with_values(&values)
        .map_err(refused)?;
    Ok(if found.text.as_ref() == Some(&text) {
        Undo::Nothing("its entry was removed already")
    } else {
        Undo::Edit(text)
    })
}

fn write(
    client: &Client,
    found: &Found,
    undo: &Undo,
    record: Option<&Record>,
    machine: &Machine<'_>,
) -> Result<(), Failure> {
    let store = &machine.store;
    let before = found.text.as_deref().unwrap_or_default();
    let done = match undo {
        Undo::Restore { text, backup } => {
            let written = store.write(&client.path, Some(before), text);
            written.map(|()| store.discard_backup(backup))
        }
        Undo::Delete => {
            let folders = record.map_or(&[][..], |record| &record.folders);
            store.delete(&client.path, before, folders)
        }
        Undo::Edit(text) => store
            .back_up(client.tool, &time::compact_now(), &client.path, before)
            .and_then(|_| store.write(&client.path, Some(before), text)),
        Undo::Nothing(_) => Ok(()),
    };
    done.map_err(|error| not_changed(client, &error))
}

/// Takes a moved server out of Switchboard again, unless it is used or was changed there. Returns what was done.
fn give_back(tool: Tool, server: &MovedServer, machine: &Machine<'_>) -> String {
    let name = visible(&server.taken_as);
    let back = format!("`{}` is back in {tool}", visible(&server.name));
    if !server.is_added {
        return format!("{back}; `{name}` stays in Switchboard, which had it before");
    }
    if let Some(other) = pass_on(tool, server, machine) {
        return format!("{back}; `{name}` stays in Switchboard, because {other} uses it");
    }
    match machine.entry_digest(&server.taken_as, &server.target) {
        None => format!("{back}; Switchboard no longer has `{name}`"),
        Some(digest) if digest != server.digest => {
            format!("{back}; `{name}` stays in Switchboard, because you have changed it there")
        }
        Some(_) => match machine.remove_taken(server) {
            Ok(()) => format!("{back} and removed from Switchboard"),
            Err(failure) => format!("{back}; `{name}` stays in Switchboard: {}", failure.message),
        },
    }
}

/// Another connected client whose own copy of the server was removed in favour of this one. It becomes the owner.
fn pass_on(tool: Tool, server: &MovedServer, machine: &Machine<'_>) -> Option<Tool> {
    for other in Tool::ALL.into_iter().filter(|other| *other != tool) {
        let Ok(Some(mut record)) = machine.store.record(other) else {
            continue;
        };
        let is_same = |each: &&mut MovedServer| {
            (&each.taken_as, &each.target) == (&server.taken_as, &server.target)
        };
        if let Some(theirs) = record.moved.iter_mut().find(is_same) {
            theirs.is_added = true;
            theirs.digest.clone_from(&server.digest);
            return machine.store.save(other, &record).ok().map(|()| other);
        }
    }
    None
}

fn kept_in_switchboard(moved: &[MovedServer]) -> String {
    if moved.is_empty() {
        return String::new();
    }
    let names: Vec<String> = moved
        .iter()
        .map(|server| format!("`{}`", visible(&server.taken_as)))
        .collect();
    format!("; Switchboard keeps {}", names.join(", "))
}

fn forget(tool: Tool, machine: &Machine<'_>) -> Result<(), Failure> {
    machine.store.forget(tool).map_err(|error| {
        Failure::failed(format!("the record of {tool} was not deleted"))
            .because(visible(&error.to_string()))
            .hint("delete it by hand")
    })
}
