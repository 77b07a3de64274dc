//! `switchboard tools`: the catalogue.
//!
//! Until servers can be connected to, it is that of the embedded server, which is there when no server is
//! configured or when it is configured itself.

use std::fmt::Write as _;

use switchboard_config::entry::Transport;
use switchboard_config::resolve::{Config, Status};
use switchboard_config::text::visible;
use switchboard_protocol::types::tool::Tool;

use crate::cli::ToolsArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::workspace;

pub(crate) fn run(arguments: &ToolsArguments, context: &Context) -> Outcome {
    let printer = &context.printer;
    let config = context.load();
    let embedded = has_embedded_server(&config);
    if let Some(wanted) = &arguments.server
        && config.server(wanted).is_none()
        && !(embedded && wanted == workspace::SERVER)
    {
        let message = format!("there is no server `{}`", visible(wanted));
        return Err(Failure::failed(message).hint("`switchboard mcp list` shows all servers"));
    }
    let wanted = |name: &str| {
        arguments
            .server
            .as_deref()
            .is_none_or(|wanted| wanted == name)
    };
    let unconnected = config
        .servers
        .iter()
        .filter(|server| wanted(&server.name) && !is_embedded(server))
        .count();
    if unconnected > 0 {
        let servers = if unconnected == 1 {
            "server"
        } else {
            "servers"
        };
        printer.note(format!(
            "{unconnected} {servers} configured; connecting to servers comes with the host, so their tools are not listed yet"
        ));
    }
    let tools = if embedded && wanted(workspace::SERVER) {
        workspace::tools()
    } else {
        Vec::new()
    };
    if printer.json {
        printer.json(&tools.iter().map(workspace::to_json).collect())?;
    } else {
        printer.data(to_text(&tools))?;
    }
    Ok(Exit::Done)
}

/// Whether the embedded server is there: nothing else is configured, or it is configured itself.
fn has_embedded_server(config: &Config) -> bool {
    config.servers.is_empty() || config.servers.iter().any(is_embedded)
}

fn is_embedded(server: &switchboard_config::resolve::Server) -> bool {
    server.name == workspace::SERVER
        && server.transport() == Some(Transport::Sdk)
        && server.status == Status::Ready
}

fn to_text(tools: &[Tool<'_>]) -> String {
    let mut text = String::new();
    for tool in tools {
        let _ = writeln!(
            text,
            "{}  {}",
            paint(style::NAME, workspace::exposed_name(tool)),
            paint(
                style::QUIET,
                format!("about {} tokens", workspace::tokens(tool))
            )
        );
        let _ = writeln!(
            text,
            "    {}",
            tool.description.as_deref().unwrap_or_default()
        );
    }
    text
}
