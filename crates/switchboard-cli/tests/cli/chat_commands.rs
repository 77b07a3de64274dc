//! The commands of a chat that print text, on a terminal.

use serde_json::{Value, json};
use switchboard_test::model::{Step, Turn, Usage};

use crate::chat::Machine;
use crate::terminal::Terminal;

/// Variables of a machine without a key.
const NO_KEY: [(&str, &str); 2] = [("ANTHROPIC_API_KEY", ""), ("ANTHROPIC_BASE_URL", "")];

/// Rules that allow the agent to change files and to start sub-agents.
const ALLOWED: &str = "[[permissions.rules]]\ntool = \"Write\"\naction = \"allow\"\n\
                       [[permissions.rules]]\ntool = \"Edit\"\naction = \"allow\"\n\
                       [[permissions.rules]]\ntool = \"Agent\"\naction = \"allow\"\n";

fn call(id: &str, tool: &str, arguments: Value) -> Turn {
    Turn::new().call(id, tool, arguments)
}

/// Types a line, and waits for all of its output. The line must be on the screen before Enter: until then, the prompt
/// of the line before it looks like the next one.
#[track_caller]
fn enter(terminal: &mut Terminal, line: &str, expected: &[&str]) {
    let shown = format!("› {line}");
    let count = |screen: &str| {
        screen
            .lines()
            .filter(|line| line.trim_end() == shown)
            .count()
    };
    let before = count(&terminal.screen());
    terminal.press(line);
    terminal.until(&shown, |screen| {
        count(screen) > before || screen.trim_end().ends_with(&shown)
    });
    terminal.press("\r");
    for text in expected {
        terminal.sees(text);
    }
    terminal.sees_prompt();
}

