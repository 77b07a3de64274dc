//! Third-party clients at the gateway: over stdio, over HTTP, and through `connect`.
//!
//! `cargo xtask test` installs them. If one is missing, its test fails; none is skipped. The server is
//! `conformance-server`; `real_clients` of the test crate has the same clients without a gateway.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use switchboard_test::interop::{self, Launch};

use crate::support::TestContext;

/// The way from a client to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    Http,
    Connect,
}

const WAYS: [Way; 3] = [Way::Stdio, Way::Http, Way::Connect];

/// A machine with one server, and a gateway if the way needs one.
struct Served {
    context: TestContext,
    way: Way,
    gateway: Option<Child>,
    url: String,
}

impl Served {
    fn new(way: Way) -> Self {
        let context = TestContext::new();
        let Launch { program, arguments } = interop::own_server().unwrap();
        let command = json!(program.to_string_lossy());
        let entry = format!(
            "[mcp_servers.suite]\ncommand = {command}\nargs = {}\n",
            json!(arguments)
        );
        context.write("config/mcp.toml", entry);
        let mut served = Self {
            context,
            way,
            gateway: None,
            url: String::new(),
        };
        if way == Way::Http {
            let mut gateway = served
                .context
                .process()
                .args(["gateway", "--http", "127.0.0.1:0"])
                .stderr(Stdio::piped())
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(gateway.stderr.take().unwrap()).lines();
            let url = lines.find_map(|line| {
                let line = line.unwrap();
                Some(line.split_once("serving the gateway at ")?.1.to_owned())
            });
            served.url = url.unwrap();
            // The rest must be read, or the gateway blocks once the pipe is full.
            std::thread::spawn(move || lines.for_each(drop));
            served.gateway = Some(gateway);
        }
        served
    }

    /// Where a client finds the gateway, as arguments of our scripts.
    fn target(&self) -> Vec<String> {
        let program = assert_cmd::cargo::cargo_bin("switchboard");
        let program = program.to_string_lossy().into_owned();
        let words: Vec<String> = match self.way {
            Way::Stdio => vec!["stdio".into(), program, "gateway".into()],
            Way::Connect => vec!["stdio".into(), program, "connect".into()],
            Way::Http => {
                let token = self.context.read("state/gateway-token");
                vec!["http".into(), self.url.clone(), token.trim().into()]
            }
        };
        words
    }

    /// Runs a client and returns what it saw.
    fn run(&self, client: &Launch, mode: &[&str]) -> Value {
        // The environment of the machine, for the gateway that the client starts.
        let machine = self.context.process();
        let mut command = Command::new(&client.program);
        command
            .args(&client.arguments)
            .args(mode)
            .args(self.target())
            .env_clear();
        for (name, value) in machine.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        let output = command
            .env("INTEROP_NODE_MODULES", interop::node_modules().unwrap())
            .env("INTEROP_PREFIX", "mcp__suite__")
            .current_dir(self.context.path("project"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let way = self.way;
        let parsed = serde_json::from_str(&text);
        assert!(parsed.is_ok(), "{mode:?} {way:?}:\n{text}\n{stderr}");
        parsed.unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(gateway) = &mut self.gateway {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
        if self.way == Way::Connect {
            self.context.run(&["down"]);
        }
    }
}

/// Compares what every client must see.
fn check(seen: &Value, what: &str) {
    let progress = seen["progress"].as_array().unwrap().iter();
    let progress: Vec<_> = progress.filter_map(Value::as_f64).collect();
    assert_eq!(progress, [0.0, 50.0, 100.0], "{what}: {seen}");
    let asked = seen["asked"].as_str().unwrap();
    assert!(
        asked.starts_with("User response: action=accept"),
        "{what}: {seen}"
    );
    assert!(asked.contains("Who?"), "{what}: {seen}");
    for (key, expected) in [
        ("tools", json!(30)),
        ("text", json!("This is a simple text response for testing.")),
        (
            "resource",
            json!("This is the content of the static text resource."),
        ),
        ("prompt", json!("This is a simple prompt for testing.")),
    ] {
        assert_eq!(seen[key], expected, "{what}: {seen}");
    }
}

/// A script of a client that knows both eras.
fn check_sdk(client: &Launch) {
    for way in WAYS {
        let served = Served::new(way);
        for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
            let seen = served.run(client, &[mode]);
            check(&seen, &format!("{mode} {way:?}"));
            assert_eq!(seen["version"], version, "{mode} {way:?}");
            assert_eq!(seen["cancelled"], true, "{mode} {way:?}");
            assert_eq!(seen["ended"], "all ended", "{mode} {way:?}");
            assert_eq!(seen["order"], json!(["quick", "slow"]), "{mode} {way:?}");
        }
    }
}

#[test]
fn the_typescript_client_uses_the_gateway() {
    check_sdk(&interop::typescript_client().unwrap());
}

#[test]
fn the_python_client_uses_the_gateway() {
    check_sdk(&interop::python_client().unwrap());
}

#[test]
fn the_client_of_fastmcp_uses_the_gateway() {
    let client = interop::fastmcp_client().unwrap();
    for way in WAYS {
        let served = Served::new(way);
        check(&served.run(&client, &[]), &format!("{way:?}"));
    }
}
