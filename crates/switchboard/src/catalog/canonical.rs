//! Compares tool definitions by the parts that a model or a permission depends on, ignoring key order and whitespace.
//!
//! Equal bytes are equal. Otherwise each part is converted to a canonical form with sorted keys and compared. A part
//! with a duplicate key has no canonical form, because parsers differ in which value they use: it equals only identical
//! bytes. The same applies to parts nested too deeply.

use std::fmt;

use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Cursor, Malformed};

use super::tool::field;
use crate::json::SharedJson;

/// A pinned part of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Description for the model.
    Description,
    /// JSON Schema of the arguments.
    InputSchema,
    /// JSON Schema of the structured result.
    OutputSchema,
    /// Behaviour hints.
    Annotations,
    /// Display name.
    Title,
}

impl Part {
    /// All parts, most important first.
    pub const ALL: [Part; 5] = [
        Part::Description,
        Part::InputSchema,
        Part::OutputSchema,
        Part::Annotations,
        Part::Title,
    ];

    /// Field name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Description => "description",
            Part::InputSchema => "inputSchema",
            Part::OutputSchema => "outputSchema",
            Part::Annotations => "annotations",
            Part::Title => "title",
        }
    }

    /// Returns the part of a definition; `None` if absent or null.
    pub(crate) fn of(self, definition: &str) -> Option<&RawValue> {
        field(definition, self.name()).filter(|value| value.get() != "null")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Returns the parts in which two definitions differ.
pub(crate) fn differences(before: &SharedJson, now: &SharedJson) -> Vec<Part> {
    if before == now {
        return Vec::new();
    }
    let (before, now) = (before.as_str(), now.as_str());
    let differs = |part: &Part| match (part.of(before), part.of(now)) {
        (None, None) => false,
        (Some(before), Some(now)) => {
            before.get() != now.get()
                && !matches!((canonical(before.get()), canonical(now.get())), (Some(before), Some(now)) if before == now)
        }
        _ => true,
    };
    let mut parts: Vec<Part> = Part::ALL.into_iter().filter(differs).collect();
    // Parsers disagree on duplicate keys, so every part counts as changed.
    if parts.is_empty() && (has_twins(before) || has_twins(now)) {
        parts.extend(Part::ALL.into_iter().filter(|part| part.of(now).is_some()));
    }
    parts
}

/// Returns the canonical form of a value; `None` if it has none.
pub(crate) fn canonical(json: &str) -> Option<String> {
    let mut form = String::with_capacity(json.len());
    write(&mut Cursor::new(json), &mut form, MAX_DEPTH)?;
    Some(form)
}

/// Values nested deeper have no canonical form.
const MAX_DEPTH: usize = 128;

fn write(cursor: &mut Cursor<'_>, form: &mut String, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match cursor.peek() {
        b'{' => {
            let mut members = members(cursor).ok()?;
            members.sort_unstable_by(|left, right| left.0.cmp(&right.0));
            if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return None;
            }
            form.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    form.push(',');
                }
                form.push_str(&serde_json::to_string(key).ok()?);
                form.push(':');
                write(&mut Cursor::new(value), form, depth)?;
            }
            form.push('}');
        }
        b'[' => {
            cursor.enter(b'[').ok()?;
            form.push('[');
            let mut is_first = true;
            while cursor.next_item().ok()? {
                if !std::mem::take(&mut is_first) {
                    form.push(',');
                }
                write(cursor, form, depth)?;
            }
            form.push(']');
        }
        b'"' => {
            let text = cursor.string().ok()?.decode();
            form.push_str(&serde_json::to_string(&text).ok()?);
        }
        _ => form.push_str(cursor.value().ok()?),
    }
    Some(())
}

fn has_twins(definition: &str) -> bool {
    let Ok(mut members) = members(&mut Cursor::new(definition)) else {
        return true;
    };
    members.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    members.windows(2).any(|pair| pair[0].0 == pair[1].0)
}

fn members<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(String, &'a str)>, Malformed> {
    let mut members = Vec::new();
    cursor.enter(b'{')?;
    while let Some(key) = cursor.next_key()? {
        let key = key.decode().into_owned();
        members.push((key, cursor.value()?));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: &str, now: &str, expected: &[Part]) {
        let shared = |text: &str| {
            SharedJson::from(serde_json::from_str::<Box<RawValue>>(text).expect("JSON"))
        };
        assert_eq!(
            differences(&shared(before), &shared(now)),
            expected,
            "{before}\n{now}"
        );
    }

    #[test]
    fn order_and_space_do_not_count_and_everything_else_does() {
        let base = r#"{"name":"t","description":"a","inputSchema":{"type":"object","properties":{"x":{"type":"string"},"y":{}}}}"#;
        check(base, base, &[]);
        check(
            base,
            r#"{ "inputSchema": {"properties": {"y":{}, "x": {"type": "string"}}, "type":"object"}, "description":"\u0061", "name":"t" }"#,
            &[],
        );
        check(base, &base.replace("\"a\"", "\"b\""), &[Part::Description]);
        check(base, &base.replace("\"x\"", "\"z\""), &[Part::InputSchema]);
        check(
            base,
            &base.replace(r#""name""#, r#""title":null,"annotations":{},"name""#),
            &[Part::Annotations],
        );
        check(
            base,
            &base.replace(r#""name""#, r#""title":"T","outputSchema":{},"name""#),
            &[Part::OutputSchema, Part::Title],
        );
        // Fields that are never shown may change.
        check(
            base,
            &base.replace(r#""name""#, r#""_meta":{"at":1},"name""#),
            &[],
        );
        // The order of an array is significant.
        check(
            r#"{"inputSchema":{"required":["a","b"]}}"#,
            r#"{"inputSchema":{"required":["b","a"]}}"#,
            &[Part::InputSchema],
        );
        check(
            r#"{"inputSchema":{"minimum":1}}"#,
            r#"{"inputSchema":{"minimum":1.0}}"#,
            &[Part::InputSchema],
        );
    }

    #[test]
    fn a_key_that_stands_there_twice_is_a_change() {
        check(
            r#"{"inputSchema":{"a":1}}"#,
            r#"{"inputSchema":{"a":2,"a":1}}"#,
            &[Part::InputSchema],
        );
        check(
            r#"{"description":"good"}"#,
            r#"{"description":"evil","description":"good"}"#,
            &[Part::Description],
        );
    }

    #[test]
    fn what_is_too_deep_is_compared_by_its_bytes() {
        let deep = |space: &str| {
            let nested = format!("{}{space}{}", "[".repeat(10_000), "]".repeat(10_000));
            format!(r#"{{"inputSchema":{nested}}}"#)
        };
        let shared =
            |text: String| SharedJson::from(switchboard_protocol::trusted(&text).expect("JSON"));
        assert_eq!(differences(&shared(deep("")), &shared(deep(""))), []);
        assert_eq!(
            differences(&shared(deep("")), &shared(deep(" "))),
            [Part::InputSchema]
        );
    }

    #[test]
    fn the_form_is_sorted() {
        let value = json!({"b": [1, {"d": 1, "c": "é\n"}], "a": null});
        let form = canonical(&format!("{value:#}"));
        assert_eq!(
            form.as_deref(),
            Some(r#"{"a":null,"b":[1,{"c":"é\n","d":1}]}"#)
        );
    }
}
