use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use switchboard_test::model::{
    Refusal, ScriptedModel, Step, Stop as ScriptedStop, StreamError, Thought, Turn,
    Usage as ScriptedUsage, Wire,
};

use super::super::retry::RetryPolicy;
use super::super::settings::{ProviderSettings, SettingsError};
use super::super::{Provider, Request, Stop, Usage};
use super::*;
use crate::message::{Message, Part, Role};
use std::sync::Arc;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAi, Wire::Responses];
/// Must not appear in any error.
const KEY: &str = "sk-very-secret-indeed";

fn settings(model: &ScriptedModel, wire: Wire, attempts: u32) -> ProviderSettings {
    let key = Some(Secret::new(KEY));
    let retry = RetryPolicy {
        attempts,
        first_wait: Duration::from_millis(2),
        ..RetryPolicy::default()
    };
    match wire {
        Wire::Anthropic => ProviderSettings {
            anthropic_key: key,
            anthropic_url: Some(model.anthropic_url()),
            model: Some("anthropic/test".to_owned()),
            retry,
            ..ProviderSettings::default()
        },
        Wire::OpenAi | Wire::Responses => ProviderSettings {
            openai_key: key,
            openai_url: Some(model.openai_url()),
            model: Some("openai/test".to_owned()),
            responses: Some(wire == Wire::Responses),
            retry,
            ..ProviderSettings::default()
        },
    }
}

async fn provider(model: &ScriptedModel, wire: Wire, attempts: u32) -> Arc<dyn Provider> {
    settings(model, wire, attempts).provider().await.unwrap()
}

async fn ask(provider: &dyn Provider) -> Result<Vec<Chunk>, ProviderError> {
    let messages = [Message::text(Role::User, "Hello")];
    let request = Request {
        system: "Be good.",
        tools: &[],
        messages: &messages,
        max_output_tokens: None,
    };
    provider.ask(request).try_collect().await
}

fn answer_of(chunks: &[Chunk]) -> ModelReply {
    match chunks.last() {
        Some(Chunk::End(answer)) => answer.clone(),
        other => panic!("no end: {other:?}"),
    }
}

#[tokio::test]
async fn one_script_is_the_same_answer_in_every_format() {
    let turn = Turn::new()
        .step(Step::Ping)
        .step(Step::Thinking(Thought {
            text: "Hm.".to_owned(),
            seal: Some("c2VhbA==".to_owned()),
        }))
        .say("I lö")
        .say("ok.")
        .call("call_1", "Read", json!({"path": "ä"}))
        .call_with_text("call_2", "Grep", "{\"pattern\": ")
        .usage(ScriptedUsage {
            input: 3,
            cache_read: 2,
            cache_write: 0,
            output: 9,
        });
    for wire in WIRES {
        for piece_bytes in [None, Some(1), Some(7)] {
            let turn = Turn {
                piece_bytes,
                ..turn.clone()
            };
            let model = ScriptedModel::start(vec![turn]).await.unwrap();
            let provider = provider(&model, wire, 1).await;
            let chunks = ask(&*provider).await.unwrap();
            let answer = answer_of(&chunks);
            assert_eq!(answer.message.all_text(), "I löok.", "{wire:?}");
            let calls: Vec<_> = answer
                .message
                .calls()
                .map(|call| (call.id.as_str(), call.arguments.as_str()))
                .collect();
            assert_eq!(
                calls,
                [("call_1", "{\"path\":\"ä\"}"), ("call_2", "{\"pattern\": ")]
            );
            assert_eq!(answer.stop, Stop::Calls);
            assert_eq!(
                answer.usage,
                Usage {
                    input: 3,
                    cache_read: 2,
                    output: 9,
                    ..Usage::default()
                }
            );
            let thoughts = answer
                .message
                .parts
                .iter()
                .filter(|part| matches!(part, Part::Thinking(_)));
            assert_eq!(thoughts.count(), 1);
        }
    }
}

