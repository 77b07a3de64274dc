//! `initialize`, `server/discover`, and types for requests without specific content.

use std::borrow::Cow;

use super::cache::CacheScope;
use super::capabilities::{ClientCapabilities, ServerCapabilities};
use super::icon::Icon;
use super::result::ResultType;
use super::wire::{List, Number, RawObject};
use crate::macros::wire_struct;
use crate::text::JsonStr;

wire_struct! {
    /// The name and version of a client or server.
    pub struct Implementation<'a> {
        required {
            /// Name used by programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Version of the software. Every revision requires it; a server without one still works.
            version("version"): Cow<'a, str>,
            /// Display name for users.
            title("title"): Cow<'a, str>,
            /// Description for users and models.
            description("description"): Cow<'a, str>,
            /// URL of its website.
            website_url("websiteUrl"): Cow<'a, str>,
        }
        collections {
            /// Icons for user interfaces.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// Parameters of `initialize` (stateful era).
    pub struct InitializeRequestParams<'a> {
        required {
            /// The newest revision the client supports.
            protocol_version("protocolVersion"): Cow<'a, str>,
            /// Capabilities of the client.
            capabilities("capabilities"): ClientCapabilities<'a>,
            /// Name and version of the client.
            client_info("clientInfo"): Implementation<'a>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Result of `initialize` (stateful era).
    pub struct InitializeResult<'a> {
        required {
            /// The negotiated revision.
            protocol_version("protocolVersion"): Cow<'a, str>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Capabilities of the server. Every revision requires it; without it the server has no features.
            capabilities("capabilities"): ServerCapabilities<'a>,
            /// Name and version of the server. Every revision requires it; nothing depends on it.
            server_info("serverInfo"): Implementation<'a>,
            /// Instructions for the model.
            instructions("instructions"): JsonStr<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Result of `server/discover` (stateless era).
    pub struct DiscoverResult<'a> {
        required {
            /// The revisions the server supports.
            supported_versions("supportedVersions"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Capabilities of the server. The revision requires it; without it the server has no features.
            capabilities("capabilities"): ServerCapabilities<'a>,
            /// Instructions for the model.
            instructions("instructions"): JsonStr<'a>,
            /// Cache lifetime in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// Who may share the cached result.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Metadata, with the server's name and version.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of requests without specific content: `server/discover`, `ping`, `roots/list`.
    pub struct RequestParams<'a> {
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Parameters of a request for one page of a list.
    pub struct PaginatedRequestParams<'a> {
        optional {
            /// Cursor of the page; absent for the first page.
            cursor("cursor"): Cow<'a, str>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// The members common to all list pages. The items stay in `extra`, undecoded.
    pub struct PageHead<'a> {
        optional {
            /// Cursor of the next page.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// Cache lifetime in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// Who may share the cached result.
            cache_scope("cacheScope"): CacheScope<'a>,
        }
    }
}

wire_struct! {
    /// A result without specific content.
    pub struct EmptyResult<'a> {
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
