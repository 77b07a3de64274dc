//! Approvals and elicitations of the agent, forwarded to its client.

use serde_json::{Value, json};

use super::stdio::{BOTH, Client, Era};
use super::{World, answered, failed, reply, soon, start};

const PROMPT: &str = r#"call Bash {"command": "echo allowed"}"#;

/// Answers the question that a call leads to and returns the agent's answer.
async fn answer_with(client: &mut Client, era: Era, params: Value, result: Value) -> String {
    match era {
        Era::Stateful => {
            let id = client.send("tools/call", params).await;
            let question = loop {
                let message = client.next().await;
                if message["method"] == "elicitation/create" {
                    break message;
                }
                assert_eq!(message["method"], "notifications/progress", "{message}");
            };
            check_question(&question["params"]);
            client
                .say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
                .await;
            answered(&client.answer(id).await.1).1
        }
        Era::Stateless => {
            let answer = client.call(params.clone()).await;
            let mut again = asked_again(params, &answer, &result);
            again["_meta"] = json!({"progressToken": "p"});
            answered(&client.call(again).await).1
        }
    }
}

/// The same request with the answer to the question.
fn asked_again(mut params: Value, answer: &Value, result: &Value) -> Value {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    check_question(&question["params"]);
    params["inputResponses"] = json!({ key.as_str(): result });
    if let Some(state) = answer["result"].get("requestState") {
        params["requestState"] = state.clone();
    }
    params
}

fn check_question(params: &Value) {
    let message = params["message"].as_str().unwrap();
    assert!(
        message.starts_with("Allow the tool Bash?\n  command: echo"),
        "{message}"
    );
    let answer = &params["requestedSchema"]["properties"]["answer"];
    assert_eq!(answer["enum"], json!(["once", "always", "no"]), "{params}");
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

#[tokio::test]
async fn the_client_is_asked() {
    for era in BOTH {
        let world = World::new();
        let mut client = Client::new(&world, era).await;
        let reply_text = answer_with(&mut client, era, start(PROMPT), accept("once")).await;
        assert_eq!(reply_text, "result: allowed");
        for refusal in [
            accept("no"),
            accept("whatever"),
            json!({"action": "accept"}),
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
        ] {
            let reply_text = answer_with(&mut client, era, start(PROMPT), refusal).await;
            assert!(!reply_text.contains("result: allowed"), "{reply_text}");
        }
        // No further question, in any session.
        let reply_text = answer_with(&mut client, era, start(PROMPT), accept("always")).await;
        assert_eq!(reply_text, "result: allowed");
        assert_eq!(
            answered(&client.call(start(PROMPT)).await).1,
            "result: allowed"
        );
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_gets_the_unattended_policy() {
    for era in BOTH {
        let world = World::new();
        let mut client = Client::with(&world, era, json!({})).await;
        let (_, reply_text) = answered(&client.call(start(PROMPT)).await);
        assert!(
            reply_text.starts_with("result: ") && !reply_text.contains("result: allowed"),
            "{reply_text}"
        );
    }
}

#[tokio::test]
async fn a_client_that_does_not_answer_does_not_block_others() {
    let world = World::new();
    let mut silent = Client::new(&world, Era::Stateful).await;
    silent.send("tools/call", start(PROMPT)).await;
    while silent.next().await["method"] != "elicitation/create" {}
    let mut other = Client::new(&world, Era::Stateful).await;
    let reply_text = answer_with(&mut other, Era::Stateful, start(PROMPT), accept("once")).await;
    assert_eq!(reply_text, "result: allowed");
}

#[tokio::test]
async fn a_parked_turn_is_resumed_and_not_restarted() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateless).await;
    let prompt = r#"call Bash {"command": "echo once >> file; cat file"}"#;
    let asked = client.call(start(prompt)).await;
    let again = asked_again(start(prompt), &asked, &accept("once"));
    let (session, reply_text) = answered(&client.call(again.clone()).await);
    assert_eq!(reply_text, "result: once");
    // Sending the answer again is too late: nothing runs twice.
    let answer = client.call(again).await;
    let expected = format!(
        "the turn no longer waits for this answer; continue with switchboard-reply and session_id {session}"
    );
    assert_eq!(failed(&answer), expected);
    let (_, reply_text) = answered(&client.call(reply(&session, "fine")).await);
    assert!(reply_text.starts_with("fine ("), "{reply_text}");
}

#[tokio::test]
async fn a_conversation_that_waits_for_an_answer_is_busy() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateless).await;
    let asked = client.call(start(PROMPT)).await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let session = requests.keys().next().unwrap().split('/').nth(1).unwrap();
    let answer = client.call(reply(session, "hello")).await;
    assert!(failed(&answer).contains("is busy"), "{answer}");
    // Another client may send the answer: stateless requests are independent of connections.
    let mut other = Client::new(&world, Era::Stateless).await;
    let again = asked_again(start(PROMPT), &asked, &accept("once"));
    assert_eq!(answered(&other.call(again).await).1, "result: allowed");
}

