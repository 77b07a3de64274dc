//! Pins of prompts and resource templates: the same rule as for tools, for lists that are fetched on demand.
//!
//! Models and people read the descriptions and arguments of prompts and templates just as they read those of tools.
//! Each list has its own record, a JSON array of definitions. Resources are not pinned: their lists change as files do,
//! and reading one is a deliberate act of a user or a model. Nothing is fetched here.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Cursor, Malformed};
use switchboard_protocol::trusted;
use switchboard_store::{Key, Revision, Store, StoreError, Write, update};

use super::{PINS, PinPolicy, reason_of};
use crate::catalog::canonical::canonical;
use crate::catalog::field;
use crate::catalog::{SetAside, SetAsideReason};
use crate::json::SharedJson;
use crate::names::ServerName;
use crate::peer::{ListKind, Pages};
use crate::spec::ServerIdentity;

/// A pinned kind of definition besides tools and instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentKind {
    /// A prompt.
    Prompt,
    /// A resource template.
    Template,
}

/// The maximum number of pinned definitions in a list; any beyond are withheld.
const MAX_ITEMS: usize = 20_000;

impl ContentKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Prompt, Self::Template];

    /// The kind in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Template => "template",
        }
    }

    /// The kind of a list; `None` if the list is not pinned.
    pub(crate) const fn of(list: ListKind) -> Option<Self> {
        match list {
            ListKind::Prompts => Some(Self::Prompt),
            ListKind::Templates => Some(Self::Template),
            ListKind::Tools | ListKind::Resources => None,
        }
    }

    /// The field of a page that holds the items.
    const fn member(self) -> &'static str {
        match self {
            Self::Prompt => "prompts",
            Self::Template => "resourceTemplates",
        }
    }

    /// The field that identifies an item.
    const fn identity(self) -> &'static str {
        match self {
            Self::Prompt => "name",
            Self::Template => "uriTemplate",
        }
    }

    /// The fields that are pinned.
    pub(super) const fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Prompt => &["description", "arguments", "title"],
            Self::Template => &["name", "description", "mimeType", "annotations", "title"],
        }
    }

    /// The key of this kind's record, below that of the tools, which is the digest of the server in hexadecimal.
    pub(crate) fn key(self, tools: &str) -> Result<Key, StoreError> {
        Key::new(format!("{tools}/{}", self.member()))
    }
}

/// Items by name, in list order. The first of two with the same name is used; the second is withheld.
#[derive(Debug, Clone, Default)]
pub(super) struct Items(pub(super) Vec<(String, SharedJson)>);

impl Items {
    /// Collects the items of a list.
    pub(super) fn of_pages(kind: ContentKind, pages: &[SharedJson]) -> Self {
        let mut items = Self::default();
        let mut seen = HashSet::new();
        for page in pages {
            if let Some(list) = field(page.as_str(), kind.member()) {
                items.add(kind, page, list.get(), &mut seen);
            }
        }
        items
    }

    /// Decodes a record; `None` if it is invalid.
    pub(super) fn read(kind: ContentKind, record: &Bytes) -> Option<Self> {
        let list: &RawValue = serde_json::from_slice(record).ok()?;
        if !list.get().starts_with('[') {
            return None;
        }
        let whole = SharedJson::part_of(record, list);
        let mut items = Self::default();
        items.add(kind, &whole, whole.as_str(), &mut HashSet::new());
        Some(items)
    }

    fn add(
        &mut self,
        kind: ContentKind,
        whole: &SharedJson,
        list: &str,
        seen: &mut HashSet<String>,
    ) {
        let mut cursor = Cursor::new(list);
        let mut take = |item: &str| {
            let definition = trusted(item).and_then(|item| whole.part(item));
            if let (Some(name), Some(definition)) = (name_of(kind, item), definition)
                && seen.insert(name.clone())
            {
                self.0.push((name, definition));
            }
        };
        let mut read = || {
            if cursor.peek() == b'{' {
                // A single item may come without an array.
                take(cursor.value()?);
                return Ok(());
            }
            cursor.enter(b'[')?;
            while cursor.next_item()? {
                take(cursor.value()?);
            }
            Ok::<_, Malformed>(())
        };
        // Items after a syntax error are not listed, and so not offered.
        let _ = read();
    }

    /// Encodes the items as a record.
    pub(crate) fn to_record(&self) -> Bytes {
        let mut record = String::from("[");
        for (index, (_, item)) in self.0.iter().enumerate() {
            if index > 0 {
                record.push(',');
            }
            record.push_str(item.as_str());
        }
        record.push(']');
        Bytes::from(record)
    }

