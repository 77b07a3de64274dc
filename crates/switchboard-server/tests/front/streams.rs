//! Event streams of sessions, and how a lost one is resumed.

use std::time::Duration;

use switchboard_server::http::{Access, HttpOptions};

use crate::bench::{soon, tasks, wait_until};
use crate::client::{Event, Server};

fn event(id: &str, data: &str) -> Event {
    Event {
        id: Some(id.to_owned()),
        data: Some(data.to_owned()),
        retry: None,
    }
}

fn progress(number: u8) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":7,"progress":{number}}}}}"#
    )
}

const REPORTED: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"reported"}]}}"#;

#[tokio::test]
async fn a_stream_begins_with_an_id_to_resume_from() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    let first = Event {
        id: Some("1-0".into()),
        data: Some(String::new()),
        retry: Some("1000".into()),
    };
    assert_eq!(call.event().await, Some(first));
    assert_eq!(call.event().await, Some(event("1-1", &progress(1))));
    server.bench.go.notify_one();
    assert_eq!(call.event().await, Some(event("1-2", &progress(2))));
    assert_eq!(call.event().await, Some(event("1-3", REPORTED)));
    assert_eq!(call.event().await, None);
    // Clients of older revisions would take the empty event for a message.
    let session = server.session("2025-06-18").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    assert_eq!(call.event().await, Some(event("1-1", &progress(1))));
    server.stop().await;
}

#[tokio::test]
async fn a_lost_stream_is_resumed_where_it_ended() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    call.event().await.unwrap();
    assert_eq!(call.event().await, Some(event("1-1", &progress(1))));
    drop(call);
    // The call continues, and its messages are stored.
    server.bench.go.notify_one();
    server.bench.ended.reaches(1).await;
    for _ in 0..2 {
        let mut again = server.listen(&session, Some("1-1")).await;
        assert_eq!(again.status, 200);
        again.event().await.unwrap();
        assert_eq!(again.event().await, Some(event("1-2", &progress(2))));
        assert_eq!(again.event().await, Some(event("1-3", REPORTED)));
        assert_eq!(again.event().await, None);
    }
    // The stream can also be read from the start.
    let mut again = server.listen(&session, Some("1-0")).await;
    again.event().await.unwrap();
    assert_eq!(again.event().await, Some(event("1-1", &progress(1))));
    drop(again);
    // There is nothing to resume after the last event, or for an unknown id.
    assert_eq!(server.listen(&session, Some("1-3")).await.status, 204);
    for unknown in ["2-1", "nonsense", "", "1", "-", "1-x"] {
        let refused = server.listen(&session, Some(unknown)).await;
        assert_eq!(refused.status, 400, "{unknown}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stream_may_end_early_so_that_the_client_reconnects() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.stream_lifetime = Some(Duration::from_millis(20));
    let server = Server::with(options).await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    let mut last = String::new();
    while let Some(event) = call.event().await {
        last = event.id.unwrap();
    }
    assert_eq!(last, "1-1");
    assert_eq!(server.bench.ended.now(), 0);
    server.bench.go.notify_one();
    server.bench.ended.reaches(1).await;
    let mut again = server.listen(&session, Some("1-1")).await;
    again.event().await.unwrap();
    assert_eq!(again.event().await, Some(event("1-2", &progress(2))));
    assert_eq!(again.event().await, Some(event("1-3", REPORTED)));
    server.stop().await;
}

#[tokio::test]
async fn server_messages_go_to_the_standalone_stream() {
    const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    // Changes before the first reader are coalesced.
    server.bench.changes.tools();
    server.bench.changes.tools();
    let mut stream = server.listen(&session, None).await;
    assert_eq!(stream.event().await.unwrap().id.as_deref(), Some("0-0"));
    assert_eq!(stream.event().await, Some(event("0-1", CHANGED)));
    server.bench.changes.tools();
    assert_eq!(stream.event().await, Some(event("0-2", CHANGED)));
    // A new reader takes over, so a client that lost its connection need not wait until the server notices.
    let mut second = server.listen(&session, Some("0-1")).await;
    second.event().await.unwrap();
    assert_eq!(second.event().await, Some(event("0-2", CHANGED)));
    assert_eq!(stream.event().await, None);
    server.bench.changes.tools();
    assert_eq!(second.event().await, Some(event("0-3", CHANGED)));
    // The stream ends with its session.
    server.bare("DELETE", &[("mcp-session-id", &session)]).await;
    assert_eq!(second.event().await, None);
    server.stop().await;
}

#[tokio::test]
async fn the_client_is_asked_on_the_stream_of_its_call() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "ask", "{}").await;
    let question = call.data().await.unwrap();
    assert!(
        question.contains(r#""id":0,"method":"elicitation/create""#),
        "{question}"
    );
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}"#;
    assert_eq!(server.within(&session, answer).await.status, 202);
    assert!(call.data().await.unwrap().contains("decline"));
    assert_eq!(call.data().await, None);
    server.stop().await;
}

