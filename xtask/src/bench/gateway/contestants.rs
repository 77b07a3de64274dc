//! Our own front ends, each with a home of its own: configuration, state, project.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::TOOL;
use crate::bench::{pinned, program, target};

/// The length of a large result.
pub(super) const MEBIBYTE: &str = "1048576";

/// A home for the program, with servers in its configuration.
pub(super) struct Home {
    folder: PathBuf,
}

impl Home {
    /// A home with an `echo-server` of ten tools under each of these names.
    pub(super) fn prepare(name: &str, servers: &[&str]) -> Result<Self, String> {
        Self::with(name, servers, "ECHO_TOOLS = \"10\"")
    }

    /// A home with one server whose results have one mebibyte.
    pub(super) fn with_large_results(name: &str) -> Result<Self, String> {
        Self::with(name, &["echo"], &format!("ECHO_BYTES = \"{MEBIBYTE}\""))
    }

    fn with(name: &str, servers: &[&str], environment: &str) -> Result<Self, String> {
        let folder = target().join(name);
        let command = Value::from(program("echo-server"));
        let entries = servers.iter().map(|server| {
            format!(
                "[mcp_servers.{server}]\ncommand = {command}\nenv = {{ ECHO_ERA = \"stateful\", {environment} }}\n"
            )
        });
        let configuration: String = entries.collect();
        let prepared = (|| {
            for part in ["config", "state", "project"] {
                let part = folder.join(part);
                if part.exists() {
                    fs::remove_dir_all(&part)?;
                }
                fs::create_dir_all(&part)?;
            }
            fs::write(folder.join("config/mcp.toml"), configuration)
        })();
        prepared.map_err(|error: std::io::Error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    fn environment(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("HOME", self.folder.clone()),
            ("SWITCHBOARD_CONFIG_DIR", self.folder.join("config")),
            ("SWITCHBOARD_STATE_DIR", self.folder.join("state")),
            ("XDG_RUNTIME_DIR", self.folder.join("state")),
        ]
    }

    /// A command of the program as a contestant over standard input and output.
    pub(super) fn stdio(&self, name: &str, arguments: &[&str]) -> Value {
        let mut command = vec![program("switchboard")];
        command.extend(arguments.iter().map(ToString::to_string));
        let environment: serde_json::Map<String, Value> = self
            .environment()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_string_lossy().into()))
            .collect();
        json!({
            "name": name,
            "tool": TOOL,
            "command": command,
            "environment": environment,
            "folder": self.folder.join("project"),
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let program = program("switchboard");
        let mut line = vec![program.as_str()];
        line.extend(arguments);
        let mut command = pinned(&line);
        command
            .current_dir(self.folder.join("project"))
            .envs(self.environment())
            .stdin(Stdio::null());
        command
    }

    /// Starts the daemon.
    pub(super) fn daemon(&self) -> Result<Daemon<'_>, String> {
        run_quietly(self.command(&["up", "--detach", "--http", "127.0.0.1:0"]))?;
        Ok(Daemon(self))
    }
}

/// A running daemon, ended when this is dropped.
pub(super) struct Daemon<'h>(&'h Home);

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if let Err(error) = run_quietly(self.0.command(&["down"])) {
            println!("the daemon did not end: {error}");
        }
    }
}

fn run_quietly(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed: {}\n{text}", output.status))
}

/// `switchboard gateway --http`, ended when this is dropped.
pub(super) struct HttpGateway {
    child: Child,
    address: String,
    token: String,
    first_tool: String,
}

impl HttpGateway {
    pub(super) fn start(home: &Home) -> Result<Self, String> {
        let token_file = home.folder.join("state/bench-token");
        let token_path = token_file.to_string_lossy();
        let mut command = home.command(&[
            "gateway",
            "--http",
            "127.0.0.1:0",
            "--token-file",
            &token_path,
        ]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        let stderr = child.stderr.take().ok_or("no standard error")?;
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let (_, address) = line.split_once("http://")?;
            Some(address.split('/').next()?.to_owned())
        });
        // It must not be blocked by messages that are not read.
        std::thread::spawn(move || lines.for_each(drop));
        let token = fs::read_to_string(&token_file).unwrap_or_default();
        let configuration = fs::read_to_string(home.folder.join("config/mcp.toml"));
        let has_echo = configuration.is_ok_and(|text| text.contains("[mcp_servers.echo]"));
        let started = Self {
            child,
            address: address.clone().unwrap_or_default(),
            token: token.trim().to_owned(),
            first_tool: if has_echo {
                TOOL.to_owned()
            } else {
                "mcp__echo0__echo_0".to_owned()
            },
        };
        if address.is_none() {
            return Err("the gateway did not print its address".to_owned());
        }
        Ok(started)
    }

    /// The gateway as a contestant, used in one era.
    pub(super) fn contestant(&self, era: &str) -> Value {
        json!({
            "name": era,
            "tool": self.first_tool,
            "address": self.address,
            "path": "/mcp",
            "token": self.token,
            "era": era,
        })
    }

    /// Resident memory of the process, in bytes.
    pub(super) fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        kibibytes.unwrap_or(f64::NAN) * 1024.0
    }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
