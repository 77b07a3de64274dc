//! The specification's example messages, if available.

use std::fs;

use serde_json::Value;
use switchboard_protocol::{
    Incoming, Limits, Message, Revision, encode,
    negotiate::{ModernError, NegotiationReply, Offer, Step, after_discover},
    parse,
    serve::{Opening, Serving, classify},
};
use switchboard_test::shared::protocol_data;

/// Every example that is a complete message, by path.
fn messages() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = protocol_data("2026-07-28") else {
        return Vec::new();
    };
    let mut messages = Vec::new();
    for kind in fs::read_dir(folder.join("examples")).unwrap() {
        for file in fs::read_dir(kind.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            if value.get("jsonrpc").is_some() {
                messages.push((path.display().to_string(), bytes));
            }
        }
    }
    assert!(messages.len() >= 32, "{} examples", messages.len());
    messages
}

#[test]
fn every_example_parses_without_quirks_and_round_trips() {
    for (path, bytes) in messages() {
        let Ok(Incoming::Single(received)) = parse(&bytes, &Limits::default()) else {
            panic!("{path}: unreadable");
        };
        assert!(received.quirks.is_empty(), "{path}: {:?}", received.quirks);
        let mut buffer = Vec::new();
        encode::message(&mut buffer, &received.message).unwrap();
        assert!(!buffer.contains(&b'\n'), "{path}");
        let (original, written): (Value, Value) = (
            serde_json::from_slice(&bytes).unwrap(),
            serde_json::from_slice(&buffer).unwrap(),
        );
        assert_eq!(original, written, "{path}");
    }
}

#[test]
fn every_example_request_opens_statelessly_and_every_modern_error_is_recognised() {
    let serving = Serving {
        supported: &Revision::ALL,
        settled: None,
    };
    let offer = Offer {
        supported: &Revision::ALL,
        asked: Revision::V2026_07_28,
    };
    for (path, bytes) in messages() {
        let Ok(Incoming::Single(received)) = parse(&bytes, &Limits::default()) else {
            panic!("{path}: unreadable");
        };
        match &received.message {
            // Requests for input in results are shown as messages, but lack the `_meta` of a request.
            Message::Request { method, params, .. } if !is_embedded(method) => {
                let opening = classify(serving, method, *params);
                assert!(
                    matches!(opening, Ok(Opening::Stateless { .. })),
                    "{path}: {opening:?}"
                );
            }
            Message::Error { error, .. } if error.code.0 <= -32020 && error.code.0 >= -32022 => {
                assert!(ModernError::recognise(error).is_some(), "{path}");
            }
            Message::Response { result, .. } if path.contains("DiscoverResult") => {
                let step = after_discover(offer, NegotiationReply::Result(result));
                assert_eq!(step, Step::Stateless(Revision::V2026_07_28), "{path}");
            }
            _ => {}
        }
    }
}

fn is_embedded(method: &str) -> bool {
    ["sampling/createMessage", "elicitation/create", "roots/list"].contains(&method)
}
