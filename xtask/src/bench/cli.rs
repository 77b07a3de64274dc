//! The program from start to end: what is remembered must be told almost as fast as the program starts.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Bound, Row, program, target};
use crate::run::{command, run};

/// Starts of the program in one round; the median counts.
const STARTS: usize = 15;

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
    let prepared = prepare(&folder);
    prepared.map_err(|error| format!("{}: {error}", folder.display()))?;
    let help = switchboard(&folder, &["tools", "--help"]).output();
    let help = help.map_err(|error| format!("the program does not start: {error}"))?;
    if !String::from_utf8_lossy(&help.stdout).contains("--no-connect") {
        return Ok(vec![Row::not_measured(
            WHAT,
            "`tools` does not know `--no-connect`",
        )]);
    }
    // The first time it connects, and remembers.
    took(&folder, &["tools"])?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut tools = Vec::new();
        let mut version = Vec::new();
        for _ in 0..STARTS {
            tools.push(took(&folder, &["tools", "--no-connect"])?);
            version.push(took(&folder, &["version"])?);
        }
        times.push((
            super::middle(tools.into_iter()),
            super::middle(version.into_iter()),
        ));
    }
    Ok(vec![Row::times(WHAT, &times, Bound::AtMost(2.0))])
}

/// A home with one server of a hundred tools.
fn prepare(folder: &Path) -> std::io::Result<()> {
    for name in ["config", "state", "project"] {
        let folder = folder.join(name);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(&folder)?,
        }
    }
    let command = serde_json::Value::from(program("echo-server"));
    let entry =
        format!("[mcp_servers.echo]\ncommand = {command}\nenv = {{ ECHO_TOOLS = \"100\" }}\n");
    std::fs::write(folder.join("config/mcp.toml"), entry)
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

/// How long the program takes, in nanoseconds.
fn took(folder: &Path, arguments: &[&str]) -> Result<f64, String> {
    let mut command = switchboard(folder, arguments);
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
