//! Masks the secrets of a client's file for a preview of its changes.

use std::ops::Range;
use std::path::Path;

use crate::expand::is_only_references;
use crate::format::{Format, parse};
use crate::mask;
use crate::scope::Scope;
use crate::secret::MASK;
use crate::source::SourceFile;
use crate::tree::{Node, Value};

/// Keys of tables whose values are secret whatever their names: environment variables and headers.
const SECRET_TABLES: [&str; 8] = [
    "env",
    "envs",
    "environment",
    "headers",
    "http_headers",
    "oauth",
    "auth",
    "requestOptions",
];

/// The text with every value masked that can be a secret: environment variables, headers, tokens in arguments and
/// addresses, values of keys that sound secret. Line breaks inside of a masked value are lost.
///
/// The caller still passes each shown line through [`mask::text`], for comments.
pub fn masked(path: &Path, format: Format, text: &str) -> String {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = SourceFile::new(path, Scope::Dynamic, body);
    let Some(root) = parse(&source, format, &mut Vec::new()) else {
        return mask::text(body);
    };
    let mut places = Vec::new();
    collect(&root, false, body, &mut places);
    places.sort_by_key(|(range, _): &(Range<usize>, String)| range.start);
    let mut shown = String::with_capacity(body.len());
    let mut done = 0;
    for (range, replacement) in places {
        if range.start < done {
            continue;
        }
        shown.push_str(body.get(done..range.start).unwrap_or_default());
        shown.push_str(&replacement);
        done = range.end;
    }
    shown.push_str(body.get(done..).unwrap_or_default());
    shown
}

/// Collects the values to replace. `is_secret`: everything below is secret.
fn collect(node: &Node<'_>, is_secret: bool, text: &str, places: &mut Vec<(Range<usize>, String)>) {
    match &node.value {
        Value::Table(members) => {
            for member in members {
                let is_table = member.value.as_table().is_some();
                let is_secret = is_secret
                    || is_table && SECRET_TABLES.contains(&&*member.key)
                    || !is_table && mask::sounds_secret(&member.key);
                collect(&member.value, is_secret, text, places);
            }
        }
        Value::Array(elements) => {
            let texts: Option<Vec<String>> = elements
                .iter()
                .map(|element| element.as_str().map(str::to_owned))
                .collect();
            let Some(texts) = texts.filter(|_| !is_secret) else {
                for element in elements {
                    collect(element, is_secret, text, places);
                }
                return;
            };
            for ((element, before), after) in
                elements.iter().zip(&texts).zip(mask::arguments(&texts))
            {
                if *before != after {
                    replace(element, &after, text, places);
                }
            }
        }
        Value::String(value) if is_secret && (value.is_empty() || is_only_references(value)) => {}
        Value::String(_) | Value::Integer(_) | Value::Float(_) if is_secret => {
            replace(node, MASK, text, places);
        }
        Value::String(value) => {
            let after = if value.contains("://") {
                mask::url(value)
            } else {
                mask::argument(value)
            };
            if after != *value {
                replace(node, &after, text, places);
            }
        }
        _ => {}
    }
}

/// Replaces a value; its quotes stay.
fn replace(node: &Node<'_>, with: &str, text: &str, places: &mut Vec<(Range<usize>, String)>) {
    let (start, end) = (node.span.start as usize, node.span.end as usize);
    let raw = text.get(start..end).unwrap_or_default();
    let quote = raw
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''));
    let shown = match quote {
        Some(quote) => format!("{quote}{with}{quote}"),
        None => with.to_owned(),
    };
    places.push((start..end, shown));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, text: &str, expected: &str) {
        assert_eq!(masked(Path::new("x"), format, text), expected);
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        check(
            Format::Json,
            r#"{"s": {"command": "npx", "env": {"REGION": "eu", "T": "${T}", "N": 7}, "args": ["--token", "abc", "x"], "url": "https://me:pw@host/"}, "apiKey": "k"}"#,
            r#"{"s": {"command": "npx", "env": {"REGION": "********", "T": "${T}", "N": ********}, "args": ["--token", "********", "x"], "url": "https://********@host/"}, "apiKey": "********"}"#,
        );
        check(
            Format::Toml,
            "[s]\ncommand = 'npx' # c\nenv = { A = 'x' }\n[s.http_headers]\nX = \"\"\"\nmany\nlines\"\"\"\n",
            "[s]\ncommand = 'npx' # c\nenv = { A = '********' }\n[s.http_headers]\nX = \"********\"\n",
        );
        check(
            Format::Yaml,
            "s:\n  cmd: npx\n  envs:\n    A: plain\n    B: \"quoted\"\n  args:\n    - --api-key\n    - abc\n",
            "s:\n  cmd: npx\n  envs:\n    A: ********\n    B: \"********\"\n  args:\n    - --api-key\n    - ********\n",
        );
    }
}
