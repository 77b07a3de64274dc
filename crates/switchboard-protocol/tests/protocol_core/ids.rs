//! Request ids: preserved verbatim, compared by value.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use switchboard_protocol::RequestId;

fn id(text: &str) -> RequestId<'_> {
    RequestId::from_json(text).unwrap()
}

#[test]
fn one_meaning_is_one_id() {
    let state = RandomState::new();
    for group in [
        &["1", "1.0", "1e0", "10e-1", "1.000"][..],
        &["0", "-0", "0.0"],
        &["\"a\"", "\"\\u0061\""],
        &["\"\"", "\"\""],
        &["1.5", "15e-1"],
        &[
            "123456789012345678901234567890123456789012345678901234567890",
            "123456789012345678901234567890123456789012345678901234567890.0",
        ],
    ] {
        for text in group {
            assert_eq!(id(text), id(group[0]));
            assert_eq!(
                state.hash_one(id(text)),
                state.hash_one(id(group[0])),
                "{text}"
            );
            assert_eq!(id(text).to_string(), *text, "the spelling stays");
        }
    }
    assert_eq!(RequestId::from(42), id("42.0"));
    assert_eq!(
        state.hash_one(RequestId::from(42)),
        state.hash_one(id("42.0"))
    );
    assert_eq!(RequestId::from("a\"b"), id(r#""a\"b""#));
}

#[test]
fn different_meanings_are_different_ids() {
    let all = [
        "1",
        "\"1\"",
        "2",
        "null",
        "\"null\"",
        "\"\"",
        "\"\\ud800\"",
        "\"\\ud801\"",
        "1.5",
        "-1",
        "1e400",
        "1e401",
    ];
    let set: HashSet<RequestId<'_>> = all.iter().map(|text| id(text)).collect();
    assert_eq!(set.len(), all.len());
}

#[test]
fn invalid_ids_are_rejected() {
    for text in [
        "true", "false", "{}", "[1]", "", "1 2", "nul", "abc", "\"open", "01",
    ] {
        assert_eq!(RequestId::from_json(text), None, "{text}");
    }
}

#[test]
fn our_own_ids_are_recognised_in_any_spelling() {
    for (text, strict, lenient) in [
        ("7", Some(7), Some(7)),
        ("7.0", Some(7), Some(7)),
        ("70e-1", Some(7), Some(7)),
        ("\"7\"", None, Some(7)),
        ("\"007\"", None, Some(7)),
        ("\"+7\"", None, None),
        ("\"7.0\"", None, None),
        ("\" 7\"", None, None),
        ("\"\"", None, None),
        ("\"seven\"", None, None),
        ("-7", None, None),
        ("7.5", None, None),
        ("null", None, None),
        ("18446744073709551615", Some(u64::MAX), Some(u64::MAX)),
        ("18446744073709551616", None, None),
        ("\"18446744073709551616\"", None, None),
    ] {
        assert_eq!(id(text).as_u64(), strict, "{text}");
        assert_eq!(id(text).as_u64_lenient(), lenient, "{text}");
    }
    assert_eq!(RequestId::from(9).as_u64(), Some(9));
}

#[test]
fn counters_are_written_in_full() {
    for counter in [0, 1, 9, 10, 12_345, u64::MAX] {
        let mut buffer = Vec::new();
        RequestId::from(counter).write_json(&mut buffer);
        assert_eq!(String::from_utf8(buffer).unwrap(), counter.to_string());
        assert_eq!(RequestId::from(counter).json(), counter.to_string());
    }
}

#[test]
fn ids_pass_through_serde_unchanged() {
    for text in ["1.0", "\"\\u0061\"", "null", "12345678901234567890123"] {
        let id: RequestId<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), text);
        assert_eq!(serde_json::to_string(&id.into_owned()).unwrap(), text);
    }
    assert_eq!(serde_json::to_string(&RequestId::from(5)).unwrap(), "5");
    assert!(serde_json::from_str::<RequestId<'_>>("true").is_err());
    assert!(RequestId::null().is_null());
}
