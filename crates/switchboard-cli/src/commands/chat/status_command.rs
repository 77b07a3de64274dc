//! `/status`, `/context` and `/agents`: the state of the chat as lines of text.

use std::time::Duration;

use anstyle::Style;
use switchboard_agent::provider::{Model, Usage};
use switchboard_agent::{Session as Conversation, SubAgentState, SubAgentSummary, WindowUse};
use switchboard_config::text::visible;

use super::call_line::elapsed;
use crate::agent;
use crate::printer::{paint, style};
use crate::questions::safe;
use crate::servers::Servers;
use crate::session::CommandHost;
use crate::startup::counted;
use crate::terminal::fitted;
use crate::view;

/// Width of the label column.
const LABEL: usize = 10;
/// Maximum width of the bar of the context window.
const MAX_BAR: usize = 60;

/// One line per fact about the running chat, with the command that shows more if it fits.
pub(super) async fn status(
    conversation: &Conversation,
    (model, spent): (&Model, Usage),
    configured: &Servers,
    session: &CommandHost<'_>,
    columns: usize,
) -> Vec<String> {
    let context = session.context;
    let home = &context.environment.home;
    let window = conversation.window().await;
    let cost = match spent.cost {
        Some(cost) => format!("{cost} at list prices of {}", cost.as_of),
        None => format!("{} tokens", spent.total()),
    };
    let rules = counted(configured.config.rules.len(), "rule");
    let grants = counted(session.gate.session_grants().len(), "grant");
    let changes = conversation.changes();
    let changes = changes.iter().filter(|change| !change.is_undone).count();
    let agents = counted(conversation.sub_agents().len(), "sub-agent");
    let facts = [
        ("model", model_text(model), ""),
        ("session", conversation.id().to_string(), ""),
        ("folder", view::path(conversation.workspace(), home), ""),
        ("servers", servers(session), "/mcp shows each"),
        ("context", used(&window), "/context shows what fills it"),
        ("cost", cost, "/cost has the tokens"),
        (
            "permits",
            format!("{rules}, {grants} of this session"),
            "/permissions lists them",
        ),
        (
            "changes",
            format!("{} of files", counted(changes, "change")),
            "/diff shows them",
        ),
        ("agents", agents, "/agents shows them"),
        ("state", view::path(&context.environment.state, home), ""),
        ("version", env!("CARGO_PKG_VERSION").to_owned(), ""),
    ];
    let facts = facts.iter();
    facts
        .map(|(label, text, more)| row(label, text, more, columns))
        .collect()
}

/// The model's name and where it is.
pub(super) fn model_text(model: &Model) -> String {
    if agent::is_missing(model) {
        return "none yet; /model helps to set one up".to_owned();
    }
    format!("{} ({})", visible(&model.id), visible(&model.provider))
}

fn servers(session: &CommandHost<'_>) -> String {
    let statuses = session.host.statuses();
    let meant = statuses.iter().filter(|status| !status.state.is_withheld());
    let ready = meant.clone().filter(|status| status.state.is_connected());
    format!("{} of {} ready", ready.count(), meant.count())
}

fn used(window: &WindowUse) -> String {
    match window.window {
        0 => format!("{} tokens", window.used),
        size => format!(
            "{} of {size} tokens, {} %",
            window.used,
            percent(window.used, size)
        ),
    }
}

fn row(label: &str, text: &str, more: &str, columns: usize) -> String {
    let label = paint(style::QUIET, format!("{label:<LABEL$}"));
    let text = visible(text);
    let width = LABEL + text.chars().count() + 2 + more.len();
    if more.is_empty() || width > columns {
        return format!("{label}{text}");
    }
    format!("{label}{text}  {}", paint(style::QUIET, more))
}

/// A bar of the context window, and one line for each part of it.
pub(super) fn window(window: &WindowUse, columns: usize) -> Vec<String> {
    let mut parts = vec![("system prompt".to_owned(), window.system, style::HINT)];
    for tools in &window.tools {
        let of = match &tools.server {
            Some(server) => format!("tools of {}", safe(server)),
            None => "built-in tools".to_owned(),
        };
        let name = format!("{of} ({})", tools.count);
        parts.push((name, tools.tokens, style::WARNING));
    }
    parts.push(("your messages".to_owned(), window.prompts, style::GOOD));
    parts.push(("answers".to_owned(), window.answers, style::NAME));
    parts.push(("results".to_owned(), window.results, style::REMOVED));
    let estimated: u64 = parts.iter().map(|(_, tokens, _)| tokens).sum();
    let used = window.used.max(estimated);
    let size = window.window.max(used);
    let free = window.window.saturating_sub(used);
    let mut lines = Vec::new();
    if window.window > 0 {
        lines.push(bar(&parts, size, columns.saturating_sub(2).min(MAX_BAR)));
    }
    let name_width = columns.saturating_sub(24).clamp(11, 40);
    let line = |mark: String, name: &str, tokens: u64| {
        let name = fitted(name, name_width);
        let share = match window.window {
            0 => String::new(),
            _ => format!("{:>7}", share(tokens, size)),
        };
        format!("{mark} {name:<name_width$} {tokens:>9}{share}")
    };
    for (name, tokens, style) in &parts {
        lines.push(line(paint(*style, "█"), name, *tokens));
    }
    if window.window > 0 {
        lines.push(line(paint(style::QUIET, "░"), "free", free));
    }
    lines.extend(remarks(window, estimated).map(|text| paint(style::QUIET, text)));
    lines
}

