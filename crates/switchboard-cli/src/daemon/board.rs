//! The live view of `switchboard up` on a terminal: addresses, servers, clients, calls, and what waits for the user.

use std::path::PathBuf;
use std::time::Duration;

use anstyle::Style;
use switchboard::status::ServerState;
use switchboard_config::text::visible;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Views;
use super::views::DaemonSnapshot;
use crate::context::Context;
use crate::live::{Line, Live};
use crate::printer::style;
use crate::startup::{self, counted};
use crate::terminal::{self, Size};
use crate::{commands, view};

/// Interval between two looks at the daemon.
const LOOK: Duration = Duration::from_millis(250);
/// Looks that the number of calls per second is averaged over.
const WINDOW: usize = 20;
/// Clears the screen, after its size has changed.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";
/// Most commands that are suggested.
const MAX_SUGGESTED: usize = 3;
/// Most clients that are listed.
const MAX_CLIENTS: usize = 8;

/// What does not change while the daemon runs.
pub(crate) struct Board<'c> {
    pub(crate) context: &'c Context,
    pub(crate) socket: PathBuf,
    pub(crate) http: Option<String>,
}

impl Board<'_> {
    /// Draws until it is dropped.
    pub(crate) async fn run(&self, views: &Views) {
        let started = Instant::now();
        let plugs = commands::unconnected_clients(self.context);
        let mut live = Live::new(&self.context.printer);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut counts = Vec::with_capacity(WINDOW);
        let mut before: Option<(Vec<Line>, Option<Size>)> = None;
        for turn in 0.. {
            looks.tick().await;
            let Some(snapshot) = views.snapshot().await else {
                return;
            };
            if counts.len() == WINDOW {
                counts.remove(0);
            }
            counts.push((Instant::now(), snapshot.calls));
            let lines = self.lines(&snapshot, &plugs, rate(&counts), started.elapsed(), turn);
            let size = terminal::error_size();
            match &before {
                // Nothing is redrawn that is on the screen.
                Some((drawn, drawn_size)) if *drawn == lines && *drawn_size == size => continue,
                Some((_, drawn_size)) if *drawn_size != size => {
                    live.clear();
                    self.context.printer.draw(CLEAR);
                }
                _ => {}
            }
            live.draw(&lines);
            before = Some((lines, size));
        }
    }

    /// Prints what a script or a log needs, once.
    pub(crate) fn print(&self) {
        let printer = &self.context.printer;
        let socket = view::path(&self.socket, &self.context.environment.home);
        printer.note(format!(
            "up: agents on this machine connect with `switchboard connect` ({socket})"
        ));
        if let Some(url) = &self.http {
            printer.note(format!("up: or over HTTP at {url}"));
        }
    }

    fn lines(
        &self,
        snapshot: &DaemonSnapshot,
        plugs: &[&'static str],
        rate: f64,
        elapsed: Duration,
        turn: usize,
    ) -> Vec<Line> {
        let plain = Style::new();
        let home = &self.context.environment.home;
        let mut lines: Vec<Line> = Vec::new();
        let calls = usize::try_from(snapshot.calls).unwrap_or(usize::MAX);
        lines.push(vec![
            (
                style::NAME,
                format!("switchboard {}", env!("CARGO_PKG_VERSION")),
            ),
            (
                plain,
                format!("  {}, {rate:.1} per second", counted(calls, "call")),
            ),
        ]);
        let socket = view::path(&self.socket, home);
        lines.push(vec![(style::QUIET, "socket  ".into()), (plain, socket)]);
        if let Some(http) = &self.http {
            lines.push(vec![
                (style::QUIET, "http    ".into()),
                (plain, http.clone()),
            ]);
        }
        let heading = |text: String| vec![(style::HINT, text)];
        for project in &snapshot.projects {
            lines.push(Line::new());
            let folder = view::path(&project.folder, home);
            lines.push(heading(format!("Servers for {folder}")));
            let statuses = &project.statuses;
            lines.extend(startup::server_lines(
                &project.host,
                statuses,
                elapsed,
                turn,
            ));
        }
        lines.push(Line::new());
        lines.push(heading(counted(snapshot.clients.len(), "client")));
        for client in snapshot.clients.iter().take(MAX_CLIENTS) {
            let process = client.process();
            let process = process.map_or_else(
                || client.principal.to_string(),
                |process| format!("process {process}"),
            );
            let folder = client.folder.as_ref();
            let folder = folder.map_or_else(String::new, |folder| view::path(folder, home));
            lines.push(vec![
                (style::NAME, client.shown_name()),
                (plain, format!("  {process}  ")),
                (style::QUIET, folder),
            ]);
        }
        let more = snapshot.clients.len().saturating_sub(MAX_CLIENTS);
        if more > 0 {
            lines.push(vec![(style::QUIET, format!("… and {more} more"))]);
        }
        let waiting = waiting(snapshot);
        if !waiting.is_empty() {
            lines.push(Line::new());
            lines.push(heading("Waiting for you".to_owned()));
            lines.extend(waiting);
        }
        if !plugs.is_empty() {
            lines.push(Line::new());
            lines.push(heading("Connect an agent".to_owned()));
            for name in plugs.iter().take(MAX_SUGGESTED) {
                lines.push(vec![(plain, format!("switchboard clients connect {name}"))]);
            }
            let more = plugs.len().saturating_sub(MAX_SUGGESTED);
            if more > 0 {
                let text = format!("… and {more} more: switchboard clients list");
                lines.push(vec![(style::QUIET, text)]);
            }
        }
        lines.push(Line::new());
        let end = "press Ctrl-C to end the daemon and its servers";
        lines.push(vec![(style::QUIET, end.into())]);
        lines
    }
}

/// One line for each server that needs the user, with the command that helps.
fn waiting(snapshot: &DaemonSnapshot) -> Vec<Line> {
    let statuses = snapshot.projects.iter().flat_map(|it| &it.statuses);
    let waits = statuses.filter_map(|status| {
        let name = visible(status.name.as_str());
        let needs_user = match &status.state {
            ServerState::NeedsAuth { .. } => true,
            state => state.word() == "untrusted",
        };
        if needs_user {
            let remedy = status.remedy().map(|remedy| remedy.to_string());
            return Some(format!("{name}: {}", remedy.unwrap_or_default()));
        }
        (status.count.set_aside > 0).then(|| {
            let tools = counted(status.count.set_aside, "tool");
            format!("{name}: {tools} set aside; `switchboard pins diff` shows why")
        })
    });
    let mut texts: Vec<String> = waits.collect();
    texts.dedup();
    texts
        .into_iter()
        .map(|text| vec![(style::WARNING, text)])
        .collect()
}

/// Calls per second, between the first and the last count.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn rate(counts: &[(Instant, u64)]) -> f64 {
    match (counts.first(), counts.last()) {
        (Some((begin, first)), Some((end, last))) if end > begin => {
            (last - first) as f64 / (*end - *begin).as_secs_f64()
        }
        _ => 0.0,
    }
}
