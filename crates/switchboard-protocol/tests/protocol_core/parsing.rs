//! Limits, batches and hostile input.

use switchboard_protocol::{
    ErrorCode, Incoming, Limits, Message, ParseErrorKind, RequestId, parse,
};

fn kind_of(bytes: &[u8], limits: &Limits) -> (ParseErrorKind, Option<String>) {
    let error = parse(bytes, limits).unwrap_err();
    (error.kind, error.id.map(|id| id.to_string()))
}

fn nested(depth: usize) -> String {
    format!(
        r#"{{"id":4,"result":{}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    )
}

#[test]
fn a_message_over_the_size_limit_is_refused_with_its_id() {
    let limits = Limits {
        max_bytes: 64,
        ..Limits::default()
    };
    let text = format!(r#"{{"id":4,"result":"{}"}}"#, "x".repeat(64));
    let expected = ParseErrorKind::TooLarge {
        size: text.len(),
        limit: 64,
    };
    assert_eq!(
        kind_of(text.as_bytes(), &limits),
        (expected, Some("4".to_owned()))
    );

    let late = format!(r#"{{"result":"{}","id":"last"}}"#, "x".repeat(64));
    assert_eq!(
        kind_of(late.as_bytes(), &limits).1.as_deref(),
        Some("\"last\"")
    );
}

#[test]
fn a_message_of_exactly_the_limit_passes() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let limits = Limits {
        max_bytes: text.len(),
        ..Limits::default()
    };
    assert!(parse(text.as_bytes(), &limits).is_ok());
}

#[test]
fn depth_is_limited_and_the_limit_itself_passes() {
    let limits = Limits::default();
    // The envelope is the first level.
    assert!(parse(nested(127).as_bytes(), &limits).is_ok());
    let expected = ParseErrorKind::TooDeep {
        limit: 128,
        offset: 17 + 127,
    };
    assert_eq!(
        kind_of(nested(128).as_bytes(), &limits),
        (expected, Some("4".to_owned()))
    );
}

#[test]
fn ten_thousand_levels_and_a_hundred_megabytes_do_no_harm() {
    assert!(matches!(
        kind_of(nested(10_000).as_bytes(), &Limits::default()),
        (ParseErrorKind::TooDeep { limit: 128, .. }, Some(_))
    ));
    let unclosed = format!(r#"{{"id":4,"result":{}"#, "[".repeat(10_000));
    assert!(matches!(
        kind_of(unclosed.as_bytes(), &Limits::default()),
        (ParseErrorKind::TooDeep { .. }, Some(_))
    ));

    // Nothing recurses, even without limits.
    let lifted = Limits {
        max_bytes: usize::MAX,
        max_depth: usize::MAX,
        max_batch: usize::MAX,
        ..Limits::default()
    };
    assert!(parse(nested(1_000_000).as_bytes(), &lifted).is_ok());
    let batch = format!("[{}]", nested(1_000_000));
    assert!(parse(batch.as_bytes(), &lifted).is_ok());

    let mut huge = br#"{"id":4,"result":""#.to_vec();
    huge.resize(100 * 1024 * 1024, b'x');
    huge.extend_from_slice(b"\"}");
    assert!(matches!(
        kind_of(&huge, &Limits::default()),
        (ParseErrorKind::TooLarge { .. }, Some(_))
    ));
    assert!(parse(&huge, &lifted).is_ok());
}

#[test]
fn invalid_utf8_is_located() {
    let (kind, id) = kind_of(b"{\"id\":4,\"result\":\"\xff\"}", &Limits::default());
    assert_eq!(kind, ParseErrorKind::NotUtf8 { offset: 18 });
    assert_eq!(id.as_deref(), Some("4"));
    assert_eq!(
        kind_of(b"\xff\xfe{\x00", &Limits::default()),
        (ParseErrorKind::NotUtf8 { offset: 0 }, None)
    );
}

#[test]
fn the_code_to_answer_with_follows_the_fault() {
    for (text, code) in [
        ("", ErrorCode::PARSE_ERROR),
        ("{", ErrorCode::PARSE_ERROR),
        ("1", ErrorCode::INVALID_REQUEST),
        ("[]", ErrorCode::INVALID_REQUEST),
        (r#"{"id":1}"#, ErrorCode::INVALID_REQUEST),
    ] {
        assert_eq!(
            parse(text.as_bytes(), &Limits::default())
                .unwrap_err()
                .code(),
            code,
            "{text}"
        );
    }
}

fn check_batch(text: &str, expected: &[&str]) {
    let Ok(Incoming::Batch(members)) = parse(text.as_bytes(), &Limits::default()) else {
        panic!("{text}: no batch");
    };
    let found: Vec<String> = members
        .iter()
        .map(|member| match member {
            Ok(received) => match &received.message {
                Message::Request { id, .. } => format!("request {id}"),
                Message::Notification { method, .. } => format!("notification {method}"),
                Message::Response { id, .. } => format!("response {id}"),
                Message::Error { id, .. } => format!("error {}", id.is_some()),
            },
            Err(error) => format!(
                "{error} [{}]",
                error.id.as_ref().map_or("-".into(), RequestId::to_string)
            ),
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn an_invalid_batch_member_does_not_affect_the_others() {
    check_batch(
        r#" [{"id":1,"result":{}}, 7, {"id":2}, [], {"method":"m"}, {"id":3,"method":"m"}, null] "#,
        &[
            "response 1",
            "a message must be a JSON object [-]",
            "a response with neither a result nor an error [2]",
            "a message must be a JSON object [-]",
            "notification m",
            "request 3",
            "a message must be a JSON object [-]",
        ],
    );
    check_batch("[1]", &["a message must be a JSON object [-]"]);
}

#[test]
fn a_truncated_batch_keeps_its_earlier_members() {
    check_batch(
        r#"[{"id":1,"result":{}},{"id":2,"result":"#,
        &[
            "response 1",
            r#"not JSON at byte 39: EOF while parsing a value, near `"id":2,"result":` [-]"#,
        ],
    );
    check_batch(
        r#"[{"id":1,"result":{}}]]"#,
        &[
            "response 1",
            r#"not JSON at byte 22: trailing characters, near `:1,"result":{}}]]` [-]"#,
        ],
    );
}

#[test]
fn batches_are_limited_in_number() {
    let batch = |count: usize| format!("[{}]", vec![r#"{"method":"m"}"#; count].join(","));
    assert!(parse(batch(100).as_bytes(), &Limits::default()).is_ok());
    assert_eq!(
        kind_of(batch(101).as_bytes(), &Limits::default()).0,
        ParseErrorKind::TooManyMembers { limit: 100 }
    );
    assert_eq!(
        kind_of(b"[ ]", &Limits::default()).0,
        ParseErrorKind::EmptyBatch
    );
}

#[test]
fn params_and_results_are_slices_of_the_input() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"text":"a long text"}}"#;
    let Ok(Incoming::Single(received)) = parse(text.as_bytes(), &Limits::default()) else {
        panic!("unreadable");
    };
    let Message::Response { result, .. } = received.message else {
        panic!("no response");
    };
    let start = text.as_ptr() as usize;
    assert!((start..start + text.len()).contains(&(result.get().as_ptr() as usize)));
}

#[test]
fn a_frame_gives_its_messages_one_by_one() {
    let ids = |text: &str| -> Vec<String> {
        let incoming = parse(text.as_bytes(), &Limits::default()).unwrap();
        incoming
            .into_messages()
            .map(|member| match member {
                Ok(received) => received.message.id().unwrap().to_string(),
                Err(error) => error.to_string(),
            })
            .collect()
    };
    let one = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(ids(one), ["1"]);
    assert_eq!(
        ids(&format!("[{one},7]")),
        ["1", "a message must be a JSON object"]
    );
    assert_eq!(ids(&format!("{one}{one}")), ["1", "1"]);
}
