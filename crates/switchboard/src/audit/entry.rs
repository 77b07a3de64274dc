//! What is written down of a call, a login, a change: who, what, on which grounds, and what came of it.
//!
//! An entry holds no argument and no result, only their sizes and the hash of the arguments, and no error text, only its
//! kind: whatever a server or a user puts into those, no secret gets here.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use switchboard_config::entry::Permission;
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
    pub(super) fn to_json(&self, front_end: &str, process: u32) -> Value {
        let mut object = Map::new();
        let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
        set("by", json!(front_end));
        set("process", json!(process));
        match &self.what {
            What::Call(note) => {
                set("kind", json!("call"));
                set("call", json!(note.id.0));
                set(
                    "server",
                    json!(note.server.as_ref().map(ServerName::as_str)),
                );
                set("tool", json!(note.tool.as_str()));
                let because = note.grounds.as_ref().map(|grounds| &grounds.because);
                let permission = note.grounds.as_ref().map(|grounds| grounds.permission);
                set("decision", json!(permission.map(Permission::name)));
                set("because", json!(because.map(Because::word)));
                set("rule", json!(because.and_then(Because::rule)));
                let source = because.and_then(Because::origin).map(|origin| {
                    format!("{}:{}", origin.path().display(), origin.position().line)
                });
                set("source", json!(source));
                if let Some(digest) = &note.arguments {
                    set("arguments_bytes", json!(digest.bytes));
                    set("arguments_sha256", json!(hex(&digest.sha256)));
                }
                set("milliseconds", json!(note.elapsed.as_millis()));
                let (outcome, error, bytes) = match note.end {
                    End::Done { bytes, is_error } => {
                        ("done", is_error.then_some("tool-error"), Some(bytes))
                    }
                    End::Failed(class) => ("failed", Some(class), None),
                    End::CalledOff => ("called-off", None, None),
                    End::Refused => ("refused", None, None),
                };
                set("outcome", json!(outcome));
                set("error", json!(error));
                set("result_bytes", json!(bytes));
            }
            What::Login {
                server,
                event,
                succeeded,
            } => {
                set("kind", json!("login"));
                set("server", json!(server.as_str()));
                set("event", json!(event));
                set("outcome", json!(if *succeeded { "done" } else { "failed" }));
            }
            What::Change { event, about } => {
                set("kind", json!("change"));
                set("event", json!(event));
                set("about", json!(about));
            }
            What::Lost { count } => {
                set("kind", json!("lost"));
                set("count", json!(count));
            }
        }
        Value::Object(object)
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
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
