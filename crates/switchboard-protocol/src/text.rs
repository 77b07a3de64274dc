//! JSON strings that stay escaped until they are read.
//!
//! [`JsonStr`] is the borrowed form of a string that may be large (a tool's text, a base64 blob). Also has the escaping
//! rules for all encoders. It does not parse JSON values: the caller has already found the two quotation marks.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON string in its escaped form, decoded lazily.
///
/// A megabyte of text is neither copied nor unescaped while a message is parsed, and it is encoded byte for byte,
/// including unusual escapes. Two strings are equal if they decode to the same text.
#[derive(Clone, Default)]
pub struct JsonStr<'a> {
    /// The text between the quotation marks, including escapes.
    contents: Cow<'a, str>,
    /// Whether `contents` has a backslash. Without one, the contents are the text.
    escaped: bool,
}

impl<'a> JsonStr<'a> {
    /// `contents` is the text between the quotation marks of a valid JSON string.
    pub(crate) fn from_contents(contents: &'a str, escaped: bool) -> Self {
        Self {
            contents: Cow::Borrowed(contents),
            escaped,
        }
    }

    /// The unescaped text, borrowed if the string has no escapes.
    ///
    /// A lone surrogate (half of an emoji that a JavaScript server has split) becomes U+FFFD.
    pub fn decode(&self) -> Cow<'_, str> {
        if self.escaped {
            Cow::Owned(unescape(&self.contents))
        } else {
            Cow::Borrowed(&self.contents)
        }
    }

    /// The unescaped text, borrowed from the input if possible.
    pub fn into_decoded(self) -> Cow<'a, str> {
        if self.escaped {
            Cow::Owned(unescape(&self.contents))
        } else {
            self.contents
        }
    }

    /// The text, if the string has no escapes.
    pub fn as_plain(&self) -> Option<&str> {
        (!self.escaped).then_some(&*self.contents)
    }

    /// The text between the quotation marks, verbatim.
    pub fn as_escaped(&self) -> &str {
        &self.contents
    }

    /// Whether the text can be read without a copy.
    pub fn is_borrowed(&self) -> bool {
        !self.escaped && matches!(self.contents, Cow::Borrowed(_))
    }

    /// Whether the text has no characters.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// Copies the string, still in its escaped form, so that it outlives its input.
    pub fn into_owned(self) -> JsonStr<'static> {
        JsonStr {
            contents: Cow::Owned(self.contents.into_owned()),
            escaped: self.escaped,
        }
    }

    /// Appends the string with its quotation marks to `out`.
    pub(crate) fn write_to(&self, out: &mut String) {
        out.push('"');
        out.push_str(&self.contents);
        out.push('"');
    }
}

impl<'a> From<&'a str> for JsonStr<'a> {
    fn from(text: &'a str) -> Self {
        Self::from(Cow::Borrowed(text))
    }
}

impl From<String> for JsonStr<'static> {
    fn from(text: String) -> Self {
        Self::from(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for JsonStr<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        if needs_escaping(&text) {
            let mut contents = String::with_capacity(text.len() + 16);
            escape_into(&text, &mut contents);
            Self {
                contents: Cow::Owned(contents),
                escaped: true,
            }
        } else {
            Self {
                contents: text,
                escaped: false,
            }
        }
    }
}

impl PartialEq for JsonStr<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.contents == other.contents {
            return true;
        }
        // Different bytes without escapes are different texts.
        (self.escaped || other.escaped) && self.decode() == other.decode()
    }
}

impl Eq for JsonStr<'_> {}

impl PartialEq<str> for JsonStr<'_> {
    fn eq(&self, other: &str) -> bool {
        self.decode() == other
    }
}

impl PartialEq<&str> for JsonStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.decode() == *other
    }
}

impl fmt::Debug for JsonStr<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.contents)
    }
}

impl fmt::Display for JsonStr<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.decode())
    }
}

impl Serialize for JsonStr<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let mut literal = String::with_capacity(self.contents.len() + 2);
        self.write_to(&mut literal);
        RawValue::from_string(literal)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let literal = <&'de RawValue>::deserialize(deserializer)?.get();
        let contents = literal
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .ok_or_else(|| D::Error::custom("expected a string"))?;
        Ok(Self::from_contents(contents, contents.contains('\\')))
    }
}

