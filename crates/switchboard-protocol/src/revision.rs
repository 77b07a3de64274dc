//! The protocol's revisions, their eras and features.
//!
//! One table defines which feature exists in which revision. Other code calls [`Revision::has`] and never compares
//! dates.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::printable::printable;

/// A revision of the specification, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: the first; HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, annotations.
    V2025_03_26,
    /// 2025-06-18: structured output, elicitation, the version header.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, experimental tasks.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

/// The two variants of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// A handshake opens a session; both sides may send requests.
    Stateful,
    /// Every request is self-contained; only clients send requests.
    Stateless,
}

/// A feature that depends on the revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// The `initialize` handshake.
    Handshake,
    /// The `ping` request.
    Ping,
    /// Requests from server to client.
    ServerRequests,
    /// `resources/subscribe` and `resources/unsubscribe`.
    ResourceSubscribe,
    /// The `logging/setLevel` request.
    SetLogLevel,
    /// JSON arrays of messages.
    Batches,
    /// A single HTTP endpoint.
    StreamableHttp,
    /// The `Mcp-Session-Id` header and DELETE.
    HttpSessions,
    /// A GET stream for messages outside of requests.
    GetStream,
    /// The `Last-Event-ID` header.
    StreamResumption,
    /// `annotations` of tools.
    ToolAnnotations,
    /// Content blocks with audio.
    AudioContent,
    /// The `message` of progress notifications.
    ProgressMessage,
    /// The `MCP-Protocol-Version` header.
    VersionHeader,
    /// `structuredContent` and `outputSchema`.
    StructuredOutput,
    /// `resource_link` content.
    ResourceLinks,
    /// `title` in addition to `name`.
    Titles,
    /// The `elicitation/create` request.
    Elicitation,
    /// Elicitation by URL.
    UrlElicitation,
    /// `icons` of tools, prompts, resources and implementations.
    Icons,
    /// Tools in sampling requests.
    SamplingTools,
    /// Tasks in the core protocol; later an extension.
    CoreTasks,
    /// `_meta` with version and capabilities on every request.
    RequestMeta,
    /// The `server/discover` request.
    Discover,
    /// The `subscriptions/listen` request.
    Subscriptions,
    /// `resultType`, and requests for input in results.
    ResultType,
    /// `ttlMs` and `cacheScope`.
    CacheHints,
    /// `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`.
    StandardHeaders,
    /// The `capabilities.extensions` member.
    Extensions,
    /// `structuredContent` of any JSON type.
    AnyStructuredContent,
}

/// An unknown protocol version, as sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version `{}`", printable(.0, 32))]
pub struct UnknownRevision(pub String);

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision with a handshake.
    pub const LATEST_STATEFUL: Self = Self::V2025_11_25;

    /// The revision of an HTTP request without a version header.
    pub const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The date, as on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of this revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Stateful
            }
            Self::V2026_07_28 => Era::Stateless,
        }
    }

    /// Whether this revision has a feature.
    pub fn has(self, feature: Feature) -> bool {
        let (first, last) = feature.span();
        first <= self && self <= last
    }
}

impl Feature {
    /// The first and the last revision with the feature.
    pub const fn span(self) -> (Revision, Revision) {
        use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};
        match self {
            Self::Handshake
            | Self::Ping
            | Self::ServerRequests
            | Self::ResourceSubscribe
            | Self::SetLogLevel => (V2024_11_05, V2025_11_25),
            Self::Batches => (V2025_03_26, V2025_03_26),
            Self::HttpSessions | Self::GetStream | Self::StreamResumption => {
                (V2025_03_26, V2025_11_25)
            }
            Self::StreamableHttp
            | Self::ToolAnnotations
            | Self::AudioContent
            | Self::ProgressMessage => (V2025_03_26, V2026_07_28),
            Self::VersionHeader
            | Self::StructuredOutput
            | Self::ResourceLinks
            | Self::Titles
            | Self::Elicitation => (V2025_06_18, V2026_07_28),
            Self::UrlElicitation | Self::Icons | Self::SamplingTools => (V2025_11_25, V2026_07_28),
            Self::CoreTasks => (V2025_11_25, V2025_11_25),
            Self::RequestMeta
            | Self::Discover
            | Self::Subscriptions
            | Self::ResultType
            | Self::CacheHints
            | Self::StandardHeaders
            | Self::Extensions
            | Self::AnyStructuredContent => (V2026_07_28, V2026_07_28),
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
