//! What waits for an approval, and the approval itself. Works on the store alone: no server has to run.
//!
//! What a server lists now is what it listed when it was last connected, which every host keeps. An approval is about
//! exactly the definitions that were looked at: if the server changes again in the meantime, that is a change again.

use bytes::Bytes;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use switchboard_store::{Key, Store, StoreError, Write, update};

use super::book::Book;
use super::diff::{self, Line};
use super::{Judgement, PINS};
use crate::catalog::canonical::canonical;
use crate::catalog::{CatalogTool, Part, Reach, ServerTools};
use crate::names::{ServerName, WireName};
use crate::remembered::{Outline, Remembered};

/// How one server's tools and instructions stand against their pins.
#[derive(Debug)]
pub struct Review {
    outline: Outline,
    judgement: Judgement,
    listed: ServerTools,
    instructions: Option<String>,
    /// What the server listed, as it is kept.
    bytes: Bytes,
    pinned: Option<Book>,
    has_pins: bool,
}

/// One pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// What is pinned.
    pub subject: Subject,
    /// How it stands.
    pub standing: Standing,
    /// The hash of what is pinned, or of what is listed where nothing is.
    pub digest: String,
}

/// What a pin is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The server's instructions.
    Instructions,
    /// A tool.
    Tool(WireName),
}

/// How something stands against its pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// As it was.
    Pinned,
    /// It differs, in these parts if it is a tool.
    Changed(Vec<Part>),
    /// The server no longer has it. The pin stays for when it comes back.
    Absent,
    /// It has no pin yet.
    Unpinned,
}

impl Standing {
    /// One word for tables and scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Changed(_) => "changed",
            Self::Absent => "absent",
            Self::Unpinned => "new",
        }
    }
}

/// What of something has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The part, as the wire names it.
    pub part: &'static str,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Review {
    /// The review of a server; `None` if nothing is known of it.
    pub fn of(outline: &Outline, remembered: &Remembered) -> Option<Self> {
        let lists = remembered.lists.as_ref();
        let pins = remembered.pins.as_ref();
        if lists.is_none() && pins.is_none() {
            return None;
        }
        let lists = lists.cloned().unwrap_or_default();
        let pinned = pins.and_then(|pins| Book::read(&outline.name, pins, Reach::Other));
        let listed = remembered.tools(outline);
        let judgement = match &pinned {
            Some(book) => book.judge(&listed, lists.instructions.as_deref()).0,
            None => Judgement {
                unreadable: pins.is_some(),
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
        })
    }

    /// The server.
    pub fn server(&self) -> &ServerName {
        &self.outline.name
    }

    /// Whether the pins are there and cannot be read. Nothing of the server is offered then.
    pub fn is_unreadable(&self) -> bool {
        self.judgement.unreadable
    }

    /// Every pin, and everything that has none: the instructions first, then tools by name.
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
                (Some((_, parts)), _) => Standing::Changed(parts.clone()),
                (None, Some(_)) => Standing::Pinned,
                (None, None) => Standing::Absent,
            };
            tools.push(tool(pin, standing));
        }
        let unpinned = self.listed.tools().iter();
        let unpinned = unpinned.filter(|tool| pinned.get(tool.reference().tool.as_str()).is_none());
        tools.extend(unpinned.map(|listed| tool(listed, Standing::Unpinned)));
        tools.sort_by(|left, right| left.subject.cmp(&right.subject));
        pins.extend(tools);
        pins
    }

    /// What of it has changed since it was pinned, line by line.
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
            Subject::Tool(name) => name.as_str(),
        };
        let before = self.pinned.as_ref().and_then(|book| book.tools.get(name));
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

    /// Approves these as the server has them now. Several processes may approve at once; nothing is lost.
    pub async fn approve(&self, store: &dyn Store, subjects: &[Subject]) -> Result<(), StoreError> {
        let key = Key::new(self.outline.identity.to_hex())?;
        let names = subjects.iter().filter_map(|subject| match subject {
            Subject::Tool(name) => self.listed.get(name.as_str()),
            Subject::Instructions => None,
        });
        let tools: Vec<&CatalogTool> = names.collect();
        let instructions = subjects.contains(&Subject::Instructions);
        update(store, PINS, &key, |record| {
            let current = record.map(|record| &record.value);
            let book = current.and_then(|pins| Book::read(self.server(), pins, Reach::Other));
            let Some(mut book) = book else {
                // Nothing that could be kept: what the server has now takes its place, all of it.
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

/// What the instructions are called where tools have parts.
pub const INSTRUCTIONS: &str = "instructions";

/// The hash of what is pinned of a tool: its name and its parts, each in its one form.
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
