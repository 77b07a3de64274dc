//! `switchboard mcp rename`: renames a server in its file, with its comments.

use serde_json::json;
use switchboard_config::resolve::Status;
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;

use super::remove;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::{Target, locate_entry};
use crate::printer::{paint, style};
use crate::servers::no_such_server;
use crate::{rehearse, store, view};

pub(super) fn run(name: &str, new: &str, context: &Context) -> Outcome {
    let decisions = context.decisions();
    context.warn_of_findings(&decisions);
    let config = context.load_files(decisions);
    let Some(server) = config.server(name) else {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    };
    if let Some(other) = config.server(new) {
        let place = view::place(&other.origin, &context.environment.home);
        let message = format!("a server named `{}` exists already", visible(new));
        return Err(Failure::failed(message)
            .because(format!("it is at {place}"))
            .hint("choose another name, or remove that server first"));
    }
    if let Some(failure) = remove::read_only_failure(&server.origin) {
        return Err(failure);
    }
    let target = Target::of_path(server.origin.path().to_owned(), server.scope());
    store::edit(&target, context, |text| {
        let location = locate_entry(text, &target, name)?;
        let path: Vec<&str> = location.path.iter().map(String::as_str).collect();
        let renamed = store::rename(text, &target, &path, new)?;
        rehearse::check(&target, &renamed, context)?;
        Ok(renamed)
    })?;
    let was_trusted = !matches!(server.status, Status::Untrusted(_));
    if target.scope != Scope::User {
        store::change_decisions(context, |decisions, _| {
            decisions.revoke(&context.project, Some(name));
        })?;
    }
    let printer = &context.printer;
    printer.note(format!(
        "{} {} to {} in {} scope: {}",
        paint(style::GOOD, "renamed"),
        paint(style::NAME, visible(name)),
        paint(style::NAME, visible(new)),
        target.scope,
        target.shown()
    ));
    let now = context.load_files(context.decisions());
    let waits = |server: &switchboard_config::resolve::Server| {
        matches!(server.status, Status::Untrusted(_))
    };
    if was_trusted && now.server(new).is_some_and(waits) {
        printer.note(format!(
            "approve it under its new name with `switchboard trust approve {}`",
            visible(new)
        ));
    }
    let prefix = format!("mcp__{name}__");
    let is_about = |tool: &str| tool.starts_with(&prefix) || tool.starts_with(&format!("{name}/"));
    for rule in config.rules.iter().filter(|rule| is_about(&rule.tool)) {
        let place = view::place(&rule.origin, &context.environment.home);
        printer.warning(
            format!(
                "{place}: rule \"{}\" still has the old name",
                visible(&rule.tool)
            ),
            Some("change it there, or remove it with `switchboard permissions remove`"),
        );
    }
    if printer.json {
        printer.json(&json!({
            "name": new,
            "renamed": name,
            "source": view::place_json(&server.origin),
        }))?;
    }
    Ok(Exit::Done)
}
