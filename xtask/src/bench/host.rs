//! Calls, lists and startup over stdio.
//!
//! Every contestant is a separate program, and all connect to the same cheap server, `echo-server`. Those in Rust are
//! built in one profile and follow the protocol of `switchboard_test::bench`; third-party clients are in
//! `tests/interop/bench`.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::{Bound, Row, pinned, program, target};
use crate::interop;
use crate::run::{is_installed, root, run};

const OURS: &str = "bench-switchboard";
const FLOOR: &str = "bench-floor";
const RMCP: &str = "bench-rmcp";
const TYPESCRIPT: &str = "typescript";
const PYTHON: &str = "python";

/// Calls per turn, and turns per round.
const CALLS: &str = "400";
const TURNS: usize = 60;
/// Tool listings and server starts per round.
const LISTS: usize = 5;
const STARTS: usize = 3;
/// Calls per round of the much slower clients.
const FEW_CALLS: &str = "2000";
/// Numbers of calls whose instructions are counted; the difference gives the cost per call.
const COUNTED: [u32; 2] = [1000, 3000];

pub(super) const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Measurements by round, keyed by task, contestant and member of its report.
type Samples = BTreeMap<(&'static str, &'static str, &'static str), Vec<f64>>;

pub(super) fn rows(rounds: u32) -> Result<Vec<Row>, String> {
    run(&[
        "cargo",
        "build",
        "--quiet",
        "--profile",
        "bench",
        "--package",
        "switchboard-test",
        "--bin",
        "echo-server",
        "--bin",
        FLOOR,
        "--bin",
        RMCP,
        "--bin",
        OURS,
    ])?;
    let others = match interop::install() {
        Ok(()) => true,
        Err(error) => {
            println!("without the clients of others: {error}");
            false
        }
    };
    let mut samples = Samples::new();
    for round in 1..=rounds {
        println!("\nround {round} of {rounds}");
        let mut clients = [FLOOR, OURS, RMCP];
        // The first client meets a colder machine, so the order rotates.
        let first = round as usize % clients.len();
        clients.rotate_left(first);
        measure_calls(&mut samples, "calls", "stateful", &clients)?;
        let both: Vec<_> = clients
            .into_iter()
            .filter(|client| speaks_both(client))
            .collect();
        measure_calls(&mut samples, "stateless calls", "stateless", &both)?;
        for _ in 0..LISTS {
            for client in clients {
                let mut list = pinned(&[&program(client), "list", &program("echo-server")]);
                list.env("ECHO_TOOLS", "10000");
                take(&mut samples, "list", client, &report_of(list)?);
            }
        }
        for _ in 0..STARTS {
            for client in clients {
                for (task, count) in [("start one", "1"), ("start", "30")] {
                    let server = program("echo-server");
                    let mut start = pinned(&[&program(client), "start", count, &server]);
                    start.env("ECHO_START_MS", "300");
                    take(&mut samples, task, client, &report_of(start)?);
                }
            }
        }
        if others {
            for client in [TYPESCRIPT, PYTHON] {
                let report = report_of(script(client, &program("echo-server")))?;
                take(&mut samples, "calls", client, &report);
            }
        }
    }
    table(&samples)
}

/// Records a client's report.
fn take(samples: &mut Samples, task: &'static str, client: &'static str, report: &Value) {
    for member in ["open", "sequential", "blocking", "concurrent", "memory"] {
        if let Some(figure) = report[member].as_f64() {
            let key = (task, client, member);
            samples.entry(key).or_default().push(figure);
        }
    }
}

/// Measures the calls of all clients, turn by turn.
fn measure_calls(
    samples: &mut Samples,
    task: &'static str,
    era: &str,
    clients: &[&'static str],
) -> Result<(), String> {
    let mut running = Vec::new();
    for client in clients {
        let mut command = pinned(&[&program(client), "calls", CALLS, &program("echo-server")]);
        command.env("ECHO_ERA", era);
        running.push((*client, Caller::start(command)?));
    }
    for _ in 0..TURNS {
        for (client, caller) in &mut running {
            let turn = caller.turn()?;
            for member in ["one", "together"] {
                if let Some(time) = turn[member].as_f64() {
                    let key = (task, *client, member);
                    samples.entry(key).or_default().push(time);
                }
            }
        }
    }
    for (client, caller) in running {
        take(samples, task, client, &caller.finish()?);
    }
    Ok(())
}

/// A client that makes calls on request.
struct Caller {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Caller {
    fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = command.spawn();
        let mut child = started.map_err(|error| format!("{command:?}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a client has no pipes".to_owned());
        };
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// The median times of its next calls.
    fn turn(&mut self) -> Result<Value, String> {
        self.input
            .write_all(b"\n")
            .map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        let times = serde_json::from_str(&line);
        times.map_err(|_| format!("a client did not print its times: {line}"))
    }

    /// Its final report.
    fn finish(self) -> Result<Value, String> {
        let Self {
            mut child,
            input,
            output,
        } = self;
        drop(input);
        let text = io::read_to_string(output).map_err(|error| error.to_string())?;
        println!("{}", text.trim_end());
        let status = child.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("a client failed: {status}"));
        }
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }
}

/// Whether a client also supports the stateless era.
fn speaks_both(contestant: &str) -> bool {
    matches!(contestant, OURS | FLOOR)
}

/// A third-party SDK's client.
fn script(contestant: &str, server: &str) -> Command {
    let scripts = root().join("tests/interop/bench");
    let modules = interop::folder().join("npm/node_modules");
    let (interpreter, script) = match contestant {
        TYPESCRIPT => (modules.join("node/bin/node"), "typescript_client.mjs"),
        _ => (
            interop::folder().join("pypi/venv/bin/python"),
            "python_client.py",
        ),
    };
    let script = scripts.join(script);
    let mut command = pinned(&[
        &interpreter.to_string_lossy(),
        &script.to_string_lossy(),
        FEW_CALLS,
        server,
    ]);
    command.env("INTEROP_NODE_MODULES", modules);
    command.env("ECHO_ERA", "stateful");
    command
}

/// Parses the one line of JSON that a client prints.
pub(super) fn report_of(mut command: Command) -> Result<Value, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{}", text.trim_end());
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status));
    }
    serde_json::from_str(&text).map_err(|error| format!("{command:?}: {error}"))
}

