//! Tests of serving MCP from a Rust value: raw messages over the in-process link, comparing whole frames.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test helpers fail by panicking"
)]

mod in_process;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use serde_json::json;
use switchboard::internal::service::MAX_IN_FLIGHT;
use switchboard::service::{
    Cancellation, Changes, Features, Reply, RequestContext, Service, text_result, unknown_tool,
};
use switchboard::transport::Closed;
use switchboard_protocol::types::Map;
use switchboard_protocol::types::completion::{CompleteRequestParams, Completion};
use switchboard_protocol::types::elicitation::{ElicitRequestFormParams, ElicitRequestParams};
use switchboard_protocol::types::elicitation_schema::ElicitationSchema;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::logging::LoggingLevel;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use tokio::sync::{Notify, mpsc};

use in_process::{Client, MODERN, initialize};

/// A server with a tool for each kind of event.
#[derive(Default)]
struct Bench {
    changes: Changes,
    go: Arc<Notify>,
    /// Where `wait` reports that it has started, with its cancellation.
    begun: Option<mpsc::UnboundedSender<Cancellation>>,
    /// The number of `wait` calls that were dropped or finished.
    ended: Arc<AtomicUsize>,
}

struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Service for Bench {
    fn identity(&self) -> Implementation<'static> {
        let mut identity = Implementation::new("bench".into());
        identity.version = Some("1".into());
        identity
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            resources: true,
            completions: true,
            logging: true,
            ..Features::NONE
        }
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.changes)
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        vec![Tool::new("echo".into())]
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let arguments = call.arguments.unwrap_or_default();
            match &*call.name {
                "echo" => Ok(text_result(arguments.get())),
                "nothing" => Ok(CallToolResult::new()),
                "wait" => {
                    let _ended = Ended(Arc::clone(&self.ended));
                    if let Some(begun) = &self.begun {
                        let _ = begun.send(context.cancellation());
                    }
                    self.go.notified().await;
                    Ok(text_result("waited"))
                }
                "panic" => panic!("as asked"),
                "panic later" => {
                    tokio::task::yield_now().await;
                    panic!("as asked")
                }
                "report" => {
                    context.progress(0.5, Some(1.0), Some("half"));
                    context.log(LoggingLevel::Debug, None, "small");
                    context.log(LoggingLevel::Error, Some("bench"), &json!({"at": 1}));
                    Ok(text_result("reported"))
                }
                "ask" => {
                    let form = |message: &'static str| {
                        let mut schema = ElicitationSchema::new(Map::new());
                        schema.kind = Some("object".into());
                        let form = ElicitRequestFormParams::new(message.into(), schema);
                        ElicitRequestParams::Form(form)
                    };
                    let first = context.elicit("first", form("Sure?")).await?;
                    let second = context.elicit("second", form("Really?")).await?;
                    let said = [first, second].map(|answer| answer.action.as_str().to_owned());
                    Ok(text_result(said.join(", ")))
                }
                other => Err(unknown_tool(other)),
            }
        })
    }

    fn complete<'a>(
        &'a self,
        _typed: CompleteRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, Completion<'static>> {
        let values = (0..150).map(|number| number.to_string().into()).collect();
        std::future::ready(Ok(Completion::new(values))).boxed()
    }
}

/// Sends `request` to a new server, after a handshake if the era has one, and compares all responses.
async fn check(handshake: Option<&str>, request: &str, expected: &[&str]) {
    let mut client = match handshake {
        Some(version) => Client::greet(Bench::default(), version, "{}").await,
        None => Client::connect(Bench::default()).await,
    };
    client.send(request).await;
    assert_eq!(client.take(expected.len()).await, expected, "{request}");
    client.end().await;
}

