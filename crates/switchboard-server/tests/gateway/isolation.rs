//! Several clients at one gateway: each gets what belongs to it, and nothing else. `cargo xtask soak` does it for longer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::client::{Client, text};
use super::{Era, World, soon};

/// Clients at once, and calls of each.
const CLIENTS: u64 = 64;
const CALLS: u64 = 8;

/// A small generator of numbers, the same ones in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Makes calls, cancels some of them, and leaves in between; each reply is compared with its request.
async fn use_gateway(world: &World, number: u64) {
    let mut numbers = Numbers(number);
    let era = if number.is_multiple_of(2) {
        Era::Stateful
    } else {
        Era::Stateless
    };
    let mut client = Client::new(world, era).await;
    for call in 0..CALLS {
        let arguments = json!({"client": number, "call": call});
        let params = json!({"name": "mcp__desk__echo", "arguments": arguments});
        match numbers.below(20) {
            0 => {
                let waiting = json!({"name": "mcp__desk__wait", "arguments": {}});
                let id = client.send("tools/call", waiting).await;
                let params = json!({"requestId": id});
                let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                client.say(&cancel).await;
            }
            1 => {
                // It leaves without waiting for the reply, and another one comes with the same ids.
                client.send("tools/call", params).await;
                client.disconnect().await;
                client = Client::new(world, era).await;
            }
            _ => {
                // Two at once, read in the order of the requests.
                let first = client.send("tools/call", params.clone()).await;
                let second = client.request("tools/call", params).await;
                let first = match client.take(first) {
                    Some(answer) => answer,
                    None => client.answer(first).await,
                };
                for answer in [first, second] {
                    assert_eq!(text(&answer), arguments.to_string());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_reply_of_64_clients_is_lost_or_misrouted() {
    for servers in [Era::Stateful, Era::Stateless] {
        let world = Arc::new(World::new(servers));
        let clients = (0..CLIENTS).map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { use_gateway(&world, number).await })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other() {
    let world = World::new(Era::Stateful);
    let mut stalled = Client::new(&world, Era::Stateful).await;
    let mut other = Client::new(&world, Era::Stateful).await;
    // More than its pipe holds, and none of it is read.
    let padding = "x".repeat(16 * 1024);
    for _ in 0..16 {
        let params = json!({"name": "mcp__desk__echo", "arguments": {"padding": padding}});
        stalled.send("tools/call", params).await;
    }
    for call in 0..200 {
        let answer = other.call("mcp__desk__echo", json!({"call": call})).await;
        assert_eq!(text(&answer), json!({"call": call}).to_string());
    }
}

#[tokio::test]
async fn answers_go_to_the_client_that_called() {
    let world = World::new(Era::Stateful);
    let mut clients = Vec::new();
    for number in 0..8_u64 {
        let era = if number.is_multiple_of(2) {
            Era::Stateful
        } else {
            Era::Stateless
        };
        clients.push(Client::new(&world, era).await);
    }
    let calls = clients.into_iter().enumerate().map(|(number, mut client)| {
        tokio::spawn(async move {
            // All clients use the same ids.
            for call in 0..50 {
                let arguments = json!({"client": number, "call": call});
                let answer = client.call("mcp__desk__echo", arguments.clone()).await;
                assert_eq!(text(&answer), arguments.to_string());
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        soon(call).await.unwrap();
    }
}

#[tokio::test]
async fn a_question_never_reaches_another_client() {
    for servers in [Era::Stateful, Era::Stateless] {
        let world = World::new(servers);
        let mut asked = Client::new(&world, Era::Stateful).await;
        let mut other = Client::new(&world, Era::Stateful).await;
        other
            .send(
                "tools/call",
                json!({"name": "mcp__desk__wait", "arguments": {}}),
            )
            .await;
        soon(world.upstream.waiting.notified()).await;
        let answer = asked.call("mcp__desk__ask", json!({})).await;
        match servers {
            // Without a stream per request, it is not clear whose call the question belongs to.
            Era::Stateful => {
                let is_refused =
                    answer.get("error").is_some() || answer["result"]["isError"] == true;
                assert!(is_refused, "{answer}");
                assert_eq!(world.upstream.answered.load(Ordering::Relaxed), 0);
            }
            Era::Stateless => assert_eq!(text(&answer), r#"Accept {"count":3}"#),
        }
        // The other client sees the answer to its own next request, and no question.
        let answer = other.request("ping", json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
        assert!(other.asked.is_empty());
    }
}
