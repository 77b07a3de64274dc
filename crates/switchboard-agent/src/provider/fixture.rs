//! Test fixtures for both wire formats: a conversation with every kind of part, and streams cut into pieces.

use std::collections::VecDeque;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::value::RawValue;
use switchboard::internal::transport::http::sse::{Decoded, Decoder};

use super::http::Decode;
use super::{Chunk, ModelReply, ProviderError};
use crate::message::{
    Content, Image, Message, Part, Role, Thinking, ToolCall, ToolDefinition, ToolResult,
};

pub(super) fn text(text: &str) -> Part {
    Part::Text {
        text: text.to_owned(),
    }
}

pub(super) fn image() -> Image {
    Image {
        mime_type: "image/png".to_owned(),
        data: "iVBORw0=".to_owned(),
    }
}

pub(super) fn thinking(text: &str, seal: Option<&str>, provider: &str) -> Part {
    Part::Thinking(Thinking {
        text: text.to_owned(),
        seal: seal.map(str::to_owned),
        provider: provider.to_owned(),
    })
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

pub(super) fn result(call: &str, content: Vec<Content>, is_error: bool) -> Part {
    Part::ToolResult(ToolResult {
        call: call.to_owned(),
        content,
        is_error,
    })
}

pub(super) fn said(text: &str) -> Content {
    Content::Text {
        text: text.to_owned(),
    }
}

pub(super) fn tool(name: &str) -> ToolDefinition {
    let schema = r#"{"type":"object","properties":{"b":{},"a":{}}}"#;
    ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: RawValue::from_string(schema.to_owned()).unwrap(),
    }
}

/// A conversation with every kind of part, including some that endpoints reject.
pub(super) fn conversation() -> Vec<Message> {
    let user = |parts| Message {
        role: Role::User,
        parts,
    };
    let assistant = |parts| Message {
        role: Role::Assistant,
        parts,
    };
    vec![
        user(vec![text("Look at this."), Part::Image(image())]),
        assistant(vec![
            thinking("Let me see.", Some("c2VhbA=="), "anthropic/claude-test"),
            thinking("", Some("redacted:ZGF0YQ=="), "anthropic/claude-test"),
            thinking("Another's.", Some("eA=="), "anthropic/claude-other"),
            thinking("Hm.", None, "openai"),
            text("I look."),
            text("  "),
            call("call_1", "Read", r#"{"path": "b.txt", "a": 1}"#),
            call("call.2", "functions.grep", r#"{"pattern": "#),
            call("call_3", "Picture", ""),
        ]),
        user(vec![
            text("And be quick."),
            result("call_1", vec![said("hello")], false),
            result("call.2", vec![said("the arguments are not JSON")], true),
            result("call_3", vec![said("here"), Content::Image(image())], false),
        ]),
        assistant(vec![]),
        user(vec![text("Are you there?")]),
        assistant(vec![
            text("Yes."),
            call("call_4", "Picture", "{}"),
            call("call_5", "Bash", "{}"),
        ]),
        user(vec![
            result("call_4", vec![Content::Image(image())], true),
            result("call_5", vec![], true),
        ]),
    ]
}

/// Decodes a stream that arrives in these chunks.
pub(super) fn decode<D: Decode>(
    mut decoder: D,
    stream: &[&[u8]],
) -> (Vec<Chunk>, Result<ModelReply, ProviderError>) {
    let mut events = Decoder::new(1 << 20, None);
    let mut chunks = VecDeque::new();
    let end: &[u8] = b"\n\n";
    for bytes in stream.iter().chain([&end]) {
        events.push(Bytes::copy_from_slice(bytes));
        while let Some(event) = events.take() {
            let Decoded::Event { data, .. } = event else {
                continue;
            };
            if let Err(error) = decoder.take(&data, &mut chunks) {
                return (chunks.into(), Err(error));
            }
            if decoder.is_over() {
                return (chunks.into(), decoder.finish());
            }
        }
    }
    let answer = decoder.finish();
    (chunks.into(), answer)
}

/// An event stream with these data fields.
pub(super) fn events(data: &[serde_json::Value]) -> String {
    data.iter().fold(String::new(), |stream, data| {
        stream + &format!("data: {data}\n\n")
    })
}

/// Asserts that the result does not depend on how the stream is cut into chunks.
pub(super) fn assert_cuts_make_no_difference<D: Decode>(
    decoder: impl Fn() -> D,
    stream: &[u8],
    cuts: &[prop::sample::Index],
) {
    let whole = decode(decoder(), &[stream]);
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    places.sort_unstable();
    let mut rest = stream;
    let mut pieces = Vec::new();
    let mut start = 0;
    for place in places {
        let (piece, after) = rest.split_at(place - start);
        pieces.push(piece);
        rest = after;
        start = place;
    }
    pieces.push(rest);
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    for cut in [pieces, bytes] {
        let outcome = decode(decoder(), &cut);
        assert_eq!(outcome.0, whole.0);
        let debug = |answer: &Result<ModelReply, ProviderError>| format!("{answer:?}");
        assert_eq!(debug(&outcome.1), debug(&whole.1));
    }
}

/// Asserts that the chunks add up to the answer.
pub(super) fn assert_chunks_make_the_answer(chunks: &[Chunk], answer: &ModelReply) {
    let mut text = String::new();
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Text(more) => text.push_str(more),
            Chunk::CallBegins { id, name } => calls.push((id.clone(), name.clone(), String::new())),
            Chunk::CallArguments(more) => calls.last_mut().unwrap().2.push_str(more),
            _ => {}
        }
    }
    let said: String = answer
        .message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, said);
    let made: Vec<_> = answer
        .message
        .calls()
        .map(|call| (call.id.clone(), call.name.clone()))
        .collect();
    let started: Vec<_> = calls.into_iter().map(|(id, name, _)| (id, name)).collect();
    assert_eq!(started, made);
}
