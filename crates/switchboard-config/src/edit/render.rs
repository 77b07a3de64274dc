//! Renders keys and values in the syntax of each format.

use std::fmt::Write as _;

use crate::format::Format;
use crate::tree::{Member, Node, Value};

/// Maximum width of a single-line list of scalars.
const LINE_WIDTH: usize = 100;

/// Notation used at one place of a file.
#[derive(Debug, Clone)]
pub(super) struct Style {
    pub(super) format: Format,
    pub(super) newline: &'static str,
    /// Indentation unit.
    pub(super) unit: String,
    /// Between key and value, such as `: `.
    pub(super) assign: String,
    /// Between members on one line, such as `, `.
    pub(super) separator: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Spread {
    OneLine,
    Lines,
}

impl Style {
    pub(super) fn new(format: Format, newline: &'static str, unit: String) -> Self {
        let assign = match format {
            Format::Json => ": ",
            Format::Toml | Format::Hcl | Format::Yaml => " = ",
        };
        Self {
            format,
            newline,
            unit,
            assign: assign.to_owned(),
            separator: ", ".to_owned(),
        }
    }

    /// Renders `key = value`; the key may be dotted.
    pub(super) fn member(
        &self,
        path: &[&str],
        value: &Node<'_>,
        indent: &str,
        spread: Spread,
    ) -> String {
        let key = self.key_path(path);
        let value = self.value(value, indent, spread);
        format!("{key}{}{value}", self.assign)
    }

    /// Renders a dotted key.
    pub(super) fn key_path(&self, path: &[&str]) -> String {
        let keys: Vec<_> = path.iter().map(|key| self.key(key)).collect();
        keys.join(".")
    }

    fn key(&self, key: &str) -> String {
        let bare = match self.format {
            Format::Toml => is_bare_toml_key(key),
            Format::Hcl => is_hcl_name(key) && !HCL_WORDS.contains(&key),
            Format::Json | Format::Yaml => false,
        };
        if bare { key.to_owned() } else { quoted(key) }
    }

    /// Renders a value; further lines are indented by at least `indent`.
    pub(super) fn value(&self, node: &Node<'_>, indent: &str, spread: Spread) -> String {
        match &node.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Float(value) => float(*value),
            Value::String(text) => quoted(text),
            Value::Array(elements) => self.array(elements, indent, spread),
            Value::Table(members) => self.table(members, indent, spread),
        }
    }

    fn array(&self, elements: &[Node<'_>], indent: &str, spread: Spread) -> String {
        let one_line = || {
            let elements: Vec<_> = elements
                .iter()
                .map(|element| self.value(element, indent, Spread::OneLine))
                .collect();
            format!("[{}]", elements.join(&self.separator))
        };
        if spread == Spread::OneLine || self.format == Format::Toml || elements.is_empty() {
            return one_line();
        }
        if elements.iter().all(is_plain) {
            let line = one_line();
            if line.len() + indent.len() <= LINE_WIDTH {
                return line;
            }
        }
        let inner = format!("{indent}{}", self.unit);
        let lines = elements
            .iter()
            .map(|element| format!("{inner}{}", self.value(element, &inner, spread)));
        self.lines('[', lines, ",", indent, ']')
    }

    fn table(&self, members: &[Member<'_>], indent: &str, spread: Spread) -> String {
        if members.is_empty() {
            return "{}".to_owned();
        }
        if spread == Spread::OneLine || self.format == Format::Toml {
            let members: Vec<_> = members
                .iter()
                .map(|member| self.member(&[&member.key], &member.value, indent, Spread::OneLine))
                .collect();
            let padding = if self.format == Format::Json { "" } else { " " };
            return format!("{{{padding}{}{padding}}}", members.join(&self.separator));
        }
        let inner = format!("{indent}{}", self.unit);
        let lines = members.iter().map(|member| {
            let member = self.member(&[&member.key], &member.value, &inner, spread);
            format!("{inner}{member}")
        });
        let separator = if self.format == Format::Json { "," } else { "" };
        self.lines('{', lines, separator, indent, '}')
    }

    fn lines(
        &self,
        open: char,
        lines: impl Iterator<Item = String>,
        separator: &str,
        indent: &str,
        close: char,
    ) -> String {
        let lines: Vec<_> = lines.collect();
        let newline = self.newline;
        let lines = lines.join(&format!("{separator}{newline}"));
        format!("{open}{newline}{lines}{newline}{indent}{close}")
    }
}

/// Wraps the value in one table per key.
pub(super) fn nested<'a>(path: &[&'a str], value: &Node<'a>) -> Node<'a> {
    path.iter()
        .rev()
        .fold(value.clone(), |inner, key| Node::table([(*key, inner)]))
}

/// Whether the key is a valid HCL identifier.
pub(super) fn is_hcl_name(key: &str) -> bool {
    hcl_edit::Ident::try_new(key).is_ok()
}

/// Quotes a text, with the escapes that TOML, JSON and HCL share.
pub(super) fn quoted(text: &str) -> String {
    let mut result = String::with_capacity(text.len() + 2);
    result.push('"');
    for character in text.chars() {
        match character {
            '"' => result.push_str("\\\""),
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            // Control characters are invisible, and not allowed in most places.
            other if other.is_control() => {
                let _ = write!(result, "\\u{:04x}", u32::from(other));
            }
            other => result.push(other),
        }
    }
    result.push('"');
    result
}

/// Keywords that cannot be the first key of an HCL object.
const HCL_WORDS: [&str; 6] = ["for", "if", "in", "null", "true", "false"];

fn is_bare_toml_key(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn is_plain(node: &Node<'_>) -> bool {
    !matches!(node.value, Value::Array(_) | Value::Table(_))
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else {
        format!("{value:?}")
    }
}
