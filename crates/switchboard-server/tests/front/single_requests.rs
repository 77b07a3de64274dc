//! Single requests of the stateless era.

use crate::bench::wait_until;
use crate::client::{MODERN, Server};

/// Sends a request with these headers and checks the status and the error code, if any.
async fn check(
    server: &Server,
    headers: &[(&str, &str)],
    body: &str,
    expected: (u16, Option<i64>),
) {
    let answer = server.post(headers, body).await;
    let status = answer.status;
    let text = answer.text().await;
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let code = answer["error"]["code"].as_i64();
    assert_eq!((status, code), expected, "{headers:?} {body}\n{text}");
    if code.is_some_and(|code| code != -32700) {
        assert_eq!(answer["id"], 5, "{text}");
    }
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[tokio::test]
async fn statuses_and_codes_are_those_of_the_specification() {
    let server = Server::start().await;
    let request = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{{params}}}}}"#)
    };
    let method = |method: &'static str| ("mcp-method", method);
    let discover = request("server/discover", MODERN);
    let table = [
        (
            vec![VERSION, method("server/discover")],
            discover.clone(),
            (200, None),
        ),
        // Headers that are missing or contradict the body.
        (vec![VERSION], discover.clone(), (400, Some(-32020))),
        (
            vec![method("server/discover")],
            discover.clone(),
            (400, Some(-32020)),
        ),
        (
            vec![VERSION, method("tools/list")],
            discover.clone(),
            (400, Some(-32020)),
        ),
        (
            vec![
                ("mcp-protocol-version", "2025-11-25"),
                method("server/discover"),
            ],
            discover,
            (400, Some(-32020)),
        ),
        // An incomplete `_meta`.
        (
            vec![VERSION, method("tools/list")],
            request("tools/list", ""),
            (400, Some(-32602)),
        ),
        (vec![], request("tools/list", ""), (400, Some(-32602))),
        (
            vec![VERSION, method("tools/list")],
            request(
                "tools/list",
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            ),
            (400, Some(-32602)),
        ),
        (
            vec![("mcp-protocol-version", "v999"), method("tools/list")],
            request(
                "tools/list",
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"v999","io.modelcontextprotocol/clientCapabilities":{}}"#,
            ),
            (400, Some(-32022)),
        ),
        // Unknown methods, and methods of the other era.
        (
            vec![VERSION, method("nothing/here")],
            request("nothing/here", MODERN),
            (404, Some(-32601)),
        ),
        (
            vec![VERSION, method("ping")],
            request("ping", MODERN),
            (404, Some(-32601)),
        ),
        (
            vec![VERSION, method("initialize")],
            request("initialize", MODERN),
            (404, Some(-32601)),
        ),
        (
            vec![VERSION, method("tools/list")],
            request("initialize", MODERN),
            (400, Some(-32020)),
        ),
        (
            vec![VERSION, method("prompts/list")],
            request("prompts/list", MODERN),
            (404, Some(-32601)),
        ),
        // Errors of the request itself.
        (
            vec![VERSION, method("tools/call"), ("mcp-name", "none")],
            request("tools/call", &format!(r#""name":"none",{MODERN}"#)),
            (200, Some(-32602)),
        ),
        (
            vec![VERSION, method("tools/call"), ("mcp-name", "ask")],
            request("tools/call", &format!(r#""name":"ask",{MODERN}"#)),
            (400, Some(-32021)),
        ),
        // Mirrored parameters.
        (
            vec![
                VERSION,
                method("tools/call"),
                ("mcp-name", "region"),
                ("mcp-param-region", "eu"),
            ],
            request(
                "tools/call",
                &format!(r#""name":"region","arguments":{{"text":"eu"}},{MODERN}"#),
            ),
            (200, None),
        ),
        (
            vec![
                VERSION,
                method("tools/call"),
                ("mcp-name", "region"),
                ("mcp-param-region", "us"),
            ],
            request(
                "tools/call",
                &format!(r#""name":"region","arguments":{{"text":"eu"}},{MODERN}"#),
            ),
            (400, Some(-32020)),
        ),
        (
            vec![VERSION, method("tools/call"), ("mcp-name", "region")],
            request(
                "tools/call",
                &format!(r#""name":"region","arguments":{{"text":"eu"}},{MODERN}"#),
            ),
            (400, Some(-32020)),
        ),
        // A ping of the other era needs no handshake.
        (
            vec![],
            r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#.to_owned(),
            (200, None),
        ),
        (vec![], "garbage".to_owned(), (400, Some(-32700))),
    ];
    for (headers, body, expected) in table {
        check(&server, &headers, &body, expected).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stateless_request_may_name_an_unknown_session() {
    let server = Server::start().await;
    let body = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{{{MODERN}}}}}"#);
    let headers = [
        VERSION,
        ("mcp-method", "tools/list"),
        ("mcp-session-id", "gone"),
    ];
    check(&server, &headers, &body, (200, None)).await;
    server.stop().await;
}

#[tokio::test]
async fn progress_makes_the_answer_a_stream_without_ids() {
    let server = Server::start().await;
    let mut answer = server.call("report", "{}").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    let first = answer.event().await.unwrap();
    assert_eq!(first.id, None);
    assert_eq!(
        first.data.as_deref(),
        Some(
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#
        )
    );
    server.bench.go.notify_one();
    assert!(answer.data().await.unwrap().contains(r#""progress":2"#));
    assert!(answer.data().await.unwrap().contains("reported"));
    assert_eq!(answer.event().await, None);
    server.stop().await;
}

#[tokio::test]
async fn a_question_is_an_answer() {
    let server = Server::start().await;
    let answer = server.call("ask", "{}").await;
    assert_eq!(answer.status, 200);
    let text = answer.text().await;
    assert!(text.contains(r#""resultType":"input_required""#), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn calls_are_answered_in_the_order_they_finish() {
    let server = Server::start().await;
    let server = std::sync::Arc::new(server);
    let slow = tokio::spawn({
        let server = std::sync::Arc::clone(&server);
        async move { server.call("wait", "{}").await.text().await }
    });
    server.bench.begun.reaches(1).await;
    let quick = server
        .call("echo", r#"{"text":"quick"}"#)
        .await
        .text()
        .await;
    assert!(quick.contains("quick"), "{quick}");
    server.bench.go.notify_one();
    let slow = slow.await.unwrap();
    assert!(slow.contains("waited"), "{slow}");
    server.shutdown.stop();
}

#[tokio::test]
async fn a_subscription_receives_changes_until_disconnected() {
    let server = Server::start().await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{MODERN}}}}}"#
    );
    let mut answer = server.ask("subscriptions/listen", None, &body).await;
    let acknowledged = answer.data().await.unwrap();
    assert!(
        acknowledged.contains("notifications/subscriptions/acknowledged"),
        "{acknowledged}"
    );
    let before = crate::bench::tasks();
    server.bench.changes.tools();
    server.bench.changes.resources();
    server.bench.changes.tools();
    for _ in 0..2 {
        let notification = answer.data().await.unwrap();
        assert_eq!(
            notification,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}"#
        );
        server.bench.changes.tools();
    }
    drop(answer);
    // The connection at both ends, and the request.
    wait_until(|| crate::bench::tasks() + 3 <= before).await;
    server.stop().await;
}
