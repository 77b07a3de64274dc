//! A cursor over JSON text that has been checked already: finds fields without copying or building anything.
//!
//! Owns positions in a text, nothing else. What it reads was accepted by a parser before, so it does not judge; on
//! text that is no JSON after all it says [`Malformed`] and never panics or loops.

use std::borrow::Cow;

use switchboard_protocol::end_of_string;
use switchboard_protocol::text::JsonStr;

/// Reads forward through one JSON value.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

/// The text is not the JSON it was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A string as it stands in the text, without its quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contents<'a> {
    /// What stands between the quotation marks.
    pub(crate) escaped: &'a str,
    /// Whether it has escapes.
    pub(crate) has_escapes: bool,
}

impl<'a> Contents<'a> {
    /// The string, unescaped.
    pub(crate) fn decode(self) -> Cow<'a, str> {
        if !self.has_escapes {
            return Cow::Borrowed(self.escaped);
        }
        let literal = format!("\"{}\"", self.escaped);
        let decoded = serde_json::from_str::<JsonStr<'_>>(&literal)
            .map(|text| text.into_decoded().into_owned());
        Cow::Owned(decoded.unwrap_or_default())
    }

    /// Whether the string is `text`.
    pub(crate) fn is(self, text: &str) -> bool {
        if self.has_escapes {
            self.decode() == text
        } else {
            self.escaped == text
        }
    }
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Where the cursor stands, in bytes.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Moves back to where it stood.
    pub(crate) fn rewind(&mut self, position: usize) {
        self.position = position;
    }

    /// What lies between a position and the cursor.
    pub(crate) fn since(&self, start: usize) -> Option<&'a str> {
        self.text.get(start..self.position)
    }

    /// The first byte of what comes next; zero at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.position) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.position += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Enters an array or object.
    #[inline]
    pub(crate) fn enter(&mut self, open: u8) -> Result<(), Malformed> {
        if self.peek() != open {
            return Err(Malformed);
        }
        self.position += 1;
        Ok(())
    }

    /// The next key of an object, with the cursor before its value; `None` past the end.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<Option<Contents<'a>>, Malformed> {
        if !self.next_entry(b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.enter(b':')?;
        Ok(Some(key))
    }

    /// Whether another entry of an array follows, with the cursor before it; past the end otherwise.
    #[inline]
    pub(crate) fn next_item(&mut self) -> Result<bool, Malformed> {
        self.next_entry(b']')
    }

    #[inline]
    fn next_entry(&mut self, close: u8) -> Result<bool, Malformed> {
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
    pub(crate) fn string(&mut self) -> Result<Contents<'a>, Malformed> {
        self.enter(b'"')?;
        let start = self.position;
        let end = end_of_string(self.text.as_bytes(), start).ok_or(Malformed)?;
        self.position = end.position;
        let escaped = self.text.get(start..end.position - 1).ok_or(Malformed)?;
        Ok(Contents {
            escaped,
            has_escapes: end.escaped,
        })
    }

    /// Moves past the next value, whatever it is. A loop, so that depth costs no stack.
    pub(crate) fn skip(&mut self) -> Result<(), Malformed> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                0 => return Err(Malformed),
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.position += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Malformed)?;
                    self.position += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.position += 1;
                    continue;
                }
                _ => self.word()?,
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The text of the next value, moving past it.
    pub(crate) fn value(&mut self) -> Result<&'a str, Malformed> {
        self.peek();
        let start = self.position;
        self.skip()?;
        self.text.get(start..self.position).ok_or(Malformed)
    }

    /// Moves past a number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<(), Malformed> {
        let rest = self
            .text
            .as_bytes()
            .get(self.position..)
            .unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))
            .unwrap_or(rest.len());
        if length == 0 {
            return Err(Malformed);
        }
        self.position += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Malformed>) {
        assert_eq!(Cursor::new(text).value(), expected, "{text}");
    }

    #[test]
    fn one_value_is_read_and_what_is_no_json_ends_in_an_error() {
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
