//! `switchboard clients list` and `switchboard clients status`.

use serde_json::json;
use switchboard_config::clients::Bridge;
use switchboard_config::text::visible;

use super::{Found, Machine, worst};
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, style};

pub(super) fn list(names: &[String], machine: &Machine<'_>) -> Outcome {
    let printer = &machine.context.printer;
    let clients = machine.clients(names)?;
    let mut table = Table::new(&[
        Column::key("CLIENT"),
        Column::new("STATE"),
        Column::new("SERVERS"),
        Column::path("FILE").dropped(1),
    ]);
    let (mut rows, mut failures, mut connected, mut found_count) = (Vec::new(), Vec::new(), 0, 0);
    for client in &clients {
        let read = machine.read(client);
        let (is_connected, servers) = match &read {
            Ok(found) => (is_connected(found), Some(found.content.servers.len())),
            Err(_) => (false, None),
        };
        connected += usize::from(is_connected);
        found_count += usize::from(client.is_found && read.is_ok());
        let (color, word) = match &read {
            Err(_) => (style::ERROR, "unreadable"),
            Ok(_) if is_connected => (style::GOOD, "connected"),
            Ok(_) if client.is_found => (anstyle::Style::new(), "found"),
            Ok(_) => (style::QUIET, "not found"),
        };
        let count = servers.map_or_else(String::new, |count| count.to_string());
        table.row([
            (style::NAME, client.tool.name()),
            (color, word),
            (anstyle::Style::new(), &count),
            (style::QUIET, &machine.shown(&client.path)),
        ]);
        rows.push(json!({
            "client": client.tool.name(),
            "found": client.is_found,
            "file": client.path.display().to_string(),
            "connected": is_connected,
            "servers": servers,
            "error": read.as_ref().err().map(reason),
        }));
        failures.extend(read.err());
    }
    if printer.json {
        printer.json(&rows.into())?;
    } else {
        printer.table(&table)?;
    }
    for failure in &failures {
        printer.warning(reason(failure), failure.hints.first().map(String::as_str));
    }
    if connected < found_count {
        printer.note("connect the clients that were found with `switchboard clients connect`");
    }
    Ok(Exit::Done)
}

pub(super) fn status(names: &[String], machine: &Machine<'_>) -> Outcome {
    let printer = &machine.context.printer;
    let mut table = Table::new(&[
        Column::key("CLIENT"),
        Column::new("STATE"),
        Column::new("PROFILE"),
        Column::path("FILE").dropped(1),
        Column::new("DIFFERENCE"),
    ]);
    let (mut rows, mut exit, mut is_stale) = (Vec::new(), Exit::Done, false);
    for client in machine.clients(names)? {
        let found = match machine.read(&client) {
            Ok(found) => found,
            // Without a record, the client was not connected by this program.
            Err(_) if matches!(machine.store.record(client.tool), Ok(None)) => continue,
            Err(failure) => {
                exit = worst(exit, &failure);
                printer.warning(reason(&failure), failure.hints.first().map(String::as_str));
                continue;
            }
        };
        let Some(bridge) = &found.content.bridge else {
            continue;
        };
        let record = machine.record(client.tool)?;
        let wanted = machine.bridge(None, record.as_ref(), &found);
        let differences = differences(&found, &wanted);
        let is_disabled = bridge.entry.enabled == Some(false);
        let (color, word) = match (differences.is_empty(), is_disabled) {
            (false, _) => (style::WARNING, "stale"),
            (true, true) => (style::QUIET, "disabled"),
            (true, false) => (style::GOOD, "connected"),
        };
        is_stale |= !differences.is_empty();
        let profile = Bridge::profile_of(&bridge.entry);
        table.row([
            (style::NAME, client.tool.name()),
            (color, word),
            (
                anstyle::Style::new(),
                profile.as_deref().unwrap_or_default(),
            ),
            (style::QUIET, &machine.shown(&client.path)),
            (style::WARNING, &differences.join("; ")),
        ]);
        rows.push(json!({
            "client": client.tool.name(),
            "file": client.path.display().to_string(),
            "state": word,
            "command": bridge.entry.command,
            "args": bridge.entry.args,
            "profile": profile,
            "moved": record.map(|record| record.moved.len()).unwrap_or_default(),
            "differences": differences,
        }));
    }
    let is_empty = rows.is_empty();
    if printer.json {
        printer.json(&rows.into())?;
    } else if is_empty {
        printer.note("no client is connected; `switchboard clients connect` connects them");
    } else {
        printer.table(&table)?;
    }
    if is_stale {
        let failure = Failure::failed("some entries are out of date")
            .hint("run `switchboard clients connect` to update them");
        exit = worst(exit, &failure);
        printer.warning(failure.message, failure.hints.first().map(String::as_str));
    }
    Ok(exit)
}

/// Whether the client starts the bridge, under whatever name.
pub(super) fn is_connected(found: &Found) -> bool {
    found.content.bridge.is_some() || found.content.other_bridge.is_some()
}

/// How a bridge differs from what `connect` would write.
fn differences(found: &Found, wanted: &Bridge) -> Vec<String> {
    let Some(standing) = &found.content.bridge else {
        return Vec::new();
    };
    let (is, should) = (&standing.entry, wanted.entry());
    let mut differences = Vec::new();
    let text =
        |command: &Option<String>| visible(command.as_deref().unwrap_or_default()).into_owned();
    if is.command != should.command {
        differences.push(format!(
            "it starts {}, this program is {}",
            text(&is.command),
            text(&should.command)
        ));
    }
    if is.args != should.args {
        let line = |args: &[String]| visible(&switchboard_config::words::join(args)).into_owned();
        differences.push(format!(
            "its arguments are `{}`, expected `{}`",
            line(&is.args),
            line(&should.args)
        ));
    }
    differences
}

fn reason(failure: &Failure) -> String {
    let causes = failure.causes.join("; ");
    if causes.is_empty() {
        failure.message.clone()
    } else {
        causes
    }
}
