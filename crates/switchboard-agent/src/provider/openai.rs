//! Chat Completions: `OpenAI`, and every server that follows it (llama.cpp, vLLM, Ollama, LM Studio, …).
//!
//! Owns its wire format, both ways. Servers follow it more or less, so little is taken for granted of what streams back:
//! ids may be missing or repeated, a call may come whole or in pieces, arguments as text or as an object, the reason to
//! stop may be wrong, and the end may be missing.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::BoxStream;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::http::{Decode, Endpoint, Events, answer};
use super::{
    Answer, Chunk, Model, Provider, ProviderError, ProviderErrorKind, Request, Stop, Usage,
    express, failure,
};
use crate::message::{
    Content, Image, Message, Part, Role, Thinking, ToolCall, ToolDefinition, ToolResult,
};

/// The name of the provider.
pub const NAME: &str = "openai";
/// Where it is unless told otherwise.
pub const BASE_URL: &str = "https://api.openai.com/v1";

/// The longest name of a tool in a call.
const LONGEST_NAME: usize = 64;
/// The longest id of a call.
const LONGEST_ID: usize = 40;
/// The most calls that an answer may make.
const MOST_CALLS: usize = 1024;

/// A model of `OpenAI`, or of a server that follows it.
#[derive(Debug)]
pub struct OpenAi {
    pub(super) endpoint: Endpoint,
    pub(super) model: Model,
    /// How the limit of an answer is called.
    pub(super) limit: Limit,
    /// Whether the model is told not to reason where it has tools, because they are refused otherwise.
    pub(super) no_reasoning_with_tools: AtomicBool,
}

/// How the limit of an answer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// `max_completion_tokens`, at `OpenAI` itself, whose newer models refuse the other.
    MaxCompletionTokens,
    /// `max_tokens`, which is what other servers know.
    MaxTokens,
}

impl Provider for OpenAi {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        answer(Box::pin(self.open(request)), Decoder::new(request.messages))
    }
}

impl OpenAi {
    async fn open(&self, request: Request<'_>) -> Result<Events, ProviderError> {
        let is_known = self.no_reasoning_with_tools.load(Ordering::Relaxed);
        let reasoning = if is_known {
            Reasoning::NotWithTools
        } else {
            Reasoning::AsItLikes
        };
        let refused = match self.post(&request, reasoning).await {
            Err(error) if error.kind == ProviderErrorKind::Refused => error,
            outcome => return outcome,
        };
        // OpenAI has ever more models that take tools here only if they do not reason. What is found out once is kept.
        if is_known || request.tools.is_empty() || !refused.message.contains("reasoning_effort") {
            return Err(refused);
        }
        let events = self.post(&request, Reasoning::NotWithTools).await?;
        self.no_reasoning_with_tools.store(true, Ordering::Relaxed);
        Ok(events)
    }

    async fn post(
        &self,
        request: &Request<'_>,
        reasoning: Reasoning,
    ) -> Result<Events, ProviderError> {
        let body = encode(request, &self.model, self.limit, reasoning)?;
        self.endpoint.post(body).await
    }
}

/// Whether a model may reason before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reasoning {
    AsItLikes,
    NotWithTools,
}

/// The body of a request.
pub(super) fn encode(
    request: &Request<'_>,
    model: &Model,
    limit: Limit,
    reasoning: Reasoning,
) -> Result<Vec<u8>, ProviderError> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.trim().is_empty() {
        messages.push(WireMessage::System {
            content: request.system,
        });
    }
    for message in request.messages {
        match message.role {
            Role::User => push_user(message, model, &mut messages),
            Role::Assistant => messages.extend(assistant(message)),
        }
    }
    let tools = if model.tools { request.tools } else { &[] };
    let is_told_not_to = reasoning == Reasoning::NotWithTools && !tools.is_empty();
    let most = |which| request.max_output_tokens.filter(|_| limit == which);
    let body = Body {
        model: &model.id,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        max_completion_tokens: most(Limit::MaxCompletionTokens),
        max_tokens: most(Limit::MaxTokens),
        reasoning_effort: is_told_not_to.then_some("none"),
        tools: tools.iter().map(WireTool::from).collect(),
        messages,
    };
    serde_json::to_vec(&body).map_err(|error| {
        let message = format!("the request cannot be written: {error}");
        ProviderError::new(NAME, ProviderErrorKind::Refused, message)
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

/// Plain where it can be: servers that know no parts understand that, too.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<UserPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UserPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

impl<'a> From<&'a ToolDefinition> for WireTool<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            r#type: "function",
            function: WireFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.input_schema,
            },
        }
    }
}

