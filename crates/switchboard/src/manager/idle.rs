//! Servers that nobody uses: when one has rested long enough to be ended, and what of it stays.
//!
//! A server that is ended for want of use is no failure: its tools stay in the catalogue, and the next use connects it.

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

/// What a server that rests still offers.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) tools: Arc<ServerTools>,
    pub(super) instructions: Option<Arc<str>>,
}

impl Kept {
    pub(super) fn of(connected: &ConnectedState) -> Self {
        let instructions = connected.peer.facts().instructions.as_deref();
        let shown = instructions.filter(|_| !connected.tools.withholds_instructions());
        Self {
            tools: Arc::clone(&connected.tools),
            instructions: shown.map(Arc::from),
        }
    }
}

/// How many looks are taken within the time that a server may rest. It rests longer by one part at most.
const LOOKS: u32 = 8;
/// The least time between two looks.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

impl Connection {
    /// Waits until nobody has used the connection for as long as its server may rest, and closes it to requests.
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
                    // The server is gone, and the connection with it.
                    Err(_) => pending().await,
                },
            }
            let asked = peer.uses();
            // What differs from its pin waits for an approval, which only a connection notices.
            let is_wanted = !self.subscriptions.borrow().is_empty()
                || self.pins_wait.load(Ordering::Acquire)
                || peer.is_in_use();
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
    /// Lets a server rest that nobody uses.
    pub(super) fn rest(&mut self, name: &ServerName) {
        let Some(managed) = self.servers.get(name) else {
            return;
        };
        if let ConnectionState::Connected(connected) = &managed.state {
            let kept = Kept::of(connected);
            tracing::debug!(server = %name, "ended, because nobody uses it");
            self.set_state(name, ConnectionState::Resting(kept), None);
        }
    }

    /// Connects a server that waits for its use; any other is left alone.
    pub(super) fn use_begins(&mut self, name: &ServerName) {
        match self.servers.get(name).map(|managed| &managed.state) {
            Some(ConnectionState::Held | ConnectionState::Lazy) => {
                self.connect(name, 0, Duration::ZERO);
            }
            // It was there before, so it is tried again if that fails.
            Some(ConnectionState::Resting(_)) => self.connect(name, 1, Duration::ZERO),
            _ => {}
        }
    }
}

impl ConnectionState {
    /// What is offered though there is no connection.
    pub(super) fn kept(&self) -> Option<&Kept> {
        match self {
            Self::Resting(kept) => Some(kept),
            Self::Pending { kept, .. } => kept.as_ref(),
            _ => None,
        }
    }

    /// Drops what is offered without a connection, because it no longer holds; whether there was any.
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
