use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::fixture::{
    assert_chunks_make_the_answer, assert_cuts_make_no_difference, call, conversation, decode,
    events, text, thinking, tool,
};
use super::super::models::{Kind, describe};
use super::super::{ModelReply, Stop, Usage};
use super::*;
use serde_json::Value;

fn model(vision: bool) -> Model {
    Model {
        vision,
        ..describe(Kind::Local, "test")
    }
}

/// A request with only these messages.
fn asking(messages: &[Message]) -> Request<'_> {
    Request {
        system: "",
        tools: &[],
        messages,
        max_output_tokens: None,
    }
}

fn body(request: &Request<'_>, model: &Model, limit: Limit) -> Value {
    serde_json::from_slice(&encode(request, model, limit, Reasoning::AsItLikes).unwrap()).unwrap()
}

#[test]
fn a_whole_request() {
    let messages = conversation();
    let tools = [tool("Read")];
    let request = Request {
        system: "Be good.",
        tools: &tools,
        messages: &messages,
        max_output_tokens: Some(100),
    };
    let picture =
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}});
    let called = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let expected = json!({
        "model": "test",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 100,
        "tools": [{"type": "function", "function": {
            "name": "Read",
            "description": "Does Read.",
            "parameters": {"type": "object", "properties": {"a": {}, "b": {}}},
        }}],
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": [{"type": "text", "text": "Look at this."}, picture]},
            {"role": "assistant", "content": "I look.\n  ", "reasoning_content": "Hm.", "tool_calls": [
                called("call_1", "Read", "{\"path\": \"b.txt\", \"a\": 1}"),
                called("call_2_958cab995d7ef6d5", "functions_grep", "{\"unreadable_arguments\":\"{\\\"pattern\\\": \"}"),
                called("call_3", "Picture", "{}"),
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "hello"},
            {"role": "tool", "tool_call_id": "call_2_958cab995d7ef6d5", "content": "Error: the arguments are not JSON"},
            {"role": "tool", "tool_call_id": "call_3", "content": "here\n[a picture follows in the next message]"},
            {"role": "user", "content": [
                {"type": "text", "text": "The picture from the result of call call_3:"},
                picture,
                {"type": "text", "text": "And be quick."},
                {"type": "text", "text": "Are you there?"},
            ]},
            {"role": "assistant", "content": "Yes.", "tool_calls": [
                called("call_4", "Picture", "{}"),
                called("call_5", "Bash", "{}"),
            ]},
            {"role": "tool", "tool_call_id": "call_4", "content": "Error: [a picture follows in the next message]"},
            {"role": "tool", "tool_call_id": "call_5", "content": "Error: "},
            {"role": "user", "content": [
                {"type": "text", "text": "The picture from the result of call call_4:"},
                picture,
            ]},
        ],
    });
    assert_eq!(body(&request, &model(true), Limit::MaxTokens), expected);
}

#[test]
fn a_model_is_told_only_what_it_understands() {
    let messages = conversation();
    let tools = [tool("Read")];
    let request = Request {
        system: " ",
        tools: &tools,
        messages: &messages,
        max_output_tokens: Some(9),
    };
    let blind = Model {
        tools: false,
        ..model(false)
    };
    let body = body(&request, &blind, Limit::MaxCompletionTokens);
    assert_eq!(body["tools"], Value::Null);
    assert_eq!(
        (&body["max_completion_tokens"], &body["max_tokens"]),
        (&json!(9), &Value::Null)
    );
    let note = "[a picture (image/png), which this model cannot see]";
    assert_eq!(
        body["messages"][0],
        json!({"role": "user", "content": [
            {"type": "text", "text": "Look at this."},
            {"type": "text", "text": note},
        ]})
    );
    assert_eq!(body["messages"][4]["content"], format!("here\n{note}"));
    let short = Request {
        messages: &[Message::text(Role::User, "Hi")],
        max_output_tokens: None,
        ..request
    };
    let body = serde_json::from_slice::<Value>(
        &encode(&short, &blind, Limit::MaxTokens, Reasoning::NotWithTools).unwrap(),
    )
    .unwrap();
    assert_eq!(
        body,
        json!({
            "model": "test",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "Hi"}],
        })
    );
}