/// What the user says: first the results of calls, then the pictures that were in them, which no message of a tool may
/// hold, then the rest.
fn push_user<'a>(message: &'a Message, model: &Model, messages: &mut Vec<WireMessage<'a>>) {
    let mut parts = Vec::new();
    for part in &message.parts {
        if let Part::ToolResult(result) = part {
            messages.push(WireMessage::Tool {
                tool_call_id: express::id(&result.call, LONGEST_ID),
                content: result_text(result, model, &mut parts),
            });
        }
    }
    for part in &message.parts {
        match part {
            Part::Text { text } if !text.is_empty() => {
                parts.push(UserPart::Text { text: text.into() })
            }
            Part::Image(image) => parts.push(image_part(image, model)),
            _ => {}
        }
    }
    if parts.is_empty() {
        return;
    }
    // Some templates want the roles to take turns.
    if let Some(WireMessage::User { content }) = messages.last_mut() {
        content.append(parts);
        return;
    }
    let mut content = UserContent::Parts(Vec::new());
    content.append(parts);
    messages.push(WireMessage::User { content });
}

impl<'a> UserContent<'a> {
    /// Adds parts; one text alone is no list.
    fn append(&mut self, more: Vec<UserPart<'a>>) {
        let mut parts = match std::mem::replace(self, Self::Parts(Vec::new())) {
            Self::Text(text) => vec![UserPart::Text { text }],
            Self::Parts(parts) => parts,
        };
        parts.extend(more);
        *self = match parts.pop() {
            Some(UserPart::Text { text }) if parts.is_empty() => Self::Text(text),
            last => {
                parts.extend(last);
                Self::Parts(parts)
            }
        };
    }
}

/// The text of a result. Its pictures are put among the parts of the message that follows.
fn result_text<'a>(
    result: &'a ToolResult,
    model: &Model,
    pictures: &mut Vec<UserPart<'a>>,
) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut shown = Vec::new();
    for content in &result.content {
        match content {
            Content::Text { text } => lines.push(text.into()),
            Content::Image(image) => match express::unseen(image, model.vision) {
                Some(note) => lines.push(note.into()),
                None => shown.push(image_part(image, model)),
            },
        }
    }
    if !shown.is_empty() {
        lines.push("[a picture follows in the next message]".into());
        let text = format!(
            "The picture from the result of call {}:",
            express::id(&result.call, LONGEST_ID)
        );
        pictures.push(UserPart::Text { text: text.into() });
        pictures.append(&mut shown);
    }
    let text = lines.join("\n");
    // The format has no other place to say so.
    let says_so = text
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if result.is_error && !says_so {
        return format!("Error: {text}");
    }
    text
}

fn image_part<'a>(image: &Image, model: &Model) -> UserPart<'a> {
    match express::unseen(image, model.vision) {
        Some(note) => UserPart::Text { text: note.into() },
        None => UserPart::ImageUrl {
            image_url: ImageUrl {
                url: format!("data:{};base64,{}", image.mime_type, image.data),
            },
        },
    }
}

/// What the model said; nothing if it said nothing.
fn assistant(message: &Message) -> Option<WireMessage<'_>> {
    let calls = message.calls().map(|call| WireCall {
        id: express::id(&call.id, LONGEST_ID),
        r#type: "function",
        function: CalledFunction {
            name: express::name(&call.name, LONGEST_NAME),
            arguments: express::arguments(&call.arguments).get().to_owned(),
        },
    });
    let tool_calls: Vec<WireCall<'_>> = calls.collect();
    let content = Some(message.all_text()).filter(|text| !text.is_empty());
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    // Models that think between calls want to see why they made them; elsewhere thoughts are not taken back.
    let thought = message.parts.iter().find_map(|part| match part {
        Part::Thinking(thinking) if thinking.provider == NAME => Some(thinking.text.as_str()),
        _ => None,
    });
    Some(WireMessage::Assistant {
        content,
        reasoning_content: thought.filter(|_| !tool_calls.is_empty()),
        tool_calls,
    })
}

