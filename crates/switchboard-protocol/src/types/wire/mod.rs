//! The machinery under the MCP types: how a value is read, kept, written, and looked over.
//!
//! - [`Decode`] reads a type from a [`Reader`] in one pass, borrowing from the input.
//! - [`Encode`] appends a value to a string. It cannot fail.
//! - [`IntoOwned`] detaches a value from its input.
//! - [`Lint`] finds what was set aside while decoding. Nothing is recorded on the way: what has the wrong form stays
//!   in the value ([`Extra`], [`List::set_aside`]), so looking it over later tells the same and costs nothing until
//!   somebody asks.
//!
//! The types themselves, one folder up, get all four from the macros of `crate::macros`. This module must not know
//! any of them.

mod error;
mod extra;
mod lint;
mod list;
mod map;
mod raw;
mod reader;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub(crate) use error::excerpt;
pub use error::{DecodeError, DecodeErrorKind, Found, Path, Segment};
pub use extra::Extra;
pub use lint::{Defect, Lint, Linter, defects};
pub use list::{List, OneOrMany, SetAside};
pub use map::Map;
pub use raw::{Nullable, Number, Raw, RawObject};
pub use reader::Reader;
pub(crate) use reader::malformed;

use crate::limits::Limits;
use crate::text::{JsonStr, escape_into, needs_escaping};

/// Decodes `raw` as a `T`, with [`Limits::DEFAULT`].
pub fn decode<'a, T: Decode<'a>>(raw: &'a RawValue) -> Result<T, DecodeError> {
    decode_within(raw, &Limits::DEFAULT)
}

/// Decodes `raw` as a `T`, within `limits`.
pub fn decode_within<'a, T: Decode<'a>>(
    raw: &'a RawValue,
    limits: &Limits,
) -> Result<T, DecodeError> {
    T::decode(&mut Reader::new(raw, limits))
}

/// Writes `value` as compact JSON.
pub fn encode<T: Encode + ?Sized>(value: &T) -> String {
    let mut out = String::with_capacity(128);
    value.encode(&mut out);
    out
}

/// Something that can be read from JSON, leniently where the protocol leaves room.
pub trait Decode<'a>: Sized {
    /// Whether a JSON `null` is a value of this type rather than a sloppy way to leave a field out.
    const ACCEPTS_NULL: bool = false;

    /// Reads one value. On an error the reader may stand anywhere within it.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// Something that can be written as JSON.
pub trait Encode {
    /// Appends the value to `out`.
    fn encode(&self, out: &mut String);
}

/// Something that may borrow from its input and can stop doing so.
pub trait IntoOwned {
    /// The same type, borrowing nothing.
    type Owned: 'static;

    /// Copies whatever is borrowed.
    fn into_owned(self) -> Self::Owned;
}

/// A type with named fields.
pub trait Fields {
    /// The known fields in the order they are written.
    const FIELDS: &'static [FieldInfo];
}

/// A known field of a type, for tools that compare types with schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name on the wire.
    pub name: &'static str,
    /// Whether decoding fails without it.
    pub required: bool,
}

impl FieldInfo {
    /// A field that decoding can do without.
    pub(crate) const fn optional(name: &'static str) -> Self {
        Self {
            name,
            required: false,
        }
    }
}

/// Writes the fields of one object.
#[derive(Debug)]
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn new(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// Writes a field whose name needs no escaping.
    pub(crate) fn field<T: Encode + ?Sized>(&mut self, name: &'static str, value: &T) {
        self.separate();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        value.encode(self.out);
    }

    /// Writes a field under a name of the peer's.
    pub(crate) fn entry<K: Encode, T: Encode + ?Sized>(&mut self, key: &K, value: &T) {
        self.separate();
        key.encode(self.out);
        self.out.push(':');
        value.encode(self.out);
    }

    pub(crate) fn finish(self) {
        self.out.push('}');
    }

    fn separate(&mut self) {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
    }
}

impl<'a> Decode<'a> for Cow<'a, str> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.text()
    }
}

impl Encode for Cow<'_, str> {
    fn encode(&self, out: &mut String) {
        (**self).encode(out);
    }
}

impl Encode for str {
    fn encode(&self, out: &mut String) {
        out.push('"');
        if needs_escaping(self) {
            escape_into(self, out);
        } else {
            out.push_str(self);
        }
        out.push('"');
    }
}

impl Encode for RawValue {
    fn encode(&self, out: &mut String) {
        out.push_str(self.get());
    }
}

impl IntoOwned for Cow<'_, str> {
    type Owned = Cow<'static, str>;

    fn into_owned(self) -> Cow<'static, str> {
        Cow::Owned(Cow::into_owned(self))
    }
}

impl<'a> Decode<'a> for JsonStr<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (contents, escaped) = reader.string("a string")?;
        Ok(Self::from_contents(contents, escaped))
    }
}

impl Encode for JsonStr<'_> {
    fn encode(&self, out: &mut String) {
        self.write_to(out);
    }
}

impl IntoOwned for JsonStr<'_> {
    type Owned = JsonStr<'static>;

    fn into_owned(self) -> Self::Owned {
        self.into_owned()
    }
}

impl<'a> Decode<'a> for bool {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.peek() {
            b't' | b'f' => Ok(reader.raw()? == "true"),
            _ => Err(reader.wrong_type("a boolean")),
        }
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

impl IntoOwned for bool {
    type Owned = Self;

    fn into_owned(self) -> Self {
        self
    }
}

impl<T: IntoOwned> IntoOwned for Option<T> {
    type Owned = Option<T::Owned>;

    fn into_owned(self) -> Self::Owned {
        self.map(T::into_owned)
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Box<T> {
    const ACCEPTS_NULL: bool = T::ACCEPTS_NULL;

    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        T::decode(reader).map(Self::new)
    }
}

impl<T: Encode> Encode for Box<T> {
    fn encode(&self, out: &mut String) {
        (**self).encode(out);
    }
}

impl<T: IntoOwned> IntoOwned for Box<T> {
    type Owned = Box<T::Owned>;

    fn into_owned(self) -> Self::Owned {
        Box::new((*self).into_owned())
    }
}
