//! `/mcp` as a view: choose a server, then look at its tools and its log, or choose what to do with it.

use std::io;

use anstyle::Style;
use switchboard::catalog::{CatalogServer, CatalogTool};
use switchboard::status::{ServerState, ServerStatus};
use switchboard::{ServerName, ToolRef};
use switchboard_config::text::visible;
use unicode_width::UnicodeWidthStr as _;

use super::mcp_command;
use crate::commands::tool;
use crate::commands::tools::first_line;
use crate::current::Current;
use crate::dialog::{Choice, Chosen, Dialog};
use crate::error::Failure;
use crate::live::Line;
use crate::pager;
use crate::printer::style;
use crate::screen;
use crate::session::CommandHost;
use crate::startup::counted;
use crate::state::Shown;
use crate::terminal::fitted;

/// What the user has chosen to do.
enum Action {
    /// A command of `/mcp` and its server.
    Command(&'static str, String),
    /// Describe a tool.
    Describe(ToolRef),
}

/// Shows the servers until the user leaves or has chosen something to do.
pub(super) async fn run(current: &Current, session: &CommandHost<'_>) -> Result<(), Failure> {
    let chosen = chosen(session)
        .await
        .map_err(|error| Failure::failed("cannot show the servers").because(error))?;
    match chosen {
        None => Ok(()),
        Some(Action::Command(command, name)) => {
            mcp_command::run(&format!("{command} {name}"), current, session).await
        }
        Some(Action::Describe(tool)) => {
            let catalog = session.host.catalog();
            tool::show(&catalog, &tool.to_string(), session.context)?;
            Ok(())
        }
    }
}

/// Lets the user look through servers, tools and logs. `None` if the user left without choosing something to do.
async fn chosen(session: &CommandHost<'_>) -> io::Result<Option<Action>> {
    let printer = &session.context.printer;
    let mut dialog = Dialog::open_wanted("servers", printer).await?;
    let mut at = 0;
    loop {
        let statuses = session.host.statuses();
        if statuses.is_empty() {
            drop(dialog);
            printer.note("no servers; /mcp add NAME URL-OR-COMMAND adds one");
            return Ok(None);
        }
        dialog.clear();
        dialog.say(vec![(style::NAME, "servers".to_owned())]);
        let rows: Vec<Line> = rows(&statuses, screen::size().columns);
        let Some(index) = dialog.pick(&rows, at).await? else {
            return Ok(None);
        };
        at = index;
        if let Some(status) = statuses.get(index)
            && let Some(action) = one(&status.name, &mut dialog, session).await?
        {
            return Ok(Some(action));
        }
    }
}

/// Shows one server. `None` goes back to the list.
async fn one(
    name: &ServerName,
    dialog: &mut Dialog<'_>,
    session: &CommandHost<'_>,
) -> io::Result<Option<Action>> {
    let command = |command| Some(Action::Command(command, name.as_str().to_owned()));
    loop {
        let Some(status) = session.host.status(name) else {
            return Ok(None);
        };
        dialog.clear();
        about(&status, dialog);
        let Chosen::Key(key) = dialog.choose(&actions(&status), Some(0)).await? else {
            return Ok(None);
        };
        return Ok(match key {
            't' => match picked_tool(name, dialog, session).await? {
                Some(tool) => Some(Action::Describe(tool)),
                None => continue,
            },
            'l' => {
                show_log(name, dialog, session).await?;
                continue;
            }
            'r' => command("reconnect"),
            'i' => command("login"),
            'e' => command("enable"),
            _ => command("disable"),
        });
    }
}

/// Lets the user pick a tool of a server. `None` goes back to the server.
async fn picked_tool(
    name: &ServerName,
    dialog: &mut Dialog<'_>,
    session: &CommandHost<'_>,
) -> io::Result<Option<ToolRef>> {
    let catalog = session.host.catalog();
    let tools: Vec<&CatalogTool> = catalog
        .server(name.as_str())
        .into_iter()
        .flat_map(CatalogServer::tools)
        .collect();
    let own = |tool: &CatalogTool| visible(tool.reference().tool.as_str()).into_owned();
    let widest = tools.iter().map(|tool| own(tool).width()).max();
    let widest = widest.unwrap_or_default().min(40);
    let columns = screen::size().columns;
    let row = |tool: &&CatalogTool| {
        let own = fitted(&own(tool), widest).into_owned();
        let gap = widest.saturating_sub(own.width()) + 2;
        let tokens = format!("{:gap$}{:>6}  ", "", tool.tokens().0);
        let room = columns.saturating_sub(3 + own.width() + tokens.width());
        let about = fitted(&first_line(tool), room.max(1)).into_owned();
        vec![
            (style::NAME, own),
            (Style::new(), tokens),
            (style::QUIET, about),
        ]
    };
    let rows: Vec<Line> = tools.iter().map(row).collect();
    dialog.clear();
    let title = format!(
        "tools of {}, with their cost in tokens",
        visible(name.as_str())
    );
    dialog.say(vec![(style::NAME, title)]);
    let index = dialog.pick(&rows, 0).await?;
    let tool = index.and_then(|index| tools.get(index));
    Ok(tool.map(|tool| tool.reference().clone()))
}

/// Shows the log of a server until the user leaves it.
async fn show_log(
    name: &ServerName,
    dialog: &mut Dialog<'_>,
    session: &CommandHost<'_>,
) -> io::Result<()> {
    let line = |line: &switchboard::LogLine| {
        let text = visible(&line.text.replace('\t', "    ")).into_owned();
        vec![(Style::new(), text)]
    };
    let mut lines: Vec<Line> = session.host.logs(name).iter().map(line).collect();
    if lines.is_empty() {
        let note = format!("{} has written nothing", visible(name.as_str()));
        lines.push(vec![(style::QUIET, note)]);
    }
    let title = format!("log of {}", visible(name.as_str()));
    pager::scroll(dialog, &title, &lines, &session.context.printer).await?;
    Ok(())
}

fn rows(statuses: &[ServerStatus], columns: usize) -> Vec<Line> {
    let name = |status: &ServerStatus| visible(status.name.as_str()).into_owned();
    let widest = statuses.iter().map(|status| name(status).width()).max();
    let widest = widest.unwrap_or_default().min(30);
    let row = |status: &ServerStatus| {
        let shown = Shown::of(&status.state);
        let name = name(status);
        let gap = widest.saturating_sub(name.width()) + 2;
        let state_gap = "needs-auth".len().saturating_sub(shown.word.len()) + 2;
        let about = match &status.state {
            ServerState::Connected => counted(status.tools, "tool"),
            _ => shown.reason.unwrap_or_default(),
        };
        // The mark of the selected row, and the last column, stay free.
        let room = columns.saturating_sub(3 + name.width() + gap + shown.word.len() + state_gap);
        let about = fitted(&about, room.max(1)).into_owned();
        vec![
            (style::NAME, name),
            (shown.style, format!("{:gap$}{}", "", shown.word)),
            (style::QUIET, format!("{:state_gap$}{about}", "")),
        ]
    };
    statuses.iter().map(row).collect()
}

/// Says what is known of a server.
fn about(status: &ServerStatus, dialog: &mut Dialog<'_>) {
    let shown = Shown::of(&status.state);
    dialog.say(vec![
        (style::NAME, visible(status.name.as_str()).into_owned()),
        (Style::new(), "  ".to_owned()),
        (shown.style, shown.word.to_owned()),
    ]);
    if status.state.is_connected() {
        dialog.say(vec![(style::QUIET, format!("  {}", status.count))]);
    }
    let remedy = status.remedy().map(|remedy| remedy.to_string());
    for text in [shown.reason, remedy].into_iter().flatten() {
        dialog.say_wrapped(&text);
    }
}

fn actions(status: &ServerStatus) -> Vec<Choice> {
    let mut actions = Vec::new();
    let is_off = matches!(status.state, ServerState::Disabled { .. });
    if matches!(status.state, ServerState::NeedsAuth { .. }) {
        actions.push(Choice::new('i', "log in"));
    }
    if status.state.is_connected() {
        actions.push(Choice::new('t', "tools"));
    }
    if is_off {
        actions.push(Choice::new('e', "enable"));
    } else {
        actions.push(Choice::new('r', "reconnect"));
    }
    actions.push(Choice::new('l', "logs"));
    if !is_off {
        actions.push(Choice::new('d', "disable"));
    }
    actions
}
