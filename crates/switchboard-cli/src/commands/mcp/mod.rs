//! `switchboard mcp …`: manages servers.

pub(crate) mod add;
mod add_json;
mod export;
mod get;
pub(crate) mod import;
pub(crate) mod insert;
pub(crate) mod list;
pub(crate) mod login;
mod logout;
pub(crate) mod remove;
mod rename;
mod toggle;

use crate::cli::{GlobalFlags, McpCommand};
use crate::commands::doctor;
use crate::context::Context;
use crate::editor;
use crate::error::Outcome;
use crate::servers::no_such_server;

pub(crate) fn run(command: McpCommand, global: GlobalFlags) -> Outcome {
    // The words of `add` may contain global flags, so `add` creates its own context.
    if let McpCommand::Add { words } = command {
        return add::run(words, global);
    }
    let context = &Context::new(global)?;
    match command {
        McpCommand::Add { .. } => Ok(crate::exit::Exit::Done),
        McpCommand::AddJson(arguments) => add_json::run(&arguments, context),
        McpCommand::Remove { name, scope } => remove::run(&name, scope, context),
        McpCommand::Enable { name } => toggle::run(&name, toggle::Wanted::Enabled, context),
        McpCommand::Disable { name } => toggle::run(&name, toggle::Wanted::Disabled, context),
        McpCommand::List { no_connect } => list::run(no_connect, context),
        McpCommand::Get { name } => get::run(&name, context),
        McpCommand::Rename { name, new } => rename::run(&name, &new, context),
        McpCommand::Edit { name } => edit(&name, context),
        McpCommand::Test { name } => doctor::run(Some(&name), false, context),
        McpCommand::Login(arguments) => login::run(&arguments, context),
        McpCommand::Logout { name } => logout::run(&name, context),
        McpCommand::Import(arguments) => import::run(&arguments, context),
        McpCommand::Export(arguments) => export::run(&arguments, context),
    }
}

/// Opens the file of a server at its entry.
fn edit(name: &str, context: &Context) -> Outcome {
    let config = context.load_files(context.decisions());
    let Some(server) = config.server(name) else {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    };
    if let Some(failure) = remove::read_only_failure(&server.origin) {
        return Err(failure);
    }
    let line = server.origin.position().line;
    editor::edit(server.origin.path(), Some(line), context)
}
