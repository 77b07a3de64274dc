//! The flag that says nobody waits for an answer any longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether a request was given up, or is over. Cheap to clone into blocking work, which has to look at it now and
/// then; asynchronous work is dropped by itself.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    changed: Notify,
}

impl Cancellation {
    /// Whether nobody waits any longer.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Ends when nobody waits any longer.
    pub async fn cancelled(&self) {
        let changed = self.0.changed.notified();
        tokio::pin!(changed);
        // Registered before looking, so that a change in between is not missed.
        changed.as_mut().enable();
        if !self.is_cancelled() {
            changed.await;
        }
    }

    /// Says that nobody waits any longer.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
