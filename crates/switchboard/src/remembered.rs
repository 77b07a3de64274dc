//! The cached catalogs of servers, for programs that do not connect.
//!
//! Builds a catalog from configuration entries without a host, a runtime or a connection: derives the entries' keys,
//! queries a store once, and applies the same rules as a running host. Nothing here is live, so no decision may rely on
//! its annotations.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use switchboard_config::resolve::Server;
use switchboard_config::settings::Settings;
use switchboard_protocol::Revision;
use switchboard_store::{Key, Record, Space, Store, Timestamp};

use crate::catalog::impersonation::KnownServers;
use crate::catalog::{
    Catalog, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::memory::{CATALOGS, ERAS, Memory, NEEDS_AUTH, RESOURCES, resources_key};
use crate::names::ServerName;
use crate::pins::{self, ContentKind, Listing, PINS};
use crate::spec::{ConnectionKey, ServerIdentity, ServerSpec};

/// The parts of a server needed to find and read its cache records.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Its name.
    pub name: ServerName,
    /// The key of its cached lists.
    pub key: ConnectionKey,
    /// The key of its pins.
    pub identity: ServerIdentity,
    /// The rules that select and rename its tools.
    pub rules: ToolRules,
}

impl Outline {
    /// The outline of a resolved entry, without building a connector.
    pub fn of(server: &Server, settings: &Settings) -> Self {
        let entry = server.effective();
        Self {
            name: server.name.as_str().into(),
            key: ConnectionKey::of_entry(&server.name, entry),
            identity: ServerIdentity::of_entry(&server.name, entry),
            rules: ToolRules::of(entry).with_settings(settings),
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

/// Notifies every host that shares this store of a login: those waiting for it reconnect the server within a few
/// seconds.
pub async fn logged_in(store: Arc<dyn Store>, outline: &Outline) {
    Memory::new(store).forget_needs_auth(outline.key).await;
}

/// The records of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remembered {
    /// Its cached lists.
    pub lists: Option<ServerCatalog>,
    /// The encoded form of the lists.
    bytes: Bytes,
    pub(crate) pins: Option<Bytes>,
    /// The same for prompts and templates: cached list and pins.
    pub(crate) contents: BTreeMap<ContentKind, (Option<Bytes>, Option<Bytes>)>,
}

impl From<ServerCatalog> for Remembered {
    /// A catalog that does not come from the store has no pins.
    fn from(lists: ServerCatalog) -> Self {
        Self {
            lists: Some(lists),
            ..Self::default()
        }
    }
}

impl Remembered {
    /// Decodes two records.
    pub fn new(lists: Option<Bytes>, pins: Option<Bytes>) -> Self {
        Self {
            lists: lists.as_ref().and_then(ServerCatalog::from_bytes),
            bytes: lists.unwrap_or_default(),
            pins,
            contents: BTreeMap::new(),
        }
    }

    /// Decodes the records found by [`list_keys`] and [`pin_keys`].
    pub(crate) fn of_records(lists: Vec<Option<Record>>, pins: Vec<Option<Record>>) -> Vec<Self> {
        let mut pairs = lists.into_iter().zip(pins).map(|(lists, pins)| {
            let value = |record: Option<Record>| record.map(|record| record.value);
            (value(lists), value(pins))
        });
        let mut all = Vec::new();
        while let Some((lists, pins)) = pairs.next() {
            let mut remembered = Self::new(lists, pins);
            for kind in ContentKind::ALL {
                if let Some(content) = pairs.next() {
                    remembered.contents.insert(kind, content);
                }
            }
            all.push(remembered);
        }
        all
    }

    /// The cached prompts, as a JSON array, whether or not they match their pins.
    pub fn prompts(&self) -> Option<&Bytes> {
        self.contents.get(&ContentKind::Prompt)?.0.as_ref()
    }

    /// The tools offered by the server's rules, without checking pins.
    pub(crate) fn tools(&self, outline: &Outline) -> ServerTools {
        self.tools_by(&outline.name, &outline.rules)
    }

    /// All tools, regardless of the rules.
    pub(crate) fn all_tools(&self, server: &ServerName) -> ServerTools {
        self.tools_by(server, &ToolRules::default())
    }

    fn tools_by(&self, server: &ServerName, rules: &ToolRules) -> ServerTools {
        let pages = self.lists.as_ref().map_or(&[][..], |lists| &lists.tools);
        ServerTools::from_pages(
            server,
            pages,
            rules,
            Reach::Other,
            Provenance::Persisted,
            ListLimits::default(),
        )
    }
}

/// The keys of the cached lists of these servers: for each, its tools, then the other lists.
pub(crate) fn list_keys(outlines: &[Outline]) -> Vec<Key> {
    records(outlines.iter().map(|outline| outline.key.to_hex()))
}

/// The keys of the pins of these servers, in the order of [`list_keys`].
pub(crate) fn pin_keys(outlines: &[Outline]) -> Vec<Key> {
    records(outlines.iter().map(|outline| outline.identity.to_hex()))
}

fn records(servers: impl Iterator<Item = String>) -> Vec<Key> {
    let keys = servers.flat_map(|server| {
        let contents = ContentKind::ALL.map(|kind| kind.key(&server));
        [Key::new(server)].into_iter().chain(contents)
    });
    // A hexadecimal digest is always a valid key.
    keys.filter_map(Result::ok).collect()
}

/// Reads the records of these servers with two store queries, in the same order.
pub fn lists<E>(
    outlines: &[Outline],
    read: impl Fn(Space, &[Key]) -> Result<Vec<Option<Record>>, E>,
) -> Result<Vec<Remembered>, E> {
    let lists = read(CATALOGS, &list_keys(outlines))?;
    let pins = read(PINS, &pin_keys(outlines))?;
    Ok(Remembered::of_records(lists, pins))
}

/// Reads the cached resources of these servers, each as a JSON array, in the same order.
pub fn resources<E>(
    outlines: &[Outline],
    read: impl Fn(Space, &[Key]) -> Result<Vec<Option<Record>>, E>,
) -> Result<Vec<Option<Bytes>>, E> {
    let keys: Vec<Key> = outlines
        .iter()
        .filter_map(|outline| resources_key(outline.key))
        .collect();
    let records = read(RESOURCES, &keys)?.into_iter();
    Ok(records.map(|record| Some(record?.value)).collect())
}

/// What the last connection to a server left behind.
#[derive(Debug, Clone, Default)]
pub struct LastKnown {
    /// The protocol revision that was negotiated.
    pub revision: Option<Revision>,
    /// Whether it required a login.
    pub needs_login: bool,
    /// When its lists were cached.
    pub listed_at: Option<Timestamp>,
}

/// Reads what is known of these servers with three store queries, in the same order.
pub fn last_known<E>(
    outlines: &[Outline],
    read: impl Fn(Space, &[Key]) -> Result<Vec<Option<Record>>, E>,
) -> Result<Vec<LastKnown>, E> {
    let keys: Vec<Key> = outlines
        .iter()
        .filter_map(|outline| Key::new(outline.key.to_hex()).ok())
        .collect();
    let revisions = read(ERAS, &keys)?.into_iter();
    let logins = read(NEEDS_AUTH, &keys)?.into_iter();
    let lists = read(CATALOGS, &keys)?.into_iter();
    let known = revisions.zip(logins).zip(lists);
    Ok(known
        .map(|((revision, login), list)| LastKnown {
            revision: revision.and_then(|record| {
                let text = std::str::from_utf8(&record.value).ok()?;
                text.parse().ok()
            }),
            needs_login: login.is_some(),
            listed_at: list.map(|record| record.written_at),
        })
        .collect())
}

/// Builds the catalog from cached records. Servers without records are omitted.
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
            identity: ServerIdentity::of_connection(ConnectionKey::of(&[b"other"])),
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

        let asked = list_keys(&outlines);
        let found = store.get_many(CATALOGS, &asked).await.unwrap();
        let read = |space: Space, keys: &[Key]| {
            assert_eq!(keys.len(), 6);
            let nothing = vec![None; 6];
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
