//! What an answer means for the era and the revision, seen from the client.
//!
//! Owns the decisions of "choosing the era" as pure functions: an answer (or its absence) comes in, the next
//! [`Step`] comes out. Sending, waiting, deadlines and remembering the outcome are the connection's business,
//! and so is a bound on how often a [`Step::Retry`] is followed.
//!
//! No step hangs on a single error code. What makes a server modern is an answer only a modern server gives (a
//! discover result, or one of the modern errors in its proper shape); everything else leads to `initialize`.

use serde_json::value::RawValue;

use crate::{
    error::{ErrorCode, ErrorObject},
    message::Message,
    printable::printable,
    raw,
    revision::{Era, Revision},
};

/// What the client brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'r> {
    /// The revisions this client is willing to speak.
    pub supported: &'r [Revision],
    /// The revision the answered request was made with: that of a stateless request, or the one offered by
    /// `initialize`.
    pub asked: Revision,
}

/// What came back for a request.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// A result.
    Result(&'a RawValue),
    /// An error.
    Error(&'a ErrorObject<'a>),
    /// Nothing within the deadline.
    Silence,
    /// The connection ended.
    Closed,
    /// Something that is no answer.
    Unreadable,
}

impl<'a> From<&'a Message<'a>> for Answer<'a> {
    /// A message that answers nothing is unreadable as an answer.
    fn from(message: &'a Message<'a>) -> Self {
        match message {
            Message::Response { result, .. } => Self::Result(result),
            Message::Error { error, .. } => Self::Error(error),
            Message::Request { .. } | Message::Notification { .. } => Self::Unreadable,
        }
    }
}

/// What came back for an HTTP POST.
#[derive(Debug, Clone, Copy)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// What the body or the stream answered; [`Answer::Unreadable`] if it is not a JSON-RPC response.
    pub answer: Answer<'a>,
}

/// What came back for the GET that looks for the legacy HTTP+SSE transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamAnswer {
    /// A stream whose first event is `endpoint`.
    Endpoint,
    /// A stream that begins with something else, or says nothing.
    OtherStream,
    /// No stream.
    Status(u16),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// The server is modern: go on with this revision.
    Stateless(Revision),
    /// The server is modern and did not take the request: send it again with this revision. Where it is the
    /// revision just used, something else in the request has to be corrected first.
    Retry(Revision),
    /// Shake hands, offering this revision.
    Initialize {
        /// The revision to offer.
        revision: Revision,
        /// Why.
        because: Because,
    },
    /// The handshake succeeded with this revision.
    Stateful(Revision),
    /// GET the URL and look for an `endpoint` event.
    TryLegacyStream,
    /// The server speaks the legacy HTTP+SSE transport.
    LegacyStream,
    /// The server wants (other) credentials; the era is still open.
    Authorize,
    /// The server is not able to answer now; the era is still open.
    TryLater,
    /// It ends here.
    Fail(Failure),
}

/// Why the client falls back to `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Because {
    /// The server lists only revisions with a handshake.
    OnlyStatefulRevisions,
    /// The result was no discover result.
    NotADiscoverResult,
    /// An error that is none of the modern ones.
    Error(ErrorCode),
    /// No answer in time.
    Silence,
    /// The server ended on the probe: begin on a fresh connection.
    Closed,
    /// The answer could not be read.
    Unreadable,
    /// An HTTP status without a modern error.
    Status(u16),
}

