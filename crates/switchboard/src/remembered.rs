//! What servers offered when they were last connected, for a program that only wants to look (CAT-6).
//!
//! Owns the way from configuration entries to a catalogue with no host, no runtime and no link in between: it takes the
//! entries' keys, asks a store once, and puts the answers together by the same rules as a running host. Nothing that
//! comes from here is live, so no decision may rest on its hints.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_config::resolve::Server;
use switchboard_store::{Key, Record, Space, Store};

use crate::catalog::disguise::KnownServers;
use crate::catalog::{
    Catalog, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::link_key;
use crate::memory::{CATALOGS, Memory};
use crate::names::ServerName;
use crate::pins::{self, Listing, PINS};
use crate::recipe;
use crate::spec::{ConnectionKey, ServerSpec};

/// What is needed of a server to find and read what is remembered of it.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Its name.
    pub name: ServerName,
    /// What its link depends on.
    pub key: ConnectionKey,
    /// Who it is: what its pins are kept under.
    pub identity: ConnectionKey,
    /// Which of its tools are offered, and how.
    pub rules: ToolRules,
}

impl Outline {
    /// The outline of a resolved entry. No connector is made.
    pub fn of(server: &Server) -> Self {
        let entry = server.effective();
        Self {
            name: server.name.as_str().into(),
            key: link_key::key(&server.name, entry),
            identity: recipe::identity(&server.name, entry),
            rules: ToolRules::of(entry),
        }
    }
}

impl From<&ServerSpec> for Outline {
    fn from(spec: &ServerSpec) -> Self {
        Self {
            name: spec.name.clone(),
            key: spec.key,
            identity: spec.identity,
            rules: spec.rules.clone(),
        }
    }
}

/// Tells every host that shares this store that somebody has logged in to a server: those that wait for it connect it
/// again within a few seconds.
pub async fn logged_in(store: Arc<dyn Store>, outline: &Outline) {
    Memory::new(store).forget_needs_auth(outline.key).await;
}

/// What is remembered of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remembered {
    /// What it listed.
    pub lists: Option<ServerCatalog>,
    /// The same, as it is kept.
    bytes: Bytes,
    /// What is pinned of it, as it is kept.
    pub(crate) pins: Option<Bytes>,
}

impl From<ServerCatalog> for Remembered {
    /// What is known without having been kept has no pins.
    fn from(lists: ServerCatalog) -> Self {
        Self {
            lists: Some(lists),
            ..Self::default()
        }
    }
}

impl Remembered {
    /// What two records say.
    pub fn new(lists: Option<Bytes>, pins: Option<Bytes>) -> Self {
        Self {
            lists: lists.as_ref().and_then(ServerCatalog::from_bytes),
            bytes: lists.unwrap_or_default(),
            pins,
        }
    }

    /// What of it is offered by the server's rules, pins aside.
    pub(crate) fn tools(&self, outline: &Outline) -> ServerTools {
        let pages = self.lists.as_ref().map_or(&[][..], |lists| &lists.tools);
        ServerTools::from_pages(
            &outline.name,
            pages,
            &outline.rules,
            Reach::Other,
            Provenance::Persisted,
            ListLimits::default(),
        )
    }
}

/// What is remembered of these servers, each in its place, through two questions to a store.
pub fn lists<E>(
    outlines: &[Outline],
    read: impl Fn(Space, &[Key]) -> Result<Vec<Option<Record>>, E>,
) -> Result<Vec<Remembered>, E> {
    let keys = |key: fn(&Outline) -> ConnectionKey| {
        let keys = outlines
            .iter()
            .map(|outline| Key::new(key(outline).to_hex()));
        // A digest in hexadecimal is always a key.
        keys.filter_map(Result::ok).collect::<Vec<Key>>()
    };
    let lists = read(CATALOGS, &keys(|outline| outline.key))?;
    let pins = read(PINS, &keys(|outline| outline.identity))?;
    let value = |record: Option<Record>| record.map(|record| record.value);
    Ok(lists
        .into_iter()
        .zip(pins)
        .map(|(lists, pins)| Remembered::new(value(lists), value(pins)))
        .collect())
}

/// The catalogue of what is remembered. Servers of which nothing is remembered have no part in it.
pub fn catalog(outlines: &[Outline], remembered: &[Remembered]) -> Catalog {
    let offers = outlines
        .iter()
        .zip(remembered)
        .filter_map(|(outline, remembered)| {
            let lists = remembered.lists.as_ref()?;
            let mut tools = remembered.tools(outline);
            if outline.rules.pins() && remembered.pins.is_some() {
                let listing = Listing {
                    server: &outline.name,
                    tools: &tools,
                    instructions: lists.instructions.as_deref(),
                    bytes: &remembered.bytes,
                    reach: Reach::Other,
                };
                let (judgement, _) = pins::judge(remembered.pins.as_ref(), listing);
                tools = judgement.apply(tools);
            }
            let instructions = lists.instructions.as_deref();
            let instructions = instructions.filter(|_| !tools.withholds_instructions());
            let instructions = instructions.map(Arc::from);
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
            identity: ConnectionKey::of(&[name.as_bytes()]),
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
        let read = |space: Space, keys: &[Key]| {
            assert_eq!(keys.len(), 2);
            let nothing = vec![None, None];
            Ok::<_, Infallible>(if space == CATALOGS {
                found.clone()
            } else {
                nothing
            })
        };
        let lists = lists(&outlines, read).unwrap();
        let listed: Vec<_> = lists.iter().map(|each| each.lists.clone()).collect();
        assert_eq!(listed, [Some(kept), None]);
        let catalog = catalog(&outlines, &lists);
        let names: Vec<_> = catalog
            .iter()
            .map(|tool| (tool.exposed().as_str(), tool.provenance()))
            .collect();
        assert_eq!(names, [("mcp__a__t", Provenance::Persisted)]);
    }
}
