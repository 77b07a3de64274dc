//! Property tests: an edit changes only its key, in any file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "edit_properties/generate.rs"]
mod generate;

use generate::{Choices, Document, document};
use proptest::prelude::*;
use serde_json::json;
use switchboard_config::edit::{Edit, apply};
use switchboard_config::format::{self, Format};
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::tree::{Node, Value};

const MARK: char = '\u{feff}';
const FORMATS: [Format; 3] = [Format::Toml, Format::Json, Format::Hcl];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn setting_a_key_that_is_there_changes_its_lines_only(bytes in choices()) {
        let (document, mut choices) = start(bytes);
        let Some(key) = pick(&document.keys, &mut choices) else { return Ok(()) };
        let path: Vec<&str> = key.path.iter().map(String::as_str).collect();
        let value = if needs_table(&document, &path) {
            Node::table([("url", choices.value(1)), ("env", Node::table([("X y", choices.value(0))]))])
        } else {
            choices.value(2)
        };
        let edit = Edit::Set { path: &path, value: value.clone() };
        let after = match apply(&document.text, document.format, &edit) {
            Ok(after) => after,
            Err(error) => return refused(&document, &error),
        };
        prop_assert_eq!(at(&after, document.format, &path), Some(plain(&value)), "{}", after);
        check_besides(&document, &after, &path)?;
        if document.format == Format::Toml && value.as_table().is_none() {
            // A section that becomes a scalar has to move to the other scalars.
            check_others(&document, &after, key.lines.clone())?;
        } else {
            check_lines(&document, &after, key.lines.clone())?;
        }

        let again = apply(&after, document.format, &edit);
        prop_assert_eq!(again.as_ref(), Ok(&after), "setting the same again changed something");
    }

    #[test]
    fn setting_what_stands_there_changes_nothing(bytes in choices()) {
        let (document, mut choices) = start(bytes);
        let Some(key) = pick(&document.keys, &mut choices) else { return Ok(()) };
        let path: Vec<&str> = key.path.iter().map(String::as_str).collect();
        let text = document.text.trim_start_matches(MARK);
        let file = SourceFile::new("", Scope::User, text);
        let tree = format::parse(&file, document.format, &mut Vec::new()).unwrap();
        let Some(value) = tree.at(&path) else { return Ok(()) };
        let edit = Edit::Set { path: &path, value: value.clone() };
        prop_assert_eq!(apply(&document.text, document.format, &edit), Ok(document.text));
    }

    #[test]
    fn removing_a_key_removes_its_lines_only(bytes in choices()) {
        let (document, mut choices) = start(bytes);
        let Some(key) = pick(&document.keys, &mut choices) else { return Ok(()) };
        let path: Vec<&str> = key.path.iter().map(String::as_str).collect();
        let after = apply(&document.text, document.format, &Edit::Remove { path: &path });
        let after = after.map_err(|error| TestCaseError::fail(format!("{error}\n{}", document.text)))?;
        prop_assert_eq!(at(&after, document.format, &path), None, "{}", after);
        check_besides(&document, &after, &path)?;
        check_lines(&document, &after, key.lines.clone())?;
    }

    #[test]
    fn a_new_key_comes_and_goes_without_a_trace(bytes in choices()) {
        let (document, mut choices) = start(bytes);
        let Some(table) = pick(&document.tables, &mut choices) else { return Ok(()) };
        let names = match table.path.as_slice() {
            // Only servers may have arbitrary names; other HCL tables require identifiers.
            [first] if first.starts_with("mcp") => ["new", "n.e w", "\"new\"\u{e9}"],
            _ => ["new", "new-2", "new_3"],
        };
        let name = choices.one(&names);
        let path: Vec<&str> = table.path.iter().map(String::as_str).chain([name]).collect();
        let value = if needs_table(&document, &path) {
            Node::table([("command", choices.value(0)), ("env", choices.value(1))])
        } else {
            choices.value(2)
        };
        let edit = Edit::Set { path: &path, value: value.clone() };
        let after = apply(&document.text, document.format, &edit);
        let after = after.map_err(|error| TestCaseError::fail(format!("{error}\n{}", document.text)))?;
        prop_assert_eq!(at(&after, document.format, &path), Some(plain(&value)), "{}", after);
        check_besides(&document, &after, &path)?;
        if table.exact {
            let line = table.line.map_or(0..0, |line| line..line + 1);
            check_lines(&document, &after, line)?;
        }

        let back = apply(&after, document.format, &Edit::Remove { path: &path });
        let back = back.map_err(|error| TestCaseError::fail(format!("{error}\n{after}")))?;
        // In a file of only blank lines, one of them is removed with the key.
        let is_blank = document.text.trim_start_matches(MARK).trim().is_empty();
        if table.exact && !is_blank {
            prop_assert_eq!(back, document.text, "\n{}", after);
        } else {
            check_besides(&document, &back, &path)?;
        }
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

fn start(bytes: Vec<u8>) -> (Document, Choices) {
    let mut choices = Choices::new(bytes);
    let format = choices.one(&FORMATS);
    let document = document(format, &mut choices);
    (document, choices)
}

fn pick<'d, T>(of: &'d [T], choices: &mut Choices) -> Option<&'d T> {
    (!of.is_empty()).then(|| &of[choices.below(of.len())])
}