/// Reads the chunks of one answer.
pub(super) struct Decoder {
    /// The ids of calls in the conversation so far.
    known: HashSet<String>,
    text: String,
    thinking: String,
    calls: Vec<Building>,
    finish_reason: Option<String>,
    has_refused: bool,
    usage: Usage,
    is_over: bool,
}

struct Building {
    index: Option<u64>,
    /// What the server calls it; it may be nothing.
    told_id: String,
    /// What it is called from here on.
    id: String,
    name: String,
    arguments: String,
}

impl Decoder {
    pub(super) fn new(messages: &[Message]) -> Self {
        let calls = messages.iter().flat_map(Message::calls);
        Self {
            known: calls.map(|call| call.id.clone()).collect(),
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            finish_reason: None,
            has_refused: false,
            usage: Usage::default(),
            is_over: false,
        }
    }

    fn choice(
        &mut self,
        choice: &Value,
        chunks: &mut VecDeque<Chunk>,
    ) -> Result<(), ProviderError> {
        // A server that does not stream has a message in place of a delta.
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
                return Err(broken("the answer makes too many calls"));
            }
            None => {
                let told_id = delta["id"].as_str().unwrap_or_default().to_owned();
                let id = self.unique(&told_id);
                self.calls.push(Building {
                    index: delta["index"].as_u64(),
                    id,
                    told_id,
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
            // Some servers write the arguments out instead of quoting them.
            value => value.to_string(),
        };
        let begins = call.name.is_empty() && !name.is_empty();
        if begins {
            name.clone_into(&mut call.name);
            chunks.push_back(Chunk::CallBegins {
                id: call.id.clone(),
                name: call.name.clone(),
            });
            // What came before the name was held back.
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

    /// The call that a piece belongs to; nothing if it begins a new one.
    fn place(&self, delta: &Value, name: &str) -> Option<usize> {
        let told_id = delta["id"].as_str().unwrap_or_default();
        let index = delta["index"].as_u64();
        let place = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None if !told_id.is_empty() => self
                .calls
                .iter()
                .rposition(|call| call.told_id == told_id)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = self.calls.get(place)?;
        // Servers that count every call as the first, and servers that do not count: another id, or another name
        // after arguments that are complete, is another call.
        let has_other_id =
            !told_id.is_empty() && !call.told_id.is_empty() && told_id != call.told_id;
        let is_whole = || serde_json::from_str::<&RawValue>(&call.arguments).is_ok();
        let begins_again = told_id.is_empty() && !name.is_empty() && is_whole();
        let is_new = !name.is_empty() && (has_other_id || begins_again);
        (!is_new).then_some(place)
    }

    /// What the server calls a call, or an id of our own where it says nothing, or what it has said before.
    fn unique(&mut self, told: &str) -> String {
        let mut id = told.to_owned();
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
        self.usage = Usage {
            input: read - cached,
            cache_read: cached,
            cache_write: 0,
            output: usage["completion_tokens"].as_u64().unwrap_or_default(),
        };
    }
}

impl Decode for Decoder {
    fn take(&mut self, data: &[u8], chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        if data.trim_ascii() == b"[DONE]" {
            self.is_over = true;
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data)
            .map_err(|error| broken(&format!("an event is no JSON: {error}")))?;
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

    fn finish(&mut self) -> Result<Answer, ProviderError> {
        let reason = match self.finish_reason.take() {
            Some(reason) => reason,
            None if self.is_over => String::new(),
            None => return Err(broken("the answer broke off")),
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
            // A call without arguments may have none; one that was cut off must not look whole.
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
        Ok(Answer {
            message,
            stop,
            usage: self.usage,
        })
    }
}

/// Text, also where a server writes it as a list of parts.
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

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
