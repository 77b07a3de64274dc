//! The Python and Node packages, beside the official SDKs of their languages.
//!
//! All clients connect to the same cheap server and are processes of their own, taking turns within a round. They are
//! not pinned to one core: the packages have a thread of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::host::{MEBIBYTE, report_of};
use super::{Bound, Row, middle, program, target};
use crate::interop;
use crate::run::{command, root, run};

/// The server that all clients connect to.
const SERVER: &str = "echo-server";
/// Calls per round.
const CALLS: &str = "2000";
/// Tools of the server that is only listed.
const MANY_TOOLS: &str = "10000";

/// A language: our package, and the SDK that it is compared with.
struct Language {
    name: &'static str,
    sdk: &'static str,
    /// The greatest share of the SDK's time for one call.
    call: f64,
    /// How many times the SDK's throughput with 64 calls in flight.
    concurrent: f64,
    ours: fn(&Packages) -> Command,
    theirs: fn() -> Command,
}

const LANGUAGES: [Language; 2] = [
    Language {
        name: "Python",
        sdk: "the Python SDK",
        call: 0.25,
        concurrent: 4.0,
        ours: |packages| {
            let mut client = python("python_switchboard.py");
            client.env("PYTHONPATH", &packages.python);
            client
        },
        theirs: || python("python_client.py"),
    },
    Language {
        name: "Node",
        sdk: "the TypeScript SDK",
        call: 0.5,
        concurrent: 3.0,
        ours: |packages| {
            let mut client = node("node_switchboard.cjs");
            client.env("SWITCHBOARD_PACKAGE", root().join("bindings/node"));
            client.env("SWITCHBOARD_NATIVE", &packages.node);
            client
        },
        theirs: || node("typescript_client.mjs"),
    },
];

/// The Cargo profile of the packages, as `cargo xtask package` uses it.
const PROFILE: &str = "dist";

/// The longest import of a package.
const IMPORT: f64 = 60e6;

/// The packages as they are published.
struct Packages {
    /// The folder with the Python package.
    python: PathBuf,
    /// The native module of the Node package.
    node: PathBuf,
}

pub(super) fn rows(rounds: u32) -> Result<Vec<Row>, String> {
    let packages = build()?;
    let mut rows = Vec::new();
    for language in &LANGUAGES {
        let mut samples = Vec::new();
        for round in 1..=rounds {
            println!("\nround {round} of {rounds}, {}", language.name);
            samples.push(Sample {
                ours: report(&|| (language.ours)(&packages))?,
                theirs: report(&language.theirs)?,
            });
        }
        rows.extend(table(language, &samples));
    }
    Ok(rows)
}

/// The reports of one round.
struct Sample {
    ours: Report,
    theirs: Report,
}

/// The reports of one client: of calls, and of a long list.
struct Report {
    calls: Value,
    list: Value,
}

fn report(client: &dyn Fn() -> Command) -> Result<Report, String> {
    let run = |calls: &str, tools: &str| {
        let mut client = client();
        client.args([calls, &program(SERVER)]);
        client.env("ECHO_ERA", "stateful").env("ECHO_TOOLS", tools);
        let supervisor = format!("switchboard{}", std::env::consts::EXE_SUFFIX);
        client.env(
            "SWITCHBOARD_PROGRAM",
            target().join(PROFILE).join(supervisor),
        );
        client.env(
            "INTEROP_NODE_MODULES",
            interop::folder().join("npm/node_modules"),
        );
        report_of(client)
    };
    Ok(Report {
        calls: run(CALLS, "1")?,
        list: run("1", MANY_TOOLS)?,
    })
}

fn table(language: &Language, samples: &[Sample]) -> Vec<Row> {
    let Language { name, sdk, .. } = language;
    let pairs = |read: &dyn Fn(&Report) -> f64| -> Vec<(f64, f64)> {
        let both = |sample: &Sample| (read(&sample.ours), read(&sample.theirs));
        samples.iter().map(both).collect()
    };
    let of = |report: &Value, member: &str| report[member].as_f64().unwrap_or(f64::NAN);
    let memory = pairs(&|report| of(&report.list, "memory"));
    let import = samples
        .iter()
        .map(|sample| of(&sample.ours.calls, "import"));
    vec![
        Row::times(
            format!("{name}: one call (p50), against {sdk}"),
            &pairs(&|report| of(&report.calls, "sequential")),
            Bound::AtMost(language.call),
        ),
        Row::times(
            format!("{name}: 64 calls in flight, against {sdk}"),
            &pairs(&|report| of(&report.calls, "concurrent")),
            Bound::FasterBy(language.concurrent),
        ),
        // Connecting lists the tools with us and does not with the SDKs, so both are counted.
        Row::times(
            format!("{name}: connect and list 10,000 tools, against {sdk}"),
            &pairs(&|report| of(&report.list, "connect") + of(&report.list, "list")),
            Bound::AtMost(0.3),
        ),
        Row::figure(
            format!("{name}: import"),
            middle(import),
            None,
            IMPORT,
            super::time,
        ),
        Row::figure(
            format!("{name}: memory for 10,000 tools; {sdk}"),
            middle(memory.iter().map(|(ours, _)| *ours)),
            Some(middle(memory.iter().map(|(_, theirs)| *theirs))),
            middle(memory.iter().map(|(_, theirs)| *theirs)),
            |bytes| format!("{:.1} MB", bytes / MEBIBYTE),
        ),
    ]
}

fn build() -> Result<Packages, String> {
    interop::install()?;
    // One at a time, as `cargo xtask package` builds them: built together, they would share features.
    for packages in [
        &["switchboard-python"][..],
        &["switchboard-node", "switchboard-cli"],
    ] {
        let mut build = vec!["cargo", "build", "--quiet", "--profile", PROFILE];
        build.extend(packages.iter().flat_map(|package| ["--package", package]));
        run(&build)?;
    }
    let mut server = vec!["cargo", "build", "--quiet", "--profile", "bench"];
    server.extend(["--package", "switchboard-test", "--bin", SERVER]);
    run(&server)?;
    let built = target().join(PROFILE);
    let python = target().join("bench-python");
    let package = python.join("switchboard_mcp");
    copy_folder(
        &root().join("bindings/python/python/switchboard_mcp"),
        &package,
    )?;
    let native = built.join("lib_native.so");
    copy(&native, &package.join("_native.abi3.so"))?;
    let node = built.join("switchboard.node");
    copy(&built.join("libswitchboard_node.so"), &node)?;
    Ok(Packages { python, node })
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("cannot copy {}: {error}", from.display()))
}

/// Copies the files of a folder, without its subfolders.
fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot copy {}: {error}", from.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.path().is_file() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn python(script: &str) -> Command {
    let interpreter = interop::folder().join("pypi/venv/bin/python");
    interpreted(&interpreter, script)
}

fn node(script: &str) -> Command {
    let interpreter = interop::folder().join("npm/node_modules/node/bin/node");
    interpreted(&interpreter, script)
}

fn interpreted(interpreter: &Path, script: &str) -> Command {
    let script = root().join("tests/interop/bench").join(script);
    command(&[&interpreter.to_string_lossy(), &script.to_string_lossy()])
}
