//! Content blocks of tool results, prompts and sampling messages.
//!
//! Text and base64 data are [`JsonStr`], because they can be large.

use std::borrow::Cow;

use super::icon::Icon;
use super::resource::ResourceContents;
use super::wire::{List, Number, Raw, RawObject};
use crate::macros::{wire_enum, wire_struct, wire_union};
use crate::text::JsonStr;

wire_union! {
    /// One block of content. The two tool variants occur in sampling messages only.
    ///
    /// A bare string counts as text; [`ContentBlock::as_text`] reads both.
    pub enum ContentBlock<'a> by "type" or string Bare {
        /// Text for the model or the user.
        Text(TextContent<'a>) = "text",
        /// An image, base64 encoded.
        Image(ImageContent<'a>) = "image",
        /// Audio, base64 encoded.
        Audio(AudioContent<'a>) = "audio",
        /// The embedded contents of a resource.
        Resource(EmbeddedResource<'a>) = "resource",
        /// A link to a resource.
        ResourceLink(Box<ResourceLink<'a>>) = "resource_link",
        /// A tool call by a model.
        ToolUse(ToolUseContent<'a>) = "tool_use",
        /// The result of such a call.
        ToolResult(ToolResultContent<'a>) = "tool_result",
    }
}

wire_struct! {
    /// Text for the model or the user.
    pub struct TextContent<'a> {
        tag "type" = "text";
        required {
            /// The text, possibly escaped.
            text("text"): JsonStr<'a>,
        }
        optional {
            /// Hints on audience and priority.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// An image, base64 encoded.
    pub struct ImageContent<'a> {
        tag "type" = "image";
        required {
            /// The image as base64.
            data("data"): JsonStr<'a>,
            /// Media type (MIME type).
            mime_type("mimeType"): Cow<'a, str>,
        }
        optional {
            /// Hints on audience and priority.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Audio, base64 encoded.
    pub struct AudioContent<'a> {
        tag "type" = "audio";
        required {
            /// The audio data as base64.
            data("data"): JsonStr<'a>,
            /// Media type (MIME type).
            mime_type("mimeType"): Cow<'a, str>,
        }
        optional {
            /// Hints on audience and priority.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// The contents of a resource, embedded in a message.
    pub struct EmbeddedResource<'a> {
        tag "type" = "resource";
        required {
            /// The text or binary contents.
            resource("resource"): ResourceContents<'a>,
        }
        optional {
            /// Hints on audience and priority.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// A link to a resource, which the server need not list.
    pub struct ResourceLink<'a> {
        tag "type" = "resource_link";
        required {
            /// Identifies it in `resources/read`.
            uri("uri"): Cow<'a, str>,
            /// Name used by programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            title("title"): Cow<'a, str>,
            /// Description for users and models.
            description("description"): Cow<'a, str>,
            /// Media type (MIME type).
            mime_type("mimeType"): Cow<'a, str>,
            /// Its size in bytes, before any encoding.
            size("size"): Number<'a>,
            /// Hints on audience and priority.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Icons for user interfaces.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// A tool call by a model, in a sampling message.
    pub struct ToolUseContent<'a> {
        tag "type" = "tool_use";
        required {
            /// Referenced by the tool result.
            id("id"): Cow<'a, str>,
            /// Name of the tool.
            name("name"): Cow<'a, str>,
            /// Arguments of the call.
            input("input"): RawObject<'a>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// The result of a tool call, in a sampling message.
    pub struct ToolResultContent<'a> {
        tag "type" = "tool_result";
        required {
            /// The `id` of the tool call.
            tool_use_id("toolUseId"): Cow<'a, str>,
        }
        optional {
            /// The result as structured data.
            structured_content("structuredContent"): Raw<'a>,
            /// Whether the call failed.
            is_error("isError"): bool,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// The result as content blocks.
            content("content"): List<'a, ContentBlock<'a>>,
        }
    }
}

wire_struct! {
    /// Hints for displaying or selecting content.
    pub struct Annotations<'a> {
        optional {
            /// Importance, from 0 to 1.
            priority("priority"): Number<'a>,
            /// Time of the last change, ISO 8601.
            last_modified("lastModified"): Cow<'a, str>,
        }
        collections {
            /// The intended recipients.
            audience("audience"): List<'a, Role<'a>>,
        }
    }
}

wire_enum! {
    /// Author or recipient of a message.
    pub enum Role<'a> {
        /// The user, or an application on their behalf.
        User = "user",
        /// The language model.
        Assistant = "assistant",
    }
}

impl<'a> ContentBlock<'a> {
    /// Creates a text block.
    pub fn text(text: impl Into<JsonStr<'a>>) -> Self {
        Self::Text(TextContent::new(text.into()))
    }

    /// The text of a text block or a bare string.
    pub fn as_text(&self) -> Option<&JsonStr<'a>> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Bare(text) => Some(text),
            _ => None,
        }
    }
}