/// Why there is no way to speak with the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// No revision in common.
    #[error("no protocol version in common, the server offers {}", listed(.offered))]
    NoCommonRevision {
        /// What the server offers.
        offered: Vec<String>,
    },
    /// The server is not modern, and no revision with a handshake is enabled.
    #[error("the server needs a handshake, and no protocol version with one is enabled")]
    HandshakeNeeded(Because),
    /// `initialize` was answered with a version that cannot be spoken.
    #[error("the server answered initialize with {}: {why}", answered.as_deref().map_or("no version".into(), shown))]
    Version {
        /// The version in the answer.
        answered: Option<String>,
        /// What is wrong with it.
        why: VersionProblem,
    },
    /// `initialize` was refused.
    #[error("the server refused initialize: {0}")]
    Refused(ErrorObject<'static>),
    /// `initialize` got no usable answer.
    #[error("the server did not answer initialize: {0}")]
    NoAnswer(NoAnswer),
    /// Nothing at this URL speaks the protocol.
    #[error("nothing at this URL speaks MCP (HTTP status {status})")]
    NotMcp {
        /// The last status.
        status: u16,
    },
    /// A stream, but not that of the legacy transport.
    #[error("the stream at this URL does not begin with an endpoint event")]
    NoEndpoint,
}

/// What is wrong with the version a server chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionProblem {
    /// There is none.
    #[error("protocolVersion is missing or not a string")]
    Missing,
    /// It is unknown.
    #[error("this version is unknown here")]
    Unknown,
    /// It is known and not wanted.
    #[error("this version is not enabled here")]
    NotSupported,
    /// It has no handshake.
    #[error("this version has no handshake")]
    Stateless,
}

/// How an answer failed to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing within the deadline.
    #[error("nothing came in time")]
    Silence,
    /// The connection ended.
    #[error("the connection ended")]
    Closed,
    /// Something that is no answer.
    #[error("the answer could not be read")]
    Unreadable,
}

