use proptest::prelude::*;
use serde_json::json;

use super::super::fixture::{
    assert_chunks_make_the_answer, assert_cuts_make_no_difference, call, conversation, decode,
    events, text, thinking, tool,
};
use super::super::models::{Kind as ModelKind, describe};
use super::*;

fn model() -> Model {
    describe(ModelKind::Anthropic, "claude-test")
}

fn body(request: &Request<'_>, mode: ThinkingMode, thoughts: Thoughts) -> Value {
    let bytes = encode(request, &model(), mode, thoughts).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_whole_request() {
    let messages = conversation();
    let tools = [tool("Read"), tool("Bash")];
    let request = Request {
        system: "Be good.",
        tools: &tools,
        messages: &messages,
        max_output_tokens: None,
    };
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}});
    let mark = json!({"type": "ephemeral"});
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}});
    let expected = json!({
        "model": "claude-test",
        "max_tokens": 32_000,
        "stream": true,
        "tools": [
            {"name": "Read", "description": "Does Read.", "input_schema": schema},
            {"name": "Bash", "description": "Does Bash.", "input_schema": schema, "cache_control": mark},
        ],
        "system": [{"type": "text", "text": "Be good.", "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look at this."}, picture]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2VhbA=="},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "Read", "input": {"path": "b.txt", "a": 1}},
                {"type": "tool_use", "id": "call_2_958cab995d7ef6d5", "name": "functions_grep", "input": {"unreadable_arguments": "{\"pattern\": "}},
                {"type": "tool_use", "id": "call_3", "name": "Picture", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "hello"}]},
                {"type": "tool_result", "tool_use_id": "call_2_958cab995d7ef6d5", "content": [{"type": "text", "text": "the arguments are not JSON"}], "is_error": true},
                {"type": "tool_result", "tool_use_id": "call_3", "content": [{"type": "text", "text": "here"}, picture]},
                {"type": "text", "text": "And be quick."},
            ]},
            {"role": "user", "content": [{"type": "text", "text": "Are you there?", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Yes."},
                {"type": "tool_use", "id": "call_4", "name": "Picture", "input": {}},
                {"type": "tool_use", "id": "call_5", "name": "Bash", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_4", "content": [picture]},
                {"type": "tool_result", "tool_use_id": "call_5", "content": [{"type": "text", "text": "the tool failed without output"}], "is_error": true, "cache_control": mark},
            ]},
        ],
    });
    assert_eq!(
        body(&request, ThinkingMode::Default, Thoughts::Kept),
        expected
    );

    let mode = ThinkingMode::AdaptiveSummarized;
    let thinking = body(&request, mode, Thoughts::Kept)["thinking"].clone();
    assert_eq!(
        thinking,
        json!({"type": "adaptive", "display": "summarized"})
    );
    let without = body(&request, mode, Thoughts::LeftOut);
    assert_eq!(without["thinking"], Value::Null);
    assert_eq!(without["messages"][1]["content"][0]["text"], "I look.");
}

