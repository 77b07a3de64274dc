//! Protocol, configuration and permissions: runs the crates' criterion benchmarks and reads their estimates. Tool
//! search has its own program.

use super::{Bound, Row, middle, pinned, target, time};
use crate::run::run_command;

/// A comparison of two benchmarks, and its bound.
struct Comparison {
    what: &'static str,
    ours: &'static str,
    theirs: &'static str,
    bound: Bound,
}

/// The benchmarks to run: package, target, and filter.
const BENCHES: &[(&str, &str, &str)] = &[
    ("switchboard-protocol", "decode", "/(switchboard|rmcp)$"),
    ("switchboard-config", "load", "config/"),
    ("switchboard", "permissions", "permissions/"),
];

#[rustfmt::skip]
const ROWS: &[Comparison] = &[
    Comparison { what: "decode a small tools/call response, against rmcp", ours: "small_call_response/switchboard", theirs: "small_call_response/rmcp", bound: Bound::FasterBy(5.0) },
    Comparison { what: "decode a list of 1,000 tools, against rmcp", ours: "thousand_tools/switchboard", theirs: "thousand_tools/rmcp", bound: Bound::FasterBy(3.0) },
    Comparison { what: "decode a 1 MiB text result, against rmcp", ours: "mebibyte_text_escaped/switchboard", theirs: "mebibyte_text_escaped/rmcp", bound: Bound::FasterBy(3.0) },
    Comparison { what: "the same with nothing to unescape, against rmcp", ours: "mebibyte_text_plain/switchboard", theirs: "mebibyte_text_plain/rmcp", bound: Bound::FasterBy(3.0) },
    Comparison { what: "load 10,000 servers from JSON, against the bare parse", ours: "config/json_load", theirs: "config/json_bare", bound: Bound::AtMost(3.0) },
    Comparison { what: "load 10,000 servers of an untrusted project, against the bare parse", ours: "config/json_load-project", theirs: "config/json_bare", bound: Bound::AtMost(3.0) },
    Comparison { what: "load 10,000 servers from TOML, against the bare parse", ours: "config/toml_load", theirs: "config/toml_bare", bound: Bound::AtMost(3.0) },
    Comparison { what: "load 10,000 servers from HCL, against the bare parse", ours: "config/hcl_load", theirs: "config/hcl_bare", bound: Bound::AtMost(3.0) },
];

/// Nanoseconds that a thousand rules may add to a call.
const MOST_ADDED_BY_RULES: f64 = 2000.0;

pub(super) fn rows(rounds: u32) -> Result<Vec<Row>, String> {
    let mut times: Vec<Vec<(f64, f64)>> = ROWS.iter().map(|_| Vec::new()).collect();
    let mut added = Vec::new();
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
        let with_rules = median_nanoseconds("permissions/1000_rules")?;
        added.push(with_rules - median_nanoseconds("permissions/no_rules")?);
    }
    let rows = ROWS.iter().zip(&times);
    let mut rows: Vec<Row> = rows
        .map(|(row, times)| Row::times(row.what, times, row.bound))
        .collect();
    rows.push(Row::figure(
        "what 1,000 permission rules add to an allowed call",
        middle(added.iter().copied()),
        None,
        MOST_ADDED_BY_RULES,
        time,
    ));
    rows.extend(super::search::rows()?);
    Ok(rows)
}

fn run_bench(package: &str, bench: &str, cases: &str) -> Result<(), String> {
    run_command(pinned(&[
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
    ]))
}

/// The median that criterion measured last.
fn median_nanoseconds(benchmark: &str) -> Result<f64, String> {
    let path = target()
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
