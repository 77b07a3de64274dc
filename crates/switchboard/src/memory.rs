//! What the host remembers between runs: eras, lists, and who wants a login.
//!
//! Owns the mapping from those facts to records of a [`Store`]. Nothing depends on memory: a store that fails costs
//! time, never a function, and says so in the log once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_protocol::Revision as ProtocolRevision;
use switchboard_store::{Clock as _, Expected, Key, Revision, Space, Store, SystemClock, Write};

use crate::pins::{self, Judgement, Listing, PINS};
use crate::remembered::Remembered;
use crate::spec::ConnectionKey;

/// Facts about servers, kept under what their links depend on.
#[derive(Debug, Clone)]
pub(crate) struct Memory(Arc<dyn Store>);

const ERAS: Space = Space::new("eras");
/// What servers listed.
pub(crate) const CATALOGS: Space = Space::new("catalogs");
const NEEDS_AUTH: Space = Space::new("needs-auth");

impl Memory {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// The revision that was spoken last time.
    pub(crate) async fn revision(&self, key: ConnectionKey) -> Option<ProtocolRevision> {
        let text = self.get(ERAS, key).await?;
        std::str::from_utf8(&text).ok()?.parse().ok()
    }

    pub(crate) async fn remember_revision(&self, key: ConnectionKey, revision: ProtocolRevision) {
        let write = Write::new(revision.as_str().as_bytes().to_vec());
        self.put(ERAS, key, write).await;
    }

    /// Forgets which revision was spoken, so that the server is asked anew.
    pub(crate) async fn forget_revision(&self, key: ConnectionKey) {
        let Ok(key) = Key::new(key.to_hex()) else {
            return;
        };
        if let Err(error) = self.0.remove(ERAS, &key, Expected::Anything).await {
            tracing::warn!(%error, "failed to remove a cache record");
        }
    }

    /// What the server listed last time, and what is pinned of it.
    pub(crate) async fn catalog(&self, key: ConnectionKey, identity: ConnectionKey) -> Remembered {
        Remembered::new(
            self.get(CATALOGS, key).await,
            self.get(PINS, identity).await,
        )
    }

    pub(crate) async fn remember_catalog(&self, key: ConnectionKey, catalog: Bytes) {
        self.put(CATALOGS, key, Write::new(catalog)).await;
    }

    /// Compares what a server lists with its pins, and pins what is new.
    pub(crate) async fn compare(&self, identity: ConnectionKey, listing: Listing<'_>) -> Judgement {
        pins::compare(&*self.0, identity, listing).await
    }

    /// Which write a server's pins come from; `None` if there are none, or if that cannot be told.
    pub(crate) async fn pins_revision(&self, identity: ConnectionKey) -> Option<Revision> {
        let revision = pins::revision(&*self.0, identity).await;
        revision.ok().flatten()
    }

    /// Whether the server is known to want a login; `None` where that cannot be told.
    pub(crate) async fn needs_auth(&self, key: ConnectionKey) -> Option<bool> {
        let key = Key::new(key.to_hex()).ok()?;
        match self.0.get(NEEDS_AUTH, &key).await {
            Ok(record) => Some(record.is_some()),
            Err(error) => {
                tracing::warn!(%error, "what is remembered could not be read");
                None
            }
        }
    }

    /// Remembers that the server wants a login; whether it is remembered now.
    pub(crate) async fn remember_needs_auth(&self, key: ConnectionKey, duration: Duration) -> bool {
        let until = SystemClock.now().after(duration);
        let write = Write::new(Vec::new()).expires_at(until);
        self.put(NEEDS_AUTH, key, write).await
    }

    pub(crate) async fn forget_needs_auth(&self, key: ConnectionKey) {
        let Ok(key) = Key::new(key.to_hex()) else {
            return;
        };
        let removed = self.0.remove(NEEDS_AUTH, &key, Expected::Anything).await;
        if let Err(error) = removed {
            tracing::warn!(%error, "what is remembered of a login could not be dropped");
        }
    }

    async fn get(&self, space: Space, key: ConnectionKey) -> Option<Bytes> {
        let key = Key::new(key.to_hex()).ok()?;
        match self.0.get(space, &key).await {
            Ok(record) => Some(record?.value),
            Err(error) => {
                tracing::warn!(%error, "what is remembered could not be read");
                None
            }
        }
    }

    async fn put(&self, space: Space, key: ConnectionKey, write: Write) -> bool {
        let Ok(key) = Key::new(key.to_hex()) else {
            return false;
        };
        let put = self.0.put(space, &key, write).await;
        if let Err(error) = &put {
            tracing::warn!(%error, "something could not be remembered");
        }
        put.is_ok()
    }
}
