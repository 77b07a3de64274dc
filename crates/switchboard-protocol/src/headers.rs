//! HTTP headers of the protocol: which to send, and checking received ones against the body.
//!
//! Covers the header names, the encoding of values that HTTP cannot carry, the standard headers of both eras and the
//! server-side check. Headers mirrored from tool parameters are in [`param_headers`](crate::param_headers).

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::value::RawValue;

use crate::{
    error::{ErrorCode, ErrorObject},
    method::Method,
    printable::printable,
    raw,
    revision::{Era, Feature, Revision},
};

/// The protocol version of a request.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The method of a request (stateless era).
pub const METHOD: &str = "Mcp-Method";
/// The tool, prompt, resource or task of a request (stateless era).
pub const NAME: &str = "Mcp-Name";
/// The session id (stateful era, from 2025-03-26).
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// The event after which to resume a stream (stateful era, from 2025-03-26).
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
/// Prefix of the headers mirrored from tool parameters (stateless era).
pub const PARAM_PREFIX: &str = "Mcp-Param-";

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// A header to send; the value is encoded and safe for HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// In canonical case, such as `Mcp-Name`.
    pub name: Cow<'static, str>,
    /// Encoded if necessary, see [`encode_value`].
    pub value: String,
}

impl Header {
    pub(crate) fn new(name: impl Into<Cow<'static, str>>, value: &str) -> Self {
        Self {
            name: name.into(),
            value: encode_value(value).into_owned(),
        }
    }
}

/// The headers a client sends with a message, besides those of HTTP itself.
///
/// In the stateful era these are the version (except for `initialize`, which negotiates it) and the session; in the
/// stateless era the version, method and name.
pub fn standard(
    revision: Revision,
    method: &str,
    params: Option<&RawValue>,
    session: Option<&str>,
) -> Vec<Header> {
    let mut headers = Vec::with_capacity(3);
    let known = Method::from_name(method);
    if revision.has(Feature::VersionHeader) && known != Some(Method::Initialize) {
        headers.push(Header::new(PROTOCOL_VERSION, revision.as_str()));
    }
    if revision.has(Feature::HttpSessions)
        && let Some(session) = session
    {
        // A session id is opaque and sent back verbatim.
        headers.push(Header {
            name: SESSION_ID.into(),
            value: session.to_owned(),
        });
    }
    if revision.has(Feature::StandardHeaders) {
        headers.push(Header::new(METHOD, method));
        if let Some(name) = name_in_body(known, params) {
            headers.push(Header::new(NAME, &name));
        }
    }
    headers
}

/// Encodes a header value: verbatim, or as base64 between `=?base64?` and `?=`.
///
/// Base64 is used for values with anything but visible ASCII and inner spaces, with leading or trailing spaces, and for
/// those that look encoded already.
pub fn encode_value(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    let looks_encoded = value.starts_with(SENTINEL_START) && value.ends_with(SENTINEL_END);
    if plain && !padded && !looks_encoded {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!(
        "{SENTINEL_START}{}{SENTINEL_END}",
        STANDARD.encode(value)
    ))
}

/// Reverses [`encode_value`].
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, ValueError> {
    let text = plain_text(value)?;
    let Some(encoded) = text
        .strip_prefix(SENTINEL_START)
        .and_then(|rest| rest.strip_suffix(SENTINEL_END))
    else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| ValueError::Base64)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| ValueError::Text)
}

/// Checks that a value consists of visible ASCII, spaces and tabs, and trims it.
fn plain_text(value: &[u8]) -> Result<&str, ValueError> {
    std::str::from_utf8(value)
        .ok()
        .filter(|text| text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')))
        .map(|text| text.trim_matches([' ', '\t']))
        .ok_or(ValueError::Characters)
}

/// The reason a header value cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Control or non-ASCII characters.
    #[error("it contains characters not allowed in a header")]
    Characters,
    /// Invalid base64.
    #[error("its base64 is invalid")]
    Base64,
    /// Base64 of something other than UTF-8.
    #[error("its base64 does not decode to UTF-8")]
    Text,
}

/// The protocol's headers of a request.
#[derive(Debug, Clone, Default)]
pub struct ReceivedHeaders<'h>(Vec<(&'h str, &'h [u8])>);

impl<'h> FromIterator<(&'h str, &'h [u8])> for ReceivedHeaders<'h> {
    /// Collects the headers that begin with `Mcp-`, in any case.
    fn from_iter<I: IntoIterator<Item = (&'h str, &'h [u8])>>(headers: I) -> Self {
        let ours = |name: &str| {
            name.get(..4)
                .is_some_and(|start| start.eq_ignore_ascii_case("mcp-"))
        };
        Self(headers.into_iter().filter(|(name, _)| ours(name)).collect())
    }
}

