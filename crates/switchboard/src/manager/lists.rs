//! What a connected server has listed, kept as long as it may be.
//!
//! One per connection, so that a reconnect drops everything. A fetch that began before the list was known to
//! have changed never overwrites what came after.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_store::Revision;
use tokio::time::Instant;

use crate::json::SharedJson;
use crate::peer::{ListKind, PageLimits, Pages, Peer, RequestError};
use crate::pins::ContentKind;

/// The lists of one connection.
#[derive(Debug)]
pub(crate) struct Lists {
    peer: Peer,
    /// How long a list is believed when the server does not say.
    time_to_live: Duration,
    slots: Mutex<HashMap<ListKind, Slot>>,
    compared: Mutex<HashMap<ContentKind, Compared>>,
}

/// A list of prompts or templates that was compared with its pins.
#[derive(Debug)]
struct Compared {
    /// The list as the server sent it.
    listed: Arc<Pages>,
    /// Which write the pins came from.
    revision: Revision,
    /// The list without what is withheld.
    admitted: Arc<Pages>,
}

#[derive(Debug, Default)]
struct Slot {
    kept: Option<Kept>,
    /// How often the list was known to have changed.
    version: u64,
}

#[derive(Debug)]
struct Kept {
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

    /// The list, from memory while it is fresh.
    pub(crate) async fn get(
        &self,
        kind: ListKind,
        deadline: Duration,
    ) -> Result<Arc<Pages>, RequestError> {
        if let Some(kept) = self.fresh(kind) {
            return Ok(kept);
        }
        self.fetch(kind, deadline, |_| None).await
    }

    /// The list, from the server. Each page is read as it comes, as [`Peer::list_reading`] says.
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
            slot.kept = Some(Kept {
                pages: Arc::clone(&pages),
                until: Instant::now() + time_to_live,
            });
        }
        Ok(pages)
    }

    /// What came of comparing this very list with pins of this revision, if that was done before.
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

    /// Keeps what came of a comparison. Without a revision nothing is kept: the next use compares again.
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

    /// Notes that the list has changed. Templates change with the resources.
    pub(crate) fn changed(&self, kind: ListKind) {
        let mut slots = self.slots();
        let mut drop_list = |kind| {
            let slot: &mut Slot = slots.entry(kind).or_default();
            slot.version += 1;
            slot.kept = None;
        };
        drop_list(kind);
        if kind == ListKind::Resources {
            drop_list(ListKind::Templates);
        }
    }

    /// When the list goes stale, if it is kept.
    pub(crate) fn fresh_until(&self, kind: ListKind) -> Option<Instant> {
        let slots = self.slots();
        let kept = slots.get(&kind)?.kept.as_ref()?;
        Some(kept.until)
    }

    fn fresh(&self, kind: ListKind) -> Option<Arc<Pages>> {
        let slots = self.slots();
        let kept = slots.get(&kind)?.kept.as_ref()?;
        (Instant::now() < kept.until).then(|| Arc::clone(&kept.pages))
    }

    /// Whether the server has such a list, or did not say.
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
