//! Gateways of others: installed into `target/bench-gateway-opponents`, and started with `echo-server` behind them.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::{pinned, program, target};
use crate::run::run;

/// How long an opponent may take to listen.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Stands for the port in a command line.
const PORT: &str = "{port}";

/// A gateway that is installed.
pub(super) struct Opponent {
    /// Name and version, as in the table.
    pub(super) name: &'static str,
    /// What to start before a client connects; empty if the client starts everything.
    daemon: Vec<String>,
    front: Front,
    /// The name of the echo tool.
    tool: &'static str,
    /// Makes so many times fewer calls than the others: for those that are much slower.
    fewer: u32,
    /// The port in its configuration file; `None` if it has none.
    port: Option<u16>,
}

/// How a client reaches it.
enum Front {
    /// The client starts this command.
    Stdio(Vec<String>),
    /// The client connects to the daemon, at this path.
    Http(&'static str),
}

/// A gateway that runs, ended when this is dropped.
pub(super) struct StartedOpponent {
    pub(super) contestant: Value,
    daemon: Option<Child>,
}

type Installed = Result<Opponent, String>;

/// Installs all of them. Says why one cannot be installed.
pub(super) fn install() -> Vec<(&'static str, Installed)> {
    if let Err(error) = fs::create_dir_all(folder()) {
        println!("{}: {error}", folder().display());
    }
    vec![
        ("mcp-hub 0.3 (crate)", mcp_hub()),
        ("rmcp-mux 0.4 (crate)", rmcp_mux()),
        ("mcp-proxy 0.6 (crate)", mcp_proxy()),
        ("mcp-proxy 0.13 (PyPI)", python_mcp_proxy()),
        ("fastmcp 4 (PyPI)", fastmcp()),
        ("supergateway 4 (npm)", supergateway()),
    ]
}

impl Opponent {
    pub(super) fn is_stdio(&self) -> bool {
        matches!(self.front, Front::Stdio(_))
    }

    pub(super) fn start(&self) -> Result<StartedOpponent, String> {
        let port = self.port.map_or_else(free_port, Ok)?;
        let mut started = StartedOpponent {
            contestant: json!({"name": self.name, "tool": self.tool, "fewer": self.fewer}),
            daemon: None,
        };
        if !self.daemon.is_empty() {
            let line: Vec<String> = self
                .daemon
                .iter()
                .map(|word| word.replace(PORT, &port.to_string()))
                .collect();
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            let child = pinned(&words)
                .envs(ENVIRONMENT)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            started.daemon = Some(child.map_err(|error| format!("{}: {error}", self.name))?);
        }
        match &self.front {
            Front::Stdio(command) => {
                let environment: serde_json::Map<String, Value> = ENVIRONMENT
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.into()))
                    .collect();
                started.contestant["command"] = json!(command);
                started.contestant["environment"] = environment.into();
                if !self.daemon.is_empty() {
                    wait_until(self.name, || socket().exists())?;
                }
            }
            Front::Http(path) => {
                let address = format!("127.0.0.1:{port}");
                wait_until(self.name, || TcpStream::connect(&address).is_ok())?;
                started.contestant["address"] = address.into();
                started.contestant["path"] = (*path).into();
            }
        }
        Ok(started)
    }
}

impl Drop for StartedOpponent {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// The same for all: the server behind them, and no log.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("ECHO_ERA", "stateful"),
    ("ECHO_TOOLS", "10"),
    ("RUST_LOG", "off"),
    ("FASTMCP_LOG_LEVEL", "ERROR"),
];

fn mcp_hub() -> Installed {
    let hub = cargo_install("mcp-hub", "0.3.0", &[])?;
    let command = Value::from(program("echo-server"));
    let configuration = written(
        "mcp-hub.toml",
        &format!(
            "[servers.echo]\nprefix = \"echo\"\ncommand = {command}\nenv = {{ ECHO_ERA = \"stateful\", ECHO_TOOLS = \"10\" }}\n"
        ),
    )?;
    Ok(Opponent {
        name: "mcp-hub 0.3 (crate)",
        daemon: Vec::new(),
        front: Front::Stdio(vec![hub, configuration]),
        tool: "echo.echo_0",
        fewer: 1,
        port: None,
    })
}

fn rmcp_mux() -> Installed {
    // Without the icon in the tray, which needs a desktop to build.
    let options = ["--no-default-features", "--features", "cli"];
    let multiplexer = cargo_install("rmcp-mux", "0.4.0", &options)?;
    let proxy = format!("{multiplexer}-proxy");
    let socket = socket().to_string_lossy().into_owned();
    let daemon = [
        multiplexer,
        "--socket".into(),
        socket.clone(),
        "--cmd".into(),
        program("echo-server"),
    ];
    Ok(Opponent {
        name: "rmcp-mux 0.4 (crate)",
        daemon: daemon.into(),
        front: Front::Stdio(vec![proxy, "--socket".into(), socket]),
        tool: "echo_0",
        fewer: 1,
        port: None,
    })
}

