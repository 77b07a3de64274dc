//! The gateway: calls through its front ends against direct calls and other gateways, its start and its memory.
//!
//! Every contestant has the same server behind it, `echo-server`, and the same client before it, `bench-gateway`; all
//! processes share one core. What a call through a gateway costs is the difference to the direct call in the same turn.
//!
//! | where | what |
//! |---|---|
//! | this file | what is measured, and the bounds |
//! | `contestants` | our own front ends, ready to be measured |
//! | `opponents` | gateways of others: installing and starting them |

mod contestants;
mod opponents;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::{Bound, Row, held, middle, pinned, program, time};
use crate::run::run;
use contestants::{Home, HttpGateway};
use opponents::Opponent;

/// Bounds of the time that a call through a front end adds to the direct call, in nanoseconds.
const MOST_ADDED_STDIO: f64 = 15e3;
const MOST_ADDED_CONNECT: f64 = 20e3;
/// How much faster than the fastest opponent, with 64 calls in flight.
const FASTER_TOGETHER: f64 = 3.0;
/// Bound of a call over HTTP, as a multiple of a bare axum echo.
const MOST_HTTP: f64 = 2.0;
/// Calls per second over HTTP, client and server on the same core.
const LEAST_HTTP_CALLS: f64 = 10_000.0;
/// Bound of a result of one mebibyte, as a multiple of a bare copy.
const MOST_LARGE: f64 = 1.5;
/// Bound of the time until `connect` answers, as a multiple of `switchboard version`.
const MOST_READY: f64 = 3.0;
/// Resident memory of the gateway process, without its servers, in bytes.
const MOST_MEMORY: f64 = 15e6;
/// Resident memory for each idle HTTP client, in bytes.
const MOST_IDLE: f64 = 25e3;

/// Turns per round, and what a contestant does in each.
const TURNS: u32 = 12;
const CALLS: u32 = 400;
const TOGETHER: u32 = 3_200;
const LARGE_CALLS: u32 = 20;
const STARTS: u32 = 10;
const IDLE_CLIENTS: u32 = 1_000;

/// The name of our client, and of the echo tool behind our own front ends.
const CLIENT: &str = "bench-gateway";
const TOOL: &str = "mcp__echo__echo_0";

pub(super) fn rows(rounds: u32) -> Result<Vec<Row>, String> {
    run(&[
        "cargo",
        "build",
        "--quiet",
        "--profile",
        "bench",
        "--package",
        "switchboard-test",
        "--package",
        "switchboard-cli",
        "--bin",
        "echo-server",
        "--bin",
        CLIENT,
        "--bin",
        "switchboard",
    ])?;
    let mut missing = Vec::new();
    let mut others = Vec::new();
    for (name, installed) in opponents::install() {
        match installed {
            Ok(opponent) => others.push(opponent),
            Err(error) => {
                println!("\nMISSING: {name}: {error}");
                missing.push(Row::not_measured(
                    format!("against {name}"),
                    error.lines().next().unwrap_or("not installed"),
                ));
            }
        }
    }
    let home = Home::prepare("bench-gateway", &["echo"])?;
    let mut rows = over_stdio(&home, &others, rounds)?;
    rows.extend(over_http(&home, &others, rounds)?);
    rows.push(large(rounds)?);
    rows.push(ready(&home, rounds)?);
    rows.extend(memory()?);
    rows.extend(missing);
    Ok(rows)
}

