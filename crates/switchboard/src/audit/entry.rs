//! Entries of the audit log: calls, logins and changes, with caller, grounds and outcome.
//!
//! An entry holds neither arguments nor results, only their sizes and the hash of the arguments, and the kind of an
//! error instead of its text. So secrets in those never reach the log.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_protocol::RequestId;
use switchboard_store::{LogEntry, Timestamp};

use crate::call::{CallError, CallOutcome, UNFIT};
use crate::host::ServerError;
use crate::names::{CallId, ServerName, WireName};
use crate::peer::RequestError;
use crate::permissions::{Because, Grounds};

/// An event to record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum What {
    /// A call that was made or refused.
    Call(CallNote),
    /// A login or logout.
    Login {
        /// The server.
        server: ServerName,
        /// The event: `begin` if a model has started one, `login`, `logout`, `refresh`.
        event: &'static str,
        /// Whether it succeeded.
        succeeded: bool,
    },
    /// A change of the configuration, or of trust decisions.
    Change {
        /// The action: `edit`, `trust`, `revoke`, `allow`.
        event: &'static str,
        /// The subject: a file or a server.
        about: String,
    },
    /// Entries that could not be written.
    Lost {
        /// The number of lost entries.
        count: u64,
    },
}

/// The recordable parts of a call.
#[derive(Debug, Clone)]
pub struct CallNote {
    /// The call.
    pub id: CallId,
    /// The client for which the call was made, such as `token:ci`; `None` if the front end made it for itself.
    pub client: Option<Arc<str>>,
    /// The server; `None` for a built-in tool.
    pub server: Option<ServerName>,
    /// The tool, by its own name.
    pub tool: WireName,
    /// The grounds of the decision.
    pub grounds: Option<Arc<Grounds>>,
    /// The arguments.
    pub arguments: Option<Digest>,
    /// The duration of the call.
    pub elapsed: Duration,
    /// The outcome.
    pub end: End,
}

/// The size and hash of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// The size in bytes.
    pub bytes: u64,
    /// Its BLAKE3 hash, which is fast enough to compute for every call.
    pub blake3: [u8; 32],
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The call returned a result.
    Done {
        /// The size of the result in bytes.
        bytes: u64,
        /// Whether the tool reported an error.
        is_error: bool,
    },
    /// The call failed with an error of this kind.
    Failed(&'static str),
    /// The call was cancelled.
    CalledOff,
    /// The call was refused.
    Refused,
    /// The call is about to be made. Recorded first if the log is required, so that no call goes unrecorded.
    Begun,
}

impl Digest {
    pub fn of(text: &str) -> Self {
        Self {
            bytes: text.len() as u64,
            blake3: blake3::hash(text.as_bytes()).into(),
        }
    }
}

impl End {
    /// The outcome of a finished call; `None` means cancelled.
    pub fn of(outcome: Option<&Result<CallOutcome, CallError>>) -> Self {
        match outcome {
            None => Self::CalledOff,
            Some(Ok(outcome)) => Self::Done {
                bytes: outcome.result.size() as u64,
                is_error: outcome.is_error,
            },
            Some(Err(error)) => Self::of_error(error),
        }
    }

    /// The outcome of a call without a result.
    pub(crate) fn of_error(error: &CallError) -> Self {
        Self::Failed(class(error))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) what: What,
}

/// Encodes entries: each one a JSON object without absent fields.
///
/// Every call is recorded, so this is optimized: a batch shares one buffer, and the common beginning of consecutive
/// entries (usually all but a few numbers) is encoded once.
pub(super) struct Pen {
    /// The beginning of every entry: front end and process.
    author: Vec<u8>,
    /// The beginning of the last call's entry.
    last: Option<Beginning>,
}

/// The beginning of a call's entry: the client, the tool and the grounds.
struct Beginning {
    client: Option<Arc<str>>,
    server: Option<ServerName>,
    tool: WireName,
    grounds: Option<Arc<Grounds>>,
    json: Vec<u8>,
}

/// The initial buffer size per entry, in bytes.
const ENTRY: usize = 384;

impl Pen {
    /// Creates an encoder for this front end and process.
    pub(super) fn new(front_end: &str, process: u32) -> Self {
        let mut author = vec![b'{'];
        let mut line = Line(&mut author);
        line.text("by", front_end);
        line.number("process", u64::from(process));
        Self { author, last: None }
    }

    pub(super) fn write(&mut self, batch: &[Entry]) -> Vec<LogEntry> {
        let mut page = Vec::with_capacity(batch.len() * ENTRY);
        let ends: Vec<usize> = batch
            .iter()
            .map(|entry| {
                self.write_one(&entry.what, &mut page);
                page.len()
            })
            .collect();
        let page = Bytes::from(page);
        let starts = iter::once(0).chain(ends.iter().copied());
        let spans = starts.zip(&ends).map(|(start, end)| start..*end);
        let entries = batch.iter().zip(spans);
        entries
            .map(|(entry, span)| LogEntry {
                at: entry.at,
                value: page.slice(span),
            })
            .collect()
    }

    fn write_one(&mut self, what: &What, page: &mut Vec<u8>) {
        if let What::Call(note) = what {
            let beginning = match &mut self.last {
                Some(last) if last.is_of(note) => last,
                last => last.insert(Beginning::new(&self.author, note)),
            };
            page.extend_from_slice(&beginning.json);
            note.write_rest(&mut Line(page));
        } else {
            page.extend_from_slice(&self.author);
            what.write(&mut Line(page));
        }
        page.push(b'}');
    }
}

