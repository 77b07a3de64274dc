//! Pins: records of a server's tools and instructions as first used or last approved.
//!
//! A server that was harmless when added may later change its tool definitions, a common start of attacks on agents
//! ("rug pull"). So definitions are stored when first seen, and a tool that differs from its pin is set aside until a
//! user approves the difference. New tools of a known server are pinned and reported; a tool that disappears keeps its
//! pin. Instructions are pinned like a tool, prompts and resource templates in separate records.
//!
//! A definition that cannot be compared is set aside, whatever the reason: an unreadable store is not an empty one.
//!
//! | module | content |
//! |---|---|
//! | `book` | the record of one server: pinned definitions by name |
//! | `rename` | tools that come back under another name |
//! | `content` | the records of prompts and resource templates |
//! | `diff` | line-by-line differences for display |
//! | `review` | pending approvals and approving them, without a running server |
//!
//! Pins are keyed by a server's *identity*: its name and the settings that an approval covers (see
//! [`ServerSpec::identity`](crate::spec::ServerSpec)). Another server under the same name is a new one. Whether a
//! definition looks *suspicious* is decided in `catalog::suspicion`.
//!
//! The definition itself is stored, not only a hash: it is needed to show differences, and comparing bytes is cheaper
//! than hashing them.

mod book;
mod content;
pub(crate) mod diff;
mod rename;
pub(crate) mod review;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use switchboard_store::{Key, Revision, Space, Store, StoreError, Write, update};

use crate::catalog::{CatalogTool, Part, Reach, ServerTools, SetAsideReason};
use crate::names::{ServerName, WireName};
use crate::spec::ServerIdentity;
use book::Book;
pub use content::ContentKind;
pub(crate) use content::admit;
pub use diff::{Line, Side};
pub use review::{Change, Pin, Review, Standing, Subject};

/// The store space of pins, keyed by server identity.
pub(crate) const PINS: Space = Space::new("pins");

/// Whether a new definition may be offered if it cannot be pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinPolicy {
    /// Set aside: without a pin, later changes could not be detected.
    #[default]
    Required,
    /// Offered, as on first use.
    BestEffort,
}

/// The result of comparing a server's lists with its pins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Judgement {
    /// Tools that differ from their pins, with the differing parts, sorted by name.
    pub(crate) changed: Vec<(WireName, Vec<Part>)>,
    /// Tools that are pinned under another name: the new and the pinned name, sorted by the new one.
    pub(crate) renamed: Vec<(WireName, WireName)>,
    /// New tools of a known server. They are pinned now.
    pub(crate) added: Vec<WireName>,
    /// Whether the server had no pins before.
    pub(crate) is_first: bool,
    /// Whether the instructions differ from the pinned ones.
    pub(crate) instructions_changed: bool,
    /// The reason the pins could not be read; nothing can be compared then.
    pub(crate) unreadable: Option<String>,
    /// The reason new definitions could not be pinned, if pinning is required.
    pub(crate) unpinned: Option<String>,
    /// The revision of the pins compared with, to detect an approval by another process.
    pub(crate) revision: Option<Revision>,
}

/// A server's lists, in both forms that a comparison needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) server: &'a ServerName,
    pub(crate) tools: &'a ServerTools,
    pub(crate) instructions: Option<&'a str>,
    /// The complete lists, as stored on disk.
    pub(crate) bytes: &'a Bytes,
    pub(crate) reach: Reach,
}

impl Judgement {
    /// Whether any definition is withheld.
    pub(crate) fn waits(&self) -> bool {
        !self.changed.is_empty()
            || !self.renamed.is_empty()
            || self.instructions_changed
            || self.unreadable.is_some()
            || self.unpinned.is_some()
    }

    /// The pinned name of a renamed tool.
    pub(crate) fn origin(&self, name: &WireName) -> Option<&WireName> {
        let position = self.renamed.binary_search_by(|(new, _)| new.cmp(name));
        let (_, origin) = self.renamed.get(position.ok()?)?;
        Some(origin)
    }

    /// Sets aside, with the reason, the tools that differ from their pins or cannot be compared with them.
    pub(crate) fn apply(&self, mut tools: ServerTools) -> ServerTools {
        if let Some(why) = &self.unreadable {
            tools.set_aside_where(|_| Some(SetAsideReason::PinsUnreadable { why: why.clone() }));
        } else if self.waits() {
            tools.set_aside_where(|tool| self.reason(tool));
        }
        let is_new = self.is_first && self.unpinned.is_some();
        tools.withhold_instructions(
            self.instructions_changed || self.unreadable.is_some() || is_new,
        );
        tools
    }

