//! What is to be done about one request, as data, and how messages of ours are written.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_protocol::{RequestId, encode};

use super::Request;
use crate::scripted::fault::Fault;

/// What is to be done about one request.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: RequestId<'static>,
    pub(crate) steps: Vec<Step>,
    pub(crate) answer: Answer,
    pub(crate) faults: Vec<Fault>,
    /// The status of the answer over HTTP, where it is the only message.
    pub(crate) http_status: u16,
}

/// One thing to do before the answer.
#[derive(Debug)]
pub(crate) enum Step {
    /// Sends a message.
    Send(Vec<u8>),
    /// Waits at a gate.
    Wait(String),
    /// Waits for so long.
    Pause(Duration),
    /// Asks the client and waits for its answer.
    Ask { method: String, params: Value },
    /// Passes on notifications until the subscription ends.
    Listen { filter: Value },
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Known beforehand.
    Now(Outcome),
    /// A tool result with what the client answered to our questions.
    Asked,
    /// The end of a subscription.
    Listened,
}

/// A result, or what stands in the `error` member.
pub(crate) type Outcome = Result<Value, Value>;

impl Plan {
    pub(crate) fn new(request: &Request, answer: Answer) -> Self {
        Self {
            id: request.id.clone(),
            steps: Vec::new(),
            answer,
            faults: Vec::new(),
            http_status: 200,
        }
    }
}

/// Writes an answer, well-formed or not: `member` is `result` or `error`, and the id is any JSON or missing.
pub(crate) fn encode_answer(id: Option<&str>, member: &str, value: &str) -> String {
    let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
    format!("{{\"jsonrpc\":\"2.0\",{id}\"{member}\":{value}}}")
}

/// Writes a notification.
pub(crate) fn encode_notification(method: &str, params: &Value) -> Vec<u8> {
    let mut buffer = Vec::new();
    // Nothing in a JSON value fails to be written as JSON.
    let _ = encode::notification(&mut buffer, method, Some(params));
    buffer
}

/// Writes a request of ours.
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
