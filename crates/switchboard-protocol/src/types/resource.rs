//! Resources: listing, reading, and notifications of changes.

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
    /// A resource that a server offers.
    pub struct Resource<'a> {
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
    /// A template for the URIs of resources.
    pub struct ResourceTemplate<'a> {
        required {
            /// URI template (RFC 6570).
            uri_template("uriTemplate"): Cow<'a, str>,
            /// Name used by programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Display name for users.
            title("title"): Cow<'a, str>,
            /// Description for users and models.
            description("description"): Cow<'a, str>,
            /// Media type of all matching resources, if they share one.
            mime_type("mimeType"): Cow<'a, str>,
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
    /// Result of `resources/list`.
    pub struct ListResourcesResult<'a> {
        required {
            /// The resources of this page.
            resources("resources"): List<'a, Resource<'a>>,
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
    /// Result of `resources/templates/list`.
    pub struct ListResourceTemplatesResult<'a> {
        required {
            /// The templates of this page.
            resource_templates("resourceTemplates"): List<'a, ResourceTemplate<'a>>,
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
    /// Parameters of `resources/read`.
    pub struct ReadResourceRequestParams<'a> {
        required {
            /// URI of the resource.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Opaque state of the previous result, sent back with the responses.
            request_state("requestState"): JsonStr<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
        collections {
            /// Responses to the server's input requests, by key.
            input_responses("inputResponses"): Map<'a, RawObject<'a>>,
        }
    }
}

wire_struct! {
    /// Result of `resources/read`.
    pub struct ReadResourceResult<'a> {
        required {
            /// The contents; several, for example, for a folder.
            contents("contents"): List<'a, ResourceContents<'a>>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Cache lifetime in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// Who may share the cached result.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

/// The contents of a resource. The field `text` or `blob` determines the variant; if both are present, an empty text is
/// ignored, because some servers cannot omit a field.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContents<'a> {
    /// Text contents.
    Text(TextResourceContents<'a>),
    /// Binary contents.
    Blob(BlobResourceContents<'a>),
}

wire_struct! {
    /// Text contents of a resource.
    pub struct TextResourceContents<'a> {
        required {
            /// URI of the resource.
            uri("uri"): Cow<'a, str>,
            /// The text, possibly escaped.
            text("text"): JsonStr<'a>,
        }
        optional {
            /// Media type (MIME type).
            mime_type("mimeType"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Binary contents of a resource.
    pub struct BlobResourceContents<'a> {
        required {
            /// URI of the resource.
            uri("uri"): Cow<'a, str>,
            /// The data as base64.
            blob("blob"): JsonStr<'a>,
        }
        optional {
            /// Media type (MIME type).
            mime_type("mimeType"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `resources/subscribe` and `resources/unsubscribe`.
    pub struct ResourceRequestParams<'a> {
        required {
            /// URI of the resource.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of `notifications/resources/updated`.
    pub struct ResourceUpdatedNotificationParams<'a> {
        required {
            /// URI of the resource, or of a part of a subscribed one.
            uri("uri"): Cow<'a, str>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

impl ResourceContents<'_> {
    /// The URI of the resource.
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
