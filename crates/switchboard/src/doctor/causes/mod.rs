//! Diagnoses failures: one function per cause, tried in order, the most specific first.
//!
//! Pure functions from symptoms to a [`Finding`]. Nothing here connects to a server; the only I/O is the search for
//! programs in common locations outside the `PATH`.
//!
//! | module | causes |
//! |---|---|
//! | `program` | the process cannot be started |
//! | `network` | the URL is unreachable, or not an MCP endpoint |
//! | `npx` | the installed copy of its package is broken |
//! | `stderr` | messages in the server's log |
//! | `conversation` | the server runs, but violates the protocol |

mod conversation;
mod network;
mod npx;
mod program;
mod stderr;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use switchboard_config::entry::Transport;
use switchboard_config::text::visible;
use switchboard_protocol::negotiate::Failure;

use super::npx::Installed;
use super::steps::Step;
use super::variables::Variables;
use super::{Finding, Severity};
use crate::catalog::text::cut;
use crate::connectors::ConnectorError;
use crate::peer::{OpenErrorKind, RequestError};
use crate::transport::{Destination, HttpRefusal, TransportError, TransportErrorKind};

/// The maximum length of a quotation in a finding, in characters.
const QUOTED: usize = 300;

/// The symptoms of a failure.
#[derive(Debug)]
pub(super) struct Symptoms<'a> {
    pub(super) server: &'a str,
    pub(super) step: Step,
    pub(super) failed: &'a Failed,
    /// The transport it is configured with.
    pub(super) transport: Transport,
    pub(super) destination: &'a Destination,
    /// The last lines of its stderr.
    pub(super) stderr: &'a [String],
    /// Output that is not a protocol message.
    pub(super) noise: &'a [String],
    pub(super) home: Option<&'a Path>,
    /// Whether it runs in a sandbox.
    pub(super) is_confined: bool,
    /// The installed copy of the package that npx runs.
    pub(super) installed: Option<&'a Installed>,
    /// Variables of the user's environment that it does not inherit.
    pub(super) variables: &'a Variables,
}

pub(super) use npx::BROKEN as NPX_CACHE_BROKEN;

/// The failure of a step.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The connection or the list of tools failed.
    #[error("{0}")]
    Open(OpenErrorKind),
    /// The start-up deadline expired.
    #[error("not ready within {} s", .0.as_secs_f64())]
    Deadline(Duration),
}

impl Failed {
    /// Whether no connection to the address could be opened.
    pub(super) fn is_connecting(&self) -> bool {
        use TransportErrorKind::{Dns, Refused, Timeout, Tls, Unreachable};
        let Self::Open(
            OpenErrorKind::Transport(error) | OpenErrorKind::Request(RequestError::NotSent(error)),
        ) = self
        else {
            return false;
        };
        matches!(error.kind, Dns | Refused | Timeout | Tls | Unreachable)
    }
}

