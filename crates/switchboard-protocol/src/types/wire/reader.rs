//! A cursor over JSON that is already known to be valid.
//!
//! Every decode starts from a [`RawValue`], whose syntax `serde_json` has checked. The cursor can therefore skip what
//! it does not need without judging it, and step back to the start of a value that turned out to have the wrong
//! type: that is how one pass over the bytes decodes the good parts and keeps the bad ones. It owns positions and
//! limits and must not know any MCP type.

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

/// The last long string the cursor went over: where its contents start, and its end.
///
/// A text often stands before the field that says it is one. Whoever looks ahead for that field crosses the text, and
/// whoever then decodes the text must not have to search its end again.
#[derive(Debug, Clone, Copy)]
struct Crossed {
    start: usize,
    end: StringEnd,
}

impl Crossed {
    /// Searching a shorter string again is as cheap as remembering it.
    const LONG: usize = 256;

    /// No contents start at the first byte, where the quotation mark would be.
    const NOTHING: Self = Self {
        start: 0,
        end: StringEnd {
            position: 0,
            escaped: false,
        },
    };
}

/// A field's name as it stands in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    contents: &'a str,
    escaped: bool,
}

impl<'a> Key<'a> {
    /// The name, unescaped.
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

    /// A cursor over text that a [`RawValue`] or a [`Raw`] has vouched for.
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

    /// Most entries of one list or map.
    pub(crate) fn max_items(&self) -> usize {
        self.max_items
    }

    /// Where the next value starts, to come back to with [`Reader::rewind`].
    #[inline]
    pub(crate) fn mark(&mut self) -> usize {
        self.peek();
        self.position
    }

    #[inline]
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.position = mark;
    }

    /// The first byte of what comes next; zero at the end, which starts no JSON value.
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

    /// Whether the object ahead has no members, without moving.
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

    /// The next field's name and value as they are written, the name with its quotation marks.
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

    /// The next value's text, whatever it is.
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

    /// The values of some fields of the object ahead, without moving: the last one where a field is there twice.
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

    /// The string in the first field called `name` of the object ahead, without moving.
    ///
    /// It stops at the first, because what names a variant usually comes first and what follows may be large. The
    /// variant's own decoder refuses a second one that says something else.
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

    /// The error for an object that names no variant in `field`: it is missing, or is no string.
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

    /// Reads the field that names the variant and refuses any value but `expected`.
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

    /// Reads a field the type cannot do without.
    #[inline]
    pub(crate) fn required<T: Decode<'a>>(
        &mut self,
        field: &'static str,
    ) -> Result<T, DecodeError> {
        T::decode(self).map_err(|error| error.at(Segment::Field(field)))
    }

    /// Reads a field the type can do without: one of the wrong type is kept in `extra` and counts as absent.
    #[inline]
    pub(crate) fn optional<T: Decode<'a>>(
        &mut self,
        key: Key<'a>,
        extra: &mut Extra<'a>,
    ) -> Result<Option<T>, DecodeError> {
        let mark = self.mark();
        // Nulls are common where a server writes out its empty fields; they need no error made and thrown away.
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

    /// Keeps a field as it is.
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

    /// Decodes something that may hold its own kind again.
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
