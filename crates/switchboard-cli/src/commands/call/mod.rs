//! `switchboard call`: one tool, once.
//!
//! Only the server that has the tool is started where it can be told beforehand, from what is remembered or from the
//! name; otherwise all of them are.

mod arguments;
mod failure;
mod progress;
pub(crate) mod result;

use std::time::Duration;

use switchboard::call::{CallOutcome, CallRequest};
use switchboard::catalog::exposed::exposed_name;
use switchboard::names::ServerName;
use switchboard::remembered;
use switchboard_config::text::visible;

use crate::cli::CallArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::servers::Servers;
use crate::session::{self, Session};
use arguments::Given;

/// How long telling a server that its call is cancelled may take.
const TELLING: Duration = Duration::from_secs(2);

pub(crate) fn run(call: &CallArguments, context: &Context) -> Outcome {
    // Whoever types the arguments should not have to wait for servers first, nor servers for them.
    let given = Given::read(&call.arguments)?;
    let servers = Servers::load(context, None)?;
    let likely = likely_servers(&call.tool, &servers, context);
    session::run(context, &servers, async |session| {
        let outcome = perform(call, given, &likely, session).await?;
        result::show(&outcome, call.output.as_deref(), context)?;
        if outcome.is_error {
            let tool = outcome.tool.to_string();
            return Err(Failure::new(
                Exit::ToolError,
                format!("{} answered with an error", visible(&tool)),
            ));
        }
        Ok(Exit::Done)
    })
}

async fn perform(
    call: &CallArguments,
    given: Given,
    likely: &[String],
    session: &Session<'_>,
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
        arguments: Some(given.for_schema(tool.input_schema())?),
        timeout: call.timeout,
        // Progress keeps a call alive, but not beyond what was asked for.
        total_timeout: call.timeout,
        ..CallRequest::default()
    };
    let label = tool.reference().to_string();
    let calling = progress::shown(&session.context.printer, &label, request, &session.host);
    match (calling.await, call.timeout) {
        (Err(error), Some(limit)) if error.is_timeout() => {
            let server = &tool.reference().server;
            let told = session.host.cancellations_told(server, TELLING).await;
            Err(failure::timed_out(&label, limit, told))
        }
        (outcome, _) => outcome.map_err(|error| failure::of(&error, session)),
    }
}

/// The servers that may have the tool: the one that had it last time, else those whose names it begins with.
fn likely_servers(tool: &str, servers: &Servers, context: &Context) -> Vec<String> {
    let (outlines, lists) = servers.remembered(context);
    if let Ok(tool) = remembered::catalog(&outlines, &lists).find(tool) {
        return vec![tool.reference().server.as_str().to_owned()];
    }
    let begins = |server: &str| {
        let after = tool.strip_prefix(server);
        let slashed = after.is_some_and(|after| after.starts_with(['/', '.']));
        // With a tool of one letter, the exposed name is what comes before any tool of the server.
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
