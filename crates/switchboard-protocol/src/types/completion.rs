//! Completing arguments while somebody types.

use std::borrow::Cow;

use super::result::ResultType;
use super::wire::{List, Map, Number, RawObject};
use crate::macros::{wire_struct, wire_union};

wire_struct! {
    /// What `completion/complete` asks.
    pub struct CompleteRequestParams<'a> {
        required {
            /// What the argument belongs to.
            reference("ref"): CompletionReference<'a>,
            /// What was typed so far.
            argument("argument"): CompletionArgument<'a>,
        }
        optional {
            /// What is known already.
            context("context"): CompletionContext<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_union! {
    /// What an argument belongs to.
    pub enum CompletionReference<'a> by "type" {
        /// A prompt.
        Prompt(PromptReference<'a>) = "ref/prompt",
        /// A resource or template.
        Resource(ResourceTemplateReference<'a>) = "ref/resource",
    }
}

wire_struct! {
    /// A prompt, by name.
    pub struct PromptReference<'a> {
        tag "type" = "ref/prompt";
        required {
            /// The prompt.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            title("title"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// A resource or template, by URI.
    pub struct ResourceTemplateReference<'a> {
        tag "type" = "ref/resource";
        required {
            /// The URI or its pattern.
            uri("uri"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// What was typed so far.
    pub struct CompletionArgument<'a> {
        required {
            /// The argument.
            name("name"): Cow<'a, str>,
            /// What was typed.
            value("value"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// What is known already.
    pub struct CompletionContext<'a> {
        collections {
            /// Arguments that have their value.
            arguments("arguments"): Map<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// What `completion/complete` answers.
    pub struct CompleteResult<'a> {
        required {
            /// The proposals.
            completion("completion"): Completion<'a>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Proposals for an argument.
    pub struct Completion<'a> {
        required {
            /// The proposals, at most a hundred.
            values("values"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// How many there are in all.
            total("total"): Number<'a>,
            /// Whether there are more.
            has_more("hasMore"): bool,
        }
    }
}
