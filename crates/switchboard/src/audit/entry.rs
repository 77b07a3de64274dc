//! What is written down of a call, a login, a change: who, what, on which grounds, and what came of it.
//!
//! An entry holds no argument and no result, only their sizes and the hash of the arguments, and no error text, only its
//! kind: whatever a server or a user puts into those, no secret gets here.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use switchboard_protocol::RequestId;
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
    /// The entry as the log keeps it: one JSON object. What does not apply is left out.
    pub(super) fn to_json(&self, front_end: &str, process: u32) -> Vec<u8> {
        let mut line = Line::begin();
        line.text("by", front_end);
        line.number("process", u64::from(process));
        match &self.what {
            What::Call(note) => note.write(&mut line),
            What::Login {
                server,
                event,
                succeeded,
            } => {
                line.text("kind", "login");
                line.text("server", server.as_str());
                line.text("event", event);
                line.text("outcome", if *succeeded { "done" } else { "failed" });
            }
            What::Change { event, about } => {
                line.text("kind", "change");
                line.text("event", event);
                line.text("about", about);
            }
            What::Lost { count } => {
                line.text("kind", "lost");
                line.number("count", *count);
            }
        }
        line.end()
    }
}

impl CallNote {
    fn write(&self, line: &mut Line) {
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
        line.text("kind", "call");
        line.number("call", self.id.0);
        line.text_if("server", self.server.as_ref().map(ServerName::as_str));
        line.text("tool", self.tool.as_str());
        line.text_if("decision", grounds.map(|grounds| grounds.permission.name()));
        line.text_if("because", because.map(Because::word));
        line.text_if("rule", because.and_then(Because::rule));
        line.text_if("source", grounds.and_then(Grounds::source));
        if let Some(digest) = &self.arguments {
            line.number("arguments_bytes", digest.bytes);
            line.hexadecimal("arguments_sha256", &digest.sha256);
        }
        let milliseconds = u64::try_from(self.elapsed.as_millis());
        line.number("milliseconds", milliseconds.unwrap_or(u64::MAX));
        line.text("outcome", outcome);
        line.text_if("error", error);
        if let Some(bytes) = result_bytes {
            line.number("result_bytes", bytes);
        }
    }
}

/// A JSON object in the making. Every call has one written, so it is written without detours.
struct Line(Vec<u8>);

impl Line {
    fn begin() -> Self {
        let mut line = Vec::with_capacity(384);
        line.push(b'{');
        Self(line)
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    /// The name of a member, which needs no escapes.
    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        let needs_escapes = text
            .bytes()
            .any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
        if needs_escapes {
            // Writing text into memory does not fail.
            let _ = serde_json::to_writer(&mut self.0, text);
            return;
        }
        self.0.push(b'"');
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'"');
    }

    fn text_if(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        RequestId::from(number).write_json(&mut self.0);
    }

    fn hexadecimal(&mut self, name: &str, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.name(name);
        self.0.push(b'"');
        for byte in bytes {
            let pair = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            self.0.extend_from_slice(&pair);
        }
        self.0.push(b'"');
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