#[tokio::test]
async fn requests_say_who_asks() {
    for wire in WIRES {
        let model = ScriptedModel::start(vec![Turn::text("Hi")]).await.unwrap();
        ask(&*provider(&model, wire, 1).await).await.unwrap();
        let request = model.request(1).await;
        let headers: Value = serde_json::to_value(&request.headers).unwrap();
        let expected = match wire {
            Wire::Anthropic => json!({
                "accept": "text/event-stream",
                "anthropic-version": "2023-06-01",
                "content-type": "application/json",
                "x-api-key": KEY,
            }),
            Wire::OpenAi | Wire::Responses => json!({
                "accept": "text/event-stream",
                "authorization": format!("Bearer {KEY}"),
                "content-type": "application/json",
            }),
        };
        assert_eq!(headers, expected);
        assert_eq!(model.requests().len(), 1);
    }
}

#[tokio::test]
async fn failures_are_told_for_what_they_are() {
    use ProviderErrorKind as Kind;
    let refusal = |body: &str| Turn {
        refuse: Some(Refusal {
            status: 401,
            body: Some(body.to_owned()),
            ..Refusal::default()
        }),
        ..Turn::default()
    };
    let error = |kind: &str| {
        Step::Error(StreamError {
            kind: kind.to_owned(),
            message: "Overloaded".to_owned(),
        })
    };
    let cases: Vec<(Turn, Kind, &str)> = vec![
        (Turn::refuse(401, "bad key"), Kind::Unauthorized, "bad key"),
        (
            refusal(&format!("{{\"error\":{{\"message\":\"{KEY} is wrong\"}}}}")),
            Kind::Unauthorized,
            "******** is wrong",
        ),
        (
            Turn::refuse(404, "no model test"),
            Kind::UnknownModel,
            "no model test",
        ),
        (
            Turn::refuse(429, "slow down"),
            Kind::RateLimited,
            "slow down",
        ),
        (Turn::refuse(500, "oops"), Kind::Unavailable, "oops"),
        (Turn::refuse(529, "busy"), Kind::Unavailable, "busy"),
        (
            Turn::text("half").step(error("overloaded_error")),
            Kind::Unavailable,
            "Overloaded",
        ),
        (
            Turn::text("half").step(Step::End),
            Kind::Broken,
            "the answer was cut off",
        ),
        (
            Turn::text("half").step(Step::Raw("data: }garbage{\n\n".to_owned())),
            Kind::Broken,
            "invalid JSON in an event: expected value at line 1 column 1",
        ),
    ];
    for wire in WIRES {
        for (turn, kind, message) in &cases {
            let model = ScriptedModel::start(vec![turn.clone()]).await.unwrap();
            let error = ask(&*provider(&model, wire, 1).await).await.unwrap_err();
            assert_eq!(
                (error.kind, error.message.as_str()),
                (*kind, *message),
                "{wire:?}"
            );
        }
        let model = ScriptedModel::start(vec![
            Turn::text("half").step(Step::Cut),
            Turn::refuse(0, ""),
        ])
        .await
        .unwrap();
        let provider = provider(&model, wire, 1).await;
        for _ in 0..2 {
            let error = ask(&*provider).await.unwrap_err();
            assert_eq!(error.kind, Kind::Broken, "{error}");
        }
    }
}

