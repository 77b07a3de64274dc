//! HTTP responses of the scripted servers, and the recording of requests.

use std::collections::BTreeMap;
use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::Stream;
use serde_json::Value;

use super::event;
use super::listen::Connection;
use crate::scripted::engine::{Refusal, Server};
use crate::scripted::fault::Fault;
use crate::scripted::record::Record;

/// The error response for a faulty connection, or for a request without the right token.
pub(crate) fn refused(
    server: &Server,
    connection: &Connection,
    headers: &HeaderMap,
) -> Option<Response> {
    if let Some(refusal) = connection.faults.iter().find_map(status_of) {
        return Some(refusal);
    }
    let token = server.script().http.bearer_token.clone()?;
    let given = text(headers, "authorization").unwrap_or_default();
    if given == format!("Bearer {token}") {
        return None;
    }
    let mut response = plain(StatusCode::UNAUTHORIZED, "");
    let challenge = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, challenge);
    Some(response)
}

/// Records an HTTP request, without headers that every client sends.
pub(crate) fn record(server: &Server, method: &Method, headers: &HeaderMap) {
    const DULL: [&str; 8] = [
        "host",
        "user-agent",
        "content-length",
        "connection",
        "accept-encoding",
        "upgrade",
        "sec-websocket-key",
        "sec-websocket-version",
    ];
    let headers: BTreeMap<String, String> = headers
        .keys()
        .filter(|name| !DULL.contains(&name.as_str()))
        .filter_map(|name| Some((name.to_string(), text(headers, name.as_str())?)))
        .collect();
    server.recorder.record(Record::Http {
        method: method.to_string(),
        headers,
    });
}

/// A response with an event stream.
pub(crate) fn event_stream(
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    typed(
        StatusCode::OK,
        Some(event::CONTENT_TYPE),
        Body::from_stream(events),
    )
}

/// A plain text response.
pub(crate) fn plain(status: StatusCode, body: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}

/// The text of a header.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The response of a status fault.
pub(crate) fn status_of(fault: &Fault) -> Option<Response> {
    match fault {
        Fault::Status {
            status,
            headers,
            body,
        } => Some(refuse(Refusal {
            status: *status,
            headers: headers.clone().into_iter().collect(),
            body: body.clone(),
        })),
        _ => None,
    }
}

pub(crate) fn refuse(refusal: Refusal) -> Response {
    let mut response = Response::new(Body::from(refusal.body));
    *response.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or_default();
    for (name, value) in refusal.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The response for an unknown session.
pub(crate) fn unknown_session() -> Response {
    json_error(StatusCode::NOT_FOUND, -32001, "Session not found")
}

/// A JSON-RPC error without a request id.
pub(crate) fn json_error(status: StatusCode, code: i64, message: &str) -> Response {
    let error = serde_json::json!({
        "jsonrpc": "2.0",
        "id": Value::Null,
        "error": {"code": code, "message": message},
    });
    typed(status, None, Body::from(error.to_string()))
}

/// A response with this content type; JSON by default.
pub(crate) fn typed(status: StatusCode, content_type: Option<&str>, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    let content_type = content_type
        .and_then(|one| one.parse().ok())
        .unwrap_or(json);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}
