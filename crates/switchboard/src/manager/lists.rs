//! Cache of the lists that a connected server returned.
//!
//! One per connection, so that a reconnect drops everything. A fetch that started before a change notification never
//! overwrites a later one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_store::Revision;
use tokio::time::Instant;

use crate::json::SharedJson;
use crate::peer::{ListKind, PageLimits, Pages, Peer, RequestError};
use crate::pins::ContentKind;

#[derive(Debug)]
pub(crate) struct Lists {
    peer: Peer,
    /// Lifetime of a list without a cache hint from the server.
    time_to_live: Duration,
    slots: Mutex<HashMap<ListKind, Slot>>,
    compared: Mutex<HashMap<ContentKind, Compared>>,
}

/// A list of prompts or templates after comparison with its pins.
#[derive(Debug)]
struct Compared {
    /// The list as the server sent it.
    listed: Arc<Pages>,
    /// Revision of the pins compared with.
    revision: Revision,
    /// The list without withheld items.
    admitted: Arc<Pages>,
}

#[derive(Debug, Default)]
struct Slot {
    cached: Option<CachedList>,
    /// Incremented on each change notification.
    version: u64,
}

#[derive(Debug)]
struct CachedList {
    pages: Arc<Pages>,
    until: Instant,
}

impl Lists {
    pub(crate) fn new(peer: Peer, time_to_live: Duration) -> Self {
        Self {
            peer,
            time_to_live,
            slots: Mutex::default(),
            compared: Mutex::default(),
        }
    }

    /// Returns the list from the cache while it is fresh, else fetches it.
    pub(crate) async fn get(
        &self,
        kind: ListKind,
        deadline: Duration,
    ) -> Result<Arc<Pages>, RequestError> {
        if let Some(cached) = self.fresh(kind) {
            return Ok(cached);
        }
        self.fetch(kind, deadline, |_| None).await
    }

    /// Fetches the list from the server. `read` is called for each page as described at [`Peer::list_reading`].
    pub(crate) async fn fetch(
        &self,
        kind: ListKind,
        deadline: Duration,
        read: impl FnMut(&SharedJson) -> Option<SharedJson>,
    ) -> Result<Arc<Pages>, RequestError> {
        let version = self.slots().entry(kind).or_default().version;
        if !self.is_offered(kind) {
            return Ok(Arc::default());
        }
        let pages = self
            .peer
            .list_reading(kind, PageLimits::default(), deadline, read)
            .await?;
        let time_to_live = pages
            .hint
            .map_or(self.time_to_live, |hint| hint.time_to_live);
        let pages = Arc::new(pages);
        let mut slots = self.slots();
        let slot = slots.entry(kind).or_default();
        if slot.version == version {
            slot.cached = Some(CachedList {
                pages: Arc::clone(&pages),
                until: Instant::now() + time_to_live,
            });
        }
        Ok(pages)
    }

    /// The cached result of comparing this very list with pins of this revision.
    pub(crate) fn compared(
        &self,
        kind: ContentKind,
        listed: &Arc<Pages>,
        revision: Option<Revision>,
    ) -> Option<Arc<Pages>> {
        let compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compared.get(&kind)?;
        let is_same = Arc::ptr_eq(&known.listed, listed) && Some(known.revision) == revision;
        is_same.then(|| Arc::clone(&known.admitted))
    }

    /// Caches the result of a comparison. Without a revision nothing is cached, and the next use compares again.
    pub(crate) fn set_compared(
        &self,
        kind: ContentKind,
        listed: &Arc<Pages>,
        revision: Option<Revision>,
        admitted: &Arc<Pages>,
    ) {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        match revision {
            None => compared.remove(&kind),
            Some(revision) => compared.insert(
                kind,
                Compared {
                    listed: Arc::clone(listed),
                    revision,
                    admitted: Arc::clone(admitted),
                },
            ),
        };
    }

    /// Invalidates the list. Templates change together with the resources.
    pub(crate) fn changed(&self, kind: ListKind) {
        let mut slots = self.slots();
        let mut drop_list = |kind| {
            let slot: &mut Slot = slots.entry(kind).or_default();
            slot.version += 1;
            slot.cached = None;
        };
        drop_list(kind);
        if kind == ListKind::Resources {
            drop_list(ListKind::Templates);
        }
    }

    /// Time at which the cached list goes stale; `None` if it is not cached.
    pub(crate) fn fresh_until(&self, kind: ListKind) -> Option<Instant> {
        let slots = self.slots();
        let cached = slots.get(&kind)?.cached.as_ref()?;
        Some(cached.until)
    }

    fn fresh(&self, kind: ListKind) -> Option<Arc<Pages>> {
        let slots = self.slots();
        let cached = slots.get(&kind)?.cached.as_ref()?;
        (Instant::now() < cached.until).then(|| Arc::clone(&cached.pages))
    }

    /// Whether the server offers this list, or did not declare its capabilities.
    fn is_offered(&self, kind: ListKind) -> bool {
        let Some(capabilities) = &self.peer.facts().capabilities else {
            return true;
        };
        match kind {
            ListKind::Tools => capabilities.offers_tools(),
            ListKind::Prompts => capabilities.offers_prompts(),
            ListKind::Resources | ListKind::Templates => capabilities.offers_resources(),
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<ListKind, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
