//! Limits on the requests of a client, and the end of a server that drains.

use std::num::NonZeroU32;
use std::time::Duration;

use switchboard_server::http::{Access, HttpOptions};
use tokio::net::TcpStream;

use crate::bench::{soon, wait_until};
use crate::client::Server;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn a_client_with_too_many_requests_is_told_when_to_try_again() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_requests_per_client = 1;
    let server = Server::with(options).await;
    let mut running = server.call("report", "{}").await;
    running.data().await.unwrap();
    let refused = server.post(&[], PING).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("1"))
    );
    drop(running);
    // Its place is free as soon as the request has ended.
    server.bench.ended.reaches(1).await;
    soon(async {
        while server.post(&[], PING).await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn an_overloaded_server_refuses_and_recovers() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_requests = 2;
    let server = Server::with(options).await;
    let mut calls = Vec::new();
    for _ in 0..2 {
        let mut call = server.call("report", "{}").await;
        call.data().await.unwrap();
        calls.push(call);
    }
    let refused = server.post(&[], PING).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    drop(calls);
    soon(async {
        while server.post(&[], PING).await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_is_too_fast_is_told_when_to_try_again() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_rate_per_client = NonZeroU32::new(1);
    let server = Server::with(options).await;
    assert_eq!(server.post(&[], PING).await.status, 200);
    let refused = server.post(&[], PING).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("1"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_drains_finishes_running_requests_only() {
    let server = Server::start().await;
    let mut stateless = server.call("report", "{}").await;
    stateless.data().await.unwrap();
    let kept = TcpStream::connect(server.address).await.unwrap();
    server.shutdown.drain();
    // Further connections are refused once the listener is closed.
    let address = server.address;
    soon(async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(kept);
    assert!(!server.serving.is_finished());
    server.bench.go.notify_one();
    assert!(stateless.data().await.unwrap().contains(r#""progress":2"#));
    assert!(stateless.data().await.unwrap().contains("reported"));
    drop(stateless);
    soon(server.serving).await.unwrap();
}

#[tokio::test]
async fn a_server_that_drains_does_not_wait_forever() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.drain = Duration::from_millis(200);
    let server = Server::with(options).await;
    let mut call = server.call("report", "{}").await;
    call.data().await.unwrap();
    server.shutdown.drain();
    soon(server.serving).await.unwrap();
    wait_until(|| server.bench.ended.now() == 1).await;
}
