//! Chat Completions API: request encoding for `OpenAI` and compatible servers (llama.cpp, vLLM, Ollama, LM Studio, …).
//!
//! Servers deviate from the format: ids may be missing or repeated, a call may arrive whole or in pieces, arguments as
//! text or as an object, the finish reason may be wrong, and the end marker may be missing.

mod decoder;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::BoxStream;
use serde::Serialize;
use serde_json::value::RawValue;

use super::http::{Endpoint, Events, answer};
use super::{Chunk, Model, Provider, ProviderError, ProviderErrorKind, Request, sanitize};
use crate::message::{Content, Image, Message, Part, Role, ToolDefinition, ToolResult};
use decoder::Decoder;
pub(super) use decoder::{asked, said};

/// Name of the provider.
pub(super) const NAME: &str = "openai";
pub(crate) const BASE_URL: &str = "https://api.openai.com/v1";

/// Maximum length of a tool name.
pub(super) const LONGEST_NAME: usize = 64;
/// Maximum length of a call id.
const LONGEST_ID: usize = 40;

/// Client for a model with the Chat Completions API.
#[derive(Debug)]
pub struct OpenAi {
    pub(super) endpoint: Endpoint,
    pub(super) model: Model,
    pub(super) limit: Limit,
    /// Whether to disable reasoning in requests with tools, because the model rejects the combination.
    pub(super) no_reasoning_with_tools: AtomicBool,
    /// Whether the endpoint has rejected images.
    pub(super) is_blind: AtomicBool,
}

/// Parameter that limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// `max_completion_tokens`, for `OpenAI` itself, whose newer models reject `max_tokens`.
    MaxCompletionTokens,
    /// `max_tokens`, for other servers.
    MaxTokens,
}

impl Provider for OpenAi {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        answer(Box::pin(self.open(request)), Decoder::new(&request))
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
        let sight = self.sight();
        let refused = match self.post(&request, reasoning, sight).await {
            Err(error)
                if sight == Sight::Seeing
                    && has_pictures(&request)
                    && is_about_pictures(&error) =>
            {
                let events = self.post(&request, reasoning, Sight::Blind).await;
                // If this fails too, the images were not the cause.
                if events.is_ok() {
                    self.is_blind.store(true, Ordering::Relaxed);
                    return events;
                }
                error
            }
            Err(error) if error.kind == ProviderErrorKind::Refused => error,
            outcome => return outcome,
        };
        // Some OpenAI models accept tools only with reasoning disabled. Remember it after the first rejection.
        if is_known || request.tools.is_empty() || !refused.message.contains("reasoning_effort") {
            return Err(refused);
        }
        let events = self
            .post(&request, Reasoning::NotWithTools, self.sight())
            .await?;
        self.no_reasoning_with_tools.store(true, Ordering::Relaxed);
        Ok(events)
    }

    async fn post(
        &self,
        request: &Request<'_>,
        reasoning: Reasoning,
        sight: Sight,
    ) -> Result<Events, ProviderError> {
        let body = match sight {
            Sight::Seeing => encode(request, &self.model, self.limit, reasoning)?,
            Sight::Blind => {
                let blind = Model {
                    vision: false,
                    ..self.model.clone()
                };
                encode(request, &blind, self.limit, reasoning)?
            }
        };
        self.endpoint.post(body).await
    }

    fn sight(&self) -> Sight {
        if self.is_blind.load(Ordering::Relaxed) {
            Sight::Blind
        } else {
            Sight::Seeing
        }
    }
}

/// Whether to send images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Seeing,
    Blind,
}

/// Phrases for a model without vision. llama.cpp, vLLM and Ollama send them with status 400 or 500.
const BLIND: [&str; 8] = [
    "image",
    "picture",
    "vision",
    "multimodal",
    "multi-modal",
    "mmproj",
    "content type",
    "content must be a string",
];

fn has_pictures(request: &Request<'_>) -> bool {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.into_iter().any(|part| match part {
        Part::Image(_) => true,
        Part::ToolResult(result) => {
            let mut content = result.content.iter();
            content.any(|content| matches!(content, Content::Image(_)))
        }
        _ => false,
    })
}

