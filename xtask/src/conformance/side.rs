//! What is under test: our client against the suite's servers, or a server against its clients, by itself or behind our
//! gateway.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::interop;
use crate::run::command;

pub(super) enum Side {
    /// A client, as a command that the suite starts.
    Client(String),
    /// A listening server.
    Server(Listening),
    /// A listening server behind our gateway.
    Gateway(GatewayServer),
}

/// A server that is run by itself and behind the gateway.
#[derive(Debug, Clone, Copy)]
pub(super) enum Upstream {
    /// The server in this repository.
    Own,
    /// A server on rmcp.
    Rmcp,
}

impl Upstream {
    pub(super) const ALL: [Self; 2] = [Self::Own, Self::Rmcp];

    /// The program, and its name in results.
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Own => "conformance-server",
            Self::Rmcp => "conformance-rmcp",
        }
    }

    /// The server by itself.
    pub(super) fn start(self) -> Result<Side, String> {
        let program = build(TEST_PROGRAMS, self.program())?;
        Listening::start(&mut Command::new(program)).map(Side::Server)
    }

    /// The server behind the gateway.
    pub(super) fn start_behind_gateway(self) -> Result<Side, String> {
        GatewayServer::start(self).map(Side::Gateway)
    }
}

/// The crate with the servers and clients of the suite.
const TEST_PROGRAMS: &str = "switchboard-test";

impl Side {
    /// A client; `None` selects the one in this repository.
    pub(super) fn client(program: Option<&Path>) -> Result<Self, String> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => build(TEST_PROGRAMS, "conformance-client")?,
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
        Upstream::Own.start()
    }

    /// The name in the suite's commands.
    pub(super) fn role(&self) -> &'static str {
        match self {
            Self::Client(_) => "client",
            Self::Server(_) | Self::Gateway(_) => "server",
        }
    }

    /// The name in results.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Client(_) => "client",
            Self::Server(_) => "server",
            Self::Gateway(_) => "gateway",
        }
    }

    /// The token that the suite has to send, if it needs one.
    pub(super) fn token(&self) -> Option<&str> {
        match self {
            Self::Gateway(gateway) => Some(&gateway.token),
            Self::Client(_) | Self::Server(_) => None,
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
            Self::Gateway(gateway) => ["server", "--url", &gateway.listening.url],
        }
    }
}

/// A listening server. Dropping it closes its input, which ends it.
pub(super) struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    /// Starts a server whose first line of standard output is its URL.
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut process = spawn(command.stdout(Stdio::piped()))?;
        let output = process.stdout.take();
        Self::after(command, process, output, |line| Some(line.to_owned()))
    }

    /// Reads lines until one has the URL.
    fn after(
        command: &Command,
        process: Child,
        output: Option<impl Read + Send + 'static>,
        url: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut server = Self {
            process,
            url: String::new(),
        };
        let mut lines = output
            .into_iter()
            .flat_map(|output| BufReader::new(output).lines())
            .map_while(Result::ok);
        let mut seen = Vec::new();
        for line in lines.by_ref() {
            if let Some(url) = url(line.trim()) {
                server.url = url;
                break;
            }
            seen.push(line);
        }
        // The rest must be read, or the server blocks once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        if server.url.is_empty() {
            let program = command.get_program().display();
            return Err(format!("{program} does not listen: {}", seen.join("; ")));
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

/// A server behind `switchboard gateway --transparent`, on a machine of its own: no other configuration is read.
pub(super) struct GatewayServer {
    listening: GatewayProcess,
    token: String,
    /// Ends after the gateway.
    _upstream: Listening,
}

/// A running gateway, killed on drop.
struct GatewayProcess(Listening);

impl std::ops::Deref for GatewayProcess {
    type Target = Listening;

    fn deref(&self) -> &Listening {
        &self.0
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        // It has no state to save.
        let _ = self.0.process.kill();
    }
}

impl GatewayServer {
    fn start(upstream: Upstream) -> Result<Self, String> {
        let program = build("switchboard-cli", "switchboard")?;
        let Side::Server(server) = upstream.start()? else {
            return Err("not a server".to_owned());
        };
        let folder = interop::folder()
            .join("conformance")
            .join(upstream.program())
            .join("machine");
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed)?;
        }
        for name in ["home", "config", "state", "project"] {
            std::fs::create_dir_all(folder.join(name)).map_err(failed)?;
        }
        let entry = format!("[mcp_servers.suite]\nurl = \"{}\"\n", server.url);
        std::fs::write(folder.join("config/mcp.toml"), entry).map_err(failed)?;
        let mut command = Command::new(&program);
        command
            .args(["gateway", "--transparent", "suite", "--http", "127.0.0.1:0"])
            .env("HOME", folder.join("home"))
            .env("SWITCHBOARD_CONFIG_DIR", folder.join("config"))
            .env("SWITCHBOARD_STATE_DIR", folder.join("state"))
            .env("SWITCHBOARD_MANAGED_FILE", folder.join("managed.toml"))
            .current_dir(folder.join("project"))
            .stderr(Stdio::piped());
        let mut process = spawn(&mut command)?;
        let output = process.stderr.take();
        let listening = Listening::after(&command, process, output, |line| {
            let (_, url) = line.split_once("serving the gateway at ")?;
            Some(url.to_owned())
        })?;
        let listening = GatewayProcess(listening);
        let token = std::fs::read_to_string(folder.join("state/gateway-token")).map_err(failed)?;
        Ok(Self {
            listening,
            token: token.trim().to_owned(),
            _upstream: server,
        })
    }
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    let spawned = command.stdin(Stdio::piped()).spawn();
    spawned.map_err(|error| format!("{}: {error}", command.get_program().display()))
}

/// Builds a program of a crate and returns its path.
fn build(package: &str, program: &str) -> Result<PathBuf, String> {
    let line = [
        "cargo",
        "build",
        "--quiet",
        "--package",
        package,
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
