//! Anthropic's Messages API: request encoding and stream decoding, also for compatible endpoints.
//!
//! Cache breakpoints are set on the last tool, the system prompt and the last two user messages. A breakpoint of one
//! request is still set in the next, so the prefix of a conversation is read from the cache however much a turn adds.

use std::borrow::Cow;
use std::collections::VecDeque;
use switchboard_config::sort;

use futures_util::stream::BoxStream;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::http::{Decode, Endpoint, Events, answer};
use super::models::ThinkingMode;
use super::{
    Chunk, Model, ModelReply, Provider, ProviderError, ProviderErrorKind, Request, Stop, Usage,
    failure, sanitize,
};
use crate::message::{
    Content, Image, Message, Part, Role, Thinking, ToolCall, ToolDefinition, ToolResult,
};

/// Name of the provider.
pub(super) const NAME: &str = "anthropic";
pub(crate) const BASE_URL: &str = "https://api.anthropic.com";
/// Value of the `anthropic-version` header.
pub(super) const VERSION: &str = "2023-06-01";

/// Maximum length of a tool name.
const LONGEST_NAME: usize = 128;
/// Maximum length of a call id; the API documents none.
const LONGEST_ID: usize = 256;
/// Maximum number of content blocks per answer.
const MOST_BLOCKS: usize = 4096;
/// Number of messages with a cache breakpoint, besides the tools and the system prompt.
const MARKED_MESSAGES: usize = 2;
/// Prefix of the data of a redacted thinking block. Signatures contain no colon.
const REDACTED: &str = "redacted:";

/// Client for a model with the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    pub(super) endpoint: Endpoint,
    pub(super) model: Model,
    pub(super) thinking: ThinkingMode,
}

impl Provider for Anthropic {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        answer(Box::pin(self.open(request)), Decoder::new(&self.model))
    }
}

impl Anthropic {
    async fn open(&self, request: Request<'_>) -> Result<Events, ProviderError> {
        let refused = match self.post(&request, Thoughts::Kept).await {
            Err(error) if error.kind == ProviderErrorKind::Refused => error,
            outcome => return outcome,
        };
        // Signatures are bound to their conversation, and gateways may not support thinking. Retry without it.
        let message = refused.message.to_ascii_lowercase();
        let is_about_thoughts = message.contains("thinking") || message.contains("signature");
        let has_thoughts = request.messages.iter().any(|message| {
            let mut parts = message.parts.iter();
            parts.any(|part| matches!(part, Part::Thinking(_)))
        });
        if is_about_thoughts && (has_thoughts || self.thinking != ThinkingMode::Default) {
            return self.post(&request, Thoughts::LeftOut).await;
        }
        Err(refused)
    }

    async fn post(
        &self,
        request: &Request<'_>,
        thoughts: Thoughts,
    ) -> Result<Events, ProviderError> {
        let body = encode(request, &self.model, self.thinking, thoughts)?;
        self.endpoint.post(body).await
    }
}

/// Whether to enable thinking and send the model's previous thinking back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoughts {
    Kept,
    LeftOut,
}

