//! Servers that are coming up, shown while they do: a line each on a terminal, and nothing is left of it afterwards.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use switchboard::Host;
use switchboard::events::Event;
use switchboard::names::ServerName;
use switchboard::status::{ServerStatus, State};
use switchboard_config::text::visible;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, interval_at};

use crate::printer::{Printer, paint, style};

/// What is faster is not shown: a flash tells nobody anything.
const PATIENCE: Duration = Duration::from_millis(150);
/// How often the lines are drawn anew.
const TICK: Duration = Duration::from_millis(80);

/// Lines on the terminal, one for each server.
#[derive(Debug)]
pub(crate) struct View<'p> {
    printer: &'p Printer,
    servers: Vec<ServerName>,
    started: Instant,
}

impl<'p> View<'p> {
    pub(crate) fn new(printer: &'p Printer, servers: &[ServerName]) -> Self {
        Self {
            printer,
            servers: servers.to_vec(),
            started: Instant::now(),
        }
    }

    /// Shows how the servers come up, until every server has settled.
    pub(crate) async fn follow(self, host: &Host, mut events: Receiver<Event>) {
        let mut settled = std::pin::pin!(host.settled());
        if !self.printer.is_live() {
            return settled.await;
        }
        let mut ticks = interval_at(self.started + PATIENCE, TICK);
        let mut lines: Option<Lines> = None;
        loop {
            tokio::select! {
                () = &mut settled => break,
                _ = ticks.tick() => {
                    let lines = lines.get_or_insert_with(|| Lines::new(&self, host));
                    lines.tick();
                }
                event = events.recv() => match event {
                    Ok(Event::StateChanged { .. } | Event::StartupUpdate { .. }) | Err(RecvError::Lagged(_)) => {
                        if let Some(lines) = &mut lines {
                            lines.update(&host.statuses());
                        }
                    }
                    Ok(_) => {}
                    // The host is gone, and `settled` says so.
                    Err(RecvError::Closed) => break,
                },
            }
        }
    }
}

/// The lines while they are on the screen.
struct Lines {
    printer: Printer,
    all: MultiProgress,
    by_server: HashMap<ServerName, ProgressBar>,
}

impl Lines {
    fn new(view: &View<'_>, host: &Host) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let width = view.servers.iter().map(|name| name.as_str().len()).max();
        let width = width.unwrap_or_default().min(40);
        let mut lines = Self {
            printer: view.printer.clone(),
            all,
            by_server: HashMap::new(),
        };
        for name in &view.servers {
            let bar = lines.all.add(ProgressBar::new_spinner());
            bar.set_style(spinner(view.printer, width));
            bar.set_prefix(visible(name.as_str()).into_owned());
            bar.set_message(view.printer.styled(style::QUIET, "starting"));
            lines.by_server.insert(name.clone(), bar);
        }
        lines.update(&host.statuses());
        lines
    }

    fn tick(&self) {
        for bar in self.by_server.values() {
            if !bar.is_finished() {
                bar.tick();
            }
        }
    }

    fn update(&mut self, statuses: &[ServerStatus]) {
        for status in statuses {
            let Some(bar) = self.by_server.get(&status.name) else {
                continue;
            };
            if bar.is_finished() {
                continue;
            }
            let line = match status.state {
                State::Pending => continue,
                State::Connected => {
                    let tools = counted(status.tools, "tool");
                    format!("{} {tools}", self.printer.styled(style::GOOD, "ready"))
                }
                State::Failed => {
                    let reason = status.failure.as_ref().map(|failure| failure.summary());
                    let reason = reason.unwrap_or_default();
                    let word = self.printer.styled(style::ERROR, "failed");
                    format!("{word} {}", visible(&reason))
                }
                State::NeedsAuth => self.printer.styled(style::WARNING, "wants a login"),
                State::Disabled => self.printer.styled(style::QUIET, "disabled"),
            };
            bar.finish_with_message(line);
        }
    }
}

impl Drop for Lines {
    /// Whatever ends the wait, the screen is as it was before.
    fn drop(&mut self) {
        let _ = self.all.clear();
    }
}

/// A number of things.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

fn spinner(printer: &Printer, width: usize) -> ProgressStyle {
    let template = format!("{{spinner}} {{prefix:{width}}}  {{wide_msg}} {{elapsed}}");
    let mark = paint(style::GOOD, "•");
    let done = if printer.colors.stderr {
        mark.as_str()
    } else {
        "•"
    };
    ProgressStyle::with_template(&template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .tick_strings(&["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", done])
}
