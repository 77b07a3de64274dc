//! It runs, and does not speak as it should.

use switchboard_config::entry::Transport;
use switchboard_protocol::Revision;
use switchboard_protocol::negotiate::{Failure, NoAnswer};

use super::{Failed, Symptoms, error, quoted};
use crate::doctor::steps::Step;
use crate::doctor::{Finding, habits};
use crate::peer::{OpenErrorKind, RequestError};
use crate::transport::Closed;

/// It writes text where messages belong, and never answered.
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
        "see whether it is an MCP server at all, and whether it wants an argument such as `mcp`, `serve` or `--stdio`; \
         a server that listens on a port wants a `url` instead of a `command`",
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
            "it ran to its end like an ordinary program: see whether it wants an argument such as `mcp`, `serve` or \
             `--stdio`, and whether it is an MCP server at all"
        }
        126 => "a program that it starts cannot be run: chmod +x, and see its first line (#!…)",
        127 => "a program that it starts was not found: install it, or write its full path",
        _ => {
            "run the command by hand to see more; servers get a small environment here, so name the variables it needs \
             in `env_vars`, or set them in `env`"
        }
    };
    Some(error(
        "ended-at-once",
        format!("its process ended with status {status} before it answered"),
        why,
        remedy,
    ))
}

pub(super) fn ended_by_signal(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Closed(Closed::Signalled(signal))) = symptoms.kind() else {
        return None;
    };
    let remedy = match signal {
        9 => "something ended it by force: the system when memory is short, or another program",
        4 | 6 | 7 | 8 | 11 => {
            "it crashed: update it, see whether it is built for this machine, or tell its authors"
        }
        _ => "something told it to end: see who else looks after this process",
    };
    let last = symptoms.stderr.last();
    Some(error(
        "ended-by-signal",
        format!("its process was ended by signal {signal}"),
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
            return Some(silent(symptoms, "no answer came in time".to_owned()));
        }
        Failed::Open(_) => return None,
    };
    let why = format!(
        "it was at the step {} for the rest of {}",
        symptoms.step.name(),
        habits::seconds(limit)
    );
    Some(silent(symptoms, why))
}

fn silent(symptoms: &Symptoms<'_>, why: String) -> Finding {
    let what = format!("it timed out at {}", symptoms.step.name());
    let remedy = match (symptoms.step, symptoms.transport) {
        (Step::Spawn | Step::Respawn | Step::Discover | Step::Initialize, Transport::Stdio) => {
            "a first start may have to fetch packages: run the command once by hand, or raise startup_timeout_sec; if it \
             stays silent there too, it is not an MCP server, or waits for input"
        }
        (Step::Connect | Step::ConnectLegacy, _) => {
            "a firewall may swallow what is sent there; if the server is only slow, raise startup_timeout_sec"
        }
        (Step::Discover | Step::Initialize, _) => {
            "something listens there and does not answer: compare host and port in `url`; if the server is only slow, \
             raise startup_timeout_sec"
        }
        _ => {
            "it completes the handshake and does not list its tools: look into its log; if it is only slow, raise startup_timeout_sec"
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
        "its message says what it needs: often a token, a header or a setting in its entry",
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
            "see whether this is an MCP server: compare `url` or `command` with its documentation; if it is, update it",
        )
    })
}

pub(super) fn too_large(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let Some(OpenErrorKind::Request(RequestError::TooLarge(limit))) = symptoms.kind() else {
        return None;
    };
    Some(error(
        "answer-too-large",
        "its answer is too large",
        format!("it has more than {limit} bytes"),
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
        "its message says what it needs: often a token or a setting in its entry; its log may say more",
    ))
}

pub(super) fn closed(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let is_closed = matches!(
        symptoms.kind(),
        Some(OpenErrorKind::Closed(_) | OpenErrorKind::Request(RequestError::Lost(_)))
    );
    is_closed.then(|| {
        let remedy = if symptoms.transport == Transport::Stdio {
            "run the command by hand to see more, and look at its standard error"
        } else {
            "try again; if it lasts, look into the server's log, and whether a proxy between ends long connections"
        };
        error(
            "connection-lost",
            format!("it ended the connection at {}", symptoms.step.name()),
            symptoms.said(),
            remedy,
        )
    })
}

/// No cause is known: what was noticed is all there is to say.
pub(super) fn anything_else(symptoms: &Symptoms<'_>) -> Finding {
    error(
        "failed",
        format!("it failed at {}", symptoms.step.name()),
        symptoms.said(),
        "run again with --verbose, and look into the server's own log",
    )
}