#[tokio::test(start_paused = true)]
async fn a_parked_turn_expires() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateless).await;
    let asked = client.call(start(PROMPT)).await;
    tokio::time::sleep(std::time::Duration::from_secs(6 * 60)).await;
    let again = asked_again(start(PROMPT), &asked, &accept("once"));
    let answer = soon(client.call(again)).await;
    assert!(
        failed(&answer).starts_with("the turn no longer waits for this answer"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_server_elicitation_is_forwarded() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateful).await;
    let prompt = "call mcp__inquirer__inquire {}";
    let id = client.send("tools/call", start(prompt)).await;
    let mut asked = Vec::new();
    let answers = [
        accept("once"),
        json!({"action": "accept", "content": {"count": 3}}),
    ];
    for result in answers {
        let question = loop {
            let message = client.next().await;
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        asked.push(question["params"]["message"].as_str().unwrap().to_owned());
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        client.say(&answer).await;
    }
    assert!(
        asked[0].starts_with("Allow the tool inquire of the server inquirer?"),
        "{asked:?}"
    );
    assert_eq!(asked[1], "How many?");
    let (_, answer) = client.answer(id).await;
    assert_eq!(answered(&answer).1, r#"result: Accept {"count":3}"#);
}

#[tokio::test]
async fn an_ambiguous_elicitation_is_declined() {
    let world = World::new();
    let mut other = Client::new(&world, Era::Stateful).await;
    other.send("tools/call", start("wait")).await;
    soon(world.model.waits(1)).await;
    let mut client = Client::new(&world, Era::Stateful).await;
    let id = client
        .send("tools/call", start("call mcp__inquirer__inquire {}"))
        .await;
    let question = loop {
        let message = client.next().await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": accept("once")});
    client.say(&yes).await;
    let (_, answer) = client.answer(id).await;
    assert_eq!(answered(&answer).1, "result: Decline nothing");
}

/// The message of the question that a prompt leads to.
async fn question(client: &mut Client, prompt: &str) -> Value {
    client.send("tools/call", start(prompt)).await;
    loop {
        let message = client.next().await;
        if message["method"] == "elicitation/create" {
            return message["params"].clone();
        }
    }
}

#[tokio::test]
async fn the_form_shows_all_of_a_call() {
    let world = World::new();
    let long = "x".repeat(20_000);
    let blanks = " ".repeat(3000);
    let prompt = format!(r#"call Bash {{"command": "echo {long}; ls{blanks}; touch X"}}"#);
    let mut client = Client::new(&world, Era::Stateful).await;
    let message = question(&mut client, &prompt).await["message"].to_string();
    assert!(
        message.contains(&format!("echo {long}; ls[␣×3000] ; touch X")),
        "{message}"
    );
    let mut client = Client::new(&world, Era::Stateful).await;
    let prompt = r#"call Write {"file_path": "new.txt", "content": "one\ntwo\n"}"#;
    let params = question(&mut client, prompt).await;
    let expected = "Allow the tool Write?\n  new file new.txt, 2 lines, 8 bytes:\n  │ one\n  │ two\n  │ \n  file_path: new.txt\n";
    let message = params["message"].as_str().unwrap();
    assert!(message.starts_with(expected), "{message}");
    let answer = &params["requestedSchema"]["properties"]["answer"];
    assert_eq!(
        answer["enum"],
        json!(["once", "always", "always-folder", "no"])
    );
    let titles = answer["enumNames"].as_array().unwrap();
    assert!(
        titles[1]
            .as_str()
            .unwrap()
            .contains("do not ask again for Write of "),
        "{titles:?}"
    );
}

#[tokio::test]
async fn a_call_too_long_for_a_form_is_refused() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateful).await;
    let long = "x".repeat(150_000);
    let prompt = format!(r#"call Write {{"file_path": "new.txt", "content": "{long}"}}"#);
    let (_, reply_text) = answered(&client.call(start(&prompt)).await);
    assert!(
        reply_text.contains("a form shows 100000 at most; split it into smaller calls"),
        "{reply_text}"
    );
}

#[tokio::test]
async fn always_means_the_command_that_was_shown() {
    let world = World::new();
    let mut client = Client::new(&world, Era::Stateful).await;
    let reply_text = answer_with(&mut client, Era::Stateful, start(PROMPT), accept("always")).await;
    assert_eq!(reply_text, "result: allowed");
    let other = r#"call Bash {"command": "echo more; rm -rf x"}"#;
    let asked = question(&mut client, other).await;
    assert!(
        asked["message"].as_str().unwrap().contains("rm -rf x"),
        "{asked}"
    );
}
