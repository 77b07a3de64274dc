//! Keys and the text they leave.

use super::*;

fn input() -> Input {
    Input::new(History::load(std::path::PathBuf::from(
        "/nonexistent/history",
    )))
}

/// Presses keys: `<…>` names a key, `^x` is Ctrl-x.
fn press(input: &mut Input, keys: &str) -> Edited {
    let mut edited = Edited::Unused;
    let mut characters = keys.chars();
    while let Some(character) = characters.next() {
        let (code, modifiers) = match character {
            '<' => {
                let name: String = characters
                    .by_ref()
                    .take_while(|each| *each != '>')
                    .collect();
                match name.as_str() {
                    "enter" => (KeyCode::Enter, KeyModifiers::NONE),
                    "alt-enter" => (KeyCode::Enter, KeyModifiers::ALT),
                    "esc" => (KeyCode::Esc, KeyModifiers::NONE),
                    "back" => (KeyCode::Backspace, KeyModifiers::NONE),
                    "left" => (KeyCode::Left, KeyModifiers::NONE),
                    "up" => (KeyCode::Up, KeyModifiers::NONE),
                    "down" => (KeyCode::Down, KeyModifiers::NONE),
                    other => panic!("no key {other}"),
                }
            }
            '^' => (
                KeyCode::Char(characters.next().unwrap()),
                KeyModifiers::CONTROL,
            ),
            other => (KeyCode::Char(other), KeyModifiers::NONE),
        };
        edited = input.key(KeyEvent::new(code, modifiers));
    }
    edited
}

#[test]
fn keys_edit_the_text() {
    for (keys, expected) in [
        ("hello<back>p", "hellp"),
        ("one two^w", "one "),
        ("one two^a^k^y^y", "one twoone two"),
        ("one^ux^_^_", "one"),
        ("a<alt-enter>b", "a\nb"),
        ("a\\<enter>b", "a\\\nb"),
        ("```<enter>code", "```\ncode"),
        ("ab<alt-enter>cd<up>x", "abx\ncd"),
        ("ab<left>x", "axb"),
        ("漢字<back>", "漢"),
        ("a\u{1b}\u{202e}b", "ab"),
    ] {
        let mut input = input();
        press(&mut input, keys);
        assert_eq!(input.text().0.replace('\u{202e}', ""), expected, "{keys}");
    }
    let mut typed = input();
    assert_eq!(press(&mut typed, "hi<enter>"), Edited::Submitted);
    assert_eq!(typed.take(), "hi");
    let mut typed = input();
    press(&mut typed, "a \\<enter>b");
    assert_eq!(typed.take(), "a \nb");
}

#[test]
fn vi_keys_edit_the_text() {
    for (keys, expected) in [
        ("one two three<esc>bdw", "one two "),
        ("one two<esc>0cwx<esc>", "x two"),
        ("one two<esc>02x", "e two"),
        ("one two<esc>0dfe", " two"),
        ("one<esc>oto<esc>kdd", "to"),
        ("one two<esc>0wD", "one "),
        ("one<esc>rxiy", "onyx"),
        ("one two<esc>bywP", "one twotwo"),
        ("one<esc>xu", "one"),
    ] {
        let mut input = input();
        assert!(input.toggle_vi());
        press(&mut input, keys);
        assert_eq!(input.text().0.trim_start_matches('\n'), expected, "{keys}");
    }
}

#[test]
fn long_pastes_are_folded_and_sent_whole() {
    let mut input = input();
    press(&mut input, "see ");
    let pasted = "line\r\n".repeat(60);
    input.paste(&pasted);
    press(&mut input, " ok");
    let (rows, cursor) = input.rows(80);
    let text: String = rows
        .iter()
        .flatten()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(text, "› see [60 lines] ok");
    assert_eq!(cursor, (0, 19));
    assert_eq!(input.take(), format!("see {} ok", "line\n".repeat(60)));
    // Backspace removes a folded paste as a whole; a short paste stays as it is.
    input.paste(&pasted);
    press(&mut input, "<back>");
    assert!(input.is_empty());
    input.paste("two\nlines");
    assert_eq!(input.text().0, "two\nlines");
    // A character that would stand for a paste cannot be typed.
    let mut forged = self::input();
    forged.paste("\u{F0000}\u{1b}x");
    assert_eq!(forged.text().0, "x");
}

#[test]
fn the_cursor_is_found_in_wrapped_rows() {
    let mut input = input();
    press(&mut input, "abcdefghijkl");
    assert_eq!(input.rows(11).1, (1, 6));
    press(&mut input, "^a");
    assert_eq!(input.rows(11).1, (0, 2));
    let mut long = self::input();
    press(&mut long, &"x<alt-enter>".repeat(30));
    let (rows, cursor) = long.rows(40);
    assert_eq!((rows.len(), cursor), (10, (9, 2)));
}

#[test]
fn earlier_inputs_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    let mut input = Input::new(History::load(file.clone()));
    for text in ["first", "second", " secret"] {
        press(&mut input, text);
        input.take();
    }
    press(&mut input, "now<up>");
    assert_eq!(input.text().0, "second");
    press(&mut input, "<up><up>");
    assert_eq!(input.text().0, "first");
    press(&mut input, "<down><down>");
    assert_eq!(input.text().0, "now");
    let again = History::load(file);
    assert_eq!(again.latest(), ["second", "first"]);
}
