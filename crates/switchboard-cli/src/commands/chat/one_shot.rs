//! `chat -p`: one prompt, one answer.
//!
//! Nobody is asked anything: questions are answered by the policy, whose default is no, and what was refused is told on
//! standard error.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::mpsc;
use std::time::Duration;

use futures_util::StreamExt as _;
use switchboard_agent::Session as Conversation;
use switchboard_agent::events::{EndReason, Reply, SessionEvent};
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
use crate::session::Session;

/// More is not read from standard input.
const LARGEST_INPUT: u64 = 10 * 1024 * 1024;
/// Whoever waits longer for standard input is told so.
const PATIENCE: Duration = Duration::from_secs(3);

/// The prompt of the command line, with what is piped in; `None` if there is none.
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
    let whole = if is_all_piped {
        piped
    } else if piped.trim().is_empty() {
        prompt.to_owned()
    } else {
        format!("{prompt}\n\n{piped}")
    };
    if whole.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty").hint("say what you want after -p"));
    }
    Ok(Some(whole))
}

/// What is piped in. A pipe that nobody ends is the usual reason for a script that hangs, so it is told of.
fn read_input(context: &Context) -> Result<String, Failure> {
    let unreadable =
        |error: io::Error| Failure::failed("standard input cannot be read").because(error);
    let (sender, read) = mpsc::channel();
    let thread = std::thread::Builder::new().name("input".to_owned());
    let work = move || {
        let mut bytes = Vec::new();
        let taken = io::stdin()
            .lock()
            .take(LARGEST_INPUT + 1)
            .read_to_end(&mut bytes);
        let _ = sender.send(taken.map(|_| bytes));
    };
    thread.spawn(work).map_err(unreadable)?;
    let bytes = if let Ok(bytes) = read.recv_timeout(PATIENCE) {
        bytes
    } else {
        let told = "waiting for the end of standard input; without one, add </dev/null";
        context.printer.note(told);
        read.recv().unwrap_or_else(|_| Ok(Vec::new()))
    };
    let bytes = bytes.map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST_INPUT {
        return Err(Failure::usage(format!(
            "standard input has more than {LARGEST_INPUT} bytes"
        ))
        .hint("put it into a file, and let the model read it"));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage("standard input is not UTF-8 text").hint("only UTF-8 can be sent")
    })
}

/// Runs the turn and puts out what came of it.
pub(super) async fn run(
    prompt: &str,
    format: OutputFormat,
    conversation: &Conversation,
    session: &Session<'_>,
    mut interrupts: Interrupts,
) -> Outcome {
    let work = async {
        let prompt = attach::prompt(prompt, session).await?;
        let mut told = HashSet::new();
        let mut output = Output::new(format, &session.context.printer, &mut told);
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
                    output.broken()?;
                    return Err(failure::of(&error));
                }
                None => return Err(Failure::failed("the turn ended without a word")),
            }
        }
    };
    tokio::select! {
        exit = interrupts.first() => Err(Failure::interrupted(exit)),
        outcome = work => outcome,
    }
}

/// Where the turn goes.
enum Output<'p> {
    /// A person looks on.
    Screen(Box<Turn<'p>>),
    /// The answer, and nothing before it.
    Text(&'p Printer),
    Json(&'p Printer),
    Lines(&'p Printer),
}

impl<'p> Output<'p> {
    fn new(format: OutputFormat, printer: &'p Printer, told: &'p mut HashSet<String>) -> Self {
        let is_watched = Printer::is_on_terminal() && io::stderr().is_terminal();
        match format {
            OutputFormat::Text if is_watched => Self::Screen(Box::new(Turn::new(printer, told))),
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
                tell(&event, printer);
                Ok(())
            }
            Self::Lines(printer) => {
                tell(&event, printer);
                printer.json_line_text(&to_json(&event)?)
            }
        }
    }

    /// The turn broke off.
    fn broken(&mut self) -> Result<(), Failure> {
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
                tell_reason(reply.reason, printer);
                printer.data(switchboard::catalog::text::neutralise(&reply.response))?;
            }
            Self::Json(printer) => {
                tell_reason(reply.reason, printer);
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

/// What somebody who reads only the answer should know.
fn tell(event: &SessionEvent, printer: &Printer) {
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
            let hint = trouble.contains("is not permitted").then_some(
                "-p never prompts; allow it with a rule, see `switchboard permissions --help`",
            );
            printer.warning(format!("a call failed: {trouble}"), hint);
        }
        SessionEvent::Retrying { reason, .. } => {
            printer.note(paint(
                style::QUIET,
                format!("asking again: {}", visible(reason)),
            ));
        }
        SessionEvent::Notice { text } => printer.note(paint(style::QUIET, visible(text))),
        _ => {}
    }
}

fn tell_reason(reason: EndReason, printer: &Printer) {
    let told = match reason {
        EndReason::Refused => "the model refuses to answer",
        EndReason::Length => "the answer reached its limit and breaks off",
        EndReason::TurnBudget => "the turn has made as many requests as it may",
        EndReason::TokenBudget => "the turn has used as many tokens as it may",
        _ => return,
    };
    printer.warning(told, None);
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::failed("could not write JSON").because(error))
}
