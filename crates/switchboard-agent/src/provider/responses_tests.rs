use futures_util::TryStreamExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_test::model::{ScriptedModel, Turn};

use super::super::fixture::{
    assert_chunks_make_the_answer, assert_cuts_make_no_difference, call, conversation, decode,
    events, text, thinking, tool,
};
use super::super::models::{Kind, describe};
use super::super::settings::ProviderSettings;
use super::super::{ModelReply, Stop, Usage};
use super::*;

const SOURCE: &str = "openai-responses/gpt-5.5";

fn model() -> Model {
    describe(Kind::OpenAi, "gpt-5.5")
}

fn asking(messages: &[Message]) -> Request<'_> {
    Request {
        system: "Be good.",
        tools: &[],
        messages,
        max_output_tokens: None,
    }
}

fn body(request: &Request<'_>) -> Value {
    let body = encode(request, &model(), Summary::Auto, Thoughts::Sent).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn decoder() -> Decoder {
    Decoder::new(SOURCE.to_owned(), &asking(&[]))
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn assistant(parts: Vec<Part>) -> Message {
    Message {
        role: Role::Assistant,
        parts,
    }
}

/// Reasoning, text and a call, as the endpoint streams them.
fn stream() -> Vec<Value> {
    let reasoning = json!({
        "type": "reasoning",
        "id": "rs_1",
        "summary": [
            {"type": "summary_text", "text": "First."},
            {"type": "summary_text", "text": "Then."},
        ],
        "encrypted_content": "c2VhbA==",
    });
    let message = json!({
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "I löok.", "annotations": []}],
    });
    let call = json!({
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "Read",
        "arguments": "{\"p\":1}",
        "status": "completed",
    });
    let delta = |kind: &str, place: u64, text: &str| json!({"type": format!("response.{kind}.delta"), "output_index": place, "delta": text});
    vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "error": null, "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0}),
        delta("reasoning_summary_text", 0, "First."),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0}),
        delta("reasoning_summary_text", 0, "Then."),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}}),
        delta("output_text", 1, "I lö"),
        delta("output_text", 1, "ok."),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "call_id": "call_1", "name": "Read", "arguments": ""}}),
        delta("function_call_arguments", 2, "{\"p\""),
        delta("function_call_arguments", 2, ":1}"),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
        json!({"type": "response.completed", "response": {
            "status": "completed",
            "error": null,
            "output": [reasoning, message, call],
            "usage": {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 7},
        }}),
    ]
}

fn expected() -> ModelReply {
    ModelReply {
        message: assistant(vec![
            thinking("First.\n\nThen.", Some("c2VhbA=="), SOURCE),
            text("I löok."),
            call("call_1", "Read", "{\"p\":1}"),
        ]),
        stop: Stop::Calls,
        usage: Usage {
            input: 10,
            cache_read: 20,
            output: 7,
            ..Usage::default()
        },
    }
}

#[test]
fn an_answer_has_reasoning_text_and_calls_in_order() {
    let data = stream();
    let (chunks, answer) = decode(decoder(), &[events(&data).as_bytes()]);
    let answer = answer.unwrap();
    assert_eq!(answer, expected());
    assert_chunks_make_the_answer(&chunks, &answer);
    let thoughts = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Thinking(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(thoughts.collect::<String>(), "First.\n\nThen.");
    // The complete document alone is the same answer.
    let mut whole = data.last().unwrap()["response"].clone();
    whole["object"] = json!("response");
    let (chunks, answer) = decode(decoder(), &[events(&[whole]).as_bytes()]);
    assert_eq!(answer.unwrap(), expected());
    assert!(chunks.contains(&Chunk::Text("I löok.".to_owned())));
}

#[test]
fn an_answer_without_its_end_is_no_answer() {
    let data = stream();
    for length in 0..data.len() - 1 {
        let (_, answer) = decode(decoder(), &[events(&data[..length]).as_bytes()]);
        let error = answer.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Broken, "{length}: {error}");
    }
}

#[test]
fn every_ending() {
    let check = |last: Value, expected: Result<Stop, ProviderErrorKind>| {
        let (_, answer) = decode(decoder(), &[events(std::slice::from_ref(&last)).as_bytes()]);
        let found = answer.map(|answer| answer.stop).map_err(|error| error.kind);
        assert_eq!(found, expected, "{last}");
    };
    let incomplete = |reason: &str| {
        json!({"type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": {"reason": reason}, "output": []}})
    };
    let failed = |code: &str, message: &str| {
        json!({"type": "response.failed", "response": {
            "status": "failed", "error": {"code": code, "message": message}}})
    };
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let completed = |output: Value| {
        json!({"type": "response.completed", "response": {
            "status": "completed", "output": output}})
    };
    check(completed(json!([])), Ok(Stop::Done));
    check(completed(json!([refusal])), Ok(Stop::Refused));
    check(incomplete("max_output_tokens"), Ok(Stop::Length));
    check(incomplete("content_filter"), Ok(Stop::Refused));
    check(
        failed("rate_limit_exceeded", "slow down"),
        Err(ProviderErrorKind::RateLimited),
    );
    check(
        failed("server_error", "sorry"),
        Err(ProviderErrorKind::Unavailable),
    );
    check(
        failed("context_length_exceeded", "too long"),
        Err(ProviderErrorKind::TooLong),
    );
    check(
        json!({"type": "error", "code": "insufficient_quota", "message": "no money", "param": null}),
        Err(ProviderErrorKind::Unauthorized),
    );
    check(
        json!({"type": "response.failed", "response": {"status": "failed", "error": null}}),
        Err(ProviderErrorKind::Broken),
    );
}

