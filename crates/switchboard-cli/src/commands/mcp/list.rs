//! `switchboard mcp list`: all servers, and whether they can be connected to.

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::catalog::ToolCount;
use switchboard::names::ServerName;
use switchboard::status::ServerStatus;
use switchboard_config::entry::Transport;
use switchboard_config::resolve::{Config, Server, Status};

use crate::commands::status::{era_word, state_style, tools_cell};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Table, style};
use crate::servers::{HeldBack, Servers};
use crate::session;
use crate::view;

pub(crate) fn run(no_connect: bool, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let can_start = |server: &Server| server.status == Status::Ready;
    if no_connect || !servers.config.servers.iter().any(can_start) {
        let rows = rows(&servers.config, |_| None, &[]);
        show(&rows, Columns::Configured, context)?;
        notes(&servers.config, context);
        return Ok(Exit::Done);
    }
    session::look(context, &servers, async |session| {
        session.start_quietly().await;
        let status = |name: &str| session.host.status(&ServerName::from(name));
        let rows = rows(&servers.config, status, &session.held_back);
        show(&rows, Columns::Connected, context)?;
        session.tell_doctor();
        notes(&servers.config, context);
        Ok(Exit::Done)
    })
}

/// What is shown of each server.
#[derive(Clone, Copy)]
enum Columns {
    /// What the files say.
    Configured,
    /// That, and what the server says.
    Connected,
}

/// One server as it is shown.
struct Row<'c> {
    server: &'c Server,
    /// How it stands, if it was started.
    status: Option<ServerStatus>,
    /// Why it could not be started although its entry is well.
    held_back: Option<&'c HeldBack>,
}

fn rows<'c>(
    config: &'c Config,
    status: impl Fn(&str) -> Option<ServerStatus>,
    held_back: &'c [HeldBack],
) -> Vec<Row<'c>> {
    let row = |server: &'c Server| Row {
        server,
        status: status(&server.name),
        held_back: held_back
            .iter()
            .find(|held| held.name == server.name && server.status == Status::Ready),
    };
    config.servers.iter().map(row).collect()
}

impl Row<'_> {
    fn state(&self) -> (Style, &'static str) {
        match (&self.status, self.held_back) {
            (Some(status), _) => (state_style(status.state), status.state.word()),
            (None, Some(held)) => (held.style(), held.state),
            (None, None) => {
                let status = &self.server.status;
                (configured_style(status), status.word())
            }
        }
    }

    /// How many tools it has, while it is connected.
    fn tools(&self) -> Option<ToolCount> {
        let status = self.status.as_ref()?;
        status.revision.map(|_| status.count)
    }

    fn error(&self) -> Option<String> {
        match (&self.status, self.held_back) {
            (Some(status), _) => status.reason(),
            (None, Some(held)) => Some(held.reason.clone()),
            (None, None) => match &self.server.status {
                Status::Ready | Status::Disabled => None,
                status => status.reason(),
            },
        }
    }

    fn to_json(&self) -> Value {
        let revision = self.status.as_ref().and_then(|status| status.revision);
        json!({
            "name": self.server.name,
            "transport": transport(self.server),
            "scope": self.server.scope().name(),
            "source": view::place_json(&self.server.origin),
            "state": self.state().1,
            "tools": self.tools().map(|count| count.offered),
            "setAside": self.tools().map(|count| count.set_aside),
            "hidden": self.tools().map(|count| count.hidden),
            "era": revision.map(|revision| era_word(revision.era())),
            "error": self.error(),
        })
    }
}

fn show(rows: &[Row<'_>], columns: Columns, context: &Context) -> Result<(), Failure> {
    let printer = &context.printer;
    if printer.json {
        return printer.json(&rows.iter().map(Row::to_json).collect());
    }
    if rows.is_empty() {
        return Ok(());
    }
    let home = &context.environment.home;
    let mut table = match columns {
        Columns::Configured => {
            Table::with_heading(&["NAME", "TRANSPORT", "SCOPE", "STATE", "SOURCE", "TARGET"])
        }
        Columns::Connected => Table::with_heading(&[
            "NAME",
            "TRANSPORT",
            "SCOPE",
            "STATE",
            "TOOLS",
            "SOURCE",
            "TARGET",
        ]),
    };
    for row in rows {
        let name = (style::NAME, row.server.name.as_str());
        let transport = (Style::new(), transport(row.server).unwrap_or("?"));
        let scope = (Style::new(), row.server.scope().name());
        let source = view::place(&row.server.origin, home);
        let source = (style::QUIET, source.as_str());
        let target = view::target(&row.server.entry);
        let target = (Style::new(), target.as_str());
        match columns {
            Columns::Configured => {
                table.row([name, transport, scope, row.state(), source, target]);
            }
            Columns::Connected => {
                let tools = row
                    .tools()
                    .map_or_else(|| "–".to_owned(), |count| tools_cell(&count));
                let tools = (Style::new(), tools.as_str());
                table.row([name, transport, scope, row.state(), tools, source, target]);
            }
        }
        if let Some(reason) = row.error() {
            table.remark(row.state().0, &reason);
        }
    }
    printer.data(table)
}

fn notes(config: &Config, context: &Context) {
    let printer = &context.printer;
    if config.servers.is_empty() {
        printer.note("no servers are configured; add one with `switchboard mcp add NAME URL`");
    }
    let is_waiting = |server: &&Server| matches!(server.status, Status::Untrusted(_));
    let waiting = config.servers.iter().filter(is_waiting).count();
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
}

fn transport(server: &Server) -> Option<&'static str> {
    server.transport().map(Transport::name)
}

fn configured_style(status: &Status) -> Style {
    match status {
        Status::Ready => style::GOOD,
        Status::Disabled | Status::Shadowed { .. } => style::QUIET,
        Status::Untrusted(_) => style::WARNING,
        Status::Faulty(_) | Status::Blocked { .. } | Status::Refused { .. } => style::ERROR,
    }
}
