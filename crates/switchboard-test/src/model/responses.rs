//! Encodes a turn as events of the `OpenAI` Responses API.

use serde_json::{Value, json};

use super::script::{Step, Stop, Turn};
use super::stream::Piece;

/// The event stream of an answer.
pub(super) fn stream(turn: &Turn, number: usize, model: &str) -> Vec<Piece> {
    let mut writer = Writer {
        pieces: Vec::new(),
        sequence: 0,
        items: Vec::new(),
        text: None,
    };
    let mut response = json!({
        "id": format!("resp_{number}"),
        "object": "response",
        "model": model,
        "status": "in_progress",
        "error": null,
        "incomplete_details": null,
        "output": [],
        "usage": null,
    });
    writer.event("response.created", json!({"response": response}));
    for step in &turn.say {
        if !writer.step(step) {
            return writer.pieces;
        }
    }
    writer.close_text();
    let usage = &turn.usage;
    let read = usage.input + usage.cache_read + usage.cache_write;
    response["output"] = Value::Array(writer.items.clone());
    response["usage"] = json!({
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + usage.output,
    });
    let reason = match turn.stops() {
        Stop::Length | Stop::Window => Some("max_output_tokens"),
        Stop::Refused => Some("content_filter"),
        Stop::Done | Stop::Calls | Stop::Paused => None,
    };
    let status = match reason {
        Some(reason) => {
            response["incomplete_details"] = json!({"reason": reason});
            "incomplete"
        }
        None => "completed",
    };
    response["status"] = json!(status);
    writer.event(&format!("response.{status}"), json!({"response": response}));
    writer.pieces
}

struct Writer {
    pieces: Vec<Piece>,
    sequence: u64,
    /// Complete items.
    items: Vec<Value>,
    /// Text of the open message.
    text: Option<String>,
}

impl Writer {
    /// Encodes one step; returns `false` if it ends the stream.
    fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Text(text) => self.text(text),
            Step::Thinking(thought) => {
                self.close_text();
                let place = self.items.len();
                let begun =
                    json!({"type": "reasoning", "id": format!("rs_{place}"), "summary": []});
                self.added(&begun);
                let mut summary = Vec::new();
                if !thought.text.is_empty() {
                    let kind = "response.reasoning_summary_text.delta";
                    self.event(kind, json!({"output_index": place, "delta": thought.text}));
                    summary.push(json!({"type": "summary_text", "text": thought.text}));
                }
                let mut item = begun;
                item["summary"] = Value::Array(summary);
                item["encrypted_content"] = json!(thought.seal);
                self.done(item);
            }
            Step::Call(call) => {
                self.close_text();
                let place = self.items.len();
                let mut item = json!({
                    "type": "function_call",
                    "id": format!("fc_{place}"),
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": "",
                    "status": "in_progress",
                });
                self.added(&item);
                let mut arguments = String::new();
                for piece in call.arguments.pieces() {
                    let kind = "response.function_call_arguments.delta";
                    self.event(kind, json!({"output_index": place, "delta": piece}));
                    arguments.push_str(&piece);
                }
                item["arguments"] = json!(arguments);
                item["status"] = json!("completed");
                self.done(item);
            }
            Step::Ping => self.pieces.push(Piece::Bytes(b": ping\n\n".to_vec())),
            Step::Wait(gate) => self.pieces.push(Piece::Wait(gate.clone())),
            Step::Raw(text) => self.pieces.push(Piece::Bytes(text.clone().into_bytes())),
            Step::Error(error) => {
                let error = json!({"code": error.kind, "message": error.message});
                self.event(
                    "response.failed",
                    json!({"response": {"status": "failed", "error": error}}),
                );
                return false;
            }
            Step::Cut => {
                let half = "event: response.output_text.delta\ndata: {\"type\":\"resp";
                self.pieces.push(Piece::Bytes(half.as_bytes().to_vec()));
                self.pieces.push(Piece::Cut);
                return false;
            }
            Step::End => return false,
        }
        true
    }

    fn text(&mut self, more: &str) {
        let place = self.items.len();
        if self.text.is_none() {
            self.added(&json!({"type": "message", "role": "assistant", "content": []}));
            self.text = Some(String::new());
        }
        if let Some(text) = &mut self.text {
            text.push_str(more);
        }
        let kind = "response.output_text.delta";
        self.event(
            kind,
            json!({"output_index": place, "content_index": 0, "delta": more}),
        );
    }

    fn close_text(&mut self) {
        if let Some(text) = self.text.take() {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            self.done(json!({"type": "message", "role": "assistant", "content": [part]}));
        }
    }

    fn added(&mut self, item: &Value) {
        let place = self.items.len();
        let kind = "response.output_item.added";
        self.event(kind, json!({"output_index": place, "item": item}));
    }

    fn done(&mut self, item: Value) {
        let place = self.items.len();
        let kind = "response.output_item.done";
        self.event(kind, json!({"output_index": place, "item": item}));
        self.items.push(item);
    }

    fn event(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        let text = format!("event: {kind}\ndata: {data}\n\n");
        self.pieces.push(Piece::Bytes(text.into_bytes()));
    }
}
