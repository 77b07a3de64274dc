//! What goes wrong in a conversation, with the exit code that scripts may rely on and what to do about it.

use switchboard::host::ServerError;
use switchboard_agent::provider::{ProviderError, ProviderErrorKind};
use switchboard_agent::session::SessionError;
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::exit::Exit;
use crate::servers::look_closer;

/// The failure of a turn, or of a session.
pub(super) fn of(error: &SessionError) -> Failure {
    match error {
        SessionError::Provider(error) => provider(error),
        SessionError::Server(error) => server(error),
        SessionError::Unknown(_) => Failure::failed(safe(error))
            .hint("`switchboard chat --list` shows the conversations there are"),
        SessionError::InUse(_) => {
            Failure::failed(safe(error)).hint("end the other chat, or begin a new conversation")
        }
        SessionError::Store(store) => {
            let failure = Failure::failed(safe(error));
            match store.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        _ => Failure::failed(safe(error)),
    }
}

/// The failure to get an answer.
pub(super) fn provider(error: &ProviderError) -> Failure {
    use ProviderErrorKind as Kind;
    let (exit, hint) = match error.kind {
        Kind::Unauthorized => (
            Exit::Configuration,
            "check the key: `switchboard chat --help` says which variables there are",
        ),
        Kind::Unreachable => (
            Exit::Failed,
            "check the network, and the address if you have set one",
        ),
        Kind::RateLimited => (
            Exit::Failed,
            "wait a while, or look at the limits of your account",
        ),
        Kind::Unavailable => (Exit::Failed, "try again in a while"),
        Kind::UnknownModel => (Exit::Configuration, "name another one with --model"),
        Kind::TooLong => (
            Exit::Failed,
            "shorten the conversation with /compact, or begin a new one",
        ),
        Kind::TimedOut => (Exit::TimedOut, "try again"),
        _ => (Exit::Failed, "try again, or use another model with --model"),
    };
    Failure::new(exit, "the model gave no answer")
        .because(safe(error))
        .hint(hint)
}

fn server(error: &ServerError) -> Failure {
    let failure = |exit, name: &str| Failure::new(exit, safe(error)).hint(look_closer(name));
    match error {
        ServerError::NeedsAuth(name) => {
            let hint = format!("`switchboard mcp login {}`", visible(name.as_str()));
            Failure::new(Exit::NeedsLogin, safe(error)).hint(hint)
        }
        ServerError::Failed { server, .. } => failure(Exit::Unreachable, server.as_str()),
        ServerError::Unknown(name) | ServerError::Disabled(name) | ServerError::Pending(name) => {
            failure(Exit::Unreachable, name.as_str())
        }
        _ => Failure::new(Exit::Unreachable, safe(error)),
    }
}

fn safe(error: &impl std::fmt::Display) -> String {
    visible(&error.to_string()).into_owned()
}
