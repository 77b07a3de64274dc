//! What the host remembers between runs: eras, lists, and who wants a login.
//!
//! Owns the mapping from those facts to records of a [`Store`]. Nothing depends on memory: a store that fails costs
//! time, never a function, and says so in the log once.

use std::sync::Arc;
use std::time::Duration;

use switchboard_protocol::Revision;
use switchboard_store::{Clock as _, Expected, Key, Space, Store, SystemClock, Write};

use crate::catalog::ServerCatalog;
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
    pub(crate) async fn revision(&self, key: ConnectionKey) -> Option<Revision> {
        let text = self.get(ERAS, key).await?;
        std::str::from_utf8(&text).ok()?.parse().ok()
    }

    pub(crate) async fn remember_revision(&self, key: ConnectionKey, revision: Revision) {
        let write = Write::new(revision.as_str().as_bytes().to_vec());
        self.put(ERAS, key, write).await;
    }

    /// What the server listed last time.
    pub(crate) async fn catalog(&self, key: ConnectionKey) -> Option<ServerCatalog> {
        ServerCatalog::from_bytes(&self.get(CATALOGS, key).await?)
    }

    pub(crate) async fn remember_catalog(&self, key: ConnectionKey, catalog: &ServerCatalog) {
        self.put(CATALOGS, key, Write::new(catalog.to_bytes()))
            .await;
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

    async fn get(&self, space: Space, key: ConnectionKey) -> Option<bytes::Bytes> {
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
