//! `/healthz`, `/readyz` and `/metrics`.
//!
//! The first two need no token, for probes that have none, and then say no more than a word. Metrics and the state of
//! each server need one.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method as Verb, StatusCode};
use serde_json::json;

use super::answer::{self, BoxedResponse};
use crate::handler::Handler;

const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The answer to a request for health or metrics; `None` if it is another request, or lacks access to metrics.
pub(super) fn answer(
    head: &Parts,
    has_access: bool,
    handler: &dyn Handler,
) -> Option<BoxedResponse> {
    if !matches!(head.method, Verb::GET | Verb::HEAD) {
        return None;
    }
    match head.uri.path() {
        "/healthz" => Some(document(StatusCode::OK, &json!({"status": "ok"}))),
        "/readyz" => {
            let readiness = handler.readiness();
            let (status, word) = if readiness.is_ready {
                (StatusCode::OK, "ready")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "not ready")
            };
            let mut content = json!({"status": word});
            if has_access {
                let servers = readiness.servers.iter().map(|server| {
                    json!({
                        "name": server.name,
                        "state": server.state,
                        "required": server.is_required,
                        "tools": server.tools,
                        "reason": server.reason,
                    })
                });
                content["servers"] = servers.collect();
            }
            Some(document(status, &content))
        }
        "/metrics" if has_access => {
            let mut answer = answer::json(StatusCode::OK, handler.metrics()?.into());
            answer.headers_mut().insert(CONTENT_TYPE, PROMETHEUS);
            Some(answer)
        }
        _ => None,
    }
}

fn document(status: StatusCode, content: &serde_json::Value) -> BoxedResponse {
    answer::json(status, Bytes::from(content.to_string()))
}
