//! The status of each server, as plain data.
//!
//! Defines the server states, with the word, the reason and the remedy that every view shows. Only the manager changes
//! them.

use std::fmt;
use std::time::{Duration, SystemTime};

use switchboard_config::entry::Transport;
use switchboard_config::resolve;
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;
use switchboard_protocol::Revision;

use crate::catalog::ToolCount;
use crate::catalog::text::neutralise;
use crate::connectors::{ConnectorError, own_gateway};
use crate::names::ServerName;
use crate::peer::{OpenErrorKind, OpenStep};
use crate::transport::TransportErrorKind;
use switchboard_protocol::negotiate::Failure as Negotiation;

/// The state of a server, with the reason for it. Every view of a server is derived from this.
#[derive(Debug, Clone)]
pub enum ServerState {
    /// Switched off.
    Disabled {
        /// The origin of the state.
        by: DisabledBy,
    },
    /// Not connected yet.
    Lazy {
        /// The event that connects it.
        until: StartsOn,
    },
    /// Being connected, or waiting for the next attempt.
    Pending {
        /// The reason the last attempt failed, or the previous connection was lost.
        failure: Option<Box<Failure>>,
        /// Consecutive failed attempts.
        failed_attempts: u32,
        /// Whether its package runner is installing it.
        is_installing: bool,
    },
    /// Ready for use.
    Connected,
    /// Stopped because it was unused. Its tools are still offered, and the next use reconnects it.
    Idle,
    /// Could not be connected, or was lost and could not be reconnected.
    Failed {
        /// The failure of the last attempt.
        failure: Box<Failure>,
    },
    /// Requires a login.
    NeedsAuth {
        /// The server's response; `None` if it was received in an earlier run.
        failure: Option<Box<Failure>>,
    },
    /// Configured, but not allowed or not able to start.
    Refused(Refusal),
    /// Configured, but replaced by another server with the same endpoint.
    Hidden {
        /// The name of the server used instead.
        by: String,
        /// The other entry's scope and place, such as `user scope, mcp.toml:3:1`.
        place: String,
        /// Whether the other entry is in a file that commands can edit.
        is_editable: bool,
    },
}

/// The origin of a server's disabled state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledBy {
    /// `enabled = false` in its entry.
    Entry,
    /// [`Host::set_enabled`](crate::Host::set_enabled), until the host ends.
    Session,
}

/// The event that connects a [`ServerState::Lazy`] server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartsOn {
    /// Its first use, as configured.
    FirstUse,
    /// [`Host::start`](crate::Host::start), or its first use: the host was not asked to start its servers.
    Request,
}

/// The reason a configured server is not started.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// Its entry has errors.
    Invalid(Vec<String>),
    /// Its entry is valid, but no connector can be built from it.
    Unusable(ConnectorError),
    /// Its entry is in a file that a repository can contain, and is not approved.
    Untrusted {
        /// Whether the entry is new, changed or rejected.
        reason: String,
        /// The subject to approve.
        subject: String,
    },
    /// Excluded by a server list.
    Blocked {
        /// The rule and its place.
        reason: String,
    },
    /// Its name can be confused with that of another server.
    Name {
        /// The other server.
        by: String,
        /// The other entry's scope and place.
        place: String,
        /// A name that can be used instead.
        instead: String,
        /// The place of its own entry.
        entry: String,
    },
}

/// An action that a user can take about a state. Displayed as a sanitized hint for the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Enable the server.
    Enable(String),
    /// Log in to the server.
    Login(String),
    /// Approve its entry; holds the subject of the approval.
    Approve(String),
    /// Correct its entry.
    CheckConfiguration,
    /// Check the server lists.
    ShowConfiguration,
    /// Run the doctor on the server.
    Diagnose(String),
    /// Use the server that replaces it, or disable that one.
    UseInstead {
        /// The other server.
        by: String,
        /// Whether the other server can be disabled by a command.
        is_editable: bool,
    },
    /// Rename one of two servers.
    Rename {
        /// The other server.
        by: String,
        /// A free name.
        instead: String,
        /// The place of the entry.
        entry: String,
    },
}