    pub(super) fn get(&self, name: &str) -> Option<&SharedJson> {
        let found = self.0.iter().find(|(each, _)| each == name);
        found.map(|(_, item)| item)
    }

    /// These items with others added or replaced.
    pub(super) fn with<'i>(
        &self,
        others: impl IntoIterator<Item = &'i (String, SharedJson)>,
    ) -> Self {
        let others: Vec<_> = others.into_iter().cloned().collect();
        let names: HashSet<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
        let kept = self
            .0
            .iter()
            .filter(|(name, _)| !names.contains(name.as_str()));
        Self(kept.cloned().chain(others.iter().cloned()).collect())
    }
}

/// The result of comparing a list with its pins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ContentJudgement {
    /// Changed items, with the parts that differ.
    pub(super) changed: HashMap<String, Vec<&'static str>>,
    /// Items that were not pinned before.
    pub(super) added: Vec<String>,
    pub(super) unreadable: Option<String>,
    pub(super) unpinned: Option<String>,
}

/// Compares a list with a record of pins. Also returns the record to write if there are new items.
pub(super) fn judge(
    kind: ContentKind,
    pins: Option<&Bytes>,
    items: &Items,
) -> (ContentJudgement, Option<Bytes>) {
    let mut judgement = ContentJudgement::default();
    let pinned = match pins {
        None => Items::default(),
        Some(pins) => {
            if let Some(pinned) = Items::read(kind, pins) {
                pinned
            } else {
                let why = "the record is damaged, or of another version";
                judgement.unreadable = Some(why.to_owned());
                return (judgement, None);
            }
        }
    };
    let known: HashMap<&str, &SharedJson> = pinned
        .0
        .iter()
        .map(|(name, item)| (name.as_str(), item))
        .collect();
    let mut added = Vec::new();
    for each in &items.0 {
        let (name, item) = each;
        match known.get(name.as_str()) {
            None => added.push(each),
            Some(pin) => {
                let parts = differences(kind, pin, item);
                if !parts.is_empty() {
                    judgement.changed.insert(name.clone(), parts);
                }
            }
        }
    }
    judgement.added = added.iter().map(|(name, _)| name.clone()).collect();
    if added.is_empty() {
        return (judgement, None);
    }
    if pinned.0.len() + added.len() > MAX_ITEMS {
        judgement.unpinned = Some(format!(
            "the server has listed more than {MAX_ITEMS} of them"
        ));
        return (judgement, None);
    }
    let record = pinned.with(added).to_record();
    (judgement, Some(record))
}

/// The parts that differ between two definitions.
pub(super) fn differences(
    kind: ContentKind,
    before: &SharedJson,
    now: &SharedJson,
) -> Vec<&'static str> {
    if before == now {
        return Vec::new();
    }
    let differs = |part: &&&str| {
        let (before, now) = (part_of(before, part), part_of(now, part));
        match (before, now) {
            (None, None) => false,
            (Some(before), Some(now)) => {
                before.get() != now.get()
                    && !matches!((canonical(before.get()), canonical(now.get())), (Some(before), Some(now)) if before == now)
            }
            _ => true,
        }
    };
    kind.parts().iter().filter(differs).copied().collect()
}

/// A field of a definition; `None` if it is absent or null.
pub(super) fn part_of<'d>(definition: &'d SharedJson, part: &str) -> Option<&'d RawValue> {
    field(definition.as_str(), part).filter(|value| value.get() != "null")
}

/// Compares a list with its pins, pins new items, and returns the list without withheld items.
pub(crate) async fn admit(
    store: &dyn Store,
    server: &ServerName,
    identity: ServerIdentity,
    kind: ContentKind,
    pages: &Pages,
    policy: PinPolicy,
) -> Admitted {
    let items = Items::of_pages(kind, &pages.pages);
    let (mut judgement, mut revision) = (None, None);
    let updated = match kind.key(&identity.to_hex()) {
        Ok(key) => {
            let updated = update(store, PINS, &key, |record| {
                let (judged, write) = judge(kind, record.map(|record| &record.value), &items);
                revision = record.map(|record| record.revision);
                judgement = Some(judged);
                write.map(Write::new)
            });
            updated.await
        }
        Err(error) => Err(error),
    };
    let mut judgement = judgement.unwrap_or_default();
    let is_certain = updated.is_ok();
    if let Ok(Some(written)) = &updated {
        revision = Some(*written);
    }
    if let Err(error) = updated {
        tracing::warn!(%server, %error, "the pins cannot be read or written");
        let why = reason_of(&error);
        // An empty judgement means that the pins could not be read, so every item is unverified.
        if judgement == ContentJudgement::default() && !items.0.is_empty() {
            judgement.unreadable.get_or_insert(why);
        } else {
            judgement.unpinned.get_or_insert(why);
        }
    }
    if policy == PinPolicy::BestEffort {
        judgement.unpinned = None;
    }
    Admitted {
        pages: judgement.without_withheld(server, kind, pages),
        record: items.to_record(),
        revision: revision.filter(|_| is_certain),
    }
}

