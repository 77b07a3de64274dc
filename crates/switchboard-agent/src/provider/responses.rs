//! Responses API of `OpenAI`: request encoding, for models that reason between tool calls.
//!
//! Nothing is stored at the provider (`store: false`): reasoning comes back encrypted, is kept with the session, and is
//! sent again with the next request, so that the model continues its thoughts after a tool call.

mod decoder;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::BoxStream;
use serde::Serialize;
use serde_json::value::RawValue;

use super::http::{Endpoint, Events, answer};
use super::openai::{LONGEST_NAME, body_text};
use super::{Chunk, Model, Provider, ProviderError, ProviderErrorKind, Request, sanitize};
use crate::message::{Content, Image, Message, Part, Role, Thinking, ToolDefinition, ToolResult};
use decoder::Decoder;

/// Maximum length of a call id.
const LONGEST_ID: usize = 64;

/// Client for a model with the Responses API.
#[derive(Debug)]
pub struct OpenAiResponses {
    pub(super) endpoint: Endpoint,
    pub(super) model: Model,
    /// Whether the account may not see summaries of reasoning, as the endpoint has said.
    pub(super) is_without_summaries: AtomicBool,
}

impl Provider for OpenAiResponses {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let decoder = Decoder::new(source(&self.model), &request);
        answer(Box::pin(self.open(request)), decoder)
    }
}

impl OpenAiResponses {
    async fn open(&self, request: Request<'_>) -> Result<Events, ProviderError> {
        let is_known = self.is_without_summaries.load(Ordering::Relaxed);
        let summary = if is_known {
            Summary::Omitted
        } else {
            Summary::Auto
        };
        let refused = match self.post(&request, summary, Thoughts::Sent).await {
            Err(error) if error.kind == ProviderErrorKind::Refused => error,
            outcome => return outcome,
        };
        // Reasoning of another account or of a key that has changed cannot be decrypted.
        if refused.message.contains("encrypted") {
            return self.post(&request, summary, Thoughts::LeftOut).await;
        }
        // Accounts without verification get no summaries. Remember it after the first rejection.
        if is_known || !refused.message.contains("summar") {
            return Err(refused);
        }
        let events = self
            .post(&request, Summary::Omitted, Thoughts::Sent)
            .await?;
        self.is_without_summaries.store(true, Ordering::Relaxed);
        Ok(events)
    }

    async fn post(
        &self,
        request: &Request<'_>,
        summary: Summary,
        thoughts: Thoughts,
    ) -> Result<Events, ProviderError> {
        let body = encode(request, &self.model, summary, thoughts)?;
        self.endpoint.post(body).await
    }
}

/// Whether to request summaries of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summary {
    Auto,
    Omitted,
}

/// Whether to send earlier reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoughts {
    Sent,
    LeftOut,
}

/// Origin of reasoning: encrypted reasoning is of use only to the model that produced it.
fn source(model: &Model) -> String {
    format!("openai-responses/{}", model.id)
}

/// Encodes the request body.
pub(super) fn encode(
    request: &Request<'_>,
    model: &Model,
    summary: Summary,
    thoughts: Thoughts,
) -> Result<Vec<u8>, ProviderError> {
    let source = Some(source(model)).filter(|_| thoughts == Thoughts::Sent);
    let mut input = Vec::with_capacity(request.messages.len());
    for message in request.messages {
        match message.role {
            Role::User => push_user(message, model, &mut input),
            Role::Assistant => push_assistant(message, source.as_deref(), &mut input),
        }
    }
    let tools = if model.tools { request.tools } else { &[] };
    let body = Body {
        model: &model.id,
        stream: true,
        store: false,
        include: ["reasoning.encrypted_content"],
        instructions: Some(request.system).filter(|system| !system.trim().is_empty()),
        max_output_tokens: request.max_output_tokens,
        reasoning: (summary == Summary::Auto).then_some(Reasoning { summary: "auto" }),
        tools: tools.iter().map(WireTool::from).collect(),
        input,
    };
    body_text(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Reasoning {
    summary: &'static str,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    /// The default is strict, which rejects most schemas of MCP servers.
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Piece<'a>>,
    },
    Reasoning {
        summary: Vec<SummaryText<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "summary_text")]
struct SummaryText<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Pieces(Vec<Piece<'a>>),
}

impl<'a> From<&'a ToolDefinition> for WireTool<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
            strict: false,
        }
    }
}

/// Encodes a user message: first the results of tools, then the rest.
fn push_user<'a>(message: &'a Message, model: &Model, input: &mut Vec<Item<'a>>) {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::ToolResult(result) => input.push(Item::FunctionCallOutput {
                call_id: sanitize::id(&result.call, LONGEST_ID),
                output: output(result, model),
            }),
            Part::Text { text } if !text.is_empty() => {
                content.push(Piece::InputText { text: text.into() });
            }
            Part::Image(image) => content.push(image_piece(image, model)),
            _ => {}
        }
    }
    if !content.is_empty() {
        input.push(Item::Message {
            role: "user",
            content,
        });
    }
}

fn output<'a>(result: &'a ToolResult, model: &Model) -> Output<'a> {
    let mut text = String::new();
    let mut pieces = Vec::new();
    for content in &result.content {
        let note = match content {
            Content::Text { text } => Some(Cow::from(text)),
            Content::Image(image) => sanitize::unseen(image, model.vision).map(Cow::from),
        };
        match (note, content) {
            (Some(note), _) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&note);
            }
            (None, Content::Image(image)) => pieces.push(image_piece(image, model)),
            (None, Content::Text { .. }) => {}
        }
    }
    // The format has no error flag.
    let says_so = text
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if result.is_error && !says_so {
        text = format!("Error: {text}");
    }
    if pieces.is_empty() {
        return Output::Text(text);
    }
    if !text.is_empty() {
        pieces.insert(0, Piece::InputText { text: text.into() });
    }
    Output::Pieces(pieces)
}

fn image_piece<'a>(image: &Image, model: &Model) -> Piece<'a> {
    match sanitize::unseen(image, model.vision) {
        Some(note) => Piece::InputText { text: note.into() },
        None => Piece::InputImage {
            image_url: format!("data:{};base64,{}", image.mime_type, image.data),
        },
    }
}

/// Encodes an answer, with the reasoning of `source`. The endpoint rejects reasoning without the text or call that followed it.
fn push_assistant<'a>(message: &'a Message, source: Option<&str>, input: &mut Vec<Item<'a>>) {
    let mut thought: Option<Item<'a>> = None;
    for part in &message.parts {
        let item = match part {
            Part::Thinking(Thinking {
                text,
                seal: Some(seal),
                provider,
            }) if Some(provider.as_str()) == source => {
                let summary = (!text.is_empty()).then_some(SummaryText { text });
                thought = Some(Item::Reasoning {
                    summary: summary.into_iter().collect(),
                    encrypted_content: seal,
                });
                continue;
            }
            Part::Text { text } if !text.trim().is_empty() => Item::Message {
                role: "assistant",
                content: vec![Piece::OutputText { text }],
            },
            Part::ToolCall(call) => Item::FunctionCall {
                call_id: sanitize::id(&call.id, LONGEST_ID),
                name: sanitize::name(&call.name, LONGEST_NAME),
                arguments: sanitize::arguments(&call.arguments).get().to_owned(),
            },
            _ => continue,
        };
        input.extend(thought.take());
        input.push(item);
    }
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
