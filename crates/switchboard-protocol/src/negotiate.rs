//! Client-side negotiation: what an answer means for the era and the revision.
//!
//! Pure functions: an answer (or its absence) leads to the next [`Step`]. The connection sends, waits, enforces
//! deadlines, caches the outcome, and limits how often a [`Step::Retry`] is followed.
//!
//! No step depends on an error code alone. A server is modern if it sends an answer that only a modern server sends (a
//! discover result, or one of the modern errors with its required data); everything else leads to `initialize`.

use serde_json::value::RawValue;

use crate::{
    error::{ErrorCode, ErrorObject},
    message::Message,
    printable::printable,
    raw,
    revision::{Era, Revision},
};

/// The revisions of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'r> {
    /// The revisions this client supports.
    pub supported: &'r [Revision],
    /// The revision of the answered request: that of a stateless request, or the one offered by `initialize`.
    pub asked: Revision,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy)]
pub enum NegotiationReply<'a> {
    /// A result, undecoded.
    Result(&'a RawValue),
    /// A JSON-RPC error.
    Error(&'a ErrorObject<'a>),
    /// No answer before the deadline.
    Silence,
    /// The connection ended.
    Closed,
    /// Received data that is not an answer.
    Unreadable,
}

impl<'a> From<&'a Message<'a>> for NegotiationReply<'a> {
    /// A message that is not a response is unreadable as an answer.
    fn from(message: &'a Message<'a>) -> Self {
        match message {
            Message::Response { result, .. } => Self::Result(result),
            Message::Error { error, .. } => Self::Error(error),
            Message::Request { .. } | Message::Notification { .. } => Self::Unreadable,
        }
    }
}

/// The outcome of an HTTP POST.
#[derive(Debug, Clone, Copy)]
pub struct HttpAnswer<'a> {
    /// HTTP status of the response.
    pub status: u16,
    /// The answer in the body or the stream; [`NegotiationReply::Unreadable`] if it is not a JSON-RPC response.
    pub answer: NegotiationReply<'a>,
}

/// The outcome of the GET that probes for the legacy HTTP+SSE transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamAnswer {
    /// A stream whose first event is `endpoint`.
    Endpoint,
    /// A stream that begins with another event, or stays silent.
    OtherStream,
    /// Not a stream.
    Status(u16),
}

/// The next step of the client.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// The server is modern: continue with this revision.
    Stateless(Revision),
    /// The server is modern and rejected the request: resend it with this revision. If that is the revision just used,
    /// something else in the request must be corrected first.
    Retry(Revision),
    /// Send `initialize`, offering this revision.
    Initialize {
        /// The revision to offer.
        revision: Revision,
        /// The reason for the fallback.
        because: Because,
    },
    /// The handshake succeeded with this revision.
    Stateful(Revision),
    /// GET the URL and look for an `endpoint` event.
    TryLegacyStream,
    /// The server speaks the legacy HTTP+SSE transport.
    LegacyStream,
    /// The server requires (other) credentials; the era is still undecided.
    Authorize,
    /// The server is temporarily unavailable; the era is still undecided.
    TryLater,
    /// Negotiation failed.
    Fail(Failure),
}

/// The reason for falling back to `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Because {
    /// The server lists only revisions with a handshake.
    OnlyStatefulRevisions,
    /// The result is not a discover result.
    NotADiscoverResult,
    /// An error other than the modern ones.
    Error(ErrorCode),
    /// No answer before the deadline.
    Silence,
    /// The server closed the connection on the probe: use a new connection.
    Closed,
    /// The answer could not be parsed.
    Unreadable,
    /// An HTTP status without a modern error.
    Status(u16),
}

