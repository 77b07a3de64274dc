//! `switchboard mcp enable` and `switchboard mcp disable`: edit a server's entry.

use serde_json::json;
use switchboard_config::edit::Edit;
use switchboard_config::entry::ServerEntry;
use switchboard_config::resolve::Status;
use switchboard_config::text::visible;
use switchboard_config::tree::Node;

use super::{insert, remove};
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::local_file::{Target, locate_entry};
use crate::printer::{paint, style};
use crate::servers::no_such_server;
use crate::{store, view};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Enabled,
    Disabled,
}

pub(super) fn run(name: &str, wanted: Wanted, context: &Context) -> Outcome {
    let decisions = context.decisions();
    context.warn_of_findings(&decisions);
    let config = context.load_files(decisions);
    let Some(server) = config.server(name) else {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    };
    if let Some(failure) = remove::read_only_failure(&server.origin) {
        return Err(failure);
    }
    let target = Target::of_path(server.origin.path().to_owned(), server.scope());
    let enabled = wanted == Wanted::Enabled;
    store::edit(&target, context, |text| {
        let location = locate_entry(text, &target, name)?;
        // If the entry has `disabled`, edit that key: adding `enabled` would contradict it.
        let negated = location.keys.iter().flatten().any(|key| key == "disabled");
        let (key, value) = if negated {
            ("disabled", !enabled)
        } else {
            ("enabled", enabled)
        };
        let path: Vec<&str> = location
            .path
            .iter()
            .map(String::as_str)
            .chain([key])
            .collect();
        let value = Node::detached(value);
        store::apply(text, &target, &Edit::Set { path: &path, value })
    })?;
    if !matches!(server.status, Status::Untrusted(_)) {
        let entry = ServerEntry {
            enabled: Some(enabled),
            ..server.entry.clone()
        };
        insert::stay_approved(name, &entry, &target, context)?;
    }
    let word = if enabled { "enabled" } else { "disabled" };
    let printer = &context.printer;
    printer.note(format!(
        "{} {} in {} scope: {}",
        paint(style::GOOD, word),
        paint(style::NAME, visible(name)),
        target.scope,
        target.shown()
    ));
    let now = context.load_files(context.decisions());
    if let (true, Some(reason)) = (
        enabled,
        now.server(name).and_then(|server| server.status.reason()),
    ) {
        let hint = "`switchboard trust list` lists pending approvals, and `switchboard config check` shows errors";
        printer.warning(
            format!("it cannot connect yet: {}", visible(&reason)),
            Some(hint),
        );
    }
    if printer.json {
        let place = view::place_json(&server.origin);
        printer.json(&json!({"name": name, "enabled": enabled, "source": place}))?;
    }
    Ok(Exit::Done)
}