impl Offer<'_> {
    /// The newest revision with a handshake among those supported.
    pub fn latest_stateful(&self) -> Option<Revision> {
        newest(self.supported.iter().copied(), Era::Stateful)
    }

    fn initialize(&self, because: Because) -> Step {
        match self.latest_stateful() {
            Some(revision) => Step::Initialize { revision, because },
            None => Step::Fail(Failure::HandshakeNeeded(because)),
        }
    }

    /// The newest revision of that era in both lists.
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

    /// The step after a modern error; `None` if the error is none.
    fn after_modern_error(&self, error: &ErrorObject<'_>) -> Option<Step> {
        Some(match ModernError::recognise(error)? {
            ModernError::UnsupportedVersion { supported } => {
                // Any other version first. A server that offers nothing but what it has just refused is asked
                // once more, since it may have been starting up.
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
    /// −32021 with the capabilities that are missing.
    MissingClientCapability,
    /// −32022 with the versions that are served.
    UnsupportedVersion {
        /// The versions, as written.
        supported: Vec<String>,
    },
}

impl ModernError {
    /// Recognises a modern error by its code *and* the data the schema requires with it; a legacy server that
    /// happens to use one of the numbers is not taken for a modern one.
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

/// stdio: what the answer to the first `server/discover` means.
pub fn after_discover(offer: Offer<'_>, answer: Answer<'_>) -> Step {
    match answer {
        Answer::Result(result) => match version_list(result, "supportedVersions") {
            Some(versions) => offer.choose(versions, |revision| {
                if revision == offer.asked {
                    Step::Stateless(revision)
                } else {
                    Step::Retry(revision)
                }
            }),
            None => offer.initialize(Because::NotADiscoverResult),
        },
        Answer::Error(error) => offer
            .after_modern_error(error)
            .unwrap_or_else(|| offer.initialize(Because::Error(error.code))),
        Answer::Silence => offer.initialize(Because::Silence),
        Answer::Closed => offer.initialize(Because::Closed),
        Answer::Unreadable => offer.initialize(Because::Unreadable),
    }
}

/// Either transport: what the answer to `initialize` means.
pub fn after_initialize(offer: Offer<'_>, answer: Answer<'_>) -> Step {
    match answer {
        Answer::Result(result) => {
            let version = raw::member(result, "protocolVersion").and_then(raw::string);
            match accept_version(version.as_deref(), offer.supported) {
                Ok(revision) => Step::Stateful(revision),
                Err(why) => Step::Fail(Failure::Version {
                    answered: version.map(std::borrow::Cow::into_owned),
                    why,
                }),
            }
        }
        Answer::Error(error) => match offer.after_modern_error(error) {
            // The server is modern after all, or names another revision with a handshake.
            Some(step @ (Step::Retry(_) | Step::Initialize { .. })) => step,
            _ => Step::Fail(Failure::Refused(error.clone().into_owned())),
        },
        Answer::Silence => Step::Fail(Failure::NoAnswer(NoAnswer::Silence)),
        Answer::Closed => Step::Fail(Failure::NoAnswer(NoAnswer::Closed)),
        Answer::Unreadable => Step::Fail(Failure::NoAnswer(NoAnswer::Unreadable)),
    }
}

/// HTTP: what the answer to the first POST, a `server/discover` of the stateless era, means.
pub fn after_modern_post(offer: Offer<'_>, answer: HttpAnswer<'_>) -> Step {
    if let Some(step) = beyond_the_era(answer.status) {
        return step;
    }
    match (answer.status, answer.answer) {
        (200..=299, Answer::Result(result)) => after_discover(offer, Answer::Result(result)),
        (status, Answer::Error(error)) => {
            if let Some(step) = offer.after_modern_error(error) {
                return step;
            }
            match (status, error.code) {
                // An unknown method with status 404 is how a modern server says it: stay.
                (404, ErrorCode::METHOD_NOT_FOUND) => Step::Stateless(offer.asked),
                (200..=299, code) => offer.initialize(Because::Error(code)),
                (status, _) => offer.initialize(Because::Status(status)),
            }
        }
        (200..=299, _) => offer.initialize(Because::NotADiscoverResult),
        (status, _) => offer.initialize(Because::Status(status)),
    }
}

/// HTTP: what the answer to the `initialize` POST means.
pub fn after_initialize_post(offer: Offer<'_>, answer: HttpAnswer<'_>) -> Step {
    if let Some(step) = beyond_the_era(answer.status) {
        return step;
    }
    match (answer.status, answer.answer) {
        (200..=299, Answer::Result(result)) => after_initialize(offer, Answer::Result(result)),
        (404, Answer::Error(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            Step::Fail(Failure::Refused(error.clone().into_owned()))
        }
        (status, Answer::Error(error)) => match offer.after_modern_error(error) {
            None if matches!(status, 400 | 404 | 405) => Step::TryLegacyStream,
            _ => after_initialize(offer, Answer::Error(error)),
        },
        (400 | 404 | 405, _) => Step::TryLegacyStream,
        (200..=299, _) => Step::Fail(Failure::NoAnswer(NoAnswer::Unreadable)),
        (status, _) => Step::Fail(Failure::NotMcp { status }),
    }
}

/// HTTP: what the answer to the GET means.
pub fn after_legacy_get(answer: StreamAnswer) -> Step {
    match answer {
        StreamAnswer::Endpoint => Step::LegacyStream,
        StreamAnswer::OtherStream => Step::Fail(Failure::NoEndpoint),
        StreamAnswer::Status(status) => {
            beyond_the_era(status).unwrap_or(Step::Fail(Failure::NotMcp { status }))
        }
    }
}

/// Whether a client can go on with the version a server answered `initialize` with.
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

/// Statuses that say nothing about the era.
fn beyond_the_era(status: u16) -> Option<Step> {
    match status {
        401 | 403 => Some(Step::Authorize),
        408 | 425 | 429 | 502..=504 => Some(Step::TryLater),
        300..=399 => Some(Step::Fail(Failure::NotMcp { status })),
        _ => None,
    }
}

/// The strings of a list member; `None` if there is no list or not one string in it.
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
        .map(|version| shown(version))
        .collect();
    names.join(", ")
}

fn shown(version: &str) -> String {
    format!("`{}`", printable(version, 32))
}
