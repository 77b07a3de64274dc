//! The daemon and the ways to it: `up`, `down`, `connect`, and the gateway for one client.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::servers::{has_exited, log, machine};
use crate::support::{TestContext, eventually};

/// A client that has started the program as its server.
pub(crate) struct Client {
    child: Child,
    pub(crate) input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    pub(crate) fn start(context: &TestContext, arguments: &[&str]) -> Self {
        let mut child = context
            .process()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut client = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 1,
        };
        let hello = client.request("initialize", &initialize(0)["params"]);
        assert_eq!(hello["result"]["serverInfo"]["name"], "switchboard");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn next_message(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "no answer");
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next_message();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn send_echo(&mut self, text: &str) -> u64 {
        let params = json!({"name": "mcp__alpha__echo", "arguments": {"text": text}});
        self.send("tools/call", &params)
    }

    pub(crate) fn echo(&mut self, text: &str) -> Value {
        let id = self.send_echo(text);
        self.answer(id)
    }

    pub(crate) fn end(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

/// The process of the running daemon.
fn daemon(context: &TestContext) -> Pid {
    let answer = hello(context, &json!({"version": "0", "wants": "status"}));
    let process = i32::try_from(answer["process"].as_i64().unwrap()).unwrap();
    Pid::from_raw(process).unwrap()
}

/// The socket of the running daemon.
fn socket(context: &TestContext) -> UnixStream {
    let folders = std::fs::read_dir(context.path("state")).unwrap();
    let socket = folders
        .filter_map(Result::ok)
        .map(|folder| folder.path().join("socket"))
        .find(|socket| socket.exists());
    UnixStream::connect(socket.unwrap()).unwrap()
}

/// The first line of the daemon to a client that begins like this and says no more.
pub(crate) fn hello(context: &TestContext, hello: &Value) -> Value {
    let mut socket = socket(context);
    writeln!(socket, "{hello}").unwrap();
    let mut answer = String::new();
    BufReader::new(socket).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

pub(crate) fn initialize(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }})
}

/// How often a server was started.
pub(crate) fn starts(context: &TestContext, server: &str) -> usize {
    let text = std::fs::read_to_string(log(context, server)).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("pid ")).count()
}

#[test]
fn a_gateway_serves_one_client() {
    let context = machine(&[("alpha", ""), ("beta", "")]);
    let mut client = Client::start(&context, &["gateway"]);
    let tools = client.request("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert!(
        names.contains(&"mcp__alpha__echo") && names.contains(&"mcp__beta__echo"),
        "{names:?}"
    );
    let answer = client.echo("hello");
    assert_eq!(answer["result"]["content"][0]["text"], "hello");
    assert_eq!(client.end(), Some(0));
    eventually("the end of the servers", || {
        has_exited(&context, "alpha") && has_exited(&context, "beta")
    });
    let audit = context.json("audit --json");
    let call = &audit[0];
    assert_eq!(
        (&call["by"], &call["server"]),
        (&json!("gateway"), &json!("alpha"))
    );
}

#[test]
fn a_gateway_applies_permission_rules() {
    let context = machine(&[("alpha", "")]);
    let mut file = context.read("config/mcp.toml");
    file.push_str("\n[[permissions.rules]]\ntool = \"mcp__alpha__echo\"\naction = \"deny\"\n");
    context.write("config/mcp.toml", file);
    let mut client = Client::start(&context, &["gateway"]);
    let answer = client.echo("hello");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("permission denied"), "{text}");
    client.end();
}

#[test]
fn clients_that_come_at_once_share_one_daemon_and_its_servers() {
    let context = machine(&[("alpha", ""), ("beta", "")]);
    std::thread::scope(|scope| {
        let clients = (0..8).map(|number| {
            let context = &context;
            scope.spawn(move || {
                let mut client = Client::start(context, &["connect"]);
                let text = format!("from {number}");
                let answer = client.echo(&text);
                assert_eq!(answer["result"]["content"][0]["text"], text);
                client
            })
        });
        let clients: Vec<_> = clients.collect();
        let clients: Vec<Client> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();
        // No client waits for it.
        eventually("the start of beta", || starts(&context, "beta") > 0);
        assert_eq!(
            (starts(&context, "alpha"), starts(&context, "beta")),
            (1, 1)
        );
        for client in clients {
            assert_eq!(client.end(), Some(0));
        }
    });
    // The servers stay for the next client.
    assert!(!has_exited(&context, "alpha"));
    assert_eq!(context.line("down").code, 0);
    eventually("the end of the servers", || {
        has_exited(&context, "alpha") && has_exited(&context, "beta")
    });
}

