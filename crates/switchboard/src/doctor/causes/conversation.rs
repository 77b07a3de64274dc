//! Causes: the server runs, but violates the protocol.

use switchboard_config::entry::Transport;
use switchboard_protocol::Revision;
use switchboard_protocol::negotiate::{Failure, NoAnswer};

use super::{Failed, Symptoms, error, quoted};
use crate::doctor::steps::Step;
use crate::doctor::{Finding, habits};
use crate::peer::{OpenErrorKind, RequestError};
use crate::transport::Closed;

/// It prints text instead of protocol messages, and never responds.
pub(super) fn prints_text_instead(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let first = symptoms.noise.first()?;
    let answered = matches!(symptoms.step, Step::Tools | Step::Prompts | Step::Resources);
    if answered || symptoms.transport != Transport::Stdio {
        return None;
    }
    Some(error(
        "text-instead-of-messages",
        "it prints text to stdout instead of MCP messages",
        format!("the first line is: {}", quoted(first)),
        "check that it is an MCP server, and whether it needs an argument such as `mcp`, `serve` or `--stdio`; \
         a server that listens on a port needs a `url` instead of a `command`",
    ))
}

pub(super) fn ended_at_once(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Closed(Closed::Exited(status))) = symptoms.kind() else {
        return None;
    };
    let why = match symptoms.stderr.last() {
        Some(line) => format!("its last line on stderr: {}", quoted(line)),
        None => "it wrote nothing to stderr".to_owned(),
    };
    let remedy = match status {
        0 => {
            "it ran and exited like an ordinary program: check whether it needs an argument such as `mcp`, `serve` or \
             `--stdio`, and that it is an MCP server"
        }
        126 => "a program that it runs is not executable: chmod +x, and check its first line (#!…)",
        127 => "a program that it runs was not found: install it, or use its full path",
        _ => {
            "run the command by hand to see more; servers inherit only a small environment, so list the variables it needs \
             in `env_vars`, or set them in `env`"
        }
    };
    Some(error(
        "exited-early",
        format!("the process exited with status {status} before it answered"),
        why,
        remedy,
    ))
}

pub(super) fn ended_by_signal(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Closed(Closed::Signalled(signal))) = symptoms.kind() else {
        return None;
    };
    let remedy = match signal {
        9 => "it was killed: by the system when memory ran out, or by another program",
        4 | 6 | 7 | 8 | 11 => {
            "it crashed: update it, check that it is built for this machine, or report it to its authors"
        }
        _ => "another program asked it to exit: check what else manages this process",
    };
    let last = symptoms.stderr.last();
    Some(error(
        "killed-by-signal",
        format!("the process was killed by signal {signal}"),
        last.map_or("it wrote nothing to stderr".to_owned(), |line| {
            format!("its last line on stderr: {}", quoted(line))
        }),
        remedy,
    ))
}

pub(super) fn timed_out(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let limit = match symptoms.failed {
        Failed::Deadline(limit)
        | Failed::Open(OpenErrorKind::Request(
            RequestError::Idle(limit) | RequestError::Expired(limit),
        )) => *limit,
        Failed::Open(OpenErrorKind::Negotiation(Failure::NoAnswer(NoAnswer::Silence))) => {
            return Some(silent(symptoms, "no answer within the timeout".to_owned()));
        }
        Failed::Open(_) => return None,
    };
    let why = format!(
        "{} did not finish within {}",
        symptoms.step.name(),
        habits::seconds(limit)
    );
    Some(silent(symptoms, why))
}

fn silent(symptoms: &Symptoms<'_>, why: String) -> Finding {
    let what = format!("it timed out at {}", symptoms.step.name());
    let remedy = match (symptoms.step, symptoms.transport) {
        (Step::Spawn | Step::Respawn | Step::Discover | Step::Initialize, Transport::Stdio) => {
            "the first start may download packages: run the command once by hand, or raise startup_timeout_sec; if it \
             prints nothing there either, it is not an MCP server, or waits for input"
        }
        (Step::Connect | Step::ConnectLegacy, _) => {
            "a firewall may drop the packets; if the server is just slow, raise startup_timeout_sec"
        }
        (Step::Discover | Step::Initialize, _) => {
            "the port is open but nothing answers: check host and port in `url`; if the server is just slow, \
             raise startup_timeout_sec"
        }
        _ => {
            "it completes the handshake but does not list its tools: check its log; if it is just slow, raise startup_timeout_sec"
        }
    };
    error("timed-out", what, why, remedy)
}

pub(super) fn no_common_version(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Negotiation(
        failure @ (Failure::NoCommonRevision { .. }
        | Failure::HandshakeNeeded(_)
        | Failure::Version { .. }),
    )) = symptoms.kind()
    else {
        return None;
    };
    let spoken: Vec<&str> = Revision::ALL
        .iter()
        .map(|revision| revision.as_str())
        .collect();
    Some(error(
        "no-common-version",
        "no common protocol version",
        quoted(&failure.to_string()),
        format!(
            "update the server, or Switchboard; supported here: {}",
            spoken.join(", ")
        ),
    ))
}

pub(super) fn refuses_initialize(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Negotiation(Failure::Refused(refused))) = symptoms.kind() else {
        return None;
    };
    Some(error(
        "refuses-initialize",
        "it rejects the initialize request",
        quoted(&refused.to_string()),
        "see its message: often a token, a header or a setting is missing from its entry",
    ))
}

pub(super) fn unreadable(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let is_unreadable = matches!(
        symptoms.kind(),
        Some(
            OpenErrorKind::Negotiation(
                Failure::NoAnswer(NoAnswer::Unreadable) | Failure::NoEndpoint
            ) | OpenErrorKind::Request(RequestError::Malformed(_) | RequestError::TooDeep { .. })
                | OpenErrorKind::Circles
        )
    );
    is_unreadable.then(|| {
        error(
            "unreadable",
            "its answers are not valid MCP",
            symptoms.said(),
            "check that this is an MCP server: compare `url` or `command` with its documentation; if it is, update it",
        )
    })
}

pub(super) fn too_large(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Request(RequestError::TooLarge(limit))) = symptoms.kind() else {
        return None;
    };
    Some(error(
        "response-too-large",
        "its response is too large",
        format!("it exceeds {limit} bytes"),
        "raise max_message_bytes, or have the server list fewer tools at a time",
    ))
}

pub(super) fn rejected(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Request(RequestError::Rejected(rejected))) = symptoms.kind() else {
        return None;
    };
    Some(error(
        "list-refused",
        format!("it answers {} with an error", symptoms.step.name()),
        quoted(&rejected.to_string()),
        "see its message and its log: often a token or a setting is missing from its entry",
    ))
}

pub(super) fn closed(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let is_closed = matches!(
        symptoms.kind(),
        Some(OpenErrorKind::Closed(_) | OpenErrorKind::Request(RequestError::Lost(_)))
    );
    is_closed.then(|| {
        let remedy = if symptoms.transport == Transport::Stdio {
            "run the command by hand and check its standard error"
        } else {
            "try again; if it persists, check the server's log, and whether a proxy closes long connections"
        };
        error(
            "connection-lost",
            format!("it closed the connection at {}", symptoms.step.name()),
            symptoms.said(),
            remedy,
        )
    })
}

/// The fallback if no cause is known: reports the symptoms.
pub(super) fn anything_else(symptoms: &Symptoms<'_>) -> Finding {
    error(
        "failed",
        format!("it failed at {}", symptoms.step.name()),
        symptoms.said(),
        "run again with --verbose, and check the server's own log",
    )
}
