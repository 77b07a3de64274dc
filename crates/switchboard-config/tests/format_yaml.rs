//! Tests of the YAML parser.

use serde_json::json;
use switchboard_config::diagnostic::Diagnostic;
use switchboard_config::format::{self, Format};
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::tree::{Node, Value};

/// Checks the tree and the findings of a text.
#[track_caller]
fn check(text: &str, expected: impl Into<Option<serde_json::Value>>, findings: &[&str]) {
    let file = SourceFile::new("goose.yaml", Scope::User, text);
    let mut diagnostics = Vec::new();
    let tree = format::parse(&file, Format::Yaml, &mut diagnostics);
    let found: Vec<_> = diagnostics.iter().map(Diagnostic::to_string).collect();
    assert_eq!(tree.as_ref().map(plain), expected.into(), "{text}");
    assert_eq!(found, findings, "{text}");
}

fn plain(node: &Node<'_>) -> serde_json::Value {
    match &node.value {
        Value::Null => json!(null),
        Value::Bool(value) => json!(value),
        Value::Integer(value) => json!(value),
        // JSON has no infinity, and does not distinguish 1 from 1.0.
        Value::Float(value) => json!(format!("float {value:?}")),
        Value::String(text) => json!(text),
        Value::Array(elements) => elements.iter().map(plain).collect(),
        Value::Table(members) => members
            .iter()
            .map(|member| (member.key.to_string(), plain(&member.value)))
            .collect(),
    }
}

#[test]
fn scalars_have_the_types_of_yaml_1_2() {
    for (text, expected) in [
        ("1", json!(1)),
        ("-5", json!(-5)),
        ("012", json!(12)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("1.5", json!("float 1.5")),
        ("1e3", json!("float 1000.0")),
        (".inf", json!("float inf")),
        (".nan", json!("float NaN")),
        ("18446744073709551615", json!("float 1.8446744073709552e19")),
        ("true", json!(true)),
        ("False", json!(false)),
        ("null", json!(null)),
        ("~", json!(null)),
        ("", json!(null)),
        ("[1, [], {}]", json!([1, [], {}])),
    ] {
        check(&format!("a: {text}\n"), json!({ "a": expected }), &[]);
    }
}

#[test]
fn text_that_looks_like_something_else_stays_text() {
    for (text, expected) in [
        ("yes", "yes"),
        ("off", "off"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("'true'", "true"),
        ("\"5\"", "5"),
        ("'null'", "null"),
        ("!!str 5", "5"),
        ("\"${HOME}/x # y\"", "${HOME}/x # y"),
        ("\"\\u00e9\\n\"", "é\n"),
        ("it's", "it's"),
        ("a:b", "a:b"),
    ] {
        check(&format!("a: {text}\n"), json!({ "a": expected }), &[]);
    }
}

#[test]
fn text_over_lines_is_kept_or_folded() {
    check(
        "a: |\n  x\n   y\n\n  z\n",
        json!({ "a": "x\n y\n\nz\n" }),
        &[],
    );
    check("a: |-\n  x\n", json!({ "a": "x" }), &[]);
    check("a: >\n  x\n  y\n\n  z\n", json!({ "a": "x y\nz\n" }), &[]);
    check("a: x\n  y\n", json!({ "a": "x y" }), &[]);
    check(
        "a: |\r\n  x\r\n  y\r\nb: 1\r\n",
        json!({ "a": "x\ny\n", "b": 1 }),
        &[],
    );
}

#[test]
fn anchors_aliases_and_merge_keys_are_expanded() {
    check(
        "base: &base\n  cmd: npx\n  timeout: 5\na: *base\nb:\n  <<: *base\n  timeout: 7\n",
        json!({
            "base": { "cmd": "npx", "timeout": 5 },
            "a": { "cmd": "npx", "timeout": 5 },
            "b": { "cmd": "npx", "timeout": 7 },
        }),
        &[],
    );
    check(
        "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\nall: {<<: [*one, *two], c: 3}\n",
        json!({
            "one": { "a": 1, "b": 1 },
            "two": { "b": 2, "c": 2 },
            "all": { "a": 1, "b": 1, "c": 3 },
        }),
        &[],
    );
    check("a: &k x\n*k : 1\n", json!({ "a": "x", "x": 1 }), &[]);
    check(
        "a: *nothing\n",
        None,
        &[
            "goose.yaml:1:4: alias references unknown anchor; correct the YAML here; nothing of this file is used until then",
        ],
    );
}

#[test]
fn keys_are_text() {
    check(
        "1: a\ntrue: b\nyes: c\n'q r': d\n",
        json!({ "1": "a", "true": "b", "yes": "c", "q r": "d" }),
        &[],
    );
    check(
        "a: 1\n? [b]\n: 2\n",
        None,
        &[
            "goose.yaml:2:3: a key must be text, not a list or a mapping; correct the YAML here; nothing of this file is used until then",
        ],
    );
}

#[test]
fn duplicate_keys_are_reported_and_the_first_wins() {
    check(
        "a: 1\nb: {x: 1, x: 2}\na: 3\n",
        json!({ "a": 1, "b": { "x": 1 } }),
        &[
            "goose.yaml:2:11: key `x` is defined twice; the first definition, on line 2, is used; remove or rename one of the two",
            "goose.yaml:3:1: key `a` is defined twice; the first definition, on line 1, is used; remove or rename one of the two",
        ],
    );
}

#[test]
fn files_without_content_are_empty_tables() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "\u{feff}"] {
        check(text, json!({}), &[]);
    }
}

