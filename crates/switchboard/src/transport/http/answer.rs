//! Tracks the pending requests of a link, and which of them are answered.
//!
//! HTTP ties an answer to the request's own stream: a stream that ends without one has lost it, and only this layer can
//! detect that. Each frame is therefore parsed once for the ids it answers before it is passed on unchanged. Answers on
//! another stream are accepted too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use switchboard_protocol::{Era, Limits, Message, parse, salvage};
use tokio::task::AbortHandle;

use super::lifetime::lock;
use super::sse::Decoded;
use crate::transport::Inbound;

/// Pending requests, and the receiver of frames.
pub(super) struct Answers {
    inbound: Arc<dyn Inbound>,
    limits: Limits,
    in_flight: Mutex<HashMap<u64, InFlight>>,
}

#[derive(Debug)]
struct InFlight {
    task: AbortHandle,
    era: Era,
    answered: bool,
}

/// Meaning of a frame for the request on whose stream it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// Its answer.
    Answer,
    /// An error without an id.
    UnaddressedError,
    /// An oversized frame that must have been its answer.
    TooLarge,
    Other,
}

impl Answers {
    pub(super) fn new(inbound: Arc<dyn Inbound>, limit: usize) -> Self {
        Self {
            inbound,
            limits: Limits {
                max_bytes: limit,
                ..Limits::DEFAULT
            },
            in_flight: Mutex::default(),
        }
    }

    pub(super) fn inbound(&self) -> &Arc<dyn Inbound> {
        &self.inbound
    }

    /// Registers a request whose task `start` spawns. Returns whether it was spawned.
    pub(super) fn begin(
        &self,
        request: u64,
        era: Era,
        start: impl FnOnce() -> Option<AbortHandle>,
    ) -> bool {
        // The lock is held meanwhile, so that a task that ends at once finds its entry.
        let mut in_flight = lock(&self.in_flight);
        let Some(task) = start() else { return false };
        let note = InFlight {
            task,
            era,
            answered: false,
        };
        in_flight.insert(request, note);
        true
    }

    /// Removes a request whose task ends, and returns whether it was answered; `None` if it was cancelled.
    pub(super) fn finish(&self, request: u64) -> Option<bool> {
        let note = lock(&self.in_flight).remove(&request)?;
        Some(note.answered)
    }

    /// Aborts the task of a request, and returns its era.
    pub(super) fn abandon(&self, request: u64) -> Option<Era> {
        let note = lock(&self.in_flight).remove(&request)?;
        note.task.abort();
        Some(note.era)
    }

    /// Whether the request is answered or cancelled.
    pub(super) fn is_answered(&self, request: u64) -> bool {
        lock(&self.in_flight)
            .get(&request)
            .is_none_or(|note| note.answered)
    }

    /// Passes on an event of a stream; `own` is the request whose stream it is, if any.
    pub(super) fn deliver_event(&self, decoded: Decoded, own: Option<u64>) -> Delivered {
        match decoded {
            Decoded::Event { name, data } => {
                let is_message = name.is_empty() || *name == *b"message";
                if is_message || super::events::looks_like_json(&data) {
                    self.deliver(data, own)
                } else {
                    Delivered::Other
                }
            }
            Decoded::Oversized { start } => self.deliver_oversized(&start, own),
        }
    }

    /// Passes on a frame.
    pub(super) fn deliver(&self, frame: Bytes, own: Option<u64>) -> Delivered {
        let delivered = self.note_answers(&frame, own);
        match own {
            Some(request) => self.inbound.related_frame(frame, request),
            None => self.inbound.frame(frame),
        }
        delivered
    }

    fn deliver_oversized(&self, start: &[u8], own: Option<u64>) -> Delivered {
        let salvaged = salvage(start);
        let id = salvaged.id.and_then(|id| id.as_u64_lenient());
        if own.is_some() && !salvaged.has_method && (id == own || id.is_none()) {
            return Delivered::TooLarge;
        }
        self.inbound.oversized(start, self.limits.max_bytes);
        Delivered::Other
    }

    fn note_answers(&self, frame: &[u8], own: Option<u64>) -> Delivered {
        let mut delivered = Delivered::Other;
        let mut note = |id: Option<u64>| {
            if self.note_answer(id, own) {
                delivered = Delivered::Answer;
            }
        };
        let mut unaddressed = false;
        match parse(frame, &self.limits) {
            Ok(incoming) => {
                for message in incoming.into_messages() {
                    match message.map(|received| received.message) {
                        Ok(Message::Response { id, .. } | Message::Error { id: Some(id), .. }) => {
                            note(id.as_u64_lenient());
                        }
                        Ok(Message::Error { id: None, .. }) => unaddressed = true,
                        // A malformed answer counts: the layer above fails the request by the same id.
                        Err(error) if !error.has_method => {
                            note(error.id.and_then(|id| id.as_u64_lenient()));
                        }
                        Ok(_) | Err(_) => {}
                    }
                }
            }
            Err(error) if !error.has_method => note(error.id.and_then(|id| id.as_u64_lenient())),
            Err(_) => {}
        }
        if delivered == Delivered::Other && unaddressed && own.is_some() {
            return Delivered::UnaddressedError;
        }
        delivered
    }

    /// Marks a request as answered; returns whether it is the stream's own.
    fn note_answer(&self, id: Option<u64>, own: Option<u64>) -> bool {
        let Some(id) = id else { return false };
        let mut in_flight = lock(&self.in_flight);
        if own == Some(id) {
            if let Some(note) = in_flight.get_mut(&id) {
                note.answered = true;
            }
            return true;
        }
        // The answer arrived on another stream, so its own is no longer needed.
        if let Some(note) = in_flight.remove(&id) {
            note.task.abort();
        }
        false
    }
}
