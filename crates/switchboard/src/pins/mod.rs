//! Pins: what a server's tools and instructions were when they were first used, or last approved (SEC-3).
//!
//! A server that was harmless when it was added may change what its tools say or take later, which is the way most
//! attacks on agents begin. So the definitions are kept when they are first seen, and a tool whose definition differs
//! from its pin is set aside until somebody has looked at the difference and approved it. New tools of a known server
//! are pinned and told of; a tool that goes away keeps its pin. Instructions are pinned like one more tool.
//!
//! | where | what |
//! |---|---|
//! | `book` | the record of one server: definitions as they were, found by name |
//! | [`diff`] | how a person sees what has changed, line by line |
//! | [`review`] | what waits for an approval, and the approval itself, with no server running |
//!
//! Pins are kept under a server's *identity*: its name and what an approval of it binds (see
//! [`ServerSpec::identity`](crate::spec::ServerSpec)). Another server under the same name is a new one. Nothing here
//! decides what a definition *says*; that is [`catalog::suspicion`](crate::catalog::suspicion)'s business.
//!
//! What is kept is the definition itself and not only a hash of it: it is needed to show what has changed, and to
//! compare bytes is cheaper than to hash them.

mod book;
pub mod diff;
pub mod review;

use bytes::Bytes;
use switchboard_store::{Key, Revision, Space, Store, StoreError, Write, update};

use crate::catalog::{Part, Reach, ServerTools, SetAsideReason};
use crate::names::{ServerName, WireName};
use crate::spec::ConnectionKey;
use book::Book;

/// Where the pins are, each server's under its identity.
pub(crate) const PINS: Space = Space::new("pins");

/// How what a server lists stands against its pins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Judgement {
    /// Tools that differ from their pins, and in what, in the order of their names.
    pub(crate) changed: Vec<(WireName, Vec<Part>)>,
    /// Tools that a known server did not have before. They are pinned now.
    pub(crate) added: Vec<WireName>,
    /// Whether the instructions differ from those that are pinned.
    pub(crate) instructions_changed: bool,
    /// Whether the pins could not be read, so that nothing can be compared.
    pub(crate) unreadable: bool,
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
    /// Whether something waits for an approval.
    pub(crate) fn waits(&self) -> bool {
        !self.changed.is_empty() || self.instructions_changed || self.unreadable
    }

    /// The tools without those that differ from their pins, which are set aside with the reason.
    pub(crate) fn apply(&self, mut tools: ServerTools) -> ServerTools {
        if self.unreadable {
            tools.set_aside_where(|_| Some(SetAsideReason::PinsUnreadable));
        } else if !self.changed.is_empty() {
            let mut changed = self.changed.iter().peekable();
            tools.set_aside_where(|tool| {
                let name = &tool.reference().tool;
                let (_, parts) = changed.next_if(|(each, _)| each == name)?;
                Some(SetAsideReason::Changed {
                    tool: tool.reference().clone(),
                    parts: parts.clone(),
                })
            });
        }
        tools.withhold_instructions(self.instructions_changed || self.unreadable);
        tools
    }
}

/// Compares a listing with the server's pins, and pins what is new. Several processes may do so at once.
///
/// What cannot be compared because the store fails is judged unreadable. What cannot be pinned because the store
/// fails is offered all the same: it is as good as on its first use.
pub(crate) async fn compare(
    store: &dyn Store,
    identity: ConnectionKey,
    listing: Listing<'_>,
) -> Judgement {
    let Ok(key) = Key::new(identity.to_hex()) else {
        return Judgement::default();
    };
    let mut judgement = None;
    let updated = update(store, PINS, &key, |record| {
        let (mut judged, write) = judge(record.map(|record| &record.value), listing);
        judged.revision = record.map(|record| record.revision);
        judgement = Some(judged);
        write.map(Write::new)
    });
    let updated = updated.await;
    let mut judgement = judgement.unwrap_or(Judgement {
        unreadable: true,
        ..Judgement::default()
    });
    match updated {
        Ok(Some(written)) => judgement.revision = Some(written),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(server = %listing.server, %error, "the pins could not be read or written");
        }
    }
    judgement
}

/// Compares a listing with a record of pins; what is to be written, if anything is new.
pub(crate) fn judge(pins: Option<&Bytes>, listing: Listing<'_>) -> (Judgement, Option<Bytes>) {
    let Some(pins) = pins else {
        // First use. What is kept anyway, for those who look without connecting, is the pin.
        return (Judgement::default(), Some(listing.bytes.clone()));
    };
    if pins == listing.bytes {
        return (Judgement::default(), None);
    }
    let Some(book) = Book::read(listing.server, pins, listing.reach) else {
        let judgement = Judgement {
            unreadable: true,
            ..Judgement::default()
        };
        return (judgement, None);
    };
    let (judgement, added) = book.judge(listing.tools, listing.instructions);
    let write = if added.is_empty() {
        None
    } else {
        book.with(&added)
    };
    (judgement, write)
}

