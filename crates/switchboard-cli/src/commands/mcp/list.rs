//! `switchboard mcp list`: lists all servers and whether they connect.

use std::path::Path;

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::ServerName;
use switchboard::catalog::ToolCount;
use switchboard::status::ServerStatus;
use switchboard_config::entry::Transport;
use switchboard_config::resolve::{Config, Server, Status};

use crate::commands::status::{era_word, tools_cell};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Table, style};
use crate::servers::Servers;
use crate::session;
use crate::state::Shown;
use crate::view;

pub(crate) fn run(no_connect: bool, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let can_start = |server: &Server| server.status == Status::Ready;
    if no_connect || !servers.config.servers.iter().any(can_start) {
        let rows = rows(&servers.config, |_| None);
        show(&rows, Columns::Configured, context)?;
        notes(&servers.config, context);
        return Ok(Exit::Done);
    }
    session::run_listing(context, &servers, async |session| {
        session.start_quietly().await;
        let status = |name: &str| session.host.status(&ServerName::from(name));
        let rows = rows(&servers.config, status);
        show(&rows, Columns::Connected, context)?;
        session.suggest_doctor();
        notes(&servers.config, context);
        Ok(Exit::Done)
    })
}

/// The columns of the table.
#[derive(Clone, Copy)]
pub(crate) enum Columns {
    /// From the configuration only.
    Configured,
    /// Also what connected servers report.
    Connected,
}

pub(crate) struct Row<'c> {
    server: &'c Server,
    /// `None` if servers are not started.
    status: Option<ServerStatus>,
    shown: Shown,
}

fn rows<'c>(config: &'c Config, status: impl Fn(&str) -> Option<ServerStatus>) -> Vec<Row<'c>> {
    let row = |server: &'c Server| Row::of(server, status(&server.name));
    config.servers.iter().map(row).collect()
}

impl<'c> Row<'c> {
    pub(crate) fn of(server: &'c Server, status: Option<ServerStatus>) -> Self {
        let shown = match &status {
            Some(status) => Shown::of(&status.state),
            None => Shown::configured(server),
        };
        Self {
            server,
            status,
            shown,
        }
    }

    /// The number of tools, if connected.
    fn tools(&self) -> Option<ToolCount> {
        let status = self.status.as_ref()?;
        status.revision.map(|_| status.count)
    }

    pub(crate) fn to_json(&self) -> Value {
        let revision = self.status.as_ref().and_then(|status| status.revision);
        json!({
            "name": self.server.name,
            "transport": transport(self.server),
            "scope": self.server.scope().name(),
            "source": view::place_json(&self.server.origin),
            "state": self.shown.word,
            "tools": self.tools().map(|count| count.offered),
            "setAside": self.tools().map(|count| count.set_aside),
            "hidden": self.tools().map(|count| count.hidden),
            "era": revision.map(|revision| era_word(revision.era())),
            "error": self.shown.reason,
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
    printer.data(table(rows, columns, &context.environment.home))
}

pub(crate) fn table(rows: &[Row<'_>], columns: Columns, home: &Path) -> Table {
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
        let state = (row.shown.style, row.shown.word);
        let source = view::place(&row.server.origin, home);
        let source = (style::QUIET, source.as_str());
        let target = view::target(&row.server.entry);
        let target = (Style::new(), target.as_str());
        match columns {
            Columns::Configured => {
                table.row([name, transport, scope, state, source, target]);
            }
            Columns::Connected => {
                let tools = row
                    .tools()
                    .map_or_else(|| "–".to_owned(), |count| tools_cell(&count));
                let tools = (Style::new(), tools.as_str());
                table.row([name, transport, scope, state, tools, source, target]);
            }
        }
        if let Some(reason) = &row.shown.remark {
            table.remark(row.shown.style, reason);
        }
    }
    table
}

fn notes(config: &Config, context: &Context) {
    let printer = &context.printer;
    if config.servers.is_empty() {
        printer.note("no servers configured; add one with `switchboard mcp add NAME URL`");
    }
    let is_waiting = |server: &&Server| matches!(server.status, Status::Untrusted(_));
    let waiting = config.servers.iter().filter(is_waiting).count();
    if waiting > 0 {
        let what = if waiting == 1 {
            "server requires"
        } else {
            "servers require"
        };
        printer.note(format!(
            "{waiting} {what} your approval; see `switchboard trust list`"
        ));
    }
}

fn transport(server: &Server) -> Option<&'static str> {
    server.transport().map(Transport::name)
}