/// A server is a block in HCL and a section in TOML, so it must be a table.
fn needs_table(document: &Document, path: &[&str]) -> bool {
    document.format != Format::Json && path.len() == 2 && path[0] == "mcp_servers"
}

/// HCL blocks accept only identifiers, so an odd key may be rejected, but nothing else.
fn refused(
    document: &Document,
    error: &switchboard_config::edit::EditError,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(document.format, Format::Hcl, "{}\n{}", error, document.text);
    prop_assert!(
        error.to_string().contains("cannot be the name"),
        "{}\n{}",
        error,
        document.text
    );
    Ok(())
}

/// Checks that both texts are equal outside the path.
fn check_besides(document: &Document, after: &str, path: &[&str]) -> Result<(), TestCaseError> {
    let mut old = tree(&document.text, document.format);
    let mut new = tree(after, document.format);
    cut(&mut old, path);
    cut(&mut new, path);
    prop_assert_eq!(old, new, "\n{}\n----\n{}", document.text, after);
    Ok(())
}

/// Checks that all lines outside the key are preserved, in order and byte for byte.
///
/// Two exceptions: one blank line next to the key, and in JSON the comma on the line before it.
fn check_lines(
    document: &Document,
    after: &str,
    key: std::ops::Range<usize>,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(document.text.starts_with(MARK), after.starts_with(MARK));
    let old: Vec<&str> = document.text.trim_start_matches(MARK).split('\n').collect();
    let new: Vec<&str> = after.trim_start_matches(MARK).split('\n').collect();
    let same = |index: usize, line: &str, other: &str| {
        let comma = document.format != Format::Toml && (key.is_empty() || index < key.start);
        line == other || (comma && without_comma(line) == without_comma(other)) || {
            // The terminator of a last line may be added or removed.
            let last = index + 1 == old.len() || index + 2 >= key.start;
            last && line.trim_end_matches('\r') == other.trim_end_matches('\r')
        }
    };
    let blank = |index: usize| old.get(index).is_some_and(|line| line.trim().is_empty());
    let start = if key.start > 0 && blank(key.start - 1) {
        key.start - 1
    } else {
        key.start
    };
    let end = if blank(key.end) { key.end + 1 } else { key.end };
    // An object that loses its only member is collapsed.
    let above = (0..start).rev().find(|index| !blank(*index));
    let below = (end..old.len()).find(|index| !blank(*index));
    let (start, end) = match (document.format, above, below) {
        (Format::Json | Format::Hcl, Some(above), Some(below))
            if old[above].trim_end().ends_with('{') && old[below].trim_start().starts_with('}') =>
        {
            (above, below + 1)
        }
        _ => (start, end),
    };
    let head = old
        .iter()
        .zip(&new)
        .enumerate()
        .take_while(|(index, (line, other))| same(*index, line, other))
        .count();
    // A new key may be inserted between any two lines.
    let (start, end) = if key.is_empty() {
        (head, head)
    } else {
        (start, end)
    };
    let tail = (old.iter().enumerate().rev())
        .zip(new.iter().rev())
        .take(old.len().min(new.len()).saturating_sub(start))
        .take_while(|((index, line), other)| same(*index, line, other))
        .count();
    let inside = start <= head && old.len() - end <= tail;
    prop_assert!(
        inside,
        "the key stands on {:?}, and lines {}..{} differ\n{}\n----\n{}",
        key,
        head,
        old.len() - tail,
        document.text,
        after
    );
    Ok(())
}

