//! Cancellation flag of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Set when a request is cancelled or done. Cheap to clone into blocking work, which must poll it; a cancelled future
/// is dropped.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    changed: Notify,
}

impl Cancellation {
    /// Whether the request was cancelled or is done.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Completes when the request is cancelled or done.
    pub async fn cancelled(&self) {
        let changed = self.0.changed.notified();
        tokio::pin!(changed);
        // Registered before the check, so that a change in between is not missed.
        changed.as_mut().enable();
        if !self.is_cancelled() {
            changed.await;
        }
    }

    /// Sets the flag and wakes all waiters.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