impl ServerState {
    /// One word for tables and scripts.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Disabled { .. } => "disabled",
            Self::Lazy { .. } => "lazy",
            Self::Pending { .. } => "pending",
            Self::Connected => "connected",
            Self::Idle => "idle",
            Self::Refused(Refusal::Name { .. } | Refusal::Unusable(ConnectorError::Itself(_))) => {
                "refused"
            }
            Self::Failed { .. } | Self::Refused(Refusal::Unusable(_)) => "failed",
            Self::NeedsAuth { .. } => "needs-auth",
            Self::Refused(Refusal::Invalid(_)) => "invalid",
            Self::Refused(Refusal::Untrusted { .. }) => "untrusted",
            Self::Refused(Refusal::Blocked { .. }) => "blocked",
            Self::Hidden { .. } => "shadowed",
        }
    }

    /// The reason for the state, in one sanitized line; `None` if it is connected.
    pub fn reason(&self) -> Option<String> {
        let reason = match self {
            Self::Connected => return None,
            Self::Disabled {
                by: DisabledBy::Entry,
            } => "disabled in its entry".to_owned(),
            Self::Disabled {
                by: DisabledBy::Session,
            } => "disabled for this session".to_owned(),
            Self::Lazy {
                until: StartsOn::FirstUse,
            } => "connects on first use".to_owned(),
            Self::Lazy {
                until: StartsOn::Request,
            } => "not started; connects on first use".to_owned(),
            Self::Idle => "stopped while idle; connects on next use".to_owned(),
            Self::Pending {
                failure: Some(failure),
                ..
            } => format!("reconnecting: {}", failure.reason()),
            Self::Pending { failure: None, .. } => "still starting".to_owned(),
            Self::Failed { failure } => failure.reason(),
            Self::NeedsAuth { .. } => "it requires a login".to_owned(),
            Self::Refused(refusal) => visible(&refusal.to_string()).into_owned(),
            Self::Hidden { by, place, .. } => visible(&format!(
                "shadowed by `{by}` ({place}), which points to the same endpoint"
            ))
            .into_owned(),
        };
        Some(reason)
    }

    /// The action a user can take; `None` if none is needed.
    pub fn remedy(&self, name: &ServerName) -> Option<Remedy> {
        let name = || name.as_str().to_owned();
        Some(match self {
            Self::Connected | Self::Idle | Self::Lazy { .. } | Self::Pending { .. } => return None,
            Self::Disabled { .. } => Remedy::Enable(name()),
            Self::Failed { .. } | Self::Refused(Refusal::Unusable(_)) => Remedy::Diagnose(name()),
            Self::NeedsAuth { .. } => Remedy::Login(name()),
            Self::Refused(Refusal::Invalid(_)) => Remedy::CheckConfiguration,
            Self::Refused(Refusal::Untrusted { subject, .. }) => Remedy::Approve(subject.clone()),
            Self::Refused(Refusal::Blocked { .. }) => Remedy::ShowConfiguration,
            Self::Refused(Refusal::Name {
                by, instead, entry, ..
            }) => Remedy::Rename {
                by: by.clone(),
                instead: instead.clone(),
                entry: entry.clone(),
            },
            Self::Hidden {
                by, is_editable, ..
            } => Remedy::UseInstead {
                by: by.clone(),
                is_editable: *is_editable,
            },
        })
    }

    /// The failure of the last attempt or connection, if any.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure } => Some(failure),
            Self::Pending { failure, .. } | Self::NeedsAuth { failure } => failure.as_deref(),
            _ => None,
        }
    }

    /// Whether the server is connected.
    pub const fn is_connected(&self) -> bool {
        matches!(self, Self::Connected)
    }

    /// Whether the host has not been asked to start the server.
    pub const fn is_not_started(&self) -> bool {
        matches!(
            self,
            Self::Lazy {
                until: StartsOn::Request
            }
        )
    }

    /// Whether the server connects on its next use.
    pub const fn waits_for_use(&self) -> bool {
        matches!(self, Self::Lazy { .. } | Self::Idle)
    }

    /// Whether no attempt to connect is running or scheduled.
    pub const fn is_settled(&self) -> bool {
        !matches!(self, Self::Pending { .. })
    }

    /// Whether the configuration prevents the server from starting.
    pub const fn is_withheld(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::Hidden { .. }
                | Self::Disabled {
                    by: DisabledBy::Entry
                }
        )
    }

    /// The state of a server that its configuration prevents from starting; `None` if it can start.
    pub fn of_configured(server: &resolve::Server) -> Option<Self> {
        use resolve::Status;
        Some(match &server.status {
            Status::Ready => {
                let own = own_gateway(server.effective())?;
                Self::Refused(Refusal::Unusable(ConnectorError::Itself(own.name())))
            }
            Status::Disabled => Self::Disabled {
                by: DisabledBy::Entry,
            },
            Status::Faulty(reasons) => Self::Refused(Refusal::Invalid(reasons.clone())),
            Status::Untrusted(question) => Self::Refused(Refusal::Untrusted {
                reason: question.reason(),
                subject: question.subject.to_string(),
            }),
            Status::Blocked { reason, .. } => Self::Refused(Refusal::Blocked {
                reason: reason.clone(),
            }),
            Status::Shadowed { by, origin } => Self::Hidden {
                by: by.clone(),
                place: format!("{} scope, {origin}", origin.scope()),
                is_editable: matches!(origin.scope(), Scope::Local | Scope::Project | Scope::User),
            },
            Status::Refused {
                by,
                origin,
                instead,
            } => Self::Refused(Refusal::Name {
                by: by.clone(),
                place: format!("{} scope, {origin}", origin.scope()),
                instead: instead.clone(),
                entry: server.origin.to_string(),
            }),
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reasons) => formatter.write_str(&reasons.join("; ")),
            Self::Unusable(error) => error.fmt(formatter),
            Self::Untrusted { reason, .. } | Self::Blocked { reason } => {
                formatter.write_str(reason)
            }
            Self::Name { by, place, .. } => {
                write!(formatter, "its name can be mistaken for `{by}` ({place})")
            }
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enable(name) => write!(formatter, "`switchboard mcp enable {}`", visible(name)),
            Self::Login(name) => write!(formatter, "`switchboard mcp login {}`", visible(name)),
            Self::Approve(subject) => {
                write!(
                    formatter,
                    "`switchboard trust approve {}`",
                    visible(subject)
                )
            }
            Self::CheckConfiguration => formatter.write_str("`switchboard config check`"),
            Self::ShowConfiguration => formatter.write_str("`switchboard config show`"),
            Self::Diagnose(name) => write!(formatter, "see `switchboard doctor {}`", visible(name)),
            Self::UseInstead { by, is_editable } => {
                let by = visible(by);
                write!(formatter, "use `{by}`, which is the same server")?;
                if *is_editable {
                    write!(
                        formatter,
                        "; `switchboard mcp disable {by}` brings this one back"
                    )?;
                }
                Ok(())
            }
            Self::Rename { by, instead, entry } => {
                let (by, instead, entry) = (visible(by), visible(instead), visible(entry));
                write!(
                    formatter,
                    "rename it, for example to `{instead}`, or rename or disable `{by}`; its entry is at {entry}"
                )
            }
        }
    }
}

