//! Any bytes: parsing must end well, and what was read must survive being written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use switchboard_protocol::{
    Incoming, Limits, Message, ParseError, ParseErrorKind, Received, encode, parse, salvage,
};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        max_bytes: 4096,
        max_depth: 16,
        max_batch: 8,
        ..Limits::DEFAULT
    };
    salvage(bytes);
    let outcome = parse(bytes, &limits);
    check_syntax(bytes, &outcome);
    match outcome {
        Ok(Incoming::Single(received)) => round_trip(&received),
        Ok(Incoming::Batch(members)) => {
            assert!(members.len() <= limits.max_batch + 1);
            members.iter().flatten().for_each(round_trip);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
        }
    }
});

/// What counts as JSON is what serde_json says, whichever way the message went.
fn check_syntax(bytes: &[u8], outcome: &Result<Incoming<'_>, ParseError>) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    match outcome {
        Ok(Incoming::Single(_)) => assert!(is_json),
        Err(error) if matches!(error.kind, ParseErrorKind::NotJson { .. }) => assert!(!is_json),
        _ => {}
    }
}

fn round_trip(received: &Received<'_>) {
    let mut buffer = Vec::new();
    encode::message(&mut buffer, &received.message).unwrap();
    assert!(!buffer.contains(&b'\n') && !buffer.contains(&b'\r'));
    let Ok(Incoming::Single(again)) = parse(&buffer, &Limits::DEFAULT) else {
        panic!("what was written cannot be read");
    };
    assert_eq!(again.message.id(), received.message.id());
    assert_eq!(
        again.message.id().map(ToString::to_string),
        received.message.id().map(ToString::to_string)
    );
    assert_eq!(again.message.method(), received.message.method());
    match (&again.message, &received.message) {
        (Message::Response { result: left, .. }, Message::Response { result: right, .. }) => {
            assert_eq!(one_line(left.get()), one_line(right.get()));
        }
        (Message::Error { error: left, .. }, Message::Error { error: right, .. }) => {
            assert_eq!(left.code, right.code);
            assert_eq!(left.message, right.message);
        }
        (left, right) => assert_eq!(
            left.params().map(|params| one_line(params.get())),
            right.params().map(|params| one_line(params.get()))
        ),
    }
}

/// Raw newlines stand between tokens only, and are written as spaces.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}