#[tokio::test]
async fn a_stateful_client_is_greeted_and_served() {
    const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{answered}","capabilities":{CAPABILITIES},"serverInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        check(None, &initialize(asked, "{}"), &[&expected]).await;
    }
    let old = Some("2025-06-18");
    for (handshake, request, expected) in [
        (
            old,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{"tools":[{"name":"echo"}]}}"#,
        ),
        (
            old,
            r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1]}}}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"result":{"content":[{"type":"text","text":"{\"a\":[1]}"}]}}"#,
        ),
        (
            old,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        ),
        (
            old,
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"resource not found","data":{"uri":"a:b"}}}"#,
        ),
        (
            None,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ),
    ] {
        check(handshake, request, &[expected]).await;
    }
    // A batch is answered with a batch; an invalid message in it fails alone.
    check(
        old,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},7,{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
        &[
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","error":{"code":-32600,"message":"a message must be a JSON object"}},{"jsonrpc":"2.0","id":2,"result":{}}]"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn a_stateless_client_is_served_without_a_greeting() {
    const SERVER: &str =
        r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1"}}"#;
    let request = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{MODERN}}}}}"#)
    };
    let result = |body: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{body}}}}}"#);
    for (method, params, expected) in [
        (
            "server/discover",
            "",
            result(&format!(
                r#""supportedVersions":["2024-11-05","2025-03-26","2025-06-18","2025-11-25","2026-07-28"],"resultType":"complete","capabilities":{{"tools":{{"listChanged":true}},"resources":{{"subscribe":true,"listChanged":true}},"completions":{{}},"logging":{{}}}},"ttlMs":300000,"cacheScope":"private",{SERVER}"#
            )),
        ),
        (
            "tools/list",
            "",
            result(&format!(
                r#""tools":[{{"name":"echo"}}],"resultType":"complete","ttlMs":300000,"cacheScope":"private",{SERVER}"#
            )),
        ),
        (
            "tools/call",
            r#""name":"echo","#,
            result(&format!(
                r#""resultType":"complete",{SERVER},"content":[{{"type":"text","text":"{{}}"}}]"#
            )),
        ),
        (
            "resources/list",
            "",
            result(&format!(
                r#""resources":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",{SERVER}"#
            )),
        ),
        (
            "resources/read",
            r#""uri":"a:b","#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"resource not found","data":{"uri":"a:b"}}}"#.to_owned(),
        ),
    ] {
        check(None, &request(method, params), &[&expected]).await;
        // A handshake on the same link does not affect a self-contained request.
        check(Some("2025-06-18"), &request(method, params), &[&expected]).await;
    }
}

#[tokio::test]
async fn what_is_not_served_is_refused() {
    let modern = |method: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{MODERN}}}}}"#)
    };
    let old = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
    let not_found = |method: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"method not found: {method}"}}}}"#
        )
    };
    // Methods of the other era, of no era, of the other side, and of a missing feature.
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
        "roots/list",
        "prompts/list",
        "tasks/get",
    ] {
        check(None, &modern(method), &[&not_found(method)]).await;
    }
    for method in [
        "server/discover",
        "subscriptions/listen",
        "no/such",
        "roots/list",
        "prompts/get",
        "notifications/cancelled",
    ] {
        check(Some("2025-11-25"), &old(method), &[&not_found(method)]).await;
    }
    for (request, expected) in [
        (
            old("tools/list"),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"params._meta lacks `io.modelcontextprotocol/protocolVersion`, which every request needs without a handshake (supported versions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28)"}}"#,
        ),
        (
            modern("tools/list").replace("2026-07-28", "2030-01-01"),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"unsupported protocol version, supported: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28","data":{"supported":["2024-11-05","2025-03-26","2025-06-18","2025-11-25","2026-07-28"],"requested":"2030-01-01"}}}"#,
        ),
        (
            modern("tools/call"),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: missing field `name`"}}"#,
        ),
        (
            modern("tools/call").replace("{\"_meta\"", "{\"name\":\"none\",\"_meta\""),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool: none"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: missing field `protocolVersion`"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the id is neither a string nor a number"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":22}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":22,"error":{"code":-32600,"message":"a response with neither a result nor an error"}}"#,
        ),
        (
            modern("ping").replace(r#""2.0""#, r#""1.0""#),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"jsonrpc must be \"2.0\""}}"#,
        ),
        (
            modern("ping").replace(r#""2.0""#, "2.0"),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"jsonrpc must be \"2.0\""}}"#,
        ),
        (
            "{\"id\":3,\"method\":\"ping\"".to_owned(),
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32700,"message":"not JSON at byte 23: EOF while parsing an object, near `,\"method\":\"ping\"`"}}"#,
        ),
    ] {
        check(None, &request, &[expected]).await;
    }
    // Stray responses and all notifications are ignored without an error.
    for ignored in [
        "",
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/none"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#,
    ] {
        check(None, ignored, &[]).await;
    }
}

