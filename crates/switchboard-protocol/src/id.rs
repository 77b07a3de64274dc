//! Request ids: preserved as the peer wrote them, compared by value.
//!
//! An id is echoed byte for byte, since a peer may match it as text, while two spellings of one number (`1`, `1.0`) are
//! equal, since some servers answer in floats. Ids are assigned by the connection, not here.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{decimal::Decimal, raw, types};

/// The id of a request: a string, a number, or `null`.
///
/// Equality and hash are by value: `1 == 1.0`, `"a" == "\u0061"`, and `"1" != 1`.
#[derive(Clone)]
pub struct RequestId<'a>(Repr<'a>);

#[derive(Clone)]
enum Repr<'a> {
    /// One of our own ids, without text.
    Counter(u64),
    /// A JSON token: string, number or `null`.
    Token(Cow<'a, str>),
}

#[derive(PartialEq, Eq, Hash)]
enum Meaning<'a> {
    Null,
    Integer(i128),
    Number(Decimal<'a>),
    Text(Cow<'a, str>),
    /// A string with invalid escapes is compared by its spelling.
    Spelling(&'a str),
}

impl<'a> RequestId<'a> {
    /// An id from a raw member; `None` for a boolean, an array or an object.
    pub fn from_raw(value: &'a RawValue) -> Option<Self> {
        Self::from_valid_token(value.get())
    }

    /// An id from JSON text, such as `7` or `"abc"` with its quotes.
    pub fn from_json(text: &'a str) -> Option<Self> {
        let value: &RawValue = serde_json::from_str(text).ok()?;
        Self::from_raw(value)
    }

    /// The `null` id, for an error response to a request whose id could not be parsed.
    pub fn null() -> RequestId<'static> {
        RequestId(Repr::Token(Cow::Borrowed("null")))
    }

    /// The id as JSON, exactly as the peer wrote it.
    pub fn json(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Counter(counter) => Cow::Owned(counter.to_string()),
            Repr::Token(token) => Cow::Borrowed(token),
        }
    }

    /// Appends the id as JSON, exactly as the peer wrote it.
    pub fn write_json(&self, buffer: &mut Vec<u8>) {
        match &self.0 {
            Repr::Counter(digit @ 0..=9) => buffer.push(b'0' + digit.to_le_bytes()[0]),
            Repr::Counter(counter) => {
                buffer.extend_from_slice(itoa::Buffer::new().format(*counter).as_bytes());
            }
            Repr::Token(token) => buffer.extend_from_slice(token.as_bytes()),
        }
    }

    /// The value of a number id, in integer or float form, if it could be one of our counters.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Counter(counter) => Some(*counter),
            Repr::Token(token) => match token.parse() {
                // Rust accepts a leading plus sign, which a JSON token cannot have.
                Ok(counter) => Some(counter),
                Err(_) => u64::try_from(Decimal::parse(token)?.to_integer()?).ok(),
            },
        }
    }

    /// Like [`as_u64`](Self::as_u64), but also accepts a string of digits: some servers stringify ids.
    ///
    /// Use it only if no string ids were sent, or `"1"` and `1` would be confused.
    pub fn as_u64_lenient(&self) -> Option<u64> {
        self.as_u64().or_else(|| {
            let text = self.as_str()?;
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            text.parse().ok()
        })
    }

    /// The text of a string id; `None` for numbers and `null`.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        match &self.0 {
            Repr::Counter(_) => None,
            Repr::Token(token) => raw::string_token(token),
        }
    }

    /// Whether this is the `null` id of an error response.
    pub fn is_null(&self) -> bool {
        matches!(&self.0, Repr::Token(token) if token == "null")
    }

    /// Copies borrowed data, so that the id outlives its message.
    pub fn into_owned(self) -> RequestId<'static> {
        RequestId(match self.0 {
            Repr::Counter(counter) => Repr::Counter(counter),
            Repr::Token(token) => Repr::Token(Cow::Owned(token.into_owned())),
        })
    }

    /// An id from a token that is known to be valid JSON.
    pub(crate) fn from_valid_token(token: &'a str) -> Option<Self> {
        match token.as_bytes().first()? {
            b'"' | b'-' | b'0'..=b'9' | b'n' => Some(Self(Repr::Token(Cow::Borrowed(token)))),
            _ => None,
        }
    }

    fn meaning(&self) -> Meaning<'_> {
        let token = match &self.0 {
            Repr::Counter(counter) => return Meaning::Integer((*counter).into()),
            Repr::Token(token) => token.as_ref(),
        };
        if token == "null" {
            return Meaning::Null;
        }
        if let Some(decimal) = Decimal::parse(token) {
            return match decimal.to_integer() {
                Some(integer) => Meaning::Integer(integer),
                None => Meaning::Number(decimal),
            };
        }
        raw::string_token(token).map_or(Meaning::Spelling(token), Meaning::Text)
    }
}

impl From<u64> for RequestId<'static> {
    fn from(counter: u64) -> Self {
        Self(Repr::Counter(counter))
    }
}

impl From<&str> for RequestId<'static> {
    /// A string id with this text.
    fn from(text: &str) -> Self {
        Self(Repr::Token(Cow::Owned(types::encode(text))))
    }
}

impl PartialEq for RequestId<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Counter(left), Repr::Counter(right)) => left == right,
            (Repr::Token(left), Repr::Token(right)) if left == right => true,
            _ => self.meaning() == other.meaning(),
        }
    }
}

impl Eq for RequestId<'_> {}

impl Hash for RequestId<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

impl fmt::Display for RequestId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.json())
    }
}

impl fmt::Debug for RequestId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RequestId({})", self.json())
    }
}

impl Serialize for RequestId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Counter(counter) => serializer.serialize_u64(*counter),
            Repr::Token(token) => {
                let value: &RawValue =
                    serde_json::from_str(token).map_err(serde::ser::Error::custom)?;
                value.serialize(serializer)
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RequestId<'a> {
    /// Borrows from the input, so it needs JSON text (`from_str`, `from_slice`), not a reader.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&'de RawValue>::deserialize(deserializer)?;
        Self::from_raw(value)
            .ok_or_else(|| serde::de::Error::custom("expected an id: a string, a number or null"))
    }
}
