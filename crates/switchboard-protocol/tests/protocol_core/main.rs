//! Tests of the public protocol API: messages, eras, headers, as tables and properties.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod encoding;
mod errors;
mod examples;
mod header_rules;
mod ids;
mod meta_rules;
mod negotiation;
mod param_header_rules;
mod parsing;
mod properties;
mod revisions;
mod serving;
mod sloppy;

use serde_json::value::RawValue;

pub(crate) fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}
