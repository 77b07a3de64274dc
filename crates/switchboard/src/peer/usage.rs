//! What a conversation is used for: what somebody asked, told apart from what keeps the connection in order.
//!
//! Owns the counts beside those of the table of requests, so that an unused connection can be told from one that is
//! probed and refreshed. Calls are not counted here: they pay nothing for it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use switchboard_protocol::Method;

use super::Peer;
use crate::transport::Closed;

/// What is known of a conversation's use.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Requests of the host's own, ever made.
    upkeep: AtomicU64,
    /// Those of them that the server is at work on.
    upkeep_working: AtomicUsize,
    /// Subscriptions that stand.
    listening: AtomicUsize,
    /// Requests that are followed beyond their first answer, and at times have nothing in flight.
    followed: AtomicUsize,
}

impl Usage {
    /// Counts a request, for as long as the guard lives, if it is one that only keeps the connection in order.
    pub(super) fn upkeep(&self, method: Method) -> Option<Counted<'_>> {
        let count = match method {
            Method::SubscriptionsListen => &self.listening,
            Method::Ping | Method::Discover | Method::ToolsList => &self.upkeep_working,
            _ => return None,
        };
        self.upkeep.fetch_add(1, Ordering::Relaxed);
        Some(Counted::one(count))
    }

    /// Counts a request that is followed beyond its first answer, for as long as the guard lives.
    pub(super) fn follow(&self) -> Counted<'_> {
        Counted::one(&self.followed)
    }
}

/// One more of something, while it lives.
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
    /// How much was asked of the server so far, upkeep aside. Only a difference means something.
    pub(crate) fn uses(&self) -> u64 {
        let upkeep = self.0.usage.upkeep.load(Ordering::Relaxed);
        self.0.receiver.pending.entered().wrapping_sub(upkeep)
    }

    /// Whether somebody's request is under way, or a question of the server.
    pub(crate) fn is_in_use(&self) -> bool {
        let usage = &self.0.usage;
        let upkeep = usage.upkeep_working.load(Ordering::Relaxed);
        self.0.working.load(Ordering::Relaxed) > upkeep || self.is_followed()
    }

    /// Closes the conversation to requests, if none is under way; `false` if one is. One that comes later is not sent,
    /// and can be made over another connection.
    pub(crate) fn retire(&self) -> bool {
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