#[test]
fn reasoning_goes_back_to_its_model_with_what_followed_it() {
    let sealed = |text: &str, provider: &str| thinking(text, Some("c2VhbA=="), provider);
    let messages = [
        user("Look."),
        assistant(vec![
            sealed("Of another.", "openai-responses/gpt-5"),
            sealed("First.", SOURCE),
            call("call_1", "Read", "{\"p\":1}"),
            // Nothing follows it: the endpoint would reject it.
            sealed("Cut off.", SOURCE),
        ]),
        Message {
            role: Role::User,
            parts: vec![super::super::fixture::result(
                "call_1",
                vec![super::super::fixture::said("hello")],
                false,
            )],
        },
        assistant(vec![thinking("Unsealed.", None, SOURCE), text("Done.")]),
        user("Thanks."),
    ];
    let body = body(&asking(&messages));
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["instructions"], "Be good.");
    assert_eq!(
        body["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "First."}], "encrypted_content": "c2VhbA=="},
            {"type": "function_call", "call_id": "call_1", "name": "Read", "arguments": "{\"p\":1}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "hello"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
        ])
    );
}

#[test]
fn every_kind_of_part_is_encoded() {
    let messages = conversation();
    let tools = [tool("Read")];
    let request = Request {
        tools: &tools,
        ..asking(&messages)
    };
    let body = body(&request);
    assert_eq!(body["tools"][0]["strict"], false);
    assert_eq!(body["tools"][0]["name"], "Read");
    let input = body["input"].as_array().unwrap();
    let outputs: Vec<&Value> = input
        .iter()
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| &item["output"])
        .collect();
    assert_eq!(outputs[0], "hello");
    assert_eq!(outputs[1], "Error: the arguments are not JSON");
    assert_eq!(outputs[2][0]["text"], "here");
    assert_eq!(outputs[2][1]["type"], "input_image");
    assert_eq!(outputs[4], "Error: ");
    let without = encode(&request, &model(), Summary::Omitted, Thoughts::Sent).unwrap();
    let without: Value = serde_json::from_slice(&without).unwrap();
    assert_eq!(without["reasoning"], Value::Null);
}

/// Asks twice, and returns what the endpoint was asked each time.
async fn asked(turns: Vec<Turn>) -> Vec<Value> {
    let scripted = ScriptedModel::start(turns).await.unwrap();
    let settings = ProviderSettings {
        openai_url: Some(scripted.openai_url()),
        model: Some("test".to_owned()),
        responses: Some(true),
        ..ProviderSettings::default()
    };
    let provider = settings.provider().await.unwrap();
    let sealed = thinking("Hm.", Some("b2xk"), "openai-responses/test");
    let messages = [
        user("Hello"),
        assistant(vec![sealed, text("Yes?")]),
        user("Go on."),
    ];
    for _ in 0..2 {
        let chunks: Vec<Chunk> = provider.ask(asking(&messages)).try_collect().await.unwrap();
        assert!(matches!(chunks.last(), Some(Chunk::End(_))), "{chunks:?}");
    }
    let requests = scripted.requests();
    requests.into_iter().map(|request| request.body).collect()
}

#[tokio::test]
async fn summaries_are_not_asked_for_again_once_the_account_gets_none() {
    let refusal = "Your organization must be verified to generate reasoning summaries.";
    let requests = asked(vec![
        Turn::refuse(400, refusal),
        Turn::text("Hi"),
        Turn::text("Hi"),
    ])
    .await;
    let summaries: Vec<&Value> = requests
        .iter()
        .map(|body| &body["reasoning"]["summary"])
        .collect();
    assert_eq!(summaries, [&json!("auto"), &Value::Null, &Value::Null]);
}

#[tokio::test]
async fn reasoning_that_cannot_be_decrypted_is_left_out() {
    let refusal = "The encrypted content could not be verified.";
    let requests = asked(vec![
        Turn::refuse(400, refusal),
        Turn::text("Hi"),
        Turn::text("Hi"),
    ])
    .await;
    let kinds = |body: &Value| body["input"][1]["type"].clone();
    assert_eq!(kinds(&requests[0]), "reasoning");
    assert_eq!(kinds(&requests[1]), "message");
}

proptest! {
    #[test]
    fn it_does_not_matter_how_the_stream_is_cut(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let stream = events(&stream());
        assert_cuts_make_no_difference(decoder, stream.as_bytes(), &cuts);
    }

    #[test]
    fn no_event_crashes_the_decoder(kind in "(response\\.[a-z_.]{0,40}|error|)", place in any::<u64>(), text in ".{0,20}") {
        let item = json!({"type": text, "name": text, "arguments": place, "content": [text]});
        let data = json!({"type": kind, "output_index": place, "delta": text, "item": item, "response": item});
        let _ = decode(decoder(), &[events(&[data]).as_bytes()]);
    }
}
