//! `switchboard status`: the status of every server, from the configuration and the cache, or measured.

use std::time::{Duration, SystemTime};

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::Host;
use switchboard::catalog::{CatalogServer, ToolCount};
use switchboard::internal::load::{BreakerState, LoadStatus};
use switchboard::internal::{remembered, workspace};
use switchboard::status::{ServerState, ServerStatus};
use switchboard_config::entry::Transport;
use switchboard_protocol::{Era, Revision};
use switchboard_store::Timestamp;

use crate::cli::StatusArguments;
use crate::commands::mcp::import;
use crate::context::Context;
#[cfg(unix)]
use crate::daemon;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Printer, Table, style};
use crate::servers::{NO_SERVERS, Servers};
#[cfg(unix)]
use crate::startup::counted;
use crate::state::{self, Shown};
use crate::{process_tree, session, time};

/// Time between two refreshes of `--watch`.
const REFRESH: Duration = Duration::from_secs(2);
/// Begins an update that a terminal shows at once: moves to the top of the screen and erases it.
const BEGIN: &[u8] = b"\x1b[?2026h\x1b[H\x1b[J";
const END: &[u8] = b"\x1b[?2026l";

pub(crate) fn run(arguments: &StatusArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    if !arguments.connect && !arguments.watch {
        #[cfg(unix)]
        if let Some(status) = daemon::status(context)? {
            show(&live_rows(&status, context), context)?;
            context.printer.note(daemon_line(&status));
            return Ok(Exit::Done);
        }
        show(&known(&servers, context), context)?;
        notes(&servers, context);
        return Ok(Exit::Done);
    }
    session::run_listing(context, &servers, async |session| {
        if arguments.connect {
            session.start_quietly().await;
        }
        let rows = || {
            if arguments.connect {
                let host = &session.host;
                let statuses = host.statuses();
                let rows = statuses.iter().map(Row::of);
                rows.map(|row| row.with_load(host)).collect()
            } else {
                #[cfg(unix)]
                if let Ok(Some(status)) = daemon::status(context) {
                    return live_rows(&status, context);
                }
                known(&Servers::load_quietly(context), context)
            }
        };
        if arguments.watch {
            return watch(rows, context).await;
        }
        show(&rows(), context)?;
        session.suggest_doctor();
        Ok(Exit::Done)
    })
}

/// Shows the rows again and again, until Ctrl-C.
async fn watch(rows: impl Fn() -> Vec<Row>, context: &Context) -> Outcome {
    let printer = &context.printer;
    let is_screen = Printer::is_on_terminal() && !printer.json;
    loop {
        let rows = rows();
        if printer.json {
            printer.json_line(&rows.iter().map(Row::to_json).collect())?;
        } else {
            if is_screen {
                Printer::raw(BEGIN)?;
            }
            show(&rows, context)?;
            printer.note("refreshing every 2 s; press Ctrl-C to stop");
            if is_screen {
                Printer::raw(END)?;
            }
        }
        tokio::time::sleep(REFRESH).await;
    }
}

fn show(rows: &[Row], context: &Context) -> Result<(), Failure> {
    let printer = &context.printer;
    if printer.json {
        return printer.json(&rows.iter().map(Row::to_json).collect());
    }
    printer.table(&table(rows))
}

/// The servers of this project as a running daemon knows them. Those of a project that the daemon has not opened are
/// known by their entries.
#[cfg(unix)]
fn live_rows(status: &Value, context: &Context) -> Vec<Row> {
    let mut rows = known(&Servers::load_quietly(context), context);
    let project = context.project.display().to_string();
    let mut projects = status["projects"].as_array().into_iter().flatten();
    let Some(project) = projects.find(|it| it["project"] == *project) else {
        return rows;
    };
    for live in project["servers"].as_array().into_iter().flatten() {
        if let Some(row) = rows.iter_mut().find(|row| live["name"] == *row.name) {
            row.update(live);
        }
    }
    rows
}

/// One line about the daemon.
#[cfg(unix)]
fn daemon_line(status: &Value) -> String {
    let clients = status["clients"].as_array().map_or(0, Vec::len);
    let calls = status["calls"].as_u64().unwrap_or_default();
    let calls = usize::try_from(calls).unwrap_or(usize::MAX);
    format!(
        "live from the daemon (process {}): {}, {}",
        status["pid"],
        counted(clients, "client"),
        counted(calls, "call")
    )
}

/// The servers by what is configured and cached. Starts nothing.
fn known(servers: &Servers, context: &Context) -> Vec<Row> {
    let (outlines, lists) = servers.remembered(context);
    let catalog = remembered::catalog(&outlines, &lists);
    let last = servers.last_known(context);
    let cached = |mut row: Row| {
        let of_server = |server: &CatalogServer| server.count();
        if row.shown.word != state::READY {
            return row;
        }
        row.tools = catalog.server(&row.name).map(of_server);
        if let Some(known) = last.get(&row.name) {
            row.revision = known.revision;
            row.seen = known.listed_at;
            if known.needs_login {
                row.shown = Shown::of(&ServerState::NeedsAuth { failure: None });
            }
        }
        row
    };
    if servers.is_embedded_only() {
        let embedded = Row::new(workspace::NAME, Shown::ready(), Some(Transport::Sdk));
        return vec![cached(embedded)];
    }
    let configured = servers.config.servers.iter();
    configured
        .map(|server| {
            let shown = Shown::configured(server);
            cached(Row::new(&server.name, shown, server.transport()))
        })
        .collect()
}

