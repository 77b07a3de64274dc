//! `cargo xtask bench`: speed as ratios within one run.
//!
//! Absolute times mean nothing on a shared machine, so each row compares two contestants of the same run, on
//! one core, over several rounds; the median round counts. The benchmarks themselves are criterion's, beside
//! the crates; this module runs them and reads their estimates.

use std::path::PathBuf;

use crate::run::{command, is_installed, root, run_command};

/// A comparison: what is measured, whom against, and what it must come to.
struct Row {
    what: &'static str,
    ours: &'static str,
    theirs: &'static str,
    bound: Bound,
}

/// What a ratio must come to.
enum Bound {
    /// We are at least this many times as fast.
    FasterBy(f64),
    /// We take at most this many times as long.
    AtMost(f64),
}

/// The benchmarks that the rows read: package, target, and the cases of it.
const BENCHES: &[(&str, &str, &str)] = &[
    ("switchboard-protocol", "decode", "/(switchboard|rmcp)$"),
    ("switchboard-config", "load", "config/"),
];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { what: "decode a small tools/call response, against rmcp", ours: "small_call_response/switchboard", theirs: "small_call_response/rmcp", bound: Bound::FasterBy(5.0) },
    Row { what: "decode a list of 1,000 tools, against rmcp", ours: "thousand_tools/switchboard", theirs: "thousand_tools/rmcp", bound: Bound::FasterBy(3.0) },
    Row { what: "decode a 1 MiB text result, against rmcp", ours: "mebibyte_text_escaped/switchboard", theirs: "mebibyte_text_escaped/rmcp", bound: Bound::FasterBy(3.0) },
    Row { what: "the same with nothing to unescape, against rmcp", ours: "mebibyte_text_plain/switchboard", theirs: "mebibyte_text_plain/rmcp", bound: Bound::FasterBy(3.0) },
    Row { what: "load 10,000 servers from JSON, against the bare parse", ours: "config/json_load", theirs: "config/json_bare", bound: Bound::AtMost(3.0) },
    Row { what: "load 10,000 servers of an untrusted project, against the bare parse", ours: "config/json_load-project", theirs: "config/json_bare", bound: Bound::AtMost(3.0) },
    Row { what: "load 10,000 servers from TOML, against the bare parse", ours: "config/toml_load", theirs: "config/toml_bare", bound: Bound::AtMost(3.0) },
    Row { what: "load 10,000 servers from HCL, against the bare parse", ours: "config/hcl_load", theirs: "config/hcl_bare", bound: Bound::AtMost(3.0) },
];

pub(crate) fn bench(rounds: u32) -> Result<(), String> {
    let mut times: Vec<Vec<(f64, f64)>> = ROWS.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        println!("\nround {round} of {rounds}");
        for (package, bench, cases) in BENCHES {
            run_bench(package, bench, cases)?;
        }
        for (row, times) in ROWS.iter().zip(&mut times) {
            times.push((
                median_nanoseconds(row.ours)?,
                median_nanoseconds(row.theirs)?,
            ));
        }
    }
    println!("\n| what | ours | theirs | ratio | wanted |\n|---|---:|---:|---:|---:|");
    let mut missed = Vec::new();
    for (row, times) in ROWS.iter().zip(times) {
        let ours = middle(times.iter().map(|(ours, _)| *ours));
        let theirs = middle(times.iter().map(|(_, theirs)| *theirs));
        // The ratio is taken within each round, where both met the same machine.
        let (ratio, wanted, held) = match row.bound {
            Bound::FasterBy(wanted) => {
                let ratio = middle(times.iter().map(|(ours, theirs)| theirs / ours));
                (
                    format!("{ratio:.1} × faster"),
                    format!("≥ {wanted} ×"),
                    ratio >= wanted,
                )
            }
            Bound::AtMost(wanted) => {
                let ratio = middle(times.iter().map(|(ours, theirs)| ours / theirs));
                (
                    format!("{ratio:.2} × the time"),
                    format!("≤ {wanted} ×"),
                    ratio <= wanted,
                )
            }
        };
        println!(
            "| {} | {} | {} | {ratio} | {wanted} |",
            row.what,
            time(ours),
            time(theirs)
        );
        if !held {
            missed.push(row.what);
        }
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("missed: {}", missed.join("; ")))
    }
}

/// Runs one benchmark, on one core where that can be asked for.
fn run_bench(package: &str, bench: &str, cases: &str) -> Result<(), String> {
    let line = [
        "cargo",
        "bench",
        "--quiet",
        "--package",
        package,
        "--bench",
        bench,
        "--",
        cases,
        "--noplot",
        "--quiet",
    ];
    let pinned: Vec<&str> = ["taskset", "--cpu-list", "0"]
        .into_iter()
        .chain(line)
        .collect();
    run_command(command(if is_installed(&["taskset", "--version"]) {
        &pinned
    } else {
        &line
    }))
}

/// What criterion measured last.
fn median_nanoseconds(benchmark: &str) -> Result<f64, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let path = target
        .join("criterion")
        .join(benchmark)
        .join("new/estimates.json");
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| problem(&error))?;
    let estimates: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| problem(&error))?;
    estimates["median"]["point_estimate"]
        .as_f64()
        .ok_or_else(|| problem(&"no median"))
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
