//! Content blocks: what tools return, prompts say and models exchange.
//!
//! Text and base64 data are [`JsonStr`], because they are where messages get large.

use std::borrow::Cow;

use super::icon::Icon;
use super::resource::ResourceContents;
use super::wire::{List, Number, Raw, RawObject};
use crate::macros::{wire_enum, wire_struct, wire_union};
use crate::text::JsonStr;

wire_union! {
    /// One block of content. Sampling messages alone use the two tool variants.
    ///
    /// A bare string counts as text, since that is all it can mean; [`ContentBlock::as_text`] reads both.
    pub enum ContentBlock<'a> by "type" or string Bare {
        /// Text.
        Text(TextContent<'a>) = "text",
        /// An image.
        Image(ImageContent<'a>) = "image",
        /// Sound.
        Audio(AudioContent<'a>) = "audio",
        /// A resource's contents, sent along.
        Resource(EmbeddedResource<'a>) = "resource",
        /// A resource that can be read.
        ResourceLink(Box<ResourceLink<'a>>) = "resource_link",
        /// A model's wish to call a tool.
        ToolUse(ToolUseContent<'a>) = "tool_use",
        /// What a tool answered to such a wish.
        ToolResult(ToolResultContent<'a>) = "tool_result",
    }
}

wire_struct! {
    /// Text for the model or the user.
    pub struct TextContent<'a> {
        tag "type" = "text";
        required {
            /// The text.
            text("text"): JsonStr<'a>,
        }
        optional {
            /// Whom it is for and how much it matters.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// An image.
    pub struct ImageContent<'a> {
        tag "type" = "image";
        required {
            /// The image, base64.
            data("data"): JsonStr<'a>,
            /// Its media type.
            mime_type("mimeType"): Cow<'a, str>,
        }
        optional {
            /// Whom it is for and how much it matters.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Sound.
    pub struct AudioContent<'a> {
        tag "type" = "audio";
        required {
            /// The sound, base64.
            data("data"): JsonStr<'a>,
            /// Its media type.
            mime_type("mimeType"): Cow<'a, str>,
        }
        optional {
            /// Whom it is for and how much it matters.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// The contents of a resource within a message.
    pub struct EmbeddedResource<'a> {
        tag "type" = "resource";
        required {
            /// The contents.
            resource("resource"): ResourceContents<'a>,
        }
        optional {
            /// Whom it is for and how much it matters.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// A resource the server offers to read, not necessarily one it lists.
    pub struct ResourceLink<'a> {
        tag "type" = "resource_link";
        required {
            /// What to read it by.
            uri("uri"): Cow<'a, str>,
            /// Its name for programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            title("title"): Cow<'a, str>,
            /// What it is.
            description("description"): Cow<'a, str>,
            /// Its media type.
            mime_type("mimeType"): Cow<'a, str>,
            /// Its size in bytes, before any encoding.
            size("size"): Number<'a>,
            /// Whom it is for and how much it matters.
            annotations("annotations"): Box<Annotations<'a>>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Pictures to show beside it.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// A model's wish to call a tool, in a sampling message.
    pub struct ToolUseContent<'a> {
        tag "type" = "tool_use";
        required {
            /// What the result refers to.
            id("id"): Cow<'a, str>,
            /// The tool.
            name("name"): Cow<'a, str>,
            /// The arguments.
            input("input"): RawObject<'a>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What a tool answered, in a sampling message.
    pub struct ToolResultContent<'a> {
        tag "type" = "tool_result";
        required {
            /// The `id` of the wish.
            tool_use_id("toolUseId"): Cow<'a, str>,
        }
        optional {
            /// The answer as data.
            structured_content("structuredContent"): Raw<'a>,
            /// Whether the call failed.
            is_error("isError"): bool,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// The answer as blocks.
            content("content"): List<'a, ContentBlock<'a>>,
        }
    }
}

wire_struct! {
    /// Hints for whoever shows or selects content.
    pub struct Annotations<'a> {
        optional {
            /// How much it matters, from 0 to 1.
            priority("priority"): Number<'a>,
            /// When it last changed, ISO 8601.
            last_modified("lastModified"): Cow<'a, str>,
        }
        collections {
            /// Whom it is for.
            audience("audience"): List<'a, Role<'a>>,
        }
    }
}

wire_enum! {
    /// Who speaks, or is spoken to.
    pub enum Role<'a> {
        /// The person, or what stands in for one.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

impl<'a> ContentBlock<'a> {
    /// A block of text.
    pub fn text(text: impl Into<JsonStr<'a>>) -> Self {
        Self::Text(TextContent::new(text.into()))
    }

    /// The text of a block of text, however it was written.
    pub fn as_text(&self) -> Option<&JsonStr<'a>> {
        match self {
            Self::Text(block) => Some(&block.text),
            Self::Bare(text) => Some(text),
            _ => None,
        }
    }
}
