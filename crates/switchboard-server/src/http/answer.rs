//! Answers: what a client is told, with which status and headers.

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

/// An answer, in a box because refusals travel as errors.
pub(super) type Answer = Box<Response<Body>>;

/// Why a request is not served.
pub(super) enum Refused {
    /// With this answer.
    Whole(Answer),
    /// With this error and status, under the id of the request.
    Error(u16, Box<ErrorObject<'static>>),
}

impl Refused {
    /// With this status and this error.
    pub(super) fn of(status: u16, error: ErrorObject<'static>) -> Self {
        Self::Error(status, Box::new(error))
    }

    /// The answer to the request with this id.
    pub(super) fn about(self, id: &RequestId<'_>) -> Answer {
        match self {
            Self::Whole(answer) => answer,
            Self::Error(number, object) => error(status(number), Some(id), &object),
        }
    }

    /// The answer to something without an id.
    pub(super) fn whole(self) -> Answer {
        match self {
            Self::Whole(answer) => answer,
            Self::Error(number, object) => error(status(number), None, &object),
        }
    }
}

/// A JSON document.
pub(super) fn json(status: StatusCode, document: Bytes) -> Answer {
    let mut answer = empty(status);
    *answer.body_mut() = Body::Whole(Some(document));
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    answer
}

/// A stream of events.
pub(super) fn events(events: Box<Events>) -> Answer {
    let mut answer = no_events();
    *answer.body_mut() = Body::Events(events);
    answer
}

/// A stream of events that has none.
pub(super) fn no_events() -> Answer {
    let mut answer = empty(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_STORE);
    // Proxies that gather answers before they pass them on would hold events back.
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// A status and nothing else.
pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Box::new(Response::new(Body::Whole(None)));
    *answer.status_mut() = status;
    answer
}

/// A JSON-RPC error, with the id of the request where it is known.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId<'_>>,
    error: &ErrorObject<'_>,
) -> Answer {
    let mut frame = Vec::new();
    // An error object always turns into JSON.
    let _ = encode::error(&mut frame, id, error);
    json(status, frame.into())
}

/// A request that is refused before anybody looked at what it asks for.
pub(super) fn refuse(status: StatusCode, why: impl Into<std::borrow::Cow<'static, str>>) -> Answer {
    let object = ErrorObject::new(ErrorCode::INVALID_REQUEST, why);
    error(status, None, &object)
}

/// Somebody who has not shown the token.
pub(super) fn unauthorized(has_shown_another: bool) -> Answer {
    let (why, challenge) = if has_shown_another {
        (
            "the bearer token is not the one of this server",
            "Bearer realm=\"switchboard\", error=\"invalid_token\"",
        )
    } else {
        (
            "this server wants a bearer token: Authorization: Bearer TOKEN",
            "Bearer realm=\"switchboard\"",
        )
    };
    let mut answer = refuse(StatusCode::UNAUTHORIZED, why);
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    answer
}

/// A method that is not there; these are.
pub(super) fn not_allowed(allowed: &'static str, why: &'static str) -> Answer {
    let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, why);
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// The server has no room, or is about to end.
pub(super) fn unavailable(why: &'static str) -> Answer {
    let mut answer = refuse(StatusCode::SERVICE_UNAVAILABLE, why);
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

/// The same answer, after which the connection is closed.
pub(super) fn closing(mut answer: Answer) -> Answer {
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// The status with this number; what is none is the server's own fault.
pub(super) fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
