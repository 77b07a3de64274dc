//! Models: one trait, and one file for each kind of endpoint.
//!
//! Owns the seam. A provider turns a [`Request`] into its wire format, and what streams back into [`Chunk`]s. It makes
//! one attempt; trying again is the business of `retry`, which wraps any provider.
//!
//! | where | what |
//! |---|---|
//! | `settings` | from keys, addresses and the name of a model to a provider |
//! | `anthropic`, `openai` | the wire formats |
//! | `retry` | asking once more |
//! | `models`, `offers` | what is known of models; what an endpoint of one's own says of them |
//! | `http`, `failure`, `sanitize` | what the wire formats share: streams, errors, and what none of them takes |

mod anthropic;
mod failure;
#[cfg(test)]
mod fixture;
mod http;
mod models;
mod offers;
mod openai;
mod retry;
mod sanitize;
mod settings;

use std::fmt;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::message::{Message, ToolDefinition};
pub use anthropic::Anthropic;
pub use models::{Kind, ThinkingMode};
pub use openai::OpenAi;
pub use retry::{RetryPolicy, Retrying};
pub use settings::{ProviderSettings, SettingsError};

/// A model that can be asked.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// What is known of the model.
    fn model(&self) -> &Model;

    /// Asks. What streams back ends with one [`Chunk::End`] or one error. Dropping the stream calls the answer off.
    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>>;
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it is told about its task, before the conversation.
    pub system: &'a str,
    /// The tools it may call, in a stable order.
    pub tools: &'a [ToolDefinition],
    /// The conversation so far. The last message is the user's.
    pub messages: &'a [Message],
    /// The most it may answer; the model's own limit if not stated.
    pub max_output_tokens: Option<u64>,
}

/// What streams back.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// More text.
    Text(String),
    /// More of what it thinks.
    Thinking(String),
    /// It begins to write a call.
    CallBegins {
        /// The call's id.
        id: String,
        /// The tool, as the model spells it.
        name: String,
    },
    /// More of the arguments of the call that was begun last.
    CallArguments(String),
    /// It is asked once more, from the beginning: what has streamed so far no longer counts.
    Again(Retry),
    /// It is done.
    End(ModelReply),
}

/// Why and when a model is asked once more.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Which attempt comes next; the first was 1.
    pub attempt: u32,
    /// How long is waited before it.
    pub wait: Duration,
    /// What happened.
    pub reason: String,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelReply {
    /// What it said, of the role of the assistant. It may have no parts.
    pub message: Message,
    /// Why it stopped.
    pub stop: Stop,
    /// What it cost.
    pub usage: Usage,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// It is done.
    Done,
    /// It wants calls made.
    Calls,
    /// It reached the limit of its answer. The last call may be cut off.
    Length,
    /// It refuses, or a filter did.
    Refused,
    /// The conversation no longer fits its window.
    Window,
    /// It paused, and is to be asked to go on.
    Paused,
}

/// Tokens of one answer, or of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Read anew.
    pub input: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Read and written into the provider's cache.
    pub cache_write: u64,
    /// Said, thoughts included.
    pub output: u64,
    /// Whether any of it was counted here, because the endpoint did not tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimate: bool,
}

impl Usage {
    /// All of them.
    pub fn total(self) -> u64 {
        let parts = [self.cache_read, self.cache_write, self.output];
        parts.into_iter().fold(self.input, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // The numbers are an endpoint's word, and need not make sense.
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.is_estimate = self.is_estimate || other.is_estimate;
    }
}

/// What is known of a model. Models are described by data, see `models.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name at the provider.
    pub id: String,
    /// The provider, such as `anthropic`.
    pub provider: String,
    /// How many tokens a conversation may have, the answer included.
    pub window: u64,
    /// How many tokens an answer may have.
    pub max_output: u64,
    /// Whether it can see pictures.
    pub vision: bool,
    /// Whether it can call tools.
    pub tools: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{provider}: {message}")]
#[non_exhaustive]
pub struct ProviderError {
    /// The provider.
    pub provider: String,
    /// What kind of failure it is.
    pub kind: ProviderErrorKind,
    /// What happened, as the provider told it where it did. It has no secret.
    pub message: String,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// What kind of failure it is: what somebody can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The endpoint cannot be reached.
    Unreachable,
    /// The key is missing, wrong, or not good for this.
    Unauthorized,
    /// Too many requests, or no credit.
    RateLimited,
    /// It is overloaded, or broken on its side.
    Unavailable,
    /// There is no such model.
    UnknownModel,
    /// The conversation is longer than the model's window.
    TooLong,
    /// The request was refused as wrong.
    Refused,
    /// What came back is no answer, or was cut off.
    Broken,
    /// Nothing came for too long.
    TimedOut,
}

impl ProviderError {
    /// An error of that kind.
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

    /// Whether asking once more may help.
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
