//! Cancelled calls.

use crate::client::Server;

const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

#[tokio::test]
async fn disconnecting_cancels_a_stateless_request() {
    let server = Server::start().await;
    // While its answer is a stream,
    let mut call = server.call("report", "{}").await;
    call.data().await.unwrap();
    assert_eq!(server.bench.ended.now(), 0);
    drop(call);
    server.bench.ended.reaches(1).await;
    // and before its answer has started.
    let waiting = server.call("wait", "{}");
    tokio::select! {
        _ = waiting => panic!("it ended without being released"),
        () = server.bench.begun.reaches(2) => {}
    }
    server.bench.ended.reaches(2).await;
    server.stop().await;
}

#[tokio::test]
async fn disconnecting_does_not_cancel_within_a_session() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    call.data().await.unwrap();
    drop(call);
    // A later call is answered while the first one is still running.
    let echo = server
        .call_within(&session, 2, "echo", r#"{"text":"x"}"#)
        .await;
    assert_eq!(echo.status, 200);
    assert_eq!((server.bench.begun.now(), server.bench.ended.now()), (2, 1));
    assert_eq!(server.within(&session, CANCEL).await.status, 202);
    server.bench.ended.reaches(2).await;
    server.stop().await;
}

#[tokio::test]
async fn a_notification_cancels_within_a_session_and_ends_the_stream() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    call.data().await.unwrap();
    assert_eq!(server.within(&session, CANCEL).await.status, 202);
    assert_eq!(call.data().await, None);
    server.bench.ended.reaches(1).await;
    // 204: the client should not reconnect.
    assert_eq!(server.listen(&session, Some("1-1")).await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn the_end_of_a_session_cancels_what_runs_in_it() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    let mut call = server.call_within(&session, 1, "report", "{}").await;
    call.data().await.unwrap();
    let headers = [("mcp-session-id", session.as_str())];
    assert_eq!(server.bare("DELETE", &headers).await.status, 204);
    assert_eq!(call.data().await, None);
    server.bench.ended.reaches(1).await;
    server.stop().await;
}

#[tokio::test]
async fn sessions_do_not_cancel_one_another() {
    let server = Server::start().await;
    let (one, other) = (
        server.session("2025-11-25").await,
        server.session("2025-11-25").await,
    );
    let mut call = server.call_within(&one, 1, "report", "{}").await;
    call.data().await.unwrap();
    assert_eq!(server.within(&other, CANCEL).await.status, 202);
    server.bench.go.notify_one();
    assert!(call.data().await.unwrap().contains(r#""progress":2"#));
    assert!(call.data().await.unwrap().contains("reported"));
    server.stop().await;
}
