//! Shallow access to raw JSON: the members of one object, the text of one string.
//!
//! Reads a [`RawValue`] without building a tree, in one iterative pass over validated text; nested values stay raw, so
//! depth costs no stack.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, MapAccess, Visitor, value::BorrowedStrDeserializer};
use serde_json::value::RawValue;

use crate::{limits::Limits, types::wire::Reader};

/// One member of an object: the key verbatim, with its quotes, and the value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    pub(crate) key: &'a RawValue,
    pub(crate) value: &'a RawValue,
}

impl Member<'_> {
    /// Whether the unescaped key equals `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        string(self.key).is_some_and(|key| key == name)
    }
}

/// Calls `visit` for each member in order; returns `false` if the value is not an object.
pub(crate) fn for_each_member<'a>(value: &'a RawValue, mut visit: impl FnMut(Member<'a>)) -> bool {
    let mut read = || {
        let mut reader = Reader::new(value, &Limits::DEFAULT);
        reader.begin_object().ok()?;
        while let Some((key, value)) = reader.next_member().ok()? {
            visit(Member {
                key: trusted(key)?,
                value: trusted(value)?,
            });
        }
        Some(())
    };
    is_object(value) && read().is_some()
}

/// The value of the last member called `name`, which also counts in all common JSON parsers.
pub(crate) fn member<'a>(value: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let mut found = None;
    for_each_member(value, |member| {
        if member.is(name) {
            found = Some(member.value);
        }
    });
    found
}

/// The text of a string value, borrowed unless it has escapes; `None` for other types and invalid escapes.
pub(crate) fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    string_token(value.get())
}

/// Like [`string`], for a token that is known to be valid JSON.
pub(crate) fn string_token(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(token).ok().map(Cow::Owned)
}

/// Wraps text that is known to be one JSON value in a [`RawValue`], without parsing it again.
///
/// `serde_json` creates a borrowed `RawValue` from a map with one entry, a private key and the text. Its parser
/// provides that map after skipping a value; this function provides it for a value that has been validated already. The
/// key is the name that `serde_json` itself requests, so nothing is assumed about it; should the mechanism ever change,
/// `None` makes the caller parse as usual.
pub fn trusted(text: &str) -> Option<&RawValue> {
    serde::Deserialize::deserialize(Trusted { text, name: None }).ok()
}

pub(crate) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Whether the value is what a sloppy peer sends for an empty object: `null`, or an empty array.
pub(crate) fn says_nothing(value: &RawValue) -> bool {
    let array = value
        .get()
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    is_null(value) || array.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// A deserializer that only provides a raw value.
struct Trusted<'a> {
    text: &'a str,
    /// The key, between its request and its use.
    name: Option<&'static str>,
}

impl<'de> serde::Deserializer<'de> for Trusted<'de> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom("only a raw value is supported"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_map(Trusted {
            name: Some(name),
            ..self
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'a> MapAccess<'a> for Trusted<'a> {
    type Error = serde::de::value::Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        match self.name.take() {
            Some(name) => seed
                .deserialize(BorrowedStrDeserializer::new(name))
                .map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let value = raw(r#"{"a":1,"b":{"a":9},"\u0061":2}"#);
        assert_eq!(member(value, "a").map(RawValue::get), Some("2"));
        assert_eq!(member(value, "b").map(RawValue::get), Some(r#"{"a":9}"#));
        assert_eq!(member(value, "c").map(RawValue::get), None);
        assert_eq!(member(raw("[1]"), "a").map(RawValue::get), None);
    }

    #[test]
    fn a_key_with_invalid_unicode_is_skipped() {
        let value = raw(r#"{"\ud800":1,"a":2}"#);
        assert_eq!(member(value, "a").map(RawValue::get), Some("2"));
    }

    #[test]
    fn trusted_text_becomes_a_raw_value_without_parsing() {
        let text = r#"{"a":1}"#;
        let value = trusted(text).unwrap();
        assert_eq!(value.get().as_ptr(), text.as_ptr());
        assert_eq!(value.get(), text);
        assert_eq!(serde_json::to_string(value).unwrap(), text);
    }

    #[test]
    fn strings_are_borrowed_unless_escaped() {
        assert!(matches!(
            string(raw(r#""plain""#)),
            Some(Cow::Borrowed("plain"))
        ));
        assert_eq!(string(raw(r#""\u00e9\n""#)).as_deref(), Some("é\n"));
        assert_eq!(string(raw(r#""\ud800""#)), None);
        assert_eq!(string(raw("1")), None);
    }
}
