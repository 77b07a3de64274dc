//! What a server's record comes to: whether it is wanted, how it stands, what it offers. It changes nothing.

use std::sync::Arc;

use super::idle::Kept;
use super::view::Offer;
use super::{ConnectionState, Managed, login};
use crate::catalog::ToolCount;
use crate::names::ServerName;
use crate::spec::{ServerSpec, Start};
use crate::status::{ServerStatus, State};

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
            transport: connected.map_or_else(
                || self.spec.connector.transport(),
                |connected| connected.peer.facts().transport,
            ),
            state: self.state.kind(),
            since: self.since,
            required: self.spec.required,
            is_lazy: matches!(
                self.state,
                ConnectionState::Lazy | ConnectionState::Resting(_)
            ),
            is_resting: matches!(self.state, ConnectionState::Resting(_)),
            revision: connected.map(|connected| connected.peer.revision()),
            tools: tools.map_or(0, |tools| tools.tools().len()),
            count: tools.map_or_else(ToolCount::default, |tools| tools.count()),
            restarts: self.restarts,
            latency: connected.map(|connected| connected.latency),
            startup: connected.map(|connected| connected.startup),
            process: connected.and_then(|connected| connected.peer.process()),
            failure: self.failure.clone(),
            failed_attempts: if connected.is_some() {
                0
            } else {
                self.attempts
            },
            is_installing: self.is_installing && self.state.kind() == State::Pending,
        }
    }
}

impl ConnectionState {
    pub(super) fn needs_auth(name: &ServerName) -> Self {
        Self::NeedsAuth(Arc::new(login::tools(name)))
    }

    /// What the state contributes to the catalogue.
    pub(super) fn offer(&self, name: &ServerName) -> Option<Offer> {
        let Kept {
            tools,
            instructions,
        } = match self {
            Self::Connected(connected) => Kept::of(connected),
            Self::NeedsAuth(tools) => Kept {
                tools: Arc::clone(tools),
                instructions: None,
            },
            state => state.kept()?.clone(),
        };
        Some((name.clone(), tools, instructions))
    }

    pub(super) fn kind(&self) -> State {
        match self {
            Self::Lazy | Self::Resting(_) | Self::Pending { .. } => State::Pending,
            Self::Connected(_) => State::Connected,
            Self::Failed => State::Failed,
            Self::NeedsAuth(_) => State::NeedsAuth,
            Self::Disabled => State::Disabled,
        }
    }
}

/// Whether a server is connected before it is used: what start-up waits for cannot wait for its first use.
pub(super) fn is_eager(spec: &ServerSpec) -> bool {
    spec.start == Start::Eager || spec.required
}
