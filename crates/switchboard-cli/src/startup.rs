//! Shows servers while they start: one live line each on a terminal, removed afterwards.

use std::time::Duration;
use switchboard_config::sort;

use anstyle::Style;
use switchboard::internal::catalog::text::neutralise;
use switchboard::status::{ServerState, ServerStatus};
use switchboard::{Host, ServerName};
use switchboard_config::text::visible;
use tokio::time::{Instant, interval_at};
use unicode_width::UnicodeWidthStr as _;

use crate::live::{Line, Live, TICK, spinner};
use crate::printer::{Printer, style};
use crate::terminal::fitted;

/// Delay before anything is shown, so that a fast start does not flicker.
const PATIENCE: Duration = Duration::from_millis(150);
/// Width of the name column; longer names are cut.
const MAX_NAME_WIDTH: usize = 30;

/// Waits until every server has settled or is being retried in the background, showing progress of `starting`.
pub(crate) async fn follow(host: &Host, starting: &[ServerName], printer: &Printer) {
    let mut settled = std::pin::pin!(host.started());
    if !printer.is_live() {
        return settled.await;
    }
    let started = Instant::now();
    let mut ticks = interval_at(started + PATIENCE, TICK);
    let mut live = Live::new(printer);
    for turn in 0.. {
        tokio::select! {
            () = &mut settled => return,
            _ = ticks.tick() => {
                let mut statuses = host.statuses();
                statuses.retain(|status| starting.contains(&status.name));
                let stderr_line = |status: &ServerStatus| install_output(host, status);
                live.draw(&lines(&statuses, stderr_line, started.elapsed(), turn));
            }
        }
    }
}

/// A count with its noun: `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// One line per server of a daemon.
#[cfg(unix)]
pub(crate) fn server_lines(
    host: &Host,
    statuses: &[ServerStatus],
    elapsed: Duration,
    turn: usize,
) -> Vec<Line> {
    let stderr_line = |status: &ServerStatus| install_output(host, status);
    lines(statuses, stderr_line, elapsed, turn)
}

/// One line per server. Those that are still starting come first, so that a low terminal shows them.
fn lines(
    statuses: &[ServerStatus],
    stderr_line: impl Fn(&ServerStatus) -> String,
    elapsed: Duration,
    turn: usize,
) -> Vec<Line> {
    let name = |status: &ServerStatus| {
        let name = visible(status.name.as_str()).into_owned();
        fitted(&name, MAX_NAME_WIDTH).into_owned()
    };
    let width = statuses.iter().map(|status| name(status).width()).max();
    let width = width.unwrap_or_default();
    let mut sorted: Vec<&ServerStatus> = statuses.iter().collect();
    sort::by_key(&mut sorted, |status| status.state.is_settled());
    let line = |status: &&ServerStatus| {
        let name = name(status);
        let gap = width.saturating_sub(name.width()) + 2;
        let (mark, style, text) = described(status, &stderr_line(status), elapsed, turn);
        vec![
            (style, format!("{mark} ")),
            (style::NAME, name),
            (Style::new(), format!("{:gap$}{text}", "")),
        ]
    };
    sorted.iter().map(line).collect()
}

/// The last line of standard error while a package runner installs the server.
fn install_output(host: &Host, status: &ServerStatus) -> String {
    let is_installing = matches!(
        status.state,
        ServerState::Pending {
            is_installing: true,
            ..
        }
    );
    if !is_installing {
        return String::new();
    }
    let lines = host.logs(&status.name);
    let last = lines.iter().rev().find(|line| !line.text.trim().is_empty());
    last.map_or_else(String::new, |line| {
        let line = visible(&neutralise(line.text.trim())).into_owned();
        format!(": {line}")
    })
}

fn described(
    status: &ServerStatus,
    stderr_line: &str,
    elapsed: Duration,
    turn: usize,
) -> (&'static str, Style, String) {
    match &status.state {
        ServerState::Pending {
            is_installing,
            failed_attempts,
            ..
        } => {
            let seconds = elapsed.as_secs();
            let text = match (is_installing, failed_attempts) {
                (true, _) => format!("installing, {seconds} s{stderr_line}"),
                (false, 0) => format!("starting, {seconds} s"),
                (false, failed) => {
                    let reason = status.reason().unwrap_or_default();
                    format!("attempt {}, {seconds} s: {reason}", failed + 1)
                }
            };
            (spinner(turn), style::HINT, text)
        }
        ServerState::Connected => {
            let startup = status.startup.unwrap_or_default().as_secs_f64();
            let text = format!("{}, {startup:.1} s", status.count);
            ("✓", style::GOOD, text)
        }
        ServerState::Failed { .. } => {
            let reason = status.reason().unwrap_or_default();
            ("✗", style::ERROR, reason)
        }
        ServerState::NeedsAuth { .. } => ("!", style::WARNING, "requires a login".to_owned()),
        state => ("–", style::QUIET, state.word().to_owned()),
    }
}
