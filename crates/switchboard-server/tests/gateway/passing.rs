//! What passes as it is: tasks, unknown methods and notifications, `_meta`, log messages, capabilities of extensions.

use serde_json::{Value, json};
use switchboard::permissions::Policy;
use switchboard_config::entry::Permission;
use switchboard_server::gateway::GatewayOptions;

use super::client::{Client, all, text};
use super::upstream::TASK;
use super::{CELLS, Era, World, soon};

fn transparent() -> GatewayOptions {
    GatewayOptions {
        transparent: Some("desk".into()),
        ..GatewayOptions::default()
    }
}

/// A client that follows tasks.
async fn with_tasks(world: &World, era: Era) -> Client {
    let mut capabilities = all();
    capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    Client::with(world, era, capabilities).await
}

#[tokio::test]
async fn tasks_of_the_same_era_pass_and_others_are_followed() {
    for options in [GatewayOptions::default(), transparent()] {
        let is_transparent = options.transparent.is_some();
        let tool = if is_transparent {
            "job"
        } else {
            "mcp__desk__job"
        };
        for (clients, servers) in CELLS {
            let cell = format!("{clients:?} {servers:?} {is_transparent}");
            let world = World::with(servers, &["desk"], options.clone());
            let mut client = with_tasks(&world, clients).await;
            // The servers are connected.
            client.request("tools/list", json!({})).await;
            let mut params = json!({"name": tool, "arguments": {}});
            if clients == Era::Stateful {
                params["task"] = json!({"ttl": 60_000});
            }
            let answer = client.request("tools/call", params).await;
            if clients != servers {
                assert_eq!(text(&answer), "finished", "{cell}");
                continue;
            }
            let task = match clients {
                Era::Stateful => &answer["result"]["task"],
                Era::Stateless => &answer["result"],
            };
            assert_eq!(task["status"], "working", "{cell}: {answer}");
            let id = task["taskId"].as_str().unwrap();
            // Clients share the connection: an id that the server knows is not enough.
            assert_ne!(id, TASK, "{cell}");
            let got = client.request("tasks/get", json!({"taskId": id})).await;
            assert_eq!(got["result"]["status"], "completed", "{cell}: {got}");
            assert_eq!(got["result"]["taskId"], id, "{cell}");
            match clients {
                Era::Stateful => {
                    let got = client.request("tasks/result", json!({"taskId": id})).await;
                    assert_eq!(text(&got), "finished", "{cell}");
                    let related =
                        &got["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
                    assert_eq!(related, id, "{cell}");
                }
                Era::Stateless => {
                    assert_eq!(got["result"]["result"]["content"][0]["text"], "finished");
                    let update =
                        json!({"taskId": id, "inputResponses": {"a": {"action": "accept"}}});
                    let updated = client.request("tasks/update", update).await;
                    assert_eq!(
                        updated["result"]["seen"]["a"]["action"], "accept",
                        "{cell}: {updated}"
                    );
                }
            }
            for unknown in [TASK, "nothing"] {
                let got = client
                    .request("tasks/get", json!({"taskId": unknown}))
                    .await;
                assert_eq!(got["error"]["code"], -32602, "{cell}: {got}");
            }
            // The list of the server would contain tasks of other clients.
            let list = client.request("tasks/list", json!({})).await;
            assert_eq!(list["error"]["code"], -32601, "{cell}: {list}");
        }
    }
}

#[tokio::test]
async fn tasks_and_extensions_are_declared_to_clients_of_their_era() {
    for options in [GatewayOptions::default(), transparent()] {
        for (clients, servers) in CELLS {
            let cell = format!("{clients:?} {servers:?}");
            let world = World::with(servers, &["desk"], options.clone());
            world.host.connect(&"desk".into()).await.unwrap();
            let client = Client::new(&world, clients).await;
            let declared = &client.hello["capabilities"];
            let vendor = &declared["extensions"]["com.example/vendor"];
            assert_eq!(*vendor, json!({"level": 7}), "{cell}: {declared}");
            let is_same = clients == servers;
            let tasks = declared.get("tasks");
            assert_eq!(
                tasks.is_some(),
                is_same && clients == Era::Stateful,
                "{cell}"
            );
            assert_eq!(tasks.and_then(|tasks| tasks.get("list")), None, "{cell}");
            let extension = declared["extensions"].get("io.modelcontextprotocol/tasks");
            let is_expected = is_same && clients == Era::Stateless;
            assert_eq!(extension.is_some(), is_expected, "{cell}");
        }
    }
}

#[tokio::test]
async fn methods_of_extensions_pass_to_the_server_that_they_name() {
    for (clients, servers) in CELLS {
        let world = World::with(servers, &["desk", "shelf"], transparent());
        let mut client = Client::new(&world, clients).await;
        let params = json!({"x": [1], "_meta": {"own": true}});
        let answer = client.request("vendor/echo", params).await;
        let got = &answer["result"]["got"];
        assert_eq!(got["x"], json!([1]), "{answer}");
        assert_eq!(got["_meta"]["own"], true, "{answer}");
        let unknown = client.request("vendor/nothing", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");

        let world = World::with(servers, &["desk", "shelf"], GatewayOptions::default());
        let mut client = Client::new(&world, clients).await;
        client.request("tools/list", json!({})).await;
        let uris = client.request("resources/list", json!({})).await;
        let taken = &uris["result"]["resources"][1]["uri"];
        for (params, member, own) in [
            (json!({"name": "mcp__shelf__echo"}), "name", "echo"),
            (json!({"name": "mcp__shelf__greet"}), "name", "greet"),
            (json!({"uri": taken}), "uri", "demo://note"),
        ] {
            let answer = client.request("vendor/echo", params).await;
            assert_eq!(answer["result"]["got"][member], own, "{answer}");
        }
        let unclear = client.request("vendor/echo", json!({"x": 1})).await;
        assert_eq!(unclear["error"]["code"], -32601, "{unclear}");
    }
}

#[tokio::test]
async fn notifications_of_extensions_pass() {
    for (clients, servers) in CELLS {
        let world = World::with(servers, &["desk"], transparent());
        let mut client = Client::new(&world, clients).await;
        client.request("tools/list", json!({})).await;
        let message = r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{"z":1,"a":2}}"#;
        client.say_text(message).await;
        soon(world.upstream.notified.notified()).await;
    }
}

#[tokio::test]
async fn meta_passes_byte_for_byte() {
    for (clients, servers) in CELLS {
        let world = World::new(servers);
        let mut client = Client::new(&world, clients).await;
        let own = r#""z/own":{"b" : 1.50,"a":[ ]},"a":"\u00fc""#;
        let mut meta = own.to_owned();
        if clients == Era::Stateless {
            meta.push_str(
                r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#,
            );
        }
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":"own","method":"tools/call","params":{{"name":"mcp__desk__echo","arguments":{{}},"_meta":{{{meta}}}}}}}"#
        );
        client.say_text(&message).await;
        let answer = loop {
            let message = client.next().await;
            if message["id"] == "own" {
                break message;
            }
        };
        let seen = answer["result"]["structuredContent"]["meta"]
            .as_str()
            .unwrap();
        assert!(seen.contains(own), "{clients:?} {servers:?}: {seen}");
    }
}

