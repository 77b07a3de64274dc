//! Many clients over Streamable HTTP, on one endpoint for both eras, over WebSocket and over HTTP+SSE.
//!
//! | where | what |
//! |---|---|
//! | this file | the server: bind, serve, shut down |
//! | [`options`](HttpOptions) | address, access and limits |
//! | `token`, `named_tokens`, `credentials` | a bearer token and its file; tokens in a store; checking them |
//! | `listener`, `connection` | sockets and their deadlines |
//! | `admission` | which connections to keep when there are too many |
//! | `access`, `grant` | checks `Host`, `Origin` and token before anything else of a request; who makes the request |
//! | `router` | the paths and their profiles |
//! | `endpoint`, `head` | the transport's rules: POST, GET, DELETE and their headers |
//! | `websocket`, `legacy_sse` | clients over WebSocket, and of the transport of 2024-11-05 |
//! | `quota` | how many requests run at once, and how many start per second |
//! | `tls`, `oauth` | certificates; access tokens of an authorization server |
//! | `sessions` | open sessions and their expiry |
//! | `stream`, `body` | queued events, how they are written, and how a lost stream is resumed |
//! | `answer`, `stop` | statuses, headers, errors; the shutdown signal |
//!
//! A request for an unknown session, for example after a restart, is answered with 404, and the client must start a new
//! one, unless [`Handler::resume`] restores it.

mod access;
mod admission;
mod answer;
mod body;
mod connection;
mod credentials;
mod endpoint;
mod grant;
mod head;
mod health;
mod legacy_sse;
mod listener;
mod named_tokens;
mod oauth;
mod options;
mod quota;
mod router;
mod sessions;
mod stop;
mod stream;
mod tls;
mod token;
mod websocket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::handler::Handler;
use access::AccessControl;
use admission::{Admission, Place};
use endpoint::Endpoint;
use listener::{Accepted, Listener};
use tls::Tls;

pub use credentials::TokenSources;
pub use named_tokens::{
    CreateTokenError, DEFAULT_TOKEN, NamedTokens, NewToken, TokenInfo, TokenName,
};
pub use oauth::OAuthOptions;
pub use options::{Access, Address, HttpLimits, HttpOptions};
pub use stop::Shutdown;
pub use tls::{TlsError, TlsFiles};
pub use token::{Token, TokenError};

/// Backoff after a failed `accept`, for example when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Interval of looking whether all requests have ended.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// A bound HTTP server; [`serve`](Self::serve) runs it.
pub struct HttpServer {
    listener: Listener,
    address: Option<SocketAddr>,
    tls: Option<Arc<Tls>>,
    endpoint: Arc<Endpoint>,
    limits: HttpLimits,
    path: String,
    /// Held so that the server keeps running when the caller drops its handle.
    stopper: Shutdown,
}

/// Error from [`HttpServer::bind`].
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {kind}")]
#[non_exhaustive]
pub struct BindError {
    /// The requested address or socket path.
    pub address: String,
    /// The cause, which determines the hint.
    pub kind: BindErrorKind,
}

/// The cause of a [`BindError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindErrorKind {
    /// The address is not loopback, and remote access was not allowed.
    #[error("other machines could reach it")]
    Remote,
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The operating system returned an error.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl BindError {
    /// How to fix it, if known.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.kind {
            BindErrorKind::Remote => {
                Some("listen on 127.0.0.1, or allow other machines to connect explicitly")
            }
            BindErrorKind::System(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Some("the address is already in use: choose another port")
            }
            BindErrorKind::Tls(_) | BindErrorKind::System(_) => None,
        }
    }
}

