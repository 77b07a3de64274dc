//! The first screen of a chat: model, folder, servers, and keys.

use switchboard::status::ServerState;
use switchboard_agent::provider::Model;
use switchboard_config::text::visible;

use super::status_command;
use crate::printer::{paint, style};
use crate::session::CommandHost;
use crate::startup::counted;
use crate::terminal;
use crate::view;

/// Maximum number of servers named.
const NAMED: usize = 8;

pub(super) fn print(model: &Model, resumed: Option<u64>, session: &CommandHost<'_>) {
    let context = session.context;
    let printer = &context.printer;
    let label = |text: &str| paint(style::QUIET, format!("{text:<8}"));
    let model = status_command::model_text(model);
    printer.note(format!("{}{}", label("model"), paint(style::NAME, model)));
    let folder = view::path(&context.project, &context.environment.home);
    printer.note(format!("{}{folder}", label("folder")));
    printer.note(format!("{}{}", label("servers"), servers(session)));
    for status in session.host.statuses() {
        let is_off = matches!(status.state, ServerState::Disabled { .. });
        if is_off || !status.state.is_withheld() {
            continue;
        }
        let remedy = status.remedy().map(|remedy| remedy.to_string());
        printer.note(format!(
            "{}{} is not started: {}; {}",
            label(""),
            paint(style::WARNING, visible(status.name.as_str())),
            status.reason().unwrap_or_default(),
            remedy.unwrap_or_default(),
        ));
    }
    if let Some(messages) = resumed {
        let count = usize::try_from(messages).unwrap_or(usize::MAX);
        printer.note(format!(
            "{}resumed after {}",
            label("chat"),
            counted(count, "message")
        ));
    }
    let key = |text: &str| paint(style::NAME, text);
    let text = format!(
        "\nAsk something. {} shows commands, {} files and resources, {} leaves.\n",
        key("/"),
        key("@"),
        key("ctrl-D"),
    );
    let columns = terminal::error_size().map_or(usize::MAX, |size| size.columns);
    printer.note(terminal::wrapped(&text, columns));
}

fn servers(session: &CommandHost<'_>) -> String {
    let statuses = session.host.statuses();
    let names: Vec<String> = statuses
        .iter()
        .filter(|status| !status.state.is_withheld())
        .map(|status| visible(status.name.as_str()).into_owned())
        .collect();
    if names.is_empty() {
        return "none yet; /mcp add NAME URL-OR-COMMAND adds one".to_owned();
    }
    let mut shown = names
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > NAMED {
        shown = format!("{shown} and {} more", names.len() - NAMED);
    }
    shown
}
