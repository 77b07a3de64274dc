//! Approvals, results and views of a chat, at several widths.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::json;
use switchboard_test::model::Turn;

use crate::chat::Machine;
use crate::servers::configure;
use crate::support::TestContext;
use crate::terminal::{ASKED, Terminal, call, steady};

const WIDTHS: [u16; 3] = [60, 100, 200];

/// A number of lines, with the word in singular or plural.
fn numbered(word: &str, count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|line| format!("{word} {line}\n")).collect();
    lines.concat()
}

/// A server whose tools need no approval.
fn shop(context: &TestContext) {
    configure(context, &[("shop", "")]);
    let rule = "[[permissions.rules]]\ntool = \"mcp__shop\"\naction = \"allow\"\n";
    let file = context.read("config/mcp.toml");
    context.write("config/mcp.toml", file + rule);
}

/// The result that the model got for its first call.
fn result(machine: &Machine) -> String {
    machine.model.requests()[1].body["messages"][2].to_string()
}

#[test]
fn an_approval_shows_a_change_and_what_each_answer_grants() {
    for columns in WIDTHS {
        let lines = numbered("line", 40);
        let machine = Machine::new(vec![
            call(
                "call_1",
                "Edit",
                json!({"file_path": "a.txt", "old_string": "line 5\n", "new_string": "line five\nand a much longer line that does not fit into sixty columns\n"}),
            ),
            Turn::text("Done."),
        ]);
        machine.context.write("project/a.txt", &lines);
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees_prompt();
        terminal.press("go\r");
        terminal.sees(ASKED);
        // The running time of the call is on the screen, too.
        let screen = steady(&machine, &terminal.screen());
        let (_, panel) = screen.split_once("call Edit?\n").unwrap();
        // The words of the grants have the path of the test's folder.
        let (change, answers) = panel.split_once("\n  y  once\n").unwrap();
        insta::assert_snapshot!(format!("approval_{columns}"), change);
        for words in [
            "  s  until this program ends: Edit of",
            "  e  edit the arguments",
        ] {
            assert!(answers.contains(words), "{answers}");
        }
        terminal.press("\r");
        terminal.sees("Done.");
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
        assert_eq!(machine.context.read("project/a.txt"), lines);
        assert!(result(&machine).contains("the user said no"));
    }
}

#[test]
fn answers_fit_the_terminal_with_all_of_their_words() {
    for columns in WIDTHS {
        let machine = Machine::with_desk(
            "",
            "",
            vec![
                call(
                    "call_1",
                    "mcp__desk__echo",
                    json!({"text": "to be said ".repeat(12)}),
                ),
                Turn::text("Fine."),
            ],
        );
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees_prompt();
        terminal.press("go\r");
        terminal.sees(ASKED);
        let screen = steady(&machine, &terminal.screen());
        let (_, panel) = screen.split_once("call echo").unwrap();
        insta::assert_snapshot!(format!("answers_{columns}"), panel);
        terminal.press("n");
        terminal.sees("Fine.");
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
    }
}

/// A model that reads three files at once, each of which needs an approval.
fn three_reads() -> Machine {
    let mut turn = Turn::new();
    for (number, path) in ["a.txt", "b.txt", "c.txt"].iter().enumerate() {
        let id = format!("call_{number}");
        turn = turn.call(&id, "mcp__workspace__read_file", json!({ "path": path }));
    }
    let machine = Machine::new(vec![turn, Turn::text("Fine.")]);
    let rule = "[[permissions.rules]]\ntool = \"mcp__workspace__read_file\"\naction = \"ask\"\n";
    machine.context.write("config/mcp.toml", rule);
    for (file, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        machine.context.write(&format!("project/{file}.txt"), text);
    }
    machine
}

/// The results that the model got, in the order of its calls.
fn results(machine: &Machine) -> Vec<String> {
    let request = machine.model.requests()[1].body["messages"][2].clone();
    let results = request["content"].as_array().unwrap().iter();
    results
        .map(|result| result["content"].to_string())
        .collect()
}

