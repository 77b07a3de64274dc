//! Frames on their way out, and the two signals that go with them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use switchboard::service::{Purpose, Sink};
use tokio::sync::Notify;

use crate::backlog::Backlog;

/// Frames on their way out.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Something is there to write.
    filled: Notify,
    /// There is room again.
    drained: Notify,
}

/// What there was to write.
pub(super) enum Taken {
    /// What is in the buffer.
    Frames,
    /// What is in the buffer, and then this.
    Large(Bytes),
    /// Nothing for now.
    Nothing,
    /// Nothing for ever.
    Last,
}

#[derive(Debug)]
struct State {
    backlog: Backlog,
    is_closed: bool,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
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

    /// Moves frames into the buffer, each with its line end, until it has so many bytes. A frame that alone has more is
    /// not copied.
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

    /// Ends when there is something to write, or nothing will ever be.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Ends when the client is not too far behind.
    pub(super) async fn drained(&self) {
        while self.is_over() {
            self.drained.notified().await;
        }
    }

    /// Says that nothing will follow.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and if it did, the queue would still be whole.
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
