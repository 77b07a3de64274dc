//! Sessions with the agent: starting, continuing, concurrency, restarts, progress.

use serde_json::{Value, json};

use super::stdio::{BOTH, Client, Era};
use super::{World, answered, failed, progress, reply, soon, start};

#[tokio::test]
async fn a_session_is_started_and_continued() {
    for era in BOTH {
        let world = World::new();
        let mut client = Client::new(&world, era).await;
        let (session, response) = answered(&client.call(start("hello")).await);
        assert_eq!(response, "hello (1)");
        let again = answered(&client.call(reply(&session, "more")).await);
        assert_eq!(again, (session, "more (3)".to_owned()));
        client.leave().await;
    }
}

#[tokio::test]
async fn the_tools_are_listed() {
    let world = World::new();
    for era in BOTH {
        let mut client = Client::new(&world, era).await;
        let (_, answer) = client.ask("tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["switchboard", "switchboard-reply"]);
        for tool in tools {
            assert_eq!(
                tool["outputSchema"]["required"],
                json!(["session_id", "response"])
            );
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            assert_eq!(tool["annotations"]["destructiveHint"], true);
        }
        for (method, list) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
            let (_, answer) = client.ask(method, json!({})).await;
            assert_eq!(answer["result"][list], json!([]), "{answer}");
        }
        if era == Era::Stateless {
            let (_, answer) = client.ask("server/discover", json!({})).await;
            let identity = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(identity["name"], "switchboard", "{answer}");
        }
    }
}

#[tokio::test]
async fn wrong_arguments_are_refused() {
    let world = World::new();
    for era in BOTH {
        let mut client = Client::new(&world, era).await;
        for (name, arguments) in [
            ("switchboard", json!({})),
            ("switchboard", json!({"prompt": 5})),
            ("switchboard", json!({"prompt": "  "})),
            ("switchboard", json!({"prompt": "x", "more": 1})),
            ("switchboard-reply", json!({"message": "x"})),
            ("switchboard-reply", json!({"session_id": "x"})),
            ("other", json!({"prompt": "x"})),
        ] {
            let params = json!({"name": name, "arguments": arguments});
            let answer = client.call(params).await;
            assert_eq!(
                answer["error"]["code"], -32602,
                "{name} {arguments}: {answer}"
            );
        }
        let (_, answer) = client.ask("tools/unknown", json!({})).await;
        assert_eq!(answer["error"]["code"], -32601);
        for unknown in ["no-such-session", "../../etc/passwd", ""] {
            let answer = client.call(reply(unknown, "x")).await;
            let expected = format!("no session {unknown:?}; call switchboard to start one");
            assert_eq!(failed(&answer), expected);
        }
    }
}

#[tokio::test]
async fn a_model_error_is_returned_and_the_session_remains() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateful).await;
    let answer = client.call(start("fail")).await;
    let text = failed(&answer);
    assert!(text.starts_with("test: the key is not good\n"), "{text}");
    let session = text.split("session_id ").nth(1).unwrap().to_owned();
    let (same, _) = answered(&client.call(reply(&session, "again")).await);
    assert_eq!(same, session);
}

#[tokio::test]
async fn conversations_do_not_wait_for_one_another() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateful).await;
    let (first, _) = answered(&client.call(start("one")).await);
    let waiting = client.send("tools/call", reply(&first, "wait")).await;
    soon(world.model.waits(1)).await;
    let (second, response) = answered(&client.call(start("two")).await);
    assert_eq!(response, "two (1)");
    // A long call does not block other requests either.
    let (_, answer) = client.ask("ping", json!({})).await;
    assert_eq!(answer["result"], json!({}));
    let answer = client.call(reply(&first, "me too")).await;
    let busy = format!("session {first} is busy: wait for its answer, or cancel that call");
    assert_eq!(failed(&answer), busy);
    let (_, response) = answered(&client.call(reply(&second, "more")).await);
    assert_eq!(response, "more (3)");

    let cancel = json!({"requestId": waiting, "reason": "enough"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel});
    client.say(&cancel).await;
    soon(world.model.waits(0)).await;
    let (same, response) = answered(&client.call(reply(&first, "and now")).await);
    assert_eq!(same, first);
    assert!(response.ends_with("and now (3)"), "{response}");
}

#[tokio::test]
async fn a_disconnect_cancels_the_running_turns() {
    let world = World::new();
    for era in BOTH {
        let mut client = Client::new(&world, era).await;
        client.send("tools/call", start("wait")).await;
        client.send("tools/call", start("wait")).await;
        soon(world.model.waits(2)).await;
        client.leave().await;
        soon(world.model.waits(0)).await;
    }
}

#[tokio::test]
async fn conversations_survive_a_restart() {
    let mut world = World::new();
    let mut client = Client::new(&world, Era::Stateful).await;
    let (session, _) = answered(&client.call(start("before")).await);
    client.leave().await;
    for (era, response) in [(Era::Stateful, "after (3)"), (Era::Stateless, "after (5)")] {
        world = world.restarted();
        let mut client = Client::new(&world, era).await;
        let answer = answered(&client.call(reply(&session, "after")).await);
        assert_eq!(answer, (session.clone(), response.to_owned()));
        client.leave().await;
    }
}

#[tokio::test]
async fn progress_is_reported() {
    let world = World::new();
    std::fs::write(world.folder.path().join("a.txt"), "content\n").unwrap();
    for era in BOTH {
        let mut client = Client::new(&world, era).await;
        let prompt = r#"call Read {"file_path": "a.txt"}"#;
        let (before, answer) = client.ask("tools/call", start(prompt)).await;
        assert_eq!(answered(&answer).1, "result: 1\tcontent\n");
        let messages = progress(&before);
        assert_eq!(messages[0], "Read started");
        assert!(
            messages[1].starts_with("Read finished after "),
            "{messages:?}"
        );

        // Without a progress token nothing is reported.
        let mut quiet = start("hello");
        quiet["_meta"] = json!({});
        let (before, _) = client.ask("tools/call", quiet).await;
        assert_eq!(before, Vec::<Value>::new());
    }
}