#[tokio::test]
async fn nobody_there_is_told() {
    // A port that was free a moment ago, without a listener.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let settings = ProviderSettings {
        openai_url: Some(url.clone()),
        model: Some("test".to_owned()),
        retry: RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        },
        ..ProviderSettings::default()
    };
    let error = ask(&*settings.provider().await.unwrap()).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unreachable, "{error}");
    let expected = format!("openai: {url}/chat/completions cannot be reached: Connection refused");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn what_passes_is_asked_again() {
    for wire in WIRES {
        let model = ScriptedModel::start(vec![
            Turn::refuse(429, "slow down").retry_after(0),
            Turn::text("half of it").step(Step::Cut),
            Turn::text("it").stop(ScriptedStop::Length),
        ])
        .await
        .unwrap();
        let chunks = ask(&*provider(&model, wire, 3).await).await.unwrap();
        let items: Vec<String> = chunks
            .iter()
            .map(|chunk| match chunk {
                Chunk::Again(retry) => format!("again {}", retry.attempt),
                Chunk::End(answer) => format!("end {:?}", answer.stop),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            items,
            [
                "again 2",
                "Text(\"half of it\")",
                "again 3",
                "Text(\"it\")",
                "end Length"
            ],
            "{wire:?}"
        );
        let requests = model.requests();
        assert!(
            requests
                .iter()
                .all(|request| request.body == requests[0].body)
        );
        assert!(model.left().is_empty());
    }
}

#[tokio::test]
async fn dropping_the_stream_calls_the_answer_off() {
    for wire in WIRES {
        let model =
            ScriptedModel::start(vec![Turn::text("a").step(Step::Wait("never".to_owned()))])
                .await
                .unwrap();
        let provider = provider(&model, wire, 1).await;
        let messages = [Message::text(Role::User, "Hello")];
        let request = Request {
            system: "",
            tools: &[],
            messages: &messages,
            max_output_tokens: None,
        };
        let mut stream = provider.ask(request);
        assert_eq!(
            stream.next().await.unwrap().unwrap(),
            Chunk::Text("a".to_owned())
        );
        drop(stream);
        model.abandoned(1).await;
    }
}

#[tokio::test]
async fn silence_has_an_end_and_a_complete_answer_does_not_wait_for_one() {
    let model = ScriptedModel::start(vec![
        Turn::text("a").step(Step::Wait("never".to_owned())),
        Turn::new().step(Step::Raw("data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n".to_owned())).step(Step::Wait("never".to_owned())),
    ])
    .await
    .unwrap();
    let client = switchboard::internal::transport::http::HttpClient::new(
        switchboard::internal::transport::http::HttpSettings::default(),
    )
    .unwrap();
    let endpoint = Endpoint {
        provider: "openai".to_owned(),
        client: client.pooled().clone(),
        url: format!("{}/chat/completions", model.openai_url())
            .parse()
            .unwrap(),
        headers: HeaderMap::new(),
        key: None,
        idle: Duration::from_millis(100),
    };
    let provider = super::super::openai::OpenAi {
        endpoint,
        model: super::super::models::describe(super::super::models::Kind::Local, "test"),
        limit: super::super::openai::Limit::MaxTokens,
        no_reasoning_with_tools: std::sync::atomic::AtomicBool::new(false),
        is_blind: std::sync::atomic::AtomicBool::new(false),
    };
    let error = ask(&provider).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ProviderErrorKind::TimedOut, "no data received for 100ms")
    );
    let answer = answer_of(&ask(&provider).await.unwrap());
    assert_eq!(answer.message.all_text(), "b");
}

#[tokio::test]
async fn a_server_of_ones_own_tells_which_model_it_has() {
    let model = ScriptedModel::start(vec![Turn::text("Hi")]).await.unwrap();
    let settings = ProviderSettings {
        openai_url: Some(model.openai_url()),
        ..ProviderSettings::default()
    };
    let provider = settings.provider().await.unwrap();
    assert_eq!(
        (provider.model().id.as_str(), provider.model().window),
        ("scripted", 65_536)
    );
    ask(&*provider).await.unwrap();
    let request = model.request(1).await;
    assert_eq!(request.body["model"], "scripted");
    assert_eq!(request.headers.get("authorization"), None);
}

/// Creates the provider of an endpoint that serves these documents in addition to its models.
async fn own(
    model: &ScriptedModel,
    name: Option<&str>,
    window: Option<u64>,
) -> Result<Arc<dyn Provider>, SettingsError> {
    let settings = ProviderSettings {
        openai_url: Some(model.openai_url()),
        model: name.map(str::to_owned),
        window,
        ..ProviderSettings::default()
    };
    settings.provider().await
}

