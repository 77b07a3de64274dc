//! Lists, deletes and finds stored agent sessions.

use serde_json::json;
use switchboard_agent::{Agent, Session as Conversation, SessionId, SessionSummary};
use switchboard_config::text::visible;

use super::failure;
use crate::agent;
use crate::cli::ChatArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Table, paint, style};
use crate::servers::Servers;
use crate::terminal::fitted;
use crate::time;
use crate::{session, view};
use anstyle::Style;

/// Maximum width of a title, in columns.
const MAX_TITLE_WIDTH: usize = 60;

pub(super) fn run(arguments: &ChatArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    let mode = super::mode(false);
    session::run_in(mode, context, &servers, async |session, mut interrupts| {
        // Listing and deleting query no model.
        let agent = agent::of_session(session, &agent::no_model());
        let work = async {
            match &arguments.delete {
                Some(id) => delete(id, &agent, context).await,
                None => list(&agent, context).await,
            }
        };
        tokio::select! {
            exit = interrupts.first() => Err(Failure::interrupted(exit)),
            outcome = work => outcome,
        }
    })
}

async fn list(agent: &Agent, context: &Context) -> Outcome {
    let sessions = agent
        .sessions()
        .await
        .map_err(|error| failure::of(&error))?;
    let printer = &context.printer;
    if printer.json {
        let entry = |session: &SessionSummary| {
            json!({
                "session_id": session.id.as_str(),
                "title": session.title,
                "workspace": session.workspace.display().to_string(),
                "written_at": time::exact(session.written_at),
                "messages": session.messages,
            })
        };
        printer.json(&sessions.iter().map(entry).collect())?;
        return Ok(Exit::Done);
    }
    if sessions.is_empty() {
        printer.note("no sessions yet");
        return Ok(Exit::Done);
    }
    printer.data(table(&sessions, context))?;
    Ok(Exit::Done)
}

/// The table of sessions.
pub(super) fn table(sessions: &[SessionSummary], context: &Context) -> Table {
    let mut table = Table::with_heading(&["ID", "LAST", "MESSAGES", "FOLDER", "FIRST MESSAGE"]);
    for session in sessions {
        let folder = view::path(&session.workspace, &context.environment.home);
        table.row([
            (style::NAME, session.id.as_str()),
            (Style::new(), &time::shown(session.written_at)),
            (Style::new(), &session.messages.to_string()),
            (style::QUIET, &folder),
            (Style::new(), &fitted(&title(session), MAX_TITLE_WIDTH)),
        ]);
    }
    table
}

pub(super) fn title(session: &SessionSummary) -> String {
    visible(session.title.trim()).into_owned()
}

async fn delete(id: &str, agent: &Agent, context: &Context) -> Outcome {
    let unknown = || {
        Failure::failed(format!("no session `{}`", visible(id)))
            .hint("`switchboard chat --list` lists the sessions")
    };
    let parsed = SessionId::parse(id).ok_or_else(unknown)?;
    let deleted = agent
        .delete(&parsed)
        .await
        .map_err(|error| failure::of(&error))?;
    if !deleted {
        return Err(unknown());
    }
    let printer = &context.printer;
    printer.note(format!(
        "{} {}",
        paint(style::GOOD, "deleted"),
        paint(style::NAME, parsed)
    ));
    if printer.json {
        printer.json(&json!({"session_id": id, "deleted": true}))?;
    }
    Ok(Exit::Done)
}

/// The session selected by the flags: a new one, the latest of this folder, or one by its id.
pub(super) async fn find(
    agent: &Agent,
    arguments: &ChatArguments,
    context: &Context,
) -> Result<Conversation, Failure> {
    let id = match (&arguments.resume, arguments.latest) {
        (Some(id), _) => SessionId::parse(id).ok_or_else(|| {
            Failure::failed(format!("no session `{}`", visible(id)))
                .hint("`switchboard chat --list` lists the sessions")
        })?,
        (None, true) => {
            let sessions = agent
                .sessions()
                .await
                .map_err(|error| failure::of(&error))?;
            let of_here = |session: &SessionSummary| session.workspace == context.project;
            let latest = sessions.into_iter().find(of_here);
            let none = || {
                Failure::failed("no session in this folder yet")
                    .hint("`switchboard chat --list` shows those of other folders")
            };
            latest.ok_or_else(none)?.id
        }
        (None, false) => return Ok(agent.session(&context.project)),
    };
    agent.resume(&id).await.map_err(|error| failure::of(&error))
}
