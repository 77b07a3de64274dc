//! The one error of the bindings, which each language turns into its own exception.

use std::fmt;
use std::ops::Deref;

use switchboard::{
    CallError, ContentError, Error, ErrorKind, RequestError, ServerError, ServerName,
};
use switchboard_agent::SessionError;
use switchboard_agent::provider::SettingsError;

/// Why an operation has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Box<Details>);

/// The parts of a [`Failure`], which dereferences to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The kind of failure, one of [`CODES`].
    pub code: &'static str,
    /// What happened, in one sentence without a full stop.
    pub message: String,
    /// The server concerned.
    pub server: Option<String>,
    /// The step of connecting that failed: `connecting`, `server/discover`, `initialize`, `tools/list`.
    pub step: Option<&'static str>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The errors behind it, the nearest first.
    pub causes: Vec<String>,
}

/// All codes, each with the meaning that the documentation gives it.
pub const CODES: [(&str, &str); 16] = [
    ("not_found", "no server or tool has that name"),
    ("invalid_server", "the description of a server is invalid"),
    (
        "invalid_configuration",
        "a configuration file or entry cannot be used",
    ),
    (
        "invalid_arguments",
        "the arguments do not match the tool's schema",
    ),
    ("denied", "a rule, a hook or the user denied the call"),
    (
        "needs_login",
        "the server requires a login, or a login failed",
    ),
    (
        "unavailable",
        "the server is disabled, failed, or not connected",
    ),
    ("timed_out", "a deadline expired; the call was cancelled"),
    (
        "connection_lost",
        "the connection was lost; the call may or may not have taken effect",
    ),
    (
        "refused",
        "the server answered with an error, or violated the protocol",
    ),
    (
        "unexpected_result",
        "the result does not have the requested form",
    ),
    ("model", "the model is not configured, or did not answer"),
    ("cancelled", "the program cancelled the operation"),
    ("closed", "the host was closed"),
    (
        "forked",
        "the process was forked after the host was created",
    ),
    ("internal", "a bug in Switchboard"),
];

impl Failure {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            code,
            message: message.into(),
            server: None,
            step: None,
            hint: None,
            causes: Vec::new(),
        }))
    }

    pub(crate) fn internal(message: String) -> Self {
        Self::new("internal", message)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new("cancelled", "the operation was cancelled")
    }

    pub(crate) fn closed() -> Self {
        Self::new("closed", "the host is closed")
    }

    pub(crate) fn forked() -> Self {
        let failure = Self::new(
            "forked",
            "this process was forked after the host was created, so the host's thread does not exist here",
        );
        failure.with_hint("create the host in the child process, or start processes by `spawn`")
    }

    /// Arguments that are not what a function takes.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new("invalid_arguments", message)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    fn with_server(mut self, server: &ServerName) -> Self {
        self.0.server = Some(server.as_str().to_owned());
        self
    }

    fn of_server(mut self, error: &ServerError) -> Self {
        let (server, failure) = match error {
            ServerError::Unknown(server)
            | ServerError::Disabled(server)
            | ServerError::NeedsAuth(server)
            | ServerError::Pending(server)
            | ServerError::Removed(server)
            | ServerError::Withheld { server, .. } => (Some(server), None),
            ServerError::Failed { server, failure } => (Some(server), Some(failure)),
            _ => (None, None),
        };
        self.0.server = server.map(|server| server.as_str().to_owned());
        if let Some(failure) = failure {
            self.0.step = failure.step.map(switchboard::OpenStep::name);
            self.0.causes.push(failure.message.clone());
            if !failure.stderr.is_empty() {
                let lines = failure.stderr.join("\n");
                let cause = format!("the server wrote to its standard error:\n{lines}");
                self.0.causes.push(cause);
            }
        }
        self
    }

    fn of_call(mut self, error: &CallError) -> Self {
        match error {
            CallError::Server(error) => return self.of_server(error),
            CallError::Arguments { tool, .. }
            | CallError::Denied { tool, .. }
            | CallError::Request { tool, .. } => {
                self.0.server = tool
                    .server
                    .as_ref()
                    .map(|server| server.as_str().to_owned());
            }
            _ => {}
        }
        if let CallError::Request { error, .. } = error {
            self.0.causes.push(error.to_string());
        }
        self
    }
}

const fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "not_found",
        ErrorKind::InvalidServer => "invalid_server",
        ErrorKind::InvalidConfiguration => "invalid_configuration",
        ErrorKind::InvalidArguments => "invalid_arguments",
        ErrorKind::Denied => "denied",
        ErrorKind::NeedsLogin => "needs_login",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::ConnectionLost => "connection_lost",
        ErrorKind::Refused => "refused",
        ErrorKind::UnexpectedResult => "unexpected_result",
        _ => "internal",
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut failure = Self::new(code(error.kind()), error.to_string());
        failure.0.hint = error.hint();
        match (error.as_call(), error.as_server()) {
            (Some(call), _) => failure.of_call(call),
            (None, Some(server)) => failure.of_server(server),
            (None, None) => failure,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Error::from(error).into()
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Error::from(error).into()
    }
}

impl From<ContentError> for Failure {
    fn from(error: ContentError) -> Self {
        let message = error.to_string();
        match error {
            ContentError::Server(error) => error.into(),
            ContentError::Request { server, error, .. } => {
                let code = match &error {
                    RequestError::Idle(_) | RequestError::Expired(_) => "timed_out",
                    RequestError::Lost(_) | RequestError::NotSent(_) => "connection_lost",
                    _ => "refused",
                };
                let mut failure = Self::new(code, message).with_server(&server);
                failure.0.causes.push(error.to_string());
                failure
            }
            ContentError::SetAside { server, .. } => {
                Self::new("denied", message).with_server(&server)
            }
            _ => Self::new("refused", message),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let mut failure = Self::new("model", error.to_string());
        failure.0.hint = error.hint().map(Into::into);
        failure
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Server(error) => error.into(),
            SessionError::Provider(error) => Self::new("model", error.to_string()),
            SessionError::Empty => Self::invalid_arguments(error.to_string()),
            error => Self::new("invalid_configuration", error.to_string()),
        }
    }
}

impl Deref for Failure {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
