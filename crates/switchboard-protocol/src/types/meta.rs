//! What the protocol itself puts into `_meta`.
//!
//! Messages carry `_meta` as a [`RawObject`](super::RawObject), because most of it is other people's; decode it as
//! one of these types to read the protocol's part. The keys by name, and what an era adds, are in [`crate::meta`].

use std::borrow::Cow;

use super::capabilities::ClientCapabilities;
use super::lifecycle::Implementation;
use super::logging::LoggingLevel;
use super::task::RelatedTaskMetadata;
use super::token::ProgressToken;
use crate::id::RequestId;
use crate::macros::wire_struct;

wire_struct! {
    /// The `_meta` of a request, decoded. To find out how to serve one, [`crate::meta::DeclaredMeta`] is enough.
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
            subscription_id("io.modelcontextprotocol/subscriptionId"): RequestId<'a>,
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
            subscription_id("io.modelcontextprotocol/subscriptionId"): RequestId<'a>,
            /// The task it belongs to (2025-11-25).
            related_task("io.modelcontextprotocol/related-task"): RelatedTaskMetadata<'a>,
        }
    }
}