#[tokio::test]
async fn the_window_is_asked_of_the_endpoint_and_a_setting_counts_before_it() {
    let check = async |answers: &[(&str, Value)], set: Option<u64>, expected: u64| {
        let model = ScriptedModel::start(Vec::new()).await.unwrap();
        for (path, answer) in answers {
            model.answers(path, answer.clone());
        }
        for name in [None, Some("mine")] {
            let provider = own(&model, name, set).await.unwrap();
            let found = (provider.model().id.as_str(), provider.model().window);
            assert_eq!(found, ("mine", expected), "{answers:?} {set:?}");
            assert!(provider.model().max_output <= expected / 2);
        }
    };
    let listed = |more: Value| {
        let mut item = json!({"id": "mine"});
        item.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ("/v1/models", json!({"data": [item]}))
    };
    let props = (
        "/props",
        json!({"default_generation_settings": {"n_ctx": 8_192}}),
    );
    let shown = (
        "/api/show",
        json!({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}}),
    );
    let set_up = (
        "/api/show",
        json!({"parameters": "stop \"x\"\nnum_ctx    4096", "model_info": {"qwen3.context_length": 40_960}}),
    );
    let trained = listed(json!({"meta": {"n_ctx_train": 131_072}}));
    let silent = listed(json!({}));
    check(&[listed(json!({"max_model_len": 16_384}))], None, 16_384).await;
    check(&[trained.clone(), props.clone()], None, 8_192).await;
    check(std::slice::from_ref(&trained), None, 131_072).await;
    check(&[silent.clone(), shown], None, 40_960).await;
    check(&[silent.clone(), set_up], None, 4_096).await;
    check(std::slice::from_ref(&silent), None, 32_768).await;
    // Implausible values.
    check(
        &[silent.clone(), ("/props", json!({"n_ctx": 7}))],
        None,
        32_768,
    )
    .await;
    check(&[silent.clone(), ("/props", json!("text"))], None, 32_768).await;
    check(&[trained, props], Some(2_048), 2_048).await;
    check(&[silent], Some(65_536), 65_536).await;
}

#[tokio::test]
async fn a_model_that_the_endpoint_does_not_list_is_refused_with_the_nearest_names() {
    let model = ScriptedModel::start(Vec::new()).await.unwrap();
    let list = json!({"data": [{"id": "qwen3:8b"}, {"id": "llama3.2:latest"}]});
    model.answers("/v1/models", list);
    let error = own(&model, Some("nosuchmodel"), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}/models has no model `nosuchmodel`", model.openai_url())
    );
    assert_eq!(
        error.hint().as_deref(),
        Some("it has qwen3:8b, llama3.2:latest")
    );
    let error = own(&model, Some("qwen3:4b"), None).await.unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("it has qwen3:8b and 1 more"));
    let provider = own(&model, Some("llama3.2"), None).await.unwrap();
    assert_eq!(provider.model().id, "llama3.2:latest");
    // If the endpoint lists no models, any name is accepted.
    for nothing in [json!({"data": []}), json!({"error": "no"}), json!(7)] {
        model.answers("/v1/models", nothing);
        let provider = own(&model, Some("nosuchmodel"), None).await.unwrap();
        assert_eq!(provider.model().id, "nosuchmodel");
    }
}

async fn show(provider: &dyn Provider) -> Result<Vec<Chunk>, ProviderError> {
    let picture = Part::Image(crate::message::Image {
        mime_type: "image/png".to_owned(),
        data: "iVBORw0=".to_owned(),
    });
    let messages = [Message {
        role: Role::User,
        parts: vec![picture],
    }];
    let request = Request {
        system: "",
        tools: &[],
        messages: &messages,
        max_output_tokens: None,
    };
    provider.ask(request).try_collect().await
}

