//! How each server stands, as a value to look at.
//!
//! Owns the server states as data. Only the manager changes them.

use std::time::{Duration, SystemTime};

use switchboard_config::entry::Transport;
use switchboard_config::text::visible;
use switchboard_protocol::Revision;

use crate::catalog::ToolCount;
use crate::catalog::text::neutralise;
use crate::names::ServerName;
use crate::peer::{OpenErrorKind, OpenStep};
use crate::transport::TransportErrorKind;
use switchboard_protocol::negotiate::Failure as Negotiation;

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It is being connected, will be, or will be on first use.
    Pending,
    /// It can be used.
    Connected,
    /// It could not be connected.
    Failed,
    /// It requires a login.
    NeedsAuth,
    /// It is switched off.
    Disabled,
}

impl State {
    /// One word for tables and scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::NeedsAuth => "needs-auth",
            Self::Disabled => "disabled",
        }
    }

    /// Whether the server will not change its state by itself soon.
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

/// How a server stands.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name.
    pub name: ServerName,
    /// How it is reached.
    pub transport: Transport,
    /// Its state.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// Whether start-up waits for it.
    pub required: bool,
    /// Whether it waits to be used before it is connected.
    pub is_lazy: bool,
    /// Whether it was connected and has been ended because nobody used it. What it offers still stands.
    pub is_resting: bool,
    /// The revision that is spoken, while it is connected.
    pub revision: Option<Revision>,
    /// How many tools it offers.
    pub tools: usize,
    /// How many tools it lists, by what becomes of them.
    pub count: ToolCount,
    /// How often it was connected anew by itself.
    pub restarts: u32,
    /// How long its last answer to a probe or list took.
    pub latency: Option<Duration>,
    /// How long it took from the start to its tools.
    pub startup: Option<Duration>,
    /// The process behind it.
    pub process: Option<u32>,
    /// Why it is not connected, or was not the last time.
    pub failure: Option<Box<Failure>>,
    /// How many attempts to connect have failed in a row; while it is pending, another one is under way or about to be.
    pub failed_attempts: u32,
    /// Whether its package runner is installing it, and makes progress.
    pub is_installing: bool,
}

impl ServerStatus {
    /// Whether it is being connected and may be there in a moment. One that has used up its whole deadline once is tried
    /// again, with nobody waiting for it.
    pub fn is_coming_up(&self) -> bool {
        let is_slow = |failure: &Failure| failure.cause == Cause::Timeout;
        self.state == State::Pending
            && !self.is_lazy
            && !self.failure.as_deref().is_some_and(is_slow)
    }
}

/// Why a server's tools are not there, although the server is configured and switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// The server.
    pub name: String,
    /// Its state in one word, as in tables.
    pub state: &'static str,
    /// Why, in one line; safe for a terminal and a model.
    pub reason: String,
    /// The last lines of its stderr, oldest first, sanitized.
    pub stderr: Vec<String>,
}

/// Lines of stderr that come with a reason.
const STDERR_TAIL: usize = 10;

impl ServerStatus {
    /// Why its tools are not there. `None` for a server that is connected, stopped while idle, or switched off.
    pub fn absence(&self) -> Option<Absence> {
        let is_there = match self.state {
            State::Connected | State::Disabled => true,
            State::Pending => self.is_resting,
            State::Failed | State::NeedsAuth => false,
        };
        if is_there {
            return None;
        }
        let stderr = self.failure.iter().flat_map(|failure| &failure.stderr);
        let tail: Vec<&String> = stderr.rev().take(STDERR_TAIL).collect();
        let line = |line: &&String| visible(&neutralise(line)).into_owned();
        Some(Absence {
            name: self.name.as_str().to_owned(),
            state: self.state.word(),
            reason: self.reason().unwrap_or_default(),
            stderr: tail.iter().rev().map(line).collect(),
        })
    }

    /// Why it is not connected, in one line that is safe to show; `None` if it is, or is switched off.
    pub fn reason(&self) -> Option<String> {
        let failure = self.failure.as_deref().map(Failure::reason);
        match (self.state, failure) {
            (State::Connected | State::Disabled, _) => None,
            (State::NeedsAuth, _) => Some("it requires a login".to_owned()),
            (State::Failed, Some(reason)) => Some(reason),
            (State::Failed, None) => Some("it cannot be connected".to_owned()),
            (State::Pending, Some(reason)) => Some(format!("reconnecting: {reason}")),
            (State::Pending, None) if self.is_resting => None,
            (State::Pending, None) if self.is_lazy => Some("connects on first use".to_owned()),
            (State::Pending, None) => Some("still starting".to_owned()),
        }
    }
}

