//! Tests of the pins of prompts and resource templates.

use switchboard_protocol::trusted;

use super::super::content::{Items, judge};
use super::*;
use crate::peer::Pages;

use ContentKind::{Prompt, Template};

fn items(kind: ContentKind, list: &str) -> Items {
    Items::read(kind, &Bytes::copy_from_slice(list.as_bytes())).unwrap()
}

fn pages(page: &str) -> Pages {
    Pages {
        pages: vec![trusted(page).map(SharedJson::from).unwrap()],
        ..Pages::default()
    }
}

/// Names and reasons of withheld prompts, and the page that is left.
async fn admitted(
    store: &dyn Store,
    page: &str,
    policy: PinPolicy,
) -> (Vec<(String, SetAsideReason)>, String) {
    let server = ServerName::from("s");
    let admitted = admit(store, &server, identity(), Prompt, &pages(page), policy).await;
    let withheld = admitted.pages.withheld.into_iter();
    let withheld = withheld.map(|aside| (aside.name.unwrap(), aside.reason));
    (
        withheld.collect(),
        admitted.pages.pages[0].as_str().to_owned(),
    )
}

#[tokio::test]
async fn without_a_pin_only_new_prompts_are_withheld() {
    let store = MemoryStore::new();
    let (withheld, _) =
        admitted(&store, r#"{"prompts":[{"name":"a"}]}"#, PinPolicy::Required).await;
    assert_eq!(withheld, []);
    let full = FullStore(store);
    let page = r#"{"prompts":[{"name":"a"},{"name":"b"}]}"#;
    let (withheld, left) = admitted(&full, page, PinPolicy::Required).await;
    let why = FULL.to_owned();
    let expected = ("b".to_owned(), SetAsideReason::NotPinned { why });
    assert_eq!(withheld, [expected]);
    assert_eq!(left, r#"{"prompts":[{"name":"a"}]}"#);
    let (withheld, left) = admitted(&full, page, PinPolicy::BestEffort).await;
    assert_eq!(withheld, []);
    assert_eq!(left, page);
}

#[tokio::test]
async fn prompts_that_cannot_be_compared_are_withheld_under_either_policy() {
    for policy in [PinPolicy::Required, PinPolicy::BestEffort] {
        let store = UnavailableStore::new(StoreError::new(ErrorKind::Full, "no space"));
        let page = r#"{"prompts":[{"name":"a"}]}"#;
        let (withheld, left) = admitted(&store, page, policy).await;
        let why = FULL.to_owned();
        let expected = ("a".to_owned(), SetAsideReason::PinsUnreadable { why });
        assert_eq!(withheld, [expected], "{policy:?}");
        assert_eq!(left, r#"{"prompts":[]}"#);
    }
}

#[tokio::test]
async fn only_the_list_of_a_page_loses_what_is_withheld() {
    let store = MemoryStore::new();
    let check = async |page: &str, expected: &str| {
        let (withheld, left) = admitted(&store, page, PinPolicy::Required).await;
        let names: Vec<_> = withheld.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a"], "{page}");
        assert_eq!(left, expected);
    };
    admitted(
        &store,
        r#"{"prompts":[{"name":"a","title":"1"},{"name":"b"}]}"#,
        PinPolicy::Required,
    )
    .await;
    check(
        r#"{"_meta":{"name":"a"},"more":[{"name":"a"}],"prompts":[{"name":"a","title":"2"},{"name":"b"}],"nextCursor":"x"}"#,
        r#"{"_meta":{"name":"a"},"more":[{"name":"a"}],"prompts":[{"name":"b"}],"nextCursor":"x"}"#,
    )
    .await;
    // A single item without an array.
    check(
        r#"{"prompts":{"name":"a","title":"2"}}"#,
        r#"{"prompts":[]}"#,
    )
    .await;
}

#[test]
fn an_item_differs_if_the_meaning_of_a_part_does() {
    let differences = |before: &str, now: &str| {
        let item = |arguments| format!(r#"[{{"name":"a","arguments":{arguments}}}]"#);
        let pins = items(Prompt, &item(before)).to_record();
        let (judgement, record) = judge(Prompt, Some(&pins), &items(Prompt, &item(now)));
        assert_eq!(record, None);
        judgement.changed.into_iter().collect::<Vec<_>>()
    };
    let before = r#"[{"name":"x","required":true}]"#;
    assert_eq!(differences(before, before), []);
    let other_order = r#"[ {"required":true, "name":"x"} ]"#;
    assert_eq!(differences(before, other_order), []);
    let expected = [("a".to_owned(), vec!["arguments"])];
    for now in [r#"[{"name":"x","required":false}]"#, "null"] {
        assert_eq!(differences(before, now), expected, "{now}");
        assert_eq!(differences(now, before), expected, "{now}");
    }
}

#[test]
fn items_beyond_the_limit_are_not_pinned() {
    let list = |range: std::ops::Range<usize>| {
        let names = range.map(|index| format!(r#"{{"name":"{index}"}}"#));
        let names: Vec<String> = names.collect();
        items(Prompt, &format!("[{}]", names.join(",")))
    };
    let pins = list(0..200).to_record();
    for (pins, listed, is_pinned) in [
        (None, list(0..20_000), true),
        (None, list(0..20_001), false),
        (Some(&pins), list(200..400), true),
        (Some(&pins), list(200..20_001), false),
    ] {
        let (judgement, record) = judge(Prompt, pins, &listed);
        assert_eq!(judgement.added.len(), listed.0.len());
        assert_eq!(record.is_some(), is_pinned);
        assert_eq!(judgement.unpinned.is_none(), is_pinned);
    }
}

type Records = (Option<Bytes>, Option<Bytes>);

fn review(prompts: Records, templates: Records) -> Review {
    let mut remembered = Remembered::default();
    remembered.contents.insert(Prompt, prompts);
    remembered.contents.insert(Template, templates);
    Review::of(&outline(), &remembered).unwrap()
}

fn records(listed: &str, pins: &str) -> Records {
    let bytes = |text: &str| Some(Bytes::copy_from_slice(text.as_bytes()));
    (bytes(listed), bytes(pins))
}

/// A prompt and a template of one name, of which both have changed, and another prompt.
fn both_changed() -> (Records, Records) {
    (
        records(
            r#"[{"name":"y","title":"old"},{"name":"x","title":"new"},{"name":"z"}]"#,
            r#"[{"name":"y","title":"old"},{"name":"x","title":"old"},{"name":"gone"}]"#,
        ),
        records(
            r#"[{"uriTemplate":"x","mimeType":"text/new"}]"#,
            r#"[{"uriTemplate":"x","mimeType":"text/old"}]"#,
        ),
    )
}

#[test]
fn changes_of_prompts_and_templates_are_shown_part_by_part() {
    let (prompts, templates) = both_changed();
    let review = review(prompts, templates);
    let pins = review.pins().into_iter();
    let shown: Vec<_> = pins.map(|pin| (pin.subject, pin.standing)).collect();
    let prompt = |name: &str| Subject::Content(Prompt, name.to_owned());
    let template = Subject::Content(Template, "x".to_owned());
    let expected = [
        (prompt("gone"), Standing::Absent),
        (prompt("x"), Standing::Changed(vec!["title"])),
        (prompt("y"), Standing::Pinned),
        (prompt("z"), Standing::Unpinned),
        (template.clone(), Standing::Changed(vec!["mimeType"])),
    ];
    assert_eq!(shown, expected);

    let change = |part, before: &str, now: &str| {
        let line = |side, text: &str| Line {
            side,
            text: text.to_owned(),
        };
        let lines = vec![line(Side::Before, before), line(Side::Now, now)];
        vec![Change { part, lines }]
    };
    assert_eq!(review.changes(&prompt("x")), change("title", "old", "new"));
    assert_eq!(
        review.changes(&template),
        change("mimeType", "text/old", "text/new")
    );
    assert_eq!(review.changes(&prompt("y")), []);
}

#[test]
fn prompts_whose_pins_are_damaged_are_shown_as_unreadable() {
    let review = review(records(r#"[{"name":"x"}]"#, "{}"), (None, None));
    let pins = review.pins().into_iter();
    let shown: Vec<_> = pins.map(|pin| pin.standing).collect();
    assert_eq!(shown, [Standing::Unreadable]);
}

#[tokio::test]
async fn an_approval_covers_one_kind_only() {
    let (prompts, templates) = both_changed();
    let review = review(prompts.clone(), templates.clone());
    for (approved, other) in [(Prompt, Template), (Template, Prompt)] {
        let store = MemoryStore::new();
        let key = |kind: ContentKind| kind.key(&identity().to_hex()).unwrap();
        let before = |kind| {
            if kind == Prompt {
                &prompts.1
            } else {
                &templates.1
            }
        };
        for kind in ContentKind::ALL {
            let write = Write::new(before(kind).clone().unwrap());
            store.put(PINS, &key(kind), write).await.unwrap();
        }
        let subject = Subject::Content(approved, "x".to_owned());
        review.approve(&store, &[subject]).await.unwrap();
        let stored = async |kind| {
            let record = store.get(PINS, &key(kind)).await.unwrap();
            record.map(|record| record.value)
        };
        assert_eq!(stored(other).await, *before(other));
        let now = stored(approved).await.unwrap();
        let item = items(approved, std::str::from_utf8(&now).unwrap());
        assert!(item.get("x").unwrap().as_str().contains("new"), "{now:?}");
    }
}

#[test]
fn a_digest_stands_for_all_parts_of_a_prompt() {
    let digest = |prompt: &str| {
        let list = format!("[{prompt}]");
        let review = review(records(&list, &list), (None, None));
        let pins = review.pins();
        assert_eq!(pins.len(), 1);
        pins[0].digest.clone()
    };
    let first = digest(r#"{"name":"a","title":"1","description":"2"}"#);
    assert_eq!(first.len(), 64, "{first}");
    let is_hex = |letter: char| letter.is_ascii_hexdigit();
    assert!(first.chars().all(is_hex), "{first}");
    let other_order = r#"{"name":"a","description":"2", "title":"1"}"#;
    assert_eq!(digest(other_order), first);
    for other in [
        r#"{"name":"a","title":"1","description":"3"}"#,
        r#"{"name":"a","title":"2","description":"1"}"#,
        r#"{"name":"a","title":"1"}"#,
    ] {
        assert_ne!(digest(other), first, "{other}");
    }
}
