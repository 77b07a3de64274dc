//! What is written down of a call, a login, a change: who, what, on which grounds, and what came of it.
//!
//! An entry holds no argument and no result, only their sizes and the hash of the arguments, and no error text, only its
//! kind: whatever a server or a user puts into those, no secret gets here.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use switchboard_store::Timestamp;

use crate::call::{CallError, CallOutcome};
use crate::host::ServerError;
use crate::names::{CallId, ServerName, WireName};
use crate::peer::RequestError;
use crate::permissions::{Because, Grounds};

/// Something to write down.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum What {
    /// A call that was made, or refused.
    Call(Box<CallNote>),
    /// A login, or its end.
    Login {
        /// The server.
        server: ServerName,
        /// What happened: `login`, `logout`, `refresh`.
        event: &'static str,
        /// Whether it succeeded.
        succeeded: bool,
    },
    /// A change of the configuration, or of what is trusted.
    Change {
        /// What was done: `edit`, `trust`, `revoke`, `allow`.
        event: &'static str,
        /// What it is about: a file, a server.
        about: String,
    },
    /// Entries that could not be kept.
    Lost {
        /// How many.
        count: u64,
    },
}

/// A call, as far as it may be written down.
#[derive(Debug, Clone)]
pub struct CallNote {
    /// The call.
    pub id: CallId,
    /// The server; `None` for a built-in tool.
    pub server: Option<ServerName>,
    /// The tool, by its own name.
    pub tool: WireName,
    /// What it was decided on.
    pub grounds: Option<Arc<Grounds>>,
    /// The arguments.
    pub arguments: Option<Digest>,
    /// How long it took.
    pub elapsed: Duration,
    /// What came of it.
    pub end: End,
}

/// The size and the hash of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// How many bytes it has.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It has a result.
    Done {
        /// The size of the result.
        bytes: u64,
        /// Whether the tool itself says that it failed.
        is_error: bool,
    },
    /// It has none, for a reason of this kind.
    Failed(&'static str),
    /// It was called off.
    CalledOff,
    /// It was not made.
    Refused,
}

impl Digest {
    /// The digest of a text.
    pub fn of(text: &str) -> Self {
        Self {
            bytes: text.len() as u64,
            sha256: Sha256::digest(text.as_bytes()).into(),
        }
    }
}

impl End {
    /// What came of a call, by its outcome.
    pub fn of(outcome: Option<&Result<CallOutcome, CallError>>) -> Self {
        match outcome {
            None => Self::CalledOff,
            Some(Ok(outcome)) => Self::Done {
                bytes: outcome.result.as_str().len() as u64,
                is_error: outcome.is_error,
            },
            Some(Err(error)) => Self::Failed(class(error)),
        }
    }
}

/// An entry with its time, as the log keeps it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) what: What,
}

impl Entry {
    /// The entry as the log keeps it: one JSON object.
    pub(super) fn to_json(&self, front_end: &str, process: u32) -> Vec<u8> {
        let told = match &self.what {
            What::Call(note) => Told::Call(note.told()),
            What::Login {
                server,
                event,
                succeeded,
            } => Told::Login {
                server: server.as_str(),
                event,
                outcome: if *succeeded { "done" } else { "failed" },
            },
            What::Change { event, about } => Told::Change { event, about },
            What::Lost { count } => Told::Lost { count: *count },
        };
        let line = Line {
            by: front_end,
            process,
            told,
        };
        // Texts and numbers only: this cannot fail, and an entry that cannot be read would be shown as such.
        serde_json::to_vec(&line).unwrap_or_default()
    }
}

/// An entry in the words of the log. What does not apply is left out.
#[derive(Serialize)]
struct Line<'a> {
    by: &'a str,
    process: u32,
    #[serde(flatten)]
    told: Told<'a>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Told<'a> {
    Call(ToldCall<'a>),
    Login {
        server: &'a str,
        event: &'a str,
        outcome: &'a str,
    },
    Change {
        event: &'a str,
        about: &'a str,
    },
    Lost {
        count: u64,
    },
}

#[derive(Serialize)]
struct ToldCall<'a> {
    call: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_sha256: Option<String>,
    milliseconds: u64,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_bytes: Option<u64>,
}

impl CallNote {
    fn told(&self) -> ToldCall<'_> {
        let grounds = self.grounds.as_deref();
        let because = grounds.map(|grounds| &grounds.because);
        let (outcome, error, result_bytes) = match self.end {
            End::Done { bytes, is_error } => {
                ("done", is_error.then_some("tool-error"), Some(bytes))
            }
            End::Failed(class) => ("failed", Some(class), None),
            End::CalledOff => ("called-off", None, None),
            End::Refused => ("refused", None, None),
        };
        ToldCall {
            call: self.id.0,
            server: self.server.as_ref().map(ServerName::as_str),
            tool: self.tool.as_str(),
            decision: grounds.map(|grounds| grounds.permission.name()),
            because: because.map(Because::word),
            rule: because.and_then(Because::rule),
            source: grounds.and_then(Grounds::source),
            arguments_bytes: self.arguments.map(|digest| digest.bytes),
            arguments_sha256: self.arguments.map(|digest| hex(&digest.sha256)),
            milliseconds: u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            outcome,
            error,
            result_bytes,
        }
    }
}

/// The kind of an error. What it says stays out: servers write those texts.
fn class(error: &CallError) -> &'static str {
    match error {
        CallError::Lookup(_) => "unknown-tool",
        CallError::Server(ServerError::NeedsAuth(_)) => "needs-login",
        CallError::Server(_) => "server-unavailable",
        CallError::Arguments { .. } => "bad-arguments",
        CallError::Denied { .. } => "result-withheld",
        CallError::Request { error, .. } => match error {
            RequestError::Idle(_) | RequestError::Expired(_) => "timed-out",
            RequestError::Lost(_) => "connection-lost",
            RequestError::NotSent(_) => "not-sent",
            RequestError::TooLarge(_) => "too-large",
            RequestError::Rejected(_) => "protocol-error",
            RequestError::Refused(_) => "http-error",
            RequestError::Malformed(_) => "malformed-answer",
            _ => "failed",
        },
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
