//! What happens in a turn, as it happens: for terminals, pages and programs that show it.
//!
//! Owns the events. Their JSON is what `chat --output stream-json` prints, one event on each line.

use serde::Serialize;
use serde_json::value::RawValue;
use switchboard::SharedJson;
use switchboard::status::Absence;

use crate::message::Content;
use crate::provider::Usage;

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEvent {
    /// A server that is being connected, or is not used, has come into this state.
    StartupUpdate {
        /// The server.
        server: String,
        /// Its state in one word: `pending`, `connected`, `failed`, `needs-auth`, `untrusted`, …
        state: String,
        /// How many tools it offers, once it is connected.
        #[serde(skip_serializing_if = "Option::is_none")]
        tools: Option<usize>,
        /// Why its tools are not there.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// No more servers are waited for. Those that are still starting join the session when they are ready.
    StartupComplete {
        /// The servers that are connected.
        ready: Vec<String>,
        /// Every server whose tools are not there.
        failed_servers: Vec<FailedServer>,
    },
    /// The session is ready for the turn: servers are connected or have failed.
    Started {
        /// The session.
        session_id: String,
        /// The model.
        model: String,
        /// How many tools the model is told of.
        tools: usize,
        /// Every configured server whose tools are not there, those that are switched off aside.
        failed_servers: Vec<FailedServer>,
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
        /// The tool by the name that the model used.
        name: String,
        /// The server whose tool it is; `None` for a built-in tool, and for one that is not there.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// The tool as its server calls it; for other tools the same as `name`.
        tool: String,
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
        /// The tool by the name that the model used.
        name: String,
        /// The server whose tool it is; `None` for a built-in tool, and for one that is not there.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// The tool as its server calls it; for other tools the same as `name`.
        tool: String,
        /// What the model gets.
        content: Vec<Content>,
        /// The result as the server sent it. `None` for built-in tools, and for calls without a result. Not part of the
        /// JSON form, where `content` is.
        #[serde(skip)]
        result: Option<SharedJson>,
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

/// A server that a turn goes on without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedServer {
    /// The server.
    pub name: String,
    /// Its state in one word: `failed`, `needs-auth`, `pending`, `untrusted`, `invalid`, …
    pub state: String,
    /// Why, in one line that is safe to show.
    pub reason: String,
    /// The last lines of its stderr, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
}

impl From<Absence> for FailedServer {
    fn from(absence: Absence) -> Self {
        Self {
            name: absence.name,
            state: absence.state.to_owned(),
            reason: absence.reason,
            stderr: absence.stderr,
        }
    }
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
    /// Every configured server that the turn went on without.
    pub failed_servers: Vec<FailedServer>,
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