fn mcp_proxy() -> Installed {
    let proxy = cargo_install("mcp-proxy", "0.6.0", &[])?;
    let command = Value::from(program("echo-server"));
    // The port is in the file, so it is chosen here.
    let port = free_port()?;
    let configuration = written(
        "mcp-proxy.toml",
        &format!(
            "[proxy]\nname = \"bench\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n[[backends]]\nname = \"echo\"\ntransport = \"stdio\"\ncommand = {command}\nenv = {{ ECHO_ERA = \"stateful\", ECHO_TOOLS = \"10\" }}\n"
        ),
    )?;
    Ok(Opponent {
        name: "mcp-proxy 0.6 (crate)",
        daemon: [proxy, "--config".into(), configuration].into(),
        front: Front::Http("/"),
        tool: "echo/echo_0",
        fewer: 1,
        port: Some(port),
    })
}

fn python_mcp_proxy() -> Installed {
    let folder = pip_install("mcp-proxy", "mcp-proxy==0.13.0")?;
    let proxy = folder.join("bin/mcp-proxy").to_string_lossy().into_owned();
    let daemon = [
        &proxy,
        "--pass-environment",
        "--port",
        PORT,
        &program("echo-server"),
    ];
    Ok(Opponent {
        name: "mcp-proxy 0.13 (PyPI)",
        daemon: daemon.map(str::to_owned).into(),
        front: Front::Http("/mcp"),
        tool: "echo_0",
        fewer: 20,
        port: None,
    })
}

fn fastmcp() -> Installed {
    let folder = pip_install("fastmcp", "fastmcp>=4,<5")?;
    let fastmcp = folder.join("bin/fastmcp").to_string_lossy().into_owned();
    let servers = json!({"mcpServers": {"echo": {
        "command": program("echo-server"),
        "env": {"ECHO_ERA": "stateful", "ECHO_TOOLS": "10"},
    }}});
    let configuration = written("fastmcp.json", &servers.to_string())?;
    let command = [&fastmcp, "run", &configuration, "--no-banner"];
    Ok(Opponent {
        name: "fastmcp 4 (PyPI)",
        daemon: Vec::new(),
        front: Front::Stdio(command.map(str::to_owned).into()),
        tool: "echo_0",
        fewer: 20,
        port: None,
    })
}

fn supergateway() -> Installed {
    let folder = folder().join("npm");
    let script = folder.join("node_modules/supergateway/dist/index.js");
    if !script.exists() {
        let prefix = folder.to_string_lossy();
        run(&[
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--prefix",
            &prefix,
            "supergateway@4.0.0",
        ])?;
    }
    let daemon = [
        "node",
        &script.to_string_lossy(),
        "--stdio",
        &program("echo-server"),
        "--outputTransport",
        "streamableHttp",
        "--stateful",
        "--logLevel",
        "none",
        "--port",
        PORT,
    ];
    Ok(Opponent {
        name: "supergateway 4 (npm)",
        daemon: daemon.map(str::to_owned).into(),
        front: Front::Http("/mcp"),
        tool: "echo_0",
        fewer: 20,
        port: None,
    })
}

fn folder() -> PathBuf {
    target().join("bench-gateway-opponents")
}

/// The socket of a daemon that has one. Short, since systems limit its length.
fn socket() -> PathBuf {
    std::env::temp_dir().join(format!("switchboard-bench-{}.sock", std::process::id()))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok(address.port())
}

fn wait_until(name: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > START_DEADLINE {
            return Err(format!("{name} does not listen"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Writes a file for an opponent; gives its path.
fn written(name: &str, text: &str) -> Result<String, String> {
    let file = folder().join(name);
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file.to_string_lossy().into_owned())
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

/// Installs a Python package into an environment of its own; gives its folder.
fn pip_install(name: &str, wanted: &str) -> Result<PathBuf, String> {
    let environment = folder().join("pypi").join(name);
    let program = environment.join("bin").join(name);
    if !program.exists() {
        let path = environment.to_string_lossy();
        run(&["python3", "-m", "venv", "--clear", &path])?;
        let pip = format!("{path}/bin/pip");
        run(&[
            &pip,
            "install",
            "--quiet",
            "--disable-pip-version-check",
            wanted,
        ])?;
    }
    Ok(environment)
}
