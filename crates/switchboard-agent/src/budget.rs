//! Request and token budget of a turn, shared with its sub-agents.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::events::EndReason;
use crate::provider::Usage;

#[derive(Debug)]
pub(crate) struct Budget {
    requests: AtomicU32,
    tokens: Option<AtomicU64>,
}

impl Budget {
    pub(crate) fn new(requests: u32, tokens: Option<u64>) -> Self {
        Self {
            requests: AtomicU32::new(requests),
            tokens: tokens.map(AtomicU64::new),
        }
    }

    /// Takes one request; the error is the exhausted budget.
    pub(crate) fn take_request(&self) -> Result<(), EndReason> {
        self.left()?;
        let take = |left: u32| left.checked_sub(1);
        let taken = self
            .requests
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(|_| ()).map_err(|_| EndReason::TurnBudget)
    }

    /// Checks for remaining budget without taking any; the error is the exhausted budget.
    pub(crate) fn left(&self) -> Result<(), EndReason> {
        if self.requests.load(Ordering::Relaxed) == 0 {
            return Err(EndReason::TurnBudget);
        }
        match &self.tokens {
            Some(tokens) if tokens.load(Ordering::Relaxed) == 0 => Err(EndReason::TokenBudget),
            _ => Ok(()),
        }
    }

    pub(crate) fn spend(&self, usage: Usage) {
        if let Some(tokens) = &self.tokens {
            let spend = |left: u64| Some(left.saturating_sub(usage.total()));
            let _ = tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        }
    }
}
