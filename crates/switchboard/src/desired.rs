//! The desired servers of a host, including configured ones that cannot be started.
//!
//! Defines the desired state, its source, and the resulting changes. The manager reconciles its servers with it; there
//! is no other list of servers.

use std::fmt;

use switchboard_config::entry::Transport;
use switchboard_config::resolve;
use switchboard_config::settings::Settings;

use crate::connectors::Connectors;
use crate::names::ServerName;
use crate::spec::ServerSpec;
use crate::status::{Refusal, ServerState};

/// All servers of a host, by name. Servers missing here are removed.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    /// The servers to connect.
    pub servers: Vec<ServerSpec>,
    /// Configured servers that are not started. They appear in the host's statuses with the reason.
    pub withheld: Vec<WithheldServer>,
}

/// A configured server that is not started.
#[derive(Debug, Clone)]
pub struct WithheldServer {
    /// Its name.
    pub name: ServerName,
    /// Its transport; `None` if its entry does not specify one.
    pub transport: Option<Transport>,
    /// Whether start-up would wait for it.
    pub required: bool,
    /// Its state, with the reason.
    pub state: ServerState,
}

/// Yields complete desired states, one after the other.
///
/// A source must not block the runtime: file access belongs on a separate thread, as in [`crate::watch::FileSource`].
pub trait ServerSource {
    /// Waits for the next desired state; `None` if there are no more. Cancelled by dropping the future.
    fn next(&mut self) -> impl Future<Output = Option<Desired>>;

    /// Receives the changes after the host has applied the last state. Servers may still be connecting.
    fn applied(&mut self, _changes: &[ServerChange]) {}
}

/// The change of one server by a new desired state.
#[derive(Debug, Clone)]
pub struct ServerChange {
    /// The server.
    pub server: ServerName,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// The kind of change of a server.
#[derive(Debug, Clone)]
pub enum ChangeKind {
    /// New, or can be started now.
    Added,
    /// Its connection settings have changed, so it is reconnected.
    Restarted,
    /// No longer configured.
    Removed,
    /// Still configured, but no longer started.
    Withheld(ServerState),
}

impl Desired {
    /// The desired state of configured servers. Entries without a usable connector are withheld.
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
            ChangeKind::Restarted => write!(formatter, "{name} is restarted"),
            ChangeKind::Removed => write!(formatter, "{name} is gone"),
            ChangeKind::Withheld(state) => {
                let reason = state.reason().unwrap_or_default();
                write!(formatter, "{name} is {}: {reason}", state.word())
            }
        }
    }
}
