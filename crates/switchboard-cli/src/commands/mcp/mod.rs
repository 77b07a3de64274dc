//! `switchboard mcp …`: manages servers.

pub(crate) mod add;
mod add_json;
mod export;
mod get;
mod import;
mod insert;
pub(crate) mod list;
pub(crate) mod login;
mod logout;
mod remove;
mod toggle;

use crate::cli::{GlobalFlags, McpCommand};
use crate::context::Context;
use crate::error::Outcome;

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
        McpCommand::Login(arguments) => login::run(&arguments, context),
        McpCommand::Logout { name } => logout::run(&name, context),
        McpCommand::Import(arguments) => import::run(&arguments, context),
        McpCommand::Export(arguments) => export::run(&arguments, context),
    }
}