#[tokio::test]
async fn an_idle_stream_sends_keep_alives() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.keep_alive = Duration::from_millis(10);
    options.limits.stream_after = Duration::from_millis(10);
    let server = Server::with(options).await;
    // The answer of a slow call becomes a stream.
    let mut call = server.call("wait", "{}").await;
    assert_eq!(call.header("content-type"), Some("text/event-stream"));
    for _ in 0..5 {
        assert_eq!(call.block().await, Some(Event::default()));
    }
    server.bench.go.notify_one();
    assert!(call.data().await.unwrap().contains("waited"));
    server.stop().await;
}

#[tokio::test]
async fn large_answers_come_whole() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    for bytes in [10, 20_000, 3_000_000, 20_000_000] {
        let answer = server.call("big", &format!(r#"{{"bytes":{bytes}}}"#)).await;
        assert!(answer.text().await.contains(&"x".repeat(bytes)));
        let flood = format!(r#"{{"bytes":{bytes},"count":3}}"#);
        let mut stream = server.call_within(&session, 1, "flood", &flood).await;
        for _ in 0..if bytes > 4_000_000 { 1 } else { 2 } {
            assert!(stream.data().await.unwrap().contains(&"x".repeat(bytes)));
        }
        let mut last = String::new();
        while let Some(data) = stream.data().await {
            last = data;
        }
        assert!(last.contains("flooded"), "{bytes}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_shutdown_ends_streams_in_time_and_leaves_no_task() {
    let before = tasks();
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut listening = server.listen(&session, None).await;
    listening.event().await.unwrap();
    let mut reporting = server.call_within(&session, 1, "report", "{}").await;
    reporting.data().await.unwrap();
    let mut single = server.call("report", "{}").await;
    single.data().await.unwrap();
    let waiting = tokio::spawn({
        let address = server.address;
        async move {
            let socket = tokio::net::TcpStream::connect(address).await.unwrap();
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
            let request = hyper::Request::post("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "wait");
            let request = request.body(body.to_owned()).unwrap();
            crate::client::send_over(socket, request).await.status
        }
    });
    server.bench.begun.reaches(3).await;
    // An idle connection does not delay the shutdown.
    let idle = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let bench = std::sync::Arc::clone(&server.bench);
    let address = server.address;
    let started = tokio::time::Instant::now();
    server.stop().await;
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(soon(waiting).await.unwrap(), 503);
    assert_eq!(listening.event().await, None);
    assert_eq!(reporting.event().await, None);
    assert_eq!(single.event().await, None);
    bench.ended.reaches(3).await;
    drop((listening, reporting, single, idle));
    wait_until(|| tasks() <= before).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn dropping_the_server_leaves_nothing_behind() {
    let before = tasks();
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut reporting = server.call_within(&session, 1, "report", "{}").await;
    reporting.data().await.unwrap();
    server.serving.abort();
    server.bench.ended.reaches(1).await;
    drop(reporting);
    wait_until(|| tasks() <= before).await;
}