/// The reason negotiation failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The client and the server have no revision in common.
    #[error("no protocol version in common, the server offers {}", listed(.offered))]
    NoCommonRevision {
        /// The versions the server offers.
        offered: Vec<String>,
    },
    /// The server is not modern, and no stateful revision is enabled.
    #[error("the server needs a handshake, and no protocol version with one is enabled")]
    HandshakeNeeded(Because),
    /// `initialize` was answered with an unusable version.
    #[error("the server answered initialize with {}: {why}", answered.as_deref().map_or("no version".into(), quoted))]
    Version {
        /// The version in the answer.
        answered: Option<String>,
        /// The reason it is unusable.
        why: VersionProblem,
    },
    /// `initialize` was rejected with an error.
    #[error("the server refused initialize: {0}")]
    Refused(ErrorObject<'static>),
    /// `initialize` got no usable answer.
    #[error("the server did not answer initialize: {0}")]
    NoAnswer(NoAnswer),
    /// No MCP endpoint at this URL.
    #[error("nothing at this URL speaks MCP (HTTP status {status})")]
    NotMcp {
        /// The last HTTP status.
        status: u16,
    },
    /// A stream, but not of the legacy transport.
    #[error("the stream at this URL does not begin with an endpoint event")]
    NoEndpoint,
}

/// The reason the server's version is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionProblem {
    /// Missing or not a string.
    #[error("protocolVersion is missing or not a string")]
    Missing,
    /// Not a known revision.
    #[error("this version is unknown here")]
    Unknown,
    /// Known, but not enabled.
    #[error("this version is not enabled here")]
    NotSupported,
    /// A revision without a handshake.
    #[error("this version has no handshake")]
    Stateless,
}

/// The reason there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No answer before the deadline.
    #[error("timed out")]
    Silence,
    /// The connection was closed.
    #[error("the connection was closed")]
    Closed,
    /// Received data that is not an answer.
    #[error("the answer is not valid JSON-RPC")]
    Unreadable,
}

impl Offer<'_> {
    /// The newest supported stateful revision.
    pub fn latest_stateful(&self) -> Option<Revision> {
        newest(self.supported.iter().copied(), Era::Stateful)
    }

    fn initialize(&self, because: Because) -> Step {
        match self.latest_stateful() {
            Some(revision) => Step::Initialize { revision, because },
            None => Step::Fail(Failure::HandshakeNeeded(because)),
        }
    }

    /// The newest revision of an era in both lists.
    fn common(&self, listed: &[String], era: Era) -> Option<Revision> {
        let listed = listed.iter().filter_map(|version| version.parse().ok());
        newest(
            listed.filter(|revision| self.supported.contains(revision)),
            era,
        )
    }

    /// The step after a server has listed its revisions.
    fn choose(&self, offered: Vec<String>, stateless: impl FnOnce(Revision) -> Step) -> Step {
        if let Some(revision) = self.common(&offered, Era::Stateless) {
            return stateless(revision);
        }
        match self.common(&offered, Era::Stateful) {
            Some(revision) => Step::Initialize {
                revision,
                because: Because::OnlyStatefulRevisions,
            },
            None => Step::Fail(Failure::NoCommonRevision { offered }),
        }
    }

    /// The step after a modern error; `None` for other errors.
    fn after_modern_error(&self, error: &ErrorObject<'_>) -> Option<Step> {
        Some(match ModernError::recognise(error)? {
            ModernError::UnsupportedVersion { supported } => {
                // Prefers any other version. If the server offers only the version it has just rejected, the request is
                // retried, since the server may have been starting up.
                let asked = self.asked.as_str();
                let (others, refused): (Vec<_>, Vec<_>) =
                    supported.into_iter().partition(|version| version != asked);
                let offered = if others.is_empty() { refused } else { others };
                self.choose(offered, Step::Retry)
            }
            ModernError::HeaderMismatch | ModernError::MissingClientCapability => {
                match self.latest_stateless() {
                    Some(revision) => Step::Retry(revision),
                    None => Step::Fail(Failure::Refused(error.clone().into_owned())),
                }
            }
        })
    }

    /// The stateless revision in use, or the newest supported one.
    fn latest_stateless(&self) -> Option<Revision> {
        Some(self.asked)
            .filter(|asked| asked.era() == Era::Stateless)
            .or_else(|| newest(self.supported.iter().copied(), Era::Stateless))
    }
}

