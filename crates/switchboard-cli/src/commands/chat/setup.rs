//! The model of a chat: chosen by the environment, found on this machine, or still to be set up.

use std::sync::Arc;
use std::time::Duration;

use switchboard_agent::provider::Provider;
use tokio::time::timeout;

use crate::agent;
use crate::error::Failure;
use crate::servers::Servers;
use crate::session::CommandHost;

/// How long the first prompt may wait for a model server on this machine. A closed port answers at once.
const QUICK: Duration = Duration::from_millis(150);

/// The model that the chat starts with. Without any, the chat opens all the same.
pub(super) async fn first(
    model: Option<&str>,
    session: &CommandHost<'_>,
) -> Result<Arc<dyn Provider>, Failure> {
    let settings = agent::settings(model, session.servers, session.context);
    if model.is_some() || settings.has_endpoint() {
        return agent::provider(model, session.servers, session.context).await;
    }
    match timeout(QUICK, settings.provider()).await {
        Ok(Ok(provider)) => Ok(provider),
        // A slow server is asked again, with more patience, before the first message.
        Ok(Err(_)) | Err(_) => Ok(agent::no_model()),
    }
}

/// Looks again for a model: one may have been started meanwhile. The failure explains how to set one up.
pub(super) async fn later(
    configured: &Servers,
    session: &CommandHost<'_>,
) -> Result<Arc<dyn Provider>, Failure> {
    let settings = agent::settings(None, configured, session.context);
    let found = settings.provider().await;
    found.map_err(|error| {
        agent::unusable(&error)
            .hint("for a variable, /exit, set it, and start the chat again")
            .hint("for a server on this machine, start it and send your message again")
            .hint("without a model, /tools, /mcp and /call TOOL work already")
    })
}
