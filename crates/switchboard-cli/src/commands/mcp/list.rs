//! `switchboard mcp list`: lists all servers and whether they connect.

use std::path::Path;

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::ServerName;
use switchboard::catalog::ToolCount;
use switchboard::internal::workspace;
use switchboard::status::ServerStatus;
use switchboard_config::entry::Transport;
use switchboard_config::resolve::{Config, Server, Status};

use crate::commands::mcp::import;
use crate::commands::status::{era_word, tools_cell};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, style};
use crate::servers::{NO_SERVERS, Servers};
use crate::session;
use crate::state::Shown;
use crate::view;

pub(crate) fn run(no_connect: bool, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let can_start = |server: &Server| server.status == Status::Ready;
    let any_can_start = servers.is_embedded_only() || servers.config.servers.iter().any(can_start);
    if no_connect || !any_can_start {
        let rows = rows(&servers, |_| None);
        show(&rows, Columns::Configured, context)?;
        notes(&servers.config, context);
        return Ok(Exit::Done);
    }
    session::run_listing(context, &servers, async |session| {
        session.start_quietly().await;
        let status = |name: &str| session.host.status(&ServerName::from(name));
        let rows = rows(&servers, status);
        show(&rows, Columns::Connected, context)?;
        session.suggest_doctor();
        notes(&servers.config, context);
        Ok(Exit::Done)
    })
}

/// The scope of the embedded server, which is there while no server is configured.
const EMBEDDED: &str = "embedded";

/// The columns of the table.
#[derive(Clone, Copy)]
pub(crate) enum Columns {
    /// From the configuration only.
    Configured,
    /// Also what connected servers report.
    Connected,
}

pub(crate) struct Row<'c> {
    /// `None`: the embedded server, which no file configures.
    server: Option<&'c Server>,
    /// `None` if servers are not started.
    status: Option<ServerStatus>,
    shown: Shown,
}

fn rows<'c>(servers: &'c Servers, status: impl Fn(&str) -> Option<ServerStatus>) -> Vec<Row<'c>> {
    if servers.is_embedded_only() {
        return vec![Row::embedded(status(workspace::NAME))];
    }
    let row = |server: &'c Server| Row::of(server, status(&server.name));
    servers.config.servers.iter().map(row).collect()
}

impl<'c> Row<'c> {
    pub(crate) fn of(server: &'c Server, status: Option<ServerStatus>) -> Self {
        let shown = match &status {
            Some(status) => Shown::of_status(status),
            None => Shown::configured(server),
        };
        Self {
            server: Some(server),
            status,
            shown,
        }
    }

    fn embedded(status: Option<ServerStatus>) -> Self {
        let shown = status.as_ref().map(Shown::of_status);
        Self {
            server: None,
            status,
            shown: shown.unwrap_or_else(Shown::ready),
        }
    }

    fn name(&self) -> &str {
        self.server
            .map_or(workspace::NAME, |server| server.name.as_str())
    }

    fn transport(&self) -> Option<&'static str> {
        let own = Some(Transport::Sdk);
        self.server
            .map_or(own, Server::transport)
            .map(Transport::name)
    }

    fn scope(&self) -> &'static str {
        self.server.map_or(EMBEDDED, |server| server.scope().name())
    }

    /// The number of tools, if connected.
    fn tools(&self) -> Option<ToolCount> {
        let status = self.status.as_ref()?;
        status.revision.map(|_| status.count)
    }

    pub(crate) fn to_json(&self) -> Value {
        let revision = self.status.as_ref().and_then(|status| status.revision);
        json!({
            "name": self.name(),
            "transport": self.transport(),
            "scope": self.scope(),
            "source": match self.server {
                Some(server) => view::place_json(&server.origin),
                None => view::no_place_json(EMBEDDED),
            },
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
    printer.table(&table(rows, columns, &context.environment.home))
}

pub(crate) fn table(rows: &[Row<'_>], columns: Columns, home: &Path) -> Table {
    let name = Column::new("NAME");
    let transport_column = Column::new("TRANSPORT").dropped(2);
    let scope = Column::new("SCOPE").dropped(3);
    let state = Column::new("STATE").state();
    let tools = Column::new("TOOLS").dropped(5);
    let source = Column::path("SOURCE").dropped(1);
    let target = Column::path("TARGET").dropped(4);
    let mut table = Table::new(&match columns {
        Columns::Configured => vec![name, transport_column, scope, state, source, target],
        Columns::Connected => vec![name, transport_column, scope, state, tools, source, target],
    });
    for row in rows {
        let name = (style::NAME, row.name());
        let transport = (Style::new(), row.transport().unwrap_or("?"));
        let scope = (Style::new(), row.scope());
        let state = (row.shown.style, row.shown.word);
        let place = |server: &Server| view::place(&server.origin, home);
        let source = row.server.map_or_else(|| "–".to_owned(), place);
        let source = (style::QUIET, source.as_str());
        let target = row.server.map(|server| view::target(&server.entry));
        let target = target.unwrap_or_else(|| "this folder's files, read-only".to_owned());
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
        printer.note(NO_SERVERS);
        import::suggest(context);
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
