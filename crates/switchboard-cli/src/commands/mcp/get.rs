//! `switchboard mcp get NAME`: everything about one server.

use crate::commands::config::server_text;
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::servers::no_such_server;
use crate::view::{self, Shadows};

pub(crate) fn run(name: &str, context: &Context) -> Outcome {
    let config = context.load();
    let Some(server) = config.server(name) else {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    };
    let shadows = Shadows::of(&config);
    let printer = &context.printer;
    if printer.json {
        printer.json(&view::server_json(server, &shadows))?;
    } else {
        printer.data(server_text(server, &shadows, &context.environment.home))?;
    }
    Ok(Exit::Done)
}
