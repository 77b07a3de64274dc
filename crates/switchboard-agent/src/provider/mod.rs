//! Model providers: one trait, and one file per API.
//!
//! A provider encodes a [`Request`] into its wire format and decodes the stream into [`Chunk`]s. It makes one attempt;
//! `retry` wraps any provider and retries.
//!
//! | where | what |
//! |---|---|
//! | `settings` | creates a provider from keys, URLs and the name of a model |
//! | `anthropic`, `openai`, `responses` | the wire formats |
//! | `local` | finds model servers on this machine |
//! | `retry` | retries with backoff |
//! | `models`, `price`, `offers` | known models; their prices; models listed by a self-hosted endpoint |
//! | `http`, `failure`, `sanitize` | shared by the wire formats: streams, errors, invalid names and arguments |

mod anthropic;
mod failure;
#[cfg(test)]
mod fixture;
mod http;
mod local;
mod models;
mod offers;
mod openai;
mod price;
mod responses;
mod retry;
mod sanitize;
mod settings;

use std::fmt;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::message::{Message, ToolDefinition};
pub use anthropic::Anthropic;
pub use local::LocalServer;
pub use models::{Kind, ThinkingMode};
pub use openai::OpenAi;
pub use price::{Cost, Price, PriceDate};
pub use responses::OpenAiResponses;
pub use retry::{RetryPolicy, Retrying};
pub use settings::{ProviderSettings, SettingsError};

/// A client for one model.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// The model's name, limits and capabilities.
    fn model(&self) -> &Model;

    /// Sends a request. The stream ends with one [`Chunk::End`] or one error. Dropping the stream cancels the request.
    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>>;
}

/// A request to a model.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// System prompt.
    pub system: &'a str,
    /// Available tools. Their order must be stable for prompt caching.
    pub tools: &'a [ToolDefinition],
    /// The conversation so far. The last message is the user's.
    pub messages: &'a [Message],
    /// Maximum tokens of the answer; `None`: the model's own limit.
    pub max_output_tokens: Option<u64>,
}

/// An item of the answer stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// Streamed text.
    Text(String),
    /// Streamed reasoning.
    Thinking(String),
    /// A tool call starts.
    CallBegins {
        /// Unique in the conversation.
        id: String,
        /// Tool name as written by the model.
        name: String,
    },
    /// Streamed arguments of the last call.
    CallArguments(String),
    /// The request is retried from the beginning; discard the chunks so far.
    Again(Retry),
    /// The complete answer; the last item.
    End(ModelReply),
}

/// Announces a retry.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Number of the next attempt; the first was 1.
    pub attempt: u32,
    /// Backoff before it.
    pub wait: Duration,
    /// Error of the failed attempt.
    pub reason: String,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelReply {
    /// Has the role of the assistant, and possibly no parts.
    pub message: Message,
    /// Why the answer ended.
    pub stop: Stop,
    /// Tokens of this request and answer.
    pub usage: Usage,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The model finished its answer.
    Done,
    /// The model requests tool calls.
    Calls,
    /// The answer reached its limit. The last call may be cut off.
    Length,
    /// The model or a content filter refused.
    Refused,
    /// The conversation exceeds the context window.
    Window,
    /// The model paused; send the conversation again to continue.
    Paused,
}

/// Token counts of one or more answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the cache.
    pub input: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Whether any count is an estimate, because the endpoint reported none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimate: bool,
    /// What the answers cost; `None` if no price is known for any of their models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Usage {
    /// Sum of all counts.
    pub fn total(self) -> u64 {
        let parts = [self.cache_read, self.cache_write, self.output];
        parts.into_iter().fold(self.input, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.cost = Cost::sum(self.cost, self.total(), other.cost, other.total());
        // Reported by the endpoint, so possibly absurd: saturate.
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.is_estimate = self.is_estimate || other.is_estimate;
    }
}

/// Properties of a model. Known models are listed in `models.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Name at the provider.
    pub id: String,
    /// Provider name, such as `anthropic`.
    pub provider: String,
    /// Context window in tokens, including the answer.
    pub window: u64,
    /// Maximum tokens of an answer.
    pub max_output: u64,
    /// Whether it accepts images.
    pub vision: bool,
    /// Whether it supports tool calls.
    pub tools: bool,
    /// `None` if it is unknown.
    pub price: Option<Price>,
}

impl Model {
    /// Adds what one answer of this model costs to its token counts.
    pub(crate) fn priced(&self, usage: Usage) -> Usage {
        Usage {
            cost: self.price.map(|price| price.of(usage)),
            ..usage
        }
    }
}

/// A failed request to a model.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{provider}: {message}")]
#[non_exhaustive]
pub struct ProviderError {
    /// Provider name, such as `anthropic`.
    pub provider: String,
    /// Kind of failure, which decides whether a retry may help.
    pub kind: ProviderErrorKind,
    /// The provider's error message, if it sent one. Contains no secrets.
    pub message: String,
    /// Wait requested by the provider before the next attempt.
    pub retry_after: Option<Duration>,
}

/// Kind of a [`ProviderError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The endpoint cannot be reached.
    Unreachable,
    /// The key is missing, invalid or lacks permission, or the account has no credit.
    Unauthorized,
    /// Too many requests.
    RateLimited,
    /// The endpoint is overloaded or has an internal error.
    Unavailable,
    /// The model does not exist.
    UnknownModel,
    /// The conversation exceeds the context window.
    TooLong,
    /// The request was rejected as invalid.
    Refused,
    /// The response is malformed or incomplete.
    Broken,
    /// No bytes arrived before the idle timeout.
    TimedOut,
}

impl ProviderError {
    /// Creates an error without `retry_after`.
    pub fn new(
        provider: impl Into<String>,
        kind: ProviderErrorKind,
        message: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Whether a retry may help.
    pub(crate) fn is_transient(&self) -> bool {
        use ProviderErrorKind as Kind;
        match self.kind {
            Kind::Unreachable
            | Kind::RateLimited
            | Kind::Unavailable
            | Kind::Broken
            | Kind::TimedOut => true,
            Kind::Unauthorized | Kind::UnknownModel | Kind::TooLong | Kind::Refused => false,
        }
    }
}
