//! Reads request headers: content type, accepted types, session, protocol version, last event id.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use switchboard_protocol::headers::{self, ReceivedHeaders};
use switchboard_protocol::{Era, Revision};

use super::answer::{self, BoxedResponse};

/// Checks `Content-Type` and `Accept` of a POST before its body is read.
pub(super) fn check_post(headers: &HeaderMap) -> Result<(), BoxedResponse> {
    if !is_json(headers) {
        return Err(answer::refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json",
        ));
    }
    if !accepts(headers, "application", "json") || !accepts(headers, "text", "event-stream") {
        return Err(answer::refuse(
            StatusCode::NOT_ACCEPTABLE,
            "the client must accept both application/json and text/event-stream",
        ));
    }
    Ok(())
}

/// Whether the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        let media = value.as_bytes().split(|byte| *byte == b';').next();
        media.is_some_and(|media| media.trim_ascii().eq_ignore_ascii_case(b"application/json"))
    })
}

/// Whether the client accepts this media type. Without an `Accept` header it accepts all.
pub(super) fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let mut ranges = ranges.filter_map(|range| range.split(';').next()?.trim().split_once('/'));
    ranges.any(|(range, subrange)| {
        let is_kind = range == "*" || range.eq_ignore_ascii_case(kind);
        is_kind && (subrange == "*" || subrange.eq_ignore_ascii_case(subtype))
    })
}

/// The headers that the protocol defines.
pub(super) fn received(headers: &HeaderMap) -> ReceivedHeaders<'_> {
    let headers = headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect()
}

/// The session id sent by the client.
pub(super) fn session_id<'h>(
    received: &ReceivedHeaders<'h>,
) -> Result<Option<&'h str>, BoxedResponse> {
    match received.get(headers::SESSION_ID) {
        Ok(None) => Ok(None),
        Ok(Some(Cow::Borrowed(name))) => Ok(Some(name)),
        // This header is never decoded, so it is always borrowed.
        Ok(Some(Cow::Owned(_))) | Err(_) => Err(answer::refuse(
            StatusCode::BAD_REQUEST,
            "invalid or repeated Mcp-Session-Id header",
        )),
    }
}

/// Whether the version header names a revision of the stateless era.
pub(super) fn speaks_stateless(received: &ReceivedHeaders<'_>) -> bool {
    stated_era(received) == Some(Era::Stateless)
}

/// Whether the version header names a revision of the stateful era.
pub(super) fn speaks_stateful(received: &ReceivedHeaders<'_>) -> bool {
    stated_era(received) == Some(Era::Stateful)
}

/// The era of the version header.
fn stated_era(received: &ReceivedHeaders<'_>) -> Option<Era> {
    let version = received.get(headers::PROTOCOL_VERSION).ok()??;
    Some(version.parse::<Revision>().ok()?.era())
}

/// Splits an event id into the numbers of its stream and event.
pub(super) fn event_id(text: &str) -> Option<(u64, u64)> {
    let (stream, event) = text.trim().split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}
