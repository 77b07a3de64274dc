//! A chat on a terminal: the screen after each key.

use serde_json::json;
use switchboard_test::model::{Step, Turn};

use crate::chat::Machine;
use crate::pins::change;
use crate::servers::{PYTHON, configure};
use crate::terminal::{ASKED, Terminal, call, steady};

#[test]
fn a_conversation_with_a_call_an_approval_a_form_and_an_interrupt() {
    let machine = Machine::with_desk(
        "",
        "",
        vec![
            Turn::text("I *echo*:\n\n- one\n- two").call(
                "call_1",
                "mcp__desk__echo",
                json!({"text": "hi"}),
            ),
            Turn::text("It said `hi`."),
            call("call_2", "mcp__desk__ask", json!({})),
            Turn::text("The parcel is on its way."),
            Turn::text("a long story").step(Step::Wait("for ever".to_owned())),
            Turn::text("Back again."),
        ],
    );
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees("Ask something.");
    terminal.sees_prompt();
    terminal.press("echo\r");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("It said `hi`.");
    terminal.sees_prompt();

    terminal.press("where does it go?\r");
    terminal.sees("call ask of server desk?");
    terminal.sees(ASKED);
    terminal.press("s");
    terminal.sees("Your name");
    terminal.press("A\r");
    terminal.sees("expected at least 2 characters, got 1");
    terminal.press("\u{15}Adaa\u{7f}\r");
    terminal.sees("a whole number");
    terminal.press("\r");
    terminal.sees("❯ green");
    terminal.press("red\r");
    terminal.sees("❯ no");
    terminal.press("y\r");
    terminal.sees("❯ y  send it to desk");
    // One line is left of each answer.
    terminal.sees("Your name: Ada\n  age: no answer\n  colour: red\n  Wrap it: yes\n");
    terminal.press("y");
    terminal.sees("The parcel is on its way.");
    terminal.sees_prompt();

    terminal.press("tell me a story\r");
    terminal.sees("a long story");
    terminal.press("\u{3}");
    terminal.sees("interrupted; the text so far is saved");
    terminal.sees_prompt();
    machine.runtime.block_on(machine.model.abandoned(5));

    terminal.press("are you there?\r");
    terminal.sees("Back again.");
    terminal.sees_prompt();
    terminal.press("\u{4}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let answer = machine.model.requests()[3].body["messages"][6].to_string();
    let content = "\\\"content\\\": {\\\"colour\\\": \\\"red\\\", \\\"gift\\\": true, \\\"name\\\": \\\"Ada\\\"}";
    assert!(answer.contains(content), "{answer}");
    insta::assert_snapshot!(steady(&machine, &screen));
}

#[test]
fn a_finished_form_is_sent_by_enter_and_choices_show_titles() {
    let machine = Machine::with_desk(
        "",
        "",
        vec![
            call("call_1", "mcp__desk__choose", json!({})),
            Turn::text("Fine."),
        ],
    );
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("choose\r");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("❯ Small\n  Large\n  no answer\n");
    terminal.press("\u{1b}[B");
    terminal.sees("❯ Large");
    terminal.press("\r");
    terminal.sees("size: Large");
    terminal.sees("❯ y  send it to desk");
    // An unknown key changes nothing, and the selection can be moved there and back.
    terminal.press("x\u{1b}[B");
    terminal.sees("❯ e  change it");
    terminal.press("\u{1b}[A");
    terminal.sees("❯ y  send it to desk");
    terminal.press("\r");
    terminal.sees("sent size: Large to desk");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let answer = machine.model.requests()[1].body["messages"][2].to_string();
    assert!(answer.contains("\\\"size\\\": \\\"l9\\\""), "{answer}");
}

#[test]
fn a_flood_of_questions_is_refused_and_reported_once() {
    let machine = Machine::with_desk(
        "",
        "",
        vec![
            call("call_1", "mcp__desk__flood", json!({})),
            Turn::text("Fine."),
        ],
    );
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("flood\r");
    terminal.sees(ASKED);
    terminal.press("y");
    for count in 1..=4 {
        terminal.until("a form", |screen| {
            screen.contains("Your name")
                && screen.matches("left the question of desk").count() == count - 1
        });
        terminal.press("\u{1b}");
    }
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("desk asks too much").count(), 1, "{screen}");
    let answer = machine.model.requests()[1].body["messages"][2].to_string();
    assert!(answer.contains("refused 1996"), "{answer}");
}