#[test]
fn calls_that_wait_are_looked_through() {
    let machine = three_reads();
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("call 1 of 3 that wait");
    terminal.sees("path: a.txt");
    terminal.press("\u{1b}[C");
    terminal.sees("call 2 of 3 that wait");
    terminal.sees("path: b.txt");
    // Answers the second one, and comes back to the first.
    terminal.press("n");
    terminal.sees("call 1 of 2 that wait");
    terminal.sees("path: a.txt");
    terminal.press("\u{1b}[D");
    terminal.sees("path: c.txt");
    terminal.press("\u{1b}[D");
    terminal.sees("path: a.txt");
    terminal.press("y");
    terminal.until("the last call", |screen| {
        screen.contains("path: c.txt") && !screen.contains("that wait")
    });
    terminal.press("y");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let results = results(&machine);
    assert!(results[0].contains("one"), "{results:?}");
    assert!(results[1].contains("the user said no"), "{results:?}");
    assert!(results[2].contains("three"), "{results:?}");
}

#[test]
fn a_grant_answers_the_calls_that_wait_and_that_it_covers() {
    let machine = three_reads();
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("call 1 of 3 that wait");
    // From another call than the one that opened the prompt.
    terminal.press("\u{1b}[C");
    terminal.sees("path: b.txt");
    terminal.press("w");
    terminal.sees("s  until this program ends: read_file of workspace, with any arguments");
    terminal.press("s");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let results = results(&machine);
    for (result, text) in results.iter().zip(["one", "two", "three"]) {
        assert!(result.contains(text), "{results:?}");
    }
}

