//! Computes a server's offer: its tools, filtered by the current rules and pins.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use switchboard_config::entry::Transport;
use switchboard_protocol::Era;

use super::super::Report;
use super::super::lists::Lists;
use super::{Connection, Signals};
use crate::catalog::suspicion;
use crate::catalog::{
    ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolReader, ToolRules,
};
use crate::events::Event;
use crate::host::server_tools;
use crate::json::SharedJson;
use crate::names::WireName;
use crate::peer::{ListKind, Pages, Peer, RequestError};
use crate::pins::{Judgement, Listing};

impl Connection {
    /// Fetches the list of tools and caches it.
    pub(super) async fn fetch_tools(
        &self,
        peer: &Peer,
        lists: &Lists,
    ) -> Result<Arc<ServerTools>, RequestError> {
        let rules = self.rules.borrow().clone();
        let limits = ListLimits::default();
        let (name, reach) = (&self.spec.name, reach(peer));
        let mut reader = ToolReader::new(name, &rules, reach, Provenance::Live, limits);
        let read = |page: &SharedJson| reader.page(page);
        let pages = lists
            .fetch(ListKind::Tools, self.settings.list_timeout, read)
            .await?;
        let tools = reader.finish();
        let (bytes, tools) = self.offered(peer, &pages, Some((tools, rules))).await;
        self.memory.remember_catalog(self.spec.key, bytes).await;
        Ok(tools)
    }

    /// Applies the current rules and pins to a list of tools. Every offer is made here, so nothing is offered that was
    /// not compared. The first part of the result is the list to be cached.
    ///
    /// Tools already `read` are used as they are, unless the rules have changed since.
    async fn offered(
        &self,
        peer: &Peer,
        pages: &Pages,
        read: Option<(ServerTools, ToolRules)>,
    ) -> (Bytes, Arc<ServerTools>) {
        let facts = peer.facts();
        let catalog = ServerCatalog {
            tools: pages.pages.clone(),
            instructions: facts.instructions.clone(),
            ..ServerCatalog::default()
        };
        if let Some(cut) = &pages.cut {
            tracing::warn!(server = %self.spec.name, cut, "the list of tools is incomplete");
        }
        let reach = reach(peer);
        let rules = self.rules.borrow().clone();
        let tools = match read {
            Some((tools, by)) if by == rules => tools,
            _ => server_tools(&self.spec.name, &rules, &catalog, reach, Provenance::Live),
        };
        let bytes = catalog.to_record();
        if !rules.pins() {
            self.pins_wait.store(false, Ordering::Release);
            return (bytes, self.to_be_examined(tools));
        }
        let listing = Listing {
            server: &self.spec.name,
            tools: &tools,
            instructions: facts.instructions.as_deref(),
            bytes: &bytes,
            reach,
        };
        let policy = self.settings.pins;
        let judgement = self
            .memory
            .compare(self.spec.identity, listing, policy)
            .await;
        let tools = judgement.apply(tools);
        self.tell_of_pins(judgement);
        (bytes, self.to_be_examined(tools))
    }

    /// Reports new and differing items, once per difference.
    fn tell_of_pins(&self, judgement: Judgement) {
        self.pins_wait.store(judgement.waits(), Ordering::Release);
        let server = || self.spec.name.clone();
        if !judgement.added.is_empty() {
            self.events.send(Event::ToolsPinned {
                server: server(),
                tools: judgement.added.clone(),
            });
        }
        let judgement = Judgement {
            added: Vec::new(),
            ..judgement
        };
        let mut last = self.pins_told();
        let revision = judgement.revision;
        let is_news = Judgement {
            revision,
            ..last.clone()
        } != judgement;
        if is_news && judgement.waits() {
            let changed = judgement.changed.iter().map(|(name, _)| name.clone());
            let renamed = judgement.renamed.iter().map(|(name, _)| name.clone());
            let mut tools: Vec<WireName> = changed.chain(renamed).collect();
            tools.sort();
            tracing::warn!(server = %self.spec.name, tools = tools.len(), "something differs from its pin and is withheld");
            self.events.send(Event::PinsDiffer {
                server: server(),
                tools,
                instructions: judgement.instructions_changed,
            });
        }
        *last = judgement;
    }

    fn to_be_examined(&self, tools: ServerTools) -> Arc<ServerTools> {
        let tools = Arc::new(tools);
        *self.unexamined() = Some(Arc::clone(&tools));
        tools
    }

    /// Reports suspicious tools if events have a subscriber. Runs in the background, since it takes time.
    pub(super) fn examine(&self, peer: &Peer) {
        let Some(tools) = self.unexamined().take() else {
            return;
        };
        if !self.events.has_listeners() {
            return;
        }
        let (server, events) = (self.spec.name.clone(), self.events.clone());
        let instructions = peer.facts().instructions.clone();
        tokio::task::spawn_blocking(move || {
            let of_tools = tools
                .tools()
                .iter()
                .map(|tool| (Some(tool.reference().tool.clone()), tools.flags(tool)));
            let instructions = instructions.unwrap_or_default();
            let of_instructions = suspicion::of_text("instructions", &instructions);
            let found: Vec<_> = of_tools
                .chain([(None, of_instructions)])
                .filter(|(_, flags)| !flags.is_empty())
                .collect();
            if !found.is_empty() {
                events.send(Event::Suspicious { server, found });
            }
        });
    }

    pub(super) fn unexamined(&self) -> MutexGuard<'_, Option<Arc<ServerTools>>> {
        self.unexamined
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies changed rules to the list, which is fetched again only if stale.
    pub(super) async fn apply_rules(&self, peer: &Peer, lists: &Arc<Lists>) {
        match lists.get(ListKind::Tools, self.settings.list_timeout).await {
            Ok(pages) => {
                let (_, tools) = self.offered(peer, &pages, None).await;
                let waiting = Vec::new();
                self.report(Report::Tools { tools, waiting }).await;
            }
            Err(error) => {
                tracing::warn!(server = %self.spec.name, error = %self.spec.redactor.redact(&error.to_string()), "cannot refresh the list of tools");
            }
        }
    }

    /// Lists the tools, for callers that wait for them and for change notifications.
    pub(super) async fn list_again(&self, peer: &Peer, lists: &Arc<Lists>) {
        Signals::take(&self.signals.tools);
        let waiting = std::mem::take(&mut *self.signals.listing());
        lists.changed(ListKind::Tools);
        match self.fetch_tools(peer, lists).await {
            Ok(tools) => self.report(Report::Tools { tools, waiting }).await,
            Err(error) => {
                // The old list stays: outdated tools are better than none.
                tracing::warn!(server = %self.spec.name, error = %self.spec.redactor.redact(&error.to_string()), "cannot refresh the list of tools");
            }
        }
    }

    pub(super) fn pins_told(&self) -> MutexGuard<'_, Judgement> {
        self.pins_told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn reach(peer: &Peer) -> Reach {
    let facts = peer.facts();
    match (facts.transport, facts.revision.era()) {
        (Transport::Http, Era::Stateless) => Reach::StatelessHttp,
        _ => Reach::Other,
    }
}