/// An error that only a modern server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModernError {
    /// −32020.
    HeaderMismatch,
    /// −32021 with the missing capabilities.
    MissingClientCapability,
    /// −32022 with the supported versions.
    UnsupportedVersion {
        /// The versions, as sent.
        supported: Vec<String>,
    },
}

impl ModernError {
    /// Recognises a modern error by its code *and* its required data, so that a legacy server that happens to use the
    /// same code is not mistaken for a modern one.
    pub fn recognise(error: &ErrorObject<'_>) -> Option<Self> {
        let data = error.data.as_deref();
        match error.code {
            ErrorCode::HEADER_MISMATCH => Some(Self::HeaderMismatch),
            ErrorCode::MISSING_CLIENT_CAPABILITY => raw::member(data?, "requiredCapabilities")
                .filter(|required| raw::is_object(required))
                .map(|_| Self::MissingClientCapability),
            ErrorCode::UNSUPPORTED_VERSION => version_list(data?, "supported")
                .map(|supported| Self::UnsupportedVersion { supported }),
            _ => None,
        }
    }
}

/// stdio: the step after the answer to the first `server/discover`.
pub fn after_discover(offer: Offer<'_>, answer: NegotiationReply<'_>) -> Step {
    match answer {
        NegotiationReply::Result(result) => match version_list(result, "supportedVersions") {
            Some(versions) => offer.choose(versions, |revision| {
                if revision == offer.asked {
                    Step::Stateless(revision)
                } else {
                    Step::Retry(revision)
                }
            }),
            None => offer.initialize(Because::NotADiscoverResult),
        },
        NegotiationReply::Error(error) => offer
            .after_modern_error(error)
            .unwrap_or_else(|| offer.initialize(Because::Error(error.code))),
        NegotiationReply::Silence => offer.initialize(Because::Silence),
        NegotiationReply::Closed => offer.initialize(Because::Closed),
        NegotiationReply::Unreadable => offer.initialize(Because::Unreadable),
    }
}

/// Both transports: the step after the answer to `initialize`.
pub fn after_initialize(offer: Offer<'_>, answer: NegotiationReply<'_>) -> Step {
    match answer {
        NegotiationReply::Result(result) => {
            let version = raw::member(result, "protocolVersion").and_then(raw::string);
            match accept_version(version.as_deref(), offer.supported) {
                Ok(revision) => Step::Stateful(revision),
                Err(why) => Step::Fail(Failure::Version {
                    answered: version.map(std::borrow::Cow::into_owned),
                    why,
                }),
            }
        }
        NegotiationReply::Error(error) => match offer.after_modern_error(error) {
            // The server is modern after all, or names another stateful revision.
            Some(step @ (Step::Retry(_) | Step::Initialize { .. })) => step,
            _ => Step::Fail(Failure::Refused(error.clone().into_owned())),
        },
        NegotiationReply::Silence => Step::Fail(Failure::NoAnswer(NoAnswer::Silence)),
        NegotiationReply::Closed => Step::Fail(Failure::NoAnswer(NoAnswer::Closed)),
        NegotiationReply::Unreadable => Step::Fail(Failure::NoAnswer(NoAnswer::Unreadable)),
    }
}

