//! Sampling: answers `sampling/createMessage` requests of servers with the agent's model.
//!
//! Requires consent and has a token budget. A front end's [`ClientHandler`](switchboard::ClientHandler) forwards
//! `create_message` to a [`Sampler`]. The model sees only the server's request: no conversation of the user, and no
//! tools.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use switchboard::catalog::Tokens;
use switchboard::internal::catalog::text::neutralise;
use switchboard::{ServerName, declined};
use switchboard_protocol::types::content::{ContentBlock, Role as WireRole, TextContent};
use switchboard_protocol::types::sampling::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage,
};
use switchboard_protocol::types::wire::OneOrMany;
use switchboard_protocol::{ErrorCode, ErrorObject};

use crate::conversation::tokens;
use crate::message::{Image, Message, Part, Role};
use crate::provider::{Chunk, Provider, Request, Stop};

/// Maximum number of messages per request.
const MAX_MESSAGES: usize = 1_000;

/// Asks the user whether a server may use the model. Implemented by the front end.
pub trait Consent: Send + Sync + 'static {
    /// Shows the request and returns the decision. Dropping the future withdraws the prompt.
    fn ask<'a>(&'a self, question: SamplingQuestion<'a>) -> BoxFuture<'a, bool>;
}

/// A sampling request, as shown to the user.
#[derive(Debug, Clone, Copy)]
pub struct SamplingQuestion<'a> {
    /// Server that sent the request.
    pub server: &'a ServerName,
    /// System prompt.
    pub system: &'a str,
    /// Conversation, written by the server.
    pub messages: &'a [Message],
    /// Estimated cost in tokens, including the longest possible answer.
    pub tokens: u64,
}

/// Handles sampling requests with a model. Declines all of them unless [`Sampler::asking`] sets a consent handler.
pub struct Sampler {
    provider: Arc<dyn Provider>,
    consent: Option<Arc<dyn Consent>>,
    left: AtomicU64,
}

impl Sampler {
    /// `max_tokens` is the budget for all requests together.
    pub fn new(provider: Arc<dyn Provider>, max_tokens: u64) -> Self {
        Self {
            provider,
            consent: None,
            left: AtomicU64::new(max_tokens),
        }
    }

    /// Sets the consent handler.
    #[must_use]
    pub fn asking(mut self, consent: Arc<dyn Consent>) -> Self {
        self.consent = Some(consent);
        self
    }

    /// Answers a `sampling/createMessage` request.
    pub async fn create_message(
        &self,
        server: &ServerName,
        params: CreateMessageRequestParams<'_>,
    ) -> Result<CreateMessageResult<'static>, ErrorObject<'static>> {
        let Some(consent) = &self.consent else {
            return Err(declined("sampling needs consent, and no user is available"));
        };
        if !params.tools.items.is_empty() {
            return Err(invalid("tools are not supported in sampling requests"));
        }
        let messages = conversation(&params.messages.items)?;
        let system = params.system_prompt.as_ref();
        let system = system.map_or_else(String::new, |system| neutralise(&system.decode()).into());
        let model = self.provider.model();
        let wanted = params.max_tokens.as_u64().unwrap_or(model.max_output);
        let answer = wanted.clamp(1, model.max_output.max(1));
        let question: Tokens = messages.iter().map(tokens).sum();
        let cost = (question + Tokens::of(&system)).0.saturating_add(answer);
        let reserved = self.reserve(cost)?;
        let is_agreed = consent.ask(SamplingQuestion {
            server,
            system: &system,
            messages: &messages,
            tokens: cost,
        });
        if !is_agreed.await {
            return Err(declined("the user declined"));
        }
        let mut chunks = self.provider.ask(Request {
            system: &system,
            tools: &[],
            messages: &messages,
            max_output_tokens: Some(answer),
        });
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(error.to_string()))?;
            if let Chunk::End(answer) = chunk {
                reserved.spend(answer.usage.total());
                let text = answer.message.all_text();
                let block = ContentBlock::from(TextContent::new(text.into()));
                let mut result = CreateMessageResult::new(
                    WireRole::Assistant,
                    OneOrMany::One(block),
                    model.id.clone().into(),
                );
                let stop = match answer.stop {
                    Stop::Length | Stop::Window => "maxTokens",
                    _ => "endTurn",
                };
                result.stop_reason = Some(stop.into());
                return Ok(result);
            }
        }
        Err(failed("the model's answer is incomplete".to_owned()))
    }

    /// Reserves tokens, so that concurrent requests cannot spend the same ones.
    fn reserve(&self, cost: u64) -> Result<Reserved<'_>, ErrorObject<'static>> {
        let take = |left: u64| left.checked_sub(cost);
        let order = Ordering::Relaxed;
        match self.left.fetch_update(order, order, take) {
            Ok(_) => Ok(Reserved {
                left: &self.left,
                cost,
            }),
            Err(_) => Err(declined("the token budget for sampling is used up")),
        }
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Sampler")
            .field("provider", &self.provider)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Reserved tokens. Dropping it returns those that were not spent.
struct Reserved<'a> {
    left: &'a AtomicU64,
    cost: u64,
}

impl Reserved<'_> {
    /// Records the usage of an answer; zero means that the provider reported none.
    fn spend(mut self, counted: u64) {
        let spent = if counted > 0 { counted } else { self.cost };
        self.cost = self.cost.saturating_sub(spent);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.left.fetch_add(self.cost, Ordering::Relaxed);
    }
}

/// Converts and sanitizes the server's messages.
fn conversation(asked: &[SamplingMessage<'_>]) -> Result<Vec<Message>, ErrorObject<'static>> {
    if asked.len() > MAX_MESSAGES {
        return Err(invalid("the conversation has too many messages"));
    }
    let mut messages: Vec<Message> = Vec::new();
    for message in asked {
        let role = match message.role {
            WireRole::Assistant => Role::Assistant,
            _ => Role::User,
        };
        for block in message.content.as_slice() {
            let part = match block {
                ContentBlock::Text(content) => Part::Text {
                    text: neutralise(&content.text.decode()).into_owned(),
                },
                ContentBlock::Image(content) => Part::Image(Image {
                    mime_type: neutralise(&content.mime_type).into_owned(),
                    data: content.data.decode().into_owned(),
                }),
                _ => return Err(invalid("only text and images are supported")),
            };
            match messages.last_mut() {
                Some(last) if last.role == role => last.parts.push(part),
                _ => messages.push(Message {
                    role,
                    parts: vec![part],
                }),
            }
        }
    }
    match messages.last() {
        Some(last) if last.role == Role::User => Ok(messages),
        _ => Err(invalid("the last message must be the user's")),
    }
}

fn invalid(message: &'static str) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode::INVALID_PARAMS, message)
}

fn failed(message: String) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, message)
}
