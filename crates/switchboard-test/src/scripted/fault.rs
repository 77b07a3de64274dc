//! What goes wrong with a scripted server, and when.
//!
//! Owns the list of faults and the rules that arm them. A [`Rule`] picks a moment (a method, a tool, a connection) and
//! the faults of that moment, for a number of times or for ever. A fault that has no meaning on a transport does
//! nothing there: a status without HTTP, for one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Faults, and when they strike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// When.
    pub on: On,
    /// What, together.
    pub faults: Vec<Fault>,
    /// How many occasions pass unharmed first.
    #[serde(default)]
    pub after: u32,
    /// How many occasions are struck; all of them without it.
    #[serde(default)]
    pub times: Option<u32>,
}

/// The occasion of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum On {
    /// A request, by its method; with a name, only the one about that tool, prompt or resource.
    Request {
        /// The method.
        method: String,
        /// `params.name` or `params.uri`.
        #[serde(default)]
        name: Option<String>,
    },
    /// Any request.
    AnyRequest,
    /// A notification or an answer of the client; only faults of HTTP have a meaning then.
    AnyMessage,
    /// A new connection: the start of the process, a socket that is accepted.
    Connect,
    /// The opening of a GET stream (both HTTP transports).
    Stream,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Never answers. For a connection: accepts and says nothing, ever (a half-open socket).
    Silent,
    /// Answers after this many milliseconds.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Answers when the control releases this gate.
    Gate {
        /// The gate.
        gate: String,
    },
    /// Ends: the process exits with this code; a server in this process drops every connection and listens no more.
    Exit {
        /// The exit code.
        code: i32,
        /// When, as seen from the answer.
        at: Moment,
    },
    /// Drops this one connection without a word (for stdio, as [`Exit`](Self::Exit)).
    Abort {
        /// When, as seen from the answer.
        at: Moment,
    },
    /// Writes this where a message is expected, before the answer (or at the start of a connection).
    GarbageBefore {
        /// What is written.
        text: String,
    },
    /// Writes this where a message is expected, after the answer.
    GarbageAfter {
        /// What is written.
        text: String,
    },
    /// Answers with a result padded to this many bytes, sent in pieces.
    Oversized {
        /// Bytes of text.
        bytes: usize,
    },
    /// Answers with a result nested this deep.
    Deep {
        /// Levels.
        levels: usize,
    },
    /// Answers with another id.
    Id(IdFault),
    /// Answers so many times.
    Repeat {
        /// How often in all.
        times: u32,
    },
    /// Writes the answer in pieces of so many bytes, with so long between them.
    Trickle {
        /// Bytes at a time.
        bytes: usize,
        /// Milliseconds between them.
        ms: u64,
    },
    /// Refuses with an HTTP status.
    Status {
        /// The status.
        status: u16,
        /// Headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body.
        #[serde(default)]
        body: String,
    },
    /// Sends the answer under another content type (HTTP).
    ContentType(String),
    /// Closes the event stream of the request after its first event; the answer waits for whoever resumes it.
    CloseStream,
    /// Forgets the session before it looks at the request (HTTP).
    ForgetSession,
    /// Sends so many notifications of this method before the answer (or at the start of a connection).
    Storm {
        /// The method.
        method: String,
        /// How many.
        count: u32,
    },
    /// Answers with this result.
    Result(Value),
    /// Answers with this in the `error` member, an error object or not.
    Error(Value),
    /// Answers with this text, a message or not.
    Text(String),
    /// A list that never ends: every page names this cursor for the next.
    EndlessCursor(String),
}

/// When a server ends, as seen from the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before any of it is written.
    Before,
    /// When half of it is written.
    Half,
    /// When all of it is written.
    After,
}

/// What is wrong with an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdFault {
    /// One higher than it should be: maybe another call's.
    Wrong,
    /// One that nobody has ever asked with.
    Unknown,
    /// The same number as a float (`7.0`).
    Float,
    /// The same number as a string (`"7"`).
    Text,
    /// `null`.
    Null,
    /// None at all.
    Missing,
    /// An object.
    Object,
}

impl Rule {
    /// A fault of every request of this method.
    pub fn on(method: &str, fault: Fault) -> Self {
        Self::at(
            On::Request {
                method: method.to_owned(),
                name: None,
            },
            fault,
        )
    }

    /// A fault of every call of this tool.
    pub fn on_tool(tool: &str, fault: Fault) -> Self {
        Self::at(
            On::Request {
                method: "tools/call".to_owned(),
                name: Some(tool.to_owned()),
            },
            fault,
        )
    }

    /// A fault of this occasion.
    pub fn at(on: On, fault: Fault) -> Self {
        Self {
            on,
            faults: vec![fault],
            after: 0,
            times: None,
        }
    }

    /// And this fault with it.
    #[must_use]
    pub fn and(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Only the first time.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Only so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only after so many occasions have passed.
    #[must_use]
    pub fn after(mut self, occasions: u32) -> Self {
        self.after = occasions;
        self
    }
}

impl Fault {
    /// A refusal with this HTTP status and no body.
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            headers: BTreeMap::new(),
            body: String::new(),
        }
    }

    /// An error with this code.
    pub fn error(code: i64, message: &str) -> Self {
        Self::Error(json!({"code": code, "message": message}))
    }
}

/// A rule and how often its occasion has come.
#[derive(Debug)]
pub(crate) struct Armed {
    rule: Rule,
    seen: u32,
}

impl Armed {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rule, seen: 0 }
    }

    /// The faults that strike now, if this is the occasion; it is counted.
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

/// What is happening.
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
    fn a_rule_strikes_its_own_occasions_and_as_often_as_it_says() {
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
    fn a_rule_is_the_same_after_a_way_through_json() {
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
