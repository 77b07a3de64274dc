//! Replaces values that endpoints reject by valid ones.
//!
//! Shared by the wire formats: arguments that are not an object, invalid characters in names and ids, unsupported image
//! formats. The result depends only on the value, so that the prefix of a conversation is identical in every request.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::message::Image;

/// Key that wraps arguments that are not a JSON object.
pub(super) const UNREADABLE: &str = "unreadable_arguments";

/// Returns the arguments if they are an object, else wraps them as text, so that the model sees its mistake and the
/// conversation can continue.
pub(super) fn arguments(text: &str) -> Cow<'_, RawValue> {
    if text.trim().is_empty() {
        return Cow::Owned(raw("{}"));
    }
    if let Some(object) = object(text) {
        return Cow::Borrowed(object);
    }
    // Some models wrap the object in a string; dispatch unwraps it, too.
    let inner: Option<String> = serde_json::from_str(text).ok();
    if let Some(object) = inner.as_deref().and_then(object) {
        return Cow::Owned(object.to_owned());
    }
    Cow::Owned(raw(&json!({UNREADABLE: text}).to_string()))
}

/// Parses the object completely, because a raw value may contain escapes that endpoints reject, such as half a
/// surrogate pair.
fn object(text: &str) -> Option<&RawValue> {
    serde_json::from_str::<Map<String, Value>>(text).ok()?;
    serde_json::from_str(text).ok()
}

/// Replaces invalid characters of a tool name and limits its length.
pub(super) fn name(name: &str, longest: usize) -> Cow<'_, str> {
    if is_word(name, longest) {
        return Cow::Borrowed(name);
    }
    let good = name.chars().map(|letter| {
        let is_good = letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        if is_good { letter } else { '_' }
    });
    let good: String = good.take(longest).collect();
    if good.is_empty() {
        return Cow::Borrowed("unknown");
    }
    Cow::Owned(good)
}

/// Replaces invalid characters of a call id and limits its length. Distinct ids stay distinct.
pub(super) fn id(id: &str, longest: usize) -> Cow<'_, str> {
    if is_word(id, longest) {
        return Cow::Borrowed(id);
    }
    let start = name(id, longest.saturating_sub(17));
    let mut unique = start.into_owned();
    let _ = write!(unique, "_{:016x}", hash(id));
    Cow::Owned(unique)
}

/// Text in place of an image that the model cannot see; `None` if it can.
pub(super) fn unseen(image: &Image, vision: bool) -> Option<String> {
    let kind = &image.mime_type;
    if !vision {
        return Some(format!("[a picture ({kind}), which this model cannot see]"));
    }
    if !Image::MIME_TYPES.contains(&kind.as_str()) || image.data.is_empty() {
        return Some(format!(
            "[a picture ({kind}) in a format that cannot be shown]"
        ));
    }
    None
}

fn is_word(text: &str, longest: usize) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=longest).contains(&text.len()) && text.bytes().all(is_good)
}

/// FNV-1a, stable across processes and releases.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_objects() {
        let check =
            |text: &str, expected: &str| assert_eq!(arguments(text).get(), expected, "{text}");
        check(r#"{"b": 1, "a": [2]}"#, r#"{"b": 1, "a": [2]}"#);
        check(" {} ", "{}");
        check("", "{}");
        check("\n", "{}");
        check("[1]", r#"{"unreadable_arguments":"[1]"}"#);
        check(r#""{\"a\": 1}""#, r#"{"a": 1}"#);
        check("null", r#"{"unreadable_arguments":"null"}"#);
        check(r#"{"a": "#, r#"{"unreadable_arguments":"{\"a\": "}"#);
        check(
            r#"{"a": "\ud800"}"#,
            r#"{"unreadable_arguments":"{\"a\": \"\\ud800\"}"}"#,
        );
    }

    #[test]
    fn names_and_ids_are_words() {
        assert_eq!(name("mcp__a__b", 64), "mcp__a__b");
        assert_eq!(name("functions.read file", 64), "functions_read_file");
        assert_eq!(name("", 64), "unknown");
        assert_eq!(name("abcdef", 3), "abc");
        assert_eq!(id("call_1", 40), "call_1");
        let (dot, colon) = (id("call.1", 40), id("call:1", 40));
        assert_eq!(dot, "call_1_958ca8995d7ef1bc");
        assert!(is_word(&dot, 40) && is_word(&colon, 40));
        assert_ne!(dot, colon);
        let long = "x".repeat(300);
        assert_eq!(id(&long, 40).len(), 40);
        assert!(is_word(&id("", 40), 40));
    }
}
