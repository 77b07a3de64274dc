//! Formats one server for people: its state, every stated value with its origin, and the entries it shadows.

use std::fmt::Write as _;
use std::path::Path;

use switchboard_config::resolve::{Server, ShadowReason, Status};
use switchboard_config::text::visible;

use crate::printer::{paint, style};
use crate::view::{self, Shadows};

/// The text of one server, for `config show` and `mcp get`.
pub(crate) fn server_text(server: &Server, shadows: &Shadows<'_>, home: &Path) -> String {
    let mut text = String::new();
    let state = match server.status {
        Status::Ready => style::GOOD,
        Status::Disabled | Status::Shadowed { .. } => style::QUIET,
        Status::Untrusted(_) => style::WARNING,
        Status::Faulty(_) | Status::Blocked { .. } | Status::Refused { .. } => style::ERROR,
    };
    let transport = server
        .transport()
        .map_or("no transport", |transport| transport.name());
    let _ = writeln!(
        text,
        "{}  {}  {transport}  {} scope  {}",
        paint(style::NAME, visible(&server.name)),
        paint(state, server.status.word()),
        server.scope(),
        paint(style::QUIET, view::place(&server.origin, home)),
    );
    if let Some(reason) = server.status.reason() {
        let _ = writeln!(text, "    {} {}", paint(state, "because"), visible(&reason));
    }
    let shown = view::masked(&server.entry);
    let node = shown.to_node();
    let rows: Vec<(String, String)> = view::stated(server, &node)
        .map(|(name, value, origin)| {
            let line = format!("{name} = {}", view::inline(value));
            (line, view::place(&origin, home))
        })
        .collect();
    let width = rows
        .iter()
        .map(|(line, _)| line.chars().count())
        .max()
        .unwrap_or(0);
    // Limit the column, so that one long value does not push all origins out of view.
    let width = width.min(60);
    for (line, place) in rows {
        let gap = width.saturating_sub(line.chars().count()) + 2;
        let _ = writeln!(text, "    {line}{:gap$}{}", "", paint(style::QUIET, place));
    }
    for lost in shadows.by(server) {
        let (verb, reason) = match lost.reason {
            // It has higher precedence but is not trusted; the reason refers to another untrusted entry of that name.
            ShadowReason::SameName(_) if lost.origin.scope() > server.scope() => (
                "ignores",
                "not trusted, so it does not override other entries",
            ),
            ShadowReason::SameName(_) => ("shadows", "the same name"),
            ShadowReason::SameEndpoint { .. } => ("shadows", "the same endpoint"),
            ShadowReason::Untrusted(_) => (
                "ignores",
                "not trusted, so it does not override other entries",
            ),
        };
        let _ = writeln!(
            text,
            "    {} {} of {} scope at {}: {reason}",
            paint(style::WARNING, verb),
            visible(&lost.name),
            lost.origin.scope(),
            view::place(&lost.origin, home),
        );
    }
    text
}