impl HttpServer {
    /// Binds the address, without accepting connections yet. Must be called within a tokio runtime.
    pub async fn bind(
        options: HttpOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(Self, Shutdown), BindError> {
        let failed = |kind: BindErrorKind| BindError {
            address: match &options.address {
                Address::Tcp(address) => address.to_string(),
                #[cfg(unix)]
                Address::Unix(path) => path.display().to_string(),
            },
            kind,
        };
        if let Address::Tcp(address) = &options.address
            && !address.ip().is_loopback()
            && !options.allow_remote
        {
            return Err(failed(BindErrorKind::Remote));
        }
        let tls = options.tls.clone().map(Tls::load).transpose();
        let tls = tls.map_err(|error| failed(error.into()))?;
        let listener = Listener::bind(&options.address).await;
        let listener = listener.map_err(|error| failed(error.into()))?;
        let address = listener.address().map_err(|error| failed(error.into()))?;
        let stopper = Shutdown::new();
        let access = AccessControl::new(&options, address.map(|address| address.ip()));
        let server = Self {
            listener,
            address,
            tls: tls.map(Arc::new),
            limits: options.limits.clone(),
            path: options.path.clone(),
            endpoint: Arc::new(Endpoint::new(handler, options, access, stopper.listen())),
            stopper: stopper.clone(),
        };
        Ok((server, stopper))
    }

    /// The bound address; `None` for a unix-domain socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The endpoint's URL; `None` for a unix-domain socket.
    pub fn url(&self) -> Option<String> {
        let address = self.address?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Some(format!("{scheme}://{address}{}", self.path))
    }

    /// Serves clients until shut down, then ends streams and sessions and returns, at the latest after
    /// [`HttpLimits::closing`]; before that, running requests may end if the server is to drain. Dropping the future ends everything at once.
    pub async fn serve(self) {
        let mut connections = JoinSet::new();
        tokio::select! {
            () = self.accept_all(&mut connections) => {}
            never = self.endpoint.follow_access() => match never {},
        }
        // Accepts no further connections.
        drop(self.listener);
        let stop = self.stopper.listen();
        let drained = async {
            while self.endpoint.running() > 0 {
                sleep(DRAIN_INTERVAL).await;
            }
        };
        tokio::select! {
            () = drained => {}
            () = sleep(self.limits.drain) => {
                tracing::warn!(requests = self.endpoint.running(), "some requests did not end in time");
            }
            () = stop.stopped() => {}
        }
        self.stopper.stop();
        let sessions = self.endpoint.sessions.end_all();
        let ending = async {
            while connections.join_next().await.is_some() {}
            for session in &sessions {
                session.exchange.ended().await;
            }
        };
        if timeout(self.limits.closing, ending).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "shutdown timed out; closing the remaining connections"
            );
        }
        connections.shutdown().await;
    }

    async fn accept_all(&self, connections: &mut JoinSet<()>) {
        let mut stopped = std::pin::pin!(self.stopper.listen().draining());
        let admission = Admission::new(&self.limits);
        let mut expiry = interval(
            self.limits
                .session_idle
                .clamp(Duration::from_secs(2), Duration::from_secs(120))
                / 2,
        );
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stopped => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, address)) => {
                        let place = admission.enter(address);
                        connections.spawn(self.connection(socket, place));
                        // A request that arrived with the connection is read before the next connection can evict it.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "failed to accept a connection");
                        admission.make_room();
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                _ = expiry.tick() => self.endpoint.sessions.end_idle(),
            }
        }
    }

    fn connection(
        &self,
        socket: Accepted,
        place: Place,
    ) -> impl Future<Output = ()> + Send + 'static {
        let endpoint = Arc::clone(&self.endpoint);
        let limits = self.limits.clone();
        let stop = self.stopper.listen();
        let tls = self.tls.as_deref().map(Tls::acceptor);
        async move {
            match (socket, tls) {
                (Accepted::Tcp(socket), None) => {
                    connection::serve(socket, endpoint, &limits, place, stop).await;
                }
                (Accepted::Tcp(socket), Some(tls)) => {
                    let accepted = tokio::select! {
                        accepted = tls.accept(socket) => accepted,
                        () = place.lost() => return,
                    };
                    match accepted {
                        Ok(socket) => {
                            connection::serve(socket, endpoint, &limits, place, stop).await;
                        }
                        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
                    }
                }
                #[cfg(unix)]
                (Accepted::Unix(socket), _) => {
                    connection::serve(socket, endpoint, &limits, place, stop).await;
                }
            }
        }
    }
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HttpServer")
            .field("address", &self.address)
            .field("sessions", &self.endpoint.sessions.count())
            .finish_non_exhaustive()
    }
}