impl What {
    /// Encodes an event that is not a call.
    fn write(&self, line: &mut Line<'_>) {
        match self {
            Self::Call(_) => {}
            Self::Login {
                server,
                event,
                succeeded,
            } => {
                line.text("kind", "login");
                line.text("server", server.as_str());
                line.text("event", event);
                line.text("outcome", if *succeeded { "done" } else { "failed" });
            }
            Self::Change { event, about } => {
                line.text("kind", "change");
                line.text("event", event);
                line.text("about", about);
            }
            Self::Lost { count } => {
                line.text("kind", "lost");
                line.number("count", *count);
            }
        }
    }
}

impl Beginning {
    fn new(author: &[u8], note: &CallNote) -> Self {
        let mut json = author.to_vec();
        let grounds = note.grounds.as_deref();
        let because = grounds.map(|grounds| &grounds.because);
        let mut line = Line(&mut json);
        line.text("kind", "call");
        line.text_if("client", note.client.as_deref());
        line.text_if("server", note.server.as_ref().map(ServerName::as_str));
        line.text("tool", note.tool.as_str());
        line.text_if("decision", grounds.map(|grounds| grounds.permission.name()));
        line.text_if("because", because.map(Because::word));
        line.text_if("rule", because.and_then(Because::rule));
        line.text_if("source", grounds.and_then(Grounds::source));
        Self {
            client: note.client.clone(),
            server: note.server.clone(),
            tool: note.tool.clone(),
            grounds: note.grounds.clone(),
            json,
        }
    }

    /// Whether a call's entry has this beginning. Grounds are compared by pointer: a rule uses the same for all its
    /// calls.
    fn is_of(&self, note: &CallNote) -> bool {
        let has_grounds = match (&self.grounds, &note.grounds) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            _ => false,
        };
        has_grounds
            && self.tool == note.tool
            && self.server == note.server
            && self.client == note.client
    }
}

impl CallNote {
    /// Encodes the fields that differ between calls of the same tool.
    fn write_rest(&self, line: &mut Line<'_>) {
        let (outcome, error, result_bytes) = match self.end {
            End::Done { bytes, is_error } => {
                ("done", is_error.then_some("tool-error"), Some(bytes))
            }
            End::Failed(class) => ("failed", Some(class), None),
            End::CalledOff => ("cancelled", None, None),
            End::Refused => ("refused", None, None),
            End::Begun => ("begun", None, None),
        };
        line.also(",\"call\":").digits(self.id.0);
        if let Some(digest) = &self.arguments {
            line.also(",\"arguments_bytes\":").digits(digest.bytes);
            line.also(",\"arguments_blake3\":\"")
                .hexadecimal(&digest.blake3);
            line.also("\"");
        }
        let milliseconds = u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX);
        line.also(",\"milliseconds\":").digits(milliseconds);
        line.also(",\"outcome\":\"").also(outcome).also("\"");
        line.text_if("error", error);
        if let Some(bytes) = result_bytes {
            line.also(",\"result_bytes\":").digits(bytes);
        }
    }
}

/// A partial JSON object.
struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    /// Writes a member's name, which needs no escaping.
    fn name(&mut self, name: &str) {
        let separator: &[u8] = match self.0.last() {
            Some(b'{') => b"\"",
            _ => b",\"",
        };
        self.0.extend_from_slice(separator);
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        let needs_escapes = text
            .bytes()
            .any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
        if needs_escapes {
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut *self.0, text);
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
        self.digits(number);
    }

    /// Appends encoded JSON.
    fn also(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    fn digits(&mut self, number: u64) {
        RequestId::from(number).write_json(self.0);
    }

    fn hexadecimal(&mut self, bytes: &[u8; 32]) {
        let digit = |half: u8| half + if half < 10 { b'0' } else { b'a' - 10 };
        // Simple loops that the compiler can vectorize.
        let (mut first, mut second) = ([0; 32], [0; 32]);
        for ((first, second), byte) in first.iter_mut().zip(&mut second).zip(bytes) {
            *first = digit(byte >> 4);
            *second = digit(byte & 15);
        }
        let mut pairs = [[0; 2]; 32];
        for ((pair, first), second) in pairs.iter_mut().zip(first).zip(second) {
            *pair = [first, second];
        }
        self.0.extend_from_slice(pairs.as_flattened());
    }
}

/// The kind of an error. Its text is omitted, since servers control it.
fn class(error: &CallError) -> &'static str {
    match error {
        CallError::Lookup(_) => "unknown-tool",
        CallError::Server(ServerError::NeedsAuth(_)) => "needs-login",
        CallError::Server(_) => "server-unavailable",
        CallError::Arguments { .. } => UNFIT,
        CallError::Denied { .. } => "result-withheld",
        CallError::Profile { .. } => "not-in-profile",
        CallError::Request { error, .. } => match error {
            RequestError::Idle(_) | RequestError::Expired(_) => "timed-out",
            RequestError::Lost(_) => "connection-lost",
            RequestError::NotSent(_) => "not-sent",
            RequestError::TooLarge(_) => "too-large",
            RequestError::Overloaded { .. } => "overloaded",
            RequestError::Paused { .. } => "paused",
            RequestError::Rejected(_) => "protocol-error",
            RequestError::Refused(_) => "http-error",
            RequestError::Malformed(_) | RequestError::TooDeep { .. } => "malformed-answer",
            _ => "failed",
        },
    }
}
