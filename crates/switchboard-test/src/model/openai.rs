//! Encodes a turn as chunks of the `OpenAI` Chat Completions API.

use serde_json::{Value, json};

use super::script::{Refusal, Step, Stop, Turn};
use super::stream::Piece;

/// The event stream of an answer.
pub(super) fn stream(turn: &Turn, number: usize, model: &str) -> Vec<Piece> {
    let mut writer = Writer {
        pieces: Vec::new(),
        frame: json!({
            "id": format!("chatcmpl-{number}"),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": model,
        }),
        calls: 0,
    };
    writer.delta(&json!({"role": "assistant", "content": ""}), &Value::Null);
    for step in &turn.say {
        if !writer.step(step) {
            return writer.pieces;
        }
    }
    writer.delta(&json!({}), &json!(finish_reason(turn.stops())));
    let usage = &turn.usage;
    let read = usage.input + usage.cache_read + usage.cache_write;
    writer.chunk(
        &json!([]),
        Some(&json!({
            "prompt_tokens": read,
            "completion_tokens": usage.output,
            "total_tokens": read + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        })),
    );
    writer.data("[DONE]");
    writer.pieces
}

/// The error body of a refusal.
pub(super) fn refusal(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let code = refusal.code.as_deref().or(code);
    json!({"error": {"message": refusal.message, "type": kind, "param": null, "code": code}})
}

struct Writer {
    pieces: Vec<Piece>,
    /// Members of every chunk.
    frame: Value,
    calls: usize,
}

impl Writer {
    /// Encodes one step; returns `false` if it ends the stream.
    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Text(text) => self.delta(&json!({"content": text}), &Value::Null),
            Step::Thinking(thought) => {
                self.delta(&json!({"reasoning_content": thought.text}), &Value::Null);
            }
            Step::Call(call) => {
                let index = self.calls;
                self.calls += 1;
                let function = json!({"name": call.name, "arguments": ""});
                let begin = json!({"index": index, "id": call.id, "type": "function", "function": function});
                self.delta(&json!({"tool_calls": [begin]}), &Value::Null);
                for piece in call.arguments.pieces() {
                    let more = json!({"index": index, "function": {"arguments": piece}});
                    self.delta(&json!({"tool_calls": [more]}), &Value::Null);
                }
            }
            Step::Ping => self.pieces.push(Piece::Bytes(b": ping\n\n".to_vec())),
            Step::Wait(gate) => self.pieces.push(Piece::Wait(gate.clone())),
            Step::Raw(text) => self.pieces.push(Piece::Bytes(text.clone().into_bytes())),
            Step::Error(error) => {
                let error = json!({"message": error.message, "type": error.kind, "code": null});
                self.data(&json!({"error": error}).to_string());
                return false;
            }
            Step::Cut => {
                let half = "data: {\"id\":\"chatcmpl-cut\",\"cho";
                self.pieces.push(Piece::Bytes(half.as_bytes().to_vec()));
                self.pieces.push(Piece::Cut);
                return false;
            }
            Step::End => return false,
        }
        true
    }

    fn delta(&mut self, delta: &Value, finish_reason: &Value) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
        self.chunk(&json!([choice]), None);
    }

    fn chunk(&mut self, choices: &Value, usage: Option<&Value>) {
        let mut chunk = self.frame.clone();
        chunk["choices"] = choices.clone();
        if let Some(usage) = usage {
            chunk["usage"] = usage.clone();
        }
        self.data(&chunk.to_string());
    }

    fn data(&mut self, data: &str) {
        let text = format!("data: {data}\n\n");
        self.pieces.push(Piece::Bytes(text.into_bytes()));
    }
}

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Done | Stop::Paused => "stop",
        Stop::Calls => "tool_calls",
        Stop::Length | Stop::Window => "length",
        Stop::Refused => "content_filter",
    }
}