/// Whether `text` has a character that JSON strings must escape.
pub(crate) fn needs_escaping(text: &str) -> bool {
    text.bytes()
        .any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
}

/// Appends `text` to `out` with JSON's escapes, without quotation marks.
pub(crate) fn escape_into(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = tail.chars();
        match characters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(control) => {
                const HEX: [char; 16] = [
                    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
                ];
                let code = control as usize;
                out.push_str("\\u00");
                out.push(HEX[(code >> 4) & 15]);
                out.push(HEX[code & 15]);
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
}

/// Unescapes the text between the quotation marks of a valid JSON string.
pub(crate) fn unescape(contents: &str) -> String {
    let mut text = String::with_capacity(contents.len());
    let mut rest = contents;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, tail) = rest.split_at(at);
        text.push_str(plain);
        let mut characters = tail.chars();
        characters.next();
        match characters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let (character, after) = unicode_escape(characters.as_str());
                text.push(character);
                rest = after;
                continue;
            }
            Some(other) => text.push(other),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text
}

/// Parses the hexadecimal digits after `\u`, and the second half of a surrogate pair, if any.
fn unicode_escape(digits: &str) -> (char, &str) {
    let Some((unit, rest)) = hex_unit(digits) else {
        return (char::REPLACEMENT_CHARACTER, "");
    };
    if let Some(character) = char::from_u32(unit) {
        return (character, rest);
    }
    let low = rest.strip_prefix("\\u").and_then(hex_unit);
    match (unit, low) {
        (0xD800..=0xDBFF, Some((low @ 0xDC00..=0xDFFF, after))) => {
            let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            (character, after)
        }
        _ => (char::REPLACEMENT_CHARACTER, rest),
    }
}

fn hex_unit(digits: &str) -> Option<(u32, &str)> {
    let (unit, rest) = digits.split_at_checked(4)?;
    Some((u32::from_str_radix(unit, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(literal: &str, text: &str) {
        let read: JsonStr<'_> = serde_json::from_str(literal).expect("a JSON string");
        assert_eq!(read.decode(), text);
        assert_eq!(
            serde_json::to_string(&read).expect("written"),
            literal,
            "encoded byte for byte"
        );
        assert_eq!(read.clone().into_owned(), read);
    }

    #[test]
    fn strings_decode_and_encode_verbatim() {
        check(r#""""#, "");
        check(r#""plain""#, "plain");
        check(r#""a\/b\\c\"d\n\t\r\b\f""#, "a/b\\c\"d\n\t\r\u{8}\u{c}");
        check(r#""\u0041\u00e9\u20AC""#, "Aé€");
        check(r#""\ud83d\ude00 smile""#, "😀 smile");
        check("\"ünïcode 😀\"", "ünïcode 😀");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        check(r#""cut \ud83d""#, "cut \u{fffd}");
        check(r#""\ude00 cut""#, "\u{fffd} cut");
        check(r#""\ud83dx""#, "\u{fffd}x");
        check(r#""\ud83d\n""#, "\u{fffd}\n");
        check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀");
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let literal = "\"no escapes\"";
        let read: JsonStr<'_> = serde_json::from_str(literal).expect("a JSON string");
        assert!(read.is_borrowed());
        assert!(matches!(read.decode(), Cow::Borrowed(_)));
        assert_eq!(read.as_plain(), Some("no escapes"));
    }

    #[test]
    fn rust_text_is_escaped_the_way_serde_json_does() {
        let every_ascii: String = (0_u8..128).map(char::from).collect();
        for text in [every_ascii.as_str(), "plain", "", "naïve \u{7f} 😀"] {
            let ours = JsonStr::from(text);
            let mut literal = String::new();
            ours.write_to(&mut literal);
            assert_eq!(literal, serde_json::to_string(text).expect("written"));
            assert_eq!(ours, JsonStr::from(text.to_owned()));
        }
    }

    #[test]
    fn equality_is_about_the_text() {
        let escaped: JsonStr<'_> = serde_json::from_str(r#""\u0041""#).expect("a JSON string");
        assert_eq!(escaped, JsonStr::from("A"));
        assert_eq!(escaped, "A");
        assert_ne!(escaped, JsonStr::from("B"));
    }
}