#[test]
fn a_daemon_that_is_killed_is_replaced() {
    let context = machine(&[("alpha", "")]);
    let mut client = Client::start(&context, &["connect"]);
    assert_eq!(client.echo("one")["result"]["content"][0]["text"], "one");
    let waiting = client.send(
        "tools/call",
        &json!({"name": "mcp__alpha__wait", "arguments": {}}),
    );
    // The call has reached the server.
    eventually("the call", || {
        let text = std::fs::read_to_string(log(&context, "alpha")).unwrap();
        text.contains("wait")
    });
    kill_process(daemon(&context), Signal::KILL).unwrap();
    let answer = client.answer(waiting);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("may or may not have taken effect"),
        "{message}"
    );
    eventually("the end of the server", || has_exited(&context, "alpha"));
    assert_eq!(client.echo("two")["result"]["content"][0]["text"], "two");
    assert_eq!(client.end(), Some(0));
    context.line("down");
}

#[test]
fn there_is_one_daemon() {
    let context = machine(&[("alpha", "")]);
    let up = context.json("up --detach --http 0 --json");
    assert_eq!(up["pid"], daemon(&context).as_raw_nonzero().get());
    assert!(
        up["http"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:"),
        "{up}"
    );
    for line in ["up", "up --detach"] {
        let again = context.line(line);
        assert_eq!(again.code, 1, "{}", again.stderr);
        assert!(again.stderr.contains("already running"), "{}", again.stderr);
    }
    let down = context.line("down");
    assert_eq!(down.code, 0, "{}", down.stderr);
    let again = context.line("down");
    assert!(
        again.stderr.contains("no daemon is running"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_socket_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let context = machine(&[("alpha", "")]);
    let up = context.json("up --detach --http 0 --json");
    let socket = std::path::Path::new(up["socket"].as_str().unwrap());
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(socket), mode(socket.parent().unwrap())),
        (0o600, 0o700)
    );
    // A line that is not a greeting ends the connection, and the daemon goes on.
    let mut stranger = UnixStream::connect(socket).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stranger.read_to_string(&mut answer).unwrap_or_default();
    assert_eq!(answer, "");
    daemon(&context);
    assert_eq!(context.line("down").code, 0);
}

#[test]
fn a_client_that_has_ended_still_gets_its_answers() {
    let context = machine(&[("alpha", "")]);
    let mut client = Client::start(&context, &["connect"]);
    let id = client.send_echo("late");
    client.input = None;
    let answer = client.answer(id);
    assert_eq!(answer["result"]["content"][0]["text"], "late");
    assert_eq!(client.end(), Some(0));
    context.line("down");
}

#[test]
fn a_client_that_does_not_read_can_still_send() {
    let context = machine(&[("alpha", "")]);
    let mut client = Client::start(&context, &["connect"]);
    // More than the pipes on the way hold, so that answers wait for the client.
    let text = "x".repeat(200_000);
    let mut waiting: BTreeSet<u64> = (0..15).map(|_| client.send_echo(&text)).collect();
    while !waiting.is_empty() {
        let answer = client.next_message();
        if let Some(id) = answer["id"].as_u64() {
            assert_eq!(answer["result"]["content"][0]["text"], *text);
            assert!(waiting.remove(&id), "{id} twice");
        }
    }
    assert_eq!(client.end(), Some(0));
    context.line("down");
}

#[test]
fn a_message_that_is_too_long_is_answered() {
    let context = machine(&[("alpha", "")]);
    let mut client = Client::start(&context, &["connect"]);
    let id = client.send("tools/call", &json!({"name": "x".repeat(17 * 1024 * 1024)}));
    let answer = client.answer(id);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(client.echo("one")["result"]["content"][0]["text"], "one");
    assert_eq!(client.end(), Some(0));
    context.line("down");
}

#[test]
fn sixty_four_bridges_start_one_daemon() {
    let context = machine(&[("alpha", "")]);
    let children: Vec<Child> = (0..64)
        .map(|_| {
            let mut command = context.process();
            command.arg("connect");
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            writeln!(input, "{}", initialize(1)).unwrap();
            child.stdin = Some(input);
            child
        })
        .collect();
    let mut held = Vec::new();
    for mut child in children {
        let mut answer = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut answer).unwrap();
        assert!(answer.contains("serverInfo"), "{answer}");
        held.push((child, output));
    }
    let process = daemon(&context);
    let status = hello(&context, &json!({"version": "0", "wants": "status"}));
    let clients = status["status"]["clients"].as_array().unwrap();
    assert_eq!(clients.len(), 64);
    for (mut child, _output) in held {
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(daemon(&context), process);
    assert_eq!(context.line("down").code, 0);
}

#[test]
fn detaching_at_once_starts_one_daemon() {
    let context = machine(&[("alpha", "")]);
    let children: Vec<Child> = (0..6)
        .map(|_| {
            let mut command = context.process();
            command.args(["up", "--detach", "--http", "0"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let codes: Vec<Option<i32>> = children
        .into_iter()
        .map(|mut child| child.wait().unwrap().code())
        .collect();
    let done = codes.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(done, 1, "{codes:?}");
    assert_eq!(context.line("down").code, 0);
}

#[test]
fn an_unused_daemon_gives_way_to_a_newer_version() {
    let context = machine(&[("alpha", "")]);
    let project = context.path("project");
    let newer = json!({"version": "99.0.0", "wants": {"gateway": {"folder": project}}});
    let mut client = Client::start(&context, &["connect"]);
    let process = daemon(&context);
    // It is in use.
    let welcome = hello(&context, &newer);
    assert_eq!(welcome["gives_way"], Value::Null, "{welcome}");
    assert_eq!(client.echo("one")["result"]["content"][0]["text"], "one");
    client.end();
    eventually("the daemon to give way", || {
        hello(&context, &newer)["gives_way"] == true
    });
    eventually("the end of the daemon", || {
        test_kill_process(process).is_err()
    });
    eventually("the end of the server", || has_exited(&context, "alpha"));
    // An older client uses a newer daemon.
    let mut client = Client::start(&context, &["connect"]);
    let older = json!({"version": "0.0.1", "wants": {"gateway": {"folder": project}}});
    assert_eq!(hello(&context, &older)["gives_way"], Value::Null);
    assert_eq!(client.echo("two")["result"]["content"][0]["text"], "two");
    client.end();
    context.line("down");
}

#[test]
fn a_daemon_that_is_terminated_ends_in_order_and_is_started_when_needed() {
    let context = machine(&[("alpha", "")]);
    let mut client = Client::start(&context, &["connect"]);
    assert_eq!(client.echo("one")["result"]["content"][0]["text"], "one");
    let process = daemon(&context);
    kill_process(process, Signal::TERM).unwrap();
    eventually("the end of the server", || has_exited(&context, "alpha"));
    let audit = context.json("audit --json");
    assert_eq!(audit[0]["server"], "alpha", "{audit}");
    assert_eq!(context.line("down").stderr, "no daemon is running\n");
    // The bridge starts another one for the next call, not before.
    assert_eq!(client.echo("two")["result"]["content"][0]["text"], "two");
    assert_eq!(client.end(), Some(0));
    context.line("down");
}

#[test]
fn commands_use_the_servers_of_a_running_daemon() {
    let context = machine(&[("alpha", "")]);
    let commands = [
        "tools --json",
        "call alpha/echo text=hello",
        "call alpha/fail",
        "call alpha/reject --json",
        "search echo",
    ];
    let alone: Vec<(i32, String)> = commands
        .iter()
        .map(|line| {
            let run = context.line(line);
            (run.code, run.stdout)
        })
        .collect();
    let before = starts(&context, "alpha");
    context.json("up --detach --http 0 --json");
    eventually("the server", || starts(&context, "alpha") == before + 1);
    for (line, expected) in commands.iter().zip(&alone) {
        let run = context.line(line);
        assert_eq!(
            (run.code, &run.stdout),
            (expected.0, &expected.1),
            "{line}\n{}",
            run.stderr
        );
    }
    assert_eq!(starts(&context, "alpha"), before + 1);
    let status = context.json("status --json");
    assert_eq!(status[0]["state"], "connected", "{status}");
    assert!(status[0]["uptime"].is_u64(), "{status}");
    // Without the daemon, or with what it does not know, a server is started.
    assert_eq!(context.line("call alpha/echo text=x --no-daemon").code, 0);
    assert_eq!(starts(&context, "alpha"), before + 2);
    context.line("down");
}

#[test]
fn the_status_names_the_clients() {
    let context = machine(&[("alpha", "")]);
    let mut client = Client::start(&context, &["connect"]);
    client.echo("one");
    let status = hello(&context, &json!({"version": "0", "wants": "status"}));
    let known = &status["status"]["clients"][0];
    assert_eq!(known["name"], "test", "{status}");
    assert_eq!(known["pid"], client.child.id());
    assert_eq!(known["folder"], context.path("project").to_str().unwrap());
    assert_eq!(status["status"]["calls"], 1);
    client.end();
    context.line("down");
}
