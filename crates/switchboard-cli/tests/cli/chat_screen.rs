//! How a chat feels: typing while it works, menus, pastes, streaming, resizing.

use serde_json::json;
use switchboard_test::model::{Step, Turn};

use crate::chat::Machine;
use crate::terminal::{ASKED, Terminal, call};

#[test]
fn servers_connect_while_the_user_types() {
    let machine = Machine::with_desk("", "", Vec::new());
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.press("half a");
    terminal.sees("1/1 servers");
    terminal.press(" line");
    terminal.sees("› half a line");
    // Nothing was printed about it: the status line is all.
    let screen = terminal.screen();
    assert_eq!(screen.matches("desk").count(), 1, "{screen}");
    terminal.press("\u{15}/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn streaming_writes_little_more_than_the_text() {
    let sentence = "The quick brown fox jumps over the lazy dog. ";
    let mut turn = Turn::new();
    for piece in 0..40 {
        let end = if piece % 8 == 7 { "\n\n" } else { "" };
        turn = turn
            .say(format!("{piece}: {sentence}{end}"))
            .step(Step::Wait(format!("gate {piece}")));
    }
    let machine = Machine::new(vec![turn]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("0: The quick");
    let before = terminal.bytes().len();
    let mut text = 0;
    for piece in 0..39 {
        machine.model.release(&format!("gate {piece}"));
        let shown = format!("{}: The", piece + 1);
        terminal.until(&shown, |screen| {
            // A line break may be anywhere.
            screen
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(&shown)
        });
        text += shown.len() + sentence.len() - 4;
    }
    let written = terminal.bytes().len() - before;
    assert!(written <= 3 * text, "{written} bytes for {text}");
    machine.model.release("gate 39");
    terminal.sees_prompt();
    let screen = terminal.screen();
    assert_eq!(
        screen.matches("lazy dog").count() + screen.matches("lazy\ndog").count(),
        40
    );
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_line_typed_during_a_turn_waits_and_escape_interrupts() {
    let machine = Machine::new(vec![
        Turn::text("a long story").step(Step::Wait("for ever".to_owned())),
        Turn::text("The second answer."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("first\r");
    terminal.sees("a long story");
    terminal.sees("esc interrupts");
    terminal.press("second\r");
    terminal.sees("queued: second");
    terminal.press("third");
    terminal.sees("› third");
    terminal.press("\u{1b}");
    terminal.sees("interrupted; the text so far is saved");
    terminal.sees("The second answer.");
    // What was being typed is still there.
    terminal.sees("› third");
    machine.runtime.block_on(machine.model.abandoned(1));
    assert!(machine.user_message(1).contains("second"));
    terminal.sees_idle();
    terminal.press("\u{3}");
    terminal.sees_prompt();
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_question_waits_while_the_user_types() {
    let machine = Machine::new(vec![
        call("call_1", "Bash", json!({"command": "pwd"})).step(Step::Wait("typed".to_owned())),
        Turn::text("Fine."),
    ]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("esc interrupts");
    terminal.press("yes, yes");
    terminal.sees("› yes, yes");
    machine.model.release("typed");
    terminal.sees("a call of Bash waits for your answer: tab answers");
    // These letters would answer the question.
    terminal.press("y y");
    terminal.sees("› yes, yesy y");
    terminal.press("\t");
    terminal.sees(ASKED);
    terminal.press("n");
    terminal.sees("Fine.");
    terminal.sees_idle();
    terminal.sees("› yes, yesy y");
    terminal.press("\u{3}");
    terminal.sees_prompt();
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, Some(0));
    let answer = machine.model.requests()[1].body["messages"][2].to_string();
    assert!(answer.contains("the user said no"), "{answer}");
}

#[test]
fn menus_find_commands_files_and_resources() {
    let machine = Machine::with_desk("", "", vec![Turn::text("Read.")]);
    machine
        .context
        .write("project/src/main.rs", "fn main() {}\n");
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees("1/1 servers");
    terminal.press("/");
    terminal.sees("❯ /help");
    terminal.press("rsm");
    terminal.sees("❯ /resume  resume a session");
    terminal.press("\u{1b}");
    terminal.until("no menu", |screen| !screen.contains("resume a session"));
    terminal.press("\u{15}see @mrs");
    terminal.sees("❯ @src/main.rs");
    terminal.press("\t");
    terminal.sees("› see @src/main.rs");
    terminal.press("and @note");
    terminal.sees("❯ @desk:desk://note  note");
    // Enter completes what was begun and selected, and does not send it.
    terminal.press("\u{1b}[B\r");
    terminal.sees("and @desk:desk://note");
    terminal.press("\r");
    terminal.sees("Read.");
    terminal.sees_prompt();
    let message = machine.user_message(0);
    assert!(
        message.contains("<file path=\"src/main.rs\">\nfn main() {}"),
        "{message}"
    );
    assert!(message.contains("remember the milk"), "{message}");
    terminal.press("/ex\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn pasted_blocks_are_folded_and_alt_enter_breaks_lines() {
    let machine = Machine::new(vec![Turn::text("Read.")]);
    let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
    terminal.sees_prompt();
    terminal.press("look:\u{1b}\r");
    let block = "a line of the log\r".repeat(60);
    terminal.press(&format!("\u{1b}[200~{block}\u{1b}[201~"));
    terminal.sees("[60 lines]");
    terminal.press(" ok?\r");
    terminal.sees("Read.");
    terminal.sees_prompt();
    let screen = terminal.screen();
    assert!(screen.contains("› look:\n  [60 lines] ok?"), "{screen}");
    let message = machine.user_message(0);
    let expected = format!("look:\n{} ok?", "a line of the log\n".repeat(60));
    assert!(message.contains(&expected), "{message}");
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_resize_wraps_the_text_again() {
    let text = "one two three four five six seven eight nine ten ".repeat(4);
    let machine = Machine::new(vec![Turn::text(text.trim())]);
    let mut terminal = Terminal::start(&machine, &["chat"], 100, &[]);
    terminal.sees_prompt();
    terminal.press("go\r");
    terminal.sees("nine ten");
    terminal.sees_prompt();
    let widest = |screen: &str| {
        let rows = screen.lines().filter(|row| row.contains("one two"));
        rows.map(str::len).max().unwrap_or_default()
    };
    assert!(widest(&terminal.screen()) > 60);
    terminal.resize(60);
    terminal.until("narrow rows", |screen| (40..60).contains(&widest(screen)));
    let words = |screen: String| screen.matches("seven").count();
    assert_eq!(words(terminal.screen()), 4);
    terminal.resize(100);
    terminal.until("wide rows", |screen| widest(screen) > 60);
    assert_eq!(words(terminal.screen()), 4);
    terminal.sees_prompt();
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn the_terminal_is_left_as_it_was() {
    let machine = Machine::new(Vec::new());
    for keys in ["/exit\r", "\u{4}", "\u{3}\u{3}"] {
        let mut terminal = Terminal::start(&machine, &["chat"], 80, &[]);
        terminal.sees_prompt();
        assert!(
            terminal.keeps_output(),
            "a key would discard a part of the screen"
        );
        for key in keys.chars() {
            terminal.press(&key.to_string());
            if key == '\u{3}' {
                terminal.until("its effect", |screen| {
                    screen.contains("again leaves") || !screen.contains('›')
                });
            }
        }
        assert!(terminal.ends_with_echo(), "{keys:?}");
    }
}

#[test]
fn the_theme_follows_the_background_that_the_terminal_reports() {
    let machine = Machine::new(Vec::new());
    for (background, current) in [("0;15", "●  light"), ("15;0", "●  dark"), ("x", "●  dark")]
    {
        let environment = [("COLORFGBG", background)];
        let mut terminal = Terminal::start(&machine, &["chat"], 80, &environment);
        terminal.sees_prompt();
        terminal.press("/theme\r");
        terminal.sees(current);
        terminal.sees_prompt();
        terminal.press("/exit\r");
        assert_eq!(terminal.end().0, Some(0));
    }
}
