//! The `_meta` members that the protocol itself defines.
//!
//! Messages carry `_meta` as a [`RawObject`](super::RawObject), because most of it is custom; decode it as one of these
//! types to read the protocol's part. The keys, and what each era adds, are in [`crate::meta`].

use std::borrow::Cow;

use super::capabilities::ClientCapabilities;
use super::lifecycle::Implementation;
use super::logging::LoggingLevel;
use super::task::RelatedTaskMetadata;
use super::token::ProgressToken;
use crate::id::RequestId;
use crate::macros::wire_struct;

wire_struct! {
    /// The decoded `_meta` of a request. To classify a request, [`crate::meta::DeclaredMeta`] is sufficient.
    pub struct RequestMeta<'a> {
        optional {
            /// Revision of the request (stateless era).
            protocol_version("io.modelcontextprotocol/protocolVersion"): Cow<'a, str>,
            /// Capabilities of the client (stateless era).
            client_capabilities("io.modelcontextprotocol/clientCapabilities"): ClientCapabilities<'a>,
            /// Name and version of the client (stateless era).
            client_info("io.modelcontextprotocol/clientInfo"): Implementation<'a>,
            /// Minimum severity of log messages (stateless era).
            log_level("io.modelcontextprotocol/logLevel"): LoggingLevel<'a>,
            /// Token for progress notifications.
            progress_token("progressToken"): ProgressToken<'a>,
            /// The task the request belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}

wire_struct! {
    /// The decoded `_meta` of a notification.
    pub struct NotificationMeta<'a> {
        optional {
            /// Id of the `subscriptions/listen` request it belongs to (stateless era).
            subscription_id("io.modelcontextprotocol/subscriptionId"): RequestId<'a>,
            /// The task it belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}

wire_struct! {
    /// The decoded `_meta` of a result.
    pub struct ResultMeta<'a> {
        optional {
            /// Name and version of the server (stateless era).
            server_info("io.modelcontextprotocol/serverInfo"): Implementation<'a>,
            /// Id of the `subscriptions/listen` request that ends (stateless era).
            subscription_id("io.modelcontextprotocol/subscriptionId"): RequestId<'a>,
            /// The task it belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}