/// Which write a server's pins come from.
pub(crate) async fn revision(
    store: &dyn Store,
    identity: ConnectionKey,
) -> Result<Option<Revision>, StoreError> {
    let key = Key::new(identity.to_hex())?;
    let record = store.get(PINS, &key).await?;
    Ok(record.map(|record| record.revision))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use switchboard_store::MemoryStore;

    use super::*;
    use crate::catalog::{ListLimits, Provenance, ServerCatalog, ToolRules};
    use crate::json::SharedJson;
    use crate::pins::review::{Review, Subject};
    use crate::remembered::{Outline, Remembered};

    /// A server that lists these tools.
    struct Listed {
        server: ServerName,
        tools: ServerTools,
        instructions: Option<String>,
        bytes: Bytes,
    }

    fn listed(tools: &[(&str, &str)], instructions: Option<&str>) -> Listed {
        let definition = |(name, description): &(&str, &str)| -> Value {
            json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
        };
        let tools: Vec<Value> = tools.iter().map(definition).collect();
        let catalog = ServerCatalog {
            tools: vec![SharedJson::from(&json!({"tools": tools}))],
            instructions: instructions.map(str::to_owned),
            ..ServerCatalog::default()
        };
        let server = ServerName::from("s");
        let tools = ServerTools::from_pages(
            &server,
            &catalog.tools,
            &ToolRules::default(),
            Reach::Other,
            Provenance::Live,
            ListLimits::default(),
        );
        Listed {
            server,
            tools,
            instructions: catalog.instructions.clone(),
            bytes: Bytes::from(catalog.to_bytes()),
        }
    }

    fn identity() -> ConnectionKey {
        ConnectionKey::of(&[b"s"])
    }

    async fn compared(store: &MemoryStore, listed: &Listed) -> Judgement {
        let listing = Listing {
            server: &listed.server,
            tools: &listed.tools,
            instructions: listed.instructions.as_deref(),
            bytes: &listed.bytes,
            reach: Reach::Other,
        };
        let judgement = compare(store, identity(), listing).await;
        assert!(judgement.revision.is_some());
        Judgement {
            revision: None,
            ..judgement
        }
    }

    #[tokio::test]
    async fn what_is_new_is_pinned_and_what_differs_is_told() {
        let store = MemoryStore::new();
        let same = Judgement::default();
        let first = listed(&[("a", "1"), ("b", "1")], Some("use a"));
        assert_eq!(compared(&store, &first).await, same);
        assert_eq!(compared(&store, &first).await, same);
        let other_order = listed(&[("b", "1"), ("a", "1")], Some("use a"));
        assert_eq!(compared(&store, &other_order).await, same);

        let more = listed(&[("c", "1"), ("a", "2")], Some("use a"));
        let expected = Judgement {
            changed: vec![("a".into(), vec![Part::Description])],
            added: vec!["c".into()],
            ..Judgement::default()
        };
        assert_eq!(compared(&store, &more).await, expected);
        // Once pinned, it is no longer new, and what went away is still pinned.
        let later = listed(&[("a", "1"), ("b", "2"), ("c", "2")], None);
        let expected = Judgement {
            changed: vec![
                ("b".into(), vec![Part::Description]),
                ("c".into(), vec![Part::Description]),
            ],
            instructions_changed: true,
            ..Judgement::default()
        };
        assert_eq!(compared(&store, &later).await, expected);
        let tools = expected.apply(later.tools);
        let names: Vec<_> = tools
            .tools()
            .iter()
            .map(|tool| tool.reference().tool.as_str())
            .collect();
        assert_eq!(names, ["a"]);
        assert_eq!(tools.aside().len(), 2);
        assert!(tools.withholds_instructions());
    }

    #[tokio::test]
    async fn of_two_tools_with_one_name_the_second_is_no_pin() {
        let store = MemoryStore::new();
        compared(&store, &listed(&[("a", "kind"), ("a", "evil")], None)).await;
        let judgement = compared(&store, &listed(&[("a", "evil")], None)).await;
        assert_eq!(judgement.changed.len(), 1);
    }

    #[tokio::test]
    async fn pins_that_cannot_be_read_hold_everything_back_until_it_is_approved_anew() {
        let store = MemoryStore::new();
        let key = Key::new(identity().to_hex()).unwrap();
        let garbage = Write::new(&b"{\"version\":999}"[..]);
        store.put(PINS, &key, garbage).await.unwrap();
        let now = listed(&[("a", "1")], None);
        let judgement = compared(&store, &now).await;
        assert!(judgement.unreadable && judgement.waits());
        let kept = judgement.apply(listed(&[("a", "1")], None).tools);
        assert_eq!((kept.tools().len(), kept.aside().len()), (0, 1));

        let outline = Outline {
            name: now.server.clone(),
            key: identity(),
            identity: identity(),
            rules: ToolRules::default(),
        };
        let record = store.get(PINS, &key).await.unwrap().unwrap();
        let remembered = Remembered::new(Some(now.bytes.clone()), Some(record.value));
        let review = Review::of(&outline, &remembered).unwrap();
        assert!(review.is_unreadable());
        let subject = Subject::Tool("a".into());
        review.approve(&store, &[subject]).await.unwrap();
        assert_eq!(compared(&store, &now).await, Judgement::default());
    }
}
