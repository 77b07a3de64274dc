//! Errors of a request: refused, not sent, lost, timed out, unreadable.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_config::mask;
use switchboard_config::redact::Redactor;
use switchboard_protocol::ErrorObject;

use crate::transport::{Closed, HttpRefusal, RequestFailure, TransportError, TransportErrorKind};

/// Reason why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered with a JSON-RPC error.
    #[error("{0}")]
    Rejected(Box<ErrorObject<'static>>),
    /// The server answered with an HTTP status other than success.
    #[error("{0}")]
    Refused(Box<HttpRefusal>),
    /// The request never reached the server.
    #[error("the request was not sent: {0}")]
    NotSent(TransportError),
    /// The request went out; whether the server acted on it is not known.
    #[error("the connection was lost before the answer came: {0}")]
    Lost(String),
    /// No answer and no progress for this long.
    #[error("no answer and no progress for {}", seconds(.0))]
    Idle(Duration),
    /// The total deadline passed.
    #[error("no answer within {}", seconds(.0))]
    Expired(Duration),
    /// The answer cannot be decoded.
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// The answer is nested too deeply to be decoded.
    #[error("the answer cannot be read: {why}")]
    TooDeep {
        /// Position at which the nesting limit is exceeded.
        why: String,
        /// The whole message, for a caller that can use part of it.
        frame: Bytes,
    },
    /// The answer is over the limit on size.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The request cannot be serialized.
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    /// The server requested input this many times without returning a result.
    #[error("the server asked for input {0} times without returning a result")]
    TooManyRounds(usize),
    /// The server requires the user to visit a page first; the text is how that ended.
    #[error("the server requires a page to be visited first, and that was {0}")]
    NotVisited(&'static str),
    /// Too many requests to the server run and wait. It was not sent.
    #[error("the server is overloaded: {running} calls are running, and too many wait")]
    Overloaded {
        /// Requests that run at once.
        #[doc(hidden)]
        running: usize,
    },
    /// Requests to the server are paused after failures. It was not sent.
    #[error("calls are paused for {} after {failures} failures in a row", seconds(.remaining))]
    Paused {
        /// Failures in a row.
        #[doc(hidden)]
        failures: u32,
        /// Time until the next attempt.
        #[doc(hidden)]
        remaining: Duration,
    },
    /// The task of the request was cancelled or failed; the text is the reason.
    #[error("the task has {0}")]
    Task(String),
}

impl RequestError {
    /// Whether the server cannot have acted on the request, so that even a non-idempotent one may be retried.
    pub(crate) fn never_sent(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::Unwritable(_))
    }

    /// Whether the server requires (other) credentials.
    pub(crate) fn wants_authorization(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 401)
    }

    /// Whether the server no longer knows the session.
    pub(crate) fn session_expired(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == 404 && refusal.in_session)
    }

    /// The JSON-RPC error that the server answered with, also if it came with an HTTP status for a bad request.
    #[doc(hidden)]
    pub fn rpc_error(&self) -> Option<ErrorObject<'static>> {
        match self {
            Self::Rejected(error) => Some((**error).clone()),
            Self::Refused(refusal) if matches!(refusal.status, 400 | 404) => {
                refusal.rpc_error().map(ErrorObject::into_owned)
            }
            _ => None,
        }
    }

    /// The JSON-RPC error, if the server answered with one.
    pub(crate) fn rejection(&self) -> Option<&ErrorObject<'static>> {
        match self {
            Self::Rejected(error) => Some(error),
            _ => None,
        }
    }
}

impl RequestError {
    /// The error made safe to show: known secrets and anything that looks secret are masked. Decisions that depend on
    /// the contents must be made before.
    #[cold]
    #[must_use]
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        let text = |text: String| redactor.redact(&text).into_owned();
        match self {
            Self::Rejected(mut error) => {
                error.message = text(error.message.into_owned()).into();
                error.data = error.data.and_then(|data| redacted_json(&data, redactor));
                Self::Rejected(error)
            }
            Self::Refused(mut refusal) => {
                let body = String::from_utf8_lossy(&refusal.body);
                refusal.body = redactor.redact(&body).into_owned().into();
                refusal.location = refusal.location.map(text);
                Self::Refused(refusal)
            }
            Self::NotSent(mut error) => {
                error.message = text(error.message);
                Self::NotSent(error)
            }
            Self::Lost(why) => Self::Lost(text(why)),
            // The frame is never shown: a front end gets the reason alone.
            Self::Malformed(why) | Self::TooDeep { why, .. } => Self::Malformed(text(why)),
            Self::Unwritable(why) => Self::Unwritable(text(why)),
            Self::Task(why) => Self::Task(text(why)),
            other @ (Self::Idle(_)
            | Self::Expired(_)
            | Self::TooLarge(_)
            | Self::TooManyRounds(_)
            | Self::NotVisited(_)
            | Self::Overloaded { .. }
            | Self::Paused { .. }) => other,
        }
    }
}

/// JSON with the secrets in its strings masked; `None` if it is nested too deeply to be parsed.
fn redacted_json(data: &RawValue, redactor: &Redactor) -> Option<Cow<'static, RawValue>> {
    let mut value: Value = serde_json::from_str(data.get()).ok()?;
    let mut waiting = vec![(None, &mut value)];
    while let Some((name, value)) = waiting.pop() {
        match value {
            Value::String(text) => {
                let masked = match name {
                    Some(name) => mask::named(name, text),
                    None => Cow::Borrowed(text.as_str()),
                };
                *text = redactor.redact(&masked).into_owned();
            }
            Value::Array(items) => waiting.extend(items.iter_mut().map(|item| (name, item))),
            Value::Object(members) => {
                let members = members.iter_mut();
                waiting.extend(members.map(|(name, value)| (Some(name.as_str()), value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let raw = serde_json::value::to_raw_value(&value).ok()?;
    Some(Cow::Owned(raw))
}

impl From<RequestFailure> for RequestError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Refused(refusal) => Self::Refused(refusal),
            RequestFailure::NotSent(error) => Self::NotSent(error),
            // An answer arrived, but it was not valid.
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
