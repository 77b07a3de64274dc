//! Servers coming up before the first turn, told as it happens.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};

use switchboard::events::Event;
use switchboard::names::ServerName;
use switchboard::status::{ServerStatus, State};
use tokio::sync::broadcast::error::RecvError;

use crate::context::AgentContext;
use crate::events::{FailedServer, SessionEvent};
use crate::session::SessionError;
use crate::turn::Emitter;

/// Servers that are configured and not started. Clones share one list, which may be replaced at any time.
#[derive(Debug, Clone, Default)]
pub struct Unavailable(Arc<RwLock<Vec<FailedServer>>>);

impl Unavailable {
    /// Replaces the list.
    pub fn set(&self, servers: Vec<FailedServer>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = servers;
    }

    pub(crate) fn get(&self) -> Vec<FailedServer> {
        let servers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        servers.clone()
    }
}

/// Waits for the servers to be connected. Tells each change of a state, then which servers there are and which are not.
pub(crate) async fn follow(
    context: &AgentContext,
    emitter: &Emitter,
    connect: impl Future<Output = Result<(), SessionError>>,
) -> Result<(), SessionError> {
    let host = &context.options.host;
    let mut events = host.events();
    let mut told: HashMap<ServerName, State> = HashMap::new();
    let mut connect = pin!(connect);
    let outcome = loop {
        tokio::select! {
            outcome = &mut connect => break outcome,
            event = events.recv() => match event {
                Ok(Event::StartupUpdate { server, .. } | Event::StateChanged { server, .. }) => {
                    if let Some(status) = host.status(&server) {
                        update(&status, &mut told, emitter).await;
                    }
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break connect.await,
            },
        }
    };
    let statuses = host.statuses();
    for status in &statuses {
        update(status, &mut told, emitter).await;
    }
    let failed_servers = context.failed_servers();
    for server in context.options.unavailable.get() {
        let event = SessionEvent::StartupUpdate {
            server: server.name,
            state: server.state,
            tools: None,
            reason: Some(server.reason),
        };
        emitter.tell(event).await;
    }
    let is_ready = |status: &&ServerStatus| status.state == State::Connected || status.is_resting;
    let ready = statuses.iter().filter(is_ready);
    let complete = SessionEvent::StartupComplete {
        ready: ready
            .map(|status| status.name.as_str().to_owned())
            .collect(),
        failed_servers,
    };
    emitter.tell(complete).await;
    outcome
}

/// Tells the state of a server, if it is another than was told.
async fn update(status: &ServerStatus, told: &mut HashMap<ServerName, State>, emitter: &Emitter) {
    if told.insert(status.name.clone(), status.state) == Some(status.state) {
        return;
    }
    let event = SessionEvent::StartupUpdate {
        server: status.name.as_str().to_owned(),
        state: status.state.word().to_owned(),
        tools: (status.state == State::Connected).then_some(status.tools),
        reason: status.absence().map(|absence| absence.reason),
    };
    emitter.tell(event).await;
}
