//! The first screen: which model, which folder, which servers, and how to leave.

use switchboard_agent::provider::Model;
use switchboard_config::text::visible;

use crate::printer::{paint, style};
use crate::session::Session;
use crate::startup::counted;
use crate::view;

/// So many servers are named.
const NAMED: usize = 8;

/// Says what somebody should know who starts a chat.
pub(super) fn tell(model: &Model, resumed: Option<u64>, session: &Session<'_>) {
    let context = session.context;
    let printer = &context.printer;
    let label = |text: &str| paint(style::QUIET, format!("{text:<8}"));
    let model = format!("{} ({})", visible(&model.id), visible(&model.provider));
    printer.note(format!("{}{}", label("model"), paint(style::NAME, model)));
    let folder = view::path(&context.project, &context.environment.home);
    printer.note(format!("{}{folder}", label("folder")));
    printer.note(format!("{}{}", label("servers"), servers(session)));
    for held in &session.held_back {
        if held.state == "disabled" {
            continue;
        }
        let hint = held.hint.as_deref().unwrap_or_default();
        printer.note(format!(
            "{}{} is not used: {}; {hint}",
            label(""),
            paint(style::WARNING, visible(&held.name)),
            held.reason,
        ));
    }
    if let Some(messages) = resumed {
        let count = usize::try_from(messages).unwrap_or(usize::MAX);
        printer.note(format!(
            "{}goes on after {}",
            label("chat"),
            counted(count, "message")
        ));
    }
    let key = |text: &str| paint(style::NAME, text);
    printer.note(format!(
        "\nAsk something. {} shows commands, {} interrupts, {} leaves.",
        key("/help"),
        key("ctrl-C"),
        key("ctrl-D"),
    ));
}

fn servers(session: &Session<'_>) -> String {
    let names = session
        .specs
        .iter()
        .filter(|spec| spec.enabled)
        .map(|spec| visible(spec.name.as_str()).into_owned());
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return "none can be used yet; /mcp add NAME URL-OR-COMMAND adds one".to_owned();
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
    let when = paint(style::QUIET, ", connected with your first message");
    format!("{shown}{when}")
}
