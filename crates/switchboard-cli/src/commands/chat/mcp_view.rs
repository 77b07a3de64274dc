//! `/mcp` as a view: choose a server, then what to do with it.

use anstyle::Style;
use switchboard::ServerName;
use switchboard::status::{ServerState, ServerStatus};
use switchboard_config::text::visible;
use unicode_width::UnicodeWidthStr as _;

use super::mcp_command;
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

/// Shows the servers until the user leaves or has chosen something to do.
pub(super) async fn run(current: &Current, session: &CommandHost<'_>) -> Result<(), Failure> {
    let Some((name, action)) = chosen(session)
        .await
        .map_err(|error| Failure::failed("cannot show the servers").because(error))?
    else {
        return Ok(());
    };
    match action {
        't' => mcp_command::run(&format!("tools {name}"), current, session).await,
        'l' => logs(&name, session).await,
        'r' => mcp_command::run(&format!("reconnect {name}"), current, session).await,
        'i' => mcp_command::run(&format!("login {name}"), current, session).await,
        'e' => mcp_command::run(&format!("enable {name}"), current, session).await,
        _ => mcp_command::run(&format!("disable {name}"), current, session).await,
    }
}

/// The server and the key of the action that the user chose; `None` if the user left.
async fn chosen(session: &CommandHost<'_>) -> std::io::Result<Option<(String, char)>> {
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
        let Some(status) = statuses.get(index) else {
            continue;
        };
        dialog.clear();
        about(status, &mut dialog);
        // Anything else goes back to the list.
        if let Chosen::Key(key) = dialog.choose(&actions(status), Some(0)).await? {
            return Ok(Some((status.name.as_str().to_owned(), key)));
        }
    }
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

async fn logs(name: &str, session: &CommandHost<'_>) -> Result<(), Failure> {
    let printer = &session.context.printer;
    let lines = session.host.logs(&ServerName::from(name));
    let line = |line: &switchboard::LogLine| {
        let text = visible(&line.text.replace('\t', "    ")).into_owned();
        vec![(Style::new(), text)]
    };
    let lines: Vec<Line> = lines.iter().map(line).collect();
    if lines.is_empty() {
        printer.note(format!("{} has written nothing", visible(name)));
        return Ok(());
    }
    let title = format!("log of {}", visible(name));
    pager::show(&title, &lines, printer)
        .await
        .map_err(|error| Failure::failed("cannot show the log").because(error))
}
