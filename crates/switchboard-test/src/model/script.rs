//! The script of a scripted model, as plain data: built in a test, or read from a file. Independent of the wire
//! formats.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Only for a request whose last message contains this text. A request gets the first unused turn that matches, so
    /// turns without a condition are used in order.
    pub when: Option<String>,
    /// An error response instead of an answer.
    pub refuse: Option<Refusal>,
    /// The steps of the stream.
    pub say: Vec<Step>,
    /// The stop reason; by default `Calls` if there are any, else `Done`.
    pub stop: Option<Stop>,
    /// Reported token usage.
    pub usage: Usage,
    /// Sends the stream in pieces of this many bytes; `None`: event by event.
    pub piece_bytes: Option<usize>,
}

/// A part of the stream, or a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// A piece of text. Consecutive pieces form one text.
    Text(String),
    /// Reasoning of the model.
    Thinking(Thought),
    /// A tool call.
    Call(Call),
    /// A keep-alive.
    Ping,
    /// Waits until the test releases this gate.
    Wait(String),
    /// These bytes, verbatim.
    Raw(String),
    /// An error event, which ends the stream.
    Error(StreamError),
    /// Truncates the next event and drops the connection.
    Cut,
    /// Ends the stream cleanly, but without the event that completes the answer.
    End,
}

/// Reasoning of the model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thought {
    /// Its text.
    pub text: String,
    /// Its signature, if the wire format has one.
    pub seal: Option<String>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Unique within a session.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Sent as JSON text.
    #[serde(default)]
    pub arguments: Arguments,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    /// Text, JSON or not, in one piece.
    Text(String),
    /// Text in these pieces.
    Pieces(Vec<String>),
    /// JSON, sent in two pieces.
    Value(Value),
}

/// An error in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamError {
    /// Its type, such as `overloaded_error`.
    pub kind: String,
    /// Text of the error.
    pub message: String,
}

/// An error response instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Refusal {
    /// HTTP status. 0 closes the connection without a response.
    pub status: u16,
    /// Text of the error.
    pub message: String,
    /// Error code, if the wire format has one.
    pub code: Option<String>,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// A body that replaces the wire format's error body.
    pub body: Option<String>,
}

/// Stop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The answer is complete.
    Done,
    /// The model requests tool calls.
    Calls,
    /// The output limit was reached.
    Length,
    /// The model refused.
    Refused,
    /// The context window is full.
    Window,
    /// The model paused a long turn.
    Paused,
}

/// Token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Uncached input.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// Generated output.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 10,
            cache_read: 0,
            cache_write: 0,
            output: 5,
        }
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::Value(Value::Object(serde_json::Map::new()))
    }
}

impl Turn {
    /// An empty turn.
    pub fn new() -> Self {
        Self::default()
    }

    /// A turn with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// A turn that fails with this status.
    pub fn refuse(status: u16, message: impl Into<String>) -> Self {
        let refusal = Refusal {
            status,
            message: message.into(),
            ..Refusal::default()
        };
        Self {
            refuse: Some(refusal),
            ..Self::default()
        }
    }

    /// Sets `Retry-After` of its refusal, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Some(refusal) = &mut self.refuse {
            refusal.retry_after = Some(seconds.to_string());
        }
        self
    }

    /// Appends text.
    #[must_use]
    pub fn say(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// Appends a call.
    #[must_use]
    pub fn call(self, id: &str, name: &str, arguments: Value) -> Self {
        self.step(Step::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Arguments::Value(arguments),
        }))
    }

    /// Appends a call whose arguments need not be JSON.
    #[must_use]
    pub fn call_with_text(self, id: &str, name: &str, arguments: &str) -> Self {
        self.step(Step::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Arguments::Text(arguments.to_owned()),
        }))
    }

    /// Appends a step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.say.push(step);
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the token usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Restricts it to a request whose last message contains this text.
    #[must_use]
    pub fn when(mut self, text: impl Into<String>) -> Self {
        self.when = Some(text.into());
        self
    }

    /// The stop reason, or its default.
    pub(super) fn stops(&self) -> Stop {
        let calls = self.say.iter().any(|step| matches!(step, Step::Call(_)));
        let natural = if calls { Stop::Calls } else { Stop::Done };
        self.stop.unwrap_or(natural)
    }
}

impl Arguments {
    /// The pieces they are sent in.
    pub(super) fn pieces(&self) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Pieces(pieces) => pieces.clone(),
            Self::Value(value) => {
                let text = value.to_string();
                let (middle, _) = text
                    .char_indices()
                    .nth(text.chars().count() / 2)
                    .unwrap_or_default();
                let (first, second) = text.split_at(middle);
                vec![first.to_owned(), second.to_owned()]
            }
        }
    }
}
