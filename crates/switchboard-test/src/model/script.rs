//! What a scripted model says, as plain data: built in a test, or read from a file.
//!
//! Owns the description. It knows neither wire format; one script is playable in both.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the model does with one request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Only for a request whose last message has this text in it. Of the turns that are left, a request gets the first
    /// that fits it, so without this they are played in order.
    pub when: Option<String>,
    /// A refusal in place of an answer.
    pub refuse: Option<Refusal>,
    /// What is streamed, in order.
    pub say: Vec<Step>,
    /// Why it stops; by default for calls if it makes any, and because it is done otherwise.
    pub stop: Option<Stop>,
    /// What it says it cost.
    pub usage: Usage,
    /// The stream is sent in pieces of so many bytes; without it, event by event.
    pub piece_bytes: Option<usize>,
}

/// One thing that is streamed, or happens to the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// A piece of text. Pieces that follow one another belong together.
    Text(String),
    /// A thought.
    Thinking(Thought),
    /// A call.
    Call(Call),
    /// A sign of life.
    Ping,
    /// Waits until the test releases this gate.
    Wait(String),
    /// These bytes, as they are.
    Raw(String),
    /// An error in the stream, after which it ends.
    Error(StreamError),
    /// The next event breaks off in its middle, and the connection with it.
    Cut,
    /// The stream ends here, properly, though nothing says that the answer is complete.
    End,
}

/// A thought.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thought {
    /// In words.
    pub text: String,
    /// Its signature, where the wire format has one.
    pub seal: Option<String>,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
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
    /// JSON, which is sent in two pieces.
    Value(Value),
}

/// An error in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamError {
    /// Its type, such as `overloaded_error`.
    pub kind: String,
    /// What it says.
    pub message: String,
}

/// A refusal in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Refusal {
    /// The status. 0 closes the connection without a word.
    pub status: u16,
    /// What it says.
    pub message: String,
    /// Its code, where the wire format has one.
    pub code: Option<String>,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The whole body, in place of what the wire format would have.
    pub body: Option<String>,
}

/// Why a model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It is done.
    Done,
    /// It wants calls made.
    Calls,
    /// It reached the limit of its answer.
    Length,
    /// It refuses.
    Refused,
    /// The window is full.
    Window,
    /// It pauses.
    Paused,
}

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Read anew.
    pub input: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written into the cache.
    pub cache_write: u64,
    /// Said.
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
    /// A turn that says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A turn that says this and is done.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// A turn that refuses with this status.
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

    /// Says so many seconds in `Retry-After` of its refusal.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Some(refusal) = &mut self.refuse {
            refusal.retry_after = Some(seconds.to_string());
        }
        self
    }

    /// Says this piece of text, too.
    #[must_use]
    pub fn say(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// Makes this call, too.
    #[must_use]
    pub fn call(self, id: &str, name: &str, arguments: Value) -> Self {
        self.step(Step::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Arguments::Value(arguments),
        }))
    }

    /// Makes this call, too, with arguments that need not be JSON.
    #[must_use]
    pub fn call_with_text(self, id: &str, name: &str, arguments: &str) -> Self {
        self.step(Step::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Arguments::Text(arguments.to_owned()),
        }))
    }

    /// Does this, too.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.say.push(step);
        self
    }

    /// Stops for this reason.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Costs this.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Is only for a request whose last message has this text in it.
    #[must_use]
    pub fn when(mut self, text: impl Into<String>) -> Self {
        self.when = Some(text.into());
        self
    }

    /// Why it stops.
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
