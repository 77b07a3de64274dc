//! Several clients at one gateway: each gets what belongs to it, and nothing else.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::client::{Client, text};
use super::{Era, World, soon};

#[tokio::test]
async fn answers_go_to_the_client_that_called() {
    let world = World::new(Era::Stateful);
    let mut clients = Vec::new();
    for number in 0..8 {
        let era = if number % 2 == 0 {
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
