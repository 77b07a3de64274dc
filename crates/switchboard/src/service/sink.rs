//! Destination of frames for a client, and the purpose of each frame.
//!
//! Owns the trait that transports implement. A transport never parses a frame: the purpose says whether it may be
//! dropped, ends a stream or determines the status.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use switchboard_protocol::{ErrorCode, Revision};

/// Purpose of a frame, which decides how a transport may treat it when its client reads slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Answers a request or a whole batch.
    Answer(Answered),
    /// Must be delivered: a request to the client, or its cancellation.
    Message,
    /// Progress or a log message. May be dropped.
    Report,
    /// Change notification. One of several identical ones is enough.
    Change,
}

/// Kind of an answer, for a front end that derives a status from it or opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// A result, or the answers to a batch.
    Result,
    /// The result of a handshake with this revision.
    Handshake(Revision),
    /// An error with this code.
    Error(ErrorCode),
}

impl Answered {
    /// The error code; `None` for a result.
    pub const fn error(self) -> Option<ErrorCode> {
        match self {
            Self::Error(code) => Some(code),
            Self::Result | Self::Handshake(_) => None,
        }
    }
}

/// Receives frames for the client, each a whole JSON-RPC message on one line.
///
/// It must neither block nor call back into the session. A transport whose client reads slowly bounds its queue by
/// accepting no more requests and by dropping what [`Purpose`] allows: every other frame is an answer, or belongs to a
/// running request.
///
/// A session drops a request's sink when no more frames follow, so a transport can end the request's stream when its
/// sink is dropped.
pub trait Sink: Send + Sync + 'static {
    /// Sends a frame of unspecified purpose.
    fn frame(&self, frame: Bytes);

    /// Sends a frame with its purpose.
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

/// Answers a batch with a batch: collects the answers until the last request of the batch drops the sink.
pub(super) struct BatchSink {
    inner: Arc<dyn Sink>,
    /// Bounded by the maximum size of a batch.
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
