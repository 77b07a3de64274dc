//! Decoding and encoding traits of the MCP types.
//!
//! - [`Decode`] decodes a type from a [`Reader`] in one pass, borrowing from the input.
//! - [`Encode`] appends a value to a string. It cannot fail.
//! - [`IntoOwned`] copies a value, so that it outlives its input.
//! - [`Lint`] reports what was set aside while decoding. Misfits stay in the value ([`Extra`], [`List::set_aside`]), so
//!   they can be reported later, and cost nothing until then.
//!
//! The types, in the parent module, get all four from the macros of `crate::macros`. This module does not depend on any
//! of them.

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

/// Encodes `value` as compact JSON.
pub fn encode<T: Encode + ?Sized>(value: &T) -> String {
    let mut out = String::with_capacity(128);
    value.encode(&mut out);
    out
}

/// A type that can be decoded from JSON, leniently where the protocol permits.
pub trait Decode<'a>: Sized {
    /// Whether `null` is a value of this type, and not just an absent field.
    const ACCEPTS_NULL: bool = false;

    /// Decodes one value. On an error the reader may be anywhere within it.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// A type that can be encoded as JSON.
pub trait Encode {
    /// Appends the value to `out`.
    fn encode(&self, out: &mut String);
}

/// A type that may borrow from its input.
pub trait IntoOwned {
    /// The same type without borrows.
    type Owned: 'static;

    /// Copies all borrowed data.
    fn into_owned(self) -> Self::Owned;
}

/// A type with named fields.
pub trait Fields {
    /// The known fields in the order of encoding.
    const FIELDS: &'static [FieldInfo];
}

/// A known field of a type, for comparing types with schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldInfo {
    /// Its name on the wire.
    pub name: &'static str,
    /// Whether decoding fails without it.
    pub required: bool,
}

impl FieldInfo {
    /// A field that is optional for decoding.
    pub(crate) const fn optional(name: &'static str) -> Self {
        Self {
            name,
            required: false,
        }
    }
}

/// Encodes the fields of one object.
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

    /// Encodes a field whose name needs no escaping.
    pub(crate) fn field<T: Encode + ?Sized>(&mut self, name: &'static str, value: &T) {
        self.separate();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        value.encode(self.out);
    }

    /// Encodes a field with a name of the peer.
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
        Ok(reader.string("a string")?.into_json_str())
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
