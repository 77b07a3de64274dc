//! Pins: what a server's tools and instructions were when they were first used, or last approved.
//!
//! A server that was harmless when it was added may change what its tools say or take later, which is the way most
//! attacks on agents begin. So the definitions are kept when they are first seen, and a tool whose definition differs
//! from its pin is set aside until somebody has looked at the difference and approved it. New tools of a known server
//! are pinned and told of; a tool that goes away keeps its pin. Instructions are pinned like one more tool, prompts and
//! resource templates in records of their own.
//!
//! What cannot be compared is set aside, whatever the reason: a store that cannot be read is not an empty one.
//!
//! | where | what |
//! |---|---|
//! | `book` | the record of one server: definitions as they were, found by name |
//! | `rename` | tools that come back under another name |
//! | `content` | the records of prompts and resource templates |
//! | `diff` | how a person sees what has changed, line by line |
//! | `review` | what waits for an approval, and the approval itself, with no server running |
//!
//! Pins are kept under a server's *identity*: its name and what an approval of it binds (see
//! [`ServerSpec::identity`](crate::spec::ServerSpec)). Another server under the same name is a new one. Nothing here
//! decides what a definition *says*; that is `catalog::suspicion`'s business.
//!
//! What is kept is the definition itself and not only a hash of it: it is needed to show what has changed, and to
//! compare bytes is cheaper than to hash them.

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

/// Where the pins are, each server's under its identity.
pub(crate) const PINS: Space = Space::new("pins");

/// Whether something that is new may be offered when it cannot be pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinPolicy {
    /// It is set aside: without a pin, what it says next time could not be compared.
    #[default]
    Required,
    /// It is offered, as on its first use.
    BestEffort,
}

/// How what a server lists stands against its pins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Judgement {
    /// Tools that differ from their pins, and in what, in the order of their names.
    pub(crate) changed: Vec<(WireName, Vec<Part>)>,
    /// Tools that are pinned under another name: the new name and the pinned one, in the order of the new ones.
    pub(crate) renamed: Vec<(WireName, WireName)>,
    /// Tools that a known server did not have before. They are pinned now.
    pub(crate) added: Vec<WireName>,
    /// Whether nothing was pinned of the server before.
    pub(crate) is_first: bool,
    /// Whether the instructions differ from those that are pinned.
    pub(crate) instructions_changed: bool,
    /// Why the pins could not be read, so that nothing can be compared.
    pub(crate) unreadable: Option<String>,
    /// Why what is new could not be pinned, where that is required.
    pub(crate) unpinned: Option<String>,
    /// Which write the pins came from that were compared with, to notice an approval by another process.
    pub(crate) revision: Option<Revision>,
}

/// What a server lists, in both forms that a comparison needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) server: &'a ServerName,
    pub(crate) tools: &'a ServerTools,
    pub(crate) instructions: Option<&'a str>,
    /// All of it as it is kept on disk.
    pub(crate) bytes: &'a Bytes,
    pub(crate) reach: Reach,
}

impl Judgement {
    /// Whether something is withheld.
    pub(crate) fn waits(&self) -> bool {
        !self.changed.is_empty()
            || !self.renamed.is_empty()
            || self.instructions_changed
            || self.unreadable.is_some()
            || self.unpinned.is_some()
    }

    /// The pinned name of a tool that is new only by name.
    pub(crate) fn origin(&self, name: &WireName) -> Option<&WireName> {
        let position = self.renamed.binary_search_by(|(new, _)| new.cmp(name));
        let (_, origin) = self.renamed.get(position.ok()?)?;
        Some(origin)
    }

    /// The tools without those that differ from their pins or cannot be compared with them, which are set aside with
    /// the reason.
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

/// Compares a listing with the server's pins, and pins what is new. Several processes may do so at once.
///
/// What cannot be compared because the store fails is judged unreadable. What is new and cannot be pinned because the
/// store fails is judged by the policy.
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
        // The closure runs before anything is written.
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

/// What is wrong with a store, with what can be done about it.
pub(crate) fn reason_of(error: &StoreError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

/// Compares a listing with a record of pins; what is to be written, if anything is new.
pub(crate) fn judge(pins: Option<&Bytes>, listing: Listing<'_>) -> (Judgement, Option<Bytes>) {
    let Some(pins) = pins else {
        // First use. What is kept anyway, for those who look without connecting, is the pin.
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
        judgement.not_written("the server has had too many tools for all of them to be pinned");
    }
    (judgement, write)
}

/// The listing with what the user's rules leave out, where they do.
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

/// Which write a server's pins come from.
pub(crate) async fn revision(
    store: &dyn Store,
    identity: ServerIdentity,
) -> Result<Option<Revision>, StoreError> {
    let key = Key::new(identity.to_hex())?;
    let record = store.get(PINS, &key).await?;
    Ok(record.map(|record| record.revision))
}
