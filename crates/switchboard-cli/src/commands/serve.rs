//! `switchboard serve`: runs the agent as an MCP server, over standard input and output or HTTP.
//!
//! Standard output is reserved for the protocol. HTTP clients authenticate with a token, stored in a file that only its
//! owner can read; standard error shows how to connect, without the token.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::pending;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard::permissions::Policy;
use switchboard::status::ServerState;
use switchboard::{Event, ServerName};
use switchboard_agent::Agent;
use switchboard_config::text::visible;
use switchboard_server::ServiceHandler;
use switchboard_server::agent::{AgentService, ClientQuestions};
use switchboard_server::http::{Access, Address, HttpOptions, HttpServer, Token};
use switchboard_server::stdio::{StdioOptions, serve};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;

use crate::agent;
use crate::cli::ServeArguments;
use crate::context::Context;
use crate::current::Current;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::servers::Servers;
use crate::session::{self, CommandHost, SessionMode};
use crate::view;

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
The model is chosen as for `switchboard chat`. Clients get two tools: `switchboard` starts an
agent session, `switchboard-reply` continues it, even after a restart. Permission prompts are
forwarded to clients that support them, and denied otherwise.

Examples:
  claude mcp add agent -- switchboard serve
  codex mcp add agent -- switchboard serve --cwd ~/project
  switchboard serve --http 127.0.0.1:8765";

/// The front end recorded in the audit log.
const FRONT_END: &str = "serve";
/// Name of the token file in the state folder.
const TOKEN_FILE: &str = "serve-token";
/// Buffer size for standard input, in bytes.
const CHUNK: usize = 64 * 1024;

pub(crate) fn run(arguments: &ServeArguments, context: &Context) -> Outcome {
    let listen = match &arguments.http {
        Some(text) => Some(http_options(text, arguments, context)?),
        None => None,
    };
    let servers = Servers::load(context, None)?;
    let questions = ClientQuestions::new().about(&context.project);
    let mode = SessionMode {
        policy: Policy::agent(),
        front_end: FRONT_END,
        attended: false,
        lists_only: false,
        logins: true,
        clients: Some(questions.clone()),
    };
    session::run_in(mode, context, &servers, async |session, interrupts| {
        let provider =
            agent::provider(arguments.model.as_deref(), session.servers, context).await?;
        session.report_withheld();
        let agent = agent::of_session(session, &provider);
        let serving = async {
            match listen {
                Some(options) => over_http(options, agent, questions, session, interrupts).await,
                None => over_stdio(agent, questions, session, interrupts).await,
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
async fn report_failures(session: &CommandHost<'_>) -> Infallible {
    let mut events = session.host.events();
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

async fn over_stdio(
    agent: Agent,
    questions: ClientQuestions,
    session: &CommandHost<'_>,
    mut interrupts: Interrupts,
) -> Outcome {
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let handler = handler(agent, questions, session.context);
    let input = standard_input().map_err(startup_failure)?;
    session
        .context
        .printer
        .detail("serving over standard input and output");
    let options = StdioOptions::default();
    tokio::select! {
        exit = interrupts.first() => Err(Failure::interrupted(exit)),
        ended = serve(&handler, input, tokio::io::stdout(), &options) => match ended {
            Ok(_) => Ok(Exit::Done),
            Err(error) => Err(Failure::failed(error.to_string()).because(error.source)),
        },
    }
}

async fn over_http(
    options: HttpOptions,
    agent: Agent,
    questions: ClientQuestions,
    session: &CommandHost<'_>,
    mut interrupts: Interrupts,
) -> Outcome {
    let context = session.context;
    let socket = match &options.address {
        #[cfg(unix)]
        Address::Unix(path) => Some(path.clone()),
        _ => None,
    };
    let handler = Arc::new(handler(agent, questions, context));
    let bound = HttpServer::bind(options, handler).await;
    let (server, shutdown) = bound.map_err(|error| {
        let failure = Failure::failed(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let place = server
        .url()
        .or_else(|| Some(view::path(&socket?, &context.environment.home)));
    let place = place.unwrap_or_default();
    context
        .printer
        .note(format!("serving the agent at {place}"));
    let mut serving = std::pin::pin!(server.serve());
    tokio::select! {
        exit = interrupts.first() => {
            shutdown.stop();
            serving.await;
            Err(Failure::interrupted(exit))
        }
        () = &mut serving => Ok(Exit::Done),
    }
}

fn handler(agent: Agent, questions: ClientQuestions, context: &Context) -> ServiceHandler {
    let service = AgentService::new(agent, context.project.clone(), questions);
    ServiceHandler::new(Arc::new(service))
}

/// Builds the address and access options. Prints where the token is.
fn http_options(
    text: &str,
    arguments: &ServeArguments,
    context: &Context,
) -> Result<HttpOptions, Failure> {
    let address = address(text).ok_or_else(|| {
        Failure::usage(format!("\"{}\" is not a valid address", visible(text)))
            .hint("use for example 8765, 127.0.0.1:8765 or unix:/run/user/1000/agent.sock")
    })?;
    let file = token_file(arguments.token_file.as_deref(), context);
    let token = Token::load_or_create(&file).map_err(|error| {
        let failure = Failure::failed(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let shown = view::path(&file, &context.environment.home);
    context.printer.note(format!(
        "clients send the token in {shown}: Authorization: Bearer $(cat {shown})"
    ));
    let mut options = HttpOptions::new(Access::Token(token));
    options.address = address;
    options.allow_remote = arguments.allow_remote;
    Ok(options)
}

fn token_file(named: Option<&Path>, context: &Context) -> PathBuf {
    match named {
        Some(file) => context.project.join(file),
        None => context.environment.state.join(TOKEN_FILE),
    }
}

/// Parses a loopback port, an address and port, or `unix:PATH`.
fn address(text: &str) -> Option<Address> {
    #[cfg(unix)]
    if let Some(path) = text.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        return path.is_absolute().then_some(Address::Unix(path));
    }
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix(':').unwrap_or(text);
    let named = port.strip_prefix("localhost:").unwrap_or(port).parse().ok();
    let address = named.map(loopback).or_else(|| text.parse().ok())?;
    Some(Address::Tcp(address))
}

/// Reads standard input on a dedicated thread: the runtime could not shut down during a blocking read.
fn standard_input() -> std::io::Result<impl AsyncRead + Unpin> {
    let (mut sender, receiver) = tokio::io::duplex(CHUNK);
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("standard-input".to_owned());
    thread.spawn(move || {
        let mut chunk = vec![0; CHUNK];
        let mut input = std::io::stdin().lock();
        loop {
            match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    let read = chunk.get(..count).unwrap_or_default();
                    if runtime.block_on(sender.write_all(read)).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let check = |text: &str, expected: Option<&str>| {
            let found = match address(text) {
                Some(Address::Tcp(address)) => Some(address.to_string()),
                Some(_) => Some("a socket".to_owned()),
                None => None,
            };
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("8765", Some("127.0.0.1:8765"));
        check(":8765", Some("127.0.0.1:8765"));
        check("localhost:0", Some("127.0.0.1:0"));
        check("0.0.0.0:80", Some("0.0.0.0:80"));
        check("[::1]:80", Some("[::1]:80"));
        check("example.org:80", None);
        check("127.0.0.1", None);
        check("99999", None);
        check("", None);
        if cfg!(unix) {
            check("unix:/run/agent.sock", Some("a socket"));
            check("unix:agent.sock", None);
        }
    }
}
