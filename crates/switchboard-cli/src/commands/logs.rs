//! `switchboard logs`: prints a server's standard error and log messages, of earlier runs and as they arrive.
//!
//! Without `--follow`, starts the server only if it has written nothing yet, and ends once it has been quiet for a moment.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::status::{Failure as Failed, ServerState};
use switchboard::{Event, LogLine, LogSource, ServerName};
use switchboard_config::text::visible;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use crate::cli::LogsArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Printer, paint, style};
use crate::servers::Servers;
use crate::session::{self, CommandHost};
use crate::{server_logs, time};

/// A server quiet for this long has finished its startup output.
const QUIET: Duration = Duration::from_millis(500);
/// Limit after startup, for a server that never becomes quiet.
const MAX_DURATION: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &LogsArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, Some(&arguments.server))?;
    session::run(context, &servers, async |session| {
        let has_lines = earlier(arguments, session, &context.printer).await?;
        if has_lines && !arguments.follow {
            return Ok(Exit::Done);
        }
        follow(arguments, session, &context.printer).await?;
        session.need(&arguments.server)?;
        Ok(Exit::Done)
    })
}

/// Prints the kept lines, and on standard error when each run began. Returns whether there are any.
async fn earlier(
    arguments: &LogsArguments,
    session: &CommandHost<'_>,
    printer: &Printer,
) -> Result<bool, Failure> {
    let kept = server_logs::kept(&*session.store, &arguments.server, arguments.lines).await;
    let kept = kept.unwrap_or_else(|error| {
        let message = format!("cannot read earlier lines: {}", visible(&error.to_string()));
        printer.warning(message, error.hint());
        Vec::new()
    });
    let mut run = None;
    for (at, line) in &kept {
        if run != Some(&line.run) {
            run = Some(&line.run);
            printer.note(paint(style::QUIET, format!("run of {}", time::shown(*at))));
        }
        if printer.json {
            let mut json = to_json(&line.line());
            json["at"] = json!(time::exact(*at));
            printer.json_line(&json)?;
        } else {
            show(&line.line(), printer)?;
        }
    }
    Ok(!kept.is_empty())
}

async fn follow(
    arguments: &LogsArguments,
    session: &CommandHost<'_>,
    printer: &Printer,
) -> Result<(), Failure> {
    let server = ServerName::from(arguments.server.as_str());
    let status = session.host.status(&server);
    if status.is_none_or(|status| status.state.is_withheld()) {
        return session.need(&arguments.server);
    }
    let mut events = session.host.events();
    session.host.start(std::slice::from_ref(&server)).await;
    // `None` until the server is connected or has failed.
    let mut end: Option<Instant> = None;
    let mut quiet_until = Instant::now();
    loop {
        let wake = end.map(|end| end.min(quiet_until));
        let asleep = async {
            match wake {
                Some(wake) if !arguments.follow => sleep_until(wake).await,
                _ => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = events.recv() => event,
            () = asleep => return Ok(()),
        };
        match event {
            Ok(Event::Log { server: of, line }) if of == server => {
                quiet_until = Instant::now() + QUIET;
                show(&line, printer)?;
            }
            Ok(Event::StateChanged { server: of, state }) if of == server => {
                if end.is_none() && state.is_settled() {
                    end = Some(Instant::now() + MAX_DURATION);
                    quiet_until = Instant::now() + QUIET;
                }
                let reason = state.failure().map(Failed::summary);
                match reason {
                    Some(reason) => {
                        printer.note(format!("{}: {}", state.word(), visible(&reason)));
                    }
                    None => printer.detail(state.word()),
                }
                let has_failed = matches!(
                    state,
                    ServerState::Failed { .. } | ServerState::NeedsAuth { .. }
                );
                if has_failed {
                    return Ok(());
                }
            }
            Ok(_) => {}
            Err(RecvError::Lagged(lost)) => {
                printer.warning(format!("{lost} events lost: too many at once"), None);
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

fn show(line: &LogLine, printer: &Printer) -> Result<(), Failure> {
    if printer.json {
        return printer.json_line(&to_json(line));
    }
    let text = visible(&line.text);
    match &line.source {
        LogSource::Stderr => printer.data(text),
        LogSource::Noise => {
            let label = paint(style::WARNING, "no message:");
            printer.data(format!("{label} {text}"))
        }
        LogSource::Message { level, logger } => {
            let mut label = visible(level).into_owned();
            if let Some(logger) = logger {
                label = format!("{label} {}", visible(logger));
            }
            let label = paint(style::QUIET, format!("[{label}]"));
            printer.data(format!("{label} {text}"))
        }
    }
}

fn to_json(line: &LogLine) -> Value {
    let (source, level, logger) = match &line.source {
        LogSource::Stderr => ("stderr", None, None),
        LogSource::Noise => ("noise", None, None),
        LogSource::Message { level, logger } => ("log", Some(level), logger.as_ref()),
    };
    json!({"stream": source, "level": level, "logger": logger, "text": line.text})
}
