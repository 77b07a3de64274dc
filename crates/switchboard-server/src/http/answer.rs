//! Builds HTTP responses: statuses, headers, JSON-RPC errors.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use switchboard_protocol::{ErrorCode, ErrorObject, RequestId, encode};

use super::body::{Body, Events};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Boxed because refusals are returned as errors.
pub(super) type BoxedResponse = Box<Response<Body>>;

/// A request that is not served.
pub(super) enum Refused {
    /// A complete response.
    Whole(BoxedResponse),
    /// An error and its status, to be sent with the request's id.
    Error(u16, Box<ErrorObject<'static>>),
}

impl Refused {
    pub(super) fn of(status: u16, error: ErrorObject<'static>) -> Self {
        Self::Error(status, Box::new(error))
    }

    /// The response to the request with this id.
    pub(super) fn about(self, id: &RequestId<'_>) -> BoxedResponse {
        match self {
            Self::Whole(answer) => answer,
            Self::Error(number, object) => error(status(number), Some(id), &object),
        }
    }

    /// The response to a message without an id.
    pub(super) fn whole(self) -> BoxedResponse {
        match self {
            Self::Whole(answer) => answer,
            Self::Error(number, object) => error(status(number), None, &object),
        }
    }
}

pub(super) fn json(status: StatusCode, document: Bytes) -> BoxedResponse {
    let mut answer = empty(status);
    *answer.body_mut() = Body::Whole(Some(document));
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    answer
}

pub(super) fn events(events: Box<Events>) -> BoxedResponse {
    let mut answer = no_events();
    *answer.body_mut() = Body::Events(events);
    answer
}

/// An empty event stream.
pub(super) fn no_events() -> BoxedResponse {
    let mut answer = empty(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_STORE);
    // Stops proxies from buffering the events.
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> BoxedResponse {
    let mut answer = Box::new(Response::new(Body::Whole(None)));
    *answer.status_mut() = status;
    answer
}

/// A JSON-RPC error, with the request's id if known.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId<'_>>,
    error: &ErrorObject<'_>,
) -> BoxedResponse {
    let mut frame = Vec::new();
    // Encoding an error object cannot fail.
    let _ = encode::error(&mut frame, id, error);
    json(status, frame.into())
}

/// Rejects a request before its body is interpreted.
pub(super) fn refuse(
    status: StatusCode,
    why: impl Into<std::borrow::Cow<'static, str>>,
) -> BoxedResponse {
    let object = ErrorObject::new(ErrorCode::INVALID_REQUEST, why);
    error(status, None, &object)
}

/// 401 with a challenge; `has_shown_another` if the request carried a wrong token.
pub(super) fn unauthorized(has_shown_another: bool) -> BoxedResponse {
    if has_shown_another {
        return challenge(
            "invalid bearer token",
            "Bearer realm=\"switchboard\", error=\"invalid_token\"",
        );
    }
    challenge(
        "missing bearer token: send Authorization: Bearer TOKEN",
        "Bearer realm=\"switchboard\"",
    )
}

/// 401 for an access token, with the reason.
pub(super) fn invalid_token(why: &'static str) -> BoxedResponse {
    challenge(why, "Bearer realm=\"switchboard\", error=\"invalid_token\"")
}

/// 401 for a token that was valid before.
pub(super) fn expired() -> BoxedResponse {
    challenge(
        "the token has expired",
        "Bearer realm=\"switchboard\", error=\"invalid_token\", error_description=\"the token has expired\"",
    )
}

fn challenge(why: &'static str, challenge: &'static str) -> BoxedResponse {
    let mut answer = refuse(StatusCode::UNAUTHORIZED, why);
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    answer
}

/// 405 with the allowed methods.
pub(super) fn not_allowed(allowed: &'static str, why: &'static str) -> BoxedResponse {
    let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, why);
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// 503, for a full server or one that is shutting down.
pub(super) fn unavailable(why: &'static str) -> BoxedResponse {
    let mut answer = refuse(StatusCode::SERVICE_UNAVAILABLE, why);
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

/// 503 for this time.
pub(super) fn unavailable_for(time: Duration, why: &'static str) -> BoxedResponse {
    after(time, refuse(StatusCode::SERVICE_UNAVAILABLE, why))
}

/// 429, for a client that may try again after this time.
pub(super) fn too_many(time: Duration, why: &'static str) -> BoxedResponse {
    after(time, refuse(StatusCode::TOO_MANY_REQUESTS, why))
}

/// Tells the client when to try again, in whole seconds.
fn after(time: Duration, mut answer: BoxedResponse) -> BoxedResponse {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let headers = answer.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    answer
}

/// Closes the connection after the answer.
pub(super) fn closing(mut answer: BoxedResponse) -> BoxedResponse {
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// An invalid number becomes 500.
pub(super) fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
