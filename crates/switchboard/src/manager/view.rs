//! The snapshot everybody but the manager works from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lists::Lists;
use crate::catalog::impersonation::KnownServers;
use crate::catalog::{Catalog, ServerTools};
use crate::logs::LogRing;
use crate::names::{Generation, ServerName};
use crate::peer::Peer;
use crate::spec::ServerSpec;
use crate::status::{ServerState, ServerStatus};

/// All servers at one moment.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// How each server stands, in the order of their names.
    pub(crate) statuses: Vec<ServerStatus>,
    /// Those that are connected.
    pub(crate) live: BTreeMap<ServerName, Live>,
    /// What they offer.
    pub(crate) catalog: Arc<Catalog>,
    /// What each of them contributes to the catalogue.
    offers: Vec<Offer>,
    /// What they said.
    pub(crate) logs: BTreeMap<ServerName, Arc<LogRing>>,
    /// The servers that can be started, in the order of their names.
    pub(crate) specs: Vec<Arc<ServerSpec>>,
    /// Names of servers that were removed, for calls to them.
    pub(crate) removed: BTreeSet<ServerName>,
}

/// A connected server.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) peer: Peer,
    pub(crate) lists: Arc<Lists>,
    pub(crate) tools: Arc<ServerTools>,
    pub(crate) spec: Arc<ServerSpec>,
    pub(crate) generation: Generation,
}

/// What a server contributes: its name, its tools, and how to use them.
pub(crate) type Offer = (ServerName, Arc<ServerTools>, Option<Arc<str>>);

impl View {
    /// The next view of these servers, without those that are withheld.
    pub(crate) fn new(
        mut statuses: Vec<ServerStatus>,
        live: BTreeMap<ServerName, Live>,
        offers: Vec<Offer>,
        logs: BTreeMap<ServerName, Arc<LogRing>>,
        names: &KnownServers,
        previous: &Self,
    ) -> Self {
        // Most changes of state leave the tools as they were.
        let unchanged = offers.len() == previous.offers.len()
            && offers
                .iter()
                .zip(&previous.offers)
                .all(|((_, now, _), (_, before, _))| Arc::ptr_eq(now, before));
        let catalog = if unchanged {
            Arc::clone(&previous.catalog)
        } else {
            // A tool may not claim to be one of a server that is merely switched off, either.
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

    /// Adds the servers that are not started. Their names restrict no other server.
    pub(crate) fn add_withheld(&mut self, withheld: impl Iterator<Item = ServerStatus>) {
        self.statuses.extend(withheld);
        self.statuses
            .sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Whether a server waits to be used before it is connected.
    pub(crate) fn waits_for_use(&self, name: &ServerName) -> bool {
        self.status(name)
            .is_some_and(|status| status.state.waits_for_use())
    }

    pub(crate) fn status(&self, name: &ServerName) -> Option<&ServerStatus> {
        self.statuses.iter().find(|status| status.name == *name)
    }
}
