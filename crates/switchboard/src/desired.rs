//! The servers a host should have: complete, with those that are configured and cannot be started.
//!
//! Owns the desired state as a value, where it comes from, and what became of it. The manager reconciles its servers
//! with it; nothing else keeps a list of servers.

use std::fmt;

use switchboard_config::entry::Transport;
use switchboard_config::resolve;
use switchboard_config::settings::Settings;

use crate::connectors::Connectors;
use crate::names::ServerName;
use crate::spec::ServerSpec;
use crate::status::{Refusal, ServerState};

/// All servers of a host, by name. A server that is not in here is removed.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    /// The servers to connect.
    pub servers: Vec<ServerSpec>,
    /// The servers that are configured and not started. The host's statuses contain them with the reason.
    pub withheld: Vec<WithheldServer>,
}

/// A server that is configured and not started.
#[derive(Debug, Clone)]
pub struct WithheldServer {
    /// Its name.
    pub name: ServerName,
    /// How it would be reached; `None` if its entry does not say.
    pub transport: Option<Transport>,
    /// Whether start-up would wait for it.
    pub required: bool,
    /// Why it is not started.
    pub state: ServerState,
}

/// Yields complete desired states, one after the other.
///
/// A source does not block the runtime: what reads files does so on a thread of its own, as [`crate::watch::FileSource`]
/// does.
pub trait ServerSource {
    /// Waits for the next desired state; `None` when there will be no other. It is cancelled by dropping the future.
    fn next(&mut self) -> impl Future<Output = Option<Desired>>;

    /// Receives what the state that was yielded last has changed, when the host has it. Servers may still be connecting.
    fn applied(&mut self, _changes: &[ServerChange]) {}
}

/// What a new desired state has changed about one server.
#[derive(Debug, Clone)]
pub struct ServerChange {
    /// The server.
    pub server: ServerName,
    /// What changed.
    pub kind: ChangeKind,
}

/// What changed about a server.
#[derive(Debug, Clone)]
pub enum ChangeKind {
    /// It is new, or can be started now.
    Added,
    /// What its connection depends on has changed, so it is connected anew.
    Restarted,
    /// No configuration has it any more.
    Removed,
    /// It is still configured, and no longer started.
    Withheld(ServerState),
}

impl Desired {
    /// The desired state that configured servers describe. An entry from which no connection can be made is withheld.
    pub fn of<'s>(
        servers: impl IntoIterator<Item = &'s resolve::Server>,
        settings: &Settings,
        connectors: &Connectors,
    ) -> Self {
        let mut desired = Self::default();
        for server in servers {
            let state = match ServerState::of_configured(server) {
                Some(state) => state,
                None => match connectors.spec(server, settings) {
                    Ok(spec) => {
                        desired.servers.push(spec);
                        continue;
                    }
                    Err(error) => ServerState::Refused(Refusal::Unusable(error)),
                },
            };
            desired.withheld.push(WithheldServer {
                name: server.name.as_str().into(),
                transport: server.transport(),
                required: server.effective().required == Some(true),
                state,
            });
        }
        desired
    }
}

impl From<Vec<ServerSpec>> for Desired {
    fn from(servers: Vec<ServerSpec>) -> Self {
        Self {
            servers,
            withheld: Vec::new(),
        }
    }
}

impl fmt::Display for ServerChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = switchboard_config::text::visible(self.server.as_str());
        match &self.kind {
            ChangeKind::Added => write!(formatter, "{name} is new"),
            ChangeKind::Restarted => write!(formatter, "{name} is started anew"),
            ChangeKind::Removed => write!(formatter, "{name} is gone"),
            ChangeKind::Withheld(state) => {
                let reason = state.reason().unwrap_or_default();
                write!(formatter, "{name} is {}: {reason}", state.word())
            }
        }
    }
}
