//! Stores protocol revisions, lists, pins and required logins between runs.
//!
//! Maps them to records of a [`Store`]. For caches, a failing store costs time but no function. Pins are not a cache:
//! if they cannot be read or written, the definitions they protect are withheld.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_protocol::Revision as ProtocolRevision;
use switchboard_store::{
    Clock as _, Expected, Key, Revision, Space, Store, StoreError, SystemClock, Write,
};

use crate::peer::Pages;
use crate::pins::{self, ContentKind, Judgement, Listing, PINS, PinPolicy};
use crate::remembered::{Outline, Remembered, list_keys, pin_keys};
use crate::spec::{ConnectionKey, ServerIdentity, ServerSpec};

/// Records about servers, keyed by connection key or identity.
#[derive(Debug, Clone)]
pub(crate) struct Memory(Arc<dyn Store>);

pub(crate) const ERAS: Space = Space::new("eras");
/// Cached lists.
pub(crate) const CATALOGS: Space = Space::new("catalogs");
pub(crate) const NEEDS_AUTH: Space = Space::new("needs-auth");

/// Servers that asked something outside of calls, so that each client gets a connection of its own.
const BOUND: Space = Space::new("bound");
/// The first resources of servers.
pub(crate) const RESOURCES: Space = Space::new("resources");
/// Most cached resources of a server.
const MAX_CACHED_RESOURCES: usize = 500;
/// Maximum size of the cached resources of a server.
const MAX_CACHED_RESOURCE_BYTES: usize = 256 * 1024;

#[derive(Deserialize)]
struct ResourcePage<'p> {
    #[serde(borrow)]
    resources: Vec<&'p RawValue>,
}

/// The key of a server's cached resources.
pub(crate) fn resources_key(key: ConnectionKey) -> Option<Key> {
    Key::new(key.to_hex()).ok()
}

impl Memory {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// The revision negotiated last time.
    pub(crate) async fn revision(&self, key: ConnectionKey) -> Option<ProtocolRevision> {
        let text = self.get(ERAS, key).await?;
        std::str::from_utf8(&text).ok()?.parse().ok()
    }

    pub(crate) async fn remember_revision(&self, key: ConnectionKey, revision: ProtocolRevision) {
        let write = Write::new(revision.as_str().as_bytes().to_vec());
        self.put(ERAS, key, write).await;
    }

    /// Forgets the revision, so that it is negotiated again.
    pub(crate) async fn forget_revision(&self, key: ConnectionKey) {
        let Ok(key) = Key::new(key.to_hex()) else {
            return;
        };
        if let Err(error) = self.0.remove(ERAS, &key, Expected::Anything).await {
            tracing::warn!(%error, "failed to remove a cache record");
        }
    }

    /// Whether the server has proved to be bound to its client.
    pub(crate) async fn is_bound(&self, key: ConnectionKey) -> bool {
        self.get(BOUND, key).await.is_some()
    }

    pub(crate) async fn remember_bound(&self, key: ConnectionKey) {
        self.put(BOUND, key, Write::new(b"1".to_vec())).await;
    }

    /// The server's cached lists and its pins; empty if they cannot be read.
    pub(crate) async fn catalog(&self, outline: &Outline) -> Remembered {
        let read = |space, keys: Vec<Key>| async move { self.0.get_many(space, &keys).await };
        let one = std::slice::from_ref(outline);
        let lists = read(CATALOGS, list_keys(one)).await;
        let pins = read(PINS, pin_keys(one)).await;
        match (lists, pins) {
            (Ok(lists), Ok(pins)) => Remembered::of_records(lists, pins)
                .pop()
                .unwrap_or_default(),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "failed to read a cache record");
                Remembered::default()
            }
        }
    }

    pub(crate) async fn remember_catalog(&self, key: ConnectionKey, catalog: Bytes) {
        self.put(CATALOGS, key, Write::new(catalog)).await;
    }

    /// Caches the first resources of a server. Nothing relies on them: they complete what a user types.
    pub(crate) async fn remember_resources(&self, key: ConnectionKey, pages: &Pages) {
        let Some(key) = resources_key(key) else {
            return;
        };
        let items = pages.pages.iter().filter_map(|page| {
            let page: ResourcePage<'_> = serde_json::from_str(page.as_str()).ok()?;
            Some(page.resources)
        });
        let items: Vec<&RawValue> = items.flatten().take(MAX_CACHED_RESOURCES).collect();
        let size: usize = items.iter().map(|item| item.get().len()).sum();
        if size > MAX_CACHED_RESOURCE_BYTES {
            return;
        }
        let record = serde_json::to_vec(&items).unwrap_or_default();
        // A list that is fresh is compared on every use: write only what is new.
        let known = self.0.get(RESOURCES, &key).await;
        if matches!(known, Ok(Some(known)) if known.value == record) {
            return;
        }
        if let Err(error) = self.0.put(RESOURCES, &key, Write::new(record)).await {
            tracing::warn!(%error, "failed to write a cache record");
        }
    }

    /// Compares a server's lists with its pins, and pins new definitions.
    pub(crate) async fn compare(
        &self,
        identity: ServerIdentity,
        listing: Listing<'_>,
        policy: PinPolicy,
    ) -> Judgement {
        pins::compare(&*self.0, identity, listing, policy).await
    }

    /// Removes prompts or templates that differ from their pins, and pins new ones.
    pub(crate) async fn admit(
        &self,
        spec: &ServerSpec,
        kind: ContentKind,
        pages: &Pages,
        policy: PinPolicy,
    ) -> (Pages, Option<Revision>) {
        let admitted = pins::admit(&*self.0, &spec.name, spec.identity, kind, pages, policy).await;
        if let Ok(key) = kind.key(&spec.key.to_hex()) {
            let write = Write::new(admitted.record);
            let put = self.0.put(CATALOGS, &key, write).await;
            if let Err(error) = put {
                tracing::warn!(%error, "failed to write a cache record");
            }
        }
        (admitted.pages, admitted.revision)
    }

    /// The revision of the pins of a server's prompts or templates; `None` if there are none, or if they cannot be
    /// read.
    pub(crate) async fn content_revision(
        &self,
        identity: ServerIdentity,
        kind: ContentKind,
    ) -> Option<Revision> {
        let key = kind.key(&identity.to_hex()).ok()?;
        let record = self.0.get(PINS, &key).await.ok()??;
        Some(record.revision)
    }

    /// The revision of a server's pins; `None` if there are none.
    pub(crate) async fn pins_revision(
        &self,
        identity: ServerIdentity,
    ) -> Result<Option<Revision>, StoreError> {
        pins::revision(&*self.0, identity).await
    }

    /// Whether the server is known to require a login; `None` if the store cannot be read.
    pub(crate) async fn needs_auth(&self, key: ConnectionKey) -> Option<bool> {
        let key = Key::new(key.to_hex()).ok()?;
        match self.0.get(NEEDS_AUTH, &key).await {
            Ok(record) => Some(record.is_some()),
            Err(error) => {
                tracing::warn!(%error, "failed to read a cache record");
                None
            }
        }
    }

    /// Records that the server requires a login. Returns whether that was written.
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
            tracing::warn!(%error, "failed to remove a cache record of a required login");
        }
    }

    async fn get(&self, space: Space, key: ConnectionKey) -> Option<Bytes> {
        let key = Key::new(key.to_hex()).ok()?;
        match self.0.get(space, &key).await {
            Ok(record) => Some(record?.value),
            Err(error) => {
                tracing::warn!(%error, "failed to read a cache record");
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
            tracing::warn!(%error, "failed to write a cache record");
        }
        put.is_ok()
    }
}
