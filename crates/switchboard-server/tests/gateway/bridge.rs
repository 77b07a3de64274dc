//! What passes between clients and servers of either era, each in all four combinations.
//!
//! | what | test |
//! |---|---|
//! | calls, `_meta`, capabilities | [`calls_pass_with_their_arguments_and_meta`] |
//! | elicitation (form and URL), sampling, roots | [`what_a_server_asks_reaches_the_client`] |
//! | progress | [`progress_has_the_token_of_the_client`], `passing::progress_after_a_question_goes_to_the_repeated_request` |
//! | logging | `passing::log_messages_reach_the_client_of_the_call_only` |
//! | cancellation | [`cancelling_reaches_the_server`], [`a_client_that_leaves_cancels_its_calls`] |
//! | subscriptions | [`changes_and_updates_are_announced`] |
//! | tasks | `passing::tasks_of_the_same_era_pass_and_others_are_followed` |
//! | `requestState` | [`state_cannot_be_replayed_for_another_request`], `accidents::a_state_cannot_be_replayed_by_another_principal` |

use serde_json::json;

use super::client::{Client, text};
use super::{CELLS, Era, World, soon};

#[tokio::test]
async fn calls_pass_with_their_arguments_and_meta() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        let mut params = json!({"name": "mcp__desk__echo", "arguments": {"a": [1, "ü"]}});
        params["_meta"] = json!({"traceparent": "00-trace"});
        let answer = client.request("tools/call", params).await;
        assert_eq!(text(&answer), r#"{"a":[1,"ü"]}"#);
        let seen = &answer["result"]["structuredContent"];
        assert_eq!(seen["trace"], "00-trace", "{clients:?} {servers:?}");
        if servers == Era::Stateless {
            let capabilities = seen["capabilities"].as_object().unwrap();
            let mut names: Vec<&str> = capabilities.keys().map(String::as_str).collect();
            names.retain(|name| *name != "extensions");
            assert_eq!(names, ["elicitation", "roots", "sampling"]);
        }
        let is_stateless = clients == Era::Stateless;
        assert_eq!(
            answer["result"].get("resultType").is_some(),
            is_stateless || servers == Era::Stateless
        );
    }
}

#[tokio::test]
async fn what_a_server_asks_reaches_the_client() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        let cell = format!("{clients:?} {servers:?}");
        let answer = client.call("mcp__desk__ask", json!({})).await;
        assert_eq!(text(&answer), r#"Accept {"count":3}"#, "{cell}");
        assert_eq!(client.asked.len(), 1, "{cell}");
        let answer = client.call("mcp__desk__visit", json!({})).await;
        assert_eq!(text(&answer), "Accept", "{cell}");
        let asked = &client.asked[1];
        assert_eq!(
            asked["params"]["url"], "https://example.org/login",
            "{cell}"
        );
        let answer = client.call("mcp__desk__sample", json!({})).await;
        assert_eq!(text(&answer), "the model test-model answers", "{cell}");
        let answer = client.call("mcp__desk__roots", json!({})).await;
        assert_eq!(text(&answer), "file:///work", "{cell}");
    }
}

#[tokio::test]
async fn a_client_is_not_asked_for_what_it_lacks() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::with(&world, clients, json!({})).await;
        let answer = client.call("mcp__desk__ask", json!({})).await;
        let is_refused = answer.get("error").is_some() || answer["result"]["isError"] == true;
        assert!(is_refused, "{clients:?} {servers:?}: {answer}");
        assert!(client.asked.is_empty());
    }
}

#[tokio::test]
async fn progress_has_the_token_of_the_client() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        let answer = client.call("mcp__desk__slow", json!({})).await;
        assert_eq!(text(&answer), "done");
        let progress: Vec<_> = client
            .notices
            .iter()
            .filter(|notice| notice["method"] == "notifications/progress")
            .map(|notice| notice["params"].clone())
            .collect();
        let expected = json!({"progressToken": "p", "progress": 1, "total": 2, "message": "half"});
        assert_eq!(progress, [expected], "{clients:?} {servers:?}");
    }
}

#[tokio::test]
async fn cancelling_reaches_the_server() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        let params = json!({"name": "mcp__desk__wait", "arguments": {}});
        let id = client.send("tools/call", params).await;
        soon(world.upstream.waiting.notified()).await;
        client
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
            .await;
        soon(world.upstream.cancelled.notified()).await;
        // The connection survives.
        let answer = client.call("mcp__desk__echo", json!({})).await;
        assert_eq!(text(&answer), "{}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_calls() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        client
            .send(
                "tools/call",
                json!({"name": "mcp__desk__wait", "arguments": {}}),
            )
            .await;
        soon(world.upstream.waiting.notified()).await;
        client.disconnect().await;
        soon(world.upstream.cancelled.notified()).await;
    }
}

#[tokio::test]
async fn changes_and_updates_are_announced() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        // The lists must have been fetched once, so that the connection exists.
        client.request("resources/list", json!({})).await;
        match clients {
            Era::Stateful => {
                let wanted = json!({"uri": "demo://note"});
                client.request("resources/subscribe", wanted).await;
            }
            Era::Stateless => {
                let wanted = json!({"resourceSubscriptions": ["demo://note"]});
                let wanted = json!({"notifications": wanted});
                client.send("subscriptions/listen", wanted).await;
                let acknowledged = client.next().await;
                let method = &acknowledged["method"];
                assert_eq!(method, "notifications/subscriptions/acknowledged");
            }
        }
        let mut events = world.host.events();
        soon(async {
            loop {
                world.upstream.changes.resource("demo://note");
                tokio::select! {
                    event = events.recv() => {
                        if let Ok(switchboard::Event::ResourceUpdated { uri, .. }) = event {
                            assert_eq!(uri, "demo://note");
                            return;
                        }
                    }
                    () = tokio::task::yield_now() => {}
                }
            }
        })
        .await;
        let updated = soon(async {
            loop {
                let notice = client.next().await;
                if notice["method"] == "notifications/resources/updated" {
                    return notice;
                }
            }
        })
        .await;
        assert_eq!(updated["params"]["uri"], "demo://note");
    }
}

#[tokio::test]
async fn state_cannot_be_replayed_for_another_request() {
    for servers in [Era::Stateful, Era::Stateless] {
        let world = World::new(servers);
        let mut client = Client::new(&world, Era::Stateless).await;
        let params = json!({"name": "mcp__desk__ask", "arguments": {"a": 1}});
        let first = client.request("tools/call", params).await;
        let result = &first["result"];
        assert_eq!(result["resultType"], "input_required", "{first}");
        let (key, _) = result["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let again = |arguments| {
            json!({
                "name": "mcp__desk__ask",
                "arguments": arguments,
                "requestState": result["requestState"],
                "inputResponses": {key: {"action": "accept", "content": {"count": 9}}},
            })
        };
        let answer = client.request("tools/call", again(json!({"a": 2}))).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let mut forged = again(json!({"a": 1}));
        forged["requestState"] = "Zm9yZ2VkZm9yZ2VkZm9yZ2Vk".into();
        let answer = client.request("tools/call", forged).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let answer = client.request("tools/call", again(json!({"a": 1}))).await;
        assert_eq!(text(&answer), r#"Accept {"count":9}"#);
    }
}
