//! Asking the client's model.

use std::borrow::Cow;

use super::content::{ContentBlock, Role};
use super::task::TaskMetadata;
use super::tool::Tool;
use super::wire::{List, Number, OneOrMany, RawObject};
use crate::macros::{wire_enum, wire_struct};
use crate::text::JsonStr;

wire_struct! {
    /// What `sampling/createMessage` asks.
    pub struct CreateMessageRequestParams<'a> {
        required {
            /// The conversation so far.
            messages("messages"): List<'a, SamplingMessage<'a>>,
            /// How long the answer may get.
            max_tokens("maxTokens"): Number<'a>,
        }
        optional {
            /// Which model would suit.
            model_preferences("modelPreferences"): ModelPreferences<'a>,
            /// A system prompt, which the client may change or leave out.
            system_prompt("systemPrompt"): JsonStr<'a>,
            /// Whose context to add.
            include_context("includeContext"): IncludeContext<'a>,
            /// How freely to sample.
            temperature("temperature"): Number<'a>,
            /// Anything else for the provider.
            metadata("metadata"): RawObject<'a>,
            /// Whether tools may or must be used.
            tool_choice("toolChoice"): ToolChoice<'a>,
            /// The wish to run it as a task (2025-11-25).
            task("task"): TaskMetadata<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Where to stop.
            stop_sequences("stopSequences"): List<'a, Cow<'a, str>>,
            /// What the model may call.
            tools("tools"): List<'a, Tool<'a>>,
        }
    }
}

wire_struct! {
    /// One message of a conversation.
    pub struct SamplingMessage<'a> {
        required {
            /// Who says it.
            role("role"): Role<'a>,
            /// What is said.
            content("content"): OneOrMany<'a, ContentBlock<'a>>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What the model said.
    pub struct CreateMessageResult<'a> {
        required {
            /// Who says it: the model.
            role("role"): Role<'a>,
            /// What is said.
            content("content"): OneOrMany<'a, ContentBlock<'a>>,
            /// Which model it was.
            model("model"): Cow<'a, str>,
        }
        optional {
            /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or the provider's own word.
            stop_reason("stopReason"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Which model would suit. Priorities go from 0 to 1.
    pub struct ModelPreferences<'a> {
        optional {
            /// How much a low price matters.
            cost_priority("costPriority"): Number<'a>,
            /// How much speed matters.
            speed_priority("speedPriority"): Number<'a>,
            /// How much skill matters.
            intelligence_priority("intelligencePriority"): Number<'a>,
        }
        collections {
            /// Models that would suit, the best first.
            hints("hints"): List<'a, ModelHint<'a>>,
        }
    }
}

wire_struct! {
    /// A model that would suit.
    pub struct ModelHint<'a> {
        optional {
            /// A part of its name.
            name("name"): Cow<'a, str>,
        }
    }
}

wire_enum! {
    /// Whose context to add.
    pub enum IncludeContext<'a> {
        /// Nobody's.
        None = "none",
        /// The asking server's.
        ThisServer = "thisServer",
        /// Every server's.
        AllServers = "allServers",
    }
}

wire_struct! {
    /// Whether tools may or must be used.
    pub struct ToolChoice<'a> {
        optional {
            /// As the model likes, if absent.
            mode("mode"): ToolChoiceMode<'a>,
        }
    }
}

wire_enum! {
    /// Whether tools may or must be used.
    pub enum ToolChoiceMode<'a> {
        /// As the model likes.
        Auto = "auto",
        /// At least one must.
        Required = "required",
        /// None may.
        None = "none",
    }
}
