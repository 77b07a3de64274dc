//! Idle shutdown: stops servers after their idle timeout.
//!
//! An idle server has not failed: its tools stay in the catalogue, and the next use connects it again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::pending;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::{ConnectedState, ConnectionState, Manager};
use crate::catalog::ServerTools;
use crate::names::ServerName;
use crate::peer::Peer;

/// The offer of an idle server.
#[derive(Clone)]
pub(super) struct IdleOffer {
    pub(super) tools: Arc<ServerTools>,
    pub(super) instructions: Option<Arc<str>>,
}

impl IdleOffer {
    pub(super) fn of(connected: &ConnectedState) -> Self {
        let instructions = connected.peer.facts().instructions.as_deref();
        let instructions = instructions.filter(|_| !connected.tools.withholds_instructions());
        Self {
            tools: Arc::clone(&connected.tools),
            instructions: instructions.map(Arc::from),
        }
    }
}

/// Checks per idle timeout. A server is stopped late by at most one such fraction.
const LOOKS: u32 = 8;
/// Shortest interval between two checks.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

impl Connection {
    /// Waits until the connection has been idle for its server's timeout, then closes it to new requests.
    pub(super) async fn unused(&self, peer: &Peer) {
        let mut limits = self.idle_shutdown.clone();
        let mut uses = peer.uses();
        let mut since = Instant::now();
        let mut was_wanted = false;
        loop {
            let limit = *limits.borrow_and_update();
            let look = async {
                match limit {
                    Some(limit) => sleep((limit / LOOKS).max(SHORTEST_LOOK)).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = look => {}
                changed = limits.changed() => match changed {
                    Ok(()) => continue,
                    // The server was removed, and the connection goes with it.
                    Err(_) => pending().await,
                },
            }
            if let Some(clients) = &self.clients {
                clients.close_idle();
            }
            let has_clients = self.clients.as_ref().is_some_and(|it| it.is_in_use());
            let asked = peer.uses();
            // An offer that differs from its pin awaits approval, which only a live connection detects.
            let is_wanted = !self.subscriptions.borrow().is_empty()
                || self.pins_wait.load(Ordering::Acquire)
                || peer.is_in_use()
                || has_clients;
            if is_wanted || was_wanted || asked != uses {
                (uses, was_wanted) = (asked, is_wanted);
                since = Instant::now();
            } else if limit.is_some_and(|limit| since.elapsed() >= limit) && peer.retire() {
                return;
            }
        }
    }
}

impl Manager {
    /// Moves a connected server to the idle state.
    pub(super) fn rest(&mut self, name: &ServerName) {
        let Some(managed) = self.servers.get(name) else {
            return;
        };
        if let ConnectionState::Connected(connected) = &managed.state {
            let kept = IdleOffer::of(connected);
            tracing::debug!(server = %name, "stopped: idle timeout");
            self.set_state(name, ConnectionState::Resting(kept), None);
        }
    }

    /// Connects a server that waits for its first or next use; any other is left alone.
    pub(super) fn use_begins(&mut self, name: &ServerName) {
        match self.servers.get(name).map(|managed| &managed.state) {
            Some(ConnectionState::Held | ConnectionState::Lazy) => {
                self.connect(name, 0, Duration::ZERO);
            }
            // It has been connected before, so a failure is retried.
            Some(ConnectionState::Resting(_)) => self.connect(name, 1, Duration::ZERO),
            _ => {}
        }
    }
}

impl ConnectionState {
    /// The offer of a server that is not connected.
    pub(super) fn kept(&self) -> Option<&IdleOffer> {
        match self {
            Self::Resting(kept) => Some(kept),
            Self::Pending { kept, .. } => kept.as_ref(),
            _ => None,
        }
    }

    /// Drops the offer of a server that is not connected, because it is outdated; returns whether there was one.
    pub(super) fn forget_kept(&mut self) -> bool {
        match self {
            Self::Resting(_) => {
                *self = Self::Lazy;
                true
            }
            Self::Pending { kept, .. } => kept.take().is_some(),
            _ => false,
        }
    }
}
