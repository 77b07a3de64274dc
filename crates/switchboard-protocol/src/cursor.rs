//! A cursor over JSON text that is known to be valid: finds fields without copying or building anything.
//!
//! A cursor holds a position in a text and nothing else. The decoder of the MCP types (`types/wire/reader.rs`) adds limits
//! and typed errors; the host reads tool definitions and arguments with it directly. A parser accepted the text before,
//! so the cursor does not validate it; on text that is not JSON after all it returns [`Malformed`] or a wrong value, and
//! never panics or loops.

use std::borrow::Cow;

use crate::string_scan::{StringEnd, end_of_string};
use crate::text::{JsonStr, unescape};

/// Reads forward through one JSON value.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

/// The text is not valid JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// A string or a key as it stands in the text, without its quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents<'a> {
    /// What stands between the quotation marks.
    pub escaped: &'a str,
    /// Whether it has escapes.
    pub has_escapes: bool,
}

impl<'a> Contents<'a> {
    /// The string, unescaped.
    #[inline]
    pub fn decode(self) -> Cow<'a, str> {
        if self.has_escapes {
            Cow::Owned(unescape(self.escaped))
        } else {
            Cow::Borrowed(self.escaped)
        }
    }

    /// Whether the string is `text`.
    #[inline]
    pub fn is(self, text: &str) -> bool {
        if self.has_escapes {
            self.decode() == text
        } else {
            self.escaped == text
        }
    }

    /// The string, to be unescaped later.
    #[inline]
    pub(crate) fn into_json_str(self) -> JsonStr<'a> {
        JsonStr::from_contents(self.escaped, self.has_escapes)
    }
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    #[inline]
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// The position in the text, in bytes.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Moves back to an earlier position.
    #[inline]
    pub fn rewind(&mut self, position: usize) {
        self.position = position;
    }

    /// What lies between a position and the cursor.
    #[inline]
    pub fn since(&self, start: usize) -> Option<&'a str> {
        self.text.get(start..self.position)
    }

    /// The first byte of what comes next; zero at the end, which starts no JSON value.
    #[inline]
    pub fn peek(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if byte > b' ' || byte == 0 {
                return byte;
            }
            self.position += 1;
        }
    }

    /// The byte at the cursor; zero at the end.
    #[inline]
    pub(crate) fn byte(&self) -> u8 {
        let byte = self.text.as_bytes().get(self.position);
        byte.copied().unwrap_or(0)
    }

    /// The position of the end of the string whose contents start there.
    #[inline]
    pub(crate) fn string_end(&self, start: usize) -> Result<StringEnd, Malformed> {
        end_of_string(self.text.as_bytes(), start).ok_or(Malformed)
    }

    /// Enters an array or object, or moves past a colon.
    #[inline]
    pub fn enter(&mut self, open: u8) -> Result<(), Malformed> {
        if self.peek() != open {
            return Err(Malformed);
        }
        self.position += 1;
        Ok(())
    }

    /// The next key of an object, with the cursor before its value; `None` past the end.
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<Contents<'a>>, Malformed> {
        if !self.next_entry(b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.enter(b':')?;
        Ok(Some(key))
    }

    /// Whether another entry of an array follows, with the cursor before it; past the end otherwise.
    #[inline]
    pub fn next_item(&mut self) -> Result<bool, Malformed> {
        self.next_entry(b']')
    }

    #[inline]
    pub(crate) fn next_entry(&mut self, close: u8) -> Result<bool, Malformed> {
        match self.peek() {
            byte if byte == close => {
                self.position += 1;
                Ok(false)
            }
            b',' => {
                self.position += 1;
                Ok(true)
            }
            0 => Err(Malformed),
            _ => Ok(true),
        }
    }

    /// Reads a string.
    #[inline]
    pub fn string(&mut self) -> Result<Contents<'a>, Malformed> {
        if self.peek() != b'"' {
            return Err(Malformed);
        }
        let end = self.string_end(self.position + 1)?;
        self.string_until(end)
    }

    /// Reads the string whose quotation mark is at the cursor, and whose end is known.
    #[inline]
    pub(crate) fn string_until(&mut self, end: StringEnd) -> Result<Contents<'a>, Malformed> {
        let escaped = self.text.get(self.position + 1..end.position - 1);
        let escaped = escaped.ok_or(Malformed)?;
        self.position = end.position;
        Ok(Contents {
            escaped,
            has_escapes: end.escaped,
        })
    }

    /// Moves past the next value, whatever it is.
    #[inline]
    pub fn skip(&mut self) -> Result<(), Malformed> {
        let bytes = self.text.as_bytes();
        self.position = match self.peek() {
            b'"' => self.string_end(self.position + 1)?.position,
            b'{' | b'[' => container_end(bytes, self.position).ok_or(Malformed)?,
            _ => match scalar_end(bytes, self.position) {
                end if end > self.position => end,
                _ => return Err(Malformed),
            },
        };
        Ok(())
    }

    /// The text of the next value, moving past it.
    #[inline]
    pub fn value(&mut self) -> Result<&'a str, Malformed> {
        self.peek();
        let start = self.position;
        self.skip()?;
        self.since(start).ok_or(Malformed)
    }
}

/// The position after the array or object that starts at `start`. A loop, so that depth costs no stack.
fn container_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut position = start;
    let mut depth = 0_usize;
    loop {
        match bytes.get(position)? {
            b'"' => {
                position = end_of_string(bytes, position + 1)?.position;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(position + 1);
                }
            }
            _ => {}
        }
        position += 1;
    }
}

/// The position after the number or word that starts at `start`.
fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|byte| {
            matches!(
                byte,
                b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' | b':'
            )
        })
        .unwrap_or(rest.len());
    start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Malformed>) {
        assert_eq!(Cursor::new(text).value(), expected, "{text}");
    }

    #[test]
    fn one_value_is_read_and_malformed_text_ends_in_an_error() {
        check("1 ", Ok("1"));
        check(" -1.5e+7,", Ok("-1.5e+7"));
        check("null", Ok("null"));
        check(r#""a\"b" : 1"#, Ok(r#""a\"b""#));
        check(
            r#"{"a": [1, {"b": "]}"}], "c": {}} x"#,
            Ok(r#"{"a": [1, {"b": "]}"}], "c": {}}"#),
        );
        for broken in [
            "", " ", "\"", "\"\\", "\"a\\\"", "[", "{\"a\":", "]", "}", ",", ":", "[}\"", "[!",
        ] {
            let _ = Cursor::new(broken).value();
        }
        check("", Err(Malformed));
        check("\"open", Err(Malformed));
        check("[1, 2", Err(Malformed));
        check("]", Err(Malformed));
    }

    #[test]
    fn members_come_in_order_with_their_values_ahead() {
        let mut cursor = Cursor::new(r#" { "a" : 1 , "\u0062":"x\n" } "#);
        cursor.enter(b'{').expect("an object");
        let first = cursor.next_key().expect("readable").expect("a key");
        assert!(first.is("a"));
        assert_eq!(cursor.value(), Ok("1"));
        let second = cursor.next_key().expect("readable").expect("a key");
        assert!(second.is("b"));
        assert_eq!(cursor.string().expect("a string").decode(), "x\n");
        assert_eq!(cursor.next_key(), Ok(None));
    }
}