#[tokio::test]
async fn progress_and_log_messages_come_before_the_answer() {
    let call = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"report","_meta":{{{meta}}}}}}}"#
        )
    };
    let modern = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.5,"total":1,"message":"half"}}"#;
    let debug = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"small"}}"#;
    let error = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{"at":1},"logger":"bench"}}"#;
    let old_answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"reported"}]}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1"}},"content":[{"type":"text","text":"reported"}]}}"#;
    // The first revision has no message in progress notifications.
    let wordless = progress.replace(r#","message":"half""#, "");
    for (handshake, meta, expected) in [
        (
            None,
            format!(r#"{modern},"progressToken":"p""#),
            vec![progress, answer],
        ),
        (
            None,
            format!(r#"{modern},"io.modelcontextprotocol/logLevel":"debug""#),
            vec![debug, error, answer],
        ),
        (Some("2025-06-18"), String::new(), vec![error, old_answer]),
        (
            Some("2024-11-05"),
            r#""progressToken":"p""#.to_owned(),
            vec![&wordless, error, old_answer],
        ),
    ] {
        check(handshake, &call(&meta), &expected).await;
    }

    let mut client = Client::greet(Bench::default(), "2025-06-18", "{}").await;
    for level in ["emergency", "loud"] {
        client
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
            ))
            .await;
    }
    client.send(&call("")).await;
    assert_eq!(
        client.take(3).await,
        [
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown log level: loud"}}"#,
            old_answer,
        ]
    );
    client.end().await;
}

#[tokio::test]
async fn completions_stop_at_a_hundred() {
    let mut client = Client::connect(Bench::default()).await;
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"ref/prompt","name":"p"}},"argument":{{"name":"a","value":""}},{MODERN}}}}}"#
        ))
        .await;
    let answer: serde_json::Value = serde_json::from_str(&client.next().await).unwrap();
    let proposed: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(
        answer["result"]["completion"],
        json!({"values": proposed, "total": 150, "hasMore": true})
    );
    client.end().await;
}

#[tokio::test]
async fn a_panic_fails_its_request_alone() {
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server failed unexpectedly"}}"#;
    let mut client = Client::greet(Bench::default(), "2025-06-18", "{}").await;
    for name in ["panic", "panic later"] {
        client.call(1, name).await;
        assert_eq!(client.next().await, failed, "{name}");
    }
    client.call(2, "echo").await;
    assert_eq!(
        client.next().await,
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{}"}]}}"#
    );
    client.end().await;
}

#[tokio::test]
async fn a_long_call_blocks_nothing_and_can_be_cancelled() {
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let (go, ended) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let bench = Bench {
        go: Arc::clone(&go),
        begun: Some(begun),
        ended: Arc::clone(&ended),
        ..Bench::default()
    };
    let mut client = Client::greet(bench, "2025-06-18", "{}").await;
    client.call(1, "wait").await;
    client.call(2, "wait").await;
    let first = beginnings.recv().await.unwrap();
    let second = beginnings.recv().await.unwrap();
    client.call(2, "echo").await;
    client.call(3, "echo").await;
    assert_eq!(
        client.take(2).await,
        [
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"a request with this id is still running"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{}"}]}}"#,
        ]
    );

    // The ID of a cancelled request is free at once, and the old request does not affect the new one.
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}"#)
        .await;
    client.call(1, "wait").await;
    let third = beginnings.recv().await.unwrap();
    first.cancelled().await;
    assert!(!second.is_cancelled() && !third.is_cancelled());
    while ended.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }

    go.notify_waiters();
    let mut answers = client.take(2).await;
    answers.sort();
    assert_eq!(
        answers,
        [1, 2].map(|id| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"waited"}}]}}}}"#
        ))
    );
    // Work for a finished request may stop.
    assert!(second.is_cancelled() && third.is_cancelled());
    assert_eq!(ended.load(Ordering::SeqCst), 3);
    client.end().await;
}

