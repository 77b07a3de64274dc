//! `/mcp`: shows and changes the servers of a running chat.

use anstyle::Style;
use switchboard::ServerName;
use switchboard::catalog::CatalogServer;
use switchboard::status::{Remedy, ServerState, ServerStatus};
use switchboard_config::text::visible;
use switchboard_config::words;

use super::slash::nearest;
use crate::cli::McpCommand;
use crate::commands::mcp;
use crate::commands::tools;
use crate::current::{Current, blocking};
use crate::error::Failure;
use crate::printer::{Table, style};
use crate::session::CommandHost;
use crate::state::Shown;
use crate::terminal::{self, fitted};

pub(super) const SUBCOMMANDS: [&str; 7] = [
    "list",
    "reconnect",
    "login",
    "enable",
    "disable",
    "tools",
    "add",
];

/// Subcommands and descriptions for `/help`.
pub(super) const HELP: [(&str, &str); 6] = [
    ("list", "list the servers and their status"),
    ("tools [NAME]", "the tools of a server"),
    ("reconnect NAME", "reconnect a server"),
    ("login NAME", "log in to a server"),
    (
        "enable|disable NAME",
        "enable or disable a server, permanently",
    ),
    ("add NAME …", "add a server, as `switchboard mcp add` does"),
];

/// Runs the text typed after `/mcp`.
pub(super) async fn run(
    typed: &str,
    current: &Current,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    let usage = |message: String| {
        Failure::usage(message).hint(format!(
            "/mcp, or /mcp with one of: {}",
            SUBCOMMANDS.join(", ")
        ))
    };
    let words = words::split(typed).ok_or_else(|| usage("unclosed quote".to_owned()))?;
    let Some((first, rest)) = words.split_first() else {
        return list(session);
    };
    if first == "list" && rest.is_empty() {
        return list(session);
    }
    if first == "add" {
        return add(rest, current, session).await;
    }
    if first == "tools" && rest.is_empty() {
        return all_tools(session).await;
    }
    if !SUBCOMMANDS.contains(&first.as_str()) {
        let failure = Failure::usage(format!("unknown command `/mcp {}`", visible(first)));
        let near = nearest(first, SUBCOMMANDS.into_iter());
        return Err(match near {
            Some(near) => failure.hint(format!("did you mean `/mcp {near}`?")),
            None => failure.hint(format!("use one of {}", SUBCOMMANDS.join(", "))),
        });
    }
    let [name] = rest else {
        return Err(usage(format!("`/mcp {first}` takes one server name")));
    };
    let names = session.names();
    if !names.contains(name) {
        return Err(crate::servers::no_such_server(
            name,
            names.iter().map(String::as_str),
        ));
    }
    match first.as_str() {
        "tools" => tools_of(name, session).await,
        "reconnect" => reconnect(name, current, session).await,
        "login" => {
            let newest = current.newest();
            let configured = newest.as_deref().unwrap_or(session.servers);
            mcp::login::within(name, configured, session).await?;
            Ok(())
        }
        "enable" => toggle(McpCommand::Enable { name: name.clone() }, current, session).await,
        _ => toggle(McpCommand::Disable { name: name.clone() }, current, session).await,
    }
}

fn list(session: &CommandHost<'_>) -> Result<(), Failure> {
    let catalog = session.host.catalog();
    let tokens = |name: &str| catalog.server(name).map(|server| server.tokens().0);
    let width = terminal::width().unwrap_or(100);
    let table = table(&session.host.statuses(), tokens, width);
    session.context.printer.table(&table)
}

/// One row per server. A server that cannot be started has its reason on an extra line.
pub(crate) fn table(
    statuses: &[ServerStatus],
    tokens: impl Fn(&str) -> Option<u64>,
    width: usize,
) -> Table {
    let mut table = Table::with_heading(&["NAME", "STATE", "TOOLS", "TOKENS", ""]);
    let widest = statuses
        .iter()
        .map(|status| status.name.as_str().len())
        .max();
    let taken = widest.unwrap_or_default().max(4) + "  needs-auth  TOOLS  TOKENS  ".len();
    let room = width.saturating_sub(taken + 1).max(20);
    let dash = || "–".to_owned();
    for status in statuses {
        let name = status.name.as_str();
        let shown = Shown::of(&status.state);
        let is_connected = status.state.is_connected();
        let count = is_connected.then(|| status.tools.to_string());
        let tokens = tokens(name).map(|tokens| tokens.to_string());
        let is_off = matches!(status.state, ServerState::Disabled { .. });
        let has_line = is_off || status.state.is_withheld();
        let remark = if has_line {
            remedy(status)
        } else {
            fitted(&remark(status), room).into_owned()
        };
        table.row([
            (style::NAME, name),
            (shown.style, shown.word),
            (Style::new(), &count.unwrap_or_else(dash)),
            (Style::new(), &tokens.unwrap_or_else(dash)),
            (style::QUIET, &remark),
        ]);
        if let Some(reason) = shown.reason.filter(|_| has_line) {
            table.remark(style::QUIET, &reason);
        }
    }
    table
}