#[test]
fn a_model_may_be_told_not_to_reason_where_it_has_tools() {
    let messages = [Message::text(Role::User, "Hi")];
    let tools = [tool("Read")];
    let request = Request {
        system: "",
        tools: &tools,
        messages: &messages,
        max_output_tokens: None,
    };
    let effort = |request: &Request<'_>| {
        let bytes = encode(
            request,
            &model(true),
            Limit::MaxTokens,
            Reasoning::NotWithTools,
        )
        .unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()["reasoning_effort"].clone()
    };
    assert_eq!(effort(&request), "none");
    assert_eq!(
        effort(&Request {
            tools: &[],
            ..request
        }),
        Value::Null
    );
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "what a test writes down is short that way"
)]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn decoded(stream: &str) -> (Vec<Chunk>, Result<ModelReply, ProviderError>) {
    decode(Decoder::new(&asking(&[])), &[stream.as_bytes()])
}

#[test]
fn a_whole_answer() {
    let stream = events(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "Hm."})),
        delta(json!({"content": "I look."})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "Read", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"p\":"}}]})),
        delta(
            json!({"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "Grep", "arguments": "{"}}]}),
        ),
        delta(
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}, {"index": 1, "function": {"arguments": "}"}}]}),
        ),
        finish("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 20}}}),
    ]) + "data: [DONE]\n\n";
    let (chunks, answer) = decoded(&stream);
    let begins = |id: &str, name: &str| Chunk::CallBegins {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    assert_eq!(
        chunks,
        [
            Chunk::Thinking("Hm.".to_owned()),
            Chunk::Text("I look.".to_owned()),
            begins("a", "Read"),
            Chunk::CallArguments("{\"p\":".to_owned()),
            begins("b", "Grep"),
            Chunk::CallArguments("{".to_owned()),
            Chunk::CallArguments("}".to_owned()),
        ]
    );
    let answer = answer.unwrap();
    assert_chunks_make_the_answer(&chunks, &answer);
    assert_eq!(
        answer,
        ModelReply {
            message: Message {
                role: Role::Assistant,
                parts: vec![
                    thinking("Hm.", None, "openai"),
                    text("I look."),
                    call("a", "Read", "{\"p\":1}"),
                    call("b", "Grep", "{}"),
                ],
            },
            stop: Stop::Calls,
            usage: Usage {
                input: 10,
                cache_read: 20,
                output: 7,
                ..Usage::default()
            },
        }
    );
}

