//! Decodes Chat Completions streams, tolerating the deviations of compatible servers.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard::catalog::Tokens;

use super::NAME;
use crate::message::{Content, Message, Part, Role, Thinking, ToolCall};
use crate::provider::http::Decode;
use crate::provider::{
    Chunk, ModelReply, ProviderError, ProviderErrorKind, Request, Stop, Usage, failure,
};

/// Maximum number of tool calls per answer.
const MOST_CALLS: usize = 1024;

pub(in crate::provider) struct Decoder {
    /// Ids of calls in the conversation so far.
    known: HashSet<String>,
    text: String,
    thinking: String,
    calls: Vec<Building>,
    finish_reason: Option<String>,
    has_refused: bool,
    /// As reported by the endpoint.
    usage: Option<Usage>,
    /// Estimated tokens of the request.
    asked: Tokens,
    is_over: bool,
}

struct Building {
    index: Option<u64>,
    /// The id sent by the server; may be empty.
    server_id: String,
    /// Unique id.
    id: String,
    name: String,
    arguments: String,
}

impl Decoder {
    pub(in crate::provider) fn new(request: &Request<'_>) -> Self {
        let calls = request.messages.iter().flat_map(Message::calls);
        Self {
            known: calls.map(|call| call.id.clone()).collect(),
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            finish_reason: None,
            has_refused: false,
            usage: None,
            asked: asked(request),
            is_over: false,
        }
    }

    fn choice(
        &mut self,
        choice: &Value,
        chunks: &mut VecDeque<Chunk>,
    ) -> Result<(), ProviderError> {
        // A server that does not stream sends a message instead of a delta.
        let delta = if choice["delta"].is_object() {
            &choice["delta"]
        } else {
            &choice["message"]
        };
        let thought = ["reasoning_content", "reasoning", "thinking"];
        let thought = thought.into_iter().map(|name| text_of(&delta[name]));
        if let Some(thought) = thought.into_iter().find(|text| !text.is_empty()) {
            self.thinking.push_str(&thought);
            chunks.push_back(Chunk::Thinking(thought));
        }
        let refusal = text_of(&delta["refusal"]);
        self.has_refused |= !refusal.is_empty();
        for text in [text_of(&delta["content"]), refusal] {
            if !text.is_empty() {
                self.text.push_str(&text);
                chunks.push_back(Chunk::Text(text));
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call, chunks)?;
        }
        if let Some(reason) = choice["finish_reason"]
            .as_str()
            .filter(|reason| !reason.is_empty())
        {
            self.finish_reason = Some(reason.to_owned());
        }
        Ok(())
    }

    fn call(&mut self, delta: &Value, chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let name = delta["function"]["name"].as_str().unwrap_or_default();
        let place = match self.place(delta, name) {
            Some(place) => place,
            None if self.calls.len() >= MOST_CALLS => {
                return Err(broken("the answer has too many calls"));
            }
            None => {
                let server_id = delta["id"].as_str().unwrap_or_default().to_owned();
                let id = self.unique(&server_id);
                self.calls.push(Building {
                    index: delta["index"].as_u64(),
                    id,
                    server_id,
                    name: String::new(),
                    arguments: String::new(),
                });
                self.calls.len() - 1
            }
        };
        let is_last = place + 1 == self.calls.len();
        let Some(call) = self.calls.get_mut(place) else {
            return Ok(());
        };
        let arguments = match &delta["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some servers send an object instead of a string.
            value => value.to_string(),
        };
        let begins = call.name.is_empty() && !name.is_empty();
        if begins {
            name.clone_into(&mut call.name);
            chunks.push_back(Chunk::CallBegins {
                id: call.id.clone(),
                name: call.name.clone(),
            });
            // Arguments that arrived before the name were held back.
            if !call.arguments.is_empty() {
                chunks.push_back(Chunk::CallArguments(call.arguments.clone()));
            }
        }
        call.arguments.push_str(&arguments);
        if !arguments.is_empty() && !call.name.is_empty() && is_last {
            chunks.push_back(Chunk::CallArguments(arguments));
        }
        Ok(())
    }

    /// The call that a piece belongs to; `None` if it starts a new one.
    fn place(&self, delta: &Value, name: &str) -> Option<usize> {
        let server_id = delta["id"].as_str().unwrap_or_default();
        let index = delta["index"].as_u64();
        let place = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None if !server_id.is_empty() => self
                .calls
                .iter()
                .rposition(|call| call.server_id == server_id)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = self.calls.get(place)?;
        // Some servers send index 0 for every call, or no index: another id, or another name after complete arguments,
        // starts a new call.
        let has_other_id =
            !server_id.is_empty() && !call.server_id.is_empty() && server_id != call.server_id;
        let is_whole = || serde_json::from_str::<&RawValue>(&call.arguments).is_ok();
        let begins_again = server_id.is_empty() && !name.is_empty() && is_whole();
        let is_new = !name.is_empty() && (has_other_id || begins_again);
        (!is_new).then_some(place)
    }

