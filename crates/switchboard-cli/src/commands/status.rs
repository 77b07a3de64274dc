//! `switchboard status`: how every server stands.

use std::time::{Duration, SystemTime};

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::catalog::ToolCount;
use switchboard::status::{ServerStatus, State};
use switchboard_config::entry::Transport;
use switchboard_config::resolve::Server;
use switchboard_protocol::{Era, Revision};

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::{Table, style};
use crate::process_tree;
use crate::servers::{HeldBack, Servers};
use crate::session;

pub(crate) fn run(context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    session::look(context, &servers, async |session| {
        session.start_quietly().await;
        let statuses = session.host.statuses();
        let mut rows: Vec<Row> = statuses.iter().map(Row::of).collect();
        rows.extend(
            session
                .held_back
                .iter()
                .map(|held| Row::held_back(held, &servers)),
        );
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        let printer = &context.printer;
        if printer.json {
            printer.json(&rows.iter().map(Row::to_json).collect())?;
        } else {
            printer.data(table(&rows))?;
        }
        session.tell_doctor();
        Ok(Exit::Done)
    })
}

/// One server as it is shown.
struct Row {
    name: String,
    state: &'static str,
    style: Style,
    transport: Option<&'static str>,
    revision: Option<Revision>,
    uptime: Option<Duration>,
    restarts: u32,
    latency: Option<Duration>,
    memory: Option<u64>,
    tools: Option<ToolCount>,
    error: Option<String>,
}

impl Row {
    fn of(status: &ServerStatus) -> Self {
        let is_connected = status.state == State::Connected;
        let since = SystemTime::now().duration_since(status.since);
        Self {
            name: status.name.as_str().to_owned(),
            state: status.state.word(),
            style: state_style(status.state),
            transport: Some(status.transport.name()),
            revision: status.revision,
            uptime: since.ok().filter(|_| is_connected),
            restarts: status.restarts,
            latency: status.latency,
            memory: status.process.and_then(process_tree::memory),
            tools: is_connected.then_some(status.count),
            error: status.reason(),
        }
    }

    fn held_back(held: &HeldBack, servers: &Servers) -> Self {
        let server = servers.config.server(&held.name);
        Self {
            name: held.name.clone(),
            state: held.state,
            style: held.style(),
            transport: server.and_then(Server::transport).map(Transport::name),
            revision: None,
            uptime: None,
            restarts: 0,
            latency: None,
            memory: None,
            tools: None,
            error: Some(held.reason.clone()),
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "transport": self.transport,
            "state": self.state,
            "era": self.revision.map(|revision| era_word(revision.era())),
            "revision": self.revision.map(Revision::as_str),
            "uptime": self.uptime.map(|uptime| uptime.as_secs()),
            "restarts": self.restarts,
            "latency": self.latency.map(milliseconds),
            "memory": self.memory,
            "tools": self.tools.map(|count| count.offered),
            "setAside": self.tools.map(|count| count.set_aside),
            "hidden": self.tools.map(|count| count.hidden),
            "error": self.error,
        })
    }
}

/// How many tools a server offers, with what it lists besides.
pub(crate) fn tools_cell(count: &ToolCount) -> String {
    match count.rest() {
        Some(rest) => format!("{} ({rest})", count.offered),
        None => count.offered.to_string(),
    }
}

/// An era in one word, for tables and scripts.
pub(crate) fn era_word(era: Era) -> &'static str {
    match era {
        Era::Stateful => "stateful",
        Era::Stateless => "stateless",
    }
}

/// The style of a state.
pub(crate) fn state_style(state: State) -> Style {
    match state {
        State::Connected => style::GOOD,
        State::Failed => style::ERROR,
        State::NeedsAuth => style::WARNING,
        State::Pending | State::Disabled => style::QUIET,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::with_heading(&[
        "NAME", "STATE", "PROTOCOL", "ERA", "UPTIME", "RESTARTS", "LATENCY", "MEMORY", "TOOLS",
    ]);
    let dash = || "–".to_owned();
    for row in rows {
        table.row([
            (style::NAME, &row.name),
            (row.style, row.state),
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
        if let Some(reason) = row.error.as_ref().filter(|_| row.state != "disabled") {
            table.remark(row.style, reason);
        }
    }
    table
}

/// Milliseconds with one digit after the point.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

/// A time for people, in its two largest units.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A size for people.
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
    fn times_and_sizes_are_for_people() {
        let spans = [5, 65, 3_700, 90_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
        let sizes = [999, 1_500, 12_345_678, 3_000_000_000].map(size);
        assert_eq!(sizes, ["999 B", "1.5 kB", "12.3 MB", "3.0 GB"]);
        assert!((milliseconds(Duration::from_micros(1_234)) - 1.2).abs() < f64::EPSILON);
    }
}
