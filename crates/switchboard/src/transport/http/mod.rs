//! HTTP transports: Streamable HTTP in both eras, and the legacy HTTP+SSE.
//!
//! | where | what |
//! |---|---|
//! | [`HttpClient`] (`client.rs`) | the pooled client of a host: connections, TLS, proxies |
//! | [`StreamableConnector`] (`streamable.rs`, `answer.rs`, `resume.rs`) | one POST per message, answered by JSON or a stream |
//! | [`LegacyConnector`] (`legacy.rs`) | one GET stream for all answers, POSTs to the endpoint it names |
//! | `channel.rs`, `permit.rs`, `headers.rs`, `helper.rs`, `address.rs` | one exchange with one server: address, headers, redirects, authorization |
//! | [`ProxySettings`] (`proxy.rs`) | proxy selection, for WebSocket too |
//! | `events.rs`, `sse.rs` | bodies and event streams, bounded |
//! | `failure.rs` | classification of errors |
//! | `delivery.rs`, `lifetime.rs` | delivery of a message, and the tasks of a link |
//!
//! Connecting and the response to a message other than a request have deadlines. The answer to a request is timed out
//! by the caller, and a stream has no deadline.

mod address;
mod answer;
mod channel;
mod client;
mod delivery;
mod events;
mod failure;
mod headers;
mod helper;
mod legacy;
mod lifetime;
mod permit;
mod proxy;
mod resume;
pub(crate) mod sse;
mod streamable;
mod trusted;

use std::sync::Arc;

use switchboard_config::secret::Secret;

pub(super) use address::Address;
pub use client::{HttpClient, HttpSettings};
pub(super) use failure::{describe_io, describe_tls, refusal_head, tls_error};
pub use helper::HeadersHelper;
pub use legacy::LegacyConnector;
pub(super) use lifetime::Lifetime;
pub(super) use permit::Permits;
pub use proxy::ProxySettings;
pub use streamable::StreamableConnector;

use crate::auth::Authorizer;

/// A server on a network: its address, and the headers and credentials of every request.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    /// For HTTP `http://…`, `https://…` or a Unix socket (`unix:///run/x.sock:/mcp`: the socket, and after the colon
    /// the path of the resource); for WebSocket `ws://…` or `wss://…`. May contain a secret.
    pub url: Secret,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// Command that prints further headers.
    pub headers_helper: Option<HeadersHelper>,
    /// Authorizes requests, unless the headers contain credentials.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

impl RemoteServer {
    /// A server at this address without headers.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: Secret::new(url),
            headers: Vec::new(),
            headers_helper: None,
            authorizer: None,
        }
    }
}