/// Whether images may be the cause of an error: any rejected request, but a server error only if its message says so.
fn is_about_pictures(error: &ProviderError) -> bool {
    let lower = error.message.to_lowercase();
    match error.kind {
        ProviderErrorKind::Refused => true,
        ProviderErrorKind::Unavailable => BLIND.iter().any(|word| lower.contains(word)),
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reasoning {
    AsItLikes,
    NotWithTools,
}

/// Encodes the request body.
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
    body_text(&body)
}

/// Encodes the body of a request, in either format of this provider.
pub(super) fn body_text(body: &impl Serialize) -> Result<Vec<u8>, ProviderError> {
    serde_json::to_vec(body).map_err(|error| {
        let message = format!("cannot encode the request: {error}");
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

/// Plain text if possible: some servers do not support content parts.
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

/// Encodes a user message: first tool results, then the images of these results, which tool messages cannot contain,
/// then the rest.
fn push_user<'a>(message: &'a Message, model: &Model, messages: &mut Vec<WireMessage<'a>>) {
    let mut parts = Vec::new();
    for part in &message.parts {
        if let Part::ToolResult(result) = part {
            messages.push(WireMessage::Tool {
                tool_call_id: sanitize::id(&result.call, LONGEST_ID),
                content: result_text(result, model, &mut parts),
            });
        }
    }
    for part in &message.parts {
        match part {
            Part::Text { text } if !text.is_empty() => {
                parts.push(UserPart::Text { text: text.into() });
            }
            Part::Image(image) => parts.push(image_part(image, model)),
            _ => {}
        }
    }
    if parts.is_empty() {
        return;
    }
    // Some chat templates require alternating roles.
    if let Some(WireMessage::User { content }) = messages.last_mut() {
        content.append(parts);
        return;
    }
    let mut content = UserContent::Parts(Vec::new());
    content.append(parts);
    messages.push(WireMessage::User { content });
}

impl<'a> UserContent<'a> {
    /// Adds parts. A single text stays plain.
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

/// The text of a result. Its images are added to the parts of the following user message.
fn result_text<'a>(
    result: &'a ToolResult,
    model: &Model,
    pictures: &mut Vec<UserPart<'a>>,
) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut visible = Vec::new();
    for content in &result.content {
        match content {
            Content::Text { text } => lines.push(text.into()),
            Content::Image(image) => match sanitize::unseen(image, model.vision) {
                Some(note) => lines.push(note.into()),
                None => visible.push(image_part(image, model)),
            },
        }
    }
    if !visible.is_empty() {
        lines.push("[a picture follows in the next message]".into());
        let text = format!(
            "The picture from the result of call {}:",
            sanitize::id(&result.call, LONGEST_ID)
        );
        pictures.push(UserPart::Text { text: text.into() });
        pictures.append(&mut visible);
    }
    let text = lines.join("\n");
    // The format has no error flag.
    let says_so = text
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if result.is_error && !says_so {
        return format!("Error: {text}");
    }
    text
}

fn image_part<'a>(image: &Image, model: &Model) -> UserPart<'a> {
    match sanitize::unseen(image, model.vision) {
        Some(note) => UserPart::Text { text: note.into() },
        None => UserPart::ImageUrl {
            image_url: ImageUrl {
                url: format!("data:{};base64,{}", image.mime_type, image.data),
            },
        },
    }
}

/// Encodes an assistant message; `None` if it is empty.
fn assistant(message: &Message) -> Option<WireMessage<'_>> {
    let calls = message.calls().map(|call| WireCall {
        id: sanitize::id(&call.id, LONGEST_ID),
        r#type: "function",
        function: CalledFunction {
            name: sanitize::name(&call.name, LONGEST_NAME),
            arguments: sanitize::arguments(&call.arguments).get().to_owned(),
        },
    });
    let tool_calls: Vec<WireCall<'_>> = calls.collect();
    let content = Some(message.all_text()).filter(|text| !text.is_empty());
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    // Models that think between calls need their reasoning back; elsewhere it is not accepted.
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

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