#[test]
fn arguments_and_schemas_keep_their_order() {
    let messages = conversation();
    let tools = [tool("Read")];
    let request = Request {
        system: "",
        tools: &tools,
        messages: &messages,
        max_output_tokens: Some(7),
    };
    let bytes = encode(&request, &model(), ThinkingMode::Adaptive, Thoughts::Kept).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(r#""input":{"path": "b.txt", "a": 1}"#));
    assert!(text.contains(r#"{"type":"object","properties":{"b":{},"a":{}}}"#));
    assert!(text.starts_with(r#"{"model":"claude-test","max_tokens":7,"stream":true,"thinking":{"type":"adaptive"},"tools":["#));
    assert!(!text.contains("\"system\""));
}

#[test]
fn what_was_said_before_is_said_the_same_way_again() {
    let messages = conversation();
    let tools = [tool("Read"), tool("Bash")];
    let encoded = |count: usize| {
        let request = Request {
            system: "Be good.",
            tools: &tools,
            messages: &messages[..count],
            max_output_tokens: None,
        };
        let bytes = encode(&request, &model(), ThinkingMode::Default, Thoughts::Kept).unwrap();
        String::from_utf8(bytes)
            .unwrap()
            .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    for count in [1, 3, 5] {
        let (before, after) = (encoded(count), encoded(count + 2));
        let start = before.strip_suffix("]}").unwrap();
        assert!(after.starts_with(start), "{after}");
    }
}

fn whole_stream() -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2Vh"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "bA=="}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "ZGF0YQ=="}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "I l\u{f6}"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "ok."}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {}}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":"}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "\"a\"}"}}),
        json!({"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "toolu_2", "name": "List", "input": {}}}),
        json!({"type": "content_block_start", "index": 5, "content_block": {"type": "server_tool_use", "id": "x", "name": "web"}}),
        json!({"type": "content_block_start", "index": 6, "content_block": {"type": "tool_use", "id": "toolu_3", "name": "Find", "input": {"q": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}}),
        json!({"type": "something_new"}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_whole_answer() {
    let stream = events(&whole_stream());
    let (chunks, answer) = decode(Decoder::new(&model()), &[stream.as_bytes()]);
    let begins = |id: &str, name: &str| Chunk::CallBegins {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    assert_eq!(
        chunks,
        [
            Chunk::Thinking("Hm.".to_owned()),
            Chunk::Text("I lö".to_owned()),
            Chunk::Text("ok.".to_owned()),
            begins("toolu_1", "Read"),
            Chunk::CallArguments("{\"path\":".to_owned()),
            Chunk::CallArguments("\"a\"}".to_owned()),
            begins("toolu_2", "List"),
            begins("toolu_3", "Find"),
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
                    thinking("Hm.", Some("c2VhbA=="), "anthropic/claude-test"),
                    thinking("", Some("redacted:ZGF0YQ=="), "anthropic/claude-test"),
                    text("I löok."),
                    call("toolu_1", "Read", "{\"path\":\"a\"}"),
                    call("toolu_2", "List", "{}"),
                    call("toolu_3", "Find", "{\"q\":1}"),
                ],
            },
            stop: Stop::Calls,
            usage: Usage {
                input: 3,
                cache_read: 4,
                cache_write: 5,
                output: 42,
                ..Usage::default()
            },
        }
    );
}

#[test]
fn every_reason_to_stop() {
    let check = |reason: &str, expected: Stop| {
        let stream = events(&[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
        ]);
        let (_, answer) = decode(Decoder::new(&model()), &[stream.as_bytes()]);
        assert_eq!(answer.unwrap().stop, expected, "{reason}");
    };
    check("end_turn", Stop::Done);
    check("stop_sequence", Stop::Done);
    check("tool_use", Stop::Done);
    check("max_tokens", Stop::Length);
    check("refusal", Stop::Refused);
    check("pause_turn", Stop::Paused);
    check("model_context_window_exceeded", Stop::Window);
    check("something_new", Stop::Done);
}

#[test]
fn a_call_that_was_cut_off_does_not_look_whole() {
    let stream = events(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "Delete", "input": {}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ]);
    let (_, answer) = decode(Decoder::new(&model()), &[stream.as_bytes()]);
    let answer = answer.unwrap();
    assert_eq!(answer.stop, Stop::Length);
    assert_eq!(answer.message.parts, [call("a", "Delete", "")]);
}

#[test]
fn what_is_no_answer_says_why() {
    let check = |stream: &str, kind: ProviderErrorKind, message: &str| {
        let (_, answer) = decode(Decoder::new(&model()), &[stream.as_bytes()]);
        let error = answer.unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, message),
            "{stream}"
        );
    };
    check("", ProviderErrorKind::Broken, "the answer was cut off");
    check(
        "data: {\"type\":\"message_sto",
        ProviderErrorKind::Broken,
        "invalid JSON in an event: EOF while parsing a string at line 1 column 20",
    );
    check(
        "data: {\"type\":\"message\"}\n\n",
        ProviderErrorKind::Refused,
        "the endpoint does not stream",
    );
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    check(
        &events(&[error]),
        ProviderErrorKind::Unavailable,
        "Overloaded",
    );
    let many: Vec<Value> = (0..5000)
        .map(|index| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}))
        .collect();
    check(
        &events(&many),
        ProviderErrorKind::Broken,
        "the answer has too many parts",
    );
}

fn hostile_event() -> impl Strategy<Value = Value> {
    let odd = prop_oneof![
        Just(
            json!({"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "lost"}})
        ),
        Just(
            json!({"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": 1}})
        ),
        Just(json!({"type": "content_block_start", "index": -1, "content_block": null})),
        Just(json!({"type": "message_delta", "delta": null, "usage": {"output_tokens": -1}})),
        Just(json!({"type": "message_start", "message": []})),
        Just(json!([])),
    ];
    prop_oneof![4 => prop::sample::select(whole_stream()), 1 => odd]
}

proptest! {
    #[test]
    fn chunks_make_no_difference(
        data in prop::collection::vec(hostile_event(), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        assert_cuts_make_no_difference(|| Decoder::new(&model()), events(&data).as_bytes(), &cuts);
    }

    #[test]
    fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut stream = b"data: ".to_vec();
        stream.extend(&bytes);
        let (_, answer) = decode(Decoder::new(&model()), &[&bytes, &stream]);
        prop_assert!(answer.is_err());
    }
}