#[test]
fn a_refusal_tells_the_model_why() {
    let machine = Machine::new(vec![
        call("call_1", "Bash", json!({"command": "rm -r build"})),
        Turn::text("Fine."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees(ASKED);
    terminal.press("r");
    terminal.sees("tell the model ›");
    // Escape goes back to the answers.
    terminal.press("\u{1b}");
    terminal.sees(ASKED);
    terminal.press("r");
    terminal.sees("tell the model ›");
    terminal.press("use cargo clean\r");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let answer = result(&machine);
    assert!(
        answer.contains("the user said no: use cargo clean"),
        "{answer}"
    );
}

#[test]
fn edited_arguments_are_shown_before_they_are_approved() {
    let machine = Machine::with_desk(
        "",
        "",
        vec![
            call("call_1", "mcp__desk__echo", json!({"text": "hi"})),
            Turn::text("Fine."),
        ],
    );
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("call echo of server desk?  its hints are not trusted");
    terminal.sees(ASKED);
    terminal.press("e");
    terminal.sees("\"text\": \"hi\"");
    // To the end of the second line, before the quote.
    terminal.press("\u{1b}[A\u{5}\u{1b}[D there");
    terminal.sees("\"text\": \"hi there\"");
    terminal.press("\r");
    terminal.sees("text: hi there");
    terminal.sees(ASKED);
    assert_eq!(machine.model.requests().len(), 1);
    terminal.press("y");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert!(result(&machine).contains("hi there"));
}

#[test]
fn a_long_call_is_approved_only_after_it_was_shown() {
    let script = numbered("echo step", 80);
    let machine = Machine::new(vec![
        call("call_1", "Bash", json!({ "command": script })),
        Turn::text("Fine."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("v  show all of it");
    assert!(!terminal.screen().contains("echo step 50"));
    terminal.press("y");
    terminal.sees("part of the call is not shown: press v and scroll to its end first");
    // Its beginning alone does not count.
    terminal.press("v");
    terminal.sees("call Bash  1–");
    terminal.press("q");
    terminal.sees(ASKED);
    terminal.press("y");
    terminal.until("a second warning", |screen| {
        screen.matches("scroll to its end first").count() == 2
    });
    terminal.press("v");
    terminal.sees("call Bash  1–");
    terminal.press("G");
    terminal.sees("echo step 79");
    terminal.press("q");
    terminal.sees(ASKED);
    // The pager leaves nothing behind, and the call can be looked at again.
    let screen = terminal.screen();
    assert!(!screen.contains("echo step 50"), "{screen}");
    terminal.sees("v  show all of it");
    terminal.press("y");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert!(result(&machine).contains("step 79"));
}

#[test]
fn results_are_folded_and_shown_in_full() {
    let machine = Machine::new(vec![
        call("call_1", "mcp__shop__data", json!({})),
        call("call_2", "mcp__shop__picture", json!({})),
        call("call_3", "Read", json!({"file_path": "long.txt"})),
        Turn::text("Done."),
    ]);
    let context = &machine.context;
    shop(context);
    let lines = numbered("entry", 200);
    context.write("project/long.txt", lines);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("Done.");
    terminal.sees_prompt();
    let screen = terminal.screen();
    for expected in [
        "● shop/data",
        "  z: 1\n  a: 18446744073709551616\n",
        "  [image/png, 5 B]\n  two of them\n",
        "/show 3",
    ] {
        assert!(screen.contains(expected), "{expected} in\n{screen}");
    }
    let saved = screen.lines().filter(|line| line.contains("saved to"));
    assert_eq!(saved.count(), 2, "{screen}");
    // Ctrl-O shows the last result on a screen of its own, and the conversation comes back.
    terminal.press("\u{f}");
    terminal.sees("result 3: Read  long.txt");
    terminal.press("G");
    terminal.sees("entry 199");
    terminal.press("q");
    terminal.sees_prompt();
    assert_eq!(terminal.screen(), screen);
    terminal.press("/show 1\r");
    terminal.until("the result again", |screen| {
        screen.matches("z: 1").count() == 2
    });
    terminal.sees_prompt();
    terminal.press("/show 9\r");
    terminal.sees("/show takes a number from 1 to 3");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn hostile_results_cannot_move_the_cursor() {
    let machine = Machine::new(vec![
        call("call_1", "mcp__shop__paint", json!({})),
        Turn::text("Done."),
    ]);
    shop(&machine.context);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("Done.");
    terminal.sees_prompt();
    terminal.press("/show 1\r");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    let bytes = terminal.bytes();
    assert_eq!(terminal.end().0, Some(0));
    assert!(
        !bytes.contains("\u{1b}]0;") && !bytes.contains("\u{1b}[2J"),
        "{bytes:?}"
    );
}

#[test]
fn the_view_of_servers_leads_to_their_tools_and_states() {
    for columns in WIDTHS {
        let machine = Machine::with_desk(
            "",
            "[mcp_servers.off]\ncommand = \"none\"\nenabled = false\n",
            Vec::new(),
        );
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees("1/1 servers");
        terminal.press("/mcp\r");
        terminal.sees("❯ desk");
        let screen = steady(&machine, &terminal.screen());
        let (_, view) = screen.split_once("› /mcp\n").unwrap();
        insta::assert_snapshot!(format!("servers_{columns}"), view);
        terminal.press("\r");
        terminal.sees("❯ t  tools");
        // Back to the list, to the other one by its name.
        terminal.press("\u{1b}");
        terminal.sees("❯ desk");
        terminal.press("off");
        terminal.sees("❯ off");
        terminal.press("\r");
        terminal.sees("❯ e  enable");
        terminal.press("\u{1b}");
        terminal.sees("❯ off");
        terminal.press("\u{1b}\u{1b}");
        terminal.sees_prompt();
        terminal.press("/mcp\r");
        terminal.sees("❯ desk");
        terminal.press("\r");
        terminal.sees("❯ t  tools");
        terminal.press("\r");
        terminal.sees("tools of desk");
        let screen = steady(&machine, &terminal.screen());
        let (_, view) = screen.rsplit_once("› /mcp\n").unwrap();
        insta::assert_snapshot!(format!("tools_{columns}"), view);
        // Back to the server, to its log and back.
        terminal.press("\u{1b}");
        terminal.sees("❯ t  tools");
        terminal.press("l");
        terminal.sees("log of desk  1–");
        terminal.press("q");
        terminal.sees("❯ t  tools");
        terminal.press("\r");
        terminal.sees("❯ ask");
        terminal.press("visit\r");
        terminal.sees("switchboard call desk/visit");
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn a_long_reason_in_the_view_of_servers_ends_with_an_ellipsis() {
    let name = "a-program-that-does-not-exist-".repeat(8);
    let entry = format!("[mcp_servers.broken]\ncommand = \"{name}\"\n");
    for columns in WIDTHS {
        let machine = Machine::with_desk("", &entry, vec![Turn::text("Fine.")]);
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees("broken failed");
        terminal.press("/mcp\r");
        terminal.sees("❯ broken");
        let screen = terminal.screen();
        let row = screen.lines().find(|line| line.starts_with("❯ broken"));
        assert!(row.is_some_and(|row| row.ends_with('…')), "{screen}");
        terminal.press("\u{1b}");
        terminal.sees_prompt();
        // A warning is set off from the answer.
        terminal.press("go\r");
        terminal.sees("Fine.");
        let screen = terminal.screen();
        assert!(screen.contains("doctor broken`\n\nFine."), "{screen}");
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn a_session_is_chosen_from_a_list_and_its_text_is_shown() {
    let machine = Machine::new(vec![
        Turn::text("Rome is **old**."),
        Turn::text("Oslo is north."),
        Turn::text("Very old."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    terminal.press("tell me about Rome\r");
    terminal.sees("Rome is");
    terminal.sees_prompt();
    terminal.press("/new\r");
    terminal.sees("new session");
    terminal.sees_prompt();
    terminal.press("and Oslo?\r");
    terminal.sees("Oslo is north.");
    terminal.sees_prompt();
    terminal.press("/resume\r");
    terminal.sees("tell me about Rome  1 message");
    terminal.press("rome");
    terminal.sees("filter: rome");
    terminal.press("\r");
    terminal.until("the earlier text", |screen| {
        screen.matches("› tell me about Rome").count() == 2
            && screen.matches("Rome is **old**.").count() == 2
    });
    terminal.sees("resumed");
    terminal.sees_prompt();
    terminal.press("how old?\r");
    terminal.sees("Very old.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let request = machine.model.requests()[2].body["messages"].to_string();
    assert!(
        request.contains("Rome") && !request.contains("Oslo"),
        "{request}"
    );
}

#[test]
fn a_theme_changes_the_colours_and_is_kept() {
    let machine = Machine::new(vec![Turn::text("a `b`"), Turn::text("a `b`")]);
    let colours = [("NO_COLOR", "")];
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &colours);
    terminal.sees_prompt();
    terminal.press("/theme pink\r");
    terminal.sees("use one of dark, light, high-contrast, none");
    terminal.sees_prompt();
    terminal.press("/theme light\r");
    terminal.sees("theme: light");
    terminal.sees_prompt();
    assert!(
        terminal.bytes().contains("\u{1b}[38;5;25m"),
        "{:?}",
        terminal.bytes()
    );
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &colours);
    terminal.sees_prompt();
    assert!(
        terminal.bytes().contains("\u{1b}[38;5;25m"),
        "{:?}",
        terminal.bytes()
    );
    terminal.press("/theme none\r");
    terminal.sees("theme: none");
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("a b");
    terminal.sees_prompt();
    let bytes = terminal.bytes();
    let (_, after) = bytes.rsplit_once("theme: none").unwrap();
    for style in ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[36m", "\u{1b}[38;"] {
        assert!(!after.contains(style), "{after:?}");
    }
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn the_first_screen_and_the_menu_fit() {
    for columns in WIDTHS {
        let machine = Machine::with_desk("", "", Vec::new());
        let mut terminal = Terminal::start(&machine, &["chat"], columns, &[]);
        terminal.sees("1/1 servers");
        terminal.press("/m");
        terminal.sees("❯ /mcp");
        terminal.sees("/mcp__desk__review");
        insta::assert_snapshot!(
            format!("first_screen_{columns}"),
            steady(&machine, &terminal.screen())
        );
        terminal.press("\u{3}");
        terminal.sees_prompt();
        terminal.press("\u{4}");
        assert_eq!(terminal.end().0, Some(0));
    }
}

#[test]
fn the_time_of_a_call_stops_while_it_waits_for_an_answer() {
    let machine = Machine::new(vec![
        call("call_1", "Bash", json!({"command": "pwd"})),
        Turn::text("Fine."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees(ASKED);
    let spins = RefCell::new(Vec::new());
    let times = RefCell::new(BTreeSet::new());
    // The spinner turns ten times a second.
    terminal.until("two turns of the spinner", |screen| {
        let Some(line) = screen.lines().find(|line| line.contains(" Bash  pwd  ")) else {
            return false;
        };
        let (spin, time) = line.split_once(" Bash  pwd  ").unwrap();
        let mut spins = spins.borrow_mut();
        // What was drawn just before the question may still be there.
        if spins.len() > 3 {
            times.borrow_mut().insert(time.to_owned());
        }
        if spins.last().is_none_or(|last| last != spin) {
            spins.push(spin.to_owned());
        }
        spins.len() > 20
    });
    assert_eq!(times.borrow().len(), 1, "{times:?}");
    terminal.press("n");
    terminal.sees("Fine.");
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}
