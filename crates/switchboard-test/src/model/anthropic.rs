//! Encodes a turn as events of the Anthropic Messages API.

use serde_json::{Value, json};

use super::script::{Refusal, Step, Stop, Turn};
use super::stream::Piece;

/// The event stream of an answer.
pub(super) fn stream(turn: &Turn, number: usize, model: &str) -> Vec<Piece> {
    let mut writer = Writer::default();
    let usage = &turn.usage;
    writer.event(&json!({
        "type": "message_start",
        "message": {
            "id": format!("msg_{number}"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {
                "input_tokens": usage.input,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": 1,
            },
        },
    }));
    for step in &turn.say {
        if !writer.step(step) {
            return writer.pieces;
        }
    }
    writer.close();
    writer.event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(turn.stops()), "stop_sequence": null},
        "usage": {"output_tokens": usage.output},
    }));
    writer.event(&json!({"type": "message_stop"}));
    writer.pieces
}

/// The error body of a refusal.
pub(super) fn refusal(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refusal.message}})
}

#[derive(Default)]
struct Writer {
    pieces: Vec<Piece>,
    /// Number of blocks started.
    blocks: usize,
    /// The type of the open block.
    open: Option<&'static str>,
}

impl Writer {
    /// Encodes one step; returns `false` if it ends the stream.
    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Text(text) => {
                self.open("text", || json!({"type": "text", "text": ""}));
                self.delta(&json!({"type": "text_delta", "text": text}));
            }
            Step::Thinking(thought) => {
                self.close();
                self.open(
                    "thinking",
                    || json!({"type": "thinking", "thinking": "", "signature": ""}),
                );
                if !thought.text.is_empty() {
                    self.delta(&json!({"type": "thinking_delta", "thinking": thought.text}));
                }
                if let Some(seal) = &thought.seal {
                    self.delta(&json!({"type": "signature_delta", "signature": seal}));
                }
                self.close();
            }
            Step::Call(call) => {
                self.close();
                let (id, name) = (&call.id, &call.name);
                self.open(
                    "tool_use",
                    || json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                );
                for piece in call.arguments.pieces() {
                    self.delta(&json!({"type": "input_json_delta", "partial_json": piece}));
                }
                self.close();
            }
            Step::Ping => self.event(&json!({"type": "ping"})),
            Step::Wait(gate) => self.pieces.push(Piece::Wait(gate.clone())),
            Step::Raw(text) => self.pieces.push(Piece::Bytes(text.clone().into_bytes())),
            Step::Error(error) => {
                self.event(&json!({
                    "type": "error",
                    "error": {"type": error.kind, "message": error.message},
                }));
                return false;
            }
            Step::Cut => {
                let half = "event: content_block_delta\ndata: {\"type\":\"content_bl";
                self.pieces.push(Piece::Bytes(half.as_bytes().to_vec()));
                self.pieces.push(Piece::Cut);
                return false;
            }
            Step::End => return false,
        }
        true
    }

    fn open(&mut self, kind: &'static str, block: impl FnOnce() -> Value) {
        if self.open == Some(kind) {
            return;
        }
        self.close();
        self.open = Some(kind);
        let event =
            json!({"type": "content_block_start", "index": self.blocks, "content_block": block()});
        self.event(&event);
    }

    fn delta(&mut self, delta: &Value) {
        let event = json!({"type": "content_block_delta", "index": self.blocks, "delta": delta});
        self.event(&event);
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            let event = json!({"type": "content_block_stop", "index": self.blocks});
            self.event(&event);
            self.blocks += 1;
        }
    }

    fn event(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        let text = format!("event: {name}\ndata: {data}\n\n");
        self.pieces.push(Piece::Bytes(text.into_bytes()));
    }
}

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Done => "end_turn",
        Stop::Calls => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refused => "refusal",
        Stop::Window => "model_context_window_exceeded",
        Stop::Paused => "pause_turn",
    }
}
