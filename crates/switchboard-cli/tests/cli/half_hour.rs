//! The first half hour of a user, from an import to a resumed chat: no step may be a dead end.

use serde_json::json;
use switchboard_test::model::{Step, Turn};

use crate::chat::Machine;
use crate::servers::{PYTHON, log, script};
use crate::support::{Run, workspace};
use crate::terminal::{ASKED, Terminal, call};

/// The user at the shell.
struct User<'m>(&'m Machine);

impl User<'_> {
    /// Runs a command that must succeed, and whose output must have all of this.
    #[track_caller]
    fn runs(&self, line: &str, expected: &[&str]) {
        let run = self.tries(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        Self::says(line, &run, expected);
    }

    /// Runs a command that must fail, with what is wrong and what to do about it.
    #[track_caller]
    fn fails(&self, line: &str, expected: &[&str]) {
        let run = self.tries(line);
        assert_ne!(run.code, 0, "{line}\n{}", run.all());
        Self::says(line, &run, expected);
    }

    #[track_caller]
    fn says(line: &str, run: &Run, expected: &[&str]) {
        let all = run.all();
        for text in expected {
            assert!(all.contains(text), "no {text:?} after {line}:\n{all}");
        }
        assert!(!all.contains("panicked"), "{line}\n{all}");
    }

    fn tries(&self, line: &str) -> Run {
        let words = switchboard_config::words::split(line).unwrap();
        Run::of(&self.0.command().args(words).output().unwrap())
    }
}

/// What the model says and does, in order.
fn turns() -> Vec<Turn> {
    vec![
        // An approval and a form.
        call("echo", "mcp__desk__echo", json!({"text": "good morning"})),
        call("form", "mcp__desk__choose", json!({})),
        Turn::text("The desk works."),
        // Images, and a change of a file.
        call("picture", "mcp__shop__picture", json!({})),
        call(
            "write",
            "Write",
            json!({"file_path": "plan.txt", "content": "step one\n"}),
        ),
        Turn::text("The plan is written."),
        // Sub-agents.
        Turn::new()
            .call("left", "Agent", json!({"prompt": "Look left."}))
            .call("right", "Agent", json!({"prompt": "Look right."})),
        Turn::text("Nothing on the left.")
            .step(Step::Wait("left".to_owned()))
            .when("Look left."),
        Turn::text("Nothing on the right.").when("Look right."),
        Turn::text("Nothing on either side."),
        // An interrupt.
        Turn::text("Once upon a time").step(Step::Wait("for ever".to_owned())),
        // After the chat is resumed.
        Turn::text("We wrote a plan and took it back."),
    ]
}

#[test]
fn a_first_half_hour_has_no_dead_end() {
    let machine = Machine::new(turns());
    let user = User(&machine);
    let context = &machine.context;
    let desk = workspace().join("crates/switchboard-cli/tests/cli/chat_server.py");
    let entry = json!({"command": *PYTHON, "args": [desk]});
    context.write(
        "home/.cursor/mcp.json",
        json!({"mcpServers": {"desk": entry}}).to_string(),
    );

    // The program is installed: it says what it is, and how its completion is loaded.
    user.runs("version", &["switchboard "]);
    user.runs("help", &["Usage:", "mcp", "chat"]);
    user.runs(
        "completions bash",
        &["source <(switchboard completions bash)"],
    );

    // What another program has configured is found, named, and imported.
    user.runs("status", &["can be imported", "switchboard mcp import"]);
    user.runs("mcp import", &["desk"]);
    user.runs("mcp list", &["desk", "connected"]);

    // A server is added, broken by a typing error, diagnosed and fixed.
    let good = format!(
        "{} {} {}",
        *PYTHON,
        script().display(),
        log(context, "shop").display()
    );
    user.runs(&format!("mcp add --scope user shop -- {good}"), &["shop"]);
    user.runs("tools shop", &["picture", "data"]);
    let file = context.read("config/mcp.toml");
    context.write(
        "config/mcp.toml",
        file.replace("cli/server.py", "cli/sever.py"),
    );
    user.fails("call shop/data", &["sever.py", "switchboard doctor shop"]);
    user.runs("mcp list", &["shop", "failed", "desk", "connected"]);
    user.fails("doctor shop", &["sever.py", "No such file"]);
    context.write("config/mcp.toml", file);
    user.runs("doctor shop", &["shop"]);
    user.runs("call shop/data", &["z"]);
    user.fails("call shop/dta", &["data"]);

    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees("2/2 servers");
    terminal.press("is the desk there?\r");
    terminal.sees("call echo of server desk?");
    terminal.sees("good morning");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("call choose of server desk?");
    terminal.sees(ASKED);
    terminal.press("s");
    terminal.sees("❯ Small");
    terminal.press("large\r");
    terminal.sees("❯ y  send it to desk");
    terminal.press("\r");
    terminal.sees("sent size: Large to desk");
    terminal.sees("The desk works.");
    terminal.sees_prompt();

    terminal.press("a picture and a plan\r");
    terminal.sees("call picture of server shop?");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("saved to");
    terminal.sees("new file plan.txt");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("The plan is written.");
    terminal.sees_prompt();
    assert_eq!(context.read("project/plan.txt"), "step one\n");
    terminal.press("/diff\r");
    terminal.sees("#1 plan.txt  new file");
    terminal.sees_prompt();
    terminal.press("/undo\r");
    terminal.sees("change 1 undone: plan.txt is deleted");
    terminal.sees_prompt();
    assert!(!context.exists("project/plan.txt"));

    terminal.press("look around\r");
    for side in ["left", "right"] {
        terminal.sees(&format!("prompt: Look {side}."));
        terminal.sees(ASKED);
        terminal.press("y");
    }
    terminal.until("no question", |screen| !screen.contains(ASKED));
    terminal.sees("Agent  Look left.");
    terminal.press("/agents\r");
    terminal.sees("running     Look left.");
    machine.model.release("left");
    terminal.sees("Nothing on either side.");
    terminal.sees_prompt();

    terminal.press("a story\r");
    terminal.sees("Once upon a time");
    terminal.press("\u{1b}");
    terminal.sees("interrupted; the text so far is saved");
    terminal.sees_prompt();
    terminal.press("\u{4}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    // The way back is on the screen.
    let resume = "resume with: switchboard ";
    let line = screen
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(resume));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();

    let mut terminal = Terminal::start(&machine, &words, 60, &[]);
    terminal.sees("resumed after 4 messages");
    terminal.sees("Once upon a time");
    terminal.sees_prompt();
    let screen = terminal.screen();
    assert!(!screen.contains("Note of the program"), "{screen}");
    terminal.press("what did we do?\r");
    terminal.sees("We wrote a plan and took it back.");
    terminal.sees_prompt();
    terminal.press("/status\r");
    terminal.sees("agents    2 sub-agents");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(machine.model.left(), []);

    // What was done is in the audit log, and nothing was granted for longer than the chat.
    user.runs("audit", &["desk", "echo", "shop", "picture"]);
    user.runs("status", &["desk", "shop"]);
}
