//! `switchboard call`: calls one tool.
//!
//! Starts only the server that has the tool, if the cache or the tool's name identifies it; otherwise all servers.

pub(crate) mod arguments;
mod dry_run;
mod failure;
mod progress;
pub(crate) mod result;

use std::time::Duration;

use switchboard::catalog::{Catalog, CatalogTool};
use switchboard::internal::catalog::exposed::exposed_name;
use switchboard::internal::remembered;
use switchboard::{CallOutcome, CallRequest, ServerName};
use switchboard_config::resolve::Server;
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;

use crate::adhoc::{self, AdHoc};
use crate::cli::CallArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::lookup;
use crate::servers::Servers;
use crate::session::{self, CommandHost};
use arguments::TypedArguments;

/// Timeout for notifying the server of a cancellation.
const CANCEL_NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// The hint for a server that is not configured and requires a login.
const ADD_FIRST: &str =
    "add it with `switchboard mcp add NAME URL`, then log in with `switchboard mcp login NAME`";

/// A call as typed: where to find the tool, and its arguments.
struct Typed {
    tool: String,
    arguments: TypedArguments,
    /// The one server to look in; `None`: wherever the tool is.
    server: Option<String>,
    /// The servers that may have the tool; empty: any.
    likely: Vec<String>,
}

pub(crate) fn run(call: &CallArguments, context: &Context) -> Outcome {
    let (adhoc, tool, words) = split(call)?;
    // Read the arguments before starting servers, so that neither waits for the other.
    let arguments = TypedArguments::read(words)?;
    let mut typed = Typed {
        tool: tool.to_owned(),
        arguments,
        server: None,
        likely: Vec::new(),
    };
    let servers = match &adhoc {
        None => {
            let servers = Servers::load(context, None)?;
            typed.likely = likely_servers(tool, &servers, context);
            servers
        }
        Some(adhoc) => {
            let (servers, name) = Servers::load_with(context, adhoc)?;
            if !servers.has(&name) {
                return Err(Failure::new(Exit::Denied, "the server cannot be used")
                    .because("the machine's administrator permits only configured servers")
                    .hint("`switchboard mcp list` shows them"));
            }
            typed.server = Some(name);
            servers
        }
    };
    session::run(context, &servers, async |session| {
        typed.start(session).await?;
        let catalog = session.host.catalog();
        let (tool, request) = typed.request(call, &catalog, session)?;
        if call.dry_run {
            return dry_run::show(tool, &request, session);
        }
        let outcome = perform(tool, request, call.timeout, session).await?;
        result::show(&outcome, call.output.as_deref(), context)?;
        error_of(&outcome)?;
        Ok(Exit::Done)
    })
}

/// Calls a tool for a user of a chat, who has typed it.
pub(crate) async fn within(call: &CallArguments, session: &CommandHost<'_>) -> Result<(), Failure> {
    let likely = likely_servers(&call.tool, session.servers, session.context);
    let is_known = |server: &String| session.host.status(&server.as_str().into()).is_some();
    let typed = Typed {
        tool: call.tool.clone(),
        arguments: TypedArguments::read(&call.arguments)?,
        server: None,
        likely: likely.into_iter().filter(is_known).collect(),
    };
    typed.start(session).await?;
    let catalog = session.host.catalog();
    let (tool, request) = typed.request(call, &catalog, session)?;
    let outcome = perform(tool, request, call.timeout, session).await?;
    result::show(&outcome, None, session.context)?;
    error_of(&outcome)
}

/// The failure of a call whose result is an error.
fn error_of(outcome: &CallOutcome) -> Result<(), Failure> {
    if !outcome.is_error {
        return Ok(());
    }
    let tool = outcome.tool.to_string();
    let message = format!("{} returned an error", visible(&tool));
    Err(Failure::new(Exit::ToolError, message))
}

/// Splits the words into a server that is not configured, the tool, and the arguments.
fn split(call: &CallArguments) -> Result<(Option<AdHoc>, &str, &[String]), Failure> {
    let is_url = adhoc::is_url(&call.tool);
    match (&call.command, is_url) {
        (Some(_), true) => Err(Failure::usage("both --command and a URL name the server")
            .hint("leave out one of them")),
        (Some(line), false) => Ok((Some(AdHoc::command(line)?), &call.tool, &call.arguments)),
        (None, false) => Ok((None, &call.tool, &call.arguments)),
        (None, true) => match call.arguments.split_first() {
            Some((tool, words)) => Ok((Some(AdHoc::Url(call.tool.clone())), tool, words)),
            None => Err(Failure::usage("no tool after the URL").hint(format!(
                "`switchboard tools {}` lists its tools",
                visible(&call.tool)
            ))),
        },
    }
}