#[tokio::test]
async fn pictures_are_sent_until_the_endpoint_refuses_them_and_then_no_more() {
    let has_picture = |model: &ScriptedModel, request: usize| {
        let body = model.requests()[request].body.to_string();
        let is_told = body.contains("which this model cannot see");
        let has_picture = body.contains("image_url");
        assert_ne!(is_told, has_picture, "{body}");
        has_picture
    };
    let seeing = ScriptedModel::start(vec![Turn::text("A cat.")])
        .await
        .unwrap();
    show(&*own(&seeing, None, None).await.unwrap())
        .await
        .unwrap();
    assert!(has_picture(&seeing, 0));
    for (status, message) in [
        (400, "mine is not a multimodal model"),
        (400, "invalid request"),
        (
            500,
            "image input is not supported - hint: you may need to provide the mmproj",
        ),
    ] {
        let turns = vec![
            Turn::refuse(status, message),
            Turn::text("I see none."),
            Turn::text("Still none."),
        ];
        let blind = ScriptedModel::start(turns).await.unwrap();
        let provider = own(&blind, None, None).await.unwrap();
        for _ in 0..2 {
            show(&*provider).await.unwrap();
        }
        let sent: Vec<bool> = (0..3).map(|request| has_picture(&blind, request)).collect();
        assert_eq!(sent, [true, false, false], "{status} {message}");
    }
    // Other refusals are returned as they are, and images are still sent.
    let turns = vec![
        Turn::refuse(400, "the first"),
        Turn::refuse(400, "the second"),
        Turn::text("Now I see."),
    ];
    let picky = ScriptedModel::start(turns).await.unwrap();
    let provider = own(&picky, None, None).await.unwrap();
    let error = show(&*provider).await.unwrap_err();
    assert!(error.message.contains("the first"), "{error}");
    show(&*provider).await.unwrap();
    assert!(has_picture(&picky, 2));
}

#[tokio::test]
async fn thoughts_that_are_no_longer_good_are_left_out() {
    let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let model = ScriptedModel::start(vec![Turn::refuse(400, refusal), Turn::text("Hi")])
        .await
        .unwrap();
    let provider = provider(&model, Wire::Anthropic, 1).await;
    let thought = super::super::fixture::thinking("Hm.", Some("b2xk"), "anthropic/test");
    let messages = [
        Message::text(Role::User, "Hello"),
        Message {
            role: Role::Assistant,
            parts: vec![thought, super::super::fixture::text("Yes?")],
        },
        Message::text(Role::User, "Go on."),
    ];
    let request = Request {
        system: "",
        tools: &[],
        messages: &messages,
        max_output_tokens: None,
    };
    let chunks: Vec<Chunk> = provider.ask(request).try_collect().await.unwrap();
    assert_eq!(answer_of(&chunks).message.all_text(), "Hi");
    let said: Vec<Value> = model
        .requests()
        .iter()
        .map(|request| request.body["messages"][1]["content"].clone())
        .collect();
    assert_eq!(
        said,
        [
            json!([{"type": "thinking", "thinking": "Hm.", "signature": "b2xk"}, {"type": "text", "text": "Yes?"}]),
            json!([{"type": "text", "text": "Yes?"}]),
        ]
    );
}

#[tokio::test]
async fn a_model_that_takes_tools_only_without_reasoning_is_found_out_once() {
    let refusal =
        "Function tools with reasoning_effort are not supported. Set reasoning_effort to 'none'.";
    let model = ScriptedModel::start(vec![
        Turn::refuse(400, refusal),
        Turn::text("Hi"),
        Turn::text("Hi again"),
    ])
    .await
    .unwrap();
    let provider = provider(&model, Wire::OpenAi, 1).await;
    let messages = [Message::text(Role::User, "Hello")];
    let tools = [super::super::fixture::tool("Read")];
    let request = Request {
        system: "",
        tools: &tools,
        messages: &messages,
        max_output_tokens: None,
    };
    for expected in ["Hi", "Hi again"] {
        let chunks: Vec<Chunk> = provider.ask(request).try_collect().await.unwrap();
        assert_eq!(answer_of(&chunks).message.all_text(), expected);
    }
    let efforts: Vec<Value> = model
        .requests()
        .iter()
        .map(|request| request.body["reasoning_effort"].clone())
        .collect();
    assert_eq!(efforts, [Value::Null, json!("none"), json!("none")]);
}
