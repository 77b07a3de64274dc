//! Chat Completions: `OpenAI`, and every server that follows it (llama.cpp, vLLM, Ollama, LM Studio, …).
//!
//! Owns its wire format, both ways. Servers follow it more or less, so little is taken for granted of what streams back:
//! ids may be missing or repeated, a call may come whole or in pieces, arguments as text or as an object, the reason to
//! stop may be wrong, and the end may be missing.

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

/// The name of the provider.
pub(super) const NAME: &str = "openai";
/// Where it is unless told otherwise.
pub(crate) const BASE_URL: &str = "https://api.openai.com/v1";

/// The longest name of a tool in a call.
const LONGEST_NAME: usize = 64;
/// The longest id of a call.
const LONGEST_ID: usize = 40;

/// A model of `OpenAI`, or of a server that follows it.
#[derive(Debug)]
pub struct OpenAi {
    pub(super) endpoint: Endpoint,
    pub(super) model: Model,
    /// How the limit of an answer is called.
    pub(super) limit: Limit,
    /// Whether the model is told not to reason where it has tools, because they are refused otherwise.
    pub(super) no_reasoning_with_tools: AtomicBool,
    /// Whether the endpoint has refused pictures.
    pub(super) is_blind: AtomicBool,
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
                // It may have been something else that was refused.
                if events.is_ok() {
                    self.is_blind.store(true, Ordering::Relaxed);
                    return events;
                }
                error
            }
            Err(error) if error.kind == ProviderErrorKind::Refused => error,
            outcome => return outcome,
        };
        // OpenAI has ever more models that take tools here only if they do not reason. What is found out once is kept.
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

/// Whether pictures are sent, where the model may see any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Seeing,
    Blind,
}

/// Words by which servers say that a model cannot see. llama.cpp, vLLM and Ollama say it with a 400 or a 500.
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

/// Whether a request was refused for its pictures, as far as it can be told: what is broken on the server's side only
/// where it says so.
fn is_about_pictures(error: &ProviderError) -> bool {
    let lower = error.message.to_lowercase();
    match error.kind {
        ProviderErrorKind::Refused => true,
        ProviderErrorKind::Unavailable => BLIND.iter().any(|word| lower.contains(word)),
        _ => false,
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
            Content::Image(image) => match sanitize::unseen(image, model.vision) {
                Some(note) => lines.push(note.into()),
                None => shown.push(image_part(image, model)),
            },
        }
    }
    if !shown.is_empty() {
        lines.push("[a picture follows in the next message]".into());
        let text = format!(
            "The picture from the result of call {}:",
            sanitize::id(&result.call, LONGEST_ID)
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
    match sanitize::unseen(image, model.vision) {
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

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
