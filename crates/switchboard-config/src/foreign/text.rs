//! Serializes trees as JSON, TOML and YAML, for new files. `edit` changes existing files.

use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::format::Format;
use crate::tree::{Node, Value};

pub(crate) fn write(format: Format, root: &Node<'_>) -> String {
    match format {
        // TOML has no null, and exports never contain one.
        Format::Toml => toml::to_string(&Plain(root)).unwrap_or_default(),
        Format::Yaml => yaml(root),
        Format::Json | Format::Hcl => {
            let mut text = serde_json::to_string_pretty(&Plain(root)).unwrap_or_default();
            text.push('\n');
            text
        }
    }
}

/// Serde adapter for a tree.
struct Plain<'n, 'a>(&'n Node<'a>);

impl Serialize for Plain<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Integer(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    list.serialize_element(&Plain(element))?;
                }
                list.end()
            }
            Value::Table(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for member in members {
                    map.serialize_entry(member.key.as_ref(), &Plain(&member.value))?;
                }
                map.end()
            }
        }
    }
}

fn yaml(root: &Node<'_>) -> String {
    let mut text = String::new();
    yaml_block(root, 0, &mut text);
    text
}

/// Writes a table or a list with one member per line.
fn yaml_block(node: &Node<'_>, indent: usize, text: &mut String) {
    match &node.value {
        Value::Table(members) if !members.is_empty() => {
            for (index, member) in members.iter().enumerate() {
                // The first member of a list element follows the dash.
                if index > 0 || text.is_empty() || text.ends_with('\n') {
                    text.push_str(&"  ".repeat(indent));
                }
                yaml_text(&member.key, text);
                text.push(':');
                yaml_inner(&member.value, indent + 1, text);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                text.push_str(&"  ".repeat(indent));
                text.push('-');
                match element.as_table() {
                    Some(members) if !members.is_empty() => {
                        text.push(' ');
                        yaml_block(element, indent + 1, text);
                    }
                    _ => yaml_inner(element, indent + 1, text),
                }
            }
        }
        _ => yaml_inner(node, indent, text),
    }
}

/// Writes the value after a colon or a dash.
fn yaml_inner(node: &Node<'_>, indent: usize, text: &mut String) {
    match &node.value {
        Value::Table(members) if !members.is_empty() => {
            text.push('\n');
            yaml_block(node, indent, text);
            return;
        }
        Value::Array(elements) if !elements.is_empty() => {
            text.push('\n');
            yaml_block(node, indent, text);
            return;
        }
        _ => text.push(' '),
    }
    match &node.value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Integer(value) => text.push_str(&value.to_string()),
        Value::Float(value) => text.push_str(&float(*value)),
        Value::String(string) => yaml_text(string, text),
        Value::Array(_) => text.push_str("[]"),
        Value::Table(_) => text.push_str("{}"),
    }
    text.push('\n');
}

/// Writes a text, quoted unless it is unambiguous.
fn yaml_text(string: &str, text: &mut String) {
    let is_letter =
        |character: char| character.is_ascii_alphabetic() || matches!(character, '_' | '/');
    let is_inner =
        |character: char| character.is_ascii_alphanumeric() || "_-./@+".contains(character);
    // Words that some YAML version parses as a boolean or a number.
    let is_word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(string));
    if string.starts_with(is_letter) && string.chars().all(is_inner) && !is_word {
        text.push_str(string);
        return;
    }
    text.push('"');
    for character in string.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            // Line separators and the byte order mark are not control characters, but YAML treats them specially.
            '\u{2028}' | '\u{2029}' | '\u{feff}' => push_escaped(character, text),
            control if control.is_control() => push_escaped(control, text),
            plain => text.push(plain),
        }
    }
    text.push('"');
}

fn push_escaped(character: char, text: &mut String) {
    // Writing to a `String` cannot fail.
    let _ = write!(text, "\\u{:04x}", u32::from(character));
}

/// A number that YAML cannot read as an integer.
fn float(value: f64) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Node<'static> {
        let env = Node::table([
            ("A", Node::detached("yes")),
            ("B C", Node::detached("x: \"#\"\n")),
        ]);
        let args = [
            Node::detached("-y"),
            Node::detached("1"),
            Node::detached("@scope/name"),
        ];
        let entry = Node::table([
            ("command", Node::detached("npx")),
            (
                "args",
                Node::detached(args.into_iter().collect::<Value<'_>>()),
            ),
            ("env", env),
            ("timeout", Node::detached(1.5)),
            ("none", Node::detached(Value::Table(Vec::new()))),
        ]);
        let list = [Node::table([
            ("name", Node::detached("n")),
            ("args", Node::detached(Value::Array(Vec::new()))),
        ])];
        Node::table([
            ("servers", Node::table([("a.b", entry)])),
            (
                "list",
                Node::detached(list.into_iter().collect::<Value<'_>>()),
            ),
        ])
    }

    #[test]
    fn files_look_as_a_person_would_write_them() {
        insta::assert_snapshot!("yaml", write(Format::Yaml, &sample()));
        insta::assert_snapshot!("toml", write(Format::Toml, &sample()));
        insta::assert_snapshot!("json", write(Format::Json, &sample()));
    }

    proptest! {
        #[test]
        fn any_text_survives_yaml(key in "\\PC{0,12}", value in any::<String>(), word in "[a-z0-9~.:-]{0,4}") {
            let element = [Node::detached(word.clone())];
            let root = Node::table([
                (key.clone(), Node::detached(value.clone())),
                (format!("{key}2"), Node::detached(element.into_iter().collect::<Value<'_>>())),
            ]);
            let read: serde_json::Value = serde_saphyr::from_str(&write(Format::Yaml, &root)).unwrap();
            prop_assert_eq!(read, serde_json::json!({ key.clone(): value, format!("{key}2"): [word] }));
        }
    }
}
