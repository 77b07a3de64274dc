//! Parses messages of the client into owned values.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_protocol::{Incoming, Limits, Message, RequestId, parse};

/// A message of the client.
#[derive(Debug)]
pub(crate) enum Inbound {
    Request(Request),
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a request of ours: the result, or an object with the error.
    Answer {
        id: String,
        answer: Value,
    },
}

/// A request of the client.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId<'static>,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
    /// The parsed params.
    pub(crate) value: Value,
}

impl Request {
    /// The tool, prompt or resource it names.
    pub(crate) fn name(&self) -> Option<&str> {
        self.value["name"]
            .as_str()
            .or_else(|| self.value["uri"].as_str())
    }
}

/// The messages of one frame, each with its JSON; an error is the text of an invalid message.
pub(crate) fn read(frame: &[u8]) -> Vec<Result<(Inbound, Value), String>> {
    let limits = Limits {
        max_bytes: usize::MAX,
        ..Limits::default()
    };
    let unreadable = || {
        let start = frame.get(..frame.len().min(200)).unwrap_or_default();
        String::from_utf8_lossy(start).into_owned()
    };
    let Ok(incoming) = parse(frame, &limits) else {
        return vec![Err(unreadable())];
    };
    let json: Value = serde_json::from_slice(frame).unwrap_or_default();
    let is_batch = matches!(incoming, Incoming::Batch(_));
    let messages = incoming.into_messages().enumerate();
    messages
        .map(|(index, message)| {
            let message = message.map_err(|_| unreadable())?.message;
            let json = if is_batch {
                json.get(index).cloned().unwrap_or_default()
            } else {
                json.clone()
            };
            Ok((owned(message), json))
        })
        .collect()
}

fn owned(message: Message<'_>) -> Inbound {
    let value = |raw: Option<&RawValue>| {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_else(|| json!({}))
    };
    match message {
        Message::Request { id, method, params } => Inbound::Request(Request {
            id: id.into_owned(),
            method: method.into_owned(),
            params: params.map(ToOwned::to_owned),
            value: value(params),
        }),
        Message::Notification { method, params } => Inbound::Notification {
            method: method.into_owned(),
            params: value(params),
        },
        Message::Response { id, result } => Inbound::Answer {
            id: id.json().into_owned(),
            answer: value(Some(result)),
        },
        Message::Error { id, error } => Inbound::Answer {
            id: id.map(|id| id.json().into_owned()).unwrap_or_default(),
            answer: json!({"error": {"code": error.code.0, "message": error.message}}),
        },
    }
}