type Cause = fn(&Symptoms<'_>) -> Option<Finding>;

/// Tried in order; the first finding wins.
const CAUSES: &[Cause] = &[
    program::command_with_arguments,
    program::not_found,
    program::not_executable,
    program::no_folder,
    program::no_sandbox,
    program::not_started,
    network::login_needed,
    network::forbidden,
    network::proxy_login,
    network::redirected,
    network::web_page,
    network::wrong_path,
    network::too_many_requests,
    network::unavailable,
    network::server_fault,
    network::refused_status,
    network::unknown_name,
    network::nobody_listens,
    network::unreachable,
    network::certificate,
    network::no_answer_in_time,
    network::not_http,
    network::invalid,
    stderr::refused_by_sandbox,
    npx::broken_cache,
    stderr::explain,
    npx::incomplete_cache,
    conversation::prints_text_instead,
    conversation::ended_at_once,
    conversation::ended_by_signal,
    conversation::timed_out,
    conversation::no_common_version,
    conversation::refuses_initialize,
    conversation::unreadable,
    conversation::too_large,
    conversation::rejected,
    conversation::closed,
];

/// Diagnoses a failure. Always returns a finding.
pub(super) fn explain(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let explained = CAUSES.iter().find_map(|cause| cause(symptoms));
    vec![explained.unwrap_or_else(|| conversation::anything_else(symptoms))]
}

/// Diagnoses an entry that cannot be converted to a server.
pub(super) fn connector(error: &ConnectorError) -> Finding {
    let (code, remedy) = match error {
        ConnectorError::NoEndpoint => (
            "no-endpoint",
            "set a command (a program to start) or a url (an address to connect to)".to_owned(),
        ),
        ConnectorError::Itself(_) => (
            "own-program",
            "remove the entry: other programs start `switchboard connect`, Switchboard itself must not".to_owned(),
        ),
        ConnectorError::MissingVariable(name) => {
            let name = visible(name);
            (
                "variable-not-set",
                format!(
                    "set it before you start Switchboard: export {name}=…; a program started from a desktop does not read your \
                     shell's files"
                ),
            )
        }
        ConnectorError::NoSuchService => (
            "no-such-service",
            "transport = \"sdk\" is for servers that are part of this program: name it `workspace`, or give the entry \
             a command or a url"
                .to_owned(),
        ),
        ConnectorError::NoSandbox(_) => (
            "no-sandbox",
            "remove `sandbox` from its entry, or keep the server disabled".to_owned(),
        ),
        ConnectorError::BadAuthorization(..) => (
            "oauth-invalid",
            "correct the `oauth` table of its entry".to_owned(),
        ),
        ConnectorError::CaFile { .. } => (
            "ca-file",
            "name a file with certificates in PEM form in `ca_file`: the server's own, or that of the authority that \
             signed it"
                .to_owned(),
        ),
        ConnectorError::Transport(_) => ("entry-invalid", "correct its url and headers".to_owned()),
    };
    let why = "the server was not started";
    finding(code, Severity::Error, error.to_string(), why, remedy)
}

/// Diagnoses a failure to list prompts or resources.
pub(super) fn extra_list(step: Step, error: &RequestError) -> Finding {
    finding(
        "list-failed",
        Severity::Warning,
        format!("{} fails, although the server declares it", step.name()),
        quoted(&error.to_string()),
        "its tools still work; report it to the server's authors",
    )
}

/// Diagnoses a failed probe after successful lists.
pub(super) fn probe(error: &RequestError) -> Finding {
    finding(
        "probe-failed",
        Severity::Error,
        "it does not answer health checks",
        quoted(&error.to_string()),
        "a server that does not answer health checks is reconnected as if it were dead: update it, or report it to its authors",
    )
}

pub(super) fn finding(
    code: &'static str,
    severity: Severity,
    what: impl Into<String>,
    why: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        code,
        severity,
        what: what.into(),
        why: why.into(),
        remedy: remedy.into(),
    }
}

/// Builds a finding that explains a failure.
fn error(
    code: &'static str,
    what: impl Into<String>,
    why: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    finding(code, Severity::Error, what, why, remedy)
}

/// Quotes server output: on one line, sanitized, bounded.
pub(super) fn quoted(text: &str) -> String {
    cut(visible(text.trim()), QUOTED).into_owned()
}

impl Symptoms<'_> {
    /// Whether the server's program was started.
    pub(super) fn has_run(&self) -> bool {
        !matches!(self.step, Step::Spawn) && self.transport_error().is_none()
    }

    fn kind(&self) -> Option<&OpenErrorKind> {
        match self.failed {
            Failed::Open(kind) => Some(kind),
            Failed::Deadline(_) => None,
        }
    }

    /// The error of the transport, if it is one.
    fn transport_error(&self) -> Option<&TransportError> {
        match self.kind()? {
            OpenErrorKind::Transport(error)
            | OpenErrorKind::Request(RequestError::NotSent(error)) => Some(error),
            _ => None,
        }
    }

    /// The error of the transport, if it is of that kind.
    fn transport_error_of(&self, kind: TransportErrorKind) -> Option<&TransportError> {
        self.transport_error().filter(|error| error.kind == kind)
    }

    fn refusal(&self) -> Option<&HttpRefusal> {
        match self.kind()? {
            OpenErrorKind::Unauthorized(refusal)
            | OpenErrorKind::Unavailable(refusal)
            | OpenErrorKind::Request(RequestError::Refused(refusal)) => Some(refusal),
            _ => self.transport_error()?.refusal.as_deref(),
        }
    }

    /// The HTTP status of the refusal.
    pub(super) fn status(&self) -> Option<u16> {
        match self.kind()? {
            OpenErrorKind::Negotiation(Failure::NotMcp { status }) => Some(*status),
            _ => self.refusal().map(|refusal| refusal.status),
        }
    }

    /// The program, for stdio servers.
    fn program(&self) -> Option<&str> {
        match self.destination {
            Destination::Program(program) => Some(program),
            _ => None,
        }
    }

    /// The error message, quoted.
    fn said(&self) -> String {
        quoted(&self.failed.to_string())
    }
}
