//! Events of a turn, for front ends that show its progress.
//!
//! Their JSON form is the output of `chat --output stream-json`, one event per line.

use serde::Serialize;
use serde_json::value::RawValue;
use switchboard::SharedJson;
use switchboard::status::Absence;

use crate::message::Content;
use crate::provider::Usage;

/// An event of a session or turn.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionEvent {
    /// The state of a server has changed during startup.
    StartupUpdate {
        /// Name of the server.
        server: String,
        /// Its state as one word: `pending`, `connected`, `failed`, `needs-auth`, `untrusted`, …
        state: String,
        /// Number of tools; `None` until it is connected.
        #[serde(skip_serializing_if = "Option::is_none")]
        tools: Option<usize>,
        /// Why its tools are unavailable; `None` if they are available.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The startup wait is over. Servers that are still starting join the session when they are ready.
    StartupComplete {
        /// Names of the connected servers.
        ready: Vec<String>,
        /// Servers whose tools are unavailable.
        failed_servers: Vec<FailedServer>,
    },
    /// The turn starts: each server is connected, has failed or is still starting.
    Started {
        /// Id to resume the session with.
        session_id: String,
        /// Name of the model.
        model: String,
        /// Number of tools listed in the request.
        tools: usize,
        /// Configured servers whose tools are unavailable, except those that are switched off.
        failed_servers: Vec<FailedServer>,
    },
    /// The model streamed text.
    Text {
        /// To append to the previous text.
        text: String,
    },
    /// The model streamed reasoning.
    Thinking {
        /// To append to the previous reasoning.
        text: String,
    },
    /// The request is retried; discard text and reasoning since the last complete message.
    Retrying {
        /// Error of the failed attempt.
        reason: String,
        /// Backoff before the next attempt, in milliseconds.
        wait_ms: u64,
        /// Number of the next attempt; the first was 1.
        attempt: u32,
        /// Id of the `Agent` call of the sub-agent that waits; `None` for the main agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A tool call starts.
    CallBegins {
        /// Unique in the session; that of a sub-agent's call begins with `parent` and `/`.
        id: String,
        /// Tool name as written by the model.
        name: String,
        /// Server of the tool; `None` for built-in and unknown tools.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// Tool name on its server; the same as `name` for other tools.
        tool: String,
        /// `None` if they are not valid JSON.
        arguments: Option<Box<RawValue>>,
        /// Id of the `Agent` call that started the calling sub-agent; `None` for the main agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// Progress of a call, or a sign that it is still running; at least every `progress_interval_sec`.
    CallProgress {
        /// Id of the call.
        id: String,
        /// Amount done, if the tool reports it.
        #[serde(skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
        /// Amount in total, if the tool reports it.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// Status text of the tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Running time in milliseconds; set only if the tool itself reported nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        elapsed_ms: Option<u64>,
    },
    /// A tool call has ended.
    CallEnds {
        /// Id of the call.
        id: String,
        /// Tool name as written by the model.
        name: String,
        /// Server of the tool; `None` for built-in and unknown tools.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// Tool name on its server; the same as `name` for other tools.
        tool: String,
        /// The result as sent to the model.
        content: Vec<Content>,
        /// The result as sent by the server; `None` for built-in tools and calls without a result. Not part of the JSON
        /// form, which has `content`.
        #[serde(skip)]
        result: Option<SharedJson>,
        /// Whether the call failed.
        is_error: bool,
        /// Duration in milliseconds.
        elapsed_ms: u64,
        /// Shown to the user in place of the content.
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<String>,
        /// Id of the `Agent` call that started the calling sub-agent; `None` for the main agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The listed tools change with the next request.
    ToolsChanged {
        /// Names of the new tools.
        added: Vec<String>,
        /// Names of the removed tools.
        removed: Vec<String>,
    },
    /// The conversation was compacted because the context window was full.
    Compacted {
        /// Estimated tokens before.
        before: u64,
        /// Estimated tokens after.
        after: u64,
    },
    /// The model finished an answer or a summary.
    Usage {
        /// Tokens of this answer alone.
        usage: Usage,
        /// Id of the `Agent` call of the answering sub-agent; `None` for the main agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A notice for the user that does not fail the turn.
    Notice {
        /// One sentence.
        text: String,
        /// Id of the `Agent` call of the sub-agent that it is about; `None` for the main agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The turn has ended. The last event of a turn that did not fail.
    Ended(Reply),
}

/// A server that is unavailable in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedServer {
    /// Name of the server.
    pub name: String,
    /// Its state as one word: `failed`, `needs-auth`, `pending`, `untrusted`, `invalid`, …
    pub state: String,
    /// One sanitized line.
    pub reason: String,
    /// Last lines of its stderr, oldest first.
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

/// Result of a turn.
#[derive(Debug, Clone, Serialize)]
pub struct Reply {
    /// Id to resume the session with.
    pub session_id: String,
    /// Text of the last answer that had any.
    pub response: String,
    /// Calls of the main agent, in the order in which they ended.
    pub tool_calls: Vec<CallSummary>,
    /// Tokens of the whole turn, including sub-agents.
    pub usage: Usage,
    /// Why the turn ended.
    pub reason: EndReason,
    /// Configured servers that were unavailable.
    pub failed_servers: Vec<FailedServer>,
}

/// A tool call of a turn.
#[derive(Debug, Clone, Serialize)]
pub struct CallSummary {
    /// Unique in the session.
    pub id: String,
    /// Tool name as written by the model.
    pub name: String,
    /// `None` if they are not valid JSON.
    pub arguments: Option<Box<RawValue>>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Duration in milliseconds.
    pub elapsed_ms: u64,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model finished its answer.
    Done,
    /// The model refused.
    Refused,
    /// The answer reached the output limit or the context window.
    Length,
    /// The budget of model requests is used up.
    TurnBudget,
    /// The token budget is used up.
    TokenBudget,
}
