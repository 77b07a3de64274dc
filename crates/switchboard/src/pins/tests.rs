//! Tests of comparing lists with pins, without a host.

mod content;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use switchboard_config::entry::{ServerEntry, ToolEntry};
use switchboard_store::{
    ErrorKind, Expected, Listing as StoreListing, MemoryStore, Record, UnavailableStore,
};

use super::*;
use crate::catalog::{ListLimits, Provenance, ServerCatalog, ToolRules};
use crate::json::SharedJson;
use crate::pins::review::{Review, Standing, Subject};
use crate::remembered::{Outline, Remembered};
use crate::spec::ConnectionKey;

struct Listed {
    server: ServerName,
    tools: ServerTools,
    instructions: Option<String>,
    bytes: Bytes,
}

impl Listed {
    fn listing(&self) -> Listing<'_> {
        Listing {
            server: &self.server,
            tools: &self.tools,
            instructions: self.instructions.as_deref(),
            bytes: &self.bytes,
            reach: Reach::Other,
        }
    }
}

fn listed(tools: &[(&str, &str)], instructions: Option<&str>) -> Listed {
    listed_by(&ToolRules::default(), tools, instructions)
}

fn listed_by(rules: &ToolRules, tools: &[(&str, &str)], instructions: Option<&str>) -> Listed {
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
        rules,
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

fn identity() -> ServerIdentity {
    ServerIdentity::of_connection(ConnectionKey::of(&[b"s"]))
}

fn outline() -> Outline {
    Outline {
        name: ServerName::from("s"),
        key: ConnectionKey::of(&[b"s"]),
        identity: identity(),
        rules: ToolRules::default(),
    }
}

/// A store that can be read, while every write fails.
#[derive(Debug, Default)]
struct FullStore(MemoryStore);

impl Store for FullStore {
    fn get<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.get(space, key)
    }

    fn get_many<'a>(
        &'a self,
        space: Space,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.0.get_many(space, keys)
    }

    fn list<'a>(
        &'a self,
        space: Space,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<StoreListing, StoreError>> {
        self.0.list(space, after)
    }

    fn put<'a>(
        &'a self,
        _: Space,
        _: &'a Key,
        _: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        ready(Err(StoreError::new(ErrorKind::Full, "no space"))).boxed()
    }

    fn remove<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        expected: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.0.remove(space, key, expected)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.0.sweep()
    }
}

/// What a reason of [`FullStore`] consists of: the error, and how to fix it.
const FULL: &str = "no space (free some space, and check the quota and limits on file sizes)";

