//! `chat -p` as used by scripts: every format and failure, with a scripted model.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use switchboard_test::model::{ScriptedModel, Step, Turn};
use tokio::runtime::Runtime;

use crate::servers::PYTHON;
use crate::support::{Run, TestContext, workspace};

/// A machine with a model, and optionally a server named `desk`.
pub(crate) struct Machine {
    pub(crate) context: TestContext,
    pub(crate) model: ScriptedModel,
    /// Runs the model.
    pub(crate) runtime: Runtime,
}

impl Machine {
    /// With only the embedded server.
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let model = runtime.block_on(ScriptedModel::start(turns)).unwrap();
        let context = TestContext::new();
        context.write("project/a.txt", "hello\n");
        Self {
            context,
            model,
            runtime,
        }
    }

    /// With the server `desk`, these additional keys in its entry, and these additional lines in the file.
    pub(crate) fn with_desk(keys: &str, more: &str, turns: Vec<Turn>) -> Self {
        let machine = Self::new(turns);
        let script = workspace().join("crates/switchboard-cli/tests/cli/chat_server.py");
        let entry = format!(
            "[mcp_servers.desk]\ncommand = {:?}\nargs = [{:?}]\n{keys}\n{more}",
            *PYTHON,
            script.display().to_string(),
        );
        machine.context.write("config/mcp.toml", entry);
        machine
    }

    pub(crate) fn command(&self) -> assert_cmd::Command {
        let mut command = self.context.command();
        command
            .env("ANTHROPIC_API_KEY", "canary-key")
            .env("ANTHROPIC_BASE_URL", self.model.anthropic_url());
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&self.command().args(arguments).output().unwrap())
    }

    fn piped(&self, arguments: &[&str], input: &str) -> Run {
        let mut command = self.command();
        Run::of(&command.args(arguments).write_stdin(input).output().unwrap())
    }

    /// The last message of a request, which is the user's.
    pub(crate) fn user_message(&self, request: usize) -> String {
        let requests = self.model.requests();
        let messages = requests[request].body["messages"].as_array().unwrap();
        let content = &messages.last().unwrap()["content"];
        let parts = content.as_array().cloned().unwrap_or_default();
        let texts = parts.iter().filter_map(|part| part["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A model that reads a file and answers with its content.
fn reading() -> Vec<Turn> {
    vec![
        Turn::text("I look.").call(
            "call_1",
            "mcp__workspace__read_file",
            json!({"path": "a.txt"}),
        ),
        Turn::text("It says **hello**."),
    ]
}

fn allowing(tool: &str) -> String {
    format!("[[permissions.rules]]\ntool = \"{tool}\"\naction = \"allow\"\n")
}

#[test]
fn the_text_of_the_answer_is_all_of_the_output() {
    let machine = Machine::new(reading());
    let run = machine.run(&["chat", "-p", "what is in a.txt?"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "It says **hello**.\n"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stderr, "");
    let request = &machine.model.requests()[1].body;
    let result = &request["messages"][2]["content"][0];
    assert_eq!(result["tool_use_id"], "call_1");
    assert!(result["content"].to_string().contains("hello"), "{result}");
}

#[test]
fn json_is_one_document() {
    for flags in [["--output", "json"].as_slice(), &["--json"]] {
        let machine = Machine::new(reading());
        let run = machine.run(&[&["chat", "-p", "what is in a.txt?"], flags].concat());
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        let mut found: Value = serde_json::from_str(&run.stdout).unwrap();
        let id = found["session_id"].take();
        assert!(id.as_str().is_some_and(|id| id.len() > 16), "{id}");
        let elapsed = found["tool_calls"][0]["elapsed_ms"].take();
        assert!(elapsed.is_u64(), "{elapsed}");
        let expected = json!({
            "session_id": null,
            "response": "It says **hello**.",
            "tool_calls": [{
                "id": "call_1",
                "name": "mcp__workspace__read_file",
                "arguments": {"path": "a.txt"},
                "is_error": false,
                "elapsed_ms": null,
            }],
            "usage": {
                "input": 20,
                "cache_read": 0,
                "cache_write": 0,
                "output": 10,
                "cost": {"usd": 0.00014, "as_of": "2026-10-16"},
            },
            "reason": "done",
            "failed_servers": [],
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn stream_json_prints_events_line_by_line() {
    let machine = Machine::new(reading());
    let run = machine.run(&["chat", "-p", "what is in a.txt?", "--output", "stream-json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = lines.collect();
    let mut kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "startup_update",
            "startup_complete",
            "started",
            "text",
            "usage",
            "call_begins",
            "call_ends",
            "text",
            "usage",
            "ended"
        ]
    );
    assert_eq!(events.last().unwrap()["response"], "It says **hello**.");
    for kind in ["call_begins", "call_ends"] {
        let event = events.iter().find(|event| event["type"] == kind).unwrap();
        let named = ["id", "name", "server", "tool"].map(|key| event[key].as_str().unwrap());
        assert_eq!(
            named,
            [
                "call_1",
                "mcp__workspace__read_file",
                "workspace",
                "read_file"
            ]
        );
        assert_eq!(
            event["is_error"],
            if kind == "call_ends" {
                json!(false)
            } else {
                json!(null)
            }
        );
    }
}

#[test]
fn descriptions_are_cut_where_the_settings_say() {
    // "Asks the user where a parcel goes." has 34 characters.
    for (setting, expected) in [
        ("max_description_chars = 20", "Asks the use … [cut]"),
        (
            "max_description_chars = 34",
            "Asks the user where a parcel goes.",
        ),
        ("", "Asks the user where a parcel goes."),
    ] {
        let more = format!("[settings]\n{setting}\n");
        let machine = Machine::with_desk("", &more, vec![Turn::text("hi")]);
        let run = machine.run(&["chat", "-p", "hello"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let request = &machine.model.requests()[0].body;
        let mut tools = request["tools"].as_array().unwrap().iter();
        let ask = tools.find(|tool| tool["name"] == "mcp__desk__ask").unwrap();
        assert_eq!(ask["description"], expected, "{setting}");
    }
}

#[test]
fn piped_input_is_appended_to_the_prompt() {
    let check = |prompt: &str, input: &str, expected: &str| {
        let machine = Machine::new(vec![Turn::text("fine")]);
        let run = machine.piped(&["chat", "-p", prompt], input);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (0, "fine\n"),
            "{}",
            run.stderr
        );
        let user_message = machine.user_message(0);
        assert!(user_message.ends_with(expected), "{user_message}");
    };
    check("review this", "a diff\n", "review this\n\na diff\n");
    check("-", "all of it", "all of it");
    check("alone", " \n", "alone");
}

#[test]
fn invalid_prompts_are_rejected_and_nothing_is_sent() {
    let machine = Machine::new(Vec::new());
    for (arguments, code, expected) in [
        (["chat", "-p", ""].as_slice(), 2, "the prompt is empty"),
        (&["chat", "-p", "-"], 2, "the prompt is empty"),
        (&["chat"], 2, "an interactive chat needs a terminal"),
        (
            &["chat", "--output", "text"],
            2,
            "--json and --output need -p",
        ),
        (
            &["chat", "-p", "x", "--resume", "nobody"],
            1,
            "no such session: \"nobody\"",
        ),
        (
            &["chat", "-p", "x", "--resume", "../x"],
            1,
            "no session `../x`",
        ),
        (
            &["chat", "-p", "x", "--continue"],
            1,
            "no session in this folder yet",
        ),
        (&["chat", "--delete", "nobody"], 1, "no session `nobody`"),
        (
            &["chat", "-p", "see @workspace:file:///nowhere/b.txt"],
            1,
            "cannot be attached, so nothing was sent",
        ),
    ] {
        let run = machine.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (code, ""),
            "{arguments:?}\n{}",
            run.stderr
        );
        assert!(
            run.stderr.contains(expected),
            "{arguments:?}\n{}",
            run.stderr
        );
    }
    assert_eq!(machine.model.requests(), []);
    let binary = machine
        .command()
        .args(["chat", "-p", "x"])
        .write_stdin([0xff, 0xfe])
        .output();
    assert_eq!(Run::of(&binary.unwrap()).code, 2);
}

#[test]
fn without_a_key_the_error_names_the_variables() {
    let context = TestContext::new();
    let run = context.run(&["chat", "-p", "hello"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    for part in [
        "error: no model configured",
        "export ANTHROPIC_API_KEY=",
        "export OPENAI_API_KEY=",
        "export OPENAI_BASE_URL=http://localhost:11434/v1",
    ] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    let run = context
        .command()
        .args(["chat", "-p", "x", "--model", "gpt-5"])
        .env("ANTHROPIC_API_KEY", "k")
        .output();
    let run = Run::of(&run.unwrap());
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("OPENAI_API_KEY"), "{}", run.stderr);
}

#[test]
fn a_model_that_refuses_ends_the_program_by_its_reason() {
    let check = |turn: Turn, code: i32, expected: &str| {
        let machine = Machine::new(vec![turn]);
        let run = machine.run(&["chat", "-p", "hello"]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (code, ""),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr.contains("error: the model returned no answer"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains(expected), "{}", run.stderr);
        assert!(!run.all().contains("canary-key"), "{}", run.stderr);
    };
    check(Turn::refuse(401, "bad key canary-key"), 3, "check the key");
    check(
        Turn::refuse(404, "no such model"),
        3,
        "choose another model with --model",
    );
    check(Turn::refuse(400, "too odd\u{1b}[2J"), 1, "too odd");
}

#[test]
fn conversations_are_kept_listed_resumed_and_deleted() {
    let machine = Machine::new(vec![
        Turn::text("one"),
        Turn::text("two"),
        Turn::text("three"),
    ]);
    let first = machine.run(&["chat", "-p", "first question", "--json"]);
    let first: Value = serde_json::from_str(&first.stdout).unwrap();
    let id = first["session_id"].as_str().unwrap();
    let second = machine.run(&["chat", "-p", "second question", "--resume", id, "--json"]);
    let second: Value = serde_json::from_str(&second.stdout).unwrap();
    assert_eq!(
        (&second["session_id"], &second["response"]),
        (&json!(id), &json!("two"))
    );
    let third = machine.run(&["chat", "-p", "third question", "--continue"]);
    assert_eq!(third.stdout, "three\n", "{}", third.stderr);
    let messages = &machine.model.requests()[2].body["messages"];
    assert_eq!(messages.as_array().unwrap().len(), 5);

    let list = machine.context.json("chat --list --json");
    let found = &list[0];
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(
        (&found["session_id"], &found["messages"]),
        (&json!(id), &json!(3))
    );
    assert!(
        found["title"]
            .as_str()
            .unwrap()
            .starts_with("first question"),
        "{found}"
    );
    let shown = machine.run(&["chat", "--list"]);
    assert!(
        shown.stdout.contains(id) && shown.stdout.contains("first question"),
        "{}",
        shown.stdout
    );

    assert_eq!(machine.run(&["chat", "--delete", id]).code, 0);
    assert_eq!(machine.context.json("chat --list --json"), json!([]));
    assert_eq!(machine.run(&["chat", "-p", "x", "--resume", id]).code, 1);
}

#[test]
fn a_resource_that_is_mentioned_goes_with_the_prompt() {
    let machine = Machine::with_desk("", "", vec![Turn::text("noted")]);
    let run = machine.run(&["chat", "-p", "what does @desk:desk://note say?"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "noted\n"),
        "{}",
        run.stderr
    );
    let user_message = machine.user_message(0);
    let attached = "<resource server=\"desk\" uri=\"desk://note\">\nremember the milk\n</resource>";
    assert!(user_message.contains(attached), "{user_message}");

    let run = machine.run(&["chat", "-p", "what does @desk:desk://nothing say?"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    let expected = "`@desk:desk://nothing` cannot be attached, so nothing was sent";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert_eq!(machine.model.requests().len(), 1);
}

#[test]
fn denied_calls_are_reported_without_a_prompt() {
    let call = |tool: &str| Turn::new().call("call_1", tool, json!({}));
    let machine = Machine::with_desk(
        "",
        "",
        vec![call("mcp__desk__fail"), Turn::text("I could not.")],
    );
    let run = machine.run(&["chat", "-p", "fail"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "I could not.\n"));
    assert!(
        run.stderr
            .contains("a call failed: permission denied for tool desk/fail"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("hint: -p never prompts"),
        "{}",
        run.stderr
    );

    let allowed = allowing("mcp__desk");
    for (tool, expected) in [
        ("mcp__desk__fail", "it is broken"),
        // The elicitation capability is not declared, and requests are declined.
        ("mcp__desk__ask", "{\\\"action\\\": \\\"decline\\\"}"),
        ("mcp__desk__roots", "file://"),
    ] {
        let machine = Machine::with_desk("", &allowed, vec![call(tool), Turn::text("done")]);
        let run = machine.run(&["chat", "-p", "go"]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (0, "done\n"),
            "{}",
            run.stderr
        );
        let result = machine.model.requests()[1].body["messages"][2].to_string();
        assert!(result.contains(expected), "{tool}: {result}");
    }
}

#[test]
fn a_required_server_that_is_not_there_ends_it() {
    let machine = Machine::with_desk("required = true", "", vec![Turn::text("fine")]);
    assert_eq!(machine.run(&["chat", "-p", "hello"]).code, 0);
    let entry = "[mcp_servers.gone]\ncommand = \"uvx\"\nrequired = true\n";
    machine.context.write("config/mcp.toml", entry);
    let run = machine.run(&["chat", "-p", "hello"]);
    assert_eq!((run.code, run.stdout.as_str()), (4, ""), "{}", run.stderr);
    assert!(run.stderr.contains("gone"), "{}", run.stderr);
    assert_eq!(machine.model.requests().len(), 1);
}

#[test]
fn an_interrupt_cancels_the_answer() {
    let turn = Turn::text("half of it").step(Step::Wait("for ever".to_owned()));
    let machine = Machine::new(vec![turn]);
    let prepared = machine.command();
    let child = Command::new(assert_cmd::cargo::cargo_bin("switchboard"))
        .args(["chat", "-p", "hello"])
        .env_clear()
        .envs(
            prepared
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(machine.context.path("project"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    machine.runtime.block_on(machine.model.request(1));
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let run = Run::of(&child.wait_with_output().unwrap());
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (130, "", "")
    );
    machine.runtime.block_on(machine.model.abandoned(1));
}

#[test]
fn model_text_is_sanitized() {
    let machine = Machine::new(vec![Turn::text("a\u{1b}]0;title\u{7}b\u{202e}c")]);
    let run = machine.run(&["chat", "-p", "hello"]);
    assert_eq!(run.stdout, "a\\u{1b}]0;title\\u{7}b\\u{202e}c\n");
}
