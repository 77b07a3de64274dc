//! Options of the HTTP server: address, access, limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::credentials::TokenSources;
use super::oauth::OAuthOptions;
use super::tls::TlsFiles;
use super::token::Token;

/// The socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// A TCP address; port 0 picks a free port.
    Tcp(SocketAddr),
    /// A unix-domain socket that only its owner may connect to. A stale socket file is replaced.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// Which clients are served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Access {
    /// Clients that send this token, named `default`.
    Token(Token),
    /// Clients that send one of these tokens, which may change while the server runs.
    Tokens(TokenSources),
    /// All clients that can connect. For tests, and for sockets that are protected by other means.
    Anybody,
}

/// Address, access and limits of an HTTP server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Loopback, unless `allow_remote` is set.
    pub address: Address,
    /// Whether the address may be one that other machines can reach.
    pub allow_remote: bool,
    /// Checked before anything else of a request.
    pub access: Access,
    /// Accepted values of `Host` besides loopback and the listening address: a name, optionally with a port.
    pub allowed_hosts: Vec<String>,
    /// Accepted values of `Origin` besides loopback, such as `https://example.org`.
    pub allowed_origins: Vec<String>,
    /// Whether pages of allowed origins may read the answers (CORS headers).
    pub cors: bool,
    /// Path of the endpoint, `/mcp` by default.
    pub path: String,
    /// Serves HTTPS; `None`: HTTP.
    pub tls: Option<TlsFiles>,
    /// Accepts access tokens of an authorization server as well.
    pub oauth: Option<OAuthOptions>,
    /// Sizes, counts and timeouts.
    pub limits: HttpLimits,
}

/// Limits and timeouts of an HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Maximum number of connections that passed access control. As many more may wait for a slot; beyond that the
    /// answer is 503.
    pub max_connections: usize,
    /// Maximum number of connections that have not passed access control yet. When exceeded, the oldest connection of
    /// the address with the most of them is closed.
    pub max_strangers: usize,
    /// The same limit per address (IPv6: per /64 network). When exceeded, its oldest connection is closed.
    pub max_strangers_per_address: usize,
    /// Maximum number of sessions. When exceeded, the session that has been idle longest is ended.
    pub max_sessions: usize,
    /// Time after which a session without running requests and connections is ended.
    pub session_idle: Duration,
    /// Maximum number of requests that run at once; beyond that the answer is 503.
    pub max_requests: usize,
    /// The same for one client, as access control has identified it; beyond that the answer is 429.
    pub max_requests_per_client: usize,
    /// Requests per second of one client; beyond that the answer is 429. `None`: unlimited.
    pub max_rate_per_client: Option<NonZeroU32>,
    /// Maximum size of a request body.
    pub max_body_bytes: usize,
    /// Time for a new connection to send a request that passes access control.
    pub head_deadline: Duration,
    /// Time for a connection that has passed access control to be idle, or to send a request head.
    pub idle_deadline: Duration,
    /// Time to send a request body.
    pub body_deadline: Duration,
    /// Time a client may read nothing of its response before the connection is closed.
    pub stall_deadline: Duration,
    /// Bytes queued on one stream beyond which progress reports are dropped.
    pub max_queued_bytes: usize,
    /// Bytes of sent events a session stores, so that a client can resume a lost stream.
    pub max_replay_bytes: usize,
    /// Time after which a pending answer becomes an event stream. Until then it can be a single JSON document with its
    /// own status.
    pub stream_after: Duration,
    /// Interval between keep-alive comments on an idle stream.
    pub keep_alive: Duration,
    /// Lifetime of a session's stream, after which the client must reconnect (from revision 2025-11-25). Set it below
    /// the timeout of a proxy. `None`: unlimited.
    pub stream_lifetime: Option<Duration>,
    /// Delay before a client that lost a stream should reconnect.
    pub retry: Duration,
    /// Time for running requests to end when the server drains.
    pub drain: Duration,
    /// Time a shutdown may take before connections are closed forcibly.
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
            max_requests: 8192,
            max_requests_per_client: 4096,
            max_rate_per_client: None,
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
            drain: Duration::from_secs(10),
            closing: Duration::from_secs(5),
        }
    }
}

impl HttpOptions {
    /// Listens on a free loopback port, with the default limits.
    pub fn new(access: Access) -> Self {
        Self {
            address: Address::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)),
            allow_remote: false,
            access,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            cors: false,
            path: "/mcp".to_owned(),
            tls: None,
            oauth: None,
            limits: HttpLimits::default(),
        }
    }
}