fn notes(servers: &Servers, context: &Context) {
    let printer = &context.printer;
    if servers.is_embedded_only() {
        printer.note(NO_SERVERS);
        import::suggest(context);
    }
    printer.note("from configuration and cache; --connect starts the servers");
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
    /// When its tools were last listed; `None` while connected.
    seen: Option<Timestamp>,
    /// Whether a host has this status, as opposed to the cache.
    is_live: bool,
    /// Running and waiting calls, and the circuit breaker; `None` if the server is not managed.
    load: Option<LoadStatus>,
}

impl Row {
    /// A server of which only the entry is known.
    fn new(name: &str, shown: Shown, transport: Option<Transport>) -> Self {
        Self {
            name: name.to_owned(),
            shown,
            transport: transport.map(Transport::name),
            revision: None,
            uptime: None,
            restarts: 0,
            latency: None,
            memory: None,
            tools: None,
            seen: None,
            is_live: false,
            load: None,
        }
    }

    pub(crate) fn of(status: &ServerStatus) -> Self {
        let is_connected = status.state.is_connected();
        let since = SystemTime::now().duration_since(status.since);
        Self {
            name: status.name.as_str().to_owned(),
            shown: Shown::of_status(status),
            transport: status.transport.map(Transport::name),
            revision: status.revision,
            uptime: since.ok().filter(|_| is_connected),
            restarts: status.restarts,
            latency: status.latency,
            memory: status.process.and_then(process_tree::memory),
            tools: is_connected.then_some(status.count),
            seen: None,
            is_live: true,
            load: None,
        }
    }

    /// Adds the load of the server, and says so if it holds calls back.
    pub(crate) fn with_load(mut self, host: &Host) -> Self {
        self.load = host.load(&self.name.as_str().into());
        let remark = self.load_remark();
        self.shown.remark = self.shown.remark.or(remark);
        self
    }

    fn load_remark(&self) -> Option<String> {
        let load = self.load?;
        match load.breaker {
            BreakerState::Open(pause) => {
                let pause = pause.as_secs().max(1);
                Some(format!(
                    "calls are paused for {pause} s after repeated failures"
                ))
            }
            BreakerState::HalfOpen => {
                Some("calls were paused after repeated failures; the next one is tried".to_owned())
            }
            _ if load.waiting > 0 => Some(format!(
                "{} calls are running and {} wait",
                load.running, load.waiting
            )),
            _ => None,
        }
    }

    /// Takes over what a daemon says, in the form of [`to_json`](Self::to_json).
    #[cfg(unix)]
    fn update(&mut self, live: &Value) {
        let text = |key: &str| live[key].as_str().map(str::to_owned);
        let count = |key: &str| usize::try_from(live[key].as_u64()?).ok();
        if let Some(shown) = live["state"].as_str().and_then(Shown::of_word) {
            let reason = text("error");
            self.shown = Shown {
                remark: reason.clone().filter(|_| shown.word != "disabled"),
                reason,
                ..shown
            };
        }
        self.revision = live["revision"].as_str().and_then(|it| it.parse().ok());
        self.uptime = live["uptime"].as_u64().map(Duration::from_secs);
        self.restarts = count("restarts")
            .and_then(|it| u32::try_from(it).ok())
            .unwrap_or_default();
        let latency = live["latency"].as_f64().map(|it| it / 1000.0);
        self.latency = latency.and_then(|it| Duration::try_from_secs_f64(it).ok());
        self.memory = live["memory"].as_u64();
        if let Some(offered) = count("tools") {
            self.tools = Some(ToolCount {
                offered,
                set_aside: count("setAside").unwrap_or_default(),
                hidden: count("hidden").unwrap_or_default(),
            });
            self.seen = None;
        }
        self.is_live = true;
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
            "listedAt": self.seen.map(time::exact),
            "load": self.load.map(|load| json!({
                "running": load.running,
                "waiting": load.waiting,
                "limit": load.limit,
                "shed": load.shed,
                "breaker": load.breaker.word(),
            })),
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
    let mut table = Table::new(&[
        Column::new("NAME"),
        Column::new("STATE").state(),
        Column::new("PROTOCOL").dropped(3),
        Column::new("ERA").dropped(1),
        Column::new("UPTIME").dropped(6),
        Column::new("RESTARTS").dropped(2),
        Column::new("LATENCY").dropped(5),
        Column::new("MEMORY").dropped(4),
        Column::new("TOOLS"),
        Column::new("LISTED").dropped(7),
    ]);
    let dash = || "–".to_owned();
    for row in rows {
        let restarts = if row.is_live {
            row.restarts.to_string()
        } else {
            dash()
        };
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
            (Style::new(), &restarts),
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
            (style::QUIET, &row.seen.map_or_else(dash, time::shown)),
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
