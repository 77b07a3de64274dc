//! `tokens`, and the gateway over HTTP that accepts them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::servers::machine;
use crate::support::{TestContext, eventually};

/// A running gateway.
pub(crate) struct HttpGateway {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl HttpGateway {
    pub(crate) fn start(context: &TestContext, more: &[&str]) -> Self {
        let mut command = context.process();
        command
            .args(["gateway", "--http", "127.0.0.1:0"])
            .args(more);
        Self::of(command)
    }

    pub(crate) fn of(mut command: std::process::Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, url)) = line.split_once("serving the gateway at ") {
                let (_, rest) = url.split_once("://").unwrap();
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        // Read on, or the gateway could not write.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Sends a request and returns the connection, to read the answer from.
    pub(crate) fn send(&self, method: &str, token: &str, headers: &str, body: &Value) -> TcpStream {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let mut socket = TcpStream::connect(&self.address).unwrap();
        write!(
            socket,
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        socket
    }

    pub(crate) fn post(&self, token: &str, headers: &str, body: &Value) -> String {
        let mut answer = String::new();
        let mut socket = self.send("POST", token, headers, body);
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Performs a handshake and returns the header of the session.
    pub(crate) fn session(&self, token: &str) -> String {
        let answer = self.post(token, "", &greeting());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let name = answer
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        format!("Mcp-Session-Id: {}\r\n", name.unwrap())
    }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn greeting() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }})
}

fn created(context: &TestContext, line: &str) -> String {
    let run = context.line(line);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout.trim().to_owned()
}

#[test]
fn a_token_is_shown_once_and_stored_as_a_hash() {
    let context = TestContext::new();
    let token = created(&context, "tokens create laptop");
    assert_eq!(token.len(), 64, "{token}");
    let object = context.json("tokens create ci --profile work --expires 30d --json");
    let secret = object["token"].as_str().unwrap();
    assert_eq!(
        (&object["name"], &object["profile"]),
        (&json!("ci"), &json!("work"))
    );
    let listed = context.json("tokens list --json");
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["ci", "laptop"]);
    assert_eq!(listed[0]["expires"], object["expires"]);
    assert_eq!(
        (&listed[1]["expires"], &listed[1]["last_used"]),
        (&Value::Null, &Value::Null)
    );
    let table = context.line("tokens list");
    let all = format!("{}{}{listed}", table.stdout, table.stderr);
    // Not in any file either, not even in part.
    for folder in ["state", "config"] {
        let files = std::fs::read_dir(context.path(folder))
            .into_iter()
            .flatten();
        for file in files
            .filter_map(Result::ok)
            .filter(|file| file.path().is_file())
        {
            let bytes = std::fs::read(file.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(secret) && !text.contains(&token), "{file:?}");
        }
    }
    assert!(!all.contains(secret) && !all.contains(&token), "{all}");

    let again = context.line("tokens create ci");
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("a token named `ci` already exists"),
        "{}",
        again.stderr
    );
    for (line, code) in [
        ("tokens create a/b", 2),
        ("tokens create default", 2),
        ("tokens create x --expires soon", 2),
        ("tokens create x --expires 0s", 2),
        ("tokens revoke unknown", 1),
        ("tokens revoke ci", 0),
        ("tokens revoke ci", 1),
    ] {
        assert_eq!(context.line(line).code, code, "{line}");
    }
    let audit = context.json("audit --json");
    let changes: Vec<_> = audit
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            format!(
                "{} {}",
                entry["event"].as_str().unwrap(),
                entry["about"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        changes,
        ["create-token laptop", "create-token ci", "revoke-token ci"]
    );
}

#[test]
fn calls_are_attributed_to_their_token() {
    let context = machine(&[("alpha", "")]);
    let gateway = HttpGateway::start(&context, &[]);
    let token = created(&context, "tokens create ci");
    let session = gateway.session(&token);
    let call = |tool: &str, arguments: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        gateway.post(&token, &session, &body)
    };
    let answer = call("mcp__alpha__echo", json!({"text": "hello"}));
    assert!(answer.contains("hello"), "{answer}");
    call("mcp__alpha__echo", json!({"text": 17}));
    call("mcp__alpha__unknown", json!({}));
    eventually("the calls are in the audit log", || {
        context
            .json("audit --client token:ci --json")
            .as_array()
            .unwrap()
            .len()
            == 3
    });
    let entries = context.json("audit --client token:ci --json");
    for entry in entries.as_array().unwrap() {
        assert_eq!(
            (&entry["client"], &entry["by"]),
            (&json!("token:ci"), &json!("gateway"))
        );
    }
    assert_eq!(context.json("audit --client token:other --json"), json!([]));
    assert!(context.line("audit").stdout.contains("token:ci"));
    eventually("the use of the token is recorded", || {
        context.json("tokens list --json")[0]["last_used"].is_string()
            || context.json("tokens list --json")[1]["last_used"].is_string()
    });
}

#[test]
fn a_revoked_token_ends_its_streams_in_a_running_gateway() {
    let context = machine(&[("alpha", "")]);
    let gateway = HttpGateway::start(&context, &[]);
    let token = created(&context, "tokens create ci");
    let session = gateway.session(&token);
    let mut stream = gateway.send("GET", &token, &session, &Value::Null);
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert_eq!(context.line("tokens revoke ci").code, 0);
    // Ends because the token was revoked; the gateway goes on.
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    let answer = gateway.post(&token, "", &greeting());
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");

    // The token in the file is the token `default`.
    let default = context.read("state/gateway-token");
    gateway.session(default.trim());
    assert_eq!(context.json("tokens list --json")[0]["name"], "default");
    assert_eq!(context.line("tokens revoke default").code, 0);
    eventually("the token is refused", || {
        gateway
            .post(default.trim(), "", &greeting())
            .starts_with("HTTP/1.1 401 ")
    });
}

#[test]
fn address_and_token_files_come_from_the_environment() {
    let context = machine(&[("alpha", "")]);
    let file = context.path("project/ci-token");
    let mut command = context.process();
    command
        .arg("gateway")
        .env("SWITCHBOARD_HTTP", "127.0.0.1:0")
        .env("SWITCHBOARD_TOKEN_FILE", format!("ci={}", file.display()));
    let gateway = HttpGateway::of(command);
    let token = std::fs::read_to_string(&file).unwrap();
    gateway.session(token.trim());
    assert!(!context.exists("state/gateway-token"));
    let run = context.line("gateway --allow-remote");
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("--allow-remote needs --http"),
        "{}",
        run.stderr
    );
}