/// Calls over standard input and output: of the gateway, of the bridge to the daemon, and of others.
fn over_stdio(home: &Home, others: &[Opponent], rounds: u32) -> Result<Vec<Row>, String> {
    let direct = json!({
        "name": "direct",
        "tool": "echo_0",
        "command": [program("echo-server")],
        "environment": {"ECHO_ERA": "stateful"},
    });
    let mut contestants = vec![
        direct,
        home.stdio("gateway", &["gateway"]),
        home.stdio("connect", &["connect"]),
    ];
    let daemon = home.daemon()?;
    let others: Vec<&Opponent> = others.iter().filter(|other| other.is_stdio()).collect();
    let mut running = Vec::new();
    for other in &others {
        let started = other.start()?;
        contestants.push(started.contestant.clone());
        running.push(started);
    }
    let report = measure(
        "calls",
        &plan(rounds * TURNS, CALLS, TOGETHER, &contestants),
    )?;
    drop((daemon, running));
    let added = |name| differences(&report, name, "direct");
    let mut rows = vec![
        Row::figure(
            "gateway over stdio: added to a direct call (p50)",
            middle(added("gateway").into_iter()),
            None,
            MOST_ADDED_STDIO,
            time,
        ),
        Row::figure(
            "`connect` through the daemon: added to a direct call (p50)",
            middle(added("connect").into_iter()),
            None,
            MOST_ADDED_CONNECT,
            time,
        ),
        Row::times(
            "one call, gateway over stdio against direct",
            &pairs(&report, "gateway", "direct", "one"),
            Bound::None,
        ),
    ];
    let together = |name: &str| middle(figures(&report, name, "together").into_iter());
    let best = others
        .iter()
        .map(|other| other.name)
        .min_by(|one, other| together(one).total_cmp(&together(other)));
    for other in &others {
        rows.push(Row::times(
            format!("one call over stdio, against {}", other.name),
            &pairs(&report, "gateway", other.name, "one"),
            Bound::None,
        ));
        let bound = if Some(other.name) == best {
            Bound::FasterBy(FASTER_TOGETHER)
        } else {
            Bound::None
        };
        rows.push(Row::times(
            format!("64 calls in flight over stdio, against {}", other.name),
            &pairs(&report, "gateway", other.name, "together"),
            bound,
        ));
    }
    Ok(rows)
}

/// Calls over HTTP, beside a server that only returns what it gets.
fn over_http(home: &Home, others: &[Opponent], rounds: u32) -> Result<Vec<Row>, String> {
    let gateway = HttpGateway::start(home)?;
    let echo = Running::start(pinned(&[&program(CLIENT), "http-echo"]))?;
    let echo_contestant = json!({
        "name": "axum",
        "tool": TOOL,
        "address": echo.first_line,
        "path": "/mcp",
        "era": "none",
    });
    let mut contestants = vec![
        echo_contestant,
        gateway.contestant("stateful"),
        gateway.contestant("stateless"),
    ];
    let others: Vec<&Opponent> = others.iter().filter(|other| !other.is_stdio()).collect();
    let mut running = Vec::new();
    for other in &others {
        let started = other.start()?;
        contestants.push(started.contestant.clone());
        running.push(started);
    }
    let report = measure(
        "calls",
        &plan(rounds * TURNS, CALLS, TOGETHER, &contestants),
    )?;
    drop((gateway, echo, running));
    let mut rows = Vec::new();
    for era in ["stateful", "stateless"] {
        rows.push(Row::times(
            format!("one call over HTTP ({era} era), against a bare axum echo"),
            &pairs(&report, era, "axum", "one"),
            Bound::AtMost(MOST_HTTP),
        ));
        let each = middle(figures(&report, era, "together").into_iter());
        let rate = 1e9 / each;
        rows.push(Row {
            what: format!("64 calls in flight over HTTP ({era} era), per second"),
            ours: format!("{rate:.0}"),
            theirs: String::new(),
            ratio: String::new(),
            wanted: format!("≥ {LEAST_HTTP_CALLS}"),
            held: held(rate >= LEAST_HTTP_CALLS),
        });
    }
    for other in others {
        for (what, member) in [("one call", "one"), ("64 calls in flight", "together")] {
            rows.push(Row::times(
                format!("{what} over HTTP, against {}", other.name),
                &pairs(&report, "stateful", other.name, member),
                Bound::None,
            ));
        }
    }
    Ok(rows)
}

/// Results of one mebibyte, beside a process that copies bytes both ways.
fn large(rounds: u32) -> Result<Row, String> {
    let home = Home::with_large_results("bench-gateway-large")?;
    let copy = json!({
        "name": "copy",
        "tool": "echo_0",
        "command": [program(CLIENT), "copy", program("echo-server")],
        "environment": {"ECHO_ERA": "stateful", "ECHO_BYTES": contestants::MEBIBYTE},
    });
    let contestants = [copy, home.stdio("gateway", &["gateway"])];
    let report = measure("calls", &plan(rounds * TURNS, LARGE_CALLS, 0, &contestants))?;
    Ok(Row::times(
        "a result of 1 MiB over stdio, against a bare copy",
        &pairs(&report, "gateway", "copy", "one"),
        Bound::AtMost(MOST_LARGE),
    ))
}

