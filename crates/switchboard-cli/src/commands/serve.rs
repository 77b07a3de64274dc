//! `switchboard serve`: runs the agent as an MCP server, over standard input and output or HTTP.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use switchboard::permissions::Policy;
use switchboard::status::ServerState;
use switchboard::{Event, ServerName};
use switchboard_agent::Agent;
use switchboard_config::own_program;
use switchboard_config::text::visible;
use switchboard_server::ServiceHandler;
use switchboard_server::agent::{AgentService, ClientQuestions};
use tokio::sync::broadcast::error::RecvError;

use crate::agent;
use crate::cli::ServeArguments;
use crate::context::Context;
use crate::current::Current;
use crate::error::Outcome;
use crate::front_end::{self, TokenPlace};
use crate::servers::Servers;
use crate::session::{self, ClientPrompts, CommandHost, SessionMode};

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
The model is chosen as for `switchboard chat`. Clients get two tools: `switchboard` starts an
agent session, `switchboard-reply` continues it, even after a restart. Permission prompts are
forwarded to clients that support them, and denied otherwise.

Examples:
  claude mcp add agent -- switchboard serve
  codex mcp add agent -- switchboard serve --cwd ~/project
  switchboard serve --http 127.0.0.1:8765";

/// Printed if a user starts the server by hand.
const ON_A_TERMINAL: &str = "\
this is an MCP server for other programs: it waits for their messages on standard input
  to use it, add it to a client, for example: claude mcp add agent -- switchboard serve
  to talk to the agent yourself, run `switchboard chat`; press Ctrl-C to stop";

/// The front end recorded in the audit log.
const FRONT_END: &str = "serve";
/// The tokens of the agent.
const TOKENS: TokenPlace = TokenPlace {
    file: "serve-token",
    has_named: false,
};

pub(crate) fn run(arguments: &ServeArguments, context: &Context) -> Outcome {
    own_program::check_depth(&context.environment.all)?;
    let listen = front_end::http_options(&arguments.listen, &TOKENS, context)?;
    let servers = Servers::load(context, None)?;
    let questions = ClientQuestions::new().about(&context.project);
    let mode = SessionMode {
        policy: Policy::agent(),
        front_end: FRONT_END,
        attended: false,
        lists_only: false,
        logins: true,
        clients: Some(ClientPrompts::of(&questions)),
    };
    session::run_in(mode, context, &servers, async |session, interrupts| {
        let provider =
            agent::provider(arguments.model.as_deref(), session.servers, context).await?;
        session.report_withheld();
        let agent = agent::of_session(session, &provider);
        let handler = Arc::new(handler(agent, questions, context));
        let serving = async {
            match listen {
                Some(options) => {
                    front_end::over_http(options, handler, "the agent", context, interrupts).await
                }
                None => front_end::over_stdio(handler, context, interrupts, ON_A_TERMINAL).await,
            }
        };
        let current = Current::default();
        tokio::select! {
            outcome = serving => outcome,
            never = report_failures(session) => match never {},
            never = current.follow_files(session, |line| context.printer.note(line)) => match never {},
        }
    })
}

/// Reports each server that fails, requires a login or recovers, once per change. Never returns.
pub(crate) async fn report_failures(session: &CommandHost<'_>) -> Infallible {
    let mut events = session.host.server_events();
    let mut reported: HashSet<ServerName> = HashSet::new();
    loop {
        match events.recv().await {
            Ok(Event::StateChanged { server, state, .. }) => {
                let is_missing = matches!(
                    state,
                    ServerState::Failed { .. } | ServerState::NeedsAuth { .. }
                );
                let is_news = if is_missing {
                    reported.insert(server.clone())
                } else {
                    state.is_connected() && reported.remove(&server)
                };
                match session.host.status(&server) {
                    Some(status) if is_news && is_missing => session.report_start(&status),
                    Some(_) if is_news => {
                        let name = visible(server.as_str());
                        session
                            .context
                            .printer
                            .note(format!("{name} is connected again"));
                    }
                    _ => {}
                }
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return pending().await,
        }
    }
}

fn handler(agent: Agent, questions: ClientQuestions, context: &Context) -> ServiceHandler {
    let service = AgentService::new(agent, context.project.clone(), questions);
    ServiceHandler::new(Arc::new(service))
}
