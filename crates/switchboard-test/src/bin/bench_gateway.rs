//! Measures gateways for `cargo xtask bench gateway`: a client with minimal overhead, and what they are compared with.
//!
//! | command line | what it does |
//! |---|---|
//! | `bench-gateway calls` | makes calls through every contestant of the plan, turn by turn |
//! | `bench-gateway ready` | starts each contestant of the plan in turn, and waits for its first answer or its exit |
//! | `bench-gateway idle COUNT` | opens that many HTTP sessions of the first contestant and holds them until standard input ends |
//! | `bench-gateway http-echo` | a bare axum server that returns every body; prints its address |
//! | `bench-gateway copy COMMAND…` | runs a server and copies bytes between it and standard input and output |
//!
//! The plan is one line of JSON on standard input, the report one line on standard output. Times are in nanoseconds.
//! All contestants of a plan are connected before the first turn, so that adjacent turns see the same conditions.

#![expect(clippy::print_stdout, reason = "its output is a report")]

#[path = "bench_gateway/baseline.rs"]
mod baseline;
#[path = "bench_gateway/http.rs"]
mod http;
#[path = "bench_gateway/stdio.rs"]
mod stdio;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use http::HttpClient;
use stdio::StdioClient;

type Failure = Box<dyn Error + Send + Sync>;

/// Requests in flight in the second half of a turn.
const IN_FLIGHT: usize = 64;

/// What to measure.
#[derive(Deserialize)]
struct Plan {
    /// Turns of each contestant.
    turns: usize,
    /// Sequential calls per turn.
    calls: usize,
    /// Calls per turn with [`IN_FLIGHT`] at a time; 0 for none.
    together: usize,
    contestants: Vec<Contestant>,
}

/// A server to measure: a command that speaks over stdio, or the address of an HTTP server.
#[derive(Deserialize)]
struct Contestant {
    name: String,
    /// The name of the echo tool there.
    #[serde(default)]
    tool: String,
    /// Program and arguments; empty for an HTTP server.
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    folder: Option<String>,
    /// Host and port.
    #[serde(default)]
    address: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    token: String,
    #[serde(default)]
    era: Era,
    /// Makes so many times fewer calls than the plan says, for one that is much slower; 0 is 1.
    #[serde(default)]
    fewer: usize,
}

impl Contestant {
    fn share(&self, count: usize) -> usize {
        count / self.fewer.max(1)
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Era {
    #[default]
    Stateful,
    Stateless,
    /// Not an MCP server: any answer will do.
    None,
}

/// The figures of one contestant, one per turn.
#[derive(Default, Serialize)]
struct Figures {
    /// The median time of a sequential call.
    one: Vec<f64>,
    /// The time per call with many in flight.
    together: Vec<f64>,
    /// Resident memory of the contestant's process after the calls, in bytes; 0 if it runs elsewhere.
    memory: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["calls"] => calls(),
        ["ready"] => ready(),
        ["idle", count] => idle(count),
        ["http-echo"] => baseline::http_echo(),
        ["copy", command @ ..] => baseline::copy(command),
        _ => Err("the task must be `calls`, `ready`, `idle`, `http-echo` or `copy`".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "bench-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan() -> Result<Plan, Failure> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// A connection to a contestant.
enum Connection {
    Stdio(StdioClient),
    Http(HttpClient),
}

impl Connection {
    fn open(contestant: &Contestant) -> Result<Self, Failure> {
        Ok(if contestant.command.is_empty() {
            Self::Http(HttpClient::open(contestant)?)
        } else {
            Self::Stdio(StdioClient::open(contestant)?)
        })
    }

    fn call(&mut self) -> Result<(), Failure> {
        match self {
            Self::Stdio(client) => client.call(),
            Self::Http(client) => client.call(),
        }
    }

    fn many(&mut self, count: usize) -> Result<(), Failure> {
        match self {
            Self::Stdio(client) => client.many(count),
            Self::Http(client) => client.many(count),
        }
    }

    fn memory(&self) -> u64 {
        match self {
            Self::Stdio(client) => client.memory(),
            Self::Http(_) => 0,
        }
    }
}

fn calls() -> Result<(), Failure> {
    let plan = plan()?;
    let mut connections = Vec::new();
    for contestant in &plan.contestants {
        let named = |error: Failure| format!("{}: {error}", contestant.name);
        let mut connection = Connection::open(contestant).map_err(named)?;
        for _ in 0..contestant.share(plan.calls) {
            connection.call().map_err(named)?;
        }
        connections.push((contestant, connection));
    }
    let mut report: BTreeMap<&str, Figures> = BTreeMap::new();
    for turn in 0..plan.turns {
        let count = connections.len().max(1);
        // The first of a turn meets a colder machine, so the order rotates.
        for index in 0..count {
            let Some((contestant, connection)) = connections.get_mut((index + turn) % count) else {
                continue;
            };
            let named = |error: Failure| format!("{}: {error}", contestant.name);
            let (calls, together) = (
                contestant.share(plan.calls),
                contestant.share(plan.together),
            );
            let mut times = Vec::with_capacity(calls);
            for _ in 0..calls {
                let start = Instant::now();
                connection.call().map_err(named)?;
                times.push(start.elapsed().as_secs_f64() * 1e9);
            }
            let figures = report.entry(&contestant.name).or_default();
            figures.one.push(middle(times));
            if together > 0 {
                let start = Instant::now();
                connection.many(together).map_err(named)?;
                let elapsed = start.elapsed().as_secs_f64() * 1e9;
                #[expect(clippy::cast_precision_loss, reason = "a few thousand calls")]
                figures.together.push(elapsed / together as f64);
            }
        }
    }
    for (contestant, connection) in &connections {
        report.entry(&contestant.name).or_default().memory = connection.memory();
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn ready() -> Result<(), Failure> {
    let plan = plan()?;
    let mut report: BTreeMap<&str, Figures> = BTreeMap::new();
    for _ in 0..plan.turns {
        for contestant in &plan.contestants {
            let start = Instant::now();
            let client = match contestant.era {
                Era::None => {
                    stdio::run(contestant)?;
                    None
                }
                _ => Some(StdioClient::open(contestant)?),
            };
            let elapsed = start.elapsed().as_secs_f64() * 1e9;
            report
                .entry(&contestant.name)
                .or_default()
                .one
                .push(elapsed);
            drop(client);
        }
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn idle(count: &str) -> Result<(), Failure> {
    let plan = plan()?;
    let contestant = plan.contestants.first().ok_or("no contestant")?;
    let count: usize = count.parse()?;
    let sessions: Result<Vec<HttpClient>, Failure> =
        (0..count).map(|_| HttpClient::open(contestant)).collect();
    let sessions = sessions?;
    println!("{}", sessions.len());
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The handshake of a client of the stateful era.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// What a request of the stateless era carries.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"}},"#;

/// Writes a call of the echo tool.
fn write_call(buffer: &mut Vec<u8>, id: u64, tool: &str, era: Era) -> io::Result<()> {
    let meta = if era == Era::Stateless { META } else { "" };
    write!(
        buffer,
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{meta}"name":"{tool}","arguments":{{"text":"hello"}}}}}}"#
    )
}

/// Whether a message is a result, and not of a tool that reports an error.
fn is_result(message: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(message, text.as_bytes()).is_some();
    has("\"result\":") && !has("\"isError\":true")
}