/// The status of a server.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name.
    pub name: ServerName,
    /// Its transport; `None` if its entry does not specify one.
    pub transport: Option<Transport>,
    /// Its state, with the reason.
    pub state: ServerState,
    /// When it entered the state.
    pub since: SystemTime,
    /// Whether start-up waits for it.
    pub required: bool,
    /// The negotiated protocol revision, while connected.
    pub revision: Option<Revision>,
    /// The number of tools it offers.
    pub tools: usize,
    /// The tools it lists, counted by whether they are offered.
    pub count: ToolCount,
    /// Automatic reconnects so far.
    pub restarts: u32,
    /// The latency of its last response to a probe or list request.
    pub latency: Option<Duration>,
    /// The time from start until its tools were listed.
    pub startup: Option<Duration>,
    /// The PID of its process.
    pub process: Option<u32>,
}

impl ServerStatus {
    /// Whether it is being connected and may be ready in a moment. A server that has used up its deadline once is
    /// retried in the background and does not count.
    pub(crate) fn is_coming_up(&self) -> bool {
        match &self.state {
            ServerState::Pending { failure, .. } => {
                let cause = failure.as_ref().map(|failure| failure.cause);
                cause != Some(Cause::Timeout)
            }
            _ => false,
        }
    }

    /// The state in one word.
    pub const fn word(&self) -> &'static str {
        self.state.word()
    }

    /// The reason for its state, in one sanitized line; `None` if it is connected.
    pub fn reason(&self) -> Option<String> {
        self.state.reason()
    }

    /// The action a user can take about its state.
    pub fn remedy(&self) -> Option<Remedy> {
        self.state.remedy(&self.name)
    }
}

