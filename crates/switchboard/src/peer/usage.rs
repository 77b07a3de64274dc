//! Counts the use of a connection by callers, apart from health checks and refreshes.
//!
//! Complements the counts of the request table, so that an unused connection can be distinguished from one that is only
//! probed and refreshed. Calls are not counted here and cost nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use switchboard_protocol::Method;

use super::Peer;
use crate::transport::Closed;

/// Counters of a connection's use.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Requests of the host itself, since the connection was opened.
    upkeep: AtomicU64,
    /// Requests of the host itself that the server is processing.
    upkeep_working: AtomicUsize,
    /// Active subscriptions.
    listening: AtomicUsize,
    /// Requests followed beyond their first response, which at times have nothing in flight.
    followed: AtomicUsize,
}

impl Usage {
    /// Counts a request for as long as the guard lives, if it only maintains the connection.
    pub(super) fn upkeep(&self, method: Method) -> Option<Counted<'_>> {
        let count = match method {
            Method::SubscriptionsListen => &self.listening,
            Method::Ping | Method::Discover | Method::ToolsList => &self.upkeep_working,
            _ => return None,
        };
        self.upkeep.fetch_add(1, Ordering::Relaxed);
        Some(Counted::one(count))
    }

    /// Counts a request followed beyond its first response, for as long as the guard lives.
    pub(super) fn follow(&self) -> Counted<'_> {
        Counted::one(&self.followed)
    }
}

/// Guard that counts one while it lives.
#[derive(Debug)]
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn one(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Peer {
    /// Number of requests made by callers so far. Only differences are meaningful.
    pub(crate) fn uses(&self) -> u64 {
        let upkeep = self.0.usage.upkeep.load(Ordering::Relaxed);
        self.0.receiver.pending.entered().wrapping_sub(upkeep)
    }

    /// Whether a caller's request, or a request of the server, is in progress.
    pub(crate) fn is_in_use(&self) -> bool {
        let usage = &self.0.usage;
        let upkeep = usage.upkeep_working.load(Ordering::Relaxed);
        self.0.working.load(Ordering::Relaxed) > upkeep || self.is_followed()
    }

    /// Rejects new requests if none is in progress; `false` if one is. A rejected request is not sent and can be made
    /// over another connection.
    pub(crate) fn retire(&self) -> bool {
        match &self.1 {
            Some(tenancy) => tenancy.leave_if(|| self.retire_alone()),
            None => self.retire_alone(),
        }
    }

    fn retire_alone(&self) -> bool {
        if self.is_busy() || self.is_followed() {
            return false;
        }
        let standing = self.0.usage.listening.load(Ordering::Relaxed);
        let pending = &self.0.receiver.pending;
        pending.close_unless_more_than(standing, &Closed::ByUs)
    }

    fn is_followed(&self) -> bool {
        let answering = &self.0.receiver.answering;
        let followed = &self.0.usage.followed;
        answering.load(Ordering::Relaxed) > 0 || followed.load(Ordering::Relaxed) > 0
    }
}
