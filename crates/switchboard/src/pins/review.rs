//! Pending approvals and approving them. Works on the store alone: no server has to run.
//!
//! The current definitions are the cached ones of the last connection. An approval covers exactly the definitions that
//! were reviewed: if the server changes again in the meantime, that is a new change.

use bytes::Bytes;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use switchboard_config::sort;
use switchboard_store::{Key, Store, StoreError, Write, update};

use super::book::Book;
use super::content::{self, ContentJudgement, ContentKind, Items};
use super::diff::{self, Line};
use super::{Judgement, PINS};
use crate::catalog::canonical::canonical;
use crate::catalog::{CatalogTool, Part, Reach, ServerTools};
use crate::json::SharedJson;
use crate::names::{ServerName, WireName};
use crate::remembered::{Outline, Remembered};
use crate::spec::ServerIdentity;

/// One server's definitions compared with its pins.
#[derive(Debug)]
pub struct Review {
    outline: Outline,
    judgement: Judgement,
    listed: ServerTools,
    instructions: Option<String>,
    /// The server's lists, as cached.
    bytes: Bytes,
    pinned: Option<Book>,
    has_pins: bool,
    contents: Vec<ContentReview>,
}

/// The comparison of a list of prompts or templates.
#[derive(Debug)]
struct ContentReview {
    kind: ContentKind,
    listed: Items,
    pinned: Items,
    has_pins: bool,
    judgement: ContentJudgement,
}

/// One pin, or a definition without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The pinned item.
    pub subject: Subject,
    /// The comparison with the pin.
    pub standing: Standing,
    /// The hash of the pinned definition, or of the listed one if it has no pin.
    pub digest: String,
}

/// The item that a pin is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The server's instructions.
    Instructions,
    /// A tool.
    Tool(WireName),
    /// A prompt by its name, or a resource template by its `uriTemplate`.
    Content(ContentKind, String),
}

impl Subject {
    /// The kind in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Instructions => INSTRUCTIONS,
            Self::Tool(_) => "tool",
            Self::Content(kind, _) => kind.word(),
        }
    }
}

/// The result of comparing an item with its pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Unchanged.
    Pinned,
    /// Changed in these parts, by their wire names; empty for instructions.
    Changed(Vec<&'static str>),
    /// Pinned under this other name.
    Renamed(WireName),
    /// Pinned, but the pin cannot be read.
    Unreadable,
    /// No longer listed by the server. The pin is retained in case it returns.
    Absent,
    /// Not pinned yet.
    Unpinned,
}

impl Standing {
    /// One word for tables and scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Changed(_) => "changed",
            Self::Renamed(_) => "renamed",
            Self::Unreadable => "unreadable",
            Self::Absent => "absent",
            Self::Unpinned => "new",
        }
    }

    /// Whether the item is withheld until a user approves it.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Changed(_) | Self::Renamed(_) | Self::Unreadable)
    }
}

/// A changed part of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The part, by its wire name.
    pub part: &'static str,
    /// The difference, line by line.
    pub lines: Vec<Line>,
}

impl Review {
    /// The review of a server; `None` if nothing is cached for it.
    #[doc(hidden)]
    pub fn of(outline: &Outline, remembered: &Remembered) -> Option<Self> {
        let lists = remembered.lists.as_ref();
        let pins = remembered.pins.as_ref();
        let contents = remembered.contents.iter();
        let contents: Vec<ContentReview> = contents
            .filter(|(_, (listed, pins))| listed.is_some() || pins.is_some())
            .map(|(kind, (listed, pins))| ContentReview::of(*kind, listed.as_ref(), pins.as_ref()))
            .collect();
        if lists.is_none() && pins.is_none() && contents.is_empty() {
            return None;
        }
        let lists = lists.cloned().unwrap_or_default();
        let pinned = pins.and_then(|pins| Book::read(&outline.name, pins, Reach::Other));
        let listed = remembered.tools(outline);
        let judgement = match &pinned {
            Some(book) => {
                let all = remembered.all_tools(&outline.name);
                book.judge(&listed, &all, lists.instructions.as_deref()).0
            }
            None => Judgement {
                unreadable: pins.map(|_| "the record is damaged".to_owned()),
                ..Judgement::default()
            },
        };
        Some(Self {
            outline: outline.clone(),
            judgement,
            listed,
            bytes: lists.to_record(),
            instructions: lists.instructions,
            pinned,
            has_pins: pins.is_some(),
            contents,
        })
    }

    /// The name of the server.
    pub fn server(&self) -> &ServerName {
        &self.outline.name
    }

