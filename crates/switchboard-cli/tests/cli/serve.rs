//! `serve`, started as other agents start it, with a scripted model.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_test::model::{ScriptedModel, Turn};
use tokio::runtime::Runtime;

use crate::servers::{configure, has_exited, received};
use crate::support::{TestContext, eventually};

/// Timeout for each expected line.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with a model.
pub(crate) struct Machine {
    pub(crate) context: TestContext,
    model: ScriptedModel,
    /// Runs the model.
    _runtime: Runtime,
}

impl Machine {
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let model = runtime.block_on(ScriptedModel::start(turns)).unwrap();
        Self {
            context: TestContext::new(),
            model,
            _runtime: runtime,
        }
    }

    pub(crate) fn serve(&self, arguments: &[&str]) -> Served {
        let template = self.context.command();
        let mut command = Command::new(template.get_program());
        command
            .env_clear()
            .current_dir(self.context.path("project"));
        for (name, value) in template.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        let mut child = command
            .env("ANTHROPIC_API_KEY", "canary-key")
            .env("ANTHROPIC_BASE_URL", self.model.anthropic_url())
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Served {
            input: child.stdin.take(),
            output: lines(child.stdout.take().unwrap()),
            notes: lines(child.stderr.take().unwrap()),
            child,
        }
    }
}

/// The running program.
pub(crate) struct Served {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    notes: Receiver<String>,
}

impl Served {
    fn ask(&mut self, message: &Value) -> Value {
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
        loop {
            let line = self.output.recv_timeout(PATIENCE).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == message["id"] {
                return answer;
            }
        }
    }

