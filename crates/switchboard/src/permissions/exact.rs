//! Compares the complete arguments of a call.

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Cursor, Malformed};

/// The exact arguments that a call must have. `None` equals nothing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exact(Option<Value>);

impl Exact {
    /// Parses arguments. Invalid JSON and duplicate keys equal nothing.
    pub(super) fn new(text: &str) -> Self {
        Self(value(text))
    }

    /// The arguments of a call.
    pub(super) fn of(arguments: Option<&RawValue>) -> Self {
        Self::new(arguments.map_or("{}", RawValue::get))
    }

    /// Whether a call has these arguments; `unclear` if they cannot be compared.
    pub(super) fn holds(&self, arguments: Option<&RawValue>, unclear: bool) -> bool {
        let found = Self::of(arguments);
        match (&self.0, &found.0) {
            (Some(meant), Some(found)) => meant == found,
            _ => unclear,
        }
    }

    /// The arguments as one line of JSON; `None` if they cannot be compared at all.
    pub(super) fn text(&self) -> Option<String> {
        self.0.as_ref().map(Value::to_string)
    }
}

/// Parses an unambiguous value: programs disagree on duplicate keys.
fn value(text: &str) -> Option<Value> {
    let value = serde_json::from_str(text).ok()?;
    has_unique_keys(text).ok()?.then_some(value)
}

/// Whether no object in a JSON text has duplicate keys.
fn has_unique_keys(text: &str) -> Result<bool, Malformed> {
    let mut left = vec![text];
    while let Some(text) = left.pop() {
        let mut cursor = Cursor::new(text);
        match cursor.peek() {
            b'{' => {
                let mut keys = std::collections::HashSet::new();
                cursor.enter(b'{')?;
                while let Some(key) = cursor.next_key()? {
                    if !keys.insert(key.decode().into_owned()) {
                        return Ok(false);
                    }
                    left.push(cursor.value()?);
                }
            }
            b'[' => {
                cursor.enter(b'[')?;
                while cursor.next_item()? {
                    left.push(cursor.value()?);
                }
            }
            _ => {}
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_compared_as_a_whole() {
        let check = |meant: &str, found: &str, narrow: bool, generous: bool| {
            let raw: Box<RawValue> = serde_json::from_str(found).unwrap();
            let exact = Exact::new(meant);
            assert_eq!(exact.holds(Some(&raw), false), narrow, "{meant} {found}");
            assert_eq!(exact.holds(Some(&raw), true), generous, "{meant} {found}");
        };
        check(r#"{"a":1,"b":[2]}"#, r#"{"b": [2], "a": 1}"#, true, true);
        check(r#"{"a":"x"}"#, r#"{"\u0061":"\u0078"}"#, true, true);
        check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false, false);
        check(r#"{"a":1,"b":2}"#, r#"{"a":1}"#, false, false);
        check(r#"{"a":1}"#, r#"{"a":"1"}"#, false, false);
        // Servers differ in which of the two they use.
        check(r#"{"a":1}"#, r#"{"a":2,"a":1}"#, false, true);
        check(r#"{"a":{"b":1}}"#, r#"{"a":{"b":1,"b":1}}"#, false, true);
        let twice_in_list = r#"{"a":[{"b":1,"b":1}]}"#;
        check(r#"{"a":[{"b":1}]}"#, twice_in_list, false, true);
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        check("{}", &deep, false, true);
        assert!(Exact::new("{}").holds(None, false));
    }
}
