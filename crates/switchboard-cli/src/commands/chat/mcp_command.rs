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
use crate::session::Session;
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
    let held_back = current.held_back(session);
    let is_held = |name: &str| held_back.iter().any(|held| held.name == name);
    // What the files hold back or no longer have is switched off in the host; the files say why.
    let mut statuses = session.host.statuses();
    statuses.retain(|status| status.state != State::Disabled || !is_held(status.name.as_str()));
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
        let offered = catalog.server(name);
        let tokens = offered.map_or_else(|| "–".to_owned(), |server| server.tokens().0.to_string());
        let is_connected = status.state == State::Connected;
        let count = if is_connected {
            status.tools.to_string()
        } else {
            "–".to_owned()
        };
        let is_removed = status.state == State::Disabled && !current.has_entry(name, session);
        let (word, remark) = if is_removed {
            (
                "removed",
                "no configuration file has it any more".to_owned(),
            )
        } else {
            (status.state.word(), remark(status))
        };
        table.row([
            (style::NAME, name),
            (state_style(status.state), word),
            (Style::new(), &count),
            (Style::new(), &tokens),
            (style::QUIET, &terminal::fitted(&remark, room)),
        ]);
    }
    let is_running = |name: &str| statuses.iter().any(|status| status.name.as_str() == name);
    for spec in &session.specs {
        if !is_running(spec.name.as_str()) && !is_held(spec.name.as_str()) {
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
    for held in held_back.iter().filter(|held| !is_running(&held.name)) {
        let hint = held.hint.as_deref().unwrap_or_default();
        table.row([
            (style::NAME, &held.name),
            (held.style(), held.state),
            (Style::new(), "–"),
            (Style::new(), "–"),
            (style::QUIET, hint),
        ]);
        table.remark(style::QUIET, &held.reason);
    }
    session.context.printer.data(table)
}

fn remark(status: &ServerStatus) -> String {
    let name = visible(status.name.as_str()).into_owned();
    match status.state {
        State::Failed => status.reason().unwrap_or_default(),
        State::NeedsAuth => format!("/mcp login {name}"),
        State::Disabled => format!("/mcp enable {name}"),
        State::Pending if status.is_resting => "rests until it is used".to_owned(),
        State::Pending => status
            .reason()
            .unwrap_or_else(|| "being connected".to_owned()),
        State::Connected => status.count.rest().unwrap_or_default(),
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
        // It may have been approved or repaired in the meantime.
        current.reload(session).await?;
    } else {
        session.restart(&server).await;
    }
    session.need(name)?;
    let status = session.host.status(&server);
    let count = status.map(|status| status.count).unwrap_or_default();
    let told = format!("{} is connected: {count}", visible(name));
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
    let before = current.names(session);
    let (flags, words) = (session.context.flags.clone(), words.to_vec());
    on_a_thread(move || mcp::run(McpCommand::Add { words }, flags)).await??;
    current.reload(session).await?;
    let added = current.names(session).into_iter();
    for name in added.filter(|name| !before.contains(name)) {
        tell_added(&name, current, session);
    }
    Ok(())
}

/// Tells what came of a server that was just added. One that failed has been told of.
fn tell_added(name: &str, current: &Current, session: &Session<'_>) {
    let printer = &session.context.printer;
    let shown = visible(name);
    match session.host.status(&ServerName::from(name)) {
        Some(status) if status.state == State::Connected => {
            printer.note(format!("{shown} is connected: {}", status.count));
        }
        Some(_) => {}
        None => {
            let held_back = current.held_back(session);
            if let Some(held) = held_back.iter().find(|held| held.name == name) {
                let hint = held.hint.as_deref().unwrap_or_default();
                printer.note(format!("{shown} is not started: {}; {hint}", held.reason));
            }
        }
    }
}
