//! What the types are decoded from: a [`Cursor`] with limits and typed errors.
//!
//! Every decode starts from a [`RawValue`], whose syntax `serde_json` has checked. The reader can therefore skip what
//! it does not need without checking it, and step back to the start of a value that turned out to have the wrong
//! type: that is how one pass over the bytes decodes the good parts and keeps the bad ones. It must not know any MCP
//! type.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::error::{DecodeError, DecodeErrorKind, Found, Segment, excerpt};
use super::{Decode, Extra, Raw};
use crate::cursor::{Contents, Cursor, Malformed};
use crate::limits::Limits;
use crate::string_scan::StringEnd;

/// What [`Decode`] implementations read from.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    cursor: Cursor<'a>,
    nesting: usize,
    max_items: usize,
    max_nesting: usize,
    crossed: Crossed,
}

/// The last long string the cursor moved past: where its contents start, and its end.
///
/// A text often stands before the field that says it is one. Looking ahead for that field moves past the text, and
/// decoding the text then must not search its end again.
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

impl<'a> Reader<'a> {
    /// A cursor at the start of `raw`.
    pub fn new(raw: &'a RawValue, limits: &Limits) -> Self {
        Self::over_valid(raw.get(), limits)
    }

    /// A cursor over text that a [`RawValue`] or a [`Raw`] has vouched for.
    pub(crate) fn over_valid(text: &'a str, limits: &Limits) -> Self {
        Self {
            cursor: Cursor::new(text),
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
        self.cursor.position()
    }

    #[inline]
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.cursor.rewind(mark);
    }

    /// The first byte of what comes next; zero at the end, which starts no JSON value.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        self.cursor.peek()
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
        let entered = self.cursor.enter(b'{');
        entered.map_err(|Malformed| self.wrong_type("an object"))
    }

    /// Whether the object ahead has no members, without moving.
    pub(crate) fn is_empty_object(&self) -> Result<bool, DecodeError> {
        let mut ahead = self.clone();
        ahead.begin_object()?;
        Ok(ahead.peek() == b'}')
    }

    /// The next field's name, with the cursor before its value; `None` past the object's end.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<Option<Contents<'a>>, DecodeError> {
        if !self.cursor.next_entry(b'}')? {
            return Ok(None);
        }
        let key = self.string("a field name")?;
        self.cursor.enter(b':')?;
        Ok(Some(key))
    }

    /// The next field's name and value as they are written, the name with its quotation marks.
    pub(crate) fn next_member(&mut self) -> Result<Option<(&'a str, &'a str)>, DecodeError> {
        if !self.cursor.next_entry(b'}')? {
            return Ok(None);
        }
        let key = self.raw()?;
        self.cursor.enter(b':')?;
        Ok(Some((key, self.raw()?)))
    }

    #[inline]
    pub(crate) fn begin_array(&mut self) -> Result<(), DecodeError> {
        let entered = self.cursor.enter(b'[');
        entered.map_err(|Malformed| self.wrong_type("an array"))
    }

    /// Whether another entry follows, with the cursor before it; past the array's end otherwise.
    #[inline]
    pub(crate) fn next_item(&mut self) -> Result<bool, DecodeError> {
        Ok(self.cursor.next_item()?)
    }

    /// A string's contents between its quotation marks.
    #[inline]
    pub(crate) fn string(&mut self, expected: &'static str) -> Result<Contents<'a>, DecodeError> {
        if self.peek() != b'"' {
            return Err(self.wrong_type(expected));
        }
        let end = self.string_end()?;
        Ok(self.cursor.string_until(end)?)
    }

    /// The end of the string whose quotation mark is at the cursor.
    #[inline]
    fn string_end(&mut self) -> Result<StringEnd, Malformed> {
        let start = self.cursor.position() + 1;
        if self.crossed.start == start {
            return Ok(self.crossed.end);
        }
        let end = self.cursor.string_end(start)?;
        if end.position - start >= Crossed::LONG {
            self.crossed = Crossed { start, end };
        }
        Ok(end)
    }

    /// A string, copied only if it has escapes.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        Ok(self.string("a string")?.decode())
    }

    /// The next value's text, whatever it is.
    pub(crate) fn raw(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.mark();
        if self.cursor.byte() == b'"' {
            let end = self.string_end()?;
            self.cursor.string_until(end)?;
        } else {
            self.cursor.skip()?;
        }
        self.cursor.since(start).ok_or_else(malformed)
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
            let name = key.decode();
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
            if key.decode() == name {
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
        if self.cursor.byte() == b'"' && self.text()? == expected {
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
        key: Contents<'a>,
        extra: &mut Extra<'a>,
    ) -> Result<Option<T>, DecodeError> {
        let mark = self.mark();
        // Nulls are common where a server writes out its empty fields; they need no error made and thrown away.
        if self.cursor.byte() != b'n' || T::ACCEPTS_NULL {
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
    pub(crate) fn keep(
        &mut self,
        key: Contents<'a>,
        extra: &mut Extra<'a>,
    ) -> Result<(), DecodeError> {
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

impl From<Malformed> for DecodeError {
    #[cold]
    fn from(_: Malformed) -> Self {
        malformed()
    }
}

#[cold]
pub(crate) fn malformed() -> DecodeError {
    DecodeError::new(DecodeErrorKind::Malformed)
}