#[tokio::test]
async fn requests_in_flight_are_bounded() {
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let bench = Bench {
        go: Arc::clone(&go),
        begun: Some(begun),
        ..Bench::default()
    };
    let mut client = Client::greet(bench, "2025-06-18", "{}").await;
    for id in 1..=u64::from(MAX_IN_FLIGHT) {
        client.call(id, "wait").await;
        beginnings.recv().await.unwrap();
    }
    client.call(5000, "echo").await;
    assert_eq!(
        client.next().await,
        r#"{"jsonrpc":"2.0","id":5000,"error":{"code":-32603,"message":"1024 requests are running already; wait until some are done"}}"#
    );
    go.notify_waiters();
    assert_eq!(client.take(MAX_IN_FLIGHT as usize).await.len(), 1024);
    client.end().await;
}

#[tokio::test]
async fn closing_cancels_what_is_running_and_then_is_silent() {
    for close in [true, false] {
        let (begun, mut beginnings) = mpsc::unbounded_channel();
        let ended = Arc::new(AtomicUsize::new(0));
        let bench = Arc::new(Bench {
            begun: Some(begun),
            ended: Arc::clone(&ended),
            ..Bench::default()
        });
        let mut client = Client::connect_to(Arc::clone(&bench) as _).await;
        client.send(&initialize("2025-06-18", "{}")).await;
        client.next().await;
        client.call(1, "wait").await;
        let cancellation = beginnings.recv().await.unwrap();
        if close {
            client.link().close().await;
            client.link().close().await;
            assert_eq!(ended.load(Ordering::SeqCst), 1);
            let late = client.try_send(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
            assert_eq!(late.await.unwrap_err().to_string(), "the link is closed");
        } else {
            client.drop_link();
        }
        cancellation.cancelled().await;
        bench.changes.tools();
        assert_eq!(client.closed().await, Closed::ByUs);
        assert_eq!(client.rest(), Vec::<String>::new());
        drop(client);
        // Tasks hold the service; once they are gone, only the test does.
        while Arc::strong_count(&bench) > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn messages_keep_their_order_however_they_are_waited_for() {
    let mut client = Client::greet(Bench::default(), "2025-06-18", "{}").await;
    let ping = |id: u64| {
        in_process::outgoing(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
    };
    let answer = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let link = client.shared_link();
    let first = link.send(ping(1));
    let second = link.send(ping(2));
    drop(link.send(ping(3)));
    second.await.unwrap();
    first.await.unwrap();
    assert_eq!(client.take(3).await, [answer(1), answer(2), answer(3)]);
    // The future is dropped unpolled, and no other task delivers the message.
    drop(link.send(ping(4)));
    assert_eq!(client.next().await, answer(4));
    drop(link);
    client.end().await;
}

#[tokio::test]
async fn changes_reach_those_who_asked_to_hear_of_them() {
    let bench = Arc::new(Bench::default());
    let mut old = Client::connect_to(Arc::clone(&bench) as _).await;
    let mut new = Client::connect_to(Arc::clone(&bench) as _).await;
    let changes = &bench.changes;
    // Before a handshake there are no subscribers.
    changes.tools();
    old.send(&initialize("2025-11-25", "{}")).await;
    old.next().await;
    old.send(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}"#)
        .await;
    assert_eq!(old.next().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    new.send(&format!(
        r#"{{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,"resourceSubscriptions":["a:2"]}},{MODERN}}}}}"#
    ))
    .await;
    // Features that the server lacks are not acknowledged.
    assert_eq!(
        new.next().await,
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#
    );
    changes.tools();
    changes.resources();
    changes.resource("a:1");
    changes.resource("a:2");
    assert_eq!(
        old.take(3).await,
        [
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#,
        ]
    );
    assert_eq!(
        new.take(2).await,
        [
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:2","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}"#,
        ]
    );
    old.send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"a:1"}}"#)
        .await;
    assert_eq!(old.next().await, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    new.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#)
        .await;
    // The subscription ends with its task; a message answered by a later task shows that it has.
    new.send(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"panic later",{MODERN}}}}}"#
    ))
    .await;
    new.next().await;
    changes.resource("a:1");
    changes.resource("a:2");
    new.end().await;
    old.end().await;
}