/// Checks that all lines outside the key are preserved, in order, possibly with others in between.
fn check_others(
    document: &Document,
    after: &str,
    key: std::ops::Range<usize>,
) -> Result<(), TestCaseError> {
    let mut new = after.trim_start_matches(MARK).lines();
    for (index, line) in document.text.trim_start_matches(MARK).lines().enumerate() {
        if !key.contains(&index) && !line.trim().is_empty() {
            prop_assert!(new.any(|other| other == line), "{line} is gone\n{after}");
        }
    }
    Ok(())
}

/// Removes the last comma outside a comment.
fn without_comma(line: &str) -> String {
    let code = line.split(" // ").next().unwrap_or(line);
    let code = code.split(" # ").next().unwrap_or(code);
    let (code, comment) = line.split_at(code.len());
    let carriage = if code.ends_with('\r') { "\r" } else { "" };
    let code = code.trim_end();
    format!(
        "{}{carriage}{comment}",
        code.strip_suffix(',').unwrap_or(code)
    )
}

/// The tree of a text as JSON, with HCL servers by name.
fn tree(text: &str, format: Format) -> serde_json::Value {
    let text = text.trim_start_matches(MARK);
    let file = SourceFile::new("", Scope::User, text);
    let mut diagnostics = Vec::new();
    let tree = format::parse(&file, format, &mut diagnostics);
    assert_eq!(diagnostics, Vec::new(), "{text}");
    let mut tree = plain(&tree.unwrap());
    if let (Format::Hcl, Some(servers)) = (format, tree.get_mut("mcp_servers")) {
        let tables = match servers.take() {
            serde_json::Value::Array(tables) => tables,
            table => vec![table],
        };
        let mut named = serde_json::Map::new();
        for mut table in tables {
            match table.as_object_mut().unwrap().remove("name") {
                Some(name) => {
                    named.insert(name.as_str().unwrap().to_owned(), table);
                }
                None => named.extend(table.as_object().unwrap().clone()),
            }
        }
        *servers = named.into();
    }
    tree
}

fn plain(node: &Node<'_>) -> serde_json::Value {
    match &node.value {
        Value::Null => json!(null),
        Value::Bool(value) => json!(value),
        Value::Integer(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::String(text) => json!(text),
        Value::Array(elements) => elements.iter().map(plain).collect(),
        Value::Table(members) => members
            .iter()
            .map(|member| (member.key.to_string(), plain(&member.value)))
            .collect(),
    }
}

/// The value at a path.
fn at(text: &str, format: Format, path: &[&str]) -> Option<serde_json::Value> {
    let tree = tree(text, format);
    path.iter()
        .try_fold(&tree, |value, key| value.get(key))
        .cloned()
}

/// Removes a path, and tables that become empty.
fn cut(value: &mut serde_json::Value, path: &[&str]) {
    let (Some((key, rest)), Some(members)) = (path.split_first(), value.as_object_mut()) else {
        return;
    };
    if let Some(member) = members.get_mut(*key) {
        cut(member, rest);
        if rest.is_empty() || member.as_object().is_some_and(serde_json::Map::is_empty) {
            members.remove(*key);
        }
    }
}
