//! Derives read-only summaries of a server's record: enabled, status, offer.

use std::sync::Arc;
use std::time::SystemTime;

use super::idle::IdleOffer;
use super::view::Offer;
use super::{ConnectionState, Managed, login};
use crate::catalog::ToolCount;
use crate::desired::WithheldServer;
use crate::names::ServerName;
use crate::spec::{ServerSpec, Start};
use crate::status::{DisabledBy, Failure, ServerState, ServerStatus, StartsOn};

impl Managed {
    pub(super) fn is_enabled(&self) -> bool {
        self.switched.unwrap_or(self.spec.enabled)
    }

    pub(super) fn status(&self) -> ServerStatus {
        let connected = match &self.state {
            ConnectionState::Connected(connected) => Some(connected),
            _ => None,
        };
        let tools = match &self.state {
            ConnectionState::Connected(connected) => Some(&connected.tools),
            state => state.kept().map(|kept| &kept.tools),
        };
        ServerStatus {
            name: self.spec.name.clone(),
            transport: Some(connected.map_or_else(
                || self.spec.connector.transport(),
                |connected| connected.peer.facts().transport,
            )),
            state: self.server_state(),
            since: self.since,
            required: self.spec.required,
            revision: connected.map(|connected| connected.peer.revision()),
            tools: tools.map_or(0, |tools| tools.tools().len()),
            count: tools.map_or_else(ToolCount::default, |tools| tools.count()),
            restarts: self.restarts,
            latency: connected.map(|connected| connected.latency),
            startup: connected.map(|connected| connected.startup),
            process: connected.and_then(|connected| connected.peer.process()),
        }
    }

    /// The state as published to the rest of the host.
    pub(super) fn server_state(&self) -> ServerState {
        match &self.state {
            ConnectionState::Held => ServerState::Lazy {
                until: StartsOn::Request,
            },
            ConnectionState::Lazy => ServerState::Lazy {
                until: StartsOn::FirstUse,
            },
            ConnectionState::Resting(_) => ServerState::Idle,
            ConnectionState::Pending { .. } => ServerState::Pending {
                failure: self.failure.clone(),
                failed_attempts: self.attempts,
                is_installing: self.is_installing,
            },
            ConnectionState::Connected(_) => ServerState::Connected,
            ConnectionState::Failed => ServerState::Failed {
                failure: self
                    .failure
                    .clone()
                    .unwrap_or_else(|| Box::new(Failure::unexplained())),
            },
            ConnectionState::NeedsAuth(_) => ServerState::NeedsAuth {
                failure: self.failure.clone(),
            },
            ConnectionState::Disabled => ServerState::Disabled {
                by: match self.switched {
                    Some(_) => DisabledBy::Session,
                    None => DisabledBy::Entry,
                },
            },
        }
    }
}

impl ConnectionState {
    pub(super) fn needs_auth(name: &ServerName) -> Self {
        Self::NeedsAuth(Arc::new(login::tools(name)))
    }

    /// The server's contribution to the catalogue.
    pub(super) fn offer(&self, name: &ServerName) -> Option<Offer> {
        let IdleOffer {
            tools,
            instructions,
        } = match self {
            Self::Connected(connected) => IdleOffer::of(connected),
            Self::NeedsAuth(tools) => IdleOffer {
                tools: Arc::clone(tools),
                instructions: None,
            },
            state => state.kept()?.clone(),
        };
        Some((name.clone(), tools, instructions))
    }
}

/// The status of a server that is not started.
pub(super) fn withheld(server: &WithheldServer, since: SystemTime) -> ServerStatus {
    ServerStatus {
        name: server.name.clone(),
        transport: server.transport,
        state: server.state.clone(),
        since,
        required: server.required,
        revision: None,
        tools: 0,
        count: ToolCount::default(),
        restarts: 0,
        latency: None,
        startup: None,
        process: None,
    }
}

/// Whether a server is connected before its first use, as required of servers that startup waits for.
pub(super) fn is_eager(spec: &ServerSpec) -> bool {
    spec.start == Start::Eager || spec.required
}
