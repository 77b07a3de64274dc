//! What the protocol itself puts into `_meta`.
//!
//! Messages carry `_meta` as a [`RawObject`](super::RawObject), because most of it is other people's; decode it as
//! one of these types to read the protocol's part.

use std::borrow::Cow;

use super::capabilities::ClientCapabilities;
use super::lifecycle::Implementation;
use super::logging::LoggingLevel;
use super::task::RelatedTaskMetadata;
use super::token::ProgressToken;
use crate::macros::wire_struct;

/// Where a request says which revision it is in.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where a request says what its sender can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Where a request says who sends it.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Where a request says which log messages it wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Where a result says who sends it.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Where a notification says which subscription it belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

wire_struct! {
    /// The `_meta` of a request.
    pub struct RequestMeta<'a> {
        optional {
            /// The revision the request is in (stateless era).
            protocol_version("io.modelcontextprotocol/protocolVersion"): Cow<'a, str>,
            /// What the client can do (stateless era).
            client_capabilities("io.modelcontextprotocol/clientCapabilities"): ClientCapabilities<'a>,
            /// Who the client is (stateless era).
            client_info("io.modelcontextprotocol/clientInfo"): Implementation<'a>,
            /// The least severe log messages wanted (stateless era).
            log_level("io.modelcontextprotocol/logLevel"): LoggingLevel<'a>,
            /// What progress notifications refer to.
            progress_token("progressToken"): ProgressToken<'a>,
            /// The task the request belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}

wire_struct! {
    /// The `_meta` of a notification.
    pub struct NotificationMeta<'a> {
        optional {
            /// The id of the `subscriptions/listen` request it answers (stateless era).
            subscription_id("io.modelcontextprotocol/subscriptionId"): ProgressToken<'a>,
            /// The task it belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}

wire_struct! {
    /// The `_meta` of a result.
    pub struct ResultMeta<'a> {
        optional {
            /// Who the server is (stateless era).
            server_info("io.modelcontextprotocol/serverInfo"): Implementation<'a>,
            /// The id of the `subscriptions/listen` request that ends (stateless era).
            subscription_id("io.modelcontextprotocol/subscriptionId"): ProgressToken<'a>,
            /// The task it belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}