    /// Every pin and every unpinned item: instructions first, then tools, prompts and templates by name.
    pub fn pins(&self) -> Vec<Pin> {
        let mut pins: Vec<Pin> = self.instructions_pin().into_iter().collect();
        let none = ServerTools::default();
        let pinned = self.pinned.as_ref().map_or(&none, |book| &book.tools);
        let tool = |tool: &CatalogTool, standing| Pin {
            subject: Subject::Tool(tool.reference().tool.clone()),
            standing,
            digest: digest(tool),
        };
        let mut tools: Vec<Pin> = Vec::new();
        for pin in pinned.tools() {
            let name = &pin.reference().tool;
            let changed = self.judgement.changed.iter().find(|(each, _)| each == name);
            let standing = match (changed, self.listed.get(name.as_str())) {
                (Some((_, parts)), _) => {
                    Standing::Changed(parts.iter().map(|part| part.name()).collect())
                }
                (None, Some(_)) => Standing::Pinned,
                (None, None) => Standing::Absent,
            };
            tools.push(tool(pin, standing));
        }
        let unpinned = self.listed.tools().iter();
        let unpinned = unpinned.filter(|tool| pinned.get(tool.reference().tool.as_str()).is_none());
        tools.extend(unpinned.map(|listed| {
            let before = self.judgement.origin(&listed.reference().tool);
            let standing = match before {
                _ if self.judgement.unreadable.is_some() => Standing::Unreadable,
                Some(before) => Standing::Renamed(before.clone()),
                None => Standing::Unpinned,
            };
            tool(listed, standing)
        }));
        sort::by(&mut tools, |left, right| left.subject.cmp(&right.subject));
        pins.extend(tools);
        pins.extend(self.contents.iter().flat_map(ContentReview::pins));
        pins
    }

    /// The changes of an item since it was pinned, line by line.
    pub fn changes(&self, subject: &Subject) -> Vec<Change> {
        let name = match subject {
            Subject::Instructions => {
                let before = self
                    .pinned
                    .as_ref()
                    .and_then(|book| book.instructions.as_deref());
                let lines = diff::of_texts(before, self.instructions.as_deref());
                return vec![Change {
                    part: INSTRUCTIONS,
                    lines,
                }];
            }
            Subject::Content(kind, name) => {
                let review = self.contents.iter().find(|review| review.kind == *kind);
                return review.map_or_else(Vec::new, |review| review.changes(name));
            }
            Subject::Tool(name) => name.as_str(),
        };
        let origin = self.judgement.origin(&name.into());
        let before = origin.map_or(name, WireName::as_str);
        let before = self.pinned.as_ref().and_then(|book| book.tools.get(before));
        let now = self.listed.get(name);
        let part_of = |tool: Option<&CatalogTool>, part: Part| -> Option<Box<RawValue>> {
            part.of(tool?.definition().as_str()).map(ToOwned::to_owned)
        };
        let parts = Part::ALL.into_iter().map(|part| Change {
            part: part.name(),
            lines: diff::of_values(
                part_of(before, part).as_deref(),
                part_of(now, part).as_deref(),
            ),
        });
        parts.filter(|change| !change.lines.is_empty()).collect()
    }

    /// Approves these items in their current form. Concurrent approvals by several processes are merged.
    pub async fn approve(&self, store: &dyn Store, subjects: &[Subject]) -> Result<(), StoreError> {
        for review in &self.contents {
            review
                .approve(store, self.outline.identity, subjects)
                .await?;
        }
        let key = Key::new(self.outline.identity.to_hex())?;
        let names = subjects.iter().filter_map(|subject| match subject {
            Subject::Tool(name) => self.listed.get(name.as_str()),
            Subject::Instructions | Subject::Content(..) => None,
        });
        let tools: Vec<&CatalogTool> = names.collect();
        let instructions = subjects.contains(&Subject::Instructions);
        if tools.is_empty() && !instructions {
            return Ok(());
        }
        update(store, PINS, &key, |record| {
            let current = record.map(|record| &record.value);
            let book = current.and_then(|pins| Book::read(self.server(), pins, Reach::Other));
            let Some(mut book) = book else {
                // The old record is unreadable: replace it with all of the server's current definitions.
                return Some(Write::new(self.bytes.clone()));
            };
            if instructions {
                book.instructions.clone_from(&self.instructions);
            }
            book.with(&tools).map(Write::new)
        })
        .await
        .map(drop)
    }

