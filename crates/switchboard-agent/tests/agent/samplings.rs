//! Tests of sampling requests by servers.

use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Value, json};
use switchboard_agent::message::{Message, Role};
use switchboard_agent::provider::{Provider, ProviderErrorKind};
use switchboard_agent::{Consent, Sampler, SamplingQuestion};
use switchboard_protocol::types::{decode, encode};

use crate::support::*;

/// Consent handler with a fixed decision; records the requests.
struct Person(bool, Mutex<Vec<(String, usize)>>);

impl Consent for Person {
    fn ask<'a>(&'a self, question: SamplingQuestion<'a>) -> BoxFuture<'a, bool> {
        let asked = (question.server.to_string(), question.messages.len());
        self.1.lock().expect("asked").push(asked);
        ready(self.0).boxed()
    }
}

fn question(max_tokens: u64) -> Value {
    json!({
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "How"}},
            {"role": "user", "content": [{"type": "text", "text": "much?"}]},
        ],
        "systemPrompt": "Count.",
        "maxTokens": max_tokens,
    })
}

/// Sends a request and returns the server's response.
async fn ask(sampler: &Sampler, question: &Value) -> Result<Value, String> {
    let raw = serde_json::value::to_raw_value(question).expect("JSON");
    let params = decode(&raw).expect("a question");
    let answer = sampler.create_message(&"counter".into(), params).await;
    let answer = answer.map_err(|error| error.message.to_string())?;
    Ok(serde_json::from_str(&encode(&answer)).expect("JSON"))
}

#[tokio::test]
async fn a_server_asks_the_model_when_somebody_agrees() {
    let provider = Scripted::new([says("Forty-two.")]);
    let person = Arc::new(Person(true, Mutex::default()));
    let asking = Arc::clone(&person) as Arc<dyn Consent>;
    let sampler = Sampler::new(Arc::clone(&provider) as Arc<dyn Provider>, 1_000).asking(asking);
    let answer = ask(&sampler, &question(100)).await.expect("an answer");
    assert_eq!(
        answer,
        json!({
            "role": "assistant",
            "content": {"type": "text", "text": "Forty-two."},
            "model": "scripted-1",
            "stopReason": "endTurn",
        })
    );
    let asked = provider.last();
    assert_eq!(asked.system, "Count.");
    assert!(asked.tools.is_empty());
    let mut expected = Message::text(Role::User, "How");
    expected.parts.push(text("much?"));
    assert_eq!(asked.messages, [expected]);
    let seen = person.1.lock().expect("asked").clone();
    assert_eq!(seen, [("counter".to_owned(), 1)]);
}

#[tokio::test]
async fn no_is_no_and_a_budget_ends() {
    let provider = Scripted::new([
        says("one"),
        Step::Fail(ProviderErrorKind::Unavailable),
        says("two"),
    ]);
    let shared = || Arc::clone(&provider) as Arc<dyn Provider>;
    let person = |agrees| Arc::new(Person(agrees, Mutex::default()));
    let check = async |sampler: &Sampler, question: &Value, expected: Result<(), &str>| {
        let answer = ask(sampler, question).await;
        let answer = answer.as_ref().map(|_| ()).map_err(String::as_str);
        assert_eq!(answer, expected);
    };
    let alone = Sampler::new(shared(), 1_000);
    check(
        &alone,
        &question(10),
        Err("sampling needs consent, and no user is available"),
    )
    .await;
    let refused = Sampler::new(shared(), 1_000).asking(person(false));
    check(&refused, &question(10), Err("the user declined")).await;
    let agreed = Sampler::new(shared(), 30).asking(person(true));
    let used_up = "the token budget for sampling is used up";
    check(&agreed, &question(1_000), Err(used_up)).await;
    // Eleven tokens were counted; failures cost nothing.
    check(&agreed, &question(10), Ok(())).await;
    check(&agreed, &question(10), Err("scripted: as scripted")).await;
    check(&agreed, &question(10), Ok(())).await;
    check(&agreed, &question(10), Err(used_up)).await;
    let mut tools = question(10);
    tools["tools"] = json!([{"name": "x", "inputSchema": {"type": "object"}}]);
    let no_tools = "tools are not supported in sampling requests";
    check(
        &Sampler::new(shared(), 30).asking(person(true)),
        &tools,
        Err(no_tools),
    )
    .await;
}
