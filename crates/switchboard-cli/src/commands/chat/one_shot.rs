//! `chat -p`: answers one prompt and exits.
//!
//! Never prompts the user: the policy decides, by default with no, and denied calls are reported on standard error.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::mpsc;
use std::time::Duration;

use futures_util::StreamExt as _;
use switchboard_agent::{EndReason, Reply, Session as Conversation, SessionEvent};
use switchboard_config::text::visible;
use tokio::time::interval;

use super::call_line::{missing_server, trouble};
use super::turn::Turn;
use super::{attach, failure};
use crate::cli::OutputFormat;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::live::TICK;
use crate::printer::{Printer, paint, style};
use crate::session::CommandHost;

/// Maximum size of standard input, in bytes.
const MAX_INPUT_BYTES: u64 = 10 * 1024 * 1024;
/// Delay before a note that standard input is still open.
const PATIENCE: Duration = Duration::from_secs(3);

/// The prompt of the command line with the piped input appended; `None` without `-p`.
pub(super) fn read(prompt: Option<&str>, context: &Context) -> Result<Option<String>, Failure> {
    let Some(prompt) = prompt else {
        return Ok(None);
    };
    let is_all_piped = prompt == "-";
    let piped = if io::stdin().is_terminal() && !is_all_piped {
        String::new()
    } else {
        read_input(context)?
    };
    let full = if is_all_piped {
        piped
    } else if piped.trim().is_empty() {
        prompt.to_owned()
    } else {
        format!("{prompt}\n\n{piped}")
    };
    if full.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint("pass the prompt after -p"));
    }
    Ok(Some(full))
}

/// Reads piped input. An open pipe is the usual cause of a hanging script, so a long wait is reported.
fn read_input(context: &Context) -> Result<String, Failure> {
    let unreadable =
        |error: io::Error| Failure::failed("cannot read standard input").because(error);
    let (sender, read) = mpsc::channel();
    let thread = std::thread::Builder::new().name("input".to_owned());
    let work = move || {
        let mut bytes = Vec::new();
        let taken = io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes);
        let _ = sender.send(taken.map(|_| bytes));
    };
    thread.spawn(work).map_err(unreadable)?;
    let bytes = if let Ok(bytes) = read.recv_timeout(PATIENCE) {
        bytes
    } else {
        let reported = "waiting for the end of standard input; if there is none, add </dev/null";
        context.printer.note(reported);
        read.recv().unwrap_or_else(|_| Ok(Vec::new()))
    };
    let bytes = bytes.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(
            Failure::usage(format!("standard input exceeds {MAX_INPUT_BYTES} bytes"))
                .hint("save it to a file for the model to read"),
        );
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage("standard input is not UTF-8").hint("only UTF-8 can be sent"))
}

/// Runs the turn and prints its outcome.
pub(super) async fn run(
    prompt: &str,
    format: OutputFormat,
    conversation: &Conversation,
    session: &CommandHost<'_>,
    mut interrupts: Interrupts,
) -> Outcome {
    let work = async {
        let prompt = attach::prompt(prompt, session).await?;
        let mut reported = HashSet::new();
        let mut output = Output::new(format, session.context, &mut reported);
        let mut events = conversation.stream(prompt);
        let mut ticks = interval(TICK);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = ticks.tick() => {
                    output.tick()?;
                    continue;
                }
            };
            match event {
                Some(Ok(SessionEvent::Ended(reply))) => return output.end(&reply),
                Some(Ok(event)) => output.event(event)?,
                Some(Err(error)) => {
                    output.abort()?;
                    return Err(failure::of(&error));
                }
                None => return Err(Failure::failed("the turn ended without an answer")),
            }
        }
    };
    tokio::select! {
        exit = interrupts.first() => Err(Failure::interrupted(exit)),
        outcome = work => outcome,
    }
}

/// The output format and destination of a turn.
enum Output<'p> {
    /// Live output on a terminal.
    Screen(Box<Turn<'p>>),
    /// The final answer only.
    Text(&'p Printer),
    Json(&'p Printer),
    Lines(&'p Printer),
}

impl<'p> Output<'p> {
    fn new(format: OutputFormat, context: &'p Context, reported: &'p mut HashSet<String>) -> Self {
        let printer = &context.printer;
        let is_watched = Printer::is_on_terminal() && io::stderr().is_terminal();
        match format {
            OutputFormat::Text if is_watched => {
                Self::Screen(Box::new(Turn::new(context, reported, None)))
            }
            OutputFormat::Text => Self::Text(printer),
            OutputFormat::Json => Self::Json(printer),
            OutputFormat::StreamJson => Self::Lines(printer),
        }
    }

    fn tick(&mut self) -> Result<(), Failure> {
        match self {
            Self::Screen(turn) => turn.tick(),
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: SessionEvent) -> Result<(), Failure> {
        match self {
            Self::Screen(turn) => turn.event(event),
            Self::Text(printer) | Self::Json(printer) => {
                warn(&event, printer);
                Ok(())
            }
            Self::Lines(printer) => {
                warn(&event, printer);
                printer.json_line_text(&to_json(&event)?)
            }
        }
    }

    /// Finishes the output of a turn that failed.
    fn abort(&mut self) -> Result<(), Failure> {
        match self {
            Self::Screen(turn) => turn.finish(),
            _ => Ok(()),
        }
    }

    fn end(&mut self, reply: &Reply) -> Outcome {
        match self {
            Self::Screen(turn) => {
                turn.event(SessionEvent::Ended(reply.clone()))?;
                turn.finish()?;
            }
            Self::Text(printer) => {
                warn_of_reason(reply.reason, printer);
                printer.data(switchboard::internal::catalog::text::neutralise(
                    &reply.response,
                ))?;
            }
            Self::Json(printer) => {
                warn_of_reason(reply.reason, printer);
                printer.json_text(&to_json(reply)?)?;
            }
            Self::Lines(printer) => {
                printer.json_line_text(&to_json(&SessionEvent::Ended(reply.clone()))?)?;
            }
        }
        Ok(match reply.reason {
            EndReason::Done | EndReason::Length => Exit::Done,
            _ => Exit::Failed,
        })
    }
}

/// Prints warnings for users who see only the answer.
fn warn(event: &SessionEvent, printer: &Printer) {
    match event {
        SessionEvent::Started { failed_servers, .. } => {
            for server in failed_servers {
                if let Some((message, hint)) = missing_server(server) {
                    printer.warning(message, Some(&hint));
                }
            }
        }
        SessionEvent::CallEnds {
            content,
            is_error: true,
            ..
        } => {
            let trouble = trouble(content);
            let hint = trouble.contains("permission denied for tool").then_some(
                "-p never prompts; allow it with a rule, see `switchboard permissions --help`",
            );
            printer.warning(format!("a call failed: {trouble}"), hint);
        }
        SessionEvent::Retrying { reason, .. } => {
            printer.note(paint(
                style::QUIET,
                format!("retrying: {}", visible(reason)),
            ));
        }
        SessionEvent::Notice { text, .. } => printer.note(paint(style::QUIET, visible(text))),
        _ => {}
    }
}

fn warn_of_reason(reason: EndReason, printer: &Printer) {
    let reported = match reason {
        EndReason::Refused => "the model refused to answer",
        EndReason::Length => "the answer is cut off: it reached the output limit",
        EndReason::TurnBudget => "the turn reached its request limit",
        EndReason::TokenBudget => "the turn reached its token limit",
        _ => return,
    };
    printer.warning(reported, None);
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::failed("could not write JSON").because(error))
}
