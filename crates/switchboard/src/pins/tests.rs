//! Tests of comparing lists with pins, without a host.

use serde_json::{Value, json};
use switchboard_store::MemoryStore;

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

fn identity() -> ServerIdentity {
    ServerIdentity::of_connection(ConnectionKey::of(&[b"s"]))
}

async fn compared(store: &MemoryStore, listed: &Listed) -> Judgement {
    let listing = Listing {
        server: &listed.server,
        tools: &listed.tools,
        instructions: listed.instructions.as_deref(),
        bytes: &listed.bytes,
        reach: Reach::Other,
    };
    let judgement = compare(store, identity(), listing, PinPolicy::Required).await;
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

    let outline = Outline {
        name: now.server.clone(),
        key: ConnectionKey::of(&[b"s"]),
        identity: identity(),
        rules: ToolRules::default(),
    };
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
        let outline = Outline {
            name: now.server.clone(),
            key: ConnectionKey::of(&[b"s"]),
            identity: identity(),
            rules: ToolRules::default(),
        };
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