fn remarks(window: &WindowUse, estimated: u64) -> impl Iterator<Item = String> {
    let used = window.used.max(estimated);
    let sum = match window.window {
        0 => "no model yet, so the size of the window is unknown".to_owned(),
        _ => format!("the next request has about {used} tokens"),
    };
    let is_counted = window.window > 0 && window.used > estimated;
    let counted =
        is_counted.then(|| "the sum is the provider's, its parts are estimates".to_owned());
    std::iter::once(sum).chain(counted)
}

/// One character per share of the window; a part that has any tokens has at least one.
fn bar(parts: &[(String, u64, Style)], size: u64, width: usize) -> String {
    let mut text = String::new();
    let mut left = width;
    for (_, tokens, style) in parts.iter().filter(|(_, tokens, _)| *tokens > 0) {
        let share = u128::from(*tokens) * width as u128 / u128::from(size.max(1));
        let share = usize::try_from(share)
            .unwrap_or(width)
            .clamp(1, left.max(1));
        let share = share.min(left);
        text.push_str(&paint(*style, "█".repeat(share)));
        left -= share;
    }
    text.push_str(&paint(style::QUIET, "░".repeat(left)));
    text
}

/// A share in percent, with a decimal if it is small.
fn share(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    match tenths {
        0 if part > 0 => "<0.1 %".to_owned(),
        0 => "0 %".to_owned(),
        1..100 => format!("{}.{} %", tenths / 10, tenths % 10),
        _ => format!("{} %", tenths / 10),
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// The sub-agents of the session with what they said and did last.
pub(super) fn agents(agents: &[SubAgentSummary], columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in agents {
        let (word, style) = match agent.state {
            SubAgentState::Running => ("running", style::HINT),
            SubAgentState::Done => ("done", style::GOOD),
            SubAgentState::Interrupted => ("interrupted", style::WARNING),
            _ => ("failed", style::ERROR),
        };
        let calls = usize::try_from(agent.calls).unwrap_or(usize::MAX);
        let facts = format!(
            "{}, {} tokens, {}",
            counted(calls, "call"),
            agent.usage.total(),
            elapsed(Duration::from_millis(agent.elapsed_ms)),
        );
        let task = safe(
            &agent
                .prompt
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        );
        let room = columns.saturating_sub(14);
        lines.push(format!(
            "{} {}",
            paint(style, format!("{word:<11}")),
            fitted(&task, room)
        ));
        lines.push(paint(style::QUIET, format!("  {facts}")));
        for line in &agent.last_lines {
            let line = safe(line);
            let line = fitted(&line, columns.saturating_sub(4));
            lines.push(paint(style::QUIET, format!("  │ {line}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use switchboard_agent::ToolUse;

    use super::*;

    /// Without styles.
    fn plain(lines: &[String]) -> Vec<String> {
        let lines = lines
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string());
        lines.collect()
    }

    fn filled() -> WindowUse {
        let tools = |server: Option<&str>, tokens| ToolUse {
            server: server.map(str::to_owned),
            count: 3,
            tokens,
        };
        WindowUse {
            window: 10_000,
            used: 5_000,
            system: 500,
            tools: vec![tools(None, 1_000), tools(Some("ev\u{1b}il"), 2_000)],
            prompts: 10,
            answers: 200,
            results: 1_000,
        }
    }

    #[test]
    fn small_shares_have_a_decimal() {
        for (part, expected) in [
            (0, "0 %"),
            (1, "<0.1 %"),
            (999, "0.9 %"),
            (9_990, "9.9 %"),
            (10_000, "10 %"),
            (100_000, "100 %"),
        ] {
            assert_eq!(share(part, 100_000), expected);
        }
    }

    #[test]
    fn the_window_is_drawn_within_the_screen() {
        for columns in [30, 60, 100, 200] {
            let lines = plain(&window(&filled(), columns));
            for line in &lines[..lines.len() - 2] {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
                assert!(!line.contains('\u{1b}'), "{line:?}");
            }
        }
        let lines = plain(&window(&filled(), 62));
        assert_eq!(lines[0].chars().count(), 60);
        assert_eq!(lines[0].matches('█').count(), 3 + 6 + 12 + 1 + 1 + 6);
        assert_eq!(
            lines[1],
            "█ system prompt                                500  5.0 %"
        );
        assert!(
            lines[3].starts_with("█ tools of ev\\u{1b}il (3)"),
            "{lines:#?}"
        );
        assert_eq!(
            lines[7],
            "░ free                                        5000   50 %"
        );
        assert_eq!(lines[8], "the next request has about 5000 tokens");
        assert_eq!(
            lines[9],
            "the sum is the provider's, its parts are estimates"
        );
    }

    #[test]
    fn a_window_that_is_too_full_is_drawn_too() {
        let full = WindowUse {
            window: 1,
            used: u64::MAX,
            ..filled()
        };
        let lines = plain(&window(&full, 60));
        assert_eq!(lines[0].chars().count(), 58);
        let none = WindowUse {
            window: 0,
            ..filled()
        };
        assert!(
            plain(&window(&none, 60))
                .last()
                .unwrap()
                .contains("no model yet")
        );
    }

    #[test]
    fn sub_agents_show_their_last_lines() {
        let agent = SubAgentSummary {
            id: "call_1".to_owned(),
            prompt: "Find\nout \u{1b}[2J".to_owned(),
            state: SubAgentState::Done,
            last_lines: vec!["→ bench/look".to_owned(), "It is\u{7} green".to_owned()],
            calls: 1,
            usage: Usage {
                input: 10,
                output: 2,
                ..Usage::default()
            },
            elapsed_ms: 1_200,
            started_at_ms: 0,
        };
        assert_eq!(
            plain(&agents(&[agent], 60)),
            [
                "done        Find out \\u{1b}[2J",
                "  1 call, 12 tokens, 1.2 s",
                "  │ → bench/look",
                "  │ It is\\u{7} green",
            ]
        );
    }
}