async fn compared(store: &MemoryStore, listed: &Listed) -> Judgement {
    let judgement = compare(store, identity(), listed.listing(), PinPolicy::Required).await;
    assert!(judgement.revision.is_some());
    Judgement {
        revision: None,
        is_first: false,
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

    let more = listed(&[("c", "3"), ("a", "2")], Some("use a"));
    let expected = Judgement {
        changed: vec![("a".into(), vec![Part::Description])],
        added: vec!["c".into()],
        ..Judgement::default()
    };
    assert_eq!(compared(&store, &more).await, expected);
    // Once pinned, a tool is no longer new, and a removed tool is still pinned.
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
    assert!(judgement.unreadable.is_some() && judgement.waits());
    let kept = judgement.apply(listed(&[("a", "1")], None).tools);
    assert_eq!((kept.tools().len(), kept.aside().len()), (0, 1));

    let outline = outline();
    let record = store.get(PINS, &key).await.unwrap().unwrap();
    let remembered = Remembered::new(Some(now.bytes.clone()), Some(record.value));
    let review = Review::of(&outline, &remembered).unwrap();
    assert!(
        review
            .pins()
            .iter()
            .all(|pin| pin.standing == Standing::Unreadable)
    );
    let subject = Subject::Tool("a".into());
    review.approve(&store, &[subject]).await.unwrap();
    assert_eq!(compared(&store, &now).await, Judgement::default());
}

#[tokio::test]
async fn a_second_name_for_a_tool_is_told_if_the_tool_says_enough() {
    let check =
        async |before: &[(&str, &str)], after: &[(&str, &str)], expected: &[(&str, &str)]| {
            let store = MemoryStore::new();
            compared(&store, &listed(before, None)).await;
            let judgement = compared(&store, &listed(after, None)).await;
            let expected: Vec<(WireName, WireName)> = expected
                .iter()
                .map(|(new, before)| ((*new).into(), (*before).into()))
                .collect();
            assert_eq!(judgement.renamed, expected, "{before:?} {after:?}");
        };
    let long = "deletes every file for good";
    check(&[("a", long)], &[("b", long)], &[("b", "a")]).await;
    check(&[("a", long)], &[("a", long), ("b", long)], &[("b", "a")]).await;
    check(&[("a", "x")], &[("b", "x")], &[("b", "a")]).await;
    // Two tools that say nothing look alike without being one.
    check(&[("a", "x")], &[("a", "x"), ("b", "x")], &[]).await;
    let twins = [("a", "x"), ("b", "x")];
    check(&twins, &[("a", "x"), ("b", "x"), ("c", "x")], &[]).await;
    // Of twins the one that is gone is the origin.
    let twins = [("a", long), ("b", long)];
    check(&twins, &[("a", long), ("c", long)], &[("c", "b")]).await;
    check(&twins, &[("b", long), ("c", long)], &[("c", "a")]).await;
}

#[tokio::test]
async fn a_digest_stands_for_the_whole_definition() {
    let digests = async |tools: &[(&str, &str)]| {
        let store = MemoryStore::new();
        let now = listed(tools, None);
        compared(&store, &now).await;
        let outline = outline();
        let key = Key::new(identity().to_hex()).unwrap();
        let record = store.get(PINS, &key).await.unwrap().unwrap();
        let remembered = Remembered::new(Some(now.bytes.clone()), Some(record.value));
        let review = Review::of(&outline, &remembered).unwrap();
        let pins = review.pins();
        pins.iter()
            .map(|pin| pin.digest.clone())
            .collect::<Vec<_>>()
    };
    let first = digests(&[("a", "1"), ("b", "1")]).await;
    assert_eq!(first.len(), 2);
    for digest in &first {
        assert_eq!(digest.len(), 64, "{digest}");
        assert!(
            digest.chars().all(|letter| letter.is_ascii_hexdigit()),
            "{digest}"
        );
    }
    assert_ne!(first[0], first[1]);
    let second = digests(&[("a", "2"), ("b", "1")]).await;
    assert_ne!(first[0], second[0]);
    assert_eq!(first[1], second[1]);
}

#[tokio::test]
async fn what_cannot_be_pinned_is_withheld_where_pins_are_required() {
    let first = Judgement {
        is_first: true,
        ..Judgement::default()
    };
    let more = Judgement {
        added: vec!["a".into()],
        ..Judgement::default()
    };
    for (mut judgement, is_withheld) in [(first, true), (more, true), (Judgement::default(), false)]
    {
        judgement.not_written("the disk is full");
        assert_eq!(judgement.unpinned.is_some(), is_withheld, "{judgement:?}");
        assert_eq!(judgement.waits(), is_withheld);
        let tools = judgement.apply(listed(&[("a", "1"), ("b", "1")], Some("use a")).tools);
        let aside = match (is_withheld, judgement.is_first) {
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => 0,
        };
        assert_eq!(tools.aside().len(), aside, "{judgement:?}");
        assert_eq!(tools.withholds_instructions(), judgement.is_first);
    }
}

#[tokio::test]
async fn the_first_comparison_is_marked_and_has_the_revision_of_the_new_pins() {
    let store = MemoryStore::new();
    assert_eq!(revision(&store, identity()).await.unwrap(), None);
    let now = listed(&[("a", "1")], None);
    for is_first in [true, false] {
        let judgement = compare(&store, identity(), now.listing(), PinPolicy::Required).await;
        assert_eq!(judgement.is_first, is_first);
        assert!(judgement.revision.is_some());
        let stored = revision(&store, identity()).await.unwrap();
        assert_eq!(stored, judgement.revision);
    }
    let error = StoreError::new(ErrorKind::Full, "no space");
    let broken = UnavailableStore::new(error.clone());
    assert_eq!(revision(&broken, identity()).await, Err(error));
}

#[tokio::test]
async fn without_a_pin_new_tools_are_offered_only_if_pins_are_best_effort() {
    for (policy, unpinned) in [
        (PinPolicy::Required, Some(FULL)),
        (PinPolicy::BestEffort, None),
    ] {
        let now = listed(&[("a", "1"), ("b", "1")], None);
        let store = FullStore::default();
        let judgement = compare(&store, identity(), now.listing(), policy).await;
        assert_eq!(judgement.unpinned.as_deref(), unpinned, "{policy:?}");
        assert_eq!(judgement.unreadable, None);
        let offered = judgement.apply(now.tools).tools().len();
        assert_eq!(offered, if unpinned.is_some() { 0 } else { 2 });
    }
}

#[tokio::test]
async fn pins_that_cannot_be_read_withhold_everything_under_either_policy() {
    let cases = [
        (ErrorKind::Full, FULL),
        // Without a hint, the error alone.
        (ErrorKind::Unavailable, "no space"),
    ];
    for (kind, why) in cases {
        for policy in [PinPolicy::Required, PinPolicy::BestEffort] {
            let now = listed(&[("a", "1")], Some("use a"));
            let store = UnavailableStore::new(StoreError::new(kind, "no space"));
            let judgement = compare(&store, identity(), now.listing(), policy).await;
            assert_eq!(judgement.unreadable.as_deref(), Some(why));
            let tools = judgement.apply(now.tools);
            assert_eq!(tools.tools().len(), 0);
            assert!(tools.withholds_instructions());
        }
    }
}

#[tokio::test]
async fn tools_that_a_rule_excludes_are_pinned_as_well() {
    let tools = [("a", "1"), ("b", "1")];
    assert!(everything(listed(&tools, None).listing()).is_none());
    let hidden = ToolEntry {
        hidden: Some(true),
        ..ToolEntry::default()
    };
    let entries = [
        ServerEntry {
            disabled_tools: vec!["b".to_owned()],
            ..ServerEntry::default()
        },
        ServerEntry {
            enabled_tools: vec!["a".to_owned()],
            ..ServerEntry::default()
        },
        ServerEntry {
            tools: [("b".to_owned(), hidden)].into(),
            ..ServerEntry::default()
        },
    ];
    for entry in entries {
        let store = MemoryStore::new();
        compared(&store, &listed(&[("a", "1")], None)).await;
        let excluding = listed_by(&ToolRules::of(&entry), &tools, None);
        assert_eq!(excluding.tools.tools().len(), 1, "{entry:?}");
        assert_eq!(compared(&store, &excluding).await, Judgement::default());
        // The rule is gone, and the tool is not what it was.
        let judgement = compared(&store, &listed(&[("a", "1"), ("b", "2")], None)).await;
        let expected = vec![("b".into(), vec![Part::Description])];
        assert_eq!(judgement.changed, expected, "{entry:?}");
        assert!(judgement.added.is_empty(), "{entry:?}");
    }
}

#[tokio::test]
async fn tools_beyond_the_limit_are_not_offered_without_a_pin() {
    let store = MemoryStore::new();
    let limit = ListLimits::default().max_tools;
    let names: Vec<String> = (0..limit + 2).map(|index| format!("tool{index}")).collect();
    let tools: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &**name)).collect();
    let (pinned, more) = tools.split_at(limit);
    compared(&store, &listed(pinned, None)).await;
    let more = listed(more, None);
    let judgement = compared(&store, &more).await;
    assert_eq!(judgement.added.len(), 2);
    assert!(judgement.unpinned.is_some());
    assert_eq!(judgement.apply(more.tools).tools().len(), 0);
}