fn table(samples: &Samples) -> Result<Vec<Row>, String> {
    let of = |task, contestant, member| {
        let figures = samples.get(&(task, contestant, member));
        figures.map(Vec::as_slice).unwrap_or_default()
    };
    let pairs = |ours: &[f64], theirs: &[f64]| -> Vec<(f64, f64)> {
        ours.iter().copied().zip(theirs.iter().copied()).collect()
    };
    let against =
        |task, contestant, member| pairs(of(task, OURS, member), of(task, contestant, member));
    let middle = |figures: &[f64]| super::middle(figures.iter().copied());
    let mebibytes = |bytes: f64| format!("{:.1} MB", bytes / MEBIBYTE);

    let mut rows = vec![
        Row::times(
            "one call over stdio (p50), against the bare pipe",
            &against("calls", FLOOR, "one"),
            Bound::AtMost(1.25),
        ),
        Row::times(
            "the same in the stateless era",
            &against("stateless calls", FLOOR, "one"),
            Bound::AtMost(1.25),
        ),
        Row::times(
            "one call over stdio, the caller being the thread itself",
            &against("calls", FLOOR, "blocking"),
            Bound::None,
        ),
        Row::times(
            "one call over stdio, against rmcp",
            &against("calls", RMCP, "one"),
            Bound::None,
        ),
    ];
    for (contestant, name) in [
        (TYPESCRIPT, "the TypeScript SDK"),
        (PYTHON, "the Python SDK"),
    ] {
        let times = against("calls", contestant, "sequential");
        if !times.is_empty() {
            rows.push(Row::times(
                format!("one call over stdio, against {name}"),
                &times,
                Bound::None,
            ));
        }
    }
    rows.extend(instructions()?);
    rows.push(Row::times(
        "64 calls in flight, against rmcp",
        &against("calls", RMCP, "together"),
        Bound::FasterBy(5.5),
    ));
    for (contestant, name) in [
        (TYPESCRIPT, "the TypeScript SDK"),
        (PYTHON, "the Python SDK"),
    ] {
        let ours = [middle(of("calls", OURS, "together"))];
        let times = pairs(&ours, of("calls", contestant, "concurrent"));
        if !times.is_empty() {
            rows.push(Row::times(
                format!("64 calls in flight, against {name}"),
                &times,
                Bound::None,
            ));
        }
    }
    rows.push(Row::times(
        "list 10,000 tools of 600 B, against rmcp",
        &against("list", RMCP, "open"),
        Bound::AtMost(0.28),
    ));
    rows.push(Row::times(
        "the same, against a client that only reads them",
        &against("list", FLOOR, "open"),
        Bound::None,
    ));
    if !of("list", OURS, "memory").is_empty() {
        rows.push(Row::figure(
            "memory for 10,000 tools; rmcp",
            middle(of("list", OURS, "memory")),
            Some(middle(of("list", RMCP, "memory"))),
            13.0 * MEBIBYTE,
            mebibytes,
        ));
    }
    // Thirty processes that start on one core wait for each other, whatever starts them: the last is ready no sooner
    // than when a client that does nothing else has its tools (docs/design/0005).
    rows.push(Row::times(
        "30 servers that take 300 ms each, against the slowest of them",
        &against("start", FLOOR, "open"),
        Bound::AtMost(1.1),
    ));
    rows.push(Row::times(
        "30 servers that take 300 ms each, against one such server alone",
        &pairs(of("start", OURS, "open"), of("start one", FLOOR, "open")),
        Bound::None,
    ));
    rows.push(Row::times(
        "30 servers that take 300 ms each, against rmcp",
        &against("start", RMCP, "open"),
        Bound::None,
    ));
    if !of("start", OURS, "memory").is_empty() {
        rows.push(Row::figure(
            "memory for 30 servers; rmcp",
            middle(of("start", OURS, "memory")),
            Some(middle(of("start", RMCP, "memory"))),
            8.0 * MEBIBYTE,
            mebibytes,
        ));
    }
    Ok(rows)
}

