//! `switchboard mcp get NAME`: shows everything about one server.

use serde_json::json;
use switchboard::internal::catalog::suspicion;
use switchboard::internal::remembered;
use switchboard_config::text::visible;

use crate::commands::config::server_text;
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::servers::{Servers, no_such_server};
use crate::view::{self, Shadows};

pub(crate) fn run(name: &str, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let config = &servers.config;
    let Some(server) = config.server(name) else {
        let known = config.servers.iter().map(|server| server.name.as_str());
        return Err(no_such_server(name, known));
    };
    let shadows = Shadows::of(config);
    let printer = &context.printer;
    let suspicious = suspicious(name, &servers, context);
    if printer.json {
        let mut shown = view::server_json(server, &shadows);
        if !suspicious.is_empty() {
            shown["suspicious"] = json!(suspicious);
        }
        printer.json(&shown)?;
        return Ok(Exit::Done);
    }
    printer.data(server_text(server, &shadows, &context.environment.home))?;
    for found in suspicious {
        printer.warning(format!("suspicious: {found}"), None);
    }
    Ok(Exit::Done)
}

/// The suspicious content found when the server was last connected, sanitized.
fn suspicious(name: &str, servers: &Servers, context: &Context) -> Vec<String> {
    let (outlines, lists) = servers.remembered(context);
    let catalog = remembered::catalog(&outlines, &lists);
    let server = catalog.server(name).into_iter();
    let found = server.flat_map(|server| {
        let own = suspicion::of_text("instructions", server.instructions().unwrap_or_default());
        let own = own.into_iter().map(|flag| format!("it {flag}"));
        let tools = server.tools().flat_map(|tool| {
            let name = visible(tool.reference().tool.as_str()).into_owned();
            let flags = server.flags(tool).into_iter();
            flags.map(move |flag| format!("{name} {flag}"))
        });
        own.chain(tools).collect::<Vec<_>>()
    });
    found.collect()
}
