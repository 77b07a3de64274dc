//! `switchboard mcp list`: all servers.

use anstyle::Style;
use serde_json::{Value, json};
use switchboard_config::entry::Transport;
use switchboard_config::resolve::{Server, Status};

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::{Table, style};
use crate::view;

pub(crate) fn run(no_connect: bool, context: &Context) -> Outcome {
    let printer = &context.printer;
    let config = context.load();
    if printer.json {
        printer.json(&config.servers.iter().map(to_json).collect())?;
    } else {
        let mut table =
            Table::with_heading(&["NAME", "TRANSPORT", "SCOPE", "STATE", "SOURCE", "TARGET"]);
        let home = &context.environment.home;
        for server in &config.servers {
            table.row([
                (style::NAME, &server.name),
                (Style::new(), transport(server).unwrap_or("?")),
                (Style::new(), server.scope().name()),
                (state_style(&server.status), server.status.word()),
                (style::QUIET, &view::place(&server.origin, home)),
                (Style::new(), &view::target(&server.entry)),
            ]);
        }
        if !config.servers.is_empty() {
            printer.data(table)?;
        }
    }
    if config.servers.is_empty() {
        printer.note("no servers are configured; add one with `switchboard mcp add NAME URL`");
    } else if !no_connect {
        printer.note("not connected: this is what the files say; connecting comes with the host");
    }
    let waiting = config
        .servers
        .iter()
        .filter(|server| matches!(server.status, Status::Untrusted(_)))
        .count();
    if waiting > 0 {
        let what = if waiting == 1 {
            "server waits"
        } else {
            "servers wait"
        };
        printer.note(format!(
            "{waiting} {what} for your approval: look with `switchboard trust list`"
        ));
    }
    Ok(Exit::Done)
}

fn to_json(server: &Server) -> Value {
    json!({
        "name": server.name,
        "transport": transport(server),
        "scope": server.scope().name(),
        "source": server.origin.path().display().to_string(),
        "state": server.status.word(),
        "tools": null,
        "era": null,
        "error": match &server.status {
            Status::Ready | Status::Disabled => None,
            status => status.reason(),
        },
    })
}

fn transport(server: &Server) -> Option<&'static str> {
    server.transport().map(Transport::name)
}

fn state_style(status: &Status) -> Style {
    match status {
        Status::Ready => style::GOOD,
        Status::Disabled => style::QUIET,
        Status::Untrusted(_) => style::WARNING,
        Status::Faulty(_) | Status::Blocked { .. } => style::ERROR,
    }
}