/// Why a server could not be connected, or was lost.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The step that failed; `None` if it was connected.
    pub step: Option<OpenStep>,
    /// What kind of failure it is.
    pub cause: Cause,
    /// What happened, in one line.
    pub message: String,
    /// The last lines of its stderr, oldest first.
    pub stderr: Vec<String>,
}

/// What kind of failure it is, as far as a remedy hangs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The transport failed.
    Transport(TransportErrorKind),
    /// The process ended.
    Exited,
    /// The connection ended.
    Lost,
    /// The deadline passed.
    Timeout,
    /// It requires a login.
    Unauthorized,
    /// It does not accept the credentials of its entry, and a login cannot replace them.
    TokenRejected,
    /// It is overloaded or down behind a proxy.
    Unavailable,
    /// It does not speak the protocol, or no revision in common.
    Protocol,
    /// It answered with an error.
    Rejected,
    /// Its configuration cannot be used.
    Configuration,
    /// Its name can be mistaken for another's.
    Name,
}

impl Failure {
    /// What went wrong in one line that is safe to show, with the server's own last line where its process ended.
    pub fn reason(&self) -> String {
        let summary = self.summary();
        let mut reason =
            visible(&neutralise(summary.lines().next().unwrap_or_default())).into_owned();
        let mut lines = self.stderr.iter().rev();
        let last = lines.find(|line| !line.trim().is_empty());
        if let (Cause::Exited, Some(line)) = (self.cause, last) {
            reason.push_str(": ");
            reason.push_str(&visible(&neutralise(line.trim())));
        }
        reason
    }

    /// Whether the same attempt may succeed a moment later: nobody listened, no answer in time, a server that is
    /// overloaded, a name that could not be looked up. A program that is missing or ends by itself will do so again; one
    /// that was not ready in time may have been slow for another reason, such as a busy machine.
    pub fn may_pass(&self, transport: Transport) -> bool {
        if transport.is_local() {
            return self.cause == Cause::Timeout;
        }
        match self.cause {
            Cause::Transport(kind) => matches!(
                kind,
                TransportErrorKind::Dns
                    | TransportErrorKind::Refused
                    | TransportErrorKind::Unreachable
                    | TransportErrorKind::Timeout
                    | TransportErrorKind::Io
                    | TransportErrorKind::Closed
            ),
            Cause::Timeout | Cause::Lost | Cause::Unavailable => true,
            Cause::Exited
            | Cause::Unauthorized
            | Cause::TokenRejected
            | Cause::Name
            | Cause::Protocol
            | Cause::Rejected
            | Cause::Configuration => false,
        }
    }

    /// The first line of what went wrong, with the step.
    pub fn summary(&self) -> String {
        match self.step {
            Some(OpenStep::Connect) | None => self.message.clone(),
            Some(step) => format!("{}: {}", step.name(), self.message),
        }
    }
}

impl From<&OpenErrorKind> for Cause {
    fn from(kind: &OpenErrorKind) -> Self {
        use crate::peer::RequestError;
        match kind {
            OpenErrorKind::Closed(_) => Self::Exited,
            OpenErrorKind::Unauthorized(_) => Self::Unauthorized,
            OpenErrorKind::Unavailable(_) => Self::Unavailable,
            OpenErrorKind::Negotiation(Negotiation::NotMcp { status })
                if is_unavailable(*status) =>
            {
                Self::Unavailable
            }
            OpenErrorKind::Request(RequestError::Refused(refusal))
                if is_unavailable(refusal.status) =>
            {
                Self::Unavailable
            }
            OpenErrorKind::Transport(error) if error.status().is_some_and(is_unavailable) => {
                Self::Unavailable
            }
            OpenErrorKind::Transport(error)
            | OpenErrorKind::Request(RequestError::NotSent(error)) => Self::Transport(error.kind),
            OpenErrorKind::Request(RequestError::Rejected(_)) => Self::Rejected,
            OpenErrorKind::Request(RequestError::Lost(_)) => Self::Lost,
            OpenErrorKind::Request(RequestError::Idle(_) | RequestError::Expired(_)) => {
                Self::Timeout
            }
            OpenErrorKind::Negotiation(_) | OpenErrorKind::Request(_) | OpenErrorKind::Circles => {
                Self::Protocol
            }
        }
    }
}

/// Whether an HTTP status says that the server cannot answer now, and may later.
const fn is_unavailable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}