/// The client's own instructions per call, which do not depend on the machine's load.
fn instructions() -> Result<Vec<Row>, String> {
    if !is_installed(&["valgrind", "--version"]) {
        let why = "valgrind is not installed";
        return Ok(vec![Row::not_measured("instructions a call", why)]);
    }
    let per_call = |contestant, era| {
        let [few, many] = COUNTED;
        let difference =
            instructions_of(contestant, many, era)? - instructions_of(contestant, few, era)?;
        Ok::<_, String>(difference / f64::from(many - few))
    };
    let show = |count: f64| format!("{count:.0}");
    let mut rows = Vec::new();
    for (what, era) in [
        ("instructions a call; the bare pipe", "stateful"),
        ("the same in the stateless era", "stateless"),
    ] {
        let (ours, floor) = (per_call(OURS, era)?, per_call(FLOOR, era)?);
        rows.push(Row::figure(what, ours, Some(floor), 12_000.0, show));
        if era == "stateful" {
            let rmcp = Some(per_call(RMCP, era)?);
            rows.push(Row {
                wanted: String::new(),
                held: super::Held::Unbound,
                ..Row::figure("instructions a call; rmcp", ours, rmcp, f64::NAN, show)
            });
        }
    }
    Ok(rows)
}

fn instructions_of(contestant: &str, calls: u32, era: &str) -> Result<f64, String> {
    let profile = target().join(format!("callgrind.{contestant}.{era}"));
    let mut command = pinned(&[
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        &format!("--callgrind-out-file={}", profile.display()),
        &program(contestant),
        "count",
        &calls.to_string(),
        &program("echo-server"),
    ]);
    command.env("ECHO_ERA", era);
    println!("counting the instructions of {calls} calls of {contestant}");
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed: {}\n{text}", output.status));
    }
    let text = std::fs::read_to_string(&profile)
        .map_err(|error| format!("{}: {error}", profile.display()))?;
    let total = text.lines().find_map(|line| {
        let figures = line
            .strip_prefix("summary:")
            .or_else(|| line.strip_prefix("totals:"))?;
        figures.trim().parse().ok()
    });
    total.ok_or_else(|| format!("{}: no total in it", profile.display()))
}
