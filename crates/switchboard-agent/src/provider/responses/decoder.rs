//! Decodes streams of the Responses API. Complete items make the answer; deltas are only passed on.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde_json::Value;

use super::super::openai::NAME;
use crate::message::{Message, Part, Role, Thinking, ToolCall};
use crate::provider::http::Decode;
use crate::provider::openai::{asked, said};
use crate::provider::{
    Chunk, ModelReply, ProviderError, ProviderErrorKind, Request, Stop, Usage, failure,
};

/// Maximum number of items per answer.
const MOST_ITEMS: usize = 4096;

pub(in crate::provider) struct Decoder {
    /// Recorded with reasoning.
    source: String,
    /// Ids of calls in the conversation so far.
    known: HashSet<String>,
    /// Items by their place in the answer.
    items: BTreeMap<u64, Item>,
    ending: Option<Ending>,
    usage: Option<Usage>,
    /// Estimated tokens of the request.
    asked: u64,
}

#[derive(Default)]
struct Item {
    /// Set when the item is complete.
    done: Option<Value>,
    /// Unique id of a call, once it has begun.
    call: Option<String>,
    /// Whether the stream passed on a part of it.
    is_told: bool,
}

/// How the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Completed,
    TooLong,
    Filtered,
}

impl Decoder {
    pub(in crate::provider) fn new(source: String, request: &Request<'_>) -> Self {
        let calls = request.messages.iter().flat_map(Message::calls);
        Self {
            source,
            known: calls.map(|call| call.id.clone()).collect(),
            items: BTreeMap::new(),
            ending: None,
            usage: None,
            asked: asked(request).0,
        }
    }

