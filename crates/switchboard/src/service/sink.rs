//! Where frames for a client go, and what each of them is for.
//!
//! Owns the trait that transports implement. A transport never has to look into a frame: what it must know to keep
//! its queues short, to end a stream or to choose a status comes beside it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use switchboard_protocol::{ErrorCode, Revision};

/// What a frame is for, and so what a transport may do with it when its client lags behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It answers a request or a whole batch.
    Answer(Answered),
    /// It must arrive: a question to the client, or what belongs to one.
    Message,
    /// It tells how far a request is, or what happens meanwhile. It may be left out.
    Report,
    /// It tells that something changed. One of several that are the same is enough.
    Change,
}

/// What an answer says, for a front end that chooses a status by it or opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// A result, or the answers to a batch.
    Result,
    /// The result of a handshake that settled this revision.
    Handshake(Revision),
    /// An error with this code.
    Error(ErrorCode),
}

impl Answered {
    /// The code of an error.
    pub const fn error(self) -> Option<ErrorCode> {
        match self {
            Self::Error(code) => Some(code),
            Self::Result | Self::Handshake(_) => None,
        }
    }
}

/// Where frames for the client go, each a whole JSON-RPC message on one line.
///
/// It must neither block nor call back into the conversation. A transport whose client reads slowly keeps its queue
/// short by not taking in more requests, and by what [`Purpose`] lets it leave out: every other frame is an answer,
/// or comes of a request that is running.
///
/// A conversation lets go of a request's sink when nothing will follow, so the end of a stream of its own is where the
/// sink is dropped.
pub trait Sink: Send + Sync + 'static {
    /// Takes a frame.
    fn frame(&self, frame: Bytes);

    /// Takes a frame, knowing what it is for.
    fn send(&self, frame: Bytes, purpose: Purpose) {
        let _ = purpose;
        self.frame(frame);
    }
}

impl<F: Fn(Bytes) + Send + Sync + 'static> Sink for F {
    fn frame(&self, frame: Bytes) {
        self(frame);
    }
}

/// Answers a batch with a batch: keeps the answers until the last request of the batch lets go of it.
pub(super) struct BatchSink {
    inner: Arc<dyn Sink>,
    /// Bounded by the number of members a batch may have.
    answers: Mutex<Vec<Bytes>>,
}

impl BatchSink {
    pub(super) fn new(inner: &Arc<dyn Sink>) -> Self {
        Self {
            inner: Arc::clone(inner),
            answers: Mutex::default(),
        }
    }
}

impl Sink for BatchSink {
    fn frame(&self, frame: Bytes) {
        self.inner.frame(frame);
    }

    fn send(&self, frame: Bytes, purpose: Purpose) {
        match purpose {
            Purpose::Answer(_) => {
                let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.push(frame);
            }
            Purpose::Message | Purpose::Report | Purpose::Change => self.inner.send(frame, purpose),
        }
    }
}

impl Drop for BatchSink {
    fn drop(&mut self) {
        let answers = self
            .answers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if answers.is_empty() {
            return;
        }
        let length: usize = answers.iter().map(|answer| answer.len() + 1).sum();
        let mut batch = Vec::with_capacity(length + 1);
        for answer in answers.iter() {
            batch.push(if batch.is_empty() { b'[' } else { b',' });
            batch.extend_from_slice(answer);
        }
        batch.push(b']');
        self.inner
            .send(batch.into(), Purpose::Answer(Answered::Result));
    }
}