#[tokio::test]
async fn log_messages_reach_the_client_of_the_call_only() {
    for (clients, servers) in CELLS {
        let cell = format!("{clients:?} {servers:?}");
        let world = World::new(servers);
        let mut other = Client::new(&world, clients).await;
        let mut client = Client::new(&world, clients).await;
        client.call("mcp__desk__log", json!({})).await;
        // A log message belongs to the call, so it comes before the answer.
        let logged = |client: &Client| -> Vec<Value> {
            let notices = client.notices.iter();
            notices
                .filter(|notice| notice["method"] == "notifications/message")
                .map(|notice| notice["params"].clone())
                .collect()
        };
        let expected = json!({"level": "warning", "logger": "desk/disk", "data": {"full": true}});
        assert_eq!(logged(&client), [expected], "{cell}");
        other.request("tools/list", json!({})).await;
        assert_eq!(logged(&other), [Value::Null; 0], "{cell}");
    }
}

#[tokio::test]
async fn progress_after_a_question_goes_to_the_repeated_request() {
    for servers in [Era::Stateful, Era::Stateless] {
        let world = World::new(servers);
        let mut client = Client::new(&world, Era::Stateless).await;
        let answer = client.call("mcp__desk__ask", json!({})).await;
        assert_eq!(text(&answer), r#"Accept {"count":3}"#);
        let mut progress = client.notices.iter();
        let progress = progress.find(|notice| notice["params"]["message"] == "answered");
        assert!(progress.is_some(), "{servers:?}: {:?}", client.notices);
    }
}

#[tokio::test]
async fn what_one_client_allows_is_not_allowed_to_another() {
    let asking = Policy {
        default: Permission::Ask,
        ..Policy::gateway()
    };
    let world = World::under(asking, Era::Stateful, &["desk"], GatewayOptions::default());
    let mut first = Client::new(&world, Era::Stateful).await;
    let mut second = Client::new(&world, Era::Stateful).await;
    for _ in 0..2 {
        let answer = first.call("mcp__desk__echo", json!({"a": 1})).await;
        assert_eq!(text(&answer), r#"{"a":1}"#);
    }
    // The client allowed the call for its session.
    assert_eq!(first.asked.len(), 1);
    second.call("mcp__desk__echo", json!({"a": 1})).await;
    assert_eq!(second.asked.len(), 1);
}
