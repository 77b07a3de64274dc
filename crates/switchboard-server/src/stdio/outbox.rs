//! Queue of outgoing frames, with notifications for the writer (not empty) and the intake (no longer full).

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use switchboard::internal::service::{Purpose, Sink};
use tokio::sync::Notify;

use crate::backlog::Backlog;

#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<OutboxQueue>,
    /// Notified when there is something to write, or on close.
    filled: Notify,
    /// Notified when the backlog is no longer over its limit.
    drained: Notify,
}

/// The result of [`Outbox::take`].
pub(super) enum Taken {
    /// Write the buffer.
    Frames,
    /// Write the buffer, then this frame.
    Large(Bytes),
    /// Nothing queued; more may follow.
    Nothing,
    /// Nothing queued, and the outbox is closed.
    Last,
}

#[derive(Debug)]
struct OutboxQueue {
    backlog: Backlog,
    is_closed: bool,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(OutboxQueue {
                backlog: Backlog::new(limit),
                is_closed: false,
            }),
            filled: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Whether the client is too far behind.
    pub(super) fn is_over(&self) -> bool {
        self.lock().backlog.is_over()
    }

    /// Moves frames into the buffer, each followed by a newline, until it holds `size` bytes. A frame larger than
    /// `size` is not copied.
    pub(super) fn take(&self, buffer: &mut Vec<u8>, size: usize) -> Taken {
        let mut state = self.lock();
        if state.backlog.is_empty() {
            return if state.is_closed {
                Taken::Last
            } else {
                Taken::Nothing
            };
        }
        let mut taken = Taken::Frames;
        while buffer.len() < size
            && let Some(waiting) = state.backlog.pop()
        {
            if waiting.frame.len() > size {
                taken = Taken::Large(waiting.frame);
                break;
            }
            buffer.extend_from_slice(&waiting.frame);
            buffer.push(b'\n');
        }
        if !state.backlog.is_over() {
            self.drained.notify_one();
        }
        taken
    }

    /// Completes when there is something to write or the outbox is closed.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Completes when the client is not too far behind.
    pub(super) async fn drained(&self) {
        while self.is_over() {
            self.drained.notified().await;
        }
    }

    /// Drops all further frames; those already queued are still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, OutboxQueue> {
        // The queue is consistent even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Outbox {
    fn frame(&self, frame: Bytes) {
        self.send(frame, Purpose::Message);
    }

    fn send(&self, frame: Bytes, purpose: Purpose) {
        let is_taken = {
            let mut state = self.lock();
            !state.is_closed && state.backlog.push(frame, purpose)
        };
        if is_taken {
            self.filled.notify_one();
        }
    }
}
