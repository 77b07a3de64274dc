//! Tests of edits in YAML files.

use super::*;

fn entry() -> Node<'static> {
    Node::table([
        ("name", Node::detached("switchboard")),
        ("cmd", Node::detached("switchboard")),
        (
            "args",
            Node::detached(
                [Node::detached("connect")]
                    .into_iter()
                    .collect::<Value<'_>>(),
            ),
        ),
    ])
}

/// Adds the entry, checks the text, removes it again, and checks that the file is as before.
fn check(is_list: bool, text: &str, expected: &str) {
    let key = if is_list { "mcpServers" } else { "extensions" };
    for (newline, text, expected) in [
        ("LF", text.to_owned(), expected.to_owned()),
        (
            "CRLF",
            text.replace('\n', "\r\n"),
            expected.replace('\n', "\r\n"),
        ),
    ] {
        let added = set(&text, key, is_list, "switchboard", &entry());
        assert_eq!(
            added.as_deref(),
            Some(expected.as_str()),
            "{newline}: {text}"
        );
        let again = set(&expected, key, is_list, "switchboard", &entry());
        assert!(again.is_some(), "{newline}: {expected}");
        let had_key = text.contains(key);
        let removed = remove(&expected, key, "switchboard", !had_key);
        if text.contains("{}") || text.contains("[]") || text.trim_end().ends_with(':') {
            assert!(removed.is_some(), "{newline}: {expected}");
        } else {
            assert_eq!(removed.as_deref(), Some(text.as_str()), "{newline}");
        }
    }
}

const TABLE: &str =
    "  switchboard:\n    name: switchboard\n    cmd: switchboard\n    args:\n      - connect\n";
const LIST: &str = "  - name: switchboard\n    cmd: switchboard\n    args:\n      - connect\n";

#[test]
fn a_table_gets_an_entry() {
    check(false, "a: 1\n", &format!("a: 1\nextensions:\n{TABLE}"));
    check(
        false,
        "# head\nextensions: # mine\n  # about dev\n  dev:\n    type: builtin\n\nlast: |\n  text\n",
        &format!(
            "# head\nextensions: # mine\n{TABLE}  # about dev\n  dev:\n    type: builtin\n\nlast: |\n  text\n"
        ),
    );
    check(
        false,
        "extensions:\n  dev: {type: builtin}",
        &format!("extensions:\n{TABLE}  dev: {{type: builtin}}"),
    );
    check(
        false,
        "extensions: {}\nx: 1\n",
        &format!("extensions:\n{TABLE}x: 1\n"),
    );
    check(
        false,
        "extensions: {} # none\nx: 1\n",
        &format!("extensions: # none\n{TABLE}x: 1\n"),
    );
    check(false, "extensions:\n", &format!("extensions:\n{TABLE}"));
    check(
        false,
        "extensions: {dev: {type: builtin}}\n",
        "extensions: {\"switchboard\": {\"args\":[\"connect\"],\"cmd\":\"switchboard\",\"name\":\"switchboard\"}, dev: {type: builtin}}\n",
    );
}

#[test]
fn a_list_gets_an_entry() {
    check(true, "name: x\n", &format!("name: x\nmcpServers:\n{LIST}"));
    check(
        true,
        "mcpServers:\n  - name: a\n    command: x\nrules: []\n",
        &format!("mcpServers:\n{LIST}  - name: a\n    command: x\nrules: []\n"),
    );
    let flush = LIST.replace("\n  ", "\n").trim_start().to_owned();
    check(
        true,
        "mcpServers:\n- name: a\n  command: x\nrules:\n- b\n",
        &format!("mcpServers:\n{flush}- name: a\n  command: x\nrules:\n- b\n"),
    );
    check(
        true,
        "mcpServers:\n  -\n    name: a\n    command: x\n",
        &format!("mcpServers:\n{LIST}  -\n    name: a\n    command: x\n"),
    );
}

#[test]
fn an_entry_is_removed_with_its_comment_and_nothing_else() {
    let check = |text: &str, name: &str, expected: Option<&str>| {
        let removed = remove(text, "extensions", name, false);
        assert_eq!(removed.as_deref(), expected, "{text}");
    };
    check(
        "extensions:\n  # about a\n  a:\n    cmd: |\n      x\n\n      y\n    # inside\n\n  # about b\n  b:\n    cmd: y\n",
        "a",
        Some("extensions:\n\n  # about b\n  b:\n    cmd: y\n"),
    );
    check(
        "extensions:\n  a:\n    cmd: x\n  b:\n    cmd: y\nrest: 1\n",
        "b",
        Some("extensions:\n  a:\n    cmd: x\nrest: 1\n"),
    );
    check(
        "extensions: # c\n  a:\n    cmd: x\nrest: 1",
        "a",
        Some("extensions: {} # c\nrest: 1"),
    );
    check(
        "extensions: {a: {cmd: x}, b: {cmd: y}}\n",
        "a",
        Some("extensions: {b: {cmd: y}}\n"),
    );
    // The end of the last entry in braces is not known.
    check("extensions: {a: {cmd: x}}\n", "a", None);
    check("extensions:\n  a: {cmd: x}\n", "c", None);
    check("extensions:\n  - name: a\n  - name: a\n", "a", None);
}

#[test]
fn what_cannot_be_edited_safely_is_left_alone() {
    for text in [
        "{extensions: {}, a: 1}\n",
        "extensions: text\n",
        "a: 1\n---\nb: 2\n",
        "a: 1\n...\n",
        "a: [1\n",
        "- a\n",
        "base: &b\n  dev: {}\nextensions: *b\n",
    ] {
        let changed = set(text, "extensions", false, "switchboard", &entry());
        assert_eq!(changed, None, "{text}");
    }
}
