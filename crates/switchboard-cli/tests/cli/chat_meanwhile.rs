//! What can be looked at while a turn runs, and how the terminal's own answers are kept out of the input.

use serde_json::json;
use switchboard_test::model::{Step, Turn};

use crate::chat::Machine;
use crate::terminal::{Terminal, call};

const ALLOWED: &str = "[[permissions.rules]]\ntool = \"Agent\"\naction = \"allow\"\n\
                       [[permissions.rules]]\ntool = \"mcp__desk__echo\"\naction = \"allow\"\n";

/// A model that has two sub-agents work side by side until their gates are opened.
fn with_sub_agents() -> Machine {
    let part = |name: &str| {
        Turn::text(format!("Half of {name}.\n"))
            .step(Step::Wait(format!("gate {name}")))
            .when(format!("Look at {name}."))
    };
    Machine::with_desk(
        "",
        ALLOWED,
        vec![
            Turn::new()
                .call("a", "Agent", json!({"prompt": "Look at A."}))
                .call("b", "Agent", json!({"prompt": "Look at B."})),
            part("A").call("a1", "mcp__desk__echo", json!({"text": "from A"})),
            part("B").call("b1", "mcp__desk__echo", json!({"text": "from B"})),
            Turn::text("A is fine.").when("from A"),
            Turn::text("B is fine.").when("from B"),
            Turn::text("Both are fine."),
            Turn::text("Later."),
        ],
    )
}

#[test]
fn sub_agents_are_watched_while_they_work() {
    for columns in [60, 100, 200] {
        let machine = with_sub_agents();
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees("1/1 servers");
        terminal.press("go\r");
        terminal.sees("Agent  Look at A.");
        terminal.sees("Agent  Look at B.");
        machine.runtime.block_on(machine.model.request(3));
        // A message waits for the end of the turn; what only shows something does not.
        terminal.press("and later?\r");
        terminal.sees("queued: and later?");
        terminal.press("/agents\r");
        terminal.sees("running     Look at A.");
        terminal.sees("running     Look at B.");
        terminal.sees("0 calls, ");
        terminal.press("/status\r");
        terminal.sees("agents    2 sub-agents");
        terminal.press("/context\r");
        terminal.sees("█ system prompt");
        terminal.press("/mcp\r");
        terminal.sees("❯ desk");
        terminal.press("\u{1b}");
        terminal.until("no view", |screen| !screen.contains("❯ desk"));
        terminal.sees("esc interrupts");
        machine.model.release("gate B");
        terminal.sees("● desk/echo  text: from B");
        machine.model.release("gate A");
        terminal.sees("Both are fine.");
        terminal.sees("Later.");
        terminal.sees_prompt();
        let screen = terminal.screen();
        // Each call is printed below the sub-agent that made it, whichever began first.
        let b = screen.find("○ Agent  Look at B.\n  ● desk/echo  text: from B");
        let a = screen.find("○ Agent  Look at A.\n  ● desk/echo  text: from A");
        assert!(a.is_some() && b.is_some() && b < a, "{screen}");
        terminal.press("/agents\r");
        terminal.sees("done        Look at A.");
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
        assert!(machine.user_message(6).contains("and later?"));
    }
}

#[test]
fn a_look_during_an_answer_does_not_disturb_it() {
    let machine = Machine::new(vec![
        Turn::text("One paragraph.\n\nAnother ")
            .step(Step::Wait("gate".to_owned()))
            .say("paragraph."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("Another");
    terminal.press("/agents\r");
    terminal.sees("no sub-agents in this session");
    terminal.press("/show 1\r");
    terminal.sees("no results yet");
    machine.model.release("gate");
    terminal.sees("Another paragraph.");
    terminal.sees_prompt();
    for columns in [80, 60] {
        terminal.resize(columns);
        terminal.sees("Another paragraph.");
        terminal.sees_prompt();
        let screen = terminal.screen();
        for once in [
            "One paragraph.",
            "Another paragraph.",
            "no sub-agents",
            "› /agents",
        ] {
            assert_eq!(screen.matches(once).count(), 1, "{once}\n{screen}");
        }
    }
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

/// An image of one red pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0,
    0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0xc9, 0xfe, 0x92, 0xef, 0, 0, 0, 0, b'I',
    b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn images_are_drawn_where_the_terminal_says_that_it_can() {
    // What the terminal answers, how much is typed before, and whether an image is drawn.
    for (answer, before, is_drawn) in [
        ("\u{1b}[?62;4;22c", "", true),
        ("\u{1b}[?62;4;22c", "lo", true),
        ("\u{1b}[?62;22c", "lo", false),
        ("", "lo", false),
    ] {
        let machine = Machine::new(vec![
            call("call_1", "Read", json!({"file_path": "dot.png"})),
            Turn::text("Seen."),
        ]);
        machine.context.write("project/dot.png", PIXEL);
        let mut terminal = Terminal::answering(None, &machine, &["chat"], 80, &[]);
        terminal.sees_prompt();
        let asked = "\u{1b}[c";
        terminal.until_bytes(asked, |bytes| bytes.contains(asked));
        terminal.press(before);
        terminal.press(answer);
        let rest = "look".strip_prefix(before).unwrap();
        terminal.press(rest);
        // Nothing of the answer is in the input.
        terminal.until("the input", |screen| {
            screen.lines().any(|line| line.trim_end() == "› look")
        });
        terminal.press("\r");
        terminal.sees("Seen.");
        terminal.sees_prompt();
        let drawn = "\u{1b}P0;1q\"1;1;1;1#0;2;100;0;0#0@-\u{1b}\\";
        assert_eq!(terminal.bytes().contains(drawn), is_drawn, "{answer:?}");
        let is_saved = terminal.screen().contains("saved to");
        assert_eq!(is_saved, !is_drawn, "{}", terminal.screen());
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn a_resize_is_noticed_while_the_terminal_owes_an_answer() {
    let machine = Machine::new(Vec::new());
    let mut terminal = Terminal::answering(None, &machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    terminal.until_bytes("the question", |bytes| bytes.contains("\u{1b}[c"));
    terminal.resize(50);
    terminal.until_bytes("the screen in its new width", |bytes| {
        bytes.contains("\u{1b}[H\u{1b}[J")
    });
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}