/// The reason for a state and its remedy, on one line.
fn remark(status: &ServerStatus) -> String {
    match (&status.state, status.reason()) {
        (ServerState::Connected, _) => status.count.rest().unwrap_or_default(),
        (ServerState::NeedsAuth { .. }, reason) => {
            format!("{}; {}", reason.unwrap_or_default(), remedy(status))
        }
        (_, reason) => reason.unwrap_or_default(),
    }
}

/// The remedy for a state, as a chat command.
fn remedy(status: &ServerStatus) -> String {
    match status.remedy() {
        Some(Remedy::Login(name)) => format!("/mcp login {}", visible(&name)),
        Some(Remedy::Enable(name)) => format!("/mcp enable {}", visible(&name)),
        Some(remedy) => remedy.to_string(),
        None => String::new(),
    }
}

/// Connects all servers and lists their tools.
pub(super) async fn all_tools(session: &CommandHost<'_>) -> Result<(), Failure> {
    session.start_some(|_| true).await;
    let text = tools::to_text(
        &session.host.catalog(),
        tools::Detail::Usual,
        terminal::width(),
    );
    if text.is_empty() {
        session.context.printer.note("no server offers a tool");
        return Ok(());
    }
    session.context.printer.data(text)
}

async fn tools_of(name: &str, session: &CommandHost<'_>) -> Result<(), Failure> {
    session.start_one(name).await?;
    let catalog = session.host.catalog();
    let server = catalog
        .servers()
        .iter()
        .find(|server| server.name().as_str() == name);
    let mut table = Table::with_heading(&["TOOL", "TOKENS", "ABOUT"]);
    for tool in server.into_iter().flat_map(CatalogServer::tools) {
        let about = tools::first_line(tool);
        let room = terminal::width()
            .unwrap_or(100)
            .saturating_sub(tool.exposed().as_str().len() + 12);
        table.row([
            (style::NAME, tool.exposed().as_str()),
            (Style::new(), &tool.tokens().0.to_string()),
            (style::QUIET, &fitted(&about, room.max(20))),
        ]);
    }
    session.context.printer.table(&table)
}

async fn reconnect(
    name: &str,
    current: &Current,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    let server = ServerName::from(name);
    let status = session.host.status(&server);
    if status.is_none_or(|status| status.state.is_withheld()) {
        // It may have been approved or repaired meanwhile.
        current.reload(session).await?;
    } else {
        session.restart(&server).await;
    }
    session.need(name)?;
    let status = session.host.status(&server);
    let count = status.map(|status| status.count).unwrap_or_default();
    let message = format!("{} is connected: {count}", visible(name));
    session.context.printer.note(message);
    Ok(())
}

async fn toggle(
    command: McpCommand,
    current: &Current,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    let flags = session.context.flags.clone();
    blocking(move || mcp::run(command, flags)).await??;
    current.reload(session).await
}

async fn add(
    words: &[String],
    current: &Current,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    if words.is_empty() {
        return Err(Failure::usage("no server to add")
            .hint("/mcp add NAME URL, or /mcp add NAME -- COMMAND ARGUMENTS"));
    }
    let before = session.names();
    let (flags, words) = (session.context.flags.clone(), words.to_vec());
    blocking(move || mcp::run(McpCommand::Add { words }, flags)).await??;
    current.reload(session).await?;
    let added = session.names().into_iter();
    for name in added.filter(|name| !before.contains(name)) {
        report_added(&name, session);
    }
    Ok(())
}

/// Reports the outcome of adding a server. A failure has already been reported.
fn report_added(name: &str, session: &CommandHost<'_>) {
    let printer = &session.context.printer;
    let shown = visible(name);
    match session.host.status(&ServerName::from(name)) {
        Some(status) if status.state.is_connected() => {
            printer.note(format!("{shown} is connected: {}", status.count));
        }
        Some(status) if status.state.is_withheld() => session.report_not_started(&status),
        _ => {}
    }
}
