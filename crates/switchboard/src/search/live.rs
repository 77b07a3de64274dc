//! The index that a host keeps of its catalogue.
//!
//! Owns when the index is brought up to date: when somebody searches, and the catalogue is not the one of last time.
//! Searches run side by side; one that finds the catalogue changed makes the others wait for as long as that takes.

use std::sync::{Arc, RwLock, Weak};

use super::{Hit, Index};
use crate::catalog::Catalog;

/// An index and the catalogue it is of; nothing until somebody searches, because even an empty index knows all synonyms.
#[derive(Debug, Default)]
pub(crate) struct LiveIndex(RwLock<Option<IndexedCatalog>>);

#[derive(Debug, Default)]
struct IndexedCatalog {
    index: Index,
    /// Weak, so that an old catalogue can go; its address is not used again as long as this is here.
    catalog: Weak<Catalog>,
}

impl LiveIndex {
    /// The tools of this catalogue that answer a question best.
    pub(crate) fn search(&self, catalog: &Arc<Catalog>, query: &str, limit: usize) -> Vec<Hit> {
        if let Ok(state) = self.0.read()
            && let Some(state) = &*state
            && state.is_of(catalog)
        {
            return state.index.search(query, limit);
        }
        let mut state = self.0.write().unwrap_or_else(|poisoned| {
            // An update that did not come to its end has left half an index behind.
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
