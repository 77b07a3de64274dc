//! How a request opens, seen from the server: stateless, a handshake, or within a session.
//!
//! Owns the decision of a server that serves both eras on one endpoint, the answer to `initialize`, and the
//! refusals the specification prescribes with their HTTP status. Sessions themselves, and who owns them, are
//! the server's business.

use serde_json::value::RawValue;

use crate::{
    error::{ErrorCode, ErrorObject},
    headers::{self, HeaderMismatch, ReceivedHeaders},
    meta::{self, DeclaredMeta},
    method::Method,
    raw,
    revision::{Era, Revision},
};

/// What the server serves, and where the request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serving<'r> {
    /// The revisions served.
    pub supported: &'r [Revision],
    /// The revision an `initialize` has settled for this process (stdio) or session (HTTP), if one has.
    pub settled: Option<Revision>,
}

/// How a request is to be served.
#[derive(Debug)]
pub enum Opening<'a> {
    /// By itself, as its own `_meta` says.
    Stateless {
        /// The revision it speaks.
        revision: Revision,
        /// What it says of its client.
        meta: DeclaredMeta<'a>,
    },
    /// As a handshake.
    Handshake {
        /// The revision to answer with.
        revision: Revision,
    },
    /// Within what a handshake settled.
    Stateful {
        /// The revision settled; `None` for a `ping` before any handshake, which is allowed.
        revision: Option<Revision>,
    },
}

impl Opening<'_> {
    /// The decision alone, to pass on.
    pub const fn opened(&self) -> Opened {
        match *self {
            Self::Stateless { revision, .. } => Opened::Stateless(revision),
            Self::Handshake { revision } => Opened::Handshake(revision),
            Self::Stateful { revision } => Opened::Stateful(revision),
        }
    }
}

/// An [`Opening`] without what the request declares: what one layer decided, so that the next does not decide it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// By itself, in this revision.
    Stateless(Revision),
    /// As a handshake, to be answered with this revision.
    Handshake(Revision),
    /// Within what a handshake settled; `None` for a `ping` before any handshake.
    Stateful(Option<Revision>),
}

/// A request that is not served.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct Refusal {
    /// What to answer.
    pub error: ErrorObject<'static>,
    /// The status to answer with over HTTP.
    pub http_status: u16,
}

/// Decides how a request opens.
///
/// A version in `_meta` makes a request stateless wherever it comes in, so both eras live on one endpoint.
pub fn classify<'a>(
    serving: Serving<'_>,
    method: &str,
    params: Option<&'a RawValue>,
) -> Result<Opening<'a>, Refusal> {
    let known = Method::from_name(method);
    let meta = DeclaredMeta::read(params);
    // A handshake is one whatever else it carries: no stateless revision has the method.
    if known == Some(Method::Initialize) {
        let requested = params
            .and_then(|params| raw::member(params, "protocolVersion"))
            .and_then(raw::string);
        return answer_version(requested.as_deref(), serving.supported)
            .map(|revision| Opening::Handshake { revision });
    }
    if let Some(version) = &meta.protocol_version {
        return match version.parse::<Revision>() {
            Ok(revision)
                if revision.era() == Era::Stateless && serving.supported.contains(&revision) =>
            {
                if meta.client_capabilities.is_none() {
                    return Err(missing_meta(meta::CLIENT_CAPABILITIES, serving.supported));
                }
                Ok(Opening::Stateless { revision, meta })
            }
            // Some clients of the stateful era put their settled version there too.
            Ok(revision) if serving.settled == Some(revision) => Ok(Opening::Stateful {
                revision: Some(revision),
            }),
            _ => Err(unsupported_version(version, serving.supported)),
        };
    }
    match (serving.settled, known) {
        (Some(revision), _) => Ok(Opening::Stateful {
            revision: Some(revision),
        }),
        (None, Some(Method::Ping)) if newest_stateful(serving.supported).is_some() => {
            Ok(Opening::Stateful { revision: None })
        }
        (None, _) => Err(missing_meta(meta::PROTOCOL_VERSION, serving.supported)),
    }
}

/// As [`classify`], for HTTP: the standard headers of a stateless request must agree with its body.
///
/// A request within a session must not claim a stateless revision in its header: whoever routes by headers would
/// trust the others, and nobody has compared those with the body.
pub fn classify_http<'a>(
    serving: Serving<'_>,
    received: &ReceivedHeaders<'_>,
    method: &str,
    params: Option<&'a RawValue>,
) -> Result<Opening<'a>, Refusal> {
    let declared = DeclaredMeta::read(params).protocol_version;
    let is_handshake = Method::from_name(method) == Some(Method::Initialize);
    if let Some(version) = declared.filter(|version| !is_handshake && !is_settled(serving, version))
    {
        headers::check_standard(received, &version, method, params)?;
    }
    let opening = classify(serving, method, params)?;
    if matches!(opening, Opening::Stateful { .. }) {
        headers::stateful_revision(received)?;
    }
    Ok(opening)
}

/// The revision to answer `initialize` with: the one asked for if it is served, else the newest that is.
///
/// A server without any revision with a handshake refuses, naming what it serves: to an older client that text
/// may be the only hint.
pub fn answer_version(
    requested: Option<&str>,
    supported: &[Revision],
) -> Result<Revision, Refusal> {
    let asked = requested
        .and_then(|version| version.parse::<Revision>().ok())
        .filter(|revision| revision.era() == Era::Stateful && supported.contains(revision));
    asked
        .or_else(|| newest_stateful(supported))
        .ok_or_else(|| unsupported_version(requested.unwrap_or_default(), supported))
}

impl From<HeaderMismatch> for Refusal {
    fn from(mismatch: HeaderMismatch) -> Self {
        Self {
            error: mismatch.to_error(),
            http_status: 400,
        }
    }
}

fn is_settled(serving: Serving<'_>, version: &str) -> bool {
    serving
        .settled
        .is_some_and(|revision| revision.as_str() == version)
}

fn newest_stateful(supported: &[Revision]) -> Option<Revision> {
    supported
        .iter()
        .copied()
        .filter(|revision| revision.era() == Era::Stateful)
        .max()
}

fn unsupported_version(requested: &str, supported: &[Revision]) -> Refusal {
    let mut error = ErrorObject::unsupported_version(requested, supported).into_owned();
    error.message = format!(
        "unsupported protocol version, supported: {}",
        listed(supported)
    )
    .into();
    Refusal {
        error,
        http_status: 400,
    }
}

fn missing_meta(key: &str, supported: &[Revision]) -> Refusal {
    let message = format!(
        "params._meta lacks `{key}`, which every request needs without a handshake (supported versions: {})",
        listed(supported)
    );
    Refusal {
        error: ErrorObject::new(ErrorCode::INVALID_PARAMS, message),
        http_status: 400,
    }
}

fn listed(supported: &[Revision]) -> String {
    let names: Vec<&str> = supported.iter().map(|revision| revision.as_str()).collect();
    names.join(", ")
}
