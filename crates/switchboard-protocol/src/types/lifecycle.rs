//! Getting to know each other: `initialize`, `server/discover`, and requests that carry nothing else.

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
            /// Its name for programs.
            name("name"): Cow<'a, str>,
        }
        optional {
            /// Its version. Every revision requires it; a server without one still works.
            version("version"): Cow<'a, str>,
            /// Its name for people.
            title("title"): Cow<'a, str>,
            /// What it is.
            description("description"): Cow<'a, str>,
            /// Where to read about it.
            website_url("websiteUrl"): Cow<'a, str>,
        }
        collections {
            /// Pictures to show beside it.
            icons("icons"): List<'a, Icon<'a>>,
        }
    }
}

wire_struct! {
    /// What `initialize` asks (stateful era).
    pub struct InitializeRequestParams<'a> {
        required {
            /// The newest revision the client speaks.
            protocol_version("protocolVersion"): Cow<'a, str>,
            /// What the client can do.
            capabilities("capabilities"): ClientCapabilities<'a>,
            /// Who the client is.
            client_info("clientInfo"): Implementation<'a>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `initialize` answers (stateful era).
    pub struct InitializeResult<'a> {
        required {
            /// The revision to speak from here on.
            protocol_version("protocolVersion"): Cow<'a, str>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// What the server can do. Every revision requires it; without it the server offers nothing.
            capabilities("capabilities"): ServerCapabilities<'a>,
            /// Who the server is. Every revision requires it; nothing depends on it.
            server_info("serverInfo"): Implementation<'a>,
            /// How to use the server, for the model.
            instructions("instructions"): JsonStr<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `server/discover` answers (stateless era).
    pub struct DiscoverResult<'a> {
        required {
            /// The revisions the server speaks.
            supported_versions("supportedVersions"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// What the server can do. The revision requires it; without it the server offers nothing.
            capabilities("capabilities"): ServerCapabilities<'a>,
            /// How to use the server, for the model.
            instructions("instructions"): JsonStr<'a>,
            /// How long the answer may be kept, in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// For whom it may be kept.
            cache_scope("cacheScope"): CacheScope<'a>,
            /// Protocol metadata, with the server's name and version.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What a request asks that has nothing of its own to say: `server/discover`, `ping`, `roots/list`.
    pub struct RequestParams<'a> {
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What a request for one page of a list asks.
    pub struct PaginatedRequestParams<'a> {
        optional {
            /// Where the page starts; the first page without one.
            cursor("cursor"): Cow<'a, str>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What any page of a list says besides its items, which stay in `extra`, undecoded.
    pub struct PageHead<'a> {
        optional {
            /// Where the next page starts.
            next_cursor("nextCursor"): Cow<'a, str>,
            /// How long the answer may be kept, in milliseconds.
            ttl_ms("ttlMs"): Number<'a>,
            /// For whom it may be kept.
            cache_scope("cacheScope"): CacheScope<'a>,
        }
    }
}

wire_struct! {
    /// An answer that says no more than that it was done.
    pub struct EmptyResult<'a> {
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}
