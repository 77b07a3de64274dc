//! What happens in a turn, as it happens: for terminals, pages and programs that show it.
//!
//! Owns the events. Their JSON is what `chat --output stream-json` prints, one event on each line.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::message::Content;
use crate::provider::Usage;

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEvent {
    /// The session is ready for the turn: servers are connected or have failed.
    Started {
        /// The session.
        session_id: String,
        /// The model.
        model: String,
        /// How many tools the model is told of.
        tools: usize,
        /// Servers that cannot be used, with the reason in one line.
        failed_servers: Vec<(String, String)>,
    },
    /// More text of the model.
    Text {
        /// The text.
        text: String,
    },
    /// More of what the model thinks.
    Thinking {
        /// The thought.
        text: String,
    },
    /// The model is asked once more; text and thoughts since the last whole message no longer count.
    Retrying {
        /// What happened.
        reason: String,
        /// How long is waited, in milliseconds.
        wait_ms: u64,
        /// Which attempt comes next.
        attempt: u32,
    },
    /// A call begins.
    CallBegins {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, where they are JSON.
        arguments: Option<Box<RawValue>>,
        /// The sub-agent that makes it, by the id of the call that started it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A call gets on, or is merely still running: at least every `progress_interval_sec`.
    CallProgress {
        /// The call's id.
        id: String,
        /// How far it is, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
        /// How far there is to go, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What is being done.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// How long the call has been running, in milliseconds, where the tool itself said nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        elapsed_ms: Option<u64>,
    },
    /// A call has ended.
    CallEnds {
        /// The call's id.
        id: String,
        /// What the model gets.
        content: Vec<Content>,
        /// Whether it failed.
        is_error: bool,
        /// How long it took, in milliseconds.
        elapsed_ms: u64,
        /// What a person is shown in place of the content.
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<String>,
        /// The sub-agent that made it, by the id of the call that started it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The tools that the model is told of have changed, from the next request on.
    ToolsChanged {
        /// Those that came.
        added: Vec<String>,
        /// Those that went.
        removed: Vec<String>,
    },
    /// The conversation was made shorter, because the model's window filled.
    Compacted {
        /// Tokens before, estimated.
        before: u64,
        /// Tokens after, estimated.
        after: u64,
    },
    /// What one answer of the model cost.
    Usage {
        /// The tokens.
        usage: Usage,
    },
    /// Something a person should know that is no error of the turn.
    Notice {
        /// What.
        text: String,
    },
    /// The turn has ended, and this is what came of it. The last event of a turn that did not fail.
    Ended(Reply),
}

/// What came of a turn.
#[derive(Debug, Clone, Serialize)]
pub struct Reply {
    /// The session.
    pub session_id: String,
    /// The model's last words.
    pub response: String,
    /// The calls that were made.
    pub tool_calls: Vec<CallSummary>,
    /// What the turn cost.
    pub usage: Usage,
    /// Why it ended.
    pub reason: EndReason,
}

/// One call of a turn.
#[derive(Debug, Clone, Serialize)]
pub struct CallSummary {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, where they are JSON.
    pub arguments: Option<Box<RawValue>>,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model is done.
    Done,
    /// The model refused.
    Refused,
    /// The answer reached its limit.
    Length,
    /// The budget of requests to the model is used up.
    TurnBudget,
    /// The budget of tokens is used up.
    TokenBudget,
}
