//! A cursor over valid JSON.
//!
//! Every decode starts from a [`RawValue`], whose syntax `serde_json` has validated. The cursor can therefore skip
//! values without validating them, and rewind to the start of a value of the wrong type: one pass decodes the valid
//! parts and stores the others. It does not depend on any MCP type.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::error::{DecodeError, DecodeErrorKind, Found, Segment, excerpt};
use super::{Decode, Extra, Raw};
use crate::limits::Limits;
use crate::string_scan::{StringEnd, end_of_string};
use crate::text::{JsonStr, unescape};

/// The cursor that [`Decode`] implementations read from.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    text: &'a str,
    position: usize,
    nesting: usize,
    max_items: usize,
    max_nesting: usize,
    crossed: Crossed,
}

/// The last long string that the cursor skipped: the start of its contents, and its end.
///
/// A text often precedes its tag field. Finding the tag skips the text; decoding the text afterwards must not search
/// for its end again.
#[derive(Debug, Clone, Copy)]
struct Crossed {
    start: usize,
    end: StringEnd,
}

impl Crossed {
    /// Below this length, searching again is as cheap as caching.
    const LONG: usize = 256;

    /// Contents never start at the first byte, where the quotation mark would be.
    const NOTHING: Self = Self {
        start: 0,
        end: StringEnd {
            position: 0,
            escaped: false,
        },
    };
}

/// A field's name, verbatim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    contents: &'a str,
    escaped: bool,
}