#[tokio::test]
async fn a_stateful_client_is_asked_by_requests() {
    let mut client = Client::greet(Bench::default(), "2025-06-18", r#"{"elicitation":{}}"#).await;
    let question = |id: u64, message: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"{message}","requestedSchema":{{"properties":{{}},"type":"object"}}}}}}"#
        )
    };
    client.call(1, "ask").await;
    assert_eq!(client.next().await, question(0, "Sure?"));
    client
        .send(r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}"#)
        .await;
    assert_eq!(client.next().await, question(1, "Really?"));
    client
        .send(r#"{"jsonrpc":"2.0","id":"1","result":{"action":"decline"}}"#)
        .await;
    assert_eq!(
        client.next().await,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"accept, decline"}]}}"#
    );

    // A question whose call was cancelled is withdrawn; an error ends the call.
    client.call(2, "ask").await;
    assert_eq!(client.next().await, question(2, "Sure?"));
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#)
        .await;
    assert_eq!(
        client.next().await,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#
    );
    client.call(3, "ask").await;
    assert_eq!(client.next().await, question(3, "Sure?"));
    client
        .send(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"not now"}}"#)
        .await;
    assert_eq!(
        client.next().await,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"not now"}}"#
    );
    client.end().await;

    let unable = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"the server needs client input, but the client does not offer elicitation","data":{"requiredCapabilities":{"elicitation":{}}}}}"#;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
    check(Some("2025-06-18"), call, &[unable]).await;
}

#[tokio::test]
async fn a_stateless_client_is_asked_within_the_answer() {
    const ABLE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
    const META: &str =
        r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench","version":"1"}}"#;
    let call = |more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask",{more}{ABLE}}}}}"#
        )
    };
    let question = |key: &str, message: &str, state: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required",{state}{META},"inputRequests":{{"{key}":{{"method":"elicitation/create","params":{{"message":"{message}","requestedSchema":{{"properties":{{}},"type":"object"}}}}}}}}}}}}"#
        )
    };
    let state = r#""requestState":"{\"first\":{\"action\":\"accept\"}}","#;
    let done = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete",{META},"content":[{{"type":"text","text":"accept, cancel"}}]}}}}"#
    );
    for (more, expected) in [
        (String::new(), question("first", "Sure?", "")),
        (
            r#""inputResponses":{"first":{"action":"accept"}},"#.to_owned(),
            question("second", "Really?", state),
        ),
        (
            format!(r#"{state}"inputResponses":{{"second":{{"action":"cancel"}}}},"#),
            done,
        ),
        (
            r#""requestState":"forged","#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"the requestState was not issued by this server"}}"#.to_owned(),
        ),
    ] {
        check(None, &call(&more), &[&expected]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_request_is_answered_once_whoever_sends_it() {
    const SENDERS: u64 = 8;
    const EACH: u64 = 100;
    let mut client = Client::greet(Bench::default(), "2025-06-18", "{}").await;
    let senders = (0..SENDERS).map(|sender| {
        let link = client.shared_link();
        tokio::spawn(async move {
            for id in sender * EACH..(sender + 1) * EACH {
                let tool = if id % 2 == 0 { "echo" } else { "panic later" };
                let call = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#
                );
                let sent = link.send(in_process::outgoing(&call));
                if id % 3 > 0 {
                    sent.await.expect("the link is open");
                }
            }
        })
    });
    futures_util::future::join_all(senders).await;
    let mut answers = client
        .take(usize::try_from(SENDERS * EACH).unwrap_or_default())
        .await;
    answers.sort();
    let mut expected: Vec<String> = (0..SENDERS * EACH)
        .map(|id| {
            let answer = if id % 2 == 0 {
                r#""result":{"content":[{"type":"text","text":"{}"}]}"#
            } else {
                r#""error":{"code":-32603,"message":"the server failed unexpectedly"}"#
            };
            format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)
        })
        .collect();
    expected.sort();
    assert_eq!(answers, expected);
    client.end().await;
}
