//! Argument completion.

use std::borrow::Cow;

use super::result::ResultType;
use super::wire::{List, Map, Number, RawObject};
use crate::macros::{wire_struct, wire_union};

wire_struct! {
    /// Parameters of `completion/complete`.
    pub struct CompleteRequestParams<'a> {
        required {
            /// The prompt or template of the argument.
            reference("ref"): CompletionReference<'a>,
            /// The argument to complete.
            argument("argument"): CompletionArgument<'a>,
        }
        optional {
            /// Arguments that are already known.
            context("context"): CompletionContext<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_union! {
    /// The prompt or resource template of an argument.
    pub enum CompletionReference<'a> by "type" {
        /// A prompt, by name.
        Prompt(PromptReference<'a>) = "ref/prompt",
        /// A resource or template, by URI.
        Resource(ResourceTemplateReference<'a>) = "ref/resource",
    }
}

wire_struct! {
    /// A prompt, by name.
    pub struct PromptReference<'a> {
        tag "type" = "ref/prompt";
        required {
            /// Name of the prompt.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            title("title"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// A resource or template, by URI.
    pub struct ResourceTemplateReference<'a> {
        tag "type" = "ref/resource";
        required {
            /// The URI or URI template.
            uri("uri"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// An argument with its partial value.
    pub struct CompletionArgument<'a> {
        required {
            /// Name of the argument.
            name("name"): Cow<'a, str>,
            /// The text typed so far.
            value("value"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// Arguments that are already known.
    pub struct CompletionContext<'a> {
        collections {
            /// Completed arguments, by name.
            arguments("arguments"): Map<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// Result of `completion/complete`.
    pub struct CompleteResult<'a> {
        required {
            /// The completion values.
            completion("completion"): Completion<'a>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Completion values of an argument.
    pub struct Completion<'a> {
        required {
            /// At most a hundred values.
            values("values"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// Total number of values, if known.
            total("total"): Number<'a>,
            /// Whether there are more values.
            has_more("hasMore"): bool,
        }
    }
}
