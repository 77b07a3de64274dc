//! Live search index of a host's catalogue.
//!
//! The index is updated lazily: on a search, if the catalogue has changed since the last one. Searches run
//! concurrently; one that has to update the index blocks the others.

use std::sync::{Arc, RwLock, Weak};

use super::{Hit, Index};
use crate::catalog::Catalog;

/// The index and its catalogue; empty until the first search, because even an empty index holds all synonyms.
#[derive(Debug, Default)]
pub(crate) struct LiveIndex(RwLock<Option<IndexedCatalog>>);

#[derive(Debug, Default)]
struct IndexedCatalog {
    index: Index,
    /// Weak, so that an old catalogue can be freed; its address is not reused while this exists.
    catalog: Weak<Catalog>,
}

impl LiveIndex {
    /// Returns the tools of this catalogue that match a query best.
    pub(crate) fn search(&self, catalog: &Arc<Catalog>, query: &str, limit: usize) -> Vec<Hit> {
        if let Ok(state) = self.0.read()
            && let Some(state) = &*state
            && state.is_of(catalog)
        {
            return state.index.search(query, limit);
        }
        let mut state = self.0.write().unwrap_or_else(|poisoned| {
            // A panic during an update left a partial index.
            let mut state = poisoned.into_inner();
            *state = None;
            self.0.clear_poison();
            state
        });
        let state = state.get_or_insert_default();
        if !state.is_of(catalog) {
            state.index.update(catalog);
            state.catalog = Arc::downgrade(catalog);
        }
        state.index.search(query, limit)
    }
}

impl IndexedCatalog {
    fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        std::ptr::eq(self.catalog.as_ptr(), Arc::as_ptr(catalog))
    }
}
