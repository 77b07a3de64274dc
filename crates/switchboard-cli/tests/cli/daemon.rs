//! The daemon and the ways to it: `up`, `down`, `connect`, and the gateway for one client.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::servers::{has_exited, log, machine};
use crate::support::{TestContext, eventually};

/// A client that has started the program as its server.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(context: &TestContext, arguments: &[&str]) -> Self {
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
        let hello = client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "switchboard");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "no answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn echo(&mut self, text: &str) -> Value {
        let params = json!({"name": "mcp__alpha__echo", "arguments": {"text": text}});
        self.request("tools/call", &params)
    }

    fn end(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

/// The process of the running daemon.
fn daemon(context: &TestContext) -> Pid {
    let folders = std::fs::read_dir(context.path("state")).unwrap();
    let socket = folders
        .filter_map(Result::ok)
        .map(|folder| folder.path().join("socket"))
        .find(|socket| socket.exists());
    let mut socket = UnixStream::connect(socket.unwrap()).unwrap();
    socket
        .write_all(b"{\"version\":\"0\",\"wants\":\"status\"}\n")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let process = i32::try_from(answer["process"].as_i64().unwrap()).unwrap();
    Pid::from_raw(process).unwrap()
}

/// How often a server was started.
fn starts(context: &TestContext, server: &str) -> usize {
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
