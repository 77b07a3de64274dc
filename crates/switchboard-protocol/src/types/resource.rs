//! Resources: listing, reading, and hearing that they changed.

use std::borrow::Cow;

use super::cache::CacheScope;
use super::content::Annotations;
use super::icon::Icon;
use super::result::ResultType;
use super::wire::{
    Decode, DecodeError, Encode, IntoOwned, Lint, Linter, List, Map, Number, RawObject, Reader,
};
use crate::macros::{missing, serde_bridge, wire_struct};
use crate::text::JsonStr;

wire_struct! {
    /// Something a server lets be read.
    pub struct Resource<'a> {
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
    /// A pattern for the URIs of resources.
    pub struct ResourceTemplate<'a> {
        required {
            /// The pattern, RFC 6570.
            uri_template("uriTemplate"): Cow<'a, str>,
            /// Its name for programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its name for people.
            title("title"): Cow<'a, str>,
            /// What it is for.
            description("description"): Cow<'a, str>,
            /// The media type of everything that matches, if it is one.
            mime_type("mimeType"): Cow<'a, str>,
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
    /// What `resources/list` answers.
    pub struct ListResourcesResult<'a> {
        required {
            /// The resources of this page.
            resources("resources"): List<'a, Resource<'a>>,
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
    /// What `resources/templates/list` answers.
    pub struct ListResourceTemplatesResult<'a> {
        required {
            /// The templates of this page.
            resource_templates("resourceTemplates"): List<'a, ResourceTemplate<'a>>,
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
    /// What `resources/read` asks.
    pub struct ReadResourceRequestParams<'a> {
        required {
            /// The resource.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// What the server asked to get back with the answers.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Answers to what the server asked, by its keys.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// What `resources/read` answers.
    pub struct ReadResourceResult<'a> {
        required {
            /// The contents; several for a folder, say.
            contents("contents"): List<'a, ResourceContents<'a>>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// How long the contents may be kept, in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// For whom they may be kept.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

/// The contents of a resource. Whichever of `text` and `blob` is there tells which; of the two, an empty text is what
/// a server writes that cannot leave a field out.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContents<'a> {
    /// Text.
    Text(TextResourceContents<'a>),
    /// Bytes.
    Blob(BlobResourceContents<'a>),
}

wire_struct! {
    /// Contents that are text.
    pub struct TextResourceContents<'a> {
        required {
            /// The resource.
            uri("uri"): Cow<'a, str>,
            /// The text.
            text("text"): JsonStr<'a>,
        }
        optional {
            /// Its media type.
            mime_type("mimeType"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Contents that are bytes.
    pub struct BlobResourceContents<'a> {
        required {
            /// The resource.
            uri("uri"): Cow<'a, str>,
            /// The bytes, base64.
            blob("blob"): JsonStr<'a>,
        }
        optional {
            /// Their media type.
            mime_type("mimeType"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `resources/subscribe`, `resources/unsubscribe` and their like ask.
    pub struct ResourceRequestParams<'a> {
        required {
            /// The resource.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `notifications/resources/updated` says.
    pub struct ResourceUpdatedNotificationParams<'a> {
        required {
            /// The resource, or a part of one that was subscribed to.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

impl ResourceContents<'_> {
    /// The resource.
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }
}

impl<'a> Decode<'a> for ResourceContents<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        const EMPTY: &str = "\"\"";
        match reader.find(["text", "blob"])? {
            [Some(EMPTY), Some(blob)] if blob.starts_with('"') && blob != EMPTY => {
                Decode::decode(reader).map(Self::Blob)
            }
            [Some(text), _] if text.starts_with('"') => Decode::decode(reader).map(Self::Text),
            [_, Some(_)] => Decode::decode(reader).map(Self::Blob),
            [Some(_), None] => Decode::decode(reader).map(Self::Text),
            [None, None] => Err(missing("text")),
        }
    }
}

impl Encode for ResourceContents<'_> {
    fn encode(&self, out: &mut String) {
        match self {
            Self::Text(contents) => contents.encode(out),
            Self::Blob(contents) => contents.encode(out),
        }
    }
}

impl IntoOwned for ResourceContents<'_> {
    type Owned = ResourceContents<'static>;

    fn into_owned(self) -> Self::Owned {
        match self {
            Self::Text(contents) => ResourceContents::Text(contents.into_owned()),
            Self::Blob(contents) => ResourceContents::Blob(contents.into_owned()),
        }
    }
}

impl Lint for ResourceContents<'_> {
    fn lint(&self, linter: &mut Linter) {
        match self {
            Self::Text(contents) => contents.lint(linter),
            Self::Blob(contents) => contents.lint(linter),
        }
    }
}

serde_bridge!(ResourceContents);