impl Typed {
    /// Starts the servers that may have the tool.
    async fn start(&self, session: &CommandHost<'_>) -> Result<(), Failure> {
        match (&self.server, self.likely.as_slice()) {
            (Some(server), _) => session.start_one(server).await.map_err(|failure| {
                let is_login = failure.exit == Exit::NeedsLogin;
                let is_own = |server: &Server| server.scope() == Scope::Dynamic;
                if is_login && session.servers.config.server(server).is_some_and(is_own) {
                    return Failure::new(failure.exit, failure.message).hint(ADD_FIRST);
                }
                failure
            }),
            (None, []) => {
                session.start().await;
                Ok(())
            }
            (None, [server]) => session.start_one(server).await,
            (None, several) => {
                let is_likely =
                    |name: &ServerName| several.iter().any(|each| each == name.as_str());
                session.start_some(is_likely).await;
                Ok(())
            }
        }
    }

    /// The tool, and the request that calls it.
    fn request<'k>(
        &self,
        call: &CallArguments,
        catalog: &'k Catalog,
        session: &CommandHost<'_>,
    ) -> Result<(&'k CatalogTool, CallRequest), Failure> {
        let tool =
            lookup::tool(catalog, &self.tool).map_err(|error| failure::unknown(&error, session))?;
        let arguments = self.arguments.clone().for_schema(tool.input_schema());
        let arguments = arguments.map_err(|failure| {
            let shown = tool.reference().to_string();
            failure.hint(format!(
                "`switchboard tools {}` describes the arguments",
                visible(&shown)
            ))
        })?;
        let request = CallRequest {
            tool: tool.exposed().as_str().to_owned(),
            arguments: Some(arguments),
            timeout: call.timeout,
            // Progress extends the call's deadline, but not beyond `--timeout`.
            total_timeout: call.timeout,
            ..CallRequest::default()
        };
        Ok((tool, request))
    }
}

async fn perform(
    tool: &CatalogTool,
    request: CallRequest,
    timeout: Option<Duration>,
    session: &CommandHost<'_>,
) -> Result<CallOutcome, Failure> {
    let label = tool.reference().to_string();
    let calling = progress::call(&session.context.printer, &label, request, &session.host);
    match (calling.await, timeout) {
        (Err(error), Some(limit)) if error.is_timeout() => {
            let server = &tool.reference().server;
            let cancellation = session
                .host
                .cancellations_told(server, CANCEL_NOTICE_TIMEOUT)
                .await;
            Err(failure::timed_out(&label, limit, cancellation))
        }
        (outcome, _) => outcome.map_err(|error| failure::of(&error, session)),
    }
}

/// The servers that may have the tool: by the cached catalogue, else by name prefix.
pub(crate) fn likely_servers(tool: &str, servers: &Servers, context: &Context) -> Vec<String> {
    let (outlines, lists) = servers.remembered(context);
    let catalog = remembered::catalog(&outlines, &lists);
    // A tool's own name is unique only if the tools of every server are known.
    let all_known = lists.iter().all(|list| list.lists.is_some());
    let found = if all_known {
        lookup::tool(&catalog, tool)
    } else {
        catalog.find(tool)
    };
    if let Ok(tool) = found {
        return vec![tool.reference().server.as_str().to_owned()];
    }
    let begins = |server: &str| {
        let after = tool.strip_prefix(server);
        let slashed = after.is_some_and(|after| after.starts_with(['/', '.']));
        // The exposed name of a one-letter tool, without the letter, is the prefix of all tools of the server.
        let exposed = exposed_name(server, "t");
        let prefix = exposed.as_str().strip_suffix('t').unwrap_or("/");
        slashed || tool.starts_with(prefix)
    };
    let configured = servers.config.servers.iter();
    configured
        .map(|server| server.name.clone())
        .filter(|name| begins(name))
        .collect()
}