impl<'a> Key<'a> {
    /// The unescaped name.
    #[inline]
    pub(crate) fn name(self) -> Cow<'a, str> {
        if self.escaped {
            Cow::Owned(unescape(self.contents))
        } else {
            Cow::Borrowed(self.contents)
        }
    }

    pub(crate) fn into_json_str(self) -> JsonStr<'a> {
        JsonStr::from_contents(self.contents, self.escaped)
    }
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `raw`.
    pub fn new(raw: &'a RawValue, limits: &Limits) -> Self {
        Self::over_valid(raw.get(), limits)
    }

    /// A cursor over text of a [`RawValue`] or a [`Raw`].
    pub(crate) fn over_valid(text: &'a str, limits: &Limits) -> Self {
        Self {
            text,
            position: 0,
            nesting: 0,
            max_items: limits.max_items,
            max_nesting: limits.max_nested_content,
            crossed: Crossed::NOTHING,
        }
    }

    /// Maximum number of entries of one list or map.
    pub(crate) fn max_items(&self) -> usize {
        self.max_items
    }

    /// The start of the next value, for [`Reader::rewind`].
    #[inline]
    pub(crate) fn mark(&mut self) -> usize {
        self.peek();
        self.position
    }

    #[inline]
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.position = mark;
    }

    /// The first byte of the next token; zero at the end, which starts no JSON value.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if byte > b' ' || byte == 0 {
                return byte;
            }
            self.position += 1;
        }
    }

    #[inline]
    fn byte(&self) -> u8 {
        self.text
            .as_bytes()
            .get(self.position)
            .copied()
            .unwrap_or(0)
    }

    /// The error for a value that is not `expected`.
    #[cold]
    pub(crate) fn wrong_type(&mut self, expected: &'static str) -> DecodeError {
        match self.peek() {
            0 => malformed(),
            byte => DecodeError::new(DecodeErrorKind::WrongType {
                expected,
                found: Found::from_first_byte(byte),
            }),
        }
    }

    #[inline]
    pub(crate) fn begin_object(&mut self) -> Result<(), DecodeError> {
        if self.peek() != b'{' {
            return Err(self.wrong_type("an object"));
        }
        self.position += 1;
        Ok(())
    }

    /// Whether the next object is empty, without moving.
    pub(crate) fn is_empty_object(&self) -> Result<bool, DecodeError> {
        let mut ahead = self.clone();
        ahead.begin_object()?;
        Ok(ahead.peek() == b'}')
    }

    /// The next field's name, with the cursor before its value; `None` past the object's end.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<Option<Key<'a>>, DecodeError> {
        if !self.at_member() {
            return Ok(None);
        }
        let (contents, escaped) = self.string("a field name")?;
        self.colon()?;
        Ok(Some(Key { contents, escaped }))
    }

    /// The next field's name and value, verbatim, the name with its quotation marks.
    pub(crate) fn next_member(&mut self) -> Result<Option<(&'a str, &'a str)>, DecodeError> {
        if !self.at_member() {
            return Ok(None);
        }
        let key = self.raw()?;
        self.colon()?;
        Ok(Some((key, self.raw()?)))
    }

    /// Whether another field follows, with the cursor before its name; past the object's end otherwise.
    #[inline]
    fn at_member(&mut self) -> bool {
        match self.peek() {
            b'}' => {
                self.position += 1;
                return false;
            }
            b',' => self.position += 1,
            _ => {}
        }
        true
    }

    #[inline]
    fn colon(&mut self) -> Result<(), DecodeError> {
        if self.peek() != b':' {
            return Err(malformed());
        }
        self.position += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn begin_array(&mut self) -> Result<(), DecodeError> {
        if self.peek() != b'[' {
            return Err(self.wrong_type("an array"));
        }
        self.position += 1;
        Ok(())
    }

    /// Whether another entry follows, with the cursor before it; past the array's end otherwise.
    #[inline]
    pub(crate) fn next_item(&mut self) -> Result<bool, DecodeError> {
        match self.peek() {
            b']' => {
                self.position += 1;
                Ok(false)
            }
            b',' => {
                self.position += 1;
                Ok(true)
            }
            0 => Err(malformed()),
            _ => Ok(true),
        }
    }

    /// A string's contents between its quotation marks, and whether they have escapes.
    #[inline]
    pub(crate) fn string(
        &mut self,
        expected: &'static str,
    ) -> Result<(&'a str, bool), DecodeError> {
        if self.peek() != b'"' {
            return Err(self.wrong_type(expected));
        }
        let start = self.position + 1;
        let end = self.string_end(start).ok_or_else(malformed)?;
        let contents = self
            .text
            .get(start..end.position - 1)
            .ok_or_else(malformed)?;
        self.position = end.position;
        Ok((contents, end.escaped))
    }

    #[inline]
    fn string_end(&mut self, start: usize) -> Option<StringEnd> {
        if self.crossed.start == start {
            return Some(self.crossed.end);
        }
        let end = end_of_string(self.text.as_bytes(), start)?;
        if end.position - start >= Crossed::LONG {
            self.crossed = Crossed { start, end };
        }
        Some(end)
    }

    /// A string, copied only if it has escapes.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        let (contents, escaped) = self.string("a string")?;
        Ok(if escaped {
            Cow::Owned(unescape(contents))
        } else {
            Cow::Borrowed(contents)
        })
    }

    /// The text of the next value of any type.
    pub(crate) fn raw(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.mark();
        let bytes = self.text.as_bytes();
        let end = match self.byte() {
            b'"' => self.string_end(start + 1).map(|end| end.position),
            b'{' | b'[' => container_end(bytes, start),
            _ => Some(scalar_end(bytes, start)),
        };
        let value = end
            .filter(|end| *end > start)
            .and_then(|end| self.text.get(start..end))
            .ok_or_else(malformed)?;
        self.position = start + value.len();
        Ok(value)
    }

    /// The values of some fields of the next object, without moving; the last one if a field is repeated.
    pub(crate) fn find<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Option<&'a str>; N], DecodeError> {
        let mut found = [None; N];
        let mut ahead = self.clone();
        ahead.begin_object()?;
        while let Some(key) = ahead.next_key()? {
            let name = key.name();
            let value = ahead.raw()?;
            for (slot, wanted) in found.iter_mut().zip(names) {
                if name == wanted {
                    *slot = Some(value);
                }
            }
        }
        Ok(found)
    }

    /// The string in the first field called `name` of the next object, without moving.
    ///
    /// Stops at the first one, because a tag usually comes first and the rest may be large. The variant's decoder
    /// rejects a second one with another value.
    pub(crate) fn find_tag(&mut self, name: &str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let mut ahead = self.clone();
        ahead.begin_object()?;
        while let Some(key) = ahead.next_key()? {
            if key.name() == name {
                return Ok(if ahead.peek() == b'"' {
                    Some(ahead.text()?)
                } else {
                    None
                });
            }
            ahead.raw()?;
            self.crossed = ahead.crossed;
        }
        Ok(None)
    }

    /// The error for an object whose tag field is missing or not a string.
    #[cold]
    pub(crate) fn untagged(&self, field: &'static str) -> DecodeError {
        match self.find([field]) {
            Ok([Some(value)]) => Self::over_valid(value, &Limits::DEFAULT)
                .wrong_type("a string")
                .at(Segment::Field(field)),
            Ok([None]) => DecodeError::new(DecodeErrorKind::MissingField { field }),
            Err(error) => error,
        }
    }

    /// Reads the tag field and rejects any value but `expected`.
    #[inline]
    pub(crate) fn expect_tag(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<(), DecodeError> {
        let mark = self.mark();
        if self.byte() == b'"' && self.text()? == expected {
            return Ok(());
        }
        self.rewind(mark);
        Err(DecodeError::new(DecodeErrorKind::WrongTag {
            field,
            expected,
            found: excerpt(self.raw()?),
        }))
    }

    /// Reads a required field.
    #[inline]
    pub(crate) fn required<T: Decode<'a>>(
        &mut self,
        field: &'static str,
    ) -> Result<T, DecodeError> {
        T::decode(self).map_err(|error| error.at(Segment::Field(field)))
    }

    /// Reads an optional field: a value of the wrong type is stored in `extra` and counts as absent.
    #[inline]
    pub(crate) fn optional<T: Decode<'a>>(
        &mut self,
        key: Key<'a>,
        extra: &mut Extra<'a>,
    ) -> Result<Option<T>, DecodeError> {
        let mark = self.mark();
        // `null` is common for empty fields, so no error is created for it.
        if self.byte() != b'n' || T::ACCEPTS_NULL {
            match T::decode(self) {
                Ok(value) => return Ok(Some(value)),
                Err(error) if error.is_malformed() => return Err(error),
                Err(_) => self.rewind(mark),
            }
        }
        self.keep(key, extra)?;
        Ok(None)
    }

    /// Stores a field verbatim.
    pub(crate) fn keep(&mut self, key: Key<'a>, extra: &mut Extra<'a>) -> Result<(), DecodeError> {
        if extra.len() >= self.max_items {
            return Err(DecodeError::new(DecodeErrorKind::TooManyFields {
                limit: self.max_items,
            }));
        }
        let value = self.raw()?;
        extra.push(key.into_json_str(), Raw::from_valid(value));
        Ok(())
    }

    /// Decodes a type that may contain itself.
    pub(crate) fn nested<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let limit = self.max_nesting;
        if self.nesting >= limit {
            return Err(DecodeError::new(DecodeErrorKind::TooDeep { limit }));
        }
        self.nesting += 1;
        let outcome = decode(self);
        self.nesting -= 1;
        outcome
    }
}

#[cold]
pub(crate) fn malformed() -> DecodeError {
    DecodeError::new(DecodeErrorKind::Malformed)
}

/// The position after the array or object that starts at `start`. Iterative, so that depth costs no stack.
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

/// The position after the number or literal that starts at `start`.
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