#[test]
fn the_first_of_several_documents_is_used() {
    check(
        "---\na: 1\n---\nb: 2\n",
        json!({ "a": 1 }),
        &[
            "goose.yaml:4:1: the file has more than one document; the first one is used; move the others to separate files",
        ],
    );
}

#[test]
fn broken_files_are_refused_with_their_place() {
    for (text, finding) in [
        (
            "a:\n\tb: 1\n",
            "2:2: tabs disallowed within this context (block indentation)",
        ),
        ("é: [1\nb: 2\n", "2:2: illegal placement of ':' indicator"),
        (
            "a: 'x\n",
            "2:1: invalid indentation in multiline quoted scalar",
        ),
    ] {
        let finding = format!(
            "goose.yaml:{finding}; correct the YAML here; nothing of this file is used until then"
        );
        check(text, None, &[&finding]);
    }
}

#[test]
fn bombs_and_deep_nesting_are_refused() {
    use std::fmt::Write as _;

    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let alias = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{alias}]").unwrap();
    }
    let too_much = "the file is nested too deep, or its aliases expand to too much";
    let mut blocks = String::new();
    for level in 0..10_000 {
        writeln!(blocks, "{}a:", " ".repeat(level.min(200))).unwrap();
    }
    let long = "x".repeat(1_000_000);
    let aliases = vec!["*long"; 100].join(", ");
    let not_text = "a key must be text, not a list or a mapping";
    for (text, expected) in [
        (bomb, too_much),
        (format!("a: &long {long}\nb: [{aliases}]\n"), too_much),
        (blocks, too_much),
        (format!("{}{}", "[".repeat(200), "]".repeat(200)), too_much),
        (format!("a: {}", "{a: ".repeat(100_000)), too_much),
        ("? ".repeat(100_000), not_text),
        (
            "a: &a [*a]\n".to_owned(),
            "alias references the value that it is in",
        ),
        (
            "a:\n  <<: 5\n".to_owned(),
            "the value of `<<` must be a mapping or a list of mappings",
        ),
    ] {
        let file = SourceFile::new("goose.yaml", Scope::User, text);
        let mut diagnostics = Vec::new();
        assert_eq!(format::parse(&file, Format::Yaml, &mut diagnostics), None);
        let messages: Vec<_> = diagnostics.iter().map(|found| &found.message).collect();
        assert_eq!(messages, [expected]);
    }
}

#[test]
fn values_know_their_bytes() {
    let text = "é: ü\nargs: [-y, \"q\"]\nlong: |\n  x\n";
    let file = SourceFile::new("goose.yaml", Scope::User, text);
    let tree = format::parse(&file, Format::Yaml, &mut Vec::new()).unwrap();
    let at = |span: switchboard_config::tree::Span| &text[span.start as usize..span.end as usize];
    let members = tree.as_table().unwrap();
    let keys: Vec<_> = members.iter().map(|member| at(member.key_span)).collect();
    assert_eq!(keys, ["é", "args", "long"]);
    assert_eq!(at(members[0].value.span), "ü");
    let args = members[1].value.as_array().unwrap();
    let args: Vec<_> = args.iter().map(|element| at(element.span)).collect();
    assert_eq!(args, ["-y", "\"q\""]);
}