#[test]
fn a_new_tool_of_a_known_server_is_shown_as_new() {
    let pins = listed(&[("a", "1"), ("b", "1")], None).bytes;
    let now = listed(&[("a", "1"), ("c", "3")], None).bytes;
    let remembered = Remembered::new(Some(now), Some(pins));
    let review = Review::of(&outline(), &remembered).unwrap();
    let pins = review.pins().into_iter();
    let shown: Vec<_> = pins.map(|pin| (pin.subject, pin.standing)).collect();
    let expected = [
        (Subject::Tool("a".into()), Standing::Pinned),
        (Subject::Tool("b".into()), Standing::Absent),
        (Subject::Tool("c".into()), Standing::Unpinned),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_server_is_reviewed_if_anything_of_it_is_stored() {
    let lists = || Some(listed(&[("a", "1")], None).bytes);
    let prompts = || Some(Bytes::from_static(br#"[{"name":"p"}]"#));
    let review = |lists, pins, prompts| {
        let mut remembered = Remembered::new(lists, pins);
        remembered.contents.insert(ContentKind::Prompt, prompts);
        Review::of(&outline(), &remembered).map(|review| {
            let pins = review.pins().into_iter();
            pins.map(|pin| pin.standing).collect::<Vec<_>>()
        })
    };
    let none = (None, None);
    assert_eq!(review(None, None, none.clone()), None);
    assert_eq!(
        review(lists(), None, none.clone()),
        Some(vec![Standing::Unpinned])
    );
    assert_eq!(review(None, lists(), none), Some(vec![Standing::Absent]));
    assert_eq!(
        review(None, None, (prompts(), None)),
        Some(vec![Standing::Unpinned])
    );
    assert_eq!(
        review(None, None, (None, prompts())),
        Some(vec![Standing::Absent])
    );
}

#[test]
fn a_subject_has_its_kind_in_one_word() {
    for (subject, kind) in [
        (Subject::Instructions, "instructions"),
        (Subject::Tool("a".into()), "tool"),
        (Subject::Content(ContentKind::Prompt, "a".into()), "prompt"),
        (
            Subject::Content(ContentKind::Template, "a".into()),
            "template",
        ),
    ] {
        assert_eq!(subject.kind(), kind);
    }
}
