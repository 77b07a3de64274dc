//! Raw JSON values, and numbers that preserve their spelling.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Decode, DecodeError, DecodeErrorKind, Encode, Found, IntoOwned, Reader};
use crate::decimal::Decimal;
use crate::limits::Limits;
use crate::macros::serde_bridge;

/// Any JSON value, stored verbatim.
///
/// Borrowed or owned. Always one valid JSON value without surrounding whitespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw<'a>(Cow<'a, str>);

impl<'a> Raw<'a> {
    /// `text` is part of a valid message.
    pub(crate) fn from_valid(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Validates that `text` is one JSON value.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let raw: &'a RawValue = serde_json::from_str(text)?;
        Ok(Self::from(raw))
    }

    /// Serializes any value as JSON.
    pub fn from_serialize(value: &impl Serialize) -> Result<Raw<'static>, serde_json::Error> {
        serde_json::to_string(value).map(|text| Raw(Cow::Owned(text)))
    }

    /// The JSON value `null`.
    pub const fn null() -> Self {
        Self(Cow::Borrowed("null"))
    }

    /// The value's JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The value's JSON type.
    pub fn found(&self) -> Found {
        Found::from_first_byte(self.0.bytes().next().unwrap_or(b'n'))
    }

    /// Decodes the value as one of the MCP types.
    pub fn decode<'b, T: Decode<'b>>(&'b self) -> Result<T, DecodeError> {
        T::decode(&mut Reader::over_valid(&self.0, &Limits::DEFAULT))
    }

    /// Decodes the value as any serde type.
    pub fn deserialize<'b, T: Deserialize<'b>>(&'b self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The value as `serde_json`'s own raw type. Validates the syntax again.
    pub fn to_raw_value(&self) -> Result<Box<RawValue>, serde_json::Error> {
        RawValue::from_string(self.0.clone().into_owned())
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self::from_valid(raw.get())
    }
}

impl From<Box<RawValue>> for Raw<'static> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Cow::Owned(String::from(Box::<str>::from(raw))))
    }
}

impl<'a> Decode<'a> for Raw<'a> {
    const ACCEPTS_NULL: bool = true;

    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.raw().map(Self::from_valid)
    }
}

impl Encode for Raw<'_> {
    fn encode(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl IntoOwned for Raw<'_> {
    type Owned = Raw<'static>;

    fn into_owned(self) -> Self::Owned {
        Raw(Cow::Owned(self.0.into_owned()))
    }
}

serde_bridge!(Raw);

/// A JSON object, stored verbatim: arguments, schemas, `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawObject<'a>(Raw<'a>);

impl<'a> RawObject<'a> {
    /// The object's JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The object as any JSON value.
    pub fn as_raw(&self) -> &Raw<'a> {
        &self.0
    }

    /// Decodes the object as one of the MCP types.
    pub fn decode<'b, T: Decode<'b>>(&'b self) -> Result<T, DecodeError> {
        self.0.decode()
    }

    /// Decodes the object as any serde type.
    pub fn deserialize<'b, T: Deserialize<'b>>(&'b self) -> Result<T, serde_json::Error> {
        self.0.deserialize()
    }

    /// The value of one field; the last one if it is repeated.
    pub fn field(&self, name: &str) -> Option<Raw<'_>> {
        let reader = Reader::over_valid(self.get(), &Limits::DEFAULT);
        let [value] = reader.find([name]).ok()?;
        value.map(Raw::from_valid)
    }
}

/// An object without fields.
impl Default for RawObject<'_> {
    fn default() -> Self {
        Self(Raw::from_valid("{}"))
    }
}

impl<'a> TryFrom<Raw<'a>> for RawObject<'a> {
    type Error = DecodeError;

    fn try_from(raw: Raw<'a>) -> Result<Self, DecodeError> {
        match raw.found() {
            Found::Object => Ok(Self(raw)),
            found => Err(DecodeError::new(DecodeErrorKind::WrongType {
                expected: "an object",
                found,
            })),
        }
    }
}

impl<'a> From<RawObject<'a>> for Raw<'a> {
    fn from(object: RawObject<'a>) -> Self {
        object.0
    }
}

impl<'a> Decode<'a> for RawObject<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.peek() != b'{' {
            return Err(reader.wrong_type("an object"));
        }
        reader.raw().map(|text| Self(Raw::from_valid(text)))
    }
}

impl Encode for RawObject<'_> {
    fn encode(&self, out: &mut String) {
        self.0.encode(out);
    }
}

impl IntoOwned for RawObject<'_> {
    type Owned = RawObject<'static>;

    fn into_owned(self) -> Self::Owned {
        RawObject(self.0.into_owned())
    }
}

serde_bridge!(RawObject);

/// A number as the peer wrote it: `1`, `1.0` and `1e0` are preserved, without loss of precision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number<'a>(Cow<'a, str>);

impl Number<'_> {
    /// The number's JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The nearest float; infinite if the number is out of range.
    pub fn as_f64(&self) -> f64 {
        // Rust parses every JSON number.
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// The number as a non-negative integer, also if it is written as `60000.0` or `6e4`.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|value| value.try_into().ok())
    }

    /// The number as an integer, also if it is written as `-1.0`.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|value| value.try_into().ok())
    }

    fn as_i128(&self) -> Option<i128> {
        Decimal::parse(&self.0)?.to_integer()
    }

    /// A float as a JSON number; `None` for infinities and NaN, which JSON does not have.
    pub fn from_f64(value: f64) -> Option<Number<'static>> {
        value
            .is_finite()
            .then(|| Number(Cow::Owned(value.to_string())))
    }
}

impl From<u64> for Number<'static> {
    fn from(value: u64) -> Self {
        Self(Cow::Owned(value.to_string()))
    }
}

impl From<i64> for Number<'static> {
    fn from(value: i64) -> Self {
        Self(Cow::Owned(value.to_string()))
    }
}

impl From<u32> for Number<'static> {
    fn from(value: u32) -> Self {
        Self::from(u64::from(value))
    }
}

impl<'a> Decode<'a> for Number<'a> {
    #[inline]
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.peek() {
            b'-' | b'0'..=b'9' => reader.raw().map(|text| Self(Cow::Borrowed(text))),
            _ => Err(reader.wrong_type("a number")),
        }
    }
}

impl Encode for Number<'_> {
    fn encode(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl IntoOwned for Number<'_> {
    type Owned = Number<'static>;

    fn into_owned(self) -> Self::Owned {
        Number(Cow::Owned(self.0.into_owned()))
    }
}

serde_bridge!(Number);

/// A field for which `null` has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nullable<T> {
    /// The JSON value `null`.
    Null,
    /// Any other value.
    Value(T),
}

impl<T> Nullable<T> {
    /// The value, if it is not `null`.
    pub fn as_value(&self) -> Option<&T> {
        match self {
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Nullable<T> {
    const ACCEPTS_NULL: bool = true;

    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.peek() == b'n' {
            reader.raw()?;
            return Ok(Self::Null);
        }
        T::decode(reader).map(Self::Value)
    }
}

impl<T: Encode> Encode for Nullable<T> {
    fn encode(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Value(value) => value.encode(out),
        }
    }
}

impl<T: IntoOwned> IntoOwned for Nullable<T> {
    type Owned = Nullable<T::Owned>;

    fn into_owned(self) -> Self::Owned {
        match self {
            Self::Null => Nullable::Null,
            Self::Value(value) => Nullable::Value(value.into_owned()),
        }
    }
}
