//! Fault injection for scripted servers.
//!
//! A [`Rule`] selects occasions (a method, a tool, a connection) and the faults to inject, a number of times or always.
//! A fault that does not apply to a transport is ignored, such as a status without HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Faults, and when to inject them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The occasions to match.
    pub on: On,
    /// Injected together.
    pub faults: Vec<Fault>,
    /// Number of occasions to skip first.
    #[serde(default)]
    pub after: u32,
    /// Number of occasions to inject at; `None`: all.
    #[serde(default)]
    pub times: Option<u32>,
}

/// The occasion of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum On {
    /// A request with this method and, optionally, this name of a tool, prompt or resource.
    Request {
        /// Method of the request.
        method: String,
        /// `params.name` or `params.uri`.
        #[serde(default)]
        name: Option<String>,
    },
    /// Any request.
    AnyRequest,
    /// A notification or an answer of the client; only HTTP faults apply.
    AnyMessage,
    /// A new connection: the start of the process, or an accepted socket.
    Connect,
    /// The opening of a GET stream (both HTTP transports).
    Stream,
}

/// A fault to inject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Never answers. On a connection: accepts and never writes (a half-open socket).
    Silent,
    /// Delays the answer.
    Delay {
        /// In milliseconds.
        ms: u64,
    },
    /// Delays the answer until the test releases this gate.
    Gate {
        /// Name of the gate.
        gate: String,
    },
    /// Stops: the process exits; an in-process server drops every connection and stops listening.
    Exit {
        /// Exit code of a process.
        code: i32,
        /// Relative to the answer.
        at: Moment,
    },
    /// Drops the connection without an answer (for stdio, like [`Exit`](Self::Exit)).
    Abort {
        /// Relative to the answer.
        at: Moment,
    },
    /// Writes this where a message is expected, before the answer (or when a connection starts).
    GarbageBefore {
        /// Written verbatim.
        text: String,
    },
    /// Writes this where a message is expected, after the answer.
    GarbageAfter {
        /// Written verbatim.
        text: String,
    },
    /// Pads the result to this size, sent in pieces.
    Oversized {
        /// Length of the text.
        bytes: usize,
    },
    /// Answers with a result of this nesting depth.
    Deep {
        /// Number of levels.
        levels: usize,
    },
    /// Answers with a wrong id.
    Id(IdFault),
    /// Sends the answer several times.
    Repeat {
        /// Total number of answers.
        times: u32,
    },
    /// Writes the answer slowly, in small pieces.
    Trickle {
        /// Bytes per piece.
        bytes: usize,
        /// Milliseconds between pieces.
        ms: u64,
    },
    /// Fails with an HTTP status.
    Status {
        /// HTTP status.
        status: u16,
        /// Additional response headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// Response body.
        #[serde(default)]
        body: String,
    },
    /// Sends the answer with another content type (HTTP).
    ContentType(String),
    /// Closes the event stream of the request after its first event; the answer waits until the stream is resumed.
    CloseStream,
    /// Drops the session before handling the request (HTTP).
    ForgetSession,
    /// Sends many notifications before the answer (or when a connection starts).
    Storm {
        /// Method of the notifications.
        method: String,
        /// Number of notifications.
        count: u32,
    },
    /// Answers with this result.
    Result(Value),
    /// Answers with this `error` member, valid or not.
    Error(Value),
    /// Answers with this text, a message or not.
    Text(String),
    /// An endless list: every page has this cursor for the next one.
    EndlessCursor(String),
}

/// A time relative to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the answer is written.
    Before,
    /// After half of it is written.
    Half,
    /// After it is written.
    After,
}

/// A way in which an id is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdFault {
    /// One too high, possibly the id of another call.
    Wrong,
    /// An id that was never used.
    Unknown,
    /// The same number as a float (`7.0`).
    Float,
    /// The same number as a string (`"7"`).
    Text,
    /// `null`.
    Null,
    /// Without an id.
    Missing,
    /// A JSON object.
    Object,
}

impl Rule {
    /// Injects a fault into every request with this method.
    pub fn on(method: &str, fault: Fault) -> Self {
        Self::at(
            On::Request {
                method: method.to_owned(),
                name: None,
            },
            fault,
        )
    }

    /// Injects a fault into every call of this tool.
    pub fn on_tool(tool: &str, fault: Fault) -> Self {
        Self::at(
            On::Request {
                method: "tools/call".to_owned(),
                name: Some(tool.to_owned()),
            },
            fault,
        )
    }

    /// Injects a fault on this occasion.
    pub fn at(on: On, fault: Fault) -> Self {
        Self {
            on,
            faults: vec![fault],
            after: 0,
            times: None,
        }
    }

    /// Adds another fault.
    #[must_use]
    pub fn and(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Only on the first occasion.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Only on this many occasions.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Skips this many occasions first.
    #[must_use]
    pub fn after(mut self, occasions: u32) -> Self {
        self.after = occasions;
        self
    }
}

impl Fault {
    /// An HTTP status without a body.
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            headers: BTreeMap::new(),
            body: String::new(),
        }
    }

    /// A JSON-RPC error with this code.
    pub fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({"code": code, "message": message}))
    }
}

/// A rule and the number of its occasions so far.
#[derive(Debug)]
pub(crate) struct Armed {
    rule: Rule,
    seen: u32,
}

impl Armed {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, seen: 0 }
    }

    /// The faults to inject if the occasion matches, which is counted.
    pub(crate) fn strike(&mut self, occasion: &Occasion<'_>) -> &[Fault] {
        if !occasion.is(&self.rule.on) {
            return &[];
        }
        self.seen += 1;
        let struck = self.seen > self.rule.after
            && self
                .rule
                .times
                .is_none_or(|times| self.seen - self.rule.after <= times);
        if struck { &self.rule.faults } else { &[] }
    }
}

/// The current occasion.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Occasion<'a> {
    Request {
        method: &'a str,
        name: Option<&'a str>,
    },
    Message,
    Connect,
    Stream,
}

impl Occasion<'_> {
    fn is(&self, on: &On) -> bool {
        match (self, on) {
            (
                Self::Request { method, name },
                On::Request {
                    method: wanted_method,
                    name: wanted_name,
                },
            ) => {
                *method == wanted_method.as_str()
                    && wanted_name
                        .as_deref()
                        .is_none_or(|wanted| *name == Some(wanted))
            }
            (Self::Request { .. }, On::AnyRequest)
            | (Self::Message, On::AnyMessage)
            | (Self::Connect, On::Connect)
            | (Self::Stream, On::Stream) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_matches_its_occasions_the_given_number_of_times() {
        let mut armed = Armed::new(Rule::on_tool("slow", Fault::Silent).after(1).times(2));
        let mut struck = Vec::new();
        for name in ["slow", "other", "slow", "slow", "slow"] {
            let occasion = Occasion::Request {
                method: "tools/call",
                name: Some(name),
            };
            struck.push((name, !armed.strike(&occasion).is_empty()));
        }
        assert_eq!(
            struck,
            [
                ("slow", false),
                ("other", false),
                ("slow", true),
                ("slow", true),
                ("slow", false)
            ]
        );
    }

    #[test]
    fn a_rule_round_trips_through_json() {
        let rule = Rule::at(On::Connect, Fault::status(503))
            .and(Fault::Exit {
                code: 3,
                at: Moment::Half,
            })
            .once();
        let text = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
    }
}
