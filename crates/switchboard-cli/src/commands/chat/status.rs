//! The status line below the input: model, context used, servers, cost.

use anstyle::Style;
use switchboard::status::{ServerState, ServerStatus, StartsOn};
use switchboard_config::text::visible;
use unicode_width::UnicodeWidthStr as _;

use crate::live::Line;
use crate::printer::style;
use crate::startup::counted;
use crate::terminal::fitted;

/// Servers named while they connect, or after they failed.
const NAMED: usize = 3;

/// What the status line is about, besides the servers.
#[derive(Debug, Default, Clone)]
pub(super) struct Status {
    pub(super) model: String,
    /// Context window in tokens.
    pub(super) window: u64,
    /// Tokens of the last request and its answer; `None` before the first.
    pub(super) used: Option<u64>,
    /// Money spent in the session, if prices are known.
    pub(super) cost: Option<String>,
}

/// The line, without the parts that do not fit. `hint` comes first and always fits.
pub(super) fn line(
    status: &Status,
    servers: &[ServerStatus],
    hint: Option<&str>,
    columns: usize,
) -> Line {
    // Each part in its possible forms, the longest first.
    let mut parts: Vec<(Style, Vec<String>)> = Vec::new();
    if let Some(hint) = hint {
        parts.push((style::HINT, vec![hint.to_owned()]));
    }
    parts.push((style::QUIET, vec![visible(&status.model).into_owned()]));
    if let Some(used) = status.used {
        let percent = used.saturating_mul(100) / status.window.max(1);
        let style = if percent >= 80 {
            style::WARNING
        } else {
            style::QUIET
        };
        let window = short(status.window);
        let forms = [
            format!("{percent} % of {window} tokens"),
            format!("{percent} % used"),
        ];
        parts.push((style, forms.to_vec()));
    }
    parts.push(of_servers(servers));
    if let Some(cost) = &status.cost {
        parts.push((style::QUIET, vec![cost.clone()]));
    }
    let room = columns.saturating_sub(3);
    let mut used = 0;
    let mut line: Line = vec![(Style::new(), "  ".to_owned())];
    for (index, (style, forms)) in parts.into_iter().enumerate() {
        let gap = if index > 0 { " · " } else { "" };
        let left = room.saturating_sub(used + gap.width());
        let fitting = forms.iter().find(|form| form.width() <= left);
        let text = match (fitting, forms.first()) {
            (Some(text), _) => text.clone(),
            // Only the first part is cut; others are left out whole.
            (None, Some(text)) if index == 0 => fitted(text, left).into_owned(),
            (None, _) => continue,
        };
        used += gap.width() + text.width();
        line.push((style::QUIET, gap.to_owned()));
        line.push((style, text));
    }
    line
}

/// The servers that are ready, and those that need something or are on their way: by name, by number, or not at all.
fn of_servers(servers: &[ServerStatus]) -> (Style, Vec<String>) {
    let is_meant = |status: &&ServerStatus| !status.state.is_withheld();
    let meant: Vec<&ServerStatus> = servers.iter().filter(is_meant).collect();
    if meant.is_empty() {
        return (style::QUIET, vec!["no servers".to_owned()]);
    }
    let named = |is_it: &dyn Fn(&ServerState) -> bool| {
        let names: Vec<String> = meant
            .iter()
            .filter(|status| is_it(&status.state))
            .map(|status| visible(status.name.as_str()).into_owned())
            .collect();
        let more = names.len().saturating_sub(NAMED);
        let mut shown = names.get(..NAMED.min(names.len()))?.join(", ");
        if more > 0 {
            shown = format!("{shown} and {more} more");
        }
        (!shown.is_empty()).then_some((shown, names.len()))
    };
    let ready = meant
        .iter()
        .filter(|status| status.state.is_connected() || is_resting(&status.state))
        .count();
    let count = format!("{ready}/{} servers", meant.len());
    let forms = |long: String, short: String| {
        vec![
            format!("{count}, {long}"),
            format!("{count}, {short}"),
            count.clone(),
        ]
    };
    if let Some((names, number)) = named(&|state| matches!(state, ServerState::NeedsAuth { .. })) {
        let long = format!("log in to {names}: /mcp");
        let short = format!("{} to do: /mcp", counted(number, "login"));
        return (style::WARNING, forms(long, short));
    }
    if let Some((names, number)) = named(&|state| matches!(state, ServerState::Failed { .. })) {
        let long = format!("{names} failed: /mcp");
        return (
            style::WARNING,
            forms(long, format!("{number} failed: /mcp")),
        );
    }
    if let Some((names, number)) = named(&|state| matches!(state, ServerState::Pending { .. })) {
        let long = format!("connecting {names}");
        return (style::QUIET, forms(long, format!("{number} connecting")));
    }
    (style::QUIET, vec![count])
}

/// Whether a server is available, though not connected.
fn is_resting(state: &ServerState) -> bool {
    let first_use = StartsOn::FirstUse;
    matches!(state, ServerState::Idle)
        || matches!(state, ServerState::Lazy { until } if *until == first_use)
}

/// A number of tokens, rounded: `200k`, `1M`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}M", tokens / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        let status = Status {
            model: "claude-large".to_owned(),
            window: 200_000,
            used: Some(42_000),
            cost: Some("$0.12".to_owned()),
        };
        let text = |columns: usize, hint: Option<&str>| {
            let line = line(&status, &[], hint, columns);
            let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
            assert!(text.width() < columns, "{text}");
            text
        };
        assert_eq!(
            text(80, None),
            "  claude-large · 21 % of 200k tokens · no servers · $0.12"
        );
        assert_eq!(
            text(80, Some("esc interrupts")),
            "  esc interrupts · claude-large · 21 % of 200k tokens · no servers · $0.12"
        );
        assert_eq!(text(40, None), "  claude-large · 21 % of 200k tokens");
        assert_eq!(text(36, None), "  claude-large · 21 % used · $0.12");
        assert_eq!(text(16, None), "  claude-large");
    }
}