    fn event(&mut self, event: &Value, chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let place = event["output_index"].as_u64().unwrap_or_default();
        let delta = || event["delta"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => self.begin(place, &event["item"], chunks)?,
            "response.output_item.done" => self.complete(place, &event["item"], chunks)?,
            "response.output_text.delta" | "response.refusal.delta" => {
                self.item(place)?.is_told = true;
                chunks.push_back(Chunk::Text(delta()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(place)?.is_told = true;
                chunks.push_back(Chunk::Thinking(delta()));
            }
            "response.reasoning_summary_part.added" if self.item(place)?.is_told => {
                chunks.push_back(Chunk::Thinking("\n\n".to_owned()));
            }
            "response.function_call_arguments.delta" => {
                // Chunks of arguments belong to the last call.
                let is_last = self.items.keys().next_back() == Some(&place);
                let item = self.item(place)?;
                if item.call.is_some() && is_last {
                    item.is_told = true;
                    chunks.push_back(Chunk::CallArguments(delta()));
                }
            }
            "response.completed" | "response.incomplete" => {
                return self.whole(&event["response"], chunks);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a complete answer: the last event, or the only document of an endpoint that does not stream.
    fn whole(
        &mut self,
        response: &Value,
        chunks: &mut VecDeque<Chunk>,
    ) -> Result<(), ProviderError> {
        let items = response["output"].as_array().into_iter().flatten();
        for (place, item) in (0_u64..).zip(items) {
            if self.item(place)?.done.is_none() {
                self.complete(place, item, chunks)?;
            }
        }
        self.count(&response["usage"]);
        let reason = response["incomplete_details"]["reason"].as_str();
        self.ending = Some(match (response["status"].as_str(), reason) {
            (Some("incomplete"), Some("content_filter")) => Ending::Filtered,
            (Some("incomplete"), _) => Ending::TooLong,
            _ => Ending::Completed,
        });
        Ok(())
    }

    fn item(&mut self, place: u64) -> Result<&mut Item, ProviderError> {
        if self.items.len() >= MOST_ITEMS && !self.items.contains_key(&place) {
            return Err(broken("the answer has too many items"));
        }
        Ok(self.items.entry(place).or_default())
    }

    /// Announces a call.
    fn begin(
        &mut self,
        place: u64,
        item: &Value,
        chunks: &mut VecDeque<Chunk>,
    ) -> Result<(), ProviderError> {
        let name = item["name"].as_str().unwrap_or_default();
        let is_new = self.item(place)?.call.is_none();
        if item["type"] != "function_call" || name.is_empty() || !is_new {
            return Ok(());
        }
        let id = self.unique(item["call_id"].as_str().unwrap_or_default());
        self.item(place)?.call = Some(id.clone());
        let name = name.to_owned();
        chunks.push_back(Chunk::CallBegins { id, name });
        Ok(())
    }

    /// Keeps a complete item, and passes on what the stream has not.
    fn complete(
        &mut self,
        place: u64,
        item: &Value,
        chunks: &mut VecDeque<Chunk>,
    ) -> Result<(), ProviderError> {
        self.begin(place, item, chunks)?;
        let is_told = self.item(place)?.is_told;
        let chunk = match item["type"].as_str().unwrap_or_default() {
            _ if is_told => None,
            "message" => Some(Chunk::Text(text_of(item))),
            "reasoning" => Some(Chunk::Thinking(summary_of(item))),
            "function_call" => Some(Chunk::CallArguments(arguments_of(item))),
            _ => None,
        };
        let is_blank = matches!(
            &chunk,
            Some(Chunk::Text(text) | Chunk::Thinking(text) | Chunk::CallArguments(text))
                if text.is_empty()
        );
        chunks.extend(chunk.filter(|_| !is_blank));
        self.item(place)?.done = Some(item.clone());
        Ok(())
    }

    /// Returns the endpoint's id, or a generated one if it is empty or already used.
    fn unique(&mut self, id: &str) -> String {
        let mut unique = id.to_owned();
        let mut number = 0_u64;
        while unique.is_empty() || self.known.contains(&unique) {
            number += 1;
            unique = format!("call_{number}");
        }
        self.known.insert(unique.clone());
        unique
    }

    fn count(&mut self, usage: &Value) {
        let Some(read) = usage["input_tokens"].as_u64() else {
            return;
        };
        let cached = usage["input_tokens_details"]["cached_tokens"].as_u64();
        let cached = cached.unwrap_or_default().min(read);
        self.usage = Some(Usage {
            input: read - cached,
            cache_read: cached,
            output: usage["output_tokens"].as_u64().unwrap_or_default(),
            ..Usage::default()
        });
    }

    fn part(&self, item: Item) -> Option<Part> {
        let done = item.done?;
        match done["type"].as_str().unwrap_or_default() {
            "message" => Some(Part::Text {
                text: text_of(&done),
            }),
            "reasoning" => {
                let seal = done["encrypted_content"].as_str();
                Some(Part::Thinking(Thinking {
                    text: summary_of(&done),
                    seal: seal.map(str::to_owned),
                    provider: self.source.clone(),
                }))
            }
            "function_call" => Some(Part::ToolCall(ToolCall {
                id: item.call?,
                name: done["name"].as_str()?.to_owned(),
                arguments: arguments_of(&done),
            })),
            _ => None,
        }
    }
}

impl Decode for Decoder {
    fn take(&mut self, data: &[u8], chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        // Not sent by `OpenAI`, but by compatible servers.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data)
            .map_err(|error| broken(&format!("invalid JSON in an event: {error}")))?;
        let failed = match event["type"].as_str() {
            Some("response.failed") => failure::in_stream(NAME, &event["response"]),
            Some("error") | None => failure::in_stream(NAME, &event),
            _ => None,
        };
        if let Some(error) = failed {
            return Err(error);
        }
        match event["type"].as_str() {
            Some("response.failed") => Err(broken("the answer failed without a reason")),
            None if event["object"] == "response" => self.whole(&event, chunks),
            _ => self.event(&event, chunks),
        }
    }

    fn is_complete(&self) -> bool {
        self.ending.is_some()
    }

    /// The last event has everything, the usage included.
    fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    fn finish(&mut self) -> Result<ModelReply, ProviderError> {
        let Some(ending) = self.ending else {
            return Err(broken("the answer was cut off"));
        };
        let items = std::mem::take(&mut self.items);
        let has_refused = items.values().any(|item| is_refusal(item.done.as_ref()));
        let parts = items.into_values().filter_map(|item| self.part(item));
        let message = Message {
            role: Role::Assistant,
            parts: parts.collect(),
        };
        let stop = match ending {
            Ending::TooLong => Stop::Length,
            Ending::Filtered => Stop::Refused,
            Ending::Completed if message.calls().next().is_some() => Stop::Calls,
            Ending::Completed if has_refused => Stop::Refused,
            Ending::Completed => Stop::Done,
        };
        let usage = self.usage.unwrap_or_else(|| Usage {
            input: self.asked,
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

fn text_of(item: &Value) -> String {
    let parts = item["content"].as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
    texts.collect()
}

fn summary_of(item: &Value) -> String {
    let parts = |name: &str| {
        let parts = item[name].as_array().into_iter().flatten();
        let texts = parts.filter_map(|part| part["text"].as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let summary = parts("summary");
    if summary.is_empty() {
        return parts("content");
    }
    summary
}

/// A call without arguments may have none, but a call that was cut off must stay incomplete.
fn arguments_of(item: &Value) -> String {
    let arguments = item["arguments"].as_str().unwrap_or_default();
    if arguments.trim().is_empty() && item["status"] != "incomplete" {
        return "{}".to_owned();
    }
    arguments.to_owned()
}

fn is_refusal(item: Option<&Value>) -> bool {
    let parts = item.and_then(|item| item["content"].as_array());
    let mut parts = parts.into_iter().flatten();
    parts.any(|part| part["type"] == "refusal")
}

fn broken(message: &str) -> ProviderError {
    ProviderError::new(NAME, ProviderErrorKind::Broken, message)
}
