//! The program from start to exit: cached lists must print almost as fast as the program starts, and a command must
//! exit with its answer, however long its servers take to exit.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::{Bound, Row, middle, program, target, time};
use crate::interop;
use crate::run::{command, root, run};

/// Starts of the program per round; the median counts.
const STARTS: usize = 15;

/// One-shot commands, and their labels.
const ONE_SHOT: &[(&[&str], &str)] = &[
    (
        &["call", "slow/echo_0", "text=x"],
        "`call`, from the last byte of the answer to the exit, with a server that takes 2 s to end",
    ),
    (&["tools"], "`tools`, likewise"),
];

/// Maximum time between the answer and the exit, in nanoseconds.
const MOST_AFTER_ANSWER: f64 = 50e6;

/// Maximum time of a completion, in nanoseconds.
const MOST_FOR_COMPLETION: f64 = 20e6;

/// Maximum time until the prompt of a chat is on the screen, in nanoseconds.
const MOST_FOR_PROMPT: f64 = 25e6;

/// Maximum of bytes written for each byte of streamed text.
const MOST_STREAMED: f64 = 3.0;

/// Maximum memory of a chat with 30 servers, in bytes.
const MOST_MEMORY: f64 = 40e6;

const WHAT: &str = "`tools --no-connect`, against `version`";

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
        "switchboard",
    ])?;
    let folder = target().join("bench-cli");
    let prepared = prepare(&folder, &echo());
    prepared.map_err(|error| format!("{}: {error}", folder.display()))?;
    let help = switchboard(&folder, &["tools", "--help"]).output();
    let help = help.map_err(|error| format!("the program does not start: {error}"))?;
    if !String::from_utf8_lossy(&help.stdout).contains("--no-connect") {
        return Ok(vec![Row::not_measured(
            WHAT,
            "`tools` does not know `--no-connect`",
        )]);
    }
    // The first run connects and fills the cache.
    took(&folder, &["tools"])?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut tools = Vec::new();
        let mut version = Vec::new();
        for _ in 0..STARTS {
            tools.push(took(&folder, &["tools", "--no-connect"])?);
            version.push(took(&folder, &["version"])?);
        }
        times.push((middle(tools.into_iter()), middle(version.into_iter())));
    }
    let mut rows = vec![Row::times(WHAT, &times, Bound::AtMost(2.0))];
    rows.push(completion(&folder, rounds)?);
    rows.extend(after_answer(rounds)?);
    rows.push(against_mcporter(&folder, rounds)?);
    rows.extend(chat(rounds)?);
    Ok(rows)
}

/// Measures how long a shell waits for the names of a server's tools, from the cache.
fn completion(folder: &Path, rounds: u32) -> Result<Row, String> {
    let line = ["__complete", "fish", "switchboard", "call", "echo/echo_9"];
    let mut times = Vec::new();
    for _ in 0..rounds.saturating_mul(5) {
        times.push(took(folder, &line)?);
    }
    let ours = middle(times.into_iter());
    let what = "completion of a tool's name, one of a hundred";
    Ok(Row::figure(what, ours, None, MOST_FOR_COMPLETION, time))
}

/// Compares `call` with mcporter's. Its daemon keeps the server running; ours is started for the call.
fn against_mcporter(folder: &Path, rounds: u32) -> Result<Row, String> {
    let what = "`call`, against mcporter, whose daemon keeps the server running";
    let modules = interop::install_npm()?.join("node_modules");
    let (node, script) = (
        modules.join("node/bin/node"),
        modules.join("mcporter/dist/cli.js"),
    );
    let settings = folder.join("mcporter.json");
    let entry = serde_json::json!({"mcpServers": {"echo": {
        "command": program("echo-server"),
        "env": {"ECHO_TOOLS": "100"},
        "lifecycle": "keep-alive",
    }}});
    let written = std::fs::write(&settings, entry.to_string());
    written.map_err(|error| format!("{}: {error}", settings.display()))?;
    let mcporter = |words: &[&str]| {
        let mut command = Command::new(&node);
        command
            .arg(&script)
            .arg("--config")
            .arg(&settings)
            .args(words);
        command
            .current_dir(folder.join("project"))
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder.join("mcporter"))
            .stdin(Stdio::null());
        elapsed(command)
    };
    let call = ["call", "echo.echo_0", "text=x"];
    mcporter(&["daemon", "start"])?;
    let measured = (|| {
        // The first call starts the server.
        mcporter(&call)?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..5 {
                ours.push(took(folder, &["call", "echo/echo_0", "text=x"])?);
                theirs.push(mcporter(&call)?);
            }
            times.push((middle(ours.into_iter()), middle(theirs.into_iter())));
        }
        Ok(Row::times(what, &times, Bound::AtMost(0.5)))
    })();
    mcporter(&["daemon", "stop"])?;
    measured
}

