//! What can go wrong between two processes, told apart as far as somebody can act on it.

use std::time::Duration;

use crate::sandbox::SandboxError;
use bytes::Bytes;
use switchboard_protocol::{ErrorObject, Limits, Message, parse};

use crate::auth;

/// A link could not be opened, or a message not be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// What kind of failure it is.
    pub kind: TransportErrorKind,
    /// What happened, for people: lowercase, secrets masked.
    pub message: String,
    /// What the server said, where it refused with an HTTP status: the era and the need for a login are read from it.
    pub refusal: Option<Box<HttpRefusal>>,
}

impl TransportError {
    /// An error of that kind.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            refusal: None,
        }
    }

    /// The server refused with an HTTP status.
    pub fn refused(refusal: Box<HttpRefusal>) -> Self {
        Self {
            kind: TransportErrorKind::Protocol,
            message: refusal.to_string(),
            refusal: Some(refusal),
        }
    }

    /// The HTTP status the server refused with.
    pub fn status(&self) -> Option<u16> {
        self.refusal.as_ref().map(|refusal| refusal.status)
    }
}

impl From<SandboxError> for TransportError {
    fn from(error: SandboxError) -> Self {
        Self::new(TransportErrorKind::Sandbox, error.to_string())
    }
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The program does not exist.
    ProgramNotFound,
    /// The program exists and cannot be run.
    ProgramNotExecutable,
    /// The folder to start in does not exist.
    NoSuchFolder,
    /// The sandbox that it is to run in cannot be kept.
    Sandbox,
    /// The process could not be started for another reason.
    Spawn,
    /// The name of the host means nothing.
    Dns,
    /// Nobody listens there.
    Refused,
    /// The way there is not open: no route, proxy, firewall.
    Unreachable,
    /// TLS: certificate, version, or no TLS at all on the other side.
    Tls,
    /// It took too long.
    Timeout,
    /// The configuration of the link itself is wrong: a header, a URL.
    Invalid,
    /// The link has ended.
    Closed,
    /// The other side breaks the rules of the transport.
    Protocol,
    /// Anything else the system reports.
    Io,
}

/// Why one request gets no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFailure {
    /// The server answered with a status that is no success. It has not taken the request.
    #[error("{0}")]
    Refused(Box<HttpRefusal>),
    /// The request never reached the server.
    #[error("{0}")]
    NotSent(TransportError),
    /// The request went out and the answer can no longer come.
    #[error("{0}")]
    Lost(TransportError),
    /// The answer is over the limit on size.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// An HTTP status that is no success, with what the server said about it.
///
/// The status can also be 200: a JSON-RPC error that names no request, which HTTP alone ties to this one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server answered with HTTP status {status}{}", redirect(location.as_deref()))]
pub struct HttpRefusal {
    /// The status.
    pub status: u16,
    /// Whether the request belonged to a session: then 404 says that the session has ended.
    pub in_session: bool,
    /// The challenges of `WWW-Authenticate`.
    pub challenges: Vec<String>,
    /// The nonce for the next proof of possession (`DPoP-Nonce`).
    pub dpop_nonce: Option<String>,
    /// When to come back.
    pub retry_after: Option<Duration>,
    /// Where a redirect leads that was not followed, because it leaves the server's origin; without its query.
    pub location: Option<String>,
    /// The body, cut at 64 KiB.
    pub body: Bytes,
}

impl HttpRefusal {
    /// A status about which the server said nothing more.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            in_session: false,
            challenges: Vec::new(),
            dpop_nonce: None,
            retry_after: None,
            location: None,
            body: Bytes::new(),
        }
    }
}

impl HttpRefusal {
    /// Whether the server knows who asks and wants more scopes for it.
    pub fn wants_more_scope(&self) -> bool {
        self.status == 403 && auth::wants_more_scope(&self.challenges)
    }

    /// The JSON-RPC error in the body, if there is one.
    pub(crate) fn rpc_error(&self) -> Option<ErrorObject<'_>> {
        let incoming = parse(&self.body, &Limits::DEFAULT).ok()?;
        incoming
            .into_messages()
            .find_map(|received| match received.ok()?.message {
                Message::Error { error, .. } => Some(error),
                _ => None,
            })
    }
}

fn redirect(location: Option<&str>) -> String {
    location.map_or_else(String::new, |location| {
        format!(", a redirect to {location} that is not followed")
    })
}

/// How a link ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// This side closed it.
    #[error("closed by this side")]
    ByUs,
    /// The process ended with this status.
    #[error("the process exited with status {0}")]
    Exited(i32),
    /// The process was ended by this signal.
    #[error("the process was killed by signal {0}")]
    Signalled(i32),
    /// The other side closed its end.
    #[error("the server closed the connection")]
    ByServer,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}
