//! Counts the calls of a gateway, and writes them with the state of its servers in the Prometheus text format.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard::internal::load::BreakerState;
use switchboard::{CallError, CallOutcome, CalledTool, Host};

/// Tools with counters of their own. Calls of further tools are counted together.
const MAX_TOOLS: usize = 1_000;
/// The label of tools beyond the limit, and of calls without a known tool.
const OTHER: &str = "other";
/// Upper bounds of the histogram, in seconds and as they are written.
const BOUNDS: [(f64, &str); 10] = [
    (0.001, "0.001"),
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.05, "0.05"),
    (0.1, "0.1"),
    (0.5, "0.5"),
    (1.0, "1"),
    (5.0, "5"),
    (30.0, "30"),
    (120.0, "120"),
];

/// The counters of a gateway.
#[derive(Default)]
pub(super) struct Metrics {
    tools: Mutex<HashMap<ToolKey, Arc<ToolCounters>>>,
    /// Clients that are connected.
    clients: AtomicUsize,
}

/// Server and tool.
type ToolKey = (String, String);

#[derive(Default)]
struct ToolCounters {
    /// Calls with a result.
    done: AtomicU64,
    /// Calls whose tool reported an error.
    tool_errors: AtomicU64,
    /// Calls without a result.
    failed: AtomicU64,
    buckets: [AtomicU64; BOUNDS.len()],
    microseconds: AtomicU64,
}

impl Metrics {
    /// Counts a client until it is dropped.
    pub(super) fn client(self: &Arc<Self>) -> CountedClient {
        self.clients.fetch_add(1, Ordering::Relaxed);
        CountedClient(Arc::clone(self))
    }

