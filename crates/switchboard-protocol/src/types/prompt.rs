//! Prompts: listing and filling them in.

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
            /// The name requests use.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            title("title"): Cow<'a, str>,
            /// What it is for.
            description("description"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// What can be filled in.
            arguments("arguments"): List<'a, PromptArgument<'a>>,
            /// Pictures to show beside it.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// Something to fill in.
    pub struct PromptArgument<'a> {
        required {
            /// Its name for programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            title("title"): Cow<'a, str>,
            /// What belongs there.
            description("description"): Cow<'a, str>,
            /// Whether the prompt needs it.
            required("required"): bool,
        }
    }
}

wire_struct! {
    /// What `prompts/list` answers.
    pub struct ListPromptsResult<'a> {
        required {
            /// The prompts of this page.
            prompts("prompts"): List<'a, Prompt<'a>>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// How long the page may be kept, in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// For whom it may be kept.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Where the next page starts. An empty one is a cursor too; one that was there before leads in circles.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `prompts/get` asks.
    pub struct GetPromptRequestParams<'a> {
        required {
            /// The prompt.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// What the server asked to get back with the answers.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// What is filled in.
            arguments("arguments"): Map<'a, Cow<'a, str>>,
            /// Answers to what the server asked, by its keys.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// What `prompts/get` answers.
    pub struct GetPromptResult<'a> {
        required {
            /// The prompt, filled in.
            messages("messages"): List<'a, PromptMessage<'a>>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// What it is for.
            description("description"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// One message of a prompt.
    pub struct PromptMessage<'a> {
        required {
            /// Who says it.
            role("role"): Role<'a>,
            /// What is said.
            content("content"): ContentBlock<'a>,
        }
    }
}