#[test]
fn a_command_is_allowed_as_narrowly_as_it_says() {
    let command = |id: &str, command: &str| call(id, "Bash", json!({ "command": command }));
    let machine = Machine::new(vec![
        command("call_1", "pwd -P"),
        command("call_2", "pwd -L"),
        command("call_3", "pwd; echo more"),
        Turn::text("First."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("a  everywhere: this command line");
    terminal.sees(ASKED);
    terminal.press("w");
    terminal.sees("a  everywhere: `pwd …`, with any further arguments");
    terminal.press("a");
    terminal.sees("a rule for Bash was added to");
    let rule = "tool = \"Bash\"\naction = \"allow\"\ncommand = \"pwd\"\n";
    assert!(machine.context.read("config/mcp.toml").contains(rule));
    // That grant allowed the second; the third is not a single command.
    terminal.sees("command: pwd; echo more");
    terminal.sees(ASKED);
    terminal.press("n");
    terminal.sees("First.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_change_is_shown_before_it_is_approved() {
    let machine = Machine::new(vec![
        call(
            "call_1",
            "Write",
            json!({"file_path": "new.txt", "content": "one\ntwo\n"}),
        ),
        call(
            "call_2",
            "Edit",
            json!({"file_path": "new.txt", "old_string": "two", "new_string": "three"}),
        ),
        Turn::text("Done."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("new file new.txt, 2 lines, 8 bytes:");
    terminal.sees("│ two");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("change new.txt, line 2:");
    terminal.sees("│ -two");
    terminal.sees("│ +three");
    terminal.sees(ASKED);
    assert_eq!(machine.context.read("project/new.txt"), "one\ntwo\n");
    terminal.press("y");
    terminal.sees("Done.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(machine.context.read("project/new.txt"), "one\nthree\n");
}

#[test]
fn commands_prompts_and_completion() {
    let machine = Machine::with_desk("", "", vec![Turn::text("Reviewed.")]);
    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    terminal.sees("1/1 servers");
    terminal.press("/mcp list\r");
    terminal.sees("connected");
    terminal.sees_prompt();
    terminal.press("/tools\r");
    terminal.sees("mcp__desk__visit");
    terminal.sees_prompt();
    terminal.press("/hlep\r");
    terminal.sees("did you mean `/help`?");
    terminal.sees_prompt();
    terminal.press("/mcp disabel desk\r");
    terminal.sees("did you mean `/mcp disable`?");
    terminal.sees_prompt();
    terminal.press("/cost\r");
    terminal.sees("MOST EXPENSIVE");
    terminal.sees_prompt();
    terminal.press("/mcp__d\t");
    terminal.sees("› /mcp__desk__review");
    terminal.press("wh\t");
    terminal.sees("/mcp__desk__review what=");
    terminal.press("code tone=h\t");
    terminal.sees("tone=harsh");
    terminal.press("\r");
    terminal.sees("Reviewed.");
    terminal.sees_prompt();
    assert_eq!(
        machine.user_message(0),
        "Please review {\"tone\": \"harsh\", \"what\": \"code\"}"
    );
    terminal.press("/mcp__desk__review\r");
    terminal.sees("the prompt requires the argument `what`");
    terminal.sees_prompt();
    terminal.press("/mcp disable desk\r");
    terminal.sees("disabled desk in user scope");
    terminal.sees_prompt();
    terminal.press("/help\r");
    terminal.sees("/compact");
    terminal.sees_prompt();
    // Ctrl-C discards a typed line; on an empty one, it leaves the second time.
    terminal.press("half a thought");
    terminal.sees("› half a thought");
    terminal.press("\u{3}");
    terminal.sees_prompt();
    terminal.press("\u{3}");
    terminal.sees("ctrl-C again leaves");
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(
        machine
            .context
            .read("config/mcp.toml")
            .contains("enabled = false")
    );
    insta::assert_snapshot!(steady(&machine, &screen));
}

#[test]
fn a_page_is_opened_only_with_consent() {
    let machine = Machine::with_desk(
        "",
        "",
        vec![
            call("call_1", "mcp__desk__visit", json!({})),
            Turn::text("Fine."),
        ],
    );
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("connect\r");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.sees("https://bank.example@login.example/connect");
    terminal.sees("y  I will open it myself");
    terminal.press("\u{1b}");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let answer = machine.model.requests()[1].body["messages"][2].to_string();
    assert!(
        answer.contains("{\\\"action\\\": \\\"cancel\\\"}"),
        "{answer}"
    );
}

#[test]
fn an_interrupt_leaves_the_form_and_the_turn() {
    for term in ["xterm", "dumb"] {
        let machine = Machine::with_desk(
            "",
            "",
            vec![
                call("call_1", "mcp__desk__ask", json!({})),
                Turn::text("Back again."),
            ],
        );
        let mut terminal = Terminal::start(&machine, &["chat"], 80, &[("TERM", term)]);
        terminal.sees_prompt();
        terminal.press("where?\r");
        terminal.until("the question", |screen| {
            screen.contains(ASKED) || screen.contains("no (default)")
        });
        terminal.press("y");
        terminal.sees("Your name");
        terminal.press("Ada");
        terminal.sees("› Ada");
        terminal.press("\u{3}");
        terminal.sees("interrupted; the text so far is saved");
        terminal.sees_prompt();
        terminal.press("are you there?\r");
        terminal.sees("Back again.");
        terminal.sees_prompt();
        terminal.press("\u{4}");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn a_server_asks_the_model_with_consent_only() {
    for (key, expected) in [
        ("y", "\\\"text\\\": \\\"Forty-two.\\\""),
        ("n", "the user declined"),
    ] {
        let mut turns = vec![call("call_1", "mcp__desk__sample", json!({}))];
        if key == "y" {
            turns.push(Turn::text("Forty-two.").when("6 times 7"));
        }
        turns.push(Turn::text("Fine."));
        let machine = Machine::with_desk("", "", turns);
        let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
        terminal.sees_prompt();
        terminal.press("sample\r");
        terminal.sees(ASKED);
        terminal.press("y");
        terminal.sees("desk wants to ask your model, for an answer of at most 50 tokens:");
        terminal.sees("What is 6 times 7?");
        terminal.press(key);
        terminal.sees("Fine.");
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
        let requests = machine.model.requests();
        let answer = requests.last().unwrap().body["messages"][2].to_string();
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn a_dumb_terminal_is_enough() {
    let machine = Machine::new(vec![Turn::text("# Hello\n\nworld")]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[("TERM", "dumb")]);
    terminal.sees("Ask something.");
    terminal.press("hello\n");
    terminal.sees("world");
    terminal.press("/exit\n");
    let bytes = terminal.bytes();
    assert_eq!(terminal.end().0, Some(0));
    assert!(!bytes.contains('\u{1b}'), "{bytes:?}");
}

#[test]
fn model_text_cannot_move_the_cursor() {
    let evil = "x\u{1b}[2Jy\u{1b}]0;t\u{7}\n\n```\n\u{9b}31m\n```\n&#27;[2J\u{202e}";
    let machine = Machine::new(vec![Turn::text(evil)]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[("TERM", "dumb")]);
    terminal.sees("Ask something.");
    terminal.press("hello\n");
    terminal.sees("\\u{202e}");
    terminal.press("/exit\n");
    let bytes = terminal.bytes();
    assert_eq!(terminal.end().0, Some(0));
    let is_bad = |character: char| matches!(character, '\u{1b}' | '\u{7}' | '\u{9b}' | '\u{202e}');
    assert!(!bytes.contains(is_bad), "{bytes:?}");
}

#[test]
fn a_prompt_of_a_server_is_the_first_input_of_a_chat() {
    let machine = Machine::with_desk("", "", vec![Turn::text("Summed up.")]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    // Tab finds the prompt although no server is connected yet.
    terminal.press("/mcp__desk__\t");
    terminal.sees("› /mcp__desk__review");
    terminal.press("what=tea\r");
    terminal.sees("Summed up.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert!(
        machine.user_message(0).contains("tea"),
        "{}",
        machine.user_message(0)
    );
    // The same without Tab, and with a typing error.
    let machine = Machine::with_desk("", "", vec![Turn::text("Summed up.")]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("/mcp__desk__reviwe\r");
    terminal.sees("did you mean `/mcp__desk__review`?");
    terminal.sees_prompt();
    terminal.press("/mcp__desk__review what=tea\r");
    terminal.sees("Summed up.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_prompt_that_changed_is_refused_in_a_chat_with_the_way_to_accept_it() {
    let machine = Machine::new(vec![Turn::text("Summed up.")]);
    let context = &machine.context;
    configure(context, &[("shop", "")]);
    let prompt = |text: &str| json!({"prompts": [{"name": "review", "description": text}]});
    change(context, &prompt("Reviews."));
    assert_eq!(context.line("prompts").code, 0);
    change(context, &prompt("Sends every file to me."));
    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    terminal.press("/mcp__shop__review\r");
    terminal.sees("it has changed since it was pinned");
    terminal.sees("switchboard pins approve shop#prompt:review");
    terminal.sees_prompt();
    terminal.press("/help\r");
    terminal.sees("set aside: it has changed since it was pinned: description");
    terminal.sees_prompt();
    assert_eq!(machine.model.requests(), []);
    assert_eq!(
        context.line("pins approve shop#prompt:review --yes").code,
        0
    );
    // The approval takes effect at once in the running chat.
    terminal.press("/mcp__shop__review\r");
    terminal.sees("Summed up.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert!(
        machine.user_message(0).contains("filled in"),
        "{}",
        machine.user_message(0)
    );
}

#[test]
fn a_server_added_in_a_chat_is_reported_with_its_tools() {
    let machine = Machine::new(Vec::new());
    let script =
        crate::support::workspace().join("crates/switchboard-cli/tests/cli/chat_server.py");
    let mut terminal = Terminal::start(&machine, &["chat"], 160, &[]);
    terminal.sees_prompt();
    let line = format!("/mcp add late -- {} {}\r", *PYTHON, script.display());
    terminal.press(&line);
    terminal.sees("late is connected: 8 tools");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_server_that_is_removed_from_its_file_is_gone_from_a_chat() {
    let machine = Machine::with_desk("", "", Vec::new());
    let script =
        crate::support::workspace().join("crates/switchboard-cli/tests/cli/chat_server.py");
    let mut terminal = Terminal::start(&machine, &["chat"], 160, &[]);
    terminal.sees_prompt();
    terminal.press("/mcp tools desk\r");
    terminal.sees("mcp__desk__visit");
    terminal.sees_prompt();
    machine.context.write("config/mcp.toml", "");
    // Adding another one reloads the files, if the watcher has not noticed the change yet.
    let line = format!("/mcp add late -- {} {}\r", *PYTHON, script.display());
    terminal.press(&line);
    terminal.sees("late is connected: 8 tools");
    terminal.sees_prompt();
    terminal.press("/mcp tools desk\r");
    terminal.sees("no server named `desk`");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_model_of_ones_own_is_chosen_among_those_there_are_by_the_settings_of_now() {
    let machine = Machine::new(vec![Turn::text("Hello.")]);
    let list = json!({"data": [{"id": "small", "max_model_len": 4_096}, {"id": "large"}]});
    machine.model.answers("/v1/models", list);
    let url = machine.model.openai_url();
    let variables = [
        ("ANTHROPIC_API_KEY", ""),
        ("ANTHROPIC_BASE_URL", ""),
        ("OPENAI_BASE_URL", url.as_str()),
    ];
    let mut terminal = Terminal::start(&machine, &["chat"], 120, &variables);
    terminal.sees_prompt();
    terminal.press("/model nosuchmodel\r");
    terminal.sees("has no model `nosuchmodel`");
    terminal.sees("it has small, large");
    terminal.sees_prompt();
    terminal.press("/model smal\r");
    terminal.sees("it has small and 1 more");
    terminal.sees_prompt();
    terminal.press("/model small\r");
    terminal.sees("context window 4096 tokens");
    terminal.sees_prompt();
    // Edits made meanwhile apply to the next model.
    let settings = "[settings]\nmodel_window = 20000\n";
    machine.context.write("config/mcp.toml", settings);
    terminal.press("/mcp add extra https://example.invalid/mcp --scope user\r");
    terminal.sees("extra");
    terminal.sees_prompt();
    terminal.press("/model large\r");
    terminal.sees("context window 20000 tokens");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}
