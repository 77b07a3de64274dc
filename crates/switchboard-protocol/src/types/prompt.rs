//! Prompts: listing and getting them.

use std::borrow::Cow;

use super::cache::CacheScope;
use super::content::{ContentBlock, Role};
use super::icon::Icon;
use super::result::ResultType;
use super::wire::{List, Map, Number, RawObject};
use crate::macros::wire_struct;
use crate::text::JsonStr;

wire_struct! {
    /// A prompt a server offers.
    pub struct Prompt<'a> {
        required {
            /// Identifies it in `prompts/get`.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            title("title"): Cow<'a, str>,
            /// Description for users and models.
            description("description"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Arguments of the prompt.
            arguments("arguments"): List<'a, PromptArgument<'a>>,
            /// Icons for user interfaces.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// An argument of a prompt.
    pub struct PromptArgument<'a> {
        required {
            /// Name used by programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            title("title"): Cow<'a, str>,
            /// Description of the argument.
            description("description"): Cow<'a, str>,
            /// Whether the argument is required.
            required("required"): bool,
        }
    }
}

wire_struct! {
    /// Result of `prompts/list`.
    pub struct ListPromptsResult<'a> {
        required {
            /// The prompts of this page.
            prompts("prompts"): List<'a, Prompt<'a>>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Cache lifetime in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// Who may share the cached result.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Cursor of the next page; may be an empty string. A repeated cursor means an endless list.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `prompts/get`.
    pub struct GetPromptRequestParams<'a> {
        required {
            /// Name of the prompt.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Opaque state of the previous result, sent back with the responses.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Values of the arguments.
            arguments("arguments"): Map<'a, Cow<'a, str>>,
            /// Responses to the server's input requests, by key.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// Result of `prompts/get`.
    pub struct GetPromptResult<'a> {
        required {
            /// The messages of the prompt.
            messages("messages"): List<'a, PromptMessage<'a>>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Description for users and models.
            description("description"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// One message of a prompt.
    pub struct PromptMessage<'a> {
        required {
            /// Author of the message.
            role("role"): Role<'a>,
            /// Content of the message.
            content("content"): ContentBlock<'a>,
        }
    }
}
