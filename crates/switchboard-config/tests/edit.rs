//! Table-driven tests of edits: complete texts before and after, per format, from `tests/edit`.
//!
//! A table starts with the document shared by its cases. A case names its edit, and has either its own texts (`---
//! before`, `--- after`), or the changed lines of the shared document (`--- change`, marked with `-` and `+`). `␍`
//! stands for a carriage return, `⟨BOM⟩` for a byte order mark.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use switchboard_config::edit::{Edit, EditErrorKind, apply};
use switchboard_config::format::{self, Format};
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::tree::{Node, Value};

#[test]
fn toml_edits_change_only_the_key() {
    assert_eq!(check(Format::Toml, include_str!("edit/toml.txt")), 55);
}

#[test]
fn json_edits_change_only_the_key() {
    assert_eq!(check(Format::Json, include_str!("edit/json.txt")), 38);
}

#[test]
fn hcl_edits_change_only_the_key() {
    assert_eq!(check(Format::Hcl, include_str!("edit/hcl.txt")), 41);
}

#[test]
fn yaml_is_not_edited() {
    let edit = Edit::Remove { path: &["a"] };
    let error = apply("a: 1\n", Format::Yaml, &edit).unwrap_err();
    assert_eq!(error.kind, EditErrorKind::ReadOnlyFormat);
}

#[test]
fn values_that_a_format_cannot_hold_are_refused() {
    let set = |value: Value<'static>, format| {
        let value = Node::detached(value);
        let edit = Edit::Set {
            path: &["a"],
            value,
        };
        apply("", format, &edit).map_err(|error| error.to_string())
    };
    let only_toml = "cannot edit `a`: only TOML can write infinity and not-a-number";
    assert_eq!(
        set(f64::NAN.into(), Format::Json),
        Err(only_toml.to_owned())
    );
    assert_eq!(
        set(f64::INFINITY.into(), Format::Hcl),
        Err(only_toml.to_owned())
    );
    assert_eq!(
        set(f64::INFINITY.into(), Format::Toml),
        Ok("a = inf\n".to_owned())
    );
    assert_eq!(
        set(f64::NAN.into(), Format::Toml),
        Ok("a = nan\n".to_owned())
    );
    assert_eq!(
        set(Value::Null, Format::Toml),
        Err("cannot edit `a`: TOML has no null".to_owned())
    );
    assert_eq!(set(Value::Null, Format::Hcl), Ok("a = null\n".to_owned()));
    assert_eq!(
        set("\u{91}".into(), Format::Hcl),
        Err(
            "cannot edit `a`: HCL files cannot hold the control characters U+0091 and U+0092"
                .to_owned()
        )
    );
}

#[test]
fn deep_values_are_refused_and_numbers_keep_their_extremes() {
    let deep = (0..200).fold(Node::detached(1), |inner, _| {
        Node::detached(Value::Array(vec![inner]))
    });
    for format in [Format::Toml, Format::Json, Format::Hcl] {
        let edit = Edit::Set {
            path: &["a"],
            value: deep.clone(),
        };
        let error = apply("", format, &edit).unwrap_err();
        let expected = EditErrorKind::Unrepresentable("the value is nested too deep".to_owned());
        assert_eq!(error.kind, expected, "{format:?}");
        for number in [i64::MAX, i64::MIN, 0, -1] {
            let edit = Edit::Set {
                path: &["a"],
                value: Node::detached(number),
            };
            let text = apply("", format, &edit).unwrap();
            assert!(text.contains(&number.to_string()), "{text}");
        }
        for number in [1.0, -0.5, 1e300, 5e-324] {
            let edit = Edit::Set {
                path: &["a"],
                value: Node::detached(number),
            };
            let text = apply("", format, &edit).unwrap();
            assert!(text.contains(&format!("{number:?}")), "{text}");
        }
    }
}

#[test]
fn hostile_files_are_refused_or_edited_but_never_crash() {
    let nested =
        |open: &str, close: &str| format!("{}{}", open.repeat(20_000), close.repeat(20_000));
    let value = || Node::detached(true);
    let path = ["b"];
    for (format, text) in [
        (Format::Json, format!("{{\"a\": {}}}", nested("[", "]"))),
        (Format::Json, nested("{\"a\":", "}")),
        (Format::Toml, format!("a = {}", nested("[", "]"))),
        (Format::Toml, format!("[{}a]", "a.".repeat(20_000))),
        (Format::Hcl, format!("a = {}", nested("[", "]"))),
        (Format::Hcl, nested("a {\n", "}\n")),
    ] {
        let edit = Edit::Set {
            path: &path,
            value: value(),
        };
        let error = apply(&text, format, &edit).unwrap_err();
        assert!(
            matches!(error.kind, EditErrorKind::Syntax { .. }),
            "{error}"
        );
    }
}

