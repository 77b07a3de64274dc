//! The side under test: our client against the suite's servers, or our server against its clients.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::run::command;

pub(super) enum Side {
    /// A client, as a command that the suite starts.
    Client(String),
    /// A listening server.
    Server(Listening),
}

impl Side {
    /// A client; `None` selects the one in this repository.
    pub(super) fn client(program: Option<&Path>) -> Result<Self, String> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => build("conformance-client")?,
        };
        let client = std::path::absolute(&program)
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let client = client.to_string_lossy().into_owned();
        // The suite splits the command at spaces and passes it to a shell.
        if client.contains(|letter: char| letter.is_whitespace() || "'\"$&|;<>()".contains(letter))
        {
            return Err(format!(
                "the suite cannot start a program with this path: {client}"
            ));
        }
        Ok(Self::Client(client))
    }

    /// The server in this repository.
    pub(super) fn server() -> Result<Self, String> {
        Listening::start(&build("conformance-server")?).map(Self::Server)
    }

    /// The name in the suite's commands and results.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Client(_) => "client",
            Self::Server(_) => "server",
        }
    }

    /// Whether extension scenarios are run. The server neither supports nor declares extensions.
    pub(super) fn has_extensions(&self) -> bool {
        matches!(self, Self::Client(_))
    }

    /// The suite's arguments for this side.
    pub(super) fn words(&self) -> [&str; 3] {
        match self {
            Self::Client(client) => ["client", "--command", client],
            Self::Server(server) => ["server", "--url", &server.url],
        }
    }
}

/// A listening server. Dropping it closes its input, which ends it.
pub(super) struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    fn start(program: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut url = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut url).map_err(failed)?;
        }
        let url = url.trim().to_owned();
        let server = Self { process, url };
        if server.url.is_empty() {
            return Err(format!("{} does not listen", program.display()));
        }
        Ok(server)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Builds a program of `switchboard-test` and returns its path.
fn build(program: &str) -> Result<PathBuf, String> {
    let line = [
        "cargo",
        "build",
        "--quiet",
        "--package",
        "switchboard-test",
        "--bin",
        program,
        "--message-format=json-render-diagnostics",
    ];
    println!("\n$ {}", line.join(" "));
    let output = command(&line)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut executables = text.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    match executables.next_back() {
        Some(path) if output.status.success() => Ok(path),
        _ => Err(format!("{program} could not be built")),
    }
}