    fn instructions_pin(&self) -> Option<Pin> {
        let before = self
            .pinned
            .as_ref()
            .and_then(|book| book.instructions.as_deref());
        let now = self.instructions.as_deref();
        let text = before.or(now)?;
        let standing = if !self.has_pins {
            Standing::Unpinned
        } else if self.judgement.unreadable.is_some() {
            Standing::Unreadable
        } else if self.judgement.instructions_changed {
            Standing::Changed(Vec::new())
        } else {
            Standing::Pinned
        };
        Some(Pin {
            subject: Subject::Instructions,
            standing,
            digest: hex(Sha256::digest(text).as_ref()),
        })
    }
}

impl ContentReview {
    fn of(kind: ContentKind, listed: Option<&Bytes>, pins: Option<&Bytes>) -> Self {
        let listed = listed.and_then(|listed| Items::read(kind, listed));
        let listed = listed.unwrap_or_default();
        let pinned = pins.and_then(|pins| Items::read(kind, pins));
        Self {
            kind,
            judgement: content::judge(kind, pins, &listed).0,
            listed,
            pinned: pinned.unwrap_or_default(),
            has_pins: pins.is_some(),
        }
    }

    fn pins(&self) -> Vec<Pin> {
        let pin = |name: &str, item: &SharedJson, standing| Pin {
            subject: Subject::Content(self.kind, name.to_owned()),
            standing,
            digest: content_digest(self.kind, item),
        };
        let pinned = self.pinned.0.iter().map(|(name, item)| {
            let standing = match self.judgement.changed.get(name) {
                Some(parts) => Standing::Changed(parts.clone()),
                None if self.listed.get(name).is_some() => Standing::Pinned,
                None => Standing::Absent,
            };
            pin(name, item, standing)
        });
        let is_new = |(name, _): &&(String, SharedJson)| self.pinned.get(name).is_none();
        let unpinned = self.listed.0.iter().filter(is_new).map(|(name, item)| {
            let standing = match self.judgement.unreadable {
                Some(_) if self.has_pins => Standing::Unreadable,
                _ => Standing::Unpinned,
            };
            pin(name, item, standing)
        });
        let mut pins: Vec<Pin> = pinned.chain(unpinned).collect();
        sort::by(&mut pins, |left, right| left.subject.cmp(&right.subject));
        pins
    }

    fn changes(&self, name: &str) -> Vec<Change> {
        let (before, now) = (self.pinned.get(name), self.listed.get(name));
        let parts = self.kind.parts().iter().map(|part| {
            let of = |item: Option<&SharedJson>| {
                let value = item.and_then(|item| content::part_of(item, part));
                value.map(ToOwned::to_owned)
            };
            Change {
                part,
                lines: diff::of_values(of(before).as_deref(), of(now).as_deref()),
            }
        });
        parts.filter(|change| !change.lines.is_empty()).collect()
    }

    async fn approve(
        &self,
        store: &dyn Store,
        identity: ServerIdentity,
        subjects: &[Subject],
    ) -> Result<(), StoreError> {
        let approved = subjects.iter().filter_map(|subject| match subject {
            Subject::Content(kind, name) if *kind == self.kind => {
                let item = self.listed.get(name)?;
                Some((name.clone(), item.clone()))
            }
            _ => None,
        });
        let approved: Vec<(String, SharedJson)> = approved.collect();
        if approved.is_empty() {
            return Ok(());
        }
        let key = self.kind.key(&identity.to_hex())?;
        update(store, PINS, &key, |record| {
            let pinned = record.and_then(|record| Items::read(self.kind, &record.value));
            // An unreadable record is replaced by all current items.
            let items = match pinned {
                Some(pinned) => pinned.with(&approved),
                None => self.listed.clone(),
            };
            Some(Write::new(items.to_record()))
        })
        .await
        .map(drop)
    }
}

fn content_digest(kind: ContentKind, item: &SharedJson) -> String {
    let mut digest = Sha256::new();
    for part in kind.parts() {
        if let Some(value) = content::part_of(item, part) {
            let form = canonical(value.get()).unwrap_or_else(|| value.get().to_owned());
            for text in [part, form.as_str()] {
                digest.update((text.len() as u64).to_le_bytes());
                digest.update(text);
            }
        }
    }
    hex(digest.finalize().as_ref())
}

/// The part name used for instructions.
pub const INSTRUCTIONS: &str = "instructions";

/// The hash of a pinned tool: its name and its parts in canonical form.
fn digest(tool: &CatalogTool) -> String {
    let mut digest = Sha256::new();
    let mut text = |text: &str| {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    text(tool.reference().tool.as_str());
    for part in Part::ALL {
        if let Some(value) = part.of(tool.definition().as_str()) {
            text(part.name());
            text(&canonical(value.get()).unwrap_or_else(|| value.get().to_owned()));
        }
    }
    hex(digest.finalize().as_ref())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
