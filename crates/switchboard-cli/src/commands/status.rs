//! `switchboard status`: the status of every server.

use std::time::{Duration, SystemTime};

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::catalog::ToolCount;
use switchboard::status::ServerStatus;
use switchboard_config::entry::Transport;
use switchboard_protocol::{Era, Revision};

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::{Table, style};
use crate::process_tree;
use crate::servers::Servers;
use crate::session;
use crate::state::Shown;

pub(crate) fn run(context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    session::run_listing(context, &servers, async |session| {
        session.start_quietly().await;
        let statuses = session.host.statuses();
        let rows: Vec<Row> = statuses.iter().map(Row::of).collect();
        let printer = &context.printer;
        if printer.json {
            printer.json(&rows.iter().map(Row::to_json).collect())?;
        } else {
            printer.data(table(&rows))?;
        }
        session.suggest_doctor();
        Ok(Exit::Done)
    })
}

pub(crate) struct Row {
    name: String,
    shown: Shown,
    transport: Option<&'static str>,
    revision: Option<Revision>,
    uptime: Option<Duration>,
    restarts: u32,
    latency: Option<Duration>,
    memory: Option<u64>,
    tools: Option<ToolCount>,
}

impl Row {
    pub(crate) fn of(status: &ServerStatus) -> Self {
        let is_connected = status.state.is_connected();
        let since = SystemTime::now().duration_since(status.since);
        Self {
            name: status.name.as_str().to_owned(),
            shown: Shown::of(&status.state),
            transport: status.transport.map(Transport::name),
            revision: status.revision,
            uptime: since.ok().filter(|_| is_connected),
            restarts: status.restarts,
            latency: status.latency,
            memory: status.process.and_then(process_tree::memory),
            tools: is_connected.then_some(status.count),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "transport": self.transport,
            "state": self.shown.word,
            "era": self.revision.map(|revision| era_word(revision.era())),
            "revision": self.revision.map(Revision::as_str),
            "uptime": self.uptime.map(|uptime| uptime.as_secs()),
            "restarts": self.restarts,
            "latency": self.latency.map(milliseconds),
            "memory": self.memory,
            "tools": self.tools.map(|count| count.offered),
            "setAside": self.tools.map(|count| count.set_aside),
            "hidden": self.tools.map(|count| count.hidden),
            "error": self.shown.reason,
        })
    }
}

/// The number of offered tools, with the other counts in parentheses.
pub(crate) fn tools_cell(count: &ToolCount) -> String {
    match count.rest() {
        Some(rest) => format!("{} ({rest})", count.offered),
        None => count.offered.to_string(),
    }
}

/// An era as a word, for tables and scripts.
pub(crate) fn era_word(era: Era) -> &'static str {
    match era {
        Era::Stateful => "stateful",
        Era::Stateless => "stateless",
    }
}

pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::with_heading(&[
        "NAME", "STATE", "PROTOCOL", "ERA", "UPTIME", "RESTARTS", "LATENCY", "MEMORY", "TOOLS",
    ]);
    let dash = || "–".to_owned();
    for row in rows {
        table.row([
            (style::NAME, &row.name),
            (row.shown.style, row.shown.word),
            (Style::new(), row.revision.map_or("–", Revision::as_str)),
            (
                Style::new(),
                row.revision
                    .map_or("–", |revision| era_word(revision.era())),
            ),
            (Style::new(), &row.uptime.map_or_else(dash, span)),
            (Style::new(), &row.restarts.to_string()),
            (
                Style::new(),
                &row.latency
                    .map_or_else(dash, |latency| format!("{} ms", milliseconds(latency))),
            ),
            (Style::new(), &row.memory.map_or_else(dash, size)),
            (
                Style::new(),
                &row.tools.map_or_else(dash, |count| tools_cell(&count)),
            ),
        ]);
        if let Some(reason) = &row.shown.remark {
            table.remark(row.shown.style, reason);
        }
    }
    table
}

/// Milliseconds with one decimal.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

/// A duration for people, in its two largest units.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A size for people, in decimal units.
pub(crate) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_readable() {
        let spans = [5, 65, 3_700, 90_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
        let sizes = [999, 1_500, 12_345_678, 3_000_000_000].map(size);
        assert_eq!(sizes, ["999 B", "1.5 kB", "12.3 MB", "3.0 GB"]);
        assert!((milliseconds(Duration::from_micros(1_234)) - 1.2).abs() < f64::EPSILON);
    }
}
