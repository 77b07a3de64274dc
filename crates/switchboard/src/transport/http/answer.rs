//! The requests under way on a link, and which of them have been answered.
//!
//! HTTP ties an answer to the request's own stream, so a stream that ends without one has lost it, and only this
//! layer can tell. Frames are therefore looked into, once, for the ids they answer, before they are handed on as
//! they are. A server that answers on another stream than it should is understood as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use switchboard_protocol::{Era, Limits, Message, parse, salvage};
use tokio::task::AbortHandle;

use super::lifetime::lock;
use super::sse::Decoded;
use crate::transport::Inbound;

/// Requests under way, and where frames go.
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

/// What handing on a frame meant for the request on whose stream it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// It is answered.
    Answer,
    /// An error that names no request.
    UnaddressedError,
    /// A frame over the limit that must have been its answer.
    TooLarge,
    /// Something else.
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

    /// Notes a request whose task `start` begins. Says whether it has begun.
    pub(super) fn begin(
        &self,
        request: u64,
        era: Era,
        start: impl FnOnce() -> Option<AbortHandle>,
    ) -> bool {
        // The lock is held meanwhile, so that a task that ends at once finds its own note.
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

    /// Forgets a request whose task ends, and says whether it was answered; nothing if it was abandoned.
    pub(super) fn finish(&self, request: u64) -> Option<bool> {
        let note = lock(&self.in_flight).remove(&request)?;
        Some(note.answered)
    }

    /// Ends the task of a request, and says which era it was of.
    pub(super) fn abandon(&self, request: u64) -> Option<Era> {
        let note = lock(&self.in_flight).remove(&request)?;
        note.task.abort();
        Some(note.era)
    }

    /// Whether nobody waits for the answer any longer.
    pub(super) fn is_answered(&self, request: u64) -> bool {
        lock(&self.in_flight)
            .get(&request)
            .is_none_or(|note| note.answered)
    }

    /// Hands on an event of a stream, which is the one of `own` if it is a request's.
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

    /// Hands on a frame.
    pub(super) fn deliver(&self, frame: Bytes, own: Option<u64>) -> Delivered {
        let delivered = self.note_answers(&frame, own);
        self.inbound.frame(frame);
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
                        // A broken answer is one: the layer above fails the call by the same id.
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

    /// Notes the answer to a request, and says whether that is the stream's own.
    fn note_answer(&self, id: Option<u64>, own: Option<u64>) -> bool {
        let Some(id) = id else { return false };
        let mut in_flight = lock(&self.in_flight);
        if own == Some(id) {
            if let Some(note) = in_flight.get_mut(&id) {
                note.answered = true;
            }
            return true;
        }
        // It came by another way; its own has nothing left to bring.
        if let Some(note) = in_flight.remove(&id) {
            note.task.abort();
        }
        false
    }
}