/// The reason that the tools of a configured and enabled server are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// The server.
    pub name: String,
    /// Its state in one word, as in tables.
    pub state: &'static str,
    /// The reason in one line, sanitized for terminals and models.
    pub reason: String,
    /// The last lines of its stderr, oldest first, sanitized.
    pub stderr: Vec<String>,
}

/// Lines of stderr shown with a reason.
const STDERR_TAIL: usize = 10;

impl ServerStatus {
    /// The reason its tools are missing. `None` for a server whose tools are offered or whose absence is intended:
    /// connected, idle, disabled, not asked to start, or replaced by another one.
    pub fn absence(&self) -> Option<Absence> {
        let is_missed = match &self.state {
            ServerState::Connected
            | ServerState::Idle
            | ServerState::Disabled { .. }
            | ServerState::Hidden { .. }
            | ServerState::Lazy {
                until: StartsOn::Request,
            } => false,
            ServerState::Lazy {
                until: StartsOn::FirstUse,
            }
            | ServerState::Pending { .. }
            | ServerState::Failed { .. }
            | ServerState::NeedsAuth { .. }
            | ServerState::Refused(_) => true,
        };
        if !is_missed {
            return None;
        }
        let failure = self.state.failure().into_iter();
        let stderr = failure.flat_map(|failure| &failure.stderr);
        let tail: Vec<&String> = stderr.rev().take(STDERR_TAIL).collect();
        let line = |line: &&String| visible(&neutralise(line)).into_owned();
        Some(Absence {
            name: self.name.as_str().to_owned(),
            state: self.word(),
            reason: self.reason().unwrap_or_default(),
            stderr: tail.iter().rev().map(line).collect(),
        })
    }
}

/// The reason a server could not be connected, or was lost.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The step that failed; `None` if an established connection was lost.
    pub step: Option<OpenStep>,
    /// The category of the failure.
    pub cause: Cause,
    /// The error message, in one line.
    pub message: String,
    /// The last lines of its stderr, oldest first.
    pub stderr: Vec<String>,
}

/// The category of a failure, as far as the remedy depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The transport failed.
    Transport(TransportErrorKind),
    /// The process exited.
    Exited,
    /// The connection was closed.
    Lost,
    /// The deadline expired.
    Timeout,
    /// It requires a login.
    Unauthorized,
    /// It rejected the credentials of its entry, which a login cannot replace.
    TokenRejected,
    /// It is overloaded or down behind a proxy.
    Unavailable,
    /// It does not speak the protocol, or shares no revision with us.
    Protocol,
    /// It answered with an error.
    Rejected,
    /// Its configuration cannot be used.
    Configuration,
    /// Its name can be confused with another server's.
    Name,
}

impl Failure {
    /// A failure with no known details.
    pub(crate) fn unexplained() -> Self {
        Self {
            step: None,
            cause: Cause::Lost,
            message: "it cannot be connected".to_owned(),
            stderr: Vec::new(),
        }
    }

    /// The failure in one sanitized line, followed by the last line of stderr if the process exited.
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

    /// Whether a retry may succeed a moment later: connection refused, no response in time, an overloaded server, a
    /// failed DNS lookup. A program that is missing or exits does so again; one that was not ready in time may have
    /// been slow for another reason, such as a busy machine.
    pub(crate) fn may_pass(&self, transport: Transport) -> bool {
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

    /// The first line of the message, with the step.
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

/// Whether an HTTP status means that the server is temporarily unable to answer.
const fn is_unavailable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}