    fn reason(&self, tool: &CatalogTool) -> Option<SetAsideReason> {
        let name = &tool.reference().tool;
        if let Ok(position) = self.changed.binary_search_by(|(each, _)| each.cmp(name)) {
            let (_, parts) = self.changed.get(position)?;
            return Some(SetAsideReason::Changed {
                tool: tool.reference().clone(),
                parts: parts.clone(),
            });
        }
        if let Some(before) = self.origin(name) {
            return Some(SetAsideReason::Renamed {
                tool: tool.reference().clone(),
                before: before.clone(),
            });
        }
        let why = self.unpinned.as_ref()?;
        let is_new = self.is_first || self.added.binary_search(name).is_ok();
        is_new.then(|| SetAsideReason::NotPinned { why: why.clone() })
    }
}

/// Compares a listing with the server's pins, and pins new definitions. Safe to run in several processes at once.
///
/// If the store fails before the comparison, the result is unreadable. If it fails to write new pins, the policy
/// decides.
pub(crate) async fn compare(
    store: &dyn Store,
    identity: ServerIdentity,
    listing: Listing<'_>,
    policy: PinPolicy,
) -> Judgement {
    let key = match Key::new(identity.to_hex()) {
        Ok(key) => key,
        Err(error) => return Judgement::unreadable(reason_of(&error)),
    };
    let mut judgement = None;
    let updated = update(store, PINS, &key, |record| {
        let (mut judged, write) = judge(record.map(|record| &record.value), listing);
        judged.revision = record.map(|record| record.revision);
        judgement = Some(judged);
        write.map(Write::new)
    });
    let updated = updated.await;
    let mut judgement = match (judgement, &updated) {
        (Some(judgement), _) => judgement,
        (None, Err(error)) => Judgement::unreadable(reason_of(error)),
        // Unreachable unless a store skips the closure, which runs before the write.
        (None, Ok(_)) => Judgement::unreadable("the store did not return them".to_owned()),
    };
    match updated {
        Ok(Some(written)) => judgement.revision = Some(written),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(server = %listing.server, %error, "the pins cannot be read or written");
            judgement.not_written(&reason_of(&error));
        }
    }
    if policy == PinPolicy::BestEffort {
        judgement.unpinned = None;
    }
    judgement
}

impl Judgement {
    fn unreadable(why: String) -> Self {
        Self {
            unreadable: Some(why),
            ..Self::default()
        }
    }

    fn not_written(&mut self, why: &str) {
        if self.is_first || !self.added.is_empty() {
            self.unpinned.get_or_insert_with(|| why.to_owned());
        }
    }
}

/// The store's error, with its hint.
pub(crate) fn reason_of(error: &StoreError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

/// Compares a listing with a record of pins. Also returns the record to write if there are new definitions.
pub(crate) fn judge(pins: Option<&Bytes>, listing: Listing<'_>) -> (Judgement, Option<Bytes>) {
    let Some(pins) = pins else {
        // First use: the cached catalog becomes the pin.
        let judgement = Judgement {
            is_first: true,
            ..Judgement::default()
        };
        return (judgement, Some(listing.bytes.clone()));
    };
    if pins == listing.bytes {
        return (Judgement::default(), None);
    }
    let Some(book) = Book::read(listing.server, pins, listing.reach) else {
        let why = "the record is damaged, or of another version".to_owned();
        return (Judgement::unreadable(why), None);
    };
    let everything = everything(listing);
    let all = everything.as_ref().unwrap_or(listing.tools);
    let (mut judgement, added) = book.judge(listing.tools, all, listing.instructions);
    if added.is_empty() {
        return (judgement, None);
    }
    let write = book.with(&added);
    if write.is_none() {
        judgement.not_written("the server has listed too many tools to pin all of them");
    }
    (judgement, write)
}

/// The listing including tools that the user's rules exclude; `None` if they exclude none.
fn everything(listing: Listing<'_>) -> Option<ServerTools> {
    let is_rule = |reason: &SetAsideReason| {
        matches!(
            reason,
            SetAsideReason::Disabled | SetAsideReason::NotEnabled | SetAsideReason::Hidden
        )
    };
    let mut aside = listing.tools.aside().iter();
    if listing.tools.aside_untold() == 0 && !aside.any(|aside| is_rule(&aside.reason)) {
        return None;
    }
    Book::read(listing.server, listing.bytes, listing.reach).map(|book| book.tools)
}

/// The revision of a server's pins.
pub(crate) async fn revision(
    store: &dyn Store,
    identity: ServerIdentity,
) -> Result<Option<Revision>, StoreError> {
    let key = Key::new(identity.to_hex())?;
    let record = store.get(PINS, &key).await?;
    Ok(record.map(|record| record.revision))
}
