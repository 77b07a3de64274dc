//! Server-side classification of requests, for servers of one era or both.

use switchboard_protocol::{
    ErrorCode, Revision,
    headers::ReceivedHeaders,
    serve::{Opening, Serving, answer_version, classify, classify_http},
};

use crate::raw;

use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

const BOTH: Serving<'static> = Serving {
    supported: &Revision::ALL,
    settled: None,
};

const SETTLED: Serving<'static> = Serving {
    supported: &Revision::ALL,
    settled: Some(V2025_06_18),
};

const MODERN: Serving<'static> = Serving {
    supported: &[V2026_07_28],
    settled: None,
};

fn meta(version: &str, rest: &str) -> String {
    format!(r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":{version}{rest}}}}}"#)
}

const CAPABILITIES: &str = r#","io.modelcontextprotocol/clientCapabilities":{}"#;

fn short(opening: Result<Opening<'_>, switchboard_protocol::serve::Refusal>) -> String {
    match opening {
        Ok(Opening::Stateless { revision, .. }) => format!("stateless {revision}"),
        Ok(Opening::Handshake { revision }) => format!("handshake {revision}"),
        Ok(Opening::Stateful {
            revision: Some(revision),
        }) => format!("stateful {revision}"),
        Ok(Opening::Stateful { revision: None }) => "stateful".to_owned(),
        Err(refusal) => format!("{} {}", refusal.http_status, refusal.error.code),
    }
}

#[test]
fn a_request_opens_by_what_it_carries() {
    let modern = meta("\"2026-07-28\"", CAPABILITIES);
    let bare = meta("\"2026-07-28\"", "");
    let old = meta("\"2025-06-18\"", CAPABILITIES);
    let unknown = meta("\"1900-01-01\"", CAPABILITIES);
    let number = meta("20260728", CAPABILITIES);
    let wrong = meta(
        "\"2026-07-28\"",
        r#","io.modelcontextprotocol/clientCapabilities":[]"#,
    );
    let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#;
    for (serving, method, params, expected) in [
        (
            BOTH,
            "tools/list",
            Some(modern.as_str()),
            "stateless 2026-07-28",
        ),
        (
            BOTH,
            "server/discover",
            Some(&modern),
            "stateless 2026-07-28",
        ),
        (SETTLED, "tools/list", Some(&modern), "stateless 2026-07-28"),
        (BOTH, "initialize", Some(hello), "handshake 2025-06-18"),
        (BOTH, "initialize", Some(&modern), "handshake 2025-11-25"),
        (BOTH, "initialize", None, "handshake 2025-11-25"),
        (SETTLED, "initialize", Some(hello), "handshake 2025-06-18"),
        (MODERN, "initialize", Some(hello), "400 -32022"),
        (SETTLED, "tools/list", None, "stateful 2025-06-18"),
        (
            SETTLED,
            "tools/list",
            Some(r#"{"_meta":{"progressToken":1}}"#),
            "stateful 2025-06-18",
        ),
        (SETTLED, "tools/list", Some(&old), "stateful 2025-06-18"),
        (BOTH, "ping", None, "stateful"),
        (MODERN, "ping", None, "400 -32602"),
        (BOTH, "tools/list", None, "400 -32602"),
        (BOTH, "server/discover", None, "400 -32602"),
        (BOTH, "tools/list", Some(r#"{"_meta":{}}"#), "400 -32602"),
        (BOTH, "tools/list", Some("[]"), "400 -32602"),
        (BOTH, "tools/list", Some(&bare), "400 -32602"),
        (BOTH, "tools/list", Some(&wrong), "400 -32602"),
        (BOTH, "tools/list", Some(&number), "400 -32602"),
        (BOTH, "tools/list", Some(&old), "400 -32022"),
        (BOTH, "tools/list", Some(&unknown), "400 -32022"),
        (SETTLED, "tools/list", Some(&unknown), "400 -32022"),
    ] {
        let opening = classify(serving, method, params.map(raw));
        assert_eq!(short(opening), expected, "{method} {params:?}");
    }
}

#[test]
fn refusals_list_the_supported_versions() {
    let unknown = meta("\"1900-01-01\"", CAPABILITIES);
    let refusal = classify(MODERN, "tools/list", Some(raw(&unknown))).unwrap_err();
    assert_eq!(
        refusal.error.message,
        "unsupported protocol version, supported: 2026-07-28"
    );
    assert_eq!(
        refusal.error.data.unwrap().get(),
        r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#
    );
    let refusal = classify(BOTH, "tools/list", None).unwrap_err();
    assert_eq!(
        refusal.error.message,
        "params._meta lacks `io.modelcontextprotocol/protocolVersion`, which every request needs without a \
         handshake (supported versions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28)"
    );
}

#[test]
fn initialize_is_answered_with_what_was_asked_or_the_newest() {
    for (requested, supported, expected) in [
        (Some("2024-11-05"), &Revision::ALL[..], Ok(V2024_11_05)),
        (Some("2026-07-28"), &Revision::ALL, Ok(V2025_11_25)),
        (Some("2099-01-01"), &Revision::ALL, Ok(V2025_11_25)),
        (Some("2025-11-25"), &[V2025_06_18], Ok(V2025_06_18)),
        (None, &[V2025_06_18, V2024_11_05], Ok(V2025_06_18)),
        (
            Some("2025-11-25"),
            &[V2026_07_28],
            Err(ErrorCode::UNSUPPORTED_VERSION),
        ),
        (None, &[], Err(ErrorCode::UNSUPPORTED_VERSION)),
    ] {
        let answered = answer_version(requested, supported).map_err(|refusal| refusal.error.code);
        assert_eq!(answered, expected, "{requested:?} {supported:?}");
    }
}

#[test]
fn over_http_the_headers_of_a_stateless_request_are_checked_first() {
    let modern = meta("\"2026-07-28\"", CAPABILITIES);
    let unknown = meta("\"1900-01-01\"", CAPABILITIES);
    let old = meta("\"2025-06-18\"", CAPABILITIES);
    let list = ("Mcp-Method", "tools/list");
    for (serving, received, method, params, expected) in [
        (
            BOTH,
            &[("MCP-Protocol-Version", "2026-07-28"), list][..],
            "tools/list",
            modern.as_str(),
            "stateless 2026-07-28",
        ),
        (BOTH, &[list], "tools/list", &modern, "400 -32020"),
        (
            BOTH,
            &[("MCP-Protocol-Version", "2025-11-25"), list],
            "tools/list",
            &modern,
            "400 -32020",
        ),
        (
            BOTH,
            &[("MCP-Protocol-Version", "1900-01-01"), list],
            "tools/list",
            &unknown,
            "400 -32022",
        ),
        (BOTH, &[], "tools/list", "{}", "400 -32602"),
        (
            BOTH,
            &[],
            "initialize",
            r#"{"protocolVersion":"2025-06-18"}"#,
            "handshake 2025-06-18",
        ),
        (
            SETTLED,
            &[("MCP-Protocol-Version", "2025-06-18")],
            "tools/list",
            "{}",
            "stateful 2025-06-18",
        ),
        (SETTLED, &[], "tools/list", &old, "stateful 2025-06-18"),
        // A session does not excuse headers that were not checked against the body.
        (
            SETTLED,
            &[("MCP-Protocol-Version", "2026-07-28"), list],
            "tools/call",
            r#"{"name":"delete_everything"}"#,
            "400 -32020",
        ),
        (
            SETTLED,
            &[("MCP-Protocol-Version", "2026-07-28"), list],
            "tools/call",
            &old,
            "400 -32020",
        ),
        (
            SETTLED,
            &[("MCP-Protocol-Version", "1900-01-01")],
            "tools/list",
            "{}",
            "400 -32020",
        ),
        (
            SETTLED,
            &[("MCP-Protocol-Version", "2026-07-28"), list],
            "tools/list",
            &modern,
            "stateless 2026-07-28",
        ),
    ] {
        let headers: ReceivedHeaders<'_> = received
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        let opening = classify_http(serving, &headers, method, Some(raw(params)));
        assert_eq!(short(opening), expected, "{method} {params} {received:?}");
    }
}
