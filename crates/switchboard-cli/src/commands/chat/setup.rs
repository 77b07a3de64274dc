//! The model of a chat: chosen by the environment, found on this machine, or still to be set up.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
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
        // A slow server is asked again, with more patience, while the user types.
        Ok(Err(_)) | Err(_) => Ok(agent::no_model()),
    }
}

/// A search of this machine, with more patience than [`first`].
pub(super) struct Search<'s>(Option<LocalBoxFuture<'s, Option<Arc<dyn Provider>>>>);

impl<'s> Search<'s> {
    /// Searches if a model is needed.
    pub(super) fn new(is_needed: bool, session: &'s CommandHost<'_>) -> Self {
        let search = async move {
            let settings = agent::settings(None, session.servers, session.context);
            settings.provider().await.ok()
        };
        Self(is_needed.then(|| search.boxed_local()))
    }

    pub(super) fn stop(&mut self) {
        self.0 = None;
    }

    /// Waits for the model; never ends without one.
    pub(super) async fn found(&mut self) -> Arc<dyn Provider> {
        if let Some(search) = &mut self.0 {
            let found = search.await;
            self.0 = None;
            if let Some(provider) = found {
                return provider;
            }
        }
        std::future::pending().await
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
