//! Failures of a chat, with exit codes and hints.

use switchboard::ServerError;
use switchboard_agent::SessionError;
use switchboard_config::text::visible;

use crate::agent;
use crate::error::Failure;
use crate::exit::Exit;
use crate::servers::doctor_hint;

/// The failure of a turn or a session.
pub(super) fn of(error: &SessionError) -> Failure {
    match error {
        SessionError::Provider(error) => agent::unanswered(error),
        SessionError::Server(error) => server(error),
        SessionError::Unknown(_) => {
            Failure::failed(safe(error)).hint("`switchboard chat --list` lists the sessions")
        }
        SessionError::InUse { .. } => {
            Failure::failed(safe(error)).hint("end the other chat, or start a new session")
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

fn server(error: &ServerError) -> Failure {
    let failure = |exit, name: &str| Failure::new(exit, safe(error)).hint(doctor_hint(name));
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
