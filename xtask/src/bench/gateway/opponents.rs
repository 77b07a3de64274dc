//! Gateways of others: installed into `target/bench-gateway-opponents`, and started with `echo-server` behind them.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::bench::{program, target};
use crate::run::run;

/// A gateway that is installed.
pub(super) struct Opponent {
    /// Name and version, as in the table.
    pub(super) name: &'static str,
    front: Front,
}

/// How a client reaches it.
enum Front {
    /// It serves one client over standard input and output.
    Stdio {
        command: Vec<String>,
        tool: &'static str,
    },
}

/// A gateway that runs, ended when this is dropped.
pub(super) struct StartedOpponent {
    pub(super) contestant: Value,
}

type Installed = Result<Opponent, String>;

/// Installs all of them. Says why one cannot be installed.
pub(super) fn install() -> Vec<(&'static str, Installed)> {
    vec![("mcp-hub 0.3", mcp_hub())]
}

impl Opponent {
    pub(super) fn is_stdio(&self) -> bool {
        matches!(self.front, Front::Stdio { .. })
    }

    pub(super) fn start(&self) -> Result<StartedOpponent, String> {
        let Front::Stdio { command, tool } = &self.front;
        Ok(StartedOpponent {
            contestant: json!({
                "name": self.name,
                "tool": tool,
                "command": command,
                "environment": {"RUST_LOG": "off", "ECHO_ERA": "stateful"},
            }),
        })
    }
}

fn mcp_hub() -> Installed {
    let hub = cargo_install("mcp-hub", "0.3.0", &[])?;
    let command = Value::from(program("echo-server"));
    let configuration = folder().join("mcp-hub.toml");
    let text = format!(
        "[servers.echo]\nprefix = \"echo\"\ncommand = {command}\nenv = {{ ECHO_ERA = \"stateful\", ECHO_TOOLS = \"10\" }}\n"
    );
    fs::write(&configuration, text)
        .map_err(|error| format!("{}: {error}", configuration.display()))?;
    Ok(Opponent {
        name: "mcp-hub 0.3",
        front: Front::Stdio {
            command: vec![hub, configuration.to_string_lossy().into_owned()],
            tool: "echo.echo_0",
        },
    })
}

fn folder() -> PathBuf {
    target().join("bench-gateway-opponents")
}

/// Installs a program from crates.io with its own lock file; gives its path.
fn cargo_install(name: &str, version: &str, options: &[&str]) -> Result<String, String> {
    let installed = folder().join("bin").join(name);
    let path = installed.to_string_lossy().into_owned();
    if installed.exists() {
        return Ok(path);
    }
    let root = folder();
    let root = root.to_string_lossy();
    let mut line = vec!["cargo", "install", "--quiet", "--locked", "--root", &root];
    line.extend(options);
    let wanted = format!("{name}@{version}");
    line.push(&wanted);
    run(&line)?;
    Ok(path)
}
