//! What servers offered when they were last connected, for a program that only wants to look (CAT-6).
//!
//! Owns the way from configuration entries to a catalogue with no host, no runtime and no link in between: it takes the
//! entries' keys, asks a store once, and puts the answers together by the same rules as a running host. Nothing that
//! comes from here is live, so no decision may rest on its hints.

use std::sync::Arc;

use switchboard_config::resolve::Server;
use switchboard_store::{Key, Record, Space, Store};

use crate::catalog::disguise::KnownServers;
use crate::catalog::{
    Catalog, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::memory::{CATALOGS, Memory};
use crate::names::ServerName;
use crate::recipe;
use crate::spec::{ConnectionKey, ServerSpec};

/// What is needed of a server to find and read what is remembered of it.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Its name.
    pub name: ServerName,
    /// What its link depends on.
    pub key: ConnectionKey,
    /// Which of its tools are offered, and how.
    pub rules: ToolRules,
}

impl Outline {
    /// The outline of a resolved entry. No connector is made.
    pub fn of(server: &Server) -> Self {
        let entry = server.effective();
        Self {
            name: server.name.as_str().into(),
            key: recipe::key(&server.name, entry),
            rules: ToolRules::of(entry),
        }
    }
}

impl From<&ServerSpec> for Outline {
    fn from(spec: &ServerSpec) -> Self {
        Self {
            name: spec.name.clone(),
            key: spec.key,
            rules: spec.rules.clone(),
        }
    }
}

/// Tells every host that shares this store that somebody has logged in to a server: those that wait for it connect it
/// again within a few seconds.
pub async fn logged_in(store: Arc<dyn Store>, outline: &Outline) {
    Memory::new(store).forget_needs_auth(outline.key).await;
}

/// The raw lists of these servers, each in its place, through one question to a store.
pub fn lists<E>(
    outlines: &[Outline],
    read: impl FnOnce(Space, &[Key]) -> Result<Vec<Option<Record>>, E>,
) -> Result<Vec<Option<ServerCatalog>>, E> {
    let keys = outlines
        .iter()
        .map(|outline| Key::new(outline.key.to_hex()));
    // A digest in hexadecimal is always a key.
    let keys: Vec<Key> = keys.filter_map(Result::ok).collect();
    let records = read(CATALOGS, &keys)?;
    Ok(records
        .into_iter()
        .map(|record| ServerCatalog::from_bytes(&record?.value))
        .collect())
}

/// The catalogue of what is remembered. Servers of which nothing is remembered have no part in it.
pub fn catalog(outlines: &[Outline], lists: &[Option<ServerCatalog>]) -> Catalog {
    let offers = outlines.iter().zip(lists).filter_map(|(outline, lists)| {
        let lists = lists.as_ref()?;
        let tools = ServerTools::from_pages(
            &outline.name,
            &lists.tools,
            &outline.rules,
            Reach::Other,
            Provenance::Persisted,
            ListLimits::default(),
        );
        let instructions = lists.instructions.as_deref().map(Arc::from);
        Some((outline.name.clone(), Arc::new(tools), instructions))
    });
    let (known, _) = KnownServers::admit(outlines.iter().map(|outline| &outline.name));
    Catalog::assemble(&known, offers)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::json;
    use switchboard_store::{MemoryStore, Store as _, Write};

    use super::*;
    use crate::json::SharedJson;

    #[tokio::test]
    async fn a_catalogue_is_put_together_from_what_a_store_has() {
        let outline = |name: &str| Outline {
            name: name.into(),
            key: ConnectionKey::of(&[name.as_bytes()]),
            rules: ToolRules::of(&switchboard_config::entry::ServerEntry::default()),
        };
        let outlines = ["a", "b"].map(outline);
        let page = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]});
        let kept = ServerCatalog {
            tools: vec![SharedJson::from(&page)],
            ..ServerCatalog::default()
        };
        let store = MemoryStore::new();
        let [first, _] = &outlines;
        let key = Key::new(first.key.to_hex()).unwrap();
        let write = Write::new(kept.to_bytes());
        store.put(CATALOGS, &key, write).await.unwrap();

        let found = store
            .get_many(
                CATALOGS,
                &[key, Key::new(outlines[1].key.to_hex()).unwrap()],
            )
            .await
            .unwrap();
        let read = |_: Space, keys: &[Key]| {
            assert_eq!(keys.len(), 2);
            Ok::<_, Infallible>(found)
        };
        let lists = lists(&outlines, read).unwrap();
        assert_eq!(lists, [Some(kept), None]);
        let catalog = catalog(&outlines, &lists);
        let names: Vec<_> = catalog
            .iter()
            .map(|tool| (tool.exposed().as_str(), tool.provenance()))
            .collect();
        assert_eq!(names, [("mcp__a__t", Provenance::Persisted)]);
    }
}
