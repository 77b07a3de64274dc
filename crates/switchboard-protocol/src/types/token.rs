//! Identifiers that are a string or a number, as their author likes.

use super::wire::{Decode, DecodeError, Encode, IntoOwned, Lint, Linter, Number, Reader};
use crate::macros::serde_bridge;
use crate::text::JsonStr;

/// A progress token, or a request's id where a message speaks of another request.
///
/// Kept as written, because its author compares it with what they sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgressToken<'a> {
    /// A string.
    String(JsonStr<'a>),
    /// A number, an integer if its author follows the protocol.
    Number(Number<'a>),
}

impl<'a> From<&'a str> for ProgressToken<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(text.into())
    }
}

impl From<u64> for ProgressToken<'static> {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl<'a> Decode<'a> for ProgressToken<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.peek() {
            b'"' => Decode::decode(reader).map(Self::String),
            b'-' | b'0'..=b'9' => Decode::decode(reader).map(Self::Number),
            _ => Err(reader.wrong_type("a string or a number")),
        }
    }
}

impl Encode for ProgressToken<'_> {
    fn encode(&self, out: &mut String) {
        match self {
            Self::String(text) => text.encode(out),
            Self::Number(number) => number.encode(out),
        }
    }
}

impl IntoOwned for ProgressToken<'_> {
    type Owned = ProgressToken<'static>;

    fn into_owned(self) -> Self::Owned {
        match self {
            Self::String(text) => ProgressToken::String(text.into_owned()),
            Self::Number(number) => ProgressToken::Number(number.into_owned()),
        }
    }
}

impl Lint for ProgressToken<'_> {
    fn lint(&self, _linter: &mut Linter) {}
}

serde_bridge!(ProgressToken);
