//! The plan for one request, as data, and the encoding of messages.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_protocol::{RequestId, encode};

use super::Request;
use crate::scripted::fault::Fault;

/// The plan for one request.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: RequestId<'static>,
    pub(crate) steps: Vec<Step>,
    pub(crate) answer: PlannedAnswer,
    pub(crate) faults: Vec<Fault>,
    /// HTTP status of the answer, if it is the only message.
    pub(crate) http_status: u16,
}

/// A step before the answer.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Waits at a gate.
    Wait(String),
    /// Waits for this long.
    Pause(Duration),
    /// Sends a request to the client and waits for its answer.
    Ask {
        method: String,
        params: Value,
    },
    /// Forwards notifications until the subscription ends.
    Listen {
        filter: Value,
    },
}

#[derive(Debug)]
pub(crate) enum PlannedAnswer {
    /// Known in advance.
    Now(Outcome),
    /// A tool result with the client's answers.
    Asked,
    /// The end of a subscription.
    Listened,
}

/// The `result` member, or the `error` member.
pub(crate) type Outcome = Result<Value, Value>;

impl Plan {
    pub(crate) fn new(request: &Request, answer: PlannedAnswer) -> Self {
        Self {
            id: request.id.clone(),
            steps: Vec::new(),
            answer,
            faults: Vec::new(),
            http_status: 200,
        }
    }
}

/// Encodes an answer, valid or not: `member` is `result` or `error`, and the id is any JSON or missing.
pub(crate) fn encode_answer(id: Option<&str>, member: &str, value: &str) -> String {
    let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",{id}\"{member}\":{value}}}")
}

pub(crate) fn encode_notification(method: &str, params: &Value) -> Vec<u8> {
    let mut buffer = Vec::new();
    // A JSON value always encodes.
    let _ = encode::notification(&mut buffer, method, Some(params));
    buffer
}

/// Encodes a request of ours.
pub(crate) fn encode_request(id: &RequestId<'_>, method: &str, params: &Value) -> Vec<u8> {
    let mut buffer = Vec::new();
    let params = if params.is_null() {
        json!({})
    } else {
        params.clone()
    };
    let _ = encode::request(&mut buffer, id, method, Some(&params));
    buffer
}
