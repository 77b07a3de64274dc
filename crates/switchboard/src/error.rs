//! The error of the embedding API, with its kind and a hint.

use crate::call::CallError;
use crate::connectors::ConnectorError;
use crate::host::ServerError;
use crate::names::ServerName;
use crate::peer::RequestError;

/// The error of creating a host, adding a server or calling a tool.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct Error(Source);

#[derive(Debug, Clone, thiserror::Error)]
enum Source {
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Entry(#[from] ConnectorError),
    #[error("cannot load the configuration: {0}")]
    Configuration(String),
    #[error("cannot encode the arguments as a JSON object: {0}")]
    Arguments(String),
    #[error("the login failed: {0}")]
    Login(String),
    #[error("the server \"{0}\" supports no login")]
    NoLogin(ServerName),
    #[error("the result has no structured content")]
    NotStructured,
    #[error("the structured content does not match the type: {0}")]
    Mismatch(String),
}

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No server or tool has that name.
    NotFound,
    /// The server's description is invalid.
    InvalidServer,
    /// The folders or files of the configuration cannot be used.
    InvalidConfiguration,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
    /// The permission gate denied the call.
    Denied,
    /// The server requires a login.
    NeedsLogin,
    /// The server is disabled, failed, or not connected yet.
    Unavailable,
    /// A deadline expired; the call was cancelled.
    TimedOut,
    /// The connection was lost during the call. It may or may not have taken effect.
    ConnectionLost,
    /// The server returned an error or violated the protocol.
    Refused,
    /// The result does not have the requested form.
    UnexpectedResult,
}

impl Error {
    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Source::Call(error) => of_call(error),
            Source::Server(error) => of_server(error),
            Source::Entry(_) => ErrorKind::InvalidServer,
            Source::Configuration(_) => ErrorKind::InvalidConfiguration,
            Source::Login(_) => ErrorKind::NeedsLogin,
            Source::NoLogin(_) => ErrorKind::Refused,
            Source::Arguments(_) => ErrorKind::InvalidArguments,
            Source::NotStructured | Source::Mismatch(_) => ErrorKind::UnexpectedResult,
        }
    }

    /// A suggested fix, for people and models.
    pub fn hint(&self) -> Option<String> {
        match &self.0 {
            Source::Call(error) => error.hint(),
            Source::Server(error) => CallError::Server(error.clone()).hint(),
            Source::Arguments(_) => Some("pass a JSON object, such as json!({…})".to_owned()),
            Source::NotStructured => Some("use `text()` or `content()`".to_owned()),
            Source::NoLogin(_) => {
                Some("only remote servers without credentials of their own do".to_owned())
            }
            Source::Entry(_)
            | Source::Configuration(_)
            | Source::Login(_)
            | Source::Mismatch(_) => None,
        }
    }

    /// The failed call, if it was one.
    #[doc(hidden)]
    pub fn as_call(&self) -> Option<&CallError> {
        match &self.0 {
            Source::Call(error) => Some(error),
            _ => None,
        }
    }

    /// The unusable server, if that is the reason.
    #[doc(hidden)]
    pub fn as_server(&self) -> Option<&ServerError> {
        match &self.0 {
            Source::Server(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn configuration(error: impl std::fmt::Display) -> Self {
        Self(Source::Configuration(error.to_string()))
    }

    pub(crate) fn login(error: impl std::fmt::Display) -> Self {
        Self(Source::Login(error.to_string()))
    }

    pub(crate) fn no_login(server: &ServerName) -> Self {
        Self(Source::NoLogin(server.clone()))
    }

    pub(crate) fn arguments(error: impl std::fmt::Display) -> Self {
        Self(Source::Arguments(error.to_string()))
    }

    pub(crate) const fn not_structured() -> Self {
        Self(Source::NotStructured)
    }

    pub(crate) fn mismatch(error: &serde_json::Error) -> Self {
        Self(Source::Mismatch(error.to_string()))
    }
}

fn of_call(error: &CallError) -> ErrorKind {
    match error {
        CallError::Lookup(_) => ErrorKind::NotFound,
        CallError::Server(error) => of_server(error),
        CallError::Arguments { .. } => ErrorKind::InvalidArguments,
        CallError::Denied { .. } | CallError::Profile { .. } => ErrorKind::Denied,
        CallError::Request { error, .. } => match error {
            RequestError::Idle(_) | RequestError::Expired(_) => ErrorKind::TimedOut,
            RequestError::Lost(_) | RequestError::NotSent(_) => ErrorKind::ConnectionLost,
            RequestError::Overloaded { .. } | RequestError::Paused { .. } => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        },
    }
}

const fn of_server(error: &ServerError) -> ErrorKind {
    match error {
        ServerError::Unknown(_) | ServerError::Removed(_) => ErrorKind::NotFound,
        ServerError::NeedsAuth(_) => ErrorKind::NeedsLogin,
        _ => ErrorKind::Unavailable,
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self(Source::Call(Box::new(error)))
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self(Source::Server(error))
    }
}

impl From<ConnectorError> for Error {
    fn from(error: ConnectorError) -> Self {
        Self(Source::Entry(error))
    }
}
