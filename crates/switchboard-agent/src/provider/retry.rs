//! Retries failed requests to a model, with exponential backoff and jitter.
//!
//! A wait requested by the provider is honoured up to a limit. An answer that breaks off is requested again from the
//! beginning; the stream then yields [`Chunk::Again`].

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::{Chunk, Model, Provider, ProviderError, Request, Retry};

/// Number of attempts, and the backoff between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts, including the first.
    pub attempts: u32,
    /// Maximum backoff before the second attempt; doubles with each further attempt.
    pub first_wait: Duration,
    /// Upper limit of the backoff.
    pub longest_wait: Duration,
    /// Longest wait that a provider may request; if it requests more, the error is returned.
    pub longest_asked_for: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            longest_asked_for: Duration::from_secs(90),
        }
    }
}

/// Wraps a provider and retries transient failures.
#[derive(Debug, Clone)]
pub struct Retrying {
    provider: Arc<dyn Provider>,
    policy: RetryPolicy,
}

impl Retrying {
    /// Wraps `provider`.
    pub fn new(provider: Arc<dyn Provider>, policy: RetryPolicy) -> Self {
        Self { provider, policy }
    }
}

impl Provider for Retrying {
    fn model(&self) -> &Model {
        self.provider.model()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let asking = Asking {
            provider: &*self.provider,
            policy: self.policy,
            request,
            attempt: 1,
            state: AttemptState::Streaming(self.provider.ask(request)),
        };
        Box::pin(stream::unfold(asking, |mut asking| async move {
            let item = asking.next().await?;
            Some((item, asking))
        }))
    }
}

struct Asking<'a> {
    provider: &'a dyn Provider,
    policy: RetryPolicy,
    request: Request<'a>,
    attempt: u32,
    state: AttemptState<'a>,
}

enum AttemptState<'a> {
    Streaming(BoxStream<'a, Result<Chunk, ProviderError>>),
    Waiting(Duration),
    Ended,
}

impl Asking<'_> {
    async fn next(&mut self) -> Option<Result<Chunk, ProviderError>> {
        loop {
            match &mut self.state {
                AttemptState::Ended => return None,
                AttemptState::Waiting(wait) => {
                    tokio::time::sleep(*wait).await;
                    self.state = AttemptState::Streaming(self.provider.ask(self.request));
                }
                AttemptState::Streaming(answer) => match answer.next().await {
                    Some(Ok(chunk)) => return Some(Ok(chunk)),
                    Some(Err(error)) => return Some(self.failed(error)),
                    None => return None,
                },
            }
        }
    }

    /// Schedules a retry, or returns the error.
    fn failed(&mut self, error: ProviderError) -> Result<Chunk, ProviderError> {
        let is_last = self.attempt >= self.policy.attempts;
        let asked_for = error.retry_after.unwrap_or_default();
        if !error.is_transient() || is_last || asked_for > self.policy.longest_asked_for {
            self.state = AttemptState::Ended;
            return Err(error);
        }
        let wait = self.wait().max(asked_for);
        self.attempt += 1;
        self.state = AttemptState::Waiting(wait);
        Ok(Chunk::Again(Retry {
            attempt: self.attempt,
            wait,
            reason: error.to_string(),
        }))
    }

    /// Backoff with jitter: between half and all of the maximum for this attempt.
    fn wait(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.attempt - 1).unwrap_or(u32::MAX);
        let most = self.policy.first_wait.saturating_mul(doubled);
        let most = most.min(self.policy.longest_wait);
        // `RandomState` is seeded randomly; jitter needs no cryptographic randomness.
        let chance = RandomState::new().build_hasher().finish() % 1024;
        let share = u32::try_from(chance).unwrap_or_default();
        most / 2 + most / 2 / 1024 * share
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
