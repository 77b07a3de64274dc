//! Many clients over Streamable HTTP, on one endpoint for both eras.
//!
//! | where | what |
//! |---|---|
//! | this file | the server: bind, serve, shut down |
//! | [`options`](HttpOptions), `token` | how it listens and whom it lets in; the token and its file |
//! | `listener`, `connection` | sockets, and the deadlines of those at their other end |
//! | `admission` | which connections are kept when there are too many |
//! | `access` | `Host`, `Origin` and token, before anything else of a request is looked at |
//! | `endpoint`, `head` | the rules of the transport: POST, GET, DELETE, and what their headers say |
//! | `sessions` | who has a session, and when it ends |
//! | `stream`, `body` | what waits for a client, how it is written, and how a lost stream is taken up again |
//! | `answer`, `stop` | statuses, headers, errors; the signal to end |
//!
//! A session that is lost, as by a restart, is answered with 404, and the client begins anew; a handler that can take
//! sessions up again says so by [`Handler::resume`].

mod access;
mod admission;
mod answer;
mod body;
mod connection;
mod endpoint;
mod head;
mod listener;
mod options;
mod sessions;
mod stop;
mod stream;
mod token;

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

pub use options::{Access, Address, HttpLimits, HttpOptions};
pub use stop::Shutdown;
pub use token::{Token, TokenError};

/// How long to wait after a connection could not be accepted, as when there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that listens. [`serve`](Self::serve) does the rest.
pub struct HttpServer {
    listener: Listener,
    address: Option<SocketAddr>,
    endpoint: Arc<Endpoint>,
    limits: HttpLimits,
    path: String,
    /// Kept, so that the server goes on when nobody holds a handle.
    stopper: Shutdown,
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {kind}")]
#[non_exhaustive]
pub struct BindError {
    /// Where.
    pub address: String,
    /// Why.
    pub kind: BindErrorKind,
}

/// The reasons for which a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindErrorKind {
    /// Other machines could reach it, which nobody has allowed.
    #[error("other machines could reach it")]
    Remote,
    /// The system would not.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl BindError {
    /// What to do about it, if there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.kind {
            BindErrorKind::Remote => {
                Some("listen on 127.0.0.1, or allow other machines to connect explicitly")
            }
            BindErrorKind::System(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Some("something listens there already: choose another port")
            }
            BindErrorKind::System(_) => None,
        }
    }
}

impl HttpServer {
    /// Listens, without serving anybody yet. Has to be called within a tokio runtime.
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
        let listener = Listener::bind(&options.address).await;
        let listener = listener.map_err(|error| failed(error.into()))?;
        let address = listener.address().map_err(|error| failed(error.into()))?;
        let stopper = Shutdown::new();
        let access = AccessControl::new(&options, address.map(|address| address.ip()));
        let server = Self {
            listener,
            address,
            limits: options.limits.clone(),
            path: options.path.clone(),
            endpoint: Arc::new(Endpoint::new(handler, options, access, stopper.listen())),
            stopper: stopper.clone(),
        };
        Ok((server, stopper))
    }

    /// The address it listens on; `None` for a unix-domain socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where clients find it; `None` for a unix-domain socket.
    pub fn url(&self) -> Option<String> {
        let address = self.address?;
        Some(format!("http://{address}{}", self.path))
    }

    /// Serves clients until it is shut down; then ends streams and sessions, and returns when that is done, or has taken
    /// too long. Dropping the future ends everything at once.
    pub async fn serve(self) {
        let mut connections = JoinSet::new();
        self.accept_all(&mut connections).await;
        // From here on nobody new is let in.
        drop(self.listener);
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
                "not everything ended in time; what is left is cut off"
            );
        }
        connections.shutdown().await;
    }

    async fn accept_all(&self, connections: &mut JoinSet<()>) {
        let mut stopped = std::pin::pin!(self.stopper.listen().stopped());
        let admission = Admission::new(&self.limits);
        let mut looking = interval(
            self.limits
                .session_idle
                .clamp(Duration::from_secs(2), Duration::from_secs(120))
                / 2,
        );
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stopped => return,
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, address)) => {
                        let place = admission.enter(address);
                        connections.spawn(self.connection(socket, place));
                        // A request that came with the connection is read before the next connection can evict it.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        admission.make_room();
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                _ = looking.tick() => self.endpoint.sessions.end_idle(),
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
        async move {
            match socket {
                Accepted::Tcp(socket) => {
                    connection::serve(socket, endpoint, &limits, place, stop).await;
                }
                #[cfg(unix)]
                Accepted::Unix(socket) => {
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
