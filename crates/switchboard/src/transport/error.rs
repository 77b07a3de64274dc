//! Transport errors, classified by what a caller or user can do about them.

use std::time::Duration;

use crate::sandbox::SandboxError;
use bytes::Bytes;
use switchboard_protocol::{ErrorObject, Limits, Message, parse};

use crate::auth;

/// A link could not be opened, or a message could not be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// Category of the error.
    pub kind: TransportErrorKind,
    /// Description for users: lowercase, secrets masked.
    pub message: String,
    /// The server's HTTP refusal, from which the era and the need for a login are derived.
    pub refusal: Option<Box<HttpRefusal>>,
}

impl TransportError {
    /// An error without a refusal.
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            refusal: None,
        }
    }

    /// An error from the server's HTTP refusal.
    pub fn refused(refusal: Box<HttpRefusal>) -> Self {
        Self {
            kind: TransportErrorKind::Protocol,
            message: refusal.to_string(),
            refusal: Some(refusal),
        }
    }

    /// HTTP status of the refusal.
    pub fn status(&self) -> Option<u16> {
        self.refusal.as_ref().map(|refusal| refusal.status)
    }
}

impl From<SandboxError> for TransportError {
    fn from(error: SandboxError) -> Self {
        Self::new(TransportErrorKind::Sandbox, error.to_string())
    }
}

/// Category of a transport error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The program does not exist.
    ProgramNotFound,
    /// The program exists but cannot be executed.
    ProgramNotExecutable,
    /// The working directory does not exist.
    NoSuchFolder,
    /// The sandbox cannot be enforced.
    Sandbox,
    /// The process could not be started for another reason.
    Spawn,
    /// The host name does not resolve.
    Dns,
    /// Connection refused: no listener at the address.
    Refused,
    /// Unreachable: no route, proxy or firewall.
    Unreachable,
    /// TLS: certificate, version, or a server without TLS.
    Tls,
    /// A deadline passed.
    Timeout,
    /// Invalid link settings: a header, a URL.
    Invalid,
    /// The link has ended.
    Closed,
    /// The server violates the protocol of the transport.
    Protocol,
    /// Any other I/O error.
    Io,
}

/// Reason why one request gets no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFailure {
    /// The server answered with a status other than success. It did not accept the request.
    #[error("{0}")]
    Refused(Box<HttpRefusal>),
    /// The request never reached the server.
    #[error("{0}")]
    NotSent(TransportError),
    /// The request was sent, but its answer can no longer arrive.
    #[error("{0}")]
    Lost(TransportError),
    /// The answer exceeds the size limit.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
}

/// An HTTP status other than success, with the details the server sent.
///
/// The status can also be 200: a JSON-RPC error without an id, which only the HTTP exchange ties to the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server answered with HTTP status {status}{}", redirect(location.as_deref()))]
pub struct HttpRefusal {
    /// HTTP status code.
    pub status: u16,
    /// Whether the request belonged to a session: then 404 means that the session has expired.
    pub in_session: bool,
    /// Challenges of `WWW-Authenticate`.
    pub challenges: Vec<String>,
    /// Nonce for the next `DPoP` proof (`DPoP-Nonce`).
    pub dpop_nonce: Option<String>,
    /// Delay requested by `Retry-After`.
    pub retry_after: Option<Duration>,
    /// Target of a redirect that was not followed because it leaves the server's origin; without its query.
    pub location: Option<String>,
    /// Body, truncated at 64 KiB.
    pub body: Bytes,
}

impl HttpRefusal {
    /// A refusal with a status and no details.
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
    /// Whether the credentials are valid but lack a scope.
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
    /// The process exited with this status.
    #[error("the process exited with status {0}")]
    Exited(i32),
    /// The process was killed by this signal.
    #[error("the process was killed by signal {0}")]
    Signalled(i32),
    /// The other side closed its end.
    #[error("the server closed the connection")]
    ByServer,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}
