//! Failures of a call, with exit codes and hints.

use std::time::Duration;

use switchboard::catalog::{LookupError, SetAsideReason};
use switchboard::{ArgumentsError, CallError, RequestError, ServerError};
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::exit::Exit;
use crate::session::CommandHost;
use crate::startup::counted;

/// The failure of a call without a result.
pub(super) fn of(error: &CallError, session: &CommandHost<'_>) -> Failure {
    let hint = error.hint();
    let failure = match error {
        CallError::Lookup(error) => return unknown(error, session),
        CallError::Server(error) => return server(error, session),
        CallError::Arguments { tool, error } => {
            return of_arguments(&tool.to_string(), error);
        }
        CallError::Denied { tool, reason } => {
            let tool = visible(&tool.to_string()).into_owned();
            return Failure::new(Exit::Denied, format!("permission denied for tool {tool}"))
                .because(visible(reason))
                .hint(explain_hint(&tool));
        }
        CallError::Request { error: request, .. } => Failure::new(exit(request), safe(error)),
        _ => Failure::failed(safe(error)),
    };
    match hint {
        Some(hint) => failure.hint(visible(&hint)),
        None => failure,
    }
}

/// The failure for arguments that the schema refuses.
pub(super) fn of_arguments(tool: &str, error: &ArgumentsError) -> Failure {
    let tool = visible(tool);
    let mut failure = Failure::usage(format!("the arguments do not match the schema of {tool}"));
    for problem in &error.problems {
        failure = failure.because(visible(&problem.to_string()));
    }
    if error.untold > 0 {
        let more = counted(error.untold, "more problem");
        failure = failure.because(format!("there are {more}"));
    }
    failure.hint(format!(
        "`switchboard tools {tool}` describes the arguments"
    ))
}

/// The hint for a denied call. The name is sanitized.
pub(super) fn explain_hint(tool: &str) -> String {
    format!("`switchboard permissions explain {tool}` shows the rules that apply")
}

/// The failure for a name that matches no tool.
pub(super) fn unknown(error: &LookupError, session: &CommandHost<'_>) -> Failure {
    let exit = match error {
        LookupError::SetAside {
            reason:
                SetAsideReason::Disabled
                | SetAsideReason::NotEnabled
                | SetAsideReason::Hidden
                | SetAsideReason::Changed { .. }
                | SetAsideReason::Renamed { .. }
                | SetAsideReason::NotPinned { .. }
                | SetAsideReason::PinsUnreadable { .. },
            ..
        } => Exit::Denied,
        LookupError::Ambiguous { .. } => Exit::Usage,
        _ => Exit::Failed,
    };
    let mut failure = Failure::new(exit, safe(error));
    let statuses = session.host.statuses();
    let missing = statuses
        .iter()
        .filter(|status| !status.state.is_connected())
        .count();
    let asked_all = !statuses.iter().any(|status| status.state.is_not_started());
    if missing > 0 && asked_all && matches!(error, LookupError::Unknown { .. }) {
        let servers = counted(missing, "server");
        failure = failure.because(format!("{servers} could not be queried"));
    }
    match error.hint() {
        Some(hint) => failure.hint(visible(&hint)),
        None => failure.hint("`switchboard tools --all` lists all tools"),
    }
}

/// The failure of a call that exceeded its timeout.
pub(super) fn timed_out(tool: &str, limit: Duration, cancellation: Result<(), String>) -> Failure {
    let message = format!(
        "the call to {} timed out after {} s",
        visible(tool),
        limit.as_secs_f64()
    );
    let cancelled = match cancellation {
        Ok(()) => "cancelled on the server".to_owned(),
        Err(reason) => format!(
            "cancellation could not be sent, so the call may still be running: {}",
            visible(&reason)
        ),
    };
    Failure::new(Exit::TimedOut, message)
        .because(cancelled)
        .hint("request less, or raise the limit with --timeout")
}

fn server(error: &ServerError, session: &CommandHost<'_>) -> Failure {
    let name = match error {
        ServerError::Unknown(name)
        | ServerError::Disabled(name)
        | ServerError::NeedsAuth(name)
        | ServerError::Pending(name)
        | ServerError::Withheld { server: name, .. }
        | ServerError::Failed { server: name, .. } => Some(name.clone()),
        _ => None,
    };
    let known = name.and_then(|name| session.need(name.as_str()).err());
    known.unwrap_or_else(|| Failure::new(Exit::Unreachable, safe(error)))
}

fn exit(error: &RequestError) -> Exit {
    match error {
        RequestError::Rejected(_) => Exit::ToolError,
        RequestError::Refused(refusal) => match refusal.status {
            401 => Exit::NeedsLogin,
            403 => Exit::Denied,
            _ => Exit::Unreachable,
        },
        RequestError::NotSent(_) | RequestError::Lost(_) => Exit::Unreachable,
        RequestError::Idle(_) | RequestError::Expired(_) => Exit::TimedOut,
        _ => Exit::Failed,
    }
}

fn safe(error: &impl std::fmt::Display) -> String {
    visible(&error.to_string()).into_owned()
}