#[track_caller]
fn leave(mut terminal: Terminal) -> String {
    terminal.press("/exit\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    screen
}

fn long() -> String {
    "a long line of a file ".repeat(20)
}

#[test]
fn money_is_counted_at_dated_prices_and_an_unknown_price_is_said() {
    let usage = Usage {
        input: 100_000,
        output: 1_000,
        ..Usage::default()
    };
    let machine = Machine::new(vec![
        Turn::text("Hello.").usage(usage),
        Turn::text("Hello again.").usage(usage),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 60, &[]);
    terminal.sees_prompt();
    enter(&mut terminal, "hello", &["Hello."]);
    enter(
        &mut terminal,
        "/cost",
        &["$0.21 at list prices of 2026-10-16"],
    );
    enter(
        &mut terminal,
        "/model claude-unheard-of",
        &["claude-unheard-of"],
    );
    enter(&mut terminal, "hello", &["Hello again."]);
    let partial = "without the tokens of models whose price is unknown";
    enter(&mut terminal, "/cost", &["$0.21 at", partial]);
    enter(&mut terminal, "/new", &["new session"]);
    let unknown = "no price is known for claude-unheard-of: tokens only";
    enter(&mut terminal, "/cost", &[unknown]);
    leave(terminal);
}

#[test]
fn changes_are_shown_and_taken_back_unless_the_file_has_changed() {
    let machine = Machine::new(vec![
        call(
            "a",
            "Write",
            json!({"file_path": "new.txt", "content": "one\n"}),
        ),
        call(
            "b",
            "Edit",
            json!({"file_path": "a.txt", "old_string": "hello", "new_string": "bye"}),
        ),
        Turn::text("Both done."),
        Turn::text("Seen."),
    ]);
    machine.context.write("config/mcp.toml", ALLOWED);
    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    enter(
        &mut terminal,
        "/diff",
        &["no file changed by Write or Edit"],
    );
    enter(&mut terminal, "/undo", &["no change to undo"]);
    enter(&mut terminal, "go", &["Both done."]);
    enter(
        &mut terminal,
        "/diff",
        &[
            "#1 new.txt  new file",
            "+one",
            "#2 a.txt  changed",
            "-hello",
            "+bye",
        ],
    );
    enter(
        &mut terminal,
        "/undo x",
        &["`x` is not the number of a change"],
    );
    machine.context.write("project/a.txt", "mine\n");
    enter(&mut terminal, "/undo", &["a.txt has changed since"]);
    assert_eq!(machine.context.read("project/a.txt"), "mine\n");
    machine.context.write("project/a.txt", "bye\n");
    enter(
        &mut terminal,
        "/undo",
        &["change 2 undone: a.txt is restored"],
    );
    assert_eq!(machine.context.read("project/a.txt"), "hello\n");
    enter(
        &mut terminal,
        "/undo 1",
        &["change 1 undone: new.txt is deleted"],
    );
    assert!(!machine.context.exists("project/new.txt"));
    enter(&mut terminal, "/undo 1", &["change 1 is already undone"]);
    enter(&mut terminal, "what now?", &["Seen."]);
    let told = machine.user_message(3);
    assert!(told.contains("took back your change of a.txt"), "{told}");
    assert!(told.contains("took back your change of new.txt"), "{told}");
    leave(terminal);
}

#[test]
fn the_state_of_a_chat_is_told_at_every_width() {
    for columns in [60, 100, 200] {
        let machine = Machine::with_desk(
            "",
            ALLOWED,
            vec![
                call("t1", "Agent", json!({"prompt": "Look around."})),
                Turn::text("All is \u{1b}[2Jgreen.").when("Look around."),
                Turn::text("It is green."),
            ],
        );
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees_prompt();
        enter(&mut terminal, "/agents", &["no sub-agents in this session"]);
        enter(&mut terminal, "go", &["It is green."]);
        enter(
            &mut terminal,
            "/agents",
            &[
                "done        Look around.",
                "  0 calls, 15 tokens,",
                "│ All is ",
            ],
        );
        enter(
            &mut terminal,
            "/status",
            &[
                "model     claude-sonnet-5-5 (anthropic)",
                "servers   1 of 1 ready",
                "15 of 1000000 tokens, 0 %",
                "3 rules, 0 grants",
                "agents    1 sub-agent",
            ],
        );
        enter(
            &mut terminal,
            "/context",
            &[
                "█ system prompt",
                "█ built-in tools (",
                "█ tools of desk (",
                "░ free",
            ],
        );
        let screen = leave(terminal);
        assert!(!screen.contains('\u{1b}'));
        let shown = screen.lines().filter(|line| line.contains('░'));
        assert!(shown.clone().count() >= 2, "{screen}");
        for line in shown {
            assert!(line.chars().count() <= usize::from(columns), "{line}");
        }
    }
}

#[test]
fn grants_of_the_session_are_listed_and_revoked() {
    let bash = |id: &str| call(id, "Bash", json!({"command": "echo hi"}));
    let machine = Machine::new(vec![
        bash("a"),
        Turn::text("First."),
        bash("b"),
        Turn::text("Second."),
        bash("c"),
        Turn::text("Third."),
    ]);
    let rule = "[[permissions.rules]]\ntool = \"Read\"\naction = \"deny\"\npath_under = \"/etc\"\n";
    machine.context.write("config/mcp.toml", rule);
    let mut terminal = Terminal::start(&machine, &["chat"], 120, &[]);
    terminal.sees_prompt();
    enter(
        &mut terminal,
        "/permissions",
        &[
            "ACTION",
            "deny",
            "Read",
            "mcp.toml",
            "default without a matching rule: ask",
            "nothing was granted",
        ],
    );
    terminal.press("go\r");
    terminal.sees("echo hi");
    terminal.sees("this command line");
    terminal.press("s");
    terminal.sees("First.");
    terminal.sees_prompt();
    enter(
        &mut terminal,
        "/permissions",
        &["ALLOWED IN THIS SESSION", "this command line: echo hi"],
    );
    enter(&mut terminal, "again", &["Second."]);
    enter(
        &mut terminal,
        "/permissions revoke 7",
        &["no grant number `7`"],
    );
    enter(&mut terminal, "/permissions revoke 1", &["grant 1 revoked"]);
    terminal.press("and again\r");
    terminal.until("a second prompt", |screen| {
        screen.matches("this command line").count() > 2
    });
    terminal.press("n");
    terminal.sees("Third.");
    terminal.sees_prompt();
    leave(terminal);
}

#[test]
fn the_conversation_is_exported_as_markdown() {
    let machine = Machine::new(vec![
        Turn::text("I look.").call("a", "mcp__workspace__read_file", json!({"path": "a.txt"})),
        Turn::text("It says **hello**.\u{1b}[2J"),
    ]);
    machine
        .context
        .write("project/a.txt", format!("```\n{}\n", long()));
    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    enter(&mut terminal, "/export", &["the session is still empty"]);
    enter(&mut terminal, "what is in a.txt?", &["It says"]);
    enter(
        &mut terminal,
        "/export talk.md",
        &["exported to", "talk.md"],
    );
    enter(
        &mut terminal,
        "/export talk.md",
        &["cannot write", "it exists"],
    );
    enter(&mut terminal, "/export", &["exported to", "chat-"]);
    enter(&mut terminal, "/config", &["[settings]", "[hooks]"]);
    leave(terminal);
    let text = machine.context.read("project/talk.md");
    for part in [
        "## You\n\nwhat is in a.txt?\n",
        "## Model\n\nI look.\n",
        "### Call of `mcp__workspace__read_file`\n\n```json\n{\"path\":\"a.txt\"}\n```\n",
        "### Result\n\n````\n",
        "It says **hello**.",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn without_a_model_the_chat_opens_and_its_tools_work() {
    let machine = Machine::new(Vec::new());
    let mut terminal = Terminal::start(&machine, &["chat"], 120, &NO_KEY);
    terminal.sees("none yet; /model helps to set one up");
    terminal.sees_prompt();
    enter(&mut terminal, "/tools", &["mcp__workspace__read_file"]);
    enter(
        &mut terminal,
        "/call workspace/read_file path=a.txt",
        &["hello"],
    );
    enter(
        &mut terminal,
        "/call workspace/read_file {\"path\": \"missing.txt\"}",
        &["workspace/read_file returned an error"],
    );
    enter(&mut terminal, "/call workspace/raed_file", &["read_file"]);
    enter(&mut terminal, "/call", &["no tool to call"]);
    enter(&mut terminal, "/context", &["no model yet"]);
    enter(&mut terminal, "/mcp list", &["workspace", "connected"]);
    for line in ["hello", "/model"] {
        enter(
            &mut terminal,
            line,
            &[
                "no model configured",
                "export OPENAI_API_KEY=",
                "start it and send your message again",
                "/tools, /mcp and /call",
            ],
        );
    }
    leave(terminal);
    assert_eq!(machine.model.requests(), []);
}

#[test]
fn a_model_server_on_this_machine_is_found_and_named() {
    let machine = Machine::new(vec![Turn::text("Hello."), Turn::text("Bye.")]);
    let url = machine.model.anthropic_url();
    let local = ("SWITCHBOARD_LOCAL_MODELS", url.as_str());
    let variables = [NO_KEY[0], NO_KEY[1], local];
    let mut terminal = Terminal::start(&machine, &["chat"], 120, &variables);
    terminal.sees(&format!("scripted (the model server at {url})"));
    terminal.sees_prompt();
    enter(&mut terminal, "hello", &["Hello."]);
    leave(terminal);
    let mut command = machine.context.command();
    command.env(local.0, local.1).args(["chat", "-p", "hello"]);
    let run = crate::support::Run::of(&command.output().unwrap());
    assert_eq!((run.code, run.stdout.as_str()), (0, "Bye.\n"));
    assert_eq!(
        run.stderr,
        format!("using scripted of the model server at {url}\n")
    );
}

#[test]
fn a_model_server_that_starts_later_is_found_with_the_first_message() {
    let machine = Machine::new(vec![Turn::text("Hello.")]);
    let url = machine.model.anthropic_url();
    // Not ready yet.
    machine.model.answers("/v1/models", json!({"data": []}));
    let variables = [
        NO_KEY[0],
        NO_KEY[1],
        ("SWITCHBOARD_LOCAL_MODELS", url.as_str()),
    ];
    let mut terminal = Terminal::start(&machine, &["chat"], 120, &variables);
    terminal.sees("none yet");
    terminal.sees_prompt();
    machine
        .model
        .answers("/v1/models", json!({"data": [{"id": "late"}]}));
    enter(
        &mut terminal,
        "hello",
        &["found late (the model server at", "Hello."],
    );
    leave(terminal);
}

#[test]
fn a_session_in_use_is_refused_at_once_and_free_when_its_process_is_killed() {
    let machine = Machine::new(vec![
        Turn::text("First."),
        Turn::text("half").step(Step::Wait("for ever".to_owned())),
        Turn::text("Third."),
    ]);
    let mut first = machine.command();
    let first = first
        .args(["chat", "-p", "one", "--json"])
        .output()
        .unwrap();
    let first: Value = serde_json::from_slice(&first.stdout).unwrap();
    let id = first["session_id"].as_str().unwrap().to_owned();
    let resume = ["chat", "-p", "two", "--resume", &id];
    let prepared = machine.command();
    let variables = prepared
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut holder = std::process::Command::new(assert_cmd::cargo::cargo_bin("switchboard"))
        .args(resume)
        .env_clear()
        .envs(variables)
        .current_dir(machine.context.path("project"))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    machine.runtime.block_on(machine.model.request(2));
    let in_use = format!("is in use by process {}", holder.id());
    for arguments in [&resume[..], &["chat", "--delete", &id]] {
        let run = crate::support::Run::of(&machine.command().args(arguments).output().unwrap());
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        assert!(run.stderr.contains(&in_use), "{}", run.stderr);
        assert!(run.stderr.contains("end the other chat"), "{}", run.stderr);
    }
    assert_eq!(machine.model.requests().len(), 2);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let run = crate::support::Run::of(&machine.command().args(resume).output().unwrap());
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "Third.\n"),
        "{}",
        run.stderr
    );
}