#[test]
fn tokens_are_counted_here_where_the_endpoint_does_not_count() {
    let data = [
        json!({"choices": [{"delta": {"content": "0123456789"}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ];
    let messages = [Message::text(Role::User, "01234")];
    let tools = [tool("Read")];
    let request = Request {
        system: "0123456789",
        tools: &tools,
        ..asking(&messages)
    };
    let (_, answer) = decode(Decoder::new(&request), &[events(&data).as_bytes()]);
    let definition: u64 = ["Read", "Does Read.", tools[0].input_schema.get()]
        .map(|text| switchboard::catalog::Tokens::of(text).0)
        .iter()
        .sum();
    assert_eq!(
        answer.unwrap().usage,
        Usage {
            input: 4 + 2 + definition,
            output: 4,
            is_estimate: true,
            ..Usage::default()
        }
    );
    let mut with_usage = data.to_vec();
    with_usage.push(json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 1}}));
    let (_, answer) = decode(Decoder::new(&request), &[events(&with_usage).as_bytes()]);
    let usage = answer.unwrap().usage;
    assert_eq!(
        (usage.input, usage.output, usage.is_estimate),
        (0, 1, false)
    );
}

#[test]
fn servers_follow_the_format_more_or_less() {
    let check = |case: &str, stream: &str, parts: &[Part], stop: Stop| {
        let (chunks, answer) = decoded(stream);
        let answer = answer.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(
            (answer.message.parts.as_slice(), answer.stop),
            (parts, stop),
            "{case}"
        );
        assert_chunks_make_the_answer(&chunks, &answer);
    };
    let one = |id: Value, index: Value, name: &str, arguments: Value| {
        delta(
            json!({"tool_calls": [{"id": id, "index": index, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let null = Value::Null;
    check(
        "whole calls in one chunk, without ids, and a wrong reason",
        &events(&[
            delta(json!({"tool_calls": [
                {"index": 0, "function": {"name": "A", "arguments": "{\"x\":1}"}},
                {"index": 1, "function": {"name": "B", "arguments": "{}"}},
            ]})),
            finish("stop"),
        ]),
        &[call("call_1", "A", "{\"x\":1}"), call("call_2", "B", "{}")],
        Stop::Calls,
    );
    check(
        "every call is the first, with ids",
        &events(&[
            one(json!("a"), json!(0), "A", json!("{}")),
            one(json!("b"), json!(0), "B", json!("{}")),
            finish("stop"),
        ]),
        &[call("a", "A", "{}"), call("b", "B", "{}")],
        Stop::Calls,
    );
    check(
        "every call is the first, without ids",
        &events(&[
            one(json!(""), json!(0), "A", json!("{}")),
            one(json!(""), json!(0), "A", json!("{}")),
            finish("stop"),
        ]),
        &[call("call_1", "A", "{}"), call("call_2", "A", "{}")],
        Stop::Calls,
    );
    check(
        "one id for all",
        &events(&[
            one(json!("x"), json!(0), "A", json!("{}")),
            one(json!("x"), json!(1), "B", json!("{}")),
            finish("tool_calls"),
        ]),
        &[call("x", "A", "{}"), call("call_1", "B", "{}")],
        Stop::Calls,
    );
    check(
        "neither index nor id, the name repeated in every piece",
        &events(&[
            one(null.clone(), null.clone(), "A", json!("{\"x\"")),
            one(null.clone(), null.clone(), "A", json!(":1}")),
            finish("tool_calls"),
        ]),
        &[call("call_1", "A", "{\"x\":1}")],
        Stop::Calls,
    );
    check(
        "arguments as an object",
        &events(&[
            one(json!("a"), json!(0), "A", json!({"x": [1]})),
            finish("tool_calls"),
        ]),
        &[call("a", "A", "{\"x\":[1]}")],
        Stop::Calls,
    );
    check(
        "no arguments",
        &events(&[
            one(json!("a"), json!(0), "A", null.clone()),
            finish("tool_calls"),
        ]),
        &[call("a", "A", "{}")],
        Stop::Calls,
    );
    check(
        "the name after the arguments have begun",
        &events(&[
            one(json!("a"), json!(0), "", json!("{\"x\"")),
            one(json!("a"), json!(0), "A", json!(":1}")),
            finish("tool_calls"),
        ]),
        &[call("a", "A", "{\"x\":1}")],
        Stop::Calls,
    );
    check(
        "a call without a name is none",
        &events(&[one(json!("a"), json!(0), "", json!("{}")), finish("stop")]),
        &[],
        Stop::Done,
    );
    check(
        "no [DONE]",
        &events(&[delta(json!({"content": "Hi"})), finish("stop")]),
        &[text("Hi")],
        Stop::Done,
    );
    check(
        "no reason",
        &(events(&[delta(json!({"content": "Hi"}))]) + "data: [DONE]"),
        &[text("Hi")],
        Stop::Done,
    );
    check(
        "nothing at all",
        &(events(&[finish("stop")]) + "data: [DONE]\n\n"),
        &[],
        Stop::Done,
    );
    check(
        "a length",
        &events(&[
            one(json!("a"), json!(0), "A", json!("{\"x")),
            finish("length"),
        ]),
        &[call("a", "A", "{\"x")],
        Stop::Length,
    );
    check(
        "a filter",
        &events(&[delta(json!({"content": "I"})), finish("content_filter")]),
        &[text("I")],
        Stop::Refused,
    );
    check(
        "a refusal",
        &events(&[delta(json!({"refusal": "No."})), finish("stop")]),
        &[text("No.")],
        Stop::Refused,
    );
    check(
        "text in parts",
        &events(&[
            delta(json!({"content": [{"type": "text", "text": "Hi"}]})),
            finish("stop"),
        ]),
        &[text("Hi")],
        Stop::Done,
    );
    check(
        "thoughts by another name",
        &events(&[delta(json!({"reasoning": "Hm."})), finish("stop")]),
        &[thinking("Hm.", None, "openai")],
        Stop::Done,
    );
    check(
        "no stream",
        &events(&[
            json!({"object": "chat.completion", "choices": [{"message": {
            "role": "assistant",
            "content": null,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "A", "arguments": "{}"}}],
        }, "finish_reason": "tool_calls"}]}),
        ]),
        &[call("a", "A", "{}")],
        Stop::Calls,
    );
}

#[test]
fn an_id_is_never_used_twice_in_a_conversation() {
    let earlier = [Message {
        role: Role::Assistant,
        parts: vec![call("call_1", "A", "{}"), call("x", "A", "{}")],
    }];
    let stream = events(&[
        delta(json!({"tool_calls": [{"index": 0, "function": {"name": "A", "arguments": "{}"}}]})),
        delta(
            json!({"tool_calls": [{"index": 1, "id": "x", "function": {"name": "B", "arguments": "{}"}}]}),
        ),
        finish("tool_calls"),
    ]);
    let (_, answer) = decode(Decoder::new(&asking(&earlier)), &[stream.as_bytes()]);
    assert_eq!(
        answer.unwrap().message.parts,
        [call("call_2", "A", "{}"), call("call_3", "B", "{}")]
    );
}

#[test]
fn what_is_no_answer_says_why() {
    let check = |stream: &str, kind: ProviderErrorKind, message: &str| {
        let error = decoded(stream).1.unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, message),
            "{stream}"
        );
    };
    check("", ProviderErrorKind::Broken, "the answer was cut off");
    check(
        &events(&[delta(json!({"content": "Hi"}))]),
        ProviderErrorKind::Broken,
        "the answer was cut off",
    );
    check(
        "data: garbage\n\n",
        ProviderErrorKind::Broken,
        "invalid JSON in an event: expected value at line 1 column 1",
    );
    check(
        &events(&[json!({"error": {"message": "out of memory", "code": 500}})]),
        ProviderErrorKind::Unavailable,
        "out of memory",
    );
    let many: Vec<Value> = (0..2000)
        .map(|index| delta(json!({"tool_calls": [{"index": index, "function": {"name": "A"}}]})))
        .collect();
    check(
        &events(&many),
        ProviderErrorKind::Broken,
        "the answer has too many calls",
    );
}

fn hostile_event() -> impl Strategy<Value = Value> {
    let call = (0..4_u64, prop::option::of("[ab]{0,1}"), prop::option::of("[AB]{0,1}"), "[{}\":1a]{0,6}").prop_map(
        |(index, id, name, arguments)| {
            delta(json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}))
        },
    );
    prop_oneof![
        4 => call,
        2 => "[a-zö]{0,5}".prop_map(|text| delta(json!({"content": text}))),
        1 => Just(finish("stop")),
        1 => Just(json!({"choices": null})),
        1 => Just(json!({"choices": [{"delta": {"tool_calls": [null, 1, {}]}}], "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}})),
    ]
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        data in prop::collection::vec(hostile_event(), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        assert_cuts_make_no_difference(|| Decoder::new(&asking(&[])), events(&data).as_bytes(), &cuts);
    }

    #[test]
    fn ids_are_unique(data in prop::collection::vec(hostile_event(), 0..30)) {
        let stream = events(&data) + &events(&[finish("stop")]);
        let (_, answer) = decoded(&stream);
        let answer = answer.unwrap();
        let ids: Vec<&str> = answer.message.calls().map(|call| call.id.as_str()).collect();
        let different: HashSet<&str> = ids.iter().copied().collect();
        prop_assert_eq!(ids.len(), different.len());
    }

    #[test]
    fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut stream = b"data: ".to_vec();
        stream.extend(&bytes);
        let (_, answer) = decode(Decoder::new(&asking(&[])), &[&bytes, &stream]);
        prop_assert!(answer.is_err());
    }
}