    /// Returns the server's id, or a generated one if it is empty or already used.
    fn unique(&mut self, server_id: &str) -> String {
        let mut id = server_id.to_owned();
        let mut number = 0_u64;
        while id.is_empty() || self.known.contains(&id) {
            number += 1;
            id = format!("call_{number}");
        }
        self.known.insert(id.clone());
        id
    }

    fn count(&mut self, usage: &Value) {
        let Some(read) = usage["prompt_tokens"].as_u64() else {
            return;
        };
        let cached = &usage["prompt_tokens_details"]["cached_tokens"];
        let cached = cached
            .as_u64()
            .or_else(|| usage["prompt_cache_hit_tokens"].as_u64());
        let cached = cached.unwrap_or_default().min(read);
        self.usage = Some(Usage {
            input: read - cached,
            cache_read: cached,
            output: usage["completion_tokens"].as_u64().unwrap_or_default(),
            ..Usage::default()
        });
    }
}

impl Decode for Decoder {
    fn take(&mut self, data: &[u8], chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        if data.trim_ascii() == b"[DONE]" {
            self.is_over = true;
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data)
            .map_err(|error| broken(&format!("invalid JSON in an event: {error}")))?;
        if let Some(error) = failure::in_stream(NAME, &event) {
            return Err(error);
        }
        self.count(&event["usage"]);
        match event["choices"]
            .as_array()
            .and_then(|choices| choices.first())
        {
            Some(choice) => self.choice(choice, chunks),
            None => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn finish(&mut self) -> Result<ModelReply, ProviderError> {
        let reason = match self.finish_reason.take() {
            Some(reason) => reason,
            None if self.is_over => String::new(),
            None => return Err(broken("the answer was cut off")),
        };
        let is_cut = reason == "length";
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(Part::Thinking(Thinking {
                text: std::mem::take(&mut self.thinking),
                seal: None,
                provider: NAME.to_owned(),
            }));
        }
        if !self.text.is_empty() {
            parts.push(Part::Text {
                text: std::mem::take(&mut self.text),
            });
        }
        let calls = self.calls.drain(..).filter(|call| !call.name.is_empty());
        parts.extend(calls.map(|call| {
            // A call without arguments may send none, but a call that was cut off must stay incomplete.
            let is_bare = call.arguments.trim().is_empty() && !is_cut;
            let arguments = if is_bare {
                "{}".to_owned()
            } else {
                call.arguments
            };
            Part::ToolCall(ToolCall {
                id: call.id,
                name: call.name,
                arguments,
            })
        }));
        let message = Message {
            role: Role::Assistant,
            parts,
        };
        let stop = match reason.as_str() {
            "length" => Stop::Length,
            "content_filter" => Stop::Refused,
            _ if message.calls().next().is_some() => Stop::Calls,
            _ if self.has_refused => Stop::Refused,
            _ => Stop::Done,
        };
        let usage = self.usage.unwrap_or_else(|| Usage {
            input: self.asked.0,
            output: said(&message).0,
            is_estimate: true,
            ..Usage::default()
        });
        Ok(ModelReply {
            message,
            stop,
            usage,
        })
    }
}

/// Estimates the tokens of a request, for endpoints that report no usage.
pub(in crate::provider) fn asked(request: &Request<'_>) -> Tokens {
    let tools = request.tools.iter().map(|tool| {
        let texts = [&tool.name, &tool.description, tool.input_schema.get()];
        texts.into_iter().map(Tokens::of).sum::<Tokens>()
    });
    let messages = request.messages.iter().map(said);
    Tokens::of(request.system) + tools.chain(messages).sum()
}

/// Estimates the tokens of a message. Images are not counted, as their cost depends on the model.
pub(in crate::provider) fn said(message: &Message) -> Tokens {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text { text } => Tokens::of(text),
        Part::Thinking(thinking) => Tokens::of(&thinking.text),
        Part::ToolCall(call) => Tokens::of(&call.name) + Tokens::of(&call.arguments),
        Part::ToolResult(result) => {
            let content = result.content.iter().map(|content| match content {
                Content::Text { text } => Tokens::of(text),
                Content::Image(_) => Tokens::default(),
            });
            content.sum()
        }
        Part::Image(_) => Tokens::default(),
    });
    parts.sum()
}

/// Text, which some servers send as a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}

fn broken(message: &str) -> ProviderError {
    ProviderError::new(NAME, ProviderErrorKind::Broken, message)
}
