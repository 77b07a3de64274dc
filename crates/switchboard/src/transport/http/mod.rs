//! Servers reached over HTTP: Streamable HTTP in both eras, and the older HTTP+SSE.
//!
//! | where | what |
//! |---|---|
//! | [`HttpClient`] (`client.rs`) | the pooled client of a host: connections, TLS, proxies |
//! | [`StreamableConnector`] (`streamable.rs`, `answer.rs`, `resume.rs`) | one POST for each message, JSON or a stream as its answer |
//! | [`LegacyConnector`] (`legacy.rs`) | one GET stream for all answers, POSTs to the place it names |
//! | `channel.rs`, `permit.rs`, `headers.rs`, `helper.rs`, `address.rs` | one exchange with one server: address, headers, redirects, authorization |
//! | [`ProxySettings`] (`proxy.rs`) | which proxy stands between, for WebSocket too |
//! | `events.rs`, `sse.rs` | bodies and event streams, bounded |
//! | `failure.rs` | what an error means |
//! | `delivery.rs`, `lifetime.rs` | a message on its way, and the tasks of a link |
//!
//! Deadlines: connecting has one, and so has the wait for the answer to a message that is no request. The answer to a
//! request is the caller's to give up, and a stream lives as long as it likes.

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

/// A server on a network: where it is, and what it is shown with every request.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    /// The address. For HTTP `http://…`, `https://…` or a Unix socket (`unix:///run/x.sock:/mcp`: the socket, and
    /// after the colon the path of the resource); for WebSocket `ws://…` or `wss://…`. It may hold a secret.
    pub url: Secret,
    /// Headers for every request.
    pub headers: Vec<(String, Secret)>,
    /// A command that prints more of them.
    pub headers_helper: Option<HeadersHelper>,
    /// What authorizes requests, unless the headers above do so already.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

impl RemoteServer {
    /// A server at this address that needs no headers.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: Secret::new(url),
            headers: Vec::new(),
            headers_helper: None,
            authorizer: None,
        }
    }
}