/// Encodes the request body.
pub(super) fn encode(
    request: &Request<'_>,
    model: &Model,
    thinking: ThinkingMode,
    thoughts: Thoughts,
) -> Result<Vec<u8>, ProviderError> {
    let encoder = Encoder { model, thoughts };
    let tools = if model.tools { request.tools } else { &[] };
    let mut tools: Vec<WireTool<'_>> = tools.iter().map(WireTool::from).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(Mark::EPHEMERAL);
    }
    let system = (!request.system.trim().is_empty()).then(|| Block::Text {
        text: request.system.into(),
        cache_control: Some(Mark::EPHEMERAL),
    });
    let mut messages: Vec<WireMessage<'_>> = request
        .messages
        .iter()
        .filter_map(|message| encoder.message(message))
        .collect();
    let users = messages
        .iter_mut()
        .rev()
        .filter(|message| message.role == "user");
    for message in users.take(MARKED_MESSAGES) {
        if let Some(last) = message.content.last_mut() {
            last.mark();
        }
    }
    let body = Body {
        model: &model.id,
        max_tokens: request
            .max_output_tokens
            .unwrap_or(model.max_output)
            .min(model.max_output),
        stream: true,
        thinking: match thoughts {
            Thoughts::Kept => thinking.into(),
            Thoughts::LeftOut => None,
        },
        tools,
        system: system.into_iter().collect(),
        messages,
    };
    serde_json::to_vec(&body).map_err(|error| {
        let message = format!("cannot encode the request: {error}");
        ProviderError::new(NAME, ProviderErrorKind::Refused, message)
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<WireThinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct WireThinking {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    display: Option<&'static str>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Mark>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Mark>,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Mark {
    r#type: &'static str,
}

impl Mark {
    const EPHEMERAL: Self = Self {
        r#type: "ephemeral",
    };
}

impl<'a> From<&'a ToolDefinition> for WireTool<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.input_schema,
            cache_control: None,
        }
    }
}

impl From<ThinkingMode> for Option<WireThinking> {
    fn from(mode: ThinkingMode) -> Self {
        let display = match mode {
            ThinkingMode::Default => return None,
            ThinkingMode::Adaptive => None,
            ThinkingMode::AdaptiveSummarized => Some("summarized"),
        };
        Some(WireThinking {
            r#type: "adaptive",
            display,
        })
    }
}

impl Block<'_> {
    /// Sets a cache breakpoint, if the block type supports it.
    fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(Mark::EPHEMERAL),
            Self::Thinking { .. } | Self::RedactedThinking { .. } | Self::ToolUse { .. } => {}
        }
    }

    fn is_result(&self) -> bool {
        matches!(self, Self::ToolResult { .. })
    }
}

struct Encoder<'m> {
    model: &'m Model,
    thoughts: Thoughts,
}

impl Encoder<'_> {
    /// Encodes a message; `None` if it has no content.
    fn message<'a>(&self, message: &'a Message) -> Option<WireMessage<'a>> {
        let mut content: Vec<Block<'a>> = message
            .parts
            .iter()
            .filter_map(|part| self.part(part))
            .collect();
        if content.is_empty() {
            return None;
        }
        // The endpoint requires tool results to come first.
        sort::by_key(&mut content, |block| {
            !block.is_result() && message.role == Role::User
        });
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        Some(WireMessage { role, content })
    }

    fn part<'a>(&self, part: &'a Part) -> Option<Block<'a>> {
        match part {
            Part::Text { text } => text_block(text),
            Part::Image(image) => Some(self.image(image)),
            Part::Thinking(thinking) => self.thinking(thinking),
            Part::ToolCall(call) => Some(Block::ToolUse {
                id: sanitize::id(&call.id, LONGEST_ID),
                name: sanitize::name(&call.name, LONGEST_NAME),
                input: sanitize::arguments(&call.arguments),
            }),
            Part::ToolResult(result) => Some(self.result(result)),
        }
    }

    /// Encodes thinking of this model; other models reject the signature.
    fn thinking<'a>(&self, thinking: &'a Thinking) -> Option<Block<'a>> {
        if self.thoughts == Thoughts::LeftOut || thinking.provider != signer(self.model) {
            return None;
        }
        let seal = thinking.seal.as_deref().filter(|seal| !seal.is_empty())?;
        Some(match seal.strip_prefix(REDACTED) {
            Some(data) => Block::RedactedThinking { data },
            None => Block::Thinking {
                thinking: &thinking.text,
                signature: seal,
            },
        })
    }

    fn result<'a>(&self, result: &'a ToolResult) -> Block<'a> {
        let blocks = result.content.iter().filter_map(|content| match content {
            Content::Text { text } => text_block(text),
            Content::Image(image) => Some(self.image(image)),
        });
        let mut content: Vec<Block<'a>> = blocks.collect();
        // The content of an error must be text, and must not be empty.
        let has_pictures = content
            .iter()
            .any(|block| matches!(block, Block::Image { .. }));
        if result.is_error && content.is_empty() {
            content.extend(text_block("the tool failed without output"));
        }
        Block::ToolResult {
            tool_use_id: sanitize::id(&result.call, LONGEST_ID),
            content,
            is_error: result.is_error && !has_pictures,
            cache_control: None,
        }
    }

    fn image<'a>(&self, image: &'a Image) -> Block<'a> {
        if let Some(note) = sanitize::unseen(image, self.model.vision) {
            return Block::Text {
                text: note.into(),
                cache_control: None,
            };
        }
        Block::Image {
            source: Source {
                r#type: "base64",
                media_type: &image.mime_type,
                data: &image.data,
            },
            cache_control: None,
        }
    }
}