    pub(crate) fn greet(&mut self) {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        assert_eq!(
            self.ask(&hello)["result"]["serverInfo"]["name"],
            "switchboard"
        );
    }

    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.ask(&call)["result"]["structuredContent"].clone()
    }

    /// The next line of standard error that contains this.
    pub(crate) fn note_with(&self, text: &str) -> String {
        loop {
            let note = self.notes.recv_timeout(PATIENCE).unwrap();
            if note.contains(text) {
                return note;
            }
        }
    }

    /// All lines of standard error up to the next one that contains this.
    pub(crate) fn notes_until(&self, text: &str) -> String {
        let mut notes = String::new();
        while !notes.contains(text) {
            notes.push_str(&self.notes.recv_timeout(PATIENCE).unwrap());
            notes.push('\n');
        }
        notes
    }

    /// Closes its input, and returns the exit code.
    pub(crate) fn leave(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

#[test]
fn a_session_continues_in_another_process() {
    let machine = Machine::new(vec![Turn::text("good morning"), Turn::text("good evening")]);
    let mut served = machine.serve(&[]);
    served.greet();
    let first = served.call("switchboard", &json!({"prompt": "hello"}));
    assert_eq!(first["response"], "good morning");
    assert_eq!(served.leave(), Some(0));

    let mut served = machine.serve(&["--stdio"]);
    served.greet();
    let reply = json!({"session_id": first["session_id"], "message": "and now?"});
    let second = served.call("switchboard-reply", &reply);
    let expected = json!({"session_id": first["session_id"], "response": "good evening"});
    assert_eq!(second, expected);
    assert_eq!(served.leave(), Some(0));
    assert_eq!(machine.model.requests().len(), 2);
}

#[test]
fn an_edited_file_changes_the_servers_while_it_serves() {
    let machine = Machine::new(vec![Turn::text("good morning"), Turn::text("good evening")]);
    let context = &machine.context;
    configure(context, &[("stays", ""), ("goes", "")]);
    let mut served = machine.serve(&[]);
    served.greet();
    served.call("switchboard", &json!({"prompt": "hello"}));
    let before = received(context, "stays");

    configure(context, &[("stays", ""), ("comes", "")]);
    let news = served.note_with("configuration changed");
    assert!(news.ends_with("goes is gone, comes is new"), "{news}");
    eventually("what was waited for", || has_exited(context, "goes"));
    eventually("what was waited for", || {
        received(context, "comes")
            .iter()
            .any(|line| line.contains("tools/list"))
    });

    // An unfinished edit stops no server.
    context.write("config/mcp.toml", "[mcp_servers.stays");
    let news = served.note_with("keeping the previous configuration");
    assert!(news.contains("mcp.toml:1:"), "{news}");
    configure(context, &[("stays", ""), ("comes", ";env = { A = \"1\" }")]);
    let news = served.note_with("configuration changed");
    assert!(news.ends_with("changed: comes is restarted"), "{news}");
    let starts = || {
        received(context, "comes")
            .iter()
            .filter(|line| line.contains("tools/list"))
            .count()
    };
    eventually("what was waited for", || starts() == 2);

    // An unchanged server is not disturbed.
    assert_eq!(received(context, "stays"), before);
    assert!(!has_exited(context, "stays"));
    assert_eq!(served.leave(), Some(0));
}

#[test]
fn a_rule_that_is_deleted_is_revoked_while_it_serves() {
    let command = |id: &str| Turn::new().call(id, "Bash", json!({"command": "pwd -P"}));
    let machine = Machine::new(vec![
        command("call_1"),
        Turn::text("first"),
        command("call_2"),
        Turn::text("second"),
    ]);
    let context = &machine.context;
    let rule = "[[permissions.rules]]\ntool = 'Bash'\naction = 'allow'\ncommand = 'pwd'\n";
    context.write("config/mcp.toml", rule);
    let mut served = machine.serve(&[]);
    served.greet();
    let result = |request: usize| {
        let requests = machine.model.requests();
        let messages = requests[request].body["messages"].as_array().unwrap();
        messages.last().unwrap().to_string()
    };
    served.call("switchboard", &json!({"prompt": "where?"}));
    let project = context.path("project").canonicalize().unwrap();
    let text = result(1);
    assert!(text.contains(project.to_str().unwrap()), "{text}");

    context.write("config/mcp.toml", "");
    let news = served.note_with("configuration changed");
    assert!(news.ends_with("permission rules"), "{news}");
    served.call("switchboard", &json!({"prompt": "and now?"}));
    let text = result(3);
    assert!(
        text.contains("it needs approval, and no prompt is available"),
        "{text}"
    );
    assert_eq!(served.leave(), Some(0));
}

#[test]
fn messages_that_are_not_json_rpc_2_are_refused() {
    let machine = Machine::new(Vec::new());
    let mut served = machine.serve(&[]);
    served.greet();
    for message in [
        json!({"jsonrpc": "2.0", "id": 22}),
        json!({"id": 23, "method": "ping"}),
        json!({"jsonrpc": "1.0", "id": 24, "method": "ping"}),
    ] {
        let answer = served.ask(&message);
        assert_eq!(answer["error"]["code"], -32600, "{message}: {answer}");
    }
    let ping = json!({"jsonrpc": "2.0", "id": 25, "method": "ping"});
    assert_eq!(served.ask(&ping)["result"], json!({}));
    assert_eq!(served.leave(), Some(0));
}

#[test]
fn a_long_call_sends_progress_to_the_client() {
    let waiting = Turn::new().call("call_1", "mcp__shop__wait", json!({}));
    let machine = Machine::new(vec![waiting, Turn::text("It hangs.")]);
    configure(&machine.context, &[("shop", ";tool_timeout_sec = 3")]);
    let file = machine.context.read("config/mcp.toml");
    let more = "[[permissions.rules]]\ntool = \"mcp__shop\"\naction = \"allow\"\n[settings]\nprogress_interval_sec = 0.2\n";
    machine.context.write("config/mcp.toml", file + more);
    let mut served = machine.serve(&[]);
    served.greet();
    let params = json!({"name": "switchboard", "arguments": {"prompt": "wait"}, "_meta": {"progressToken": "p"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    writeln!(served.input.as_ref().unwrap(), "{call}").unwrap();
    let mut alive = 0;
    loop {
        let line = served.output.recv_timeout(PATIENCE).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 1 {
            assert_eq!(
                message["result"]["structuredContent"]["response"],
                "It hangs."
            );
            break;
        }
        let text = message["params"]["message"].as_str().unwrap_or_default();
        let is_alive = text.contains("mcp__shop__wait is still running after");
        if is_alive {
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!(message["params"]["progressToken"], "p");
            alive += 1;
        }
    }
    assert!(alive >= 2, "{alive}");
    assert_eq!(served.leave(), Some(0));
}

#[test]
fn over_http_a_token_lets_clients_in() {
    let machine = Machine::new(Vec::new());
    let served = machine.serve(&["--http", "127.0.0.1:0"]);
    let mut notes = Vec::new();
    let url = loop {
        let note = served.notes.recv_timeout(PATIENCE).unwrap();
        if let Some((_, url)) = note.split_once("serving the agent at ") {
            break url.to_owned();
        }
        notes.push(note);
    };
    let token = machine.context.read("state/serve-token");
    let notes = notes.join("\n");
    assert!(notes.contains("serve-token"), "{notes}");
    assert!(
        !notes.contains(token.trim()),
        "the token must not be printed"
    );
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let post = |token: &str| {
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let mut socket = TcpStream::connect(address).unwrap();
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = post("wrong");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let answer = post(token.trim());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains(r#""name":"switchboard""#), "{answer}");
}

#[test]
fn invalid_options_are_reported() {
    let context = TestContext::new();
    let run = context.line("serve");
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    assert!(run.stderr.contains("no model configured"), "{}", run.stderr);
    let run = context.line("serve --http nowhere");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("\"nowhere\" is not a valid address"),
        "{}",
        run.stderr
    );
    let run = context.line("serve --stdio --http 0");
    assert_eq!(run.code, 2);
    let machine = Machine::new(Vec::new());
    let mut served = machine.serve(&["--http", "0.0.0.0:0"]);
    let mut notes = String::new();
    while let Ok(note) = served.notes.recv_timeout(PATIENCE) {
        notes.push_str(&note);
    }
    assert!(notes.contains("other machines could reach it"), "{notes}");
    assert_eq!(served.child.wait().unwrap().code(), Some(1));
}
