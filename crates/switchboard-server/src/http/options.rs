//! How a server listens, whom it lets in, and its bounds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::token::Token;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// A TCP port; port 0 is any that is free.
    Tcp(SocketAddr),
    /// A unix-domain socket, which only its owner may connect to. A socket file that nobody listens on is replaced.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// Whom a server lets in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Access {
    /// Whoever shows this token.
    Token(Token),
    /// Everybody who can connect. For tests, and for sockets that something else guards.
    Anybody,
}

/// How a server listens, whom it lets in, and its bounds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Where it listens.
    pub address: Address,
    /// Whether it may listen on an address that other machines can reach.
    pub allow_remote: bool,
    /// Whom it lets in.
    pub access: Access,
    /// Values of `Host` that are served, besides those of loopback and the address it listens on: a name, or a name and
    /// a port.
    pub allowed_hosts: Vec<String>,
    /// Values of `Origin` that are let in, besides those of loopback, such as `https://example.org`.
    pub allowed_origins: Vec<String>,
    /// Whether pages of allowed origins may read the answers (CORS). Without it a browser does not let them.
    pub cors: bool,
    /// The path of the endpoint.
    pub path: String,
    /// Its bounds.
    pub limits: HttpLimits,
}

/// The bounds of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// How many connections there may be whose requests have passed access control. As many more wait for a place;
    /// beyond that the answer is 503.
    pub max_connections: usize,
    /// How many connections there may be that have not passed access control yet. For a new one the oldest of the
    /// address with the most of them is closed.
    pub max_strangers: usize,
    /// How many of those one address may have. For a new one its oldest is closed.
    pub max_strangers_per_address: usize,
    /// How many sessions there may be. For a new one the session that is idle longest gives way.
    pub max_sessions: usize,
    /// How long a session may be idle: nothing running, nobody connected.
    pub session_idle: Duration,
    /// How large the body of a request may be.
    pub max_body_bytes: usize,
    /// How long a new connection may take until a request of its has passed access control.
    pub head_deadline: Duration,
    /// How long a connection that has passed it may be idle or take to send the head of a request.
    pub idle_deadline: Duration,
    /// How long a client may take to send the body of a request.
    pub body_deadline: Duration,
    /// How long a client may read nothing of what it is sent before its connection is closed.
    pub stall_deadline: Duration,
    /// How many bytes may wait for a client on one stream before reports on progress are left out.
    pub max_queued_bytes: usize,
    /// How many bytes a session keeps of what was sent, for clients that lost their connection.
    pub max_replay_bytes: usize,
    /// How long a request may take before its answer becomes a stream. Until then it may still be a single JSON document
    /// with a status of its own.
    pub stream_after: Duration,
    /// How often a stream with nothing to say gives a sign of life.
    pub keep_alive: Duration,
    /// How long a stream of a session may last before the client has to connect again, from revision 2025-11-25 on.
    /// Proxies end long streams less politely.
    pub stream_lifetime: Option<Duration>,
    /// After how long a client that lost a stream should connect again.
    pub retry: Duration,
    /// How long a shutdown may take before connections are just closed.
    pub closing: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_strangers: 256,
            max_strangers_per_address: 128,
            max_sessions: 1024,
            session_idle: Duration::from_secs(30 * 60),
            max_body_bytes: 16 * 1024 * 1024,
            head_deadline: Duration::from_secs(5),
            idle_deadline: Duration::from_secs(60),
            body_deadline: Duration::from_secs(30),
            stall_deadline: Duration::from_secs(60),
            max_queued_bytes: 4 * 1024 * 1024,
            max_replay_bytes: 1024 * 1024,
            stream_after: Duration::from_millis(500),
            keep_alive: Duration::from_secs(15),
            stream_lifetime: None,
            retry: Duration::from_secs(1),
            closing: Duration::from_secs(5),
        }
    }
}

impl HttpOptions {
    /// Listens on a port of loopback for whoever shows the token. Everything else is changed from there.
    pub fn new(access: Access) -> Self {
        Self {
            address: Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)),
            allow_remote: false,
            access,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            cors: false,
            path: "/mcp".to_owned(),
            limits: HttpLimits::default(),
        }
    }
}
