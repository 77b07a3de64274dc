//! Emits events while servers start, before the first turn.

use std::collections::HashMap;
use std::pin::pin;

use switchboard::status::{ServerState, ServerStatus};
use switchboard::{Event, ServerName};
use tokio::sync::broadcast::error::RecvError;

use crate::context::AgentContext;
use crate::events::SessionEvent;
use crate::session::SessionError;
use crate::turn::Emitter;

/// Waits for the servers to connect. Emits each state change, then the list of available and unavailable servers.
pub(crate) async fn follow(
    context: &AgentContext,
    emitter: &Emitter,
    connect: impl Future<Output = Result<(), SessionError>>,
) -> Result<(), SessionError> {
    let host = &context.options.host;
    let mut events = host.events();
    let mut reported: HashMap<ServerName, &'static str> = HashMap::new();
    let mut connect = pin!(connect);
    let outcome = loop {
        tokio::select! {
            outcome = &mut connect => break outcome,
            event = events.recv() => match event {
                Ok(Event::StartupUpdate { server, .. } | Event::StateChanged { server, .. }) => {
                    if let Some(status) = host.status(&server) {
                        update(&status, &mut reported, emitter).await;
                    }
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break connect.await,
            },
        }
    };
    let statuses = host.statuses();
    for status in &statuses {
        update(status, &mut reported, emitter).await;
    }
    let failed_servers = context.failed_servers();
    let is_ready =
        |status: &&ServerStatus| matches!(status.state, ServerState::Connected | ServerState::Idle);
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

/// Emits the state of a server if it has changed.
async fn update(
    status: &ServerStatus,
    reported: &mut HashMap<ServerName, &'static str>,
    emitter: &Emitter,
) {
    // Skip servers that the user has switched off or overridden.
    let is_intended = status.state.is_withheld() && status.absence().is_none();
    if is_intended || reported.insert(status.name.clone(), status.word()) == Some(status.word()) {
        return;
    }
    let event = SessionEvent::StartupUpdate {
        server: status.name.as_str().to_owned(),
        state: status.word().to_owned(),
        tools: status.state.is_connected().then_some(status.tools),
        reason: status.absence().map(|absence| absence.reason),
    };
    emitter.tell(event).await;
}