    /// Counts a call that took so long.
    pub(super) fn call(&self, outcome: &Result<CallOutcome, CallError>, elapsed: Duration) {
        let tool = match outcome {
            Ok(outcome) => Some(&outcome.tool),
            Err(error) => tool_of(error),
        };
        let counters = self.counters(tool);
        let ended = match outcome {
            Ok(outcome) if outcome.is_error => &counters.tool_errors,
            Ok(_) => &counters.done,
            Err(_) => &counters.failed,
        };
        ended.fetch_add(1, Ordering::Relaxed);
        let seconds = elapsed.as_secs_f64();
        let bucket = BOUNDS.iter().position(|(bound, _)| seconds <= *bound);
        if let Some(bucket) = bucket.and_then(|index| counters.buckets.get(index)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let microseconds = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        counters
            .microseconds
            .fetch_add(microseconds, Ordering::Relaxed);
    }

    fn counters(&self, tool: Option<&CalledTool>) -> Arc<ToolCounters> {
        let key = tool.map_or_else(other, |tool| {
            let server = tool.server.as_ref().map(ToString::to_string);
            (server.unwrap_or_default(), tool.tool.to_string())
        });
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = tools.get(&key) {
            return Arc::clone(counters);
        }
        let key = if tools.len() < MAX_TOOLS {
            key
        } else {
            other()
        };
        Arc::clone(tools.entry(key).or_default())
    }

    /// Everything as text.
    pub(super) fn text(&self, host: &Host) -> String {
        let mut page = Page::default();
        self.write_calls(&mut page);
        write_servers(host, &mut page);
        page.family("switchboard_clients", "gauge", "Connected clients.");
        let clients = self.clients.load(Ordering::Relaxed);
        page.sample("switchboard_clients", &[], clients);
        page.0
    }

    fn write_calls(&self, page: &mut Page) {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tools: Vec<(ToolKey, Arc<ToolCounters>)> = tools
            .iter()
            .map(|(key, counters)| (key.clone(), Arc::clone(counters)))
            .collect();
        tools.sort_by(|one, other| one.0.cmp(&other.0));
        let name = "switchboard_calls_total";
        page.family(name, "counter", "Calls, by how they ended.");
        for ((server, tool), counters) in &tools {
            let ends = [
                ("done", &counters.done),
                ("tool-error", &counters.tool_errors),
                ("failed", &counters.failed),
            ];
            for (outcome, count) in ends {
                let labels = [
                    ("server", server.as_str()),
                    ("tool", tool),
                    ("outcome", outcome),
                ];
                page.sample(name, &labels, count.load(Ordering::Relaxed));
            }
        }
        let name = "switchboard_call_duration_seconds";
        page.family(name, "histogram", "Duration of calls.");
        for ((server, tool), counters) in &tools {
            let mut sum = 0;
            for ((_, bound), count) in BOUNDS.iter().zip(&counters.buckets) {
                sum += count.load(Ordering::Relaxed);
                let labels = [("server", server.as_str()), ("tool", tool), ("le", *bound)];
                page.sample(&format!("{name}_bucket"), &labels, sum);
            }
            let total = counters.total();
            let labels = [("server", server.as_str()), ("tool", tool), ("le", "+Inf")];
            page.sample(&format!("{name}_bucket"), &labels, total);
            let labels = [("server", server.as_str()), ("tool", tool)];
            let seconds = Duration::from_micros(counters.microseconds.load(Ordering::Relaxed));
            page.sample(&format!("{name}_sum"), &labels, seconds.as_secs_f64());
            page.sample(&format!("{name}_count"), &labels, total);
        }
    }
}

fn write_servers(host: &Host, page: &mut Page) {
    let statuses = host.statuses();
    let name = "switchboard_server_state";
    page.family(name, "gauge", "1 for the state that a server is in.");
    for status in &statuses {
        let labels = [("server", status.name.as_str()), ("state", status.word())];
        page.sample(name, &labels, 1);
    }
    let name = "switchboard_server_tools";
    page.family(name, "gauge", "Tools that a connected server offers.");
    for status in statuses.iter().filter(|status| status.state.is_connected()) {
        let labels = [("server", status.name.as_str())];
        page.sample(name, &labels, status.count.offered);
    }
    let name = "switchboard_server_restarts_total";
    page.family(name, "counter", "Reconnects of a server.");
    for status in &statuses {
        page.sample(name, &[("server", status.name.as_str())], status.restarts);
    }
    let loads: Vec<_> = statuses
        .iter()
        .filter_map(|status| Some((status.name.as_str(), host.load(&status.name)?)))
        .collect();
    let name = "switchboard_requests_running";
    page.family(name, "gauge", "Requests to a server that are running.");
    for (server, load) in &loads {
        page.sample(name, &[("server", *server)], load.running);
    }
    let name = "switchboard_requests_waiting";
    page.family(
        name,
        "gauge",
        "Requests to a server that wait for others to end.",
    );
    for (server, load) in &loads {
        page.sample(name, &[("server", *server)], load.waiting);
    }
    let name = "switchboard_requests_shed_total";
    page.family(
        name,
        "counter",
        "Requests refused by the limits of a server.",
    );
    for (server, load) in &loads {
        page.sample(name, &[("server", *server)], load.shed);
    }
    let name = "switchboard_breaker_closed";
    page.family(
        name,
        "gauge",
        "0 while calls to a server are paused after failures.",
    );
    for (server, load) in &loads {
        let is_closed = load.breaker == BreakerState::Closed;
        page.sample(name, &[("server", *server)], u8::from(is_closed));
    }
}

impl ToolCounters {
    fn total(&self) -> u64 {
        let counts = [&self.done, &self.tool_errors, &self.failed];
        counts
            .map(|count| count.load(Ordering::Relaxed))
            .iter()
            .sum()
    }
}

/// One connected client.
pub(super) struct CountedClient(Arc<Metrics>);

impl Drop for CountedClient {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn other() -> ToolKey {
    (OTHER.to_owned(), OTHER.to_owned())
}

/// The tool of a failed call, if the name led to one.
fn tool_of(error: &CallError) -> Option<&CalledTool> {
    match error {
        CallError::Arguments { tool, .. }
        | CallError::Denied { tool, .. }
        | CallError::Request { tool, .. } => Some(tool),
        _ => None,
    }
}

/// The text format of Prometheus.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, about: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            for character in text.chars() {
                match character {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    character => self.0.push(character),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.sample("x", &[("a", "1\"2\\3\n4"), ("b", "")], 5);
        page.sample("y", &[], 0.5);
        assert_eq!(page.0, "x{a=\"1\\\"2\\\\3\\n4\",b=\"\"} 5\ny 0.5\n");
    }

    #[test]
    fn the_number_of_tools_is_bounded() {
        let metrics = Metrics::default();
        for number in 0..MAX_TOOLS + 10 {
            let tool = CalledTool {
                server: Some("s".into()),
                tool: number.to_string().into(),
            };
            metrics.counters(Some(&tool));
        }
        let tools = metrics.tools.lock().unwrap();
        assert_eq!(tools.len(), MAX_TOOLS + 1);
    }
}
