//! Server-side negotiation: whether a request is stateless, a handshake, or part of a session.
//!
//! Classifies requests for a server that supports both eras on one endpoint, chooses the version for `initialize`, and
//! creates the prescribed errors with their HTTP status. Sessions are managed by the server.

use serde_json::value::RawValue;

use crate::{
    error::{ErrorCode, ErrorObject},
    headers::{self, HeaderMismatch, ReceivedHeaders},
    meta::{self, DeclaredMeta},
    method::Method,
    raw,
    revision::{Era, Revision},
};

/// The state of the server when a request arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serving<'r> {
    /// The supported revisions.
    pub supported: &'r [Revision],
    /// The revision negotiated by `initialize` for this process (stdio) or session (HTTP), if any.
    pub settled: Option<Revision>,
}

/// How a request is served.
#[derive(Debug)]
pub enum Opening<'a> {
    /// Stateless, by its own `_meta`.
    Stateless {
        /// Revision of the request.
        revision: Revision,
        /// The parsed `_meta` of the request.
        meta: DeclaredMeta<'a>,
    },
    /// As a handshake.
    Handshake {
        /// The revision to answer with.
        revision: Revision,
    },
    /// As part of a session.
    Stateful {
        /// The negotiated revision; `None` for a `ping` before the handshake, which is allowed.
        revision: Option<Revision>,
    },
}

impl Opening<'_> {
    /// The decision without the request's `_meta`.
    pub const fn opened(&self) -> Opened {
        match *self {
            Self::Stateless { revision, .. } => Opened::Stateless(revision),
            Self::Handshake { revision } => Opened::Handshake(revision),
            Self::Stateful { revision } => Opened::Stateful(revision),
        }
    }
}

/// An [`Opening`] without the request's `_meta`, to be passed to the next layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// Stateless, in this revision.
    Stateless(Revision),
    /// As a handshake, to be answered with this revision.
    Handshake(Revision),
    /// As part of a session; `None` for a `ping` before the handshake.
    Stateful(Option<Revision>),
}

/// A request that is rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct Refusal {
    /// The error to send.
    pub error: ErrorObject<'static>,
    /// The HTTP status of the response.
    pub http_status: u16,
}

/// Classifies a request.
///
/// A version in `_meta` makes any request stateless, so that both eras can share one endpoint.
pub fn classify<'a>(
    serving: Serving<'_>,
    method: &str,
    params: Option<&'a RawValue>,
) -> Result<Opening<'a>, Refusal> {
    let known = Method::from_name(method);
    let meta = DeclaredMeta::read(params);
    // A handshake is always one, whatever else it contains: no stateless revision has the method.
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
            // Some stateful clients put their negotiated version there too.
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

/// Like [`classify`], for HTTP: the standard headers of a stateless request must match its body.
///
/// A request of a session must not claim a stateless revision in its header: a proxy that routes by headers would trust
/// the other headers, which were not checked against the body.
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

/// The revision for the answer to `initialize`: the requested one if supported, else the newest supported.
///
/// A server without stateful revisions returns an error that lists its revisions: for an older client that text may be
/// the only hint.
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