/// HTTP: the step after the answer to the first POST, a stateless `server/discover`.
pub fn after_modern_post(offer: Offer<'_>, answer: HttpAnswer<'_>) -> Step {
    if let Some(step) = beyond_the_era(answer.status) {
        return step;
    }
    match (answer.status, answer.answer) {
        (200..=299, NegotiationReply::Result(result)) => {
            after_discover(offer, NegotiationReply::Result(result))
        }
        (status, NegotiationReply::Error(error)) => {
            if let Some(step) = offer.after_modern_error(error) {
                return step;
            }
            match (status, error.code) {
                // 404 with an unknown method is how a modern server answers: stay.
                (404, ErrorCode::METHOD_NOT_FOUND) => Step::Stateless(offer.asked),
                (200..=299, code) => offer.initialize(Because::Error(code)),
                (status, _) => offer.initialize(Because::Status(status)),
            }
        }
        (200..=299, _) => offer.initialize(Because::NotADiscoverResult),
        (status, _) => offer.initialize(Because::Status(status)),
    }
}

/// HTTP: the step after the answer to the `initialize` POST.
pub fn after_initialize_post(offer: Offer<'_>, answer: HttpAnswer<'_>) -> Step {
    if let Some(step) = beyond_the_era(answer.status) {
        return step;
    }
    match (answer.status, answer.answer) {
        (200..=299, NegotiationReply::Result(result)) => {
            after_initialize(offer, NegotiationReply::Result(result))
        }
        (404, NegotiationReply::Error(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            Step::Fail(Failure::Refused(error.clone().into_owned()))
        }
        (status, NegotiationReply::Error(error)) => match offer.after_modern_error(error) {
            None if matches!(status, 400 | 404 | 405) => Step::TryLegacyStream,
            _ => after_initialize(offer, NegotiationReply::Error(error)),
        },
        (400 | 404 | 405, _) => Step::TryLegacyStream,
        (200..=299, _) => Step::Fail(Failure::NoAnswer(NoAnswer::Unreadable)),
        (status, _) => Step::Fail(Failure::NotMcp { status }),
    }
}

/// HTTP: the step after the answer to the GET.
pub fn after_legacy_get(answer: StreamAnswer) -> Step {
    match answer {
        StreamAnswer::Endpoint => Step::LegacyStream,
        StreamAnswer::OtherStream => Step::Fail(Failure::NoEndpoint),
        StreamAnswer::Status(status) => {
            beyond_the_era(status).unwrap_or(Step::Fail(Failure::NotMcp { status }))
        }
    }
}

/// Checks the version that a server returned for `initialize`.
pub fn accept_version(
    answered: Option<&str>,
    supported: &[Revision],
) -> Result<Revision, VersionProblem> {
    let revision: Revision = answered
        .ok_or(VersionProblem::Missing)?
        .parse()
        .map_err(|_| VersionProblem::Unknown)?;
    if revision.era() == Era::Stateless {
        Err(VersionProblem::Stateless)
    } else if supported.contains(&revision) {
        Ok(revision)
    } else {
        Err(VersionProblem::NotSupported)
    }
}

/// Statuses that do not reveal the era.
fn beyond_the_era(status: u16) -> Option<Step> {
    match status {
        401 | 403 => Some(Step::Authorize),
        408 | 425 | 429 | 502..=504 => Some(Step::TryLater),
        300..=399 => Some(Step::Fail(Failure::NotMcp { status })),
        _ => None,
    }
}

/// The strings of a list member; `None` if it is not a list or contains no strings.
fn version_list(value: &RawValue, name: &str) -> Option<Vec<String>> {
    let list: Vec<&RawValue> = serde_json::from_str(raw::member(value, name)?.get()).ok()?;
    let versions: Vec<String> = list
        .into_iter()
        .filter_map(|version| raw::string(version).map(std::borrow::Cow::into_owned))
        .collect();
    (!versions.is_empty()).then_some(versions)
}

fn newest(revisions: impl Iterator<Item = Revision>, era: Era) -> Option<Revision> {
    revisions.filter(|revision| revision.era() == era).max()
}

fn listed(versions: &[String]) -> String {
    const SHOWN: usize = 8;
    if versions.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<String> = versions
        .iter()
        .take(SHOWN)
        .map(|version| quoted(version))
        .collect();
    names.join(", ")
}

fn quoted(version: &str) -> String {
    format!("`{}`", printable(version, 32))
}
