//! `switchboard mcp get NAME`: everything about one server.

use super::no_such_server;
use crate::commands::config::server_text;
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::view;

pub(crate) fn run(name: &str, context: &Context) -> Outcome {
    let config = context.load();
    let Some(server) = config.server(name) else {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    };
    let printer = &context.printer;
    if printer.json {
        printer.json(&view::server_json(server, &config))?;
    } else {
        printer.data(server_text(server, &config, &context.environment.home))?;
    }
    Ok(Exit::Done)
}