/// From the start of `connect` to the answer to the handshake, with a running daemon.
fn ready(home: &Home, rounds: u32) -> Result<Row, String> {
    let mut version = home.stdio("version", &["version"]);
    version["era"] = "none".into();
    let daemon = home.daemon()?;
    let contestants = [home.stdio("connect", &["connect"]), version];
    let report = measure("ready", &plan(rounds * STARTS, 0, 0, &contestants))?;
    drop(daemon);
    Ok(Row::times(
        "`connect`, from its start to the first answer, against `switchboard version`",
        &pairs(&report, "connect", "version", "one"),
        Bound::AtMost(MOST_READY),
    ))
}

/// Resident memory of the gateway process itself, without its servers.
fn memory() -> Result<Vec<Row>, String> {
    let names: Vec<String> = (0..10).map(|number| format!("echo{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let home = Home::prepare("bench-gateway-ten", &names)?;
    let mut gateway = home.stdio("gateway", &["gateway"]);
    gateway["tool"] = "mcp__echo0__echo_0".into();
    let report = measure("calls", &plan(2, CALLS, TOGETHER, &[gateway]))?;
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let kilobytes = |bytes: f64| format!("{:.1} kB", bytes / 1e3);
    let ten = report["gateway"]["memory"].as_f64().unwrap_or(f64::NAN);

    let gateway = HttpGateway::start(&home)?;
    let contestants = [gateway.contestant("stateful")];
    let warm = hold(&contestants, 50)?;
    drop(warm);
    let before = gateway.memory();
    let clients = hold(&contestants, IDLE_CLIENTS)?;
    let after = gateway.memory();
    drop(clients);
    let each = (after - before) / f64::from(IDLE_CLIENTS);
    Ok(vec![
        Row::figure(
            "resident memory of the gateway with ten servers, after calls",
            ten,
            None,
            MOST_MEMORY,
            megabytes,
        ),
        Row::figure(
            "resident memory for an idle HTTP client",
            each,
            None,
            MOST_IDLE,
            kilobytes,
        ),
    ])
}

/// Opens sessions that last as long as the returned process.
fn hold(contestants: &[Value], count: u32) -> Result<Running, String> {
    let mut command = pinned(&[&program(CLIENT), "idle", &count.to_string()]);
    command.stdin(Stdio::piped());
    let plan = plan(0, 0, 0, contestants);
    Running::start_with(command, Some(&plan))
}

fn plan(turns: u32, calls: u32, together: u32, contestants: &[Value]) -> Value {
    json!({
        "turns": turns,
        "calls": calls,
        "together": together,
        "contestants": contestants,
    })
}

/// Runs a task of the client.
fn measure(task: &str, plan: &Value) -> Result<Value, String> {
    let mut command = pinned(&[&program(CLIENT), task]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        let written = writeln!(input, "{plan}");
        written.map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{CLIENT} {task} failed: {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{CLIENT} {task}: {error}"))
}

fn figures(report: &Value, name: &str, member: &str) -> Vec<f64> {
    let turns = report[name][member].as_array();
    let turns = turns.map(Vec::as_slice).unwrap_or_default();
    turns.iter().filter_map(Value::as_f64).collect()
}

fn pairs(report: &Value, ours: &str, theirs: &str, member: &str) -> Vec<(f64, f64)> {
    let theirs = figures(report, theirs, member);
    figures(report, ours, member)
        .into_iter()
        .zip(theirs)
        .collect()
}

/// What a sequential call through a contestant takes longer than through another, turn by turn.
fn differences(report: &Value, name: &str, base: &str) -> Vec<f64> {
    let pairs = pairs(report, name, base, "one");
    pairs.into_iter().map(|(ours, base)| ours - base).collect()
}

/// A process that runs until this is dropped.
struct Running {
    child: Child,
    /// What it printed first on standard output.
    first_line: String,
}

impl Running {
    fn start(command: std::process::Command) -> Result<Self, String> {
        Self::start_with(command, None)
    }

    /// Starts it, writes one line to its standard input, and waits for its first line.
    fn start_with(
        mut command: std::process::Command,
        line: Option<&Value>,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        if let (Some(input), Some(line)) = (child.stdin.as_mut(), line) {
            writeln!(input, "{line}").map_err(failed)?;
        }
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut first_line = String::new();
        let read = BufReader::new(output).read_line(&mut first_line);
        read.map_err(failed)?;
        if first_line.is_empty() {
            let _ = child.kill();
            return Err(format!("{command:?} printed nothing"));
        }
        Ok(Self {
            child,
            first_line: first_line.trim().to_owned(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that holds clients ends with its input.
        let ends_by_itself = self.child.stdin.take().is_some();
        if !ends_by_itself {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
