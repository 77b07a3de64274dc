//! Limits of the calls to one server, and its circuit breaker.

use std::time::Duration;

use serde_json::json;
use switchboard::internal::load::{BreakerState, LoadLimits};
use switchboard::{CallError, CallRequest, RequestError};

use super::client::{Client, text};
use super::{Era, World, soon};

#[tokio::test]
async fn calls_beyond_the_limits_fail_and_the_server_recovers() {
    let world = World::limited(LoadLimits {
        concurrent: 1,
        queued: 1,
        ..LoadLimits::default()
    });
    let mut client = Client::new(&world, Era::Stateful).await;
    let wait = json!({"name": "mcp__desk__wait", "arguments": {}});
    let running = client.send("tools/call", wait).await;
    soon(world.upstream.waiting.notified()).await;
    let echo = json!({"name": "mcp__desk__echo", "arguments": {"queued": true}});
    let queued = client.send("tools/call", echo).await;
    let load = || world.host.load(&"desk".into()).unwrap();
    soon(async {
        while load().waiting == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!((load().running, load().limit), (1, 1));
    let shed = client.call("mcp__desk__echo", json!({})).await;
    assert_eq!(shed["result"]["isError"], true, "{shed}");
    assert!(text(&shed).contains("the server is overloaded"), "{shed}");
    assert_eq!(load().shed, 1);
    // When the running call ends, the one that waits gets its turn.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": running}});
    client.say(&cancel).await;
    let answer = client.answer(queued).await;
    assert_eq!(text(&answer), r#"{"queued":true}"#);
    let answer = client.call("mcp__desk__echo", json!({})).await;
    assert_eq!(text(&answer), "{}");
    assert_eq!((load().running, load().waiting), (0, 0));
}

#[tokio::test]
async fn calls_are_paused_after_repeated_failures() {
    let world = World::limited(LoadLimits {
        failures: 2,
        pause: Duration::from_millis(200),
        ..LoadLimits::default()
    });
    world.host.start_all().await;
    let call = async |tool: &str| {
        let request = CallRequest {
            tool: format!("desk/{tool}"),
            timeout: Some(Duration::from_millis(20)),
            ..CallRequest::default()
        };
        soon(world.host.request(request)).await
    };
    let breaker = || world.host.load(&"desk".into()).unwrap().breaker;
    for _ in 0..2 {
        assert!(call("wait").await.unwrap_err().is_timeout());
    }
    assert!(matches!(breaker(), BreakerState::Open(_)));
    let paused = call("echo").await.unwrap_err();
    let is_paused = matches!(
        &paused,
        CallError::Request {
            error: RequestError::Paused { failures: 2, .. },
            ..
        }
    );
    assert!(is_paused, "{paused}");
    soon(async {
        while breaker() != BreakerState::HalfOpen {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(call("echo").await.is_ok());
    assert_eq!(breaker(), BreakerState::Closed);
}
