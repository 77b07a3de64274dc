//! Identifiers within parameters: ids of other requests, progress tokens, subscription ids.
//!
//! The protocol defines all of them as a string or a number that their author compares, so all of them are the
//! [`RequestId`] of the message layer.

use super::wire::{Decode, DecodeError, Encode, IntoOwned, Lint, Linter, Reader};
use crate::id::RequestId;

/// Links progress notifications to their request.
pub type ProgressToken<'a> = RequestId<'a>;

impl<'a> Decode<'a> for RequestId<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.peek() {
            b'"' | b'-' | b'0'..=b'9' => {
                let token = reader.raw()?;
                RequestId::from_valid_token(token)
                    .ok_or_else(|| reader.wrong_type("a string or a number"))
            }
            _ => Err(reader.wrong_type("a string or a number")),
        }
    }
}

impl Encode for RequestId<'_> {
    fn encode(&self, out: &mut String) {
        out.push_str(&self.json());
    }
}

impl IntoOwned for RequestId<'_> {
    type Owned = RequestId<'static>;

    fn into_owned(self) -> Self::Owned {
        RequestId::into_owned(self)
    }
}

impl Lint for RequestId<'_> {
    fn lint(&self, _linter: &mut Linter) {}
}