#[test]
fn files_as_deep_as_the_parsers_go_are_edited() {
    let nested =
        |open: &str, close: &str, depth| format!("{}{}", open.repeat(depth), close.repeat(depth));
    for (format, text, after) in [
        (
            Format::Json,
            format!("{{\"a\": {}}}", nested("[", "]", 500)),
            "\"b\": true}",
        ),
        (
            Format::Toml,
            format!("a = {}\n", nested("[", "]", 70)),
            "\nb = true\n",
        ),
        (
            Format::Hcl,
            format!("a = {}\n", nested("[", "]", 60)),
            "\nb = true\n",
        ),
    ] {
        let edit = Edit::Set {
            path: &["b"],
            value: Node::detached(true),
        };
        let edited = apply(&text, format, &edit).unwrap();
        assert!(edited.ends_with(after), "{edited}");
    }
}

#[test]
fn an_edit_of_a_large_file_takes_a_few_passes_and_no_more() {
    use std::fmt::Write as _;

    let mut toml = String::new();
    let mut json = "{\n  \"mcp_servers\": {".to_owned();
    let mut hcl = String::new();
    for index in 0..1_000 {
        let comma = if index == 0 { "" } else { "," };
        write!(
            toml,
            "[mcp_servers.s{index}] # {index}\ncommand = \"x\"\n\n"
        )
        .unwrap();
        write!(json, "{comma}\n    \"s{index}\": {{ \"command\": \"x\" }}").unwrap();
        write!(
            hcl,
            "mcp_servers \"s{index}\" {{\n  command = \"x\"\n}}\n\n"
        )
        .unwrap();
    }
    json.push_str("\n  }\n}\n");
    let server = || {
        Node::table([
            ("command", Node::detached("y")),
            ("url", Node::detached("z")),
        ])
    };
    for (format, text) in [
        (Format::Toml, toml),
        (Format::Json, json),
        (Format::Hcl, hcl),
    ] {
        for name in ["s0", "s500", "s999", "new"] {
            let path = ["mcp_servers", name];
            let edit = Edit::Set {
                path: &path,
                value: server(),
            };
            let edited = apply(&text, format, &edit).unwrap();
            let grown = edited.len() - text.len();
            assert!(grown > 0 && grown < 100, "{format:?} {name}: {grown}");
            let removed = apply(&edited, format, &Edit::Remove { path: &path }).unwrap();
            assert!(removed.len() <= text.len(), "{format:?} {name}");
        }
    }
}

/// Runs all cases of a table and returns their number.
fn check(format: Format, table: &str) -> usize {
    let mut cases = table.split("\n=== ");
    let shared = cases.next().unwrap();
    let shared = shared.strip_prefix("=== document\n").unwrap();
    let mut count = 0;
    for case in cases {
        let (name, case) = case.split_once('\n').unwrap();
        let mut parts = case.split("--- ");
        let command = parts.next().unwrap().trim_end();
        let mut before = shared.to_owned();
        let mut expected = None;
        let mut after = None::<String>;
        for part in parts {
            let (kind, text) = part.split_once('\n').unwrap();
            match kind {
                "before" => before = decode(text),
                "after" => expected = Some(Ok(decode(text))),
                "unchanged" => expected = Some(Ok(before.clone())),
                "error" => expected = Some(Err(text.trim_end().to_owned())),
                "change" => after = Some(changed(after.as_ref().unwrap_or(&before), text)),
                other => panic!("unknown part {other} in {name}"),
            }
        }
        let expected = expected.or(after.map(Ok)).unwrap();
        let actual = run(format, &before, command).map_err(|error| error.to_string());
        assert_eq!(actual, expected, "{format:?}: {name}");
        count += 1;
    }
    count
}

/// Runs `set PATH VALUE` or `remove PATH`, with path and value as JSON.
fn run(
    format: Format,
    text: &str,
    command: &str,
) -> Result<String, switchboard_config::edit::EditError> {
    let (verb, arguments) = command.split_once(' ').unwrap();
    let mut arguments =
        serde_json::Deserializer::from_str(arguments).into_iter::<&serde_json::value::RawValue>();
    let path: Vec<String> = serde_json::from_str(arguments.next().unwrap().unwrap().get()).unwrap();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let value = arguments.next().map(|value| value.unwrap().get());
    let file = SourceFile::new("", Scope::User, value.unwrap_or("null"));
    let edit = match verb {
        "set" => Edit::Set {
            path: &path,
            value: json(&file),
        },
        "remove" => Edit::Remove { path: &path },
        other => panic!("unknown verb {other}"),
    };
    apply(text, format, &edit)
}

fn json(file: &Arc<SourceFile>) -> Node<'_> {
    format::parse(file, Format::Json, &mut Vec::new()).unwrap()
}

fn decode(text: &str) -> String {
    text.replace("⟨BOM⟩", "\u{feff}")
        .replace('␍', "\r")
        .replace("⟨no line end⟩\n", "")
}

/// Replaces the marked lines, which must occur exactly once.
fn changed(text: &str, change: &str) -> String {
    let side = |mark: char| -> String {
        let lines = change.lines().filter_map(|line| match line {
            "" => Some(""),
            line => line.strip_prefix([' ', mark]),
        });
        lines.flat_map(|line| [line, "\n"]).collect()
    };
    let (old, new) = (side('-'), side('+'));
    assert_eq!(text.matches(&old).count(), 1, "not exactly once:\n{old}");
    text.replacen(&old, &new, 1)
}
