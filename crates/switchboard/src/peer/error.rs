//! What can come of a request besides its answer.

use std::time::Duration;

use bytes::Bytes;
use switchboard_protocol::ErrorObject;

use crate::transport::{Closed, HttpRefusal, RequestFailure, TransportError, TransportErrorKind};

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered with a JSON-RPC error.
    #[error("{0}")]
    Rejected(Box<ErrorObject<'static>>),
    /// The server answered with an HTTP status that is no success.
    #[error("{0}")]
    Refused(Box<HttpRefusal>),
    /// The request never reached the server.
    #[error("the request was not sent: {0}")]
    NotSent(TransportError),
    /// The request went out; whether the server acted on it is not known.
    #[error("the connection was lost before the answer came: {0}")]
    Lost(String),
    /// Nothing was heard of it for this long.
    #[error("no answer and no progress for {}", seconds(.0))]
    Idle(Duration),
    /// It took longer than it may in all.
    #[error("no answer within {}", seconds(.0))]
    Expired(Duration),
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// The answer is nested too deep to be read.
    #[error("the answer cannot be read: {why}")]
    TooDeep {
        /// Where it is too deep.
        why: String,
        /// The whole message, for whoever can do with a part of it.
        frame: Bytes,
    },
    /// The answer is over the limit on size.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The request itself cannot be written.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    /// The server kept asking for input.
    #[error("the server asked for input {0} times without coming to an answer")]
    TooManyRounds(usize),
    /// The server wants the user to visit a page first, and the user has not.
    #[error("the server wants a page to be visited first, and that was {0}")]
    NotVisited(&'static str),
    /// The task that stands for the request was called off or has failed.
    #[error("the task has {0}")]
    Task(String),
}

impl RequestError {
    /// Whether the server cannot have acted on the request, so that it may be sent again whatever it does.
    pub fn never_sent(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::Unwritable(_))
    }

    /// Whether the server wants (other) credentials.
    pub fn wants_authorization(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 401)
    }

    /// Whether the server has forgotten the session.
    pub fn session_expired(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404 && refusal.in_session)
    }

    /// The JSON-RPC error, if it is one.
    pub fn rejection(&self) -> Option<&ErrorObject<'static>> {
        match self {
            Self::Rejected(error) => Some(error),
            _ => None,
        }
    }
}

impl From<RequestFailure> for RequestError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Refused(refusal) => Self::Refused(refusal),
            RequestFailure::NotSent(error) => Self::NotSent(error),
            // Something came, and it was no answer.
            RequestFailure::Lost(error) if error.kind == TransportErrorKind::Protocol => {
                Self::Malformed(error.to_string())
            }
            RequestFailure::Lost(error) => Self::Lost(error.to_string()),
            RequestFailure::TooLarge { limit } => Self::TooLarge(limit),
        }
    }
}

impl From<&Closed> for RequestError {
    fn from(closed: &Closed) -> Self {
        Self::Lost(closed.to_string())
    }
}

fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
