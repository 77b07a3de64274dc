//! `switchboard mcp …`: the servers.

pub(crate) mod add;
mod add_json;
mod export;
mod get;
mod import;
mod insert;
mod list;
mod remove;
mod toggle;

use switchboard_config::text::visible;

use crate::cli::{GlobalFlags, McpCommand};
use crate::context::Context;
use crate::error::{Failure, Outcome};

pub(crate) fn run(command: McpCommand, global: GlobalFlags) -> Outcome {
    // The words of `add` may hold global flags, so it makes its own context.
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
        McpCommand::Import(arguments) => import::run(&arguments, context),
        McpCommand::Export(arguments) => export::run(&arguments, context),
    }
}

/// There is no server of that name, but perhaps one of nearly that name.
fn no_such_server<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Failure {
    let failure = Failure::failed(format!("there is no server `{}`", visible(name)));
    match switchboard_config::entry::keys::nearest(name, known) {
        Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
        None => failure.hint("`switchboard mcp list` shows all servers"),
    }
}
