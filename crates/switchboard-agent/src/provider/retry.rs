//! Asking once more, when asking once more may help.
//!
//! Owns the waiting: it grows with each attempt, by chance a little less, so that many who were turned away together do
//! not come back together; what the provider asks for is honoured within a bound. An answer that breaks off in its
//! middle is asked for again from the beginning, and whoever listens is told by [`Chunk::Again`].

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::{Chunk, Model, Provider, ProviderError, Request, Retry};

/// How often a model is asked, and how long is waited in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often it is asked at most, the first time included.
    pub attempts: u32,
    /// How long is waited at most before the second attempt; each further one may wait twice as long.
    pub first_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// The longest wait that a provider may ask for; if it asks for more, it is not asked again.
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

/// A provider that is asked once more.
#[derive(Debug, Clone)]
pub struct Retrying {
    provider: Arc<dyn Provider>,
    policy: RetryPolicy,
}

impl Retrying {
    /// Asks this provider by this policy.
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

    /// What a failure leads to: another attempt, or the end.
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

    /// Between half and all of what this attempt may wait.
    fn wait(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.attempt - 1).unwrap_or(u32::MAX);
        let most = self.policy.first_wait.saturating_mul(doubled);
        let most = most.min(self.policy.longest_wait);
        // Keys of hash maps are random, and nothing here has to be secret.
        let chance = RandomState::new().build_hasher().finish() % 1024;
        let share = u32::try_from(chance).unwrap_or_default();
        most / 2 + most / 2 / 1024 * share
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