impl<'h> ReceivedHeaders<'h> {
    /// The value of a header; `None` if it is absent, an error if it is repeated or invalid.
    ///
    /// Only `Mcp-Name` and `Mcp-Param-*` are decoded. Base64 in the others is taken literally; otherwise a proxy that
    /// routes by the header and a server that acts on the body could read different values.
    pub fn get(&self, name: &str) -> Result<Option<Cow<'h, str>>, HeaderMismatch> {
        let mut values = self
            .0
            .iter()
            .filter(|(present, _)| present.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value);
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(HeaderMismatch::new(name, Mismatch::Repeated));
        }
        let may_be_encoded = name.eq_ignore_ascii_case(NAME)
            || name
                .get(..PARAM_PREFIX.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(PARAM_PREFIX));
        let decoded = if may_be_encoded {
            decode_value(value)
        } else {
            plain_text(value).map(Cow::Borrowed)
        };
        decoded
            .map(Some)
            .map_err(|error| HeaderMismatch::new(name, Mismatch::Unreadable(error)))
    }
}

/// Checks the standard headers of a stateless request against its body.
///
/// `version` is the one in the body's `_meta`; whether it is supported is not checked here.
pub fn check_standard(
    received: &ReceivedHeaders<'_>,
    version: &str,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), HeaderMismatch> {
    check_value(received, PROTOCOL_VERSION, Some(version))?;
    check_value(received, METHOD, Some(method))?;
    let known = Method::from_name(method);
    if known.is_some_and(|method| method.name_source().is_some()) {
        check_value(received, NAME, name_in_body(known, params).as_deref())?;
    }
    Ok(())
}

/// The revision of an HTTP request in the stateful era: that of the header, or the last one without the header.
pub fn stateful_revision(received: &ReceivedHeaders<'_>) -> Result<Revision, HeaderMismatch> {
    let Some(version) = received.get(PROTOCOL_VERSION)? else {
        return Ok(Revision::WITHOUT_HEADER);
    };
    match version.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Stateful => Ok(revision),
        _ => Err(HeaderMismatch::new(
            PROTOCOL_VERSION,
            Mismatch::NotStateful {
                header: version.into_owned(),
            },
        )),
    }
}

/// A header that does not match the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct HeaderMismatch {
    /// Name of the header.
    pub header: String,
    /// How it differs from the body.
    pub mismatch: Mismatch,
}

/// The ways in which a header can mismatch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The body has a value, but the header is missing.
    Missing {
        /// Value in the body.
        body: String,
    },
    /// The header is present, but the body has no value.
    Unexpected {
        /// Value of the header.
        header: String,
    },
    /// The values differ.
    Differs {
        /// Value of the header.
        header: String,
        /// Value in the body.
        body: String,
    },
    /// The header occurs more than once.
    Repeated,
    /// The header cannot be decoded.
    Unreadable(ValueError),
    /// The version header does not name a stateful revision.
    NotStateful {
        /// Value of the header.
        header: String,
    },
}

impl HeaderMismatch {
    pub(crate) fn new(header: &str, mismatch: Mismatch) -> Self {
        Self {
            header: header.to_owned(),
            mismatch,
        }
    }

    /// The error to send: −32020, with status 400.
    pub fn to_error(&self) -> ErrorObject<'static> {
        ErrorObject::new(
            ErrorCode::HEADER_MISMATCH,
            format!("header mismatch: {self}"),
        )
    }
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.header;
        match &self.mismatch {
            Mismatch::Missing { body } => {
                write!(
                    formatter,
                    "{name} is missing, the body has '{}'",
                    excerpt(body)
                )
            }
            Mismatch::Unexpected { header } => {
                write!(
                    formatter,
                    "{name} is '{}', the body has no such value",
                    excerpt(header)
                )
            }
            Mismatch::Differs { header, body } => {
                write!(
                    formatter,
                    "{name} is '{}', the body has '{}'",
                    excerpt(header),
                    excerpt(body)
                )
            }
            Mismatch::Repeated => write!(formatter, "{name} occurs more than once"),
            Mismatch::Unreadable(error) => write!(formatter, "{name} is invalid: {error}"),
            Mismatch::NotStateful { header } => {
                write!(
                    formatter,
                    "{name} is '{}', which is not a version with sessions",
                    excerpt(header)
                )
            }
        }
    }
}

/// A peer's value, shortened and printable.
fn excerpt(value: &str) -> String {
    printable(value, 80)
}

fn check_value(
    received: &ReceivedHeaders<'_>,
    name: &str,
    body: Option<&str>,
) -> Result<(), HeaderMismatch> {
    let mismatch = match (received.get(name)?, body) {
        (Some(header), Some(body)) if header == body => return Ok(()),
        (None, None) => return Ok(()),
        (Some(header), Some(body)) => Mismatch::Differs {
            header: header.into_owned(),
            body: body.to_owned(),
        },
        (Some(header), None) => Mismatch::Unexpected {
            header: header.into_owned(),
        },
        (None, Some(body)) => Mismatch::Missing {
            body: body.to_owned(),
        },
    };
    Err(HeaderMismatch::new(name, mismatch))
}

fn name_in_body(method: Option<Method>, params: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let source = method?.name_source()?;
    raw::string(raw::member(params?, source.member())?)
}