/// `None` if the text is blank, which the endpoint rejects.
fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then(|| Block::Text {
        text: text.into(),
        cache_control: None,
    })
}

/// Identifies the model that signed a thinking block; no other model accepts it.
fn signer(model: &Model) -> String {
    format!("{NAME}/{}", model.id)
}

/// Decodes the events of one answer.
pub(super) struct Decoder {
    signer: String,
    blocks: Vec<Building>,
    stop: Option<String>,
    usage: Usage,
    is_over: bool,
}

struct Building {
    index: u64,
    kind: Kind,
    text: String,
    /// Complete arguments, from servers that do not stream them.
    input: Option<String>,
    seal: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Redacted,
    Call {
        id: String,
        name: String,
    },
    /// Block type unknown to this client.
    Unknown,
}

impl Decoder {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            signer: signer(model),
            blocks: Vec::new(),
            stop: None,
            usage: Usage::default(),
            is_over: false,
        }
    }

    fn begin(&mut self, event: &Value, chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        if self.blocks.len() >= MOST_BLOCKS {
            return Err(broken("the answer has too many parts"));
        }
        let block = &event["content_block"];
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let kind = match block["type"].as_str().unwrap_or_default() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "redacted_thinking" => Kind::Redacted,
            "tool_use" => Kind::Call {
                id: text("id"),
                name: text("name"),
            },
            _ => Kind::Unknown,
        };
        let start = match &kind {
            Kind::Text => text("text"),
            Kind::Thinking => text("thinking"),
            _ => String::new(),
        };
        match &kind {
            Kind::Text if !start.is_empty() => chunks.push_back(Chunk::Text(start.clone())),
            Kind::Thinking if !start.is_empty() => chunks.push_back(Chunk::Thinking(start.clone())),
            Kind::Call { id, name } => chunks.push_back(Chunk::CallBegins {
                id: id.clone(),
                name: name.clone(),
            }),
            _ => {}
        }
        let input = block["input"].as_object().filter(|input| !input.is_empty());
        self.blocks.push(Building {
            index: event["index"].as_u64().unwrap_or_default(),
            text: start,
            input: input.map(|_| block["input"].to_string()),
            seal: if kind == Kind::Redacted {
                text("data")
            } else {
                text("signature")
            },
            kind,
        });
        Ok(())
    }

    fn extend(&mut self, event: &Value, chunks: &mut VecDeque<Chunk>) {
        let index = event["index"].as_u64().unwrap_or_default();
        let calls_after = |block: &Building| matches!(block.kind, Kind::Call { .. });
        let Some(place) = self.blocks.iter().rposition(|block| block.index == index) else {
            return;
        };
        let is_last_call = !self.blocks.iter().skip(place + 1).any(calls_after);
        let Some(block) = self.blocks.get_mut(place) else {
            return;
        };
        let delta = &event["delta"];
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        match (delta["type"].as_str().unwrap_or_default(), &block.kind) {
            ("text_delta", Kind::Text) => {
                block.text.push_str(text("text"));
                say(text("text"), Chunk::Text, chunks);
            }
            ("thinking_delta", Kind::Thinking) => {
                block.text.push_str(text("thinking"));
                say(text("thinking"), Chunk::Thinking, chunks);
            }
            ("signature_delta", Kind::Thinking) => block.seal.push_str(text("signature")),
            ("input_json_delta", Kind::Call { .. }) => {
                block.text.push_str(text("partial_json"));
                if is_last_call {
                    say(text("partial_json"), Chunk::CallArguments, chunks);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, usage: &Value) {
        let counts = [
            ("input_tokens", &mut self.usage.input),
            ("cache_read_input_tokens", &mut self.usage.cache_read),
            ("cache_creation_input_tokens", &mut self.usage.cache_write),
            ("output_tokens", &mut self.usage.output),
        ];
        for (name, count) in counts {
            if let Some(value) = usage[name].as_u64() {
                *count = value;
            }
        }
    }
}

impl Decode for Decoder {
    fn take(&mut self, data: &[u8], chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError> {
        let event: Value = serde_json::from_slice(data)
            .map_err(|error| broken(&format!("invalid JSON in an event: {error}")))?;
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => self.begin(&event, chunks)?,
            "content_block_delta" => self.extend(&event, chunks),
            "message_delta" => {
                self.count(&event["usage"]);
                if let Some(stop) = event["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop.to_owned());
                }
            }
            "message_stop" => self.is_over = true,
            // The endpoint ignored `stream: true`.
            "message" => {
                let kind = ProviderErrorKind::Refused;
                return Err(ProviderError::new(
                    NAME,
                    kind,
                    "the endpoint does not stream",
                ));
            }
            _ => {
                if let Some(error) = failure::in_stream(NAME, &event) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn finish(&mut self) -> Result<ModelReply, ProviderError> {
        let Some(stop) = self.stop.take() else {
            return Err(broken("the answer was cut off"));
        };
        let is_cut = stop == "max_tokens" || stop == "model_context_window_exceeded";
        let signer = &self.signer;
        let parts = self.blocks.drain(..).filter_map(|block| match block.kind {
            Kind::Text => (!block.text.is_empty()).then_some(Part::Text { text: block.text }),
            Kind::Thinking => {
                let is_empty = block.text.is_empty() && block.seal.is_empty();
                (!is_empty).then(|| {
                    Part::Thinking(Thinking {
                        text: block.text,
                        seal: Some(block.seal).filter(|seal| !seal.is_empty()),
                        provider: signer.clone(),
                    })
                })
            }
            Kind::Redacted => Some(Part::Thinking(Thinking {
                text: String::new(),
                seal: Some(format!("{REDACTED}{}", block.seal)),
                provider: signer.clone(),
            })),
            Kind::Call { id, name } => {
                let mut arguments = block.text;
                if arguments.is_empty() {
                    arguments = block.input.unwrap_or_default();
                }
                // A call without arguments streams none, but a call that was cut off must stay incomplete.
                if arguments.is_empty() && !is_cut {
                    "{}".clone_into(&mut arguments);
                }
                Some(Part::ToolCall(ToolCall {
                    id,
                    name,
                    arguments,
                }))
            }
            Kind::Unknown => None,
        });
        let message = Message {
            role: Role::Assistant,
            parts: parts.collect(),
        };
        let has_calls = message.calls().next().is_some();
        let stop = match stop.as_str() {
            "max_tokens" => Stop::Length,
            "refusal" => Stop::Refused,
            "pause_turn" => Stop::Paused,
            "model_context_window_exceeded" => Stop::Window,
            _ if has_calls => Stop::Calls,
            _ => Stop::Done,
        };
        Ok(ModelReply {
            message,
            stop,
            usage: self.usage,
        })
    }
}

fn say(text: &str, chunk: fn(String) -> Chunk, chunks: &mut VecDeque<Chunk>) {
    if !text.is_empty() {
        chunks.push_back(chunk(text.to_owned()));
    }
}

fn broken(message: &str) -> ProviderError {
    ProviderError::new(NAME, ProviderErrorKind::Broken, message)
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
