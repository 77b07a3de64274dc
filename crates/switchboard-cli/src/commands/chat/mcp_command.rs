//! `/mcp`: the servers of a chat, and what can be done about them while it goes on.

use anstyle::Style;
use switchboard::catalog::CatalogServer;
use switchboard::names::ServerName;
use switchboard::status::{ServerStatus, State};
use switchboard_config::text::visible;
use switchboard_config::words;

use super::slash::nearest;
use crate::cli::McpCommand;
use crate::commands::mcp;
use crate::commands::status::state_style;
use crate::commands::tools;
use crate::current::{Current, on_a_thread, servers};
use crate::error::Failure;
use crate::printer::{Table, style};
use crate::session::{self, Session};
use crate::startup;
use crate::terminal;

/// What can follow `/mcp`.
pub(super) const SUBCOMMANDS: [&str; 6] =
    ["reconnect", "login", "enable", "disable", "tools", "add"];

/// What of it there is to say.
pub(super) const HELP: [(&str, &str); 5] = [
    ("tools [NAME]", "the tools of a server"),
    ("reconnect NAME", "connect a server anew"),
    ("login NAME", "log in to a server"),
    (
        "enable|disable NAME",
        "switch a server on or off, also for later",
    ),
    ("add NAME …", "add a server, as `switchboard mcp add` does"),
];

/// Runs what was typed after `/mcp`.
pub(super) async fn run(
    typed: &str,
    current: &Current,
    session: &Session<'_>,
) -> Result<(), Failure> {
    let usage = |message: String| {
        Failure::usage(message).hint(format!(
            "/mcp, or /mcp with one of: {}",
            SUBCOMMANDS.join(", ")
        ))
    };
    let words = words::split(typed).ok_or_else(|| usage("a quote is not closed".to_owned()))?;
    let Some((first, rest)) = words.split_first() else {
        return list(current, session);
    };
    if first == "add" {
        return add(rest, current, session).await;
    }
    if first == "tools" && rest.is_empty() {
        return all_tools(session).await;
    }
    if !SUBCOMMANDS.contains(&first.as_str()) {
        let failure = Failure::usage(format!("there is no `/mcp {}`", visible(first)));
        let near = nearest(first, SUBCOMMANDS.into_iter());
        return Err(match near {
            Some(near) => failure.hint(format!("did you mean `/mcp {near}`?")),
            None => failure.hint(format!("there are: {}", SUBCOMMANDS.join(", "))),
        });
    }
    let [name] = rest else {
        return Err(usage(format!(
            "`/mcp {first}` takes the name of one server"
        )));
    };
    let names = current.names(session);
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
            mcp::login::within(name, servers(newest.as_deref(), session), session).await?;
            Ok(())
        }
        "enable" => toggle(McpCommand::Enable { name: name.clone() }, current, session).await,
        _ => toggle(McpCommand::Disable { name: name.clone() }, current, session).await,
    }
}

fn list(current: &Current, session: &Session<'_>) -> Result<(), Failure> {
    let mut table = Table::with_heading(&["NAME", "STATE", "TOOLS", "TOKENS", ""]);
    let catalog = session.host.catalog();
    let statuses = session.host.statuses();
    let widest = statuses
        .iter()
        .map(|status| status.name.as_str().len())
        .max();
    let taken = widest.unwrap_or_default().max(4) + "  not started  TOOLS  TOKENS  ".len();
    let room = terminal::width()
        .unwrap_or(100)
        .saturating_sub(taken + 1)
        .max(20);
    for status in &statuses {
        let name = status.name.as_str();
        let offered = catalog
            .servers()
            .iter()
            .find(|server| server.name() == &status.name);
        let tokens = offered.map_or_else(|| "–".to_owned(), |server| server.tokens().0.to_string());
        let is_connected = status.state == State::Connected;
        let count = if is_connected {
            status.tools.to_string()
        } else {
            "–".to_owned()
        };
        table.row([
            (style::NAME, name),
            (state_style(status.state), status.state.word()),
            (Style::new(), &count),
            (Style::new(), &tokens),
            (style::QUIET, &terminal::fitted(&remark(status), room)),
        ]);
    }
    let is_running = |name: &str| statuses.iter().any(|status| status.name.as_str() == name);
    for spec in &session.specs {
        if !is_running(spec.name.as_str()) {
            let name = spec.name.as_str();
            let about = "connected with your first message";
            table.row([
                (style::NAME, name),
                (style::QUIET, "not started"),
                (Style::new(), "–"),
                (Style::new(), "–"),
                (style::QUIET, about),
            ]);
        }
    }
    for held in current
        .held_back(session)
        .iter()
        .filter(|held| !is_running(&held.name))
    {
        let hint = held.hint.as_deref().unwrap_or_default();
        table.row([
            (style::NAME, &held.name),
            (style::WARNING, held.state),
            (Style::new(), "–"),
            (Style::new(), "–"),
            (style::QUIET, hint),
        ]);
    }
    session.context.printer.data(table)
}

fn remark(status: &ServerStatus) -> String {
    let name = visible(status.name.as_str()).into_owned();
    match status.state {
        State::Failed => session::reason(status).unwrap_or_default(),
        State::NeedsAuth => format!("/mcp login {name}"),
        State::Disabled => format!("/mcp enable {name}"),
        State::Pending if status.is_resting => "rests until it is used".to_owned(),
        State::Pending => "being connected".to_owned(),
        State::Connected => String::new(),
    }
}

/// The tools of all servers, which are connected for it.
pub(super) async fn all_tools(session: &Session<'_>) -> Result<(), Failure> {
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

async fn tools_of(name: &str, session: &Session<'_>) -> Result<(), Failure> {
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
            (style::QUIET, &terminal::fitted(&about, room.max(20))),
        ]);
    }
    session.context.printer.data(table)
}

async fn reconnect(name: &str, current: &Current, session: &Session<'_>) -> Result<(), Failure> {
    let server = ServerName::from(name);
    if session.host.status(&server).is_none() {
        // It may have been approved or mended in the meantime.
        current.reload(session).await?;
    } else {
        session.restart(&server).await;
    }
    session.need(name)?;
    let tools = session
        .host
        .status(&server)
        .map_or(0, |status| status.tools);
    let told = format!(
        "{} is connected: {}",
        visible(name),
        startup::counted(tools, "tool")
    );
    session.context.printer.note(told);
    Ok(())
}

async fn toggle(
    command: McpCommand,
    current: &Current,
    session: &Session<'_>,
) -> Result<(), Failure> {
    let flags = session.context.flags.clone();
    on_a_thread(move || mcp::run(command, flags)).await??;
    current.reload(session).await
}

async fn add(words: &[String], current: &Current, session: &Session<'_>) -> Result<(), Failure> {
    if words.is_empty() {
        return Err(Failure::usage("say which server to add")
            .hint("/mcp add NAME URL, or /mcp add NAME -- COMMAND ARGUMENTS"));
    }
    let (flags, words) = (session.context.flags.clone(), words.to_vec());
    on_a_thread(move || mcp::run(McpCommand::Add { words }, flags)).await??;
    current.reload(session).await
}
