//! `cargo xtask bench`: speed as ratios within one run.
//!
//! Absolute times mean nothing on a shared machine, so each row compares two contestants of the same run, on
//! one core, over several rounds; the median round counts. A row with a bound that is missed fails the command.
//!
//! | where | what |
//! |---|---|
//! | `data` | protocol, configuration, permissions and tool search: criterion's benchmarks, beside the crates, and a program |
//! | `host` | calls, lists and start-up over stdio: clients as processes of their own |
//! | `bindings` | the Python and Node packages, beside the official SDKs of their languages |
//! | `cli` | the program itself, from start to end |
//! | `gateway` | the gateway: its front ends, beside other gateways |
//! | `poison` | poisoned definitions: how many are flagged, how many others are, and what that costs |

mod bindings;
mod cli;
mod data;
mod gateway;
mod host;
mod poison;
mod search;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{command, is_installed, root, run};

/// A row of the table: two contestants, or one and a fixed limit.
struct Row {
    what: String,
    ours: String,
    theirs: String,
    ratio: String,
    wanted: String,
    held: Held,
}

/// Whether a row meets its bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Yes,
    No,
    /// No bound, or nothing measured.
    Unbound,
}

/// The bound of a ratio.
#[derive(Clone, Copy)]
enum Bound {
    /// Ours is at least this many times as fast.
    FasterBy(f64),
    /// Ours takes at most this many times as long.
    AtMost(f64),
    /// For comparison only.
    None,
}

const PARTS: &[(&str, Part)] = &[
    ("data", data::rows),
    ("host", host::rows),
    ("bindings", bindings::rows),
    ("cli", cli::rows),
    ("gateway", gateway::rows),
    ("poison", poison::rows),
];

type Part = fn(rounds: u32) -> Result<Vec<Row>, String>;

/// Runs the named parts, or all: `[PART…] [ROUNDS]`.
pub(crate) fn bench(words: &[&str]) -> Result<(), String> {
    let mut rounds = 3;
    let mut parts: Vec<Part> = Vec::new();
    for word in words {
        match (PARTS.iter().find(|(name, _)| name == word), word.parse()) {
            (Some((_, part)), _) => parts.push(*part),
            (None, Ok(number)) => rounds = number,
            (None, Err(_)) => {
                let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "\"{word}\" is neither a number of rounds nor a part of the benchmark: {}",
                    names.join(", ")
                ));
            }
        }
    }
    if parts.is_empty() {
        parts = PARTS.iter().map(|(_, part)| *part).collect();
    }
    let mut rows = Vec::new();
    for part in parts {
        rows.extend(part(rounds)?);
    }
    println!("\n| what | ours | theirs | ratio | wanted | |\n|---|---:|---:|---:|---:|---|");
    for row in &rows {
        let Row {
            what,
            ours,
            theirs,
            ratio,
            wanted,
            held,
        } = row;
        let mark = if *held == Held::No { "missed" } else { "" };
        println!("| {what} | {ours} | {theirs} | {ratio} | {wanted} | {mark} |");
    }
    let missed: Vec<&str> = rows
        .iter()
        .filter(|row| row.held == Held::No)
        .map(|row| row.what.as_str())
        .collect();
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("missed: {}", missed.join("; ")))
    }
}

impl Row {
    /// Compares times in nanoseconds, measured round by round.
    fn times(what: impl Into<String>, rounds: &[(f64, f64)], bound: Bound) -> Self {
        // Ratios are taken within each round, under the same load.
        let faster = middle(rounds.iter().map(|(ours, theirs)| theirs / ours));
        let slower = middle(rounds.iter().map(|(ours, theirs)| ours / theirs));
        let (ratio, wanted, held) = match bound {
            Bound::FasterBy(wanted) => (
                format!("{faster:.1} × faster"),
                format!("≥ {wanted} ×"),
                held(faster >= wanted),
            ),
            Bound::AtMost(wanted) => (
                format!("{slower:.2} × the time"),
                format!("≤ {wanted} ×"),
                held(slower <= wanted),
            ),
            Bound::None => (
                format!("{slower:.2} × the time"),
                String::new(),
                Held::Unbound,
            ),
        };
        Self {
            what: what.into(),
            ours: time(middle(rounds.iter().map(|(ours, _)| *ours))),
            theirs: time(middle(rounds.iter().map(|(_, theirs)| *theirs))),
            ratio,
            wanted,
            held,
        }
    }

    /// Compares one figure with its maximum; `theirs` is only shown.
    fn figure(
        what: impl Into<String>,
        ours: f64,
        theirs: Option<f64>,
        most: f64,
        show: impl Fn(f64) -> String,
    ) -> Self {
        Self {
            what: what.into(),
            ours: show(ours),
            theirs: theirs.map_or_else(String::new, &show),
            ratio: String::new(),
            wanted: format!("≤ {}", show(most)),
            held: held(ours <= most),
        }
    }

    /// A row that could not be measured here, with the reason.
    fn not_measured(what: impl Into<String>, why: &str) -> Self {
        Self {
            what: what.into(),
            ours: String::new(),
            theirs: String::new(),
            ratio: format!("not measured: {why}"),
            wanted: String::new(),
            held: Held::Unbound,
        }
    }
}

fn held(holds: bool) -> Held {
    if holds { Held::Yes } else { Held::No }
}

/// A command pinned to one core, if the system supports it.
fn pinned(line: &[&str]) -> Command {
    if is_installed(&["taskset", "--version"]) {
        let pinned: Vec<&str> = ["taskset", "--cpu-list", "0"]
            .into_iter()
            .chain(line.iter().copied())
            .collect();
        command(&pinned)
    } else {
        command(line)
    }
}

/// Cargo's target folder.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The path of a program built in the bench profile.
fn program(name: &str) -> String {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = target().join("release").join(file);
    path.to_string_lossy().into_owned()
}

/// Builds a measuring program, runs it on one core, and parses the figures it prints.
fn figures(name: &str, features: &[&str]) -> Result<Value, String> {
    let features = features.join(",");
    let mut build = vec!["cargo", "build", "--quiet", "--profile", "bench"];
    build.extend(["--package", "switchboard-test", "--bin", name]);
    build.extend(["--features", &features]);
    run(&build)?;
    let output = pinned(&[&program(name)])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{name} does not start: {error}"))?;
    let figures: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{name}: {error}"))?;
    match figures["error"].as_str() {
        Some(error) => Err(format!("{name}: {error}")),
        None => Ok(figures),
    }
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        below if below < 1e3 => format!("{below:.0} ns"),
        below if below < 1e6 => format!("{:.1} µs", below / 1e3),
        other => format!("{:.1} ms", other / 1e6),
    }
}
