//! Standard headers: encoding, sending, checking.

use switchboard_protocol::{
    ErrorCode, Revision,
    headers::{self, Mismatch, ReceivedHeaders, ValueError},
};

use crate::raw;

/// Encodes and decodes every row.
#[test]
fn values_are_encoded_if_http_cannot_carry_them() {
    for (value, expected) in [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b", "a b"),
        ("~!#$%&'*+-.^_`|", "~!#$%&'*+-.^_`|"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("tail ", "=?base64?dGFpbCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("tab\tinside", "=?base64?dGFiCWluc2lkZQ==?="),
        ("\0", "=?base64?AA==?="),
        ("\u{7f}", "=?base64?fw==?="),
        ("é", "=?base64?w6k=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?open", "=?base64?open"),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
    ] {
        assert_eq!(headers::encode_value(value), expected, "{value:?}");
        assert_eq!(
            headers::decode_value(expected.as_bytes()).as_deref(),
            Ok(value),
            "{expected}"
        );
    }
}

#[test]
fn invalid_values_have_specific_errors() {
    for (value, expected) in [
        (&b"=?base64?%%%?="[..], ValueError::Base64),
        (b"=?base64?QQ?=", ValueError::Base64),
        (b"=?base64?/w==?=", ValueError::Text),
        (b"caf\xc3\xa9", ValueError::Characters),
        (b"\xff", ValueError::Characters),
        (b"a\nb", ValueError::Characters),
        (b"trailing\r", ValueError::Characters),
        (b"\x7f", ValueError::Characters),
    ] {
        assert_eq!(
            headers::decode_value(value),
            Err(expected),
            "{}",
            value.escape_ascii()
        );
    }
    assert_eq!(headers::decode_value(b" \tok \t").as_deref(), Ok("ok"));
}

fn sent(
    revision: Revision,
    method: &str,
    params: Option<&str>,
    session: Option<&str>,
) -> Vec<String> {
    headers::standard(revision, method, params.map(raw), session)
        .into_iter()
        .map(|header| format!("{}: {}", header.name, header.value))
        .collect()
}

#[test]
fn each_revision_sends_its_own_headers() {
    let call = Some(r#"{"name":"get","arguments":{}}"#);
    for (revision, expected) in [
        (Revision::V2024_11_05, &[][..]),
        (Revision::V2025_03_26, &["Mcp-Session-Id: s"]),
        (
            Revision::V2025_06_18,
            &["MCP-Protocol-Version: 2025-06-18", "Mcp-Session-Id: s"],
        ),
        (
            Revision::V2025_11_25,
            &["MCP-Protocol-Version: 2025-11-25", "Mcp-Session-Id: s"],
        ),
        (
            Revision::V2026_07_28,
            &[
                "MCP-Protocol-Version: 2026-07-28",
                "Mcp-Method: tools/call",
                "Mcp-Name: get",
            ],
        ),
    ] {
        assert_eq!(
            sent(revision, "tools/call", call, Some("s")),
            expected,
            "{revision}"
        );
    }
    assert!(sent(Revision::V2025_11_25, "initialize", Some("{}"), None).is_empty());
}

#[test]
fn names_come_from_the_body() {
    let name = |method: &str, params: &str| {
        let headers = sent(Revision::V2026_07_28, method, Some(params), None);
        headers
            .get(2)
            .map(|header| header.trim_start_matches("Mcp-Name: ").to_owned())
    };
    for (method, params, expected) in [
        ("tools/call", r#"{"name":"a"}"#, Some("a")),
        ("prompts/get", r#"{"name":"b","uri":"x"}"#, Some("b")),
        (
            "resources/read",
            r#"{"uri":"file:///c","name":"x"}"#,
            Some("file:///c"),
        ),
        ("tasks/get", r#"{"taskId":"t"}"#, Some("t")),
        ("tasks/update", r#"{"taskId":"t"}"#, Some("t")),
        ("tasks/cancel", r#"{"taskId":"t"}"#, Some("t")),
        (
            "tools/call",
            r#"{"name":"naïve"}"#,
            Some("=?base64?bmHDr3Zl?="),
        ),
        ("tools/call", r#"{"name":"\u0061"}"#, Some("a")),
        ("tools/call", r#"{"name":7}"#, None),
        ("tools/call", "{}", None),
        ("tools/list", r#"{"name":"a"}"#, None),
    ] {
        assert_eq!(
            name(method, params).as_deref(),
            expected,
            "{method} {params}"
        );
    }
}

fn checked(
    received: &[(&str, &str)],
    method: &str,
    params: &str,
) -> Result<(), (String, Mismatch)> {
    let received: ReceivedHeaders<'_> = received
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    headers::check_standard(&received, "2026-07-28", method, Some(raw(params)))
        .map_err(|error| (error.header, error.mismatch))
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[test]
fn agreeing_headers_pass_in_any_case_and_encoding() {
    let params = r#"{"name":"é"}"#;
    let name = ("MCP-NAME", "=?base64?w6k=?=");
    assert_eq!(
        checked(
            &[VERSION, ("mcp-METHOD", "tools/call"), name],
            "tools/call",
            params
        ),
        Ok(())
    );
    let other = [
        VERSION,
        ("Mcp-Method", " tools/list "),
        ("Accept", "a"),
        ("Accept", "b"),
    ];
    assert_eq!(checked(&other, "tools/list", "{}"), Ok(()));
    let stray = [
        VERSION,
        ("Mcp-Method", "tools/list"),
        ("Mcp-Session-Id", "old"),
        ("Mcp-Name", "x"),
    ];
    assert_eq!(
        checked(&stray, "tools/list", "{}"),
        Ok(()),
        "other headers are ignored"
    );
}

#[test]
fn disagreeing_headers_are_named() {
    let call = ("Mcp-Method", "tools/call");
    let (a, b) = ("a".to_owned(), "b".to_owned());
    let params = r#"{"name":"b"}"#;
    for (received, header, mismatch) in [
        (
            &[call, ("Mcp-Name", "b")][..],
            "MCP-Protocol-Version",
            Mismatch::Missing {
                body: "2026-07-28".into(),
            },
        ),
        (
            &[
                ("MCP-Protocol-Version", "2025-11-25"),
                call,
                ("Mcp-Name", "b"),
            ],
            "MCP-Protocol-Version",
            Mismatch::Differs {
                header: "2025-11-25".into(),
                body: "2026-07-28".into(),
            },
        ),
        (
            &[VERSION, ("Mcp-Name", "b")],
            "Mcp-Method",
            Mismatch::Missing {
                body: "tools/call".into(),
            },
        ),
        (
            &[VERSION, ("Mcp-Method", "Tools/Call"), ("Mcp-Name", "b")],
            "Mcp-Method",
            Mismatch::Differs {
                header: "Tools/Call".into(),
                body: "tools/call".into(),
            },
        ),
        (
            &[
                VERSION,
                ("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?="),
                ("Mcp-Name", "b"),
            ],
            "Mcp-Method",
            Mismatch::Differs {
                header: "=?base64?dG9vbHMvY2FsbA==?=".into(),
                body: "tools/call".into(),
            },
        ),
        (
            &[VERSION, call],
            "Mcp-Name",
            Mismatch::Missing { body: b.clone() },
        ),
        (
            &[VERSION, call, ("Mcp-Name", "a")],
            "Mcp-Name",
            Mismatch::Differs {
                header: a.clone(),
                body: b,
            },
        ),
        (
            &[VERSION, call, ("Mcp-Name", "b"), ("mcp-name", "b")],
            "Mcp-Name",
            Mismatch::Repeated,
        ),
        (
            &[VERSION, call, ("Mcp-Name", "=?base64?!?=")],
            "Mcp-Name",
            Mismatch::Unreadable(ValueError::Base64),
        ),
        (
            &[VERSION, call, ("Mcp-Name", "é")],
            "Mcp-Name",
            Mismatch::Unreadable(ValueError::Characters),
        ),
    ] {
        assert_eq!(
            checked(received, "tools/call", params),
            Err((header.to_owned(), mismatch)),
            "{received:?}"
        );
    }
    assert_eq!(
        checked(&[VERSION, call, ("Mcp-Name", "a")], "tools/call", "{}"),
        Err(("Mcp-Name".to_owned(), Mismatch::Unexpected { header: a }))
    );
}

#[test]
fn a_mismatch_is_answered_with_what_differs() {
    let received: ReceivedHeaders<'_> = [
        ("MCP-Protocol-Version", &b"2026-07-28"[..]),
        ("Mcp-Method", b"tools/call"),
        ("Mcp-Name", b"=?base64?G1szMW0=?="),
    ]
    .into_iter()
    .collect();
    let mismatch = headers::check_standard(
        &received,
        "2026-07-28",
        "tools/call",
        Some(raw(r#"{"name":"bar"}"#)),
    )
    .unwrap_err();
    let error = mismatch.to_error();
    assert_eq!(error.code, ErrorCode::HEADER_MISMATCH);
    assert_eq!(
        error.message,
        r"header mismatch: Mcp-Name is '\u{1b}[31m', the body has 'bar'"
    );
}

/// A header's value must not depend on how the caller spells its name.
#[test]
fn a_header_reads_the_same_by_any_spelling_of_its_name() {
    let received: ReceivedHeaders<'_> = [
        ("mcp-name", b"=?base64?w6k=?=".as_slice()),
        ("MCP-PARAM-REGION", b"=?base64?w6k=?="),
        ("mcp-method", b"=?base64?w6k=?="),
    ]
    .into_iter()
    .collect();
    for (name, expected) in [
        ("Mcp-Name", "é"),
        ("mcp-name", "é"),
        ("mcp-param-region", "é"),
        ("MCP-METHOD", "=?base64?w6k=?="),
    ] {
        assert_eq!(
            received.get(name).unwrap().as_deref(),
            Some(expected),
            "{name}"
        );
    }
}

#[test]
fn the_version_header_of_the_stateful_era_has_a_default() {
    let revision = |value: Option<&'static str>| {
        let received: ReceivedHeaders<'_> = value
            .iter()
            .map(|value| ("mcp-protocol-version", value.as_bytes()))
            .collect();
        headers::stateful_revision(&received).ok()
    };
    assert_eq!(revision(None), Some(Revision::V2025_03_26));
    assert_eq!(revision(Some("2025-06-18")), Some(Revision::V2025_06_18));
    assert_eq!(revision(Some("2026-07-28")), None);
    assert_eq!(revision(Some("yesterday")), None);
}
