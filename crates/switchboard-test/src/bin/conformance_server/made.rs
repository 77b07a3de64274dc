//! Protocol types from the JSON of the definitions.

use serde_json::Value;
use switchboard_protocol::types::elicitation::ElicitRequestParams;
use switchboard_protocol::types::input::InputRequiredResult;
use switchboard_protocol::types::prompt::{GetPromptResult, Prompt};
use switchboard_protocol::types::resource::{ReadResourceResult, Resource, ResourceTemplate};
use switchboard_protocol::types::sampling::CreateMessageRequestParams;
use switchboard_protocol::types::tool::{CallToolResult, Tool};
use switchboard_protocol::types::wire::{self, IntoOwned as _};

/// Decodes a protocol type from JSON written in this program.
///
/// # Panics
///
/// If the JSON does not match the type.
#[expect(clippy::expect_used, reason = "the JSON is part of this program")]
pub(crate) fn made<T>(value: &Value) -> T
where
    T: Made,
{
    let raw = serde_json::value::to_raw_value(value).expect("JSON encodes");
    T::made(&raw)
}

/// A type that can be decoded from JSON.
pub(crate) trait Made: Sized {
    fn made(raw: &serde_json::value::RawValue) -> Self;
}

macro_rules! made {
    ($($name:ident)*) => {
        $(impl Made for $name<'static> {
            fn made(raw: &serde_json::value::RawValue) -> Self {
                wire::decode::<$name<'_>>(raw).expect("it matches the type").into_owned()
            }
        })*
    };
}

made! {
    CallToolResult
    CreateMessageRequestParams
    ElicitRequestParams
    GetPromptResult
    InputRequiredResult
    Prompt
    ReadResourceResult
    Resource
    ResourceTemplate
    Tool
}