/// Measures the chat on a terminal, with a program in Python: start, streaming, memory.
fn chat(rounds: u32) -> Result<Vec<Row>, String> {
    let script = root().join("tests/interop/bench/chat.py");
    let folder = target().join("bench-cli-chat");
    let failed = |error: std::io::Error| format!("chat.py: {error}");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    let output = Command::new("python3")
        .arg(&script)
        .args([program("switchboard"), program("echo-server")])
        .arg(&folder)
        .arg(rounds.to_string())
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    let figures: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("chat.py: {error}"))?;
    let figure = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
    let bytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let ratio = figure("streamed") / figure("text");
    Ok(vec![
        Row::figure(
            "`chat`, from its start to the prompt on the screen",
            figure("prompt"),
            None,
            MOST_FOR_PROMPT,
            time,
        ),
        Row::figure(
            "`chat`, bytes written for each byte of streamed text",
            ratio,
            None,
            MOST_STREAMED,
            |ratio| format!("{ratio:.2}"),
        ),
        Row::figure(
            "`chat`, memory with 30 servers of 10 tools each",
            figure("memory"),
            None,
            MOST_MEMORY,
            bytes,
        ),
    ])
}

/// Measures how long one-shot commands run after their answer.
fn after_answer(rounds: u32) -> Result<Vec<Row>, String> {
    let folder = target().join("bench-cli-slow");
    let echo = program("echo-server");
    let slow = format!(
        "[mcp_servers.slow]\ncommand = \"sh\"\nargs = [\"-c\", {}]\nenv = {{ ECHO_TOOLS = \"1\" }}\n",
        Value::from(format!("'{echo}'; sleep 2"))
    );
    let prepared = prepare(&folder, &slow);
    prepared.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut rows = Vec::new();
    for (arguments, what) in ONE_SHOT {
        let mut times = Vec::new();
        for _ in 0..rounds.saturating_mul(5) {
            times.push(lingered(&folder, arguments)?);
        }
        let ours = middle(times.into_iter());
        rows.push(Row::figure(*what, ours, None, MOST_AFTER_ANSWER, time));
    }
    Ok(rows)
}

/// Time from the program's last byte of output to its exit, in nanoseconds.
fn lingered(folder: &Path, arguments: &[&str]) -> Result<f64, String> {
    let mut command = switchboard(folder, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let failed = |error: std::io::Error| format!("{arguments:?}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let mut stdout = child.stdout.take().ok_or("no standard output")?;
    let reader = std::thread::spawn(move || {
        let mut last = None;
        let mut bytes = vec![0; 64 * 1024];
        while matches!(stdout.read(&mut bytes), Ok(count) if count > 0) {
            last = Some(Instant::now());
        }
        last
    });
    let status = child.wait().map_err(failed)?;
    let ended = Instant::now();
    let last = reader.join().ok().flatten();
    match last.filter(|_| status.success()) {
        Some(last) => Ok(ended.saturating_duration_since(last).as_secs_f64() * 1e9),
        None => Err(format!("{arguments:?} printed no answer: {status}")),
    }
}

/// The configuration of one server with a hundred tools.
fn echo() -> String {
    let command = Value::from(program("echo-server"));
    format!("[mcp_servers.echo]\ncommand = {command}\nenv = {{ ECHO_TOOLS = \"100\" }}\n")
}

/// Creates a home with this configuration.
fn prepare(folder: &Path, configuration: &str) -> std::io::Result<()> {
    for name in ["config", "state", "project"] {
        let folder = folder.join(name);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(&folder)?,
        }
    }
    std::fs::write(folder.join("config/mcp.toml"), configuration)
}

fn switchboard(folder: &Path, arguments: &[&str]) -> Command {
    let program = program("switchboard");
    let line: Vec<&str> = std::iter::once(program.as_str())
        .chain(arguments.iter().copied())
        .collect();
    let mut command = command(&line);
    command
        .current_dir(folder.join("project"))
        .env("HOME", folder)
        .env("SWITCHBOARD_CONFIG_DIR", folder.join("config"))
        .env("SWITCHBOARD_STATE_DIR", folder.join("state"))
        .stdin(Stdio::null());
    command
}

/// The program's running time, in nanoseconds.
fn took(folder: &Path, arguments: &[&str]) -> Result<f64, String> {
    elapsed(switchboard(folder, arguments))
}

/// The running time of a command that must succeed, in nanoseconds.
fn elapsed(mut command: Command) -> Result<f64, String> {
    let start = Instant::now();
    let output = command.output();
    let elapsed = start.elapsed();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed: {}\n{text}", output.status));
    }
    Ok(elapsed.as_secs_f64() * 1e9)
}
