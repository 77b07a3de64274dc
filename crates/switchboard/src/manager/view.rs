//! Snapshot of all servers, published by the manager.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lists::Lists;
use crate::caller::Caller;
use crate::catalog::impersonation::KnownServers;
use crate::catalog::{Catalog, ServerTools};
use crate::logs::LogRing;
use crate::names::{Generation, ServerName};
use crate::peer::{Peer, RequestError};
use crate::sharing::ClientConnections;
use crate::spec::ServerSpec;
use crate::status::{ServerState, ServerStatus};

#[derive(Debug, Default)]
pub(crate) struct View {
    /// Status of each server, ordered by name.
    pub(crate) statuses: Vec<ServerStatus>,
    /// Connected servers.
    pub(crate) live: BTreeMap<ServerName, Live>,
    pub(crate) catalog: Arc<Catalog>,
    /// Contribution of each server to the catalogue.
    offers: Vec<Offer>,
    pub(crate) logs: BTreeMap<ServerName, Arc<LogRing>>,
    /// Servers that can be started, ordered by name.
    pub(crate) specs: Vec<Arc<ServerSpec>>,
    /// Names of removed servers, for the error of calls to them.
    pub(crate) removed: BTreeSet<ServerName>,
}

#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) peer: Peer,
    pub(crate) lists: Arc<Lists>,
    pub(crate) tools: Arc<ServerTools>,
    pub(crate) spec: Arc<ServerSpec>,
    /// Connections of single clients; `None` if the host has one client.
    pub(crate) clients: Option<Arc<ClientConnections>>,
    pub(crate) generation: Generation,
}

impl Live {
    /// The connection for a request: that of the client, if the server is bound to its clients.
    pub(crate) async fn peer_for(
        &self,
        caller: Option<&Arc<Caller>>,
    ) -> Result<Cow<'_, Peer>, RequestError> {
        match (&self.clients, caller) {
            (Some(clients), Some(caller)) if clients.is_bound() => {
                // Boxed: this rare path must not enlarge the future of every call.
                Box::pin(clients.of(caller)).await.map(Cow::Owned)
            }
            _ => Ok(Cow::Borrowed(&self.peer)),
        }
    }
}

/// Contribution of a server: name, tools, and usage instructions.
pub(crate) type Offer = (ServerName, Arc<ServerTools>, Option<Arc<str>>);

impl View {
    /// Builds the next view from these servers, without withheld ones.
    pub(crate) fn new(
        mut statuses: Vec<ServerStatus>,
        live: BTreeMap<ServerName, Live>,
        offers: Vec<Offer>,
        logs: BTreeMap<ServerName, Arc<LogRing>>,
        names: &KnownServers,
        previous: &Self,
    ) -> Self {
        // Most state changes leave the tools unchanged.
        let unchanged = offers.len() == previous.offers.len()
            && offers
                .iter()
                .zip(&previous.offers)
                .all(|((_, now, _), (_, before, _))| Arc::ptr_eq(now, before));
        let catalog = if unchanged {
            Arc::clone(&previous.catalog)
        } else {
            // A tool must not be confusable with a disabled server either.
            let mut known = names.clone();
            for status in &statuses {
                let _ = known.add(&status.name);
            }
            Arc::new(Catalog::assemble(&known, offers.iter().cloned()))
        };
        for status in &mut statuses {
            let offered = catalog.server(status.name.as_str());
            let is_own = !matches!(status.state, ServerState::NeedsAuth { .. });
            if let Some(server) = offered.filter(|_| is_own) {
                status.count = server.count();
                status.tools = status.count.offered;
            }
        }
        Self {
            statuses,
            live,
            catalog,
            offers,
            logs,
            specs: Vec::new(),
            removed: BTreeSet::new(),
        }
    }

    /// Adds servers that are not started. Their names restrict no other server.
    pub(crate) fn add_withheld(&mut self, withheld: impl Iterator<Item = ServerStatus>) {
        self.statuses.extend(withheld);
        self.statuses
            .sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Whether a server is connected only on its first or next use.
    pub(crate) fn waits_for_use(&self, name: &ServerName) -> bool {
        self.status(name)
            .is_some_and(|status| status.state.waits_for_use())
    }

    pub(crate) fn status(&self, name: &ServerName) -> Option<&ServerStatus> {
        self.statuses.iter().find(|status| status.name == *name)
    }
}