/// A list after comparison with its pins.
pub(crate) struct Admitted {
    /// The list without withheld items.
    pub(crate) pages: Pages,
    /// The complete list, as stored on disk.
    pub(crate) record: Bytes,
    /// The revision of the pins; `None` if there are none, or if they could not be read or written.
    pub(crate) revision: Option<Revision>,
}

impl ContentJudgement {
    /// The reason an item is withheld; `None` if it is offered.
    pub(super) fn reason(
        &self,
        server: &ServerName,
        kind: ContentKind,
        name: &str,
    ) -> Option<SetAsideReason> {
        if let Some(why) = &self.unreadable {
            return Some(SetAsideReason::PinsUnreadable { why: why.clone() });
        }
        if let Some(parts) = self.changed.get(name) {
            return Some(SetAsideReason::ContentChanged {
                target: target(server, kind, name),
                parts: parts.clone(),
            });
        }
        let why = self.unpinned.as_ref()?;
        let is_new = self.added.iter().any(|each| each == name);
        is_new.then(|| SetAsideReason::NotPinned { why: why.clone() })
    }

    fn without_withheld(&self, server: &ServerName, kind: ContentKind, pages: &Pages) -> Pages {
        let mut kept = pages.clone();
        let mut seen = HashSet::new();
        for page in &mut kept.pages {
            let mut aside = Vec::new();
            let shortened = without(kind, page.as_str(), |name| {
                let is_new = seen.insert(name.to_owned());
                let duplicate = (!is_new).then_some(SetAsideReason::Duplicate);
                let reason = self.reason(server, kind, name).or(duplicate)?;
                aside.push(SetAside {
                    name: Some(name.to_owned()),
                    reason,
                });
                Some(())
            });
            // A page that cannot be parsed loses all its items.
            let shortened = shortened.unwrap_or_else(|_| format!("{{\"{}\":[]}}", kind.member()));
            if !aside.is_empty() {
                *page = trusted(&shortened).map_or_else(|| page.clone(), SharedJson::from);
            }
            kept.withheld.append(&mut aside);
        }
        kept
    }
}

/// The name of a prompt or template on the command line.
pub(crate) fn target(server: &ServerName, kind: ContentKind, name: &str) -> String {
    format!("{server}#{}:{name}", kind.word())
}

fn name_of(kind: ContentKind, item: &str) -> Option<String> {
    let name = trusted(item).filter(|item| item.get().starts_with('{'))?;
    let name = field(name.get(), kind.identity())?;
    serde_json::from_str(name.get()).ok()
}

/// A page without some of its items.
fn without(
    kind: ContentKind,
    page: &str,
    mut withheld: impl FnMut(&str) -> Option<()>,
) -> Result<String, Malformed> {
    let mut cursor = Cursor::new(page);
    let mut text = String::from("{");
    cursor.enter(b'{')?;
    while let Some(key) = cursor.next_key()? {
        if text.len() > 1 {
            text.push(',');
        }
        text.push('"');
        text.push_str(key.escaped);
        text.push_str("\":");
        let is_list = key.is(kind.member());
        let mut kept = Vec::new();
        let mut keep = |item| {
            let name = name_of(kind, item);
            if name.is_none_or(|name| withheld(&name).is_none()) {
                kept.push(item);
            }
        };
        match cursor.peek() {
            b'{' if is_list => keep(cursor.value()?),
            b'[' if is_list => {
                cursor.enter(b'[')?;
                while cursor.next_item()? {
                    keep(cursor.value()?);
                }
            }
            _ => {
                text.push_str(cursor.value()?);
                continue;
            }
        }
        text.push('[');
        text.push_str(&kept.join(","));
        text.push(']');
    }
    text.push('}');
    Ok(text)
}
