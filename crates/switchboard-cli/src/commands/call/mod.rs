//! `switchboard call`: calls one tool.
//!
//! Starts only the server that has the tool, if the cache or the tool's name identifies it; otherwise all servers.

mod arguments;
mod failure;
mod progress;
pub(crate) mod result;

use std::time::Duration;

use switchboard::internal::catalog::exposed::exposed_name;
use switchboard::internal::remembered;
use switchboard::{CallOutcome, CallRequest, ServerName};
use switchboard_config::text::visible;

use crate::cli::CallArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::servers::Servers;
use crate::session::{self, CommandHost};
use arguments::TypedArguments;

/// Timeout for notifying the server of a cancellation.
const CANCEL_NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(call: &CallArguments, context: &Context) -> Outcome {
    // Read the arguments before starting servers, so that neither waits for the other.
    let arguments = TypedArguments::read(&call.arguments)?;
    let servers = Servers::load(context, None)?;
    let likely = likely_servers(&call.tool, &servers, context);
    session::run(context, &servers, async |session| {
        let outcome = perform(call, arguments, &likely, session).await?;
        result::show(&outcome, call.output.as_deref(), context)?;
        if outcome.is_error {
            let tool = outcome.tool.to_string();
            return Err(Failure::new(
                Exit::ToolError,
                format!("{} returned an error", visible(&tool)),
            ));
        }
        Ok(Exit::Done)
    })
}

async fn perform(
    call: &CallArguments,
    arguments: TypedArguments,
    likely: &[String],
    session: &CommandHost<'_>,
) -> Result<CallOutcome, Failure> {
    match likely {
        [] => session.start().await,
        [server] => session.start_one(server).await?,
        several => {
            let is_likely = |name: &ServerName| several.iter().any(|each| each == name.as_str());
            session.start_some(is_likely).await;
        }
    }
    let catalog = session.host.catalog();
    let tool = catalog
        .find(&call.tool)
        .map_err(|error| failure::unknown(&error, session))?;
    let request = CallRequest {
        tool: call.tool.clone(),
        arguments: Some(arguments.for_schema(tool.input_schema())?),
        timeout: call.timeout,
        // Progress extends the call's deadline, but not beyond `--timeout`.
        total_timeout: call.timeout,
        ..CallRequest::default()
    };
    let label = tool.reference().to_string();
    let calling = progress::call(&session.context.printer, &label, request, &session.host);
    match (calling.await, call.timeout) {
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
fn likely_servers(tool: &str, servers: &Servers, context: &Context) -> Vec<String> {
    let (outlines, lists) = servers.remembered(context);
    if let Ok(tool) = remembered::catalog(&outlines, &lists).find(tool) {
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
