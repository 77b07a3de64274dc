//! Which frames are handled at once, and which wait until the client has caught up.
//!
//! While a client lags behind, whatever would add to what it has to read waits here, in order. What adds nothing does
//! not: a cancellation reaches its request, an answer its question, however much is waiting.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use switchboard::json::SharedJson;
use switchboard::service::{ClientFrame, ClientMessage, Purpose, Sink};
use switchboard_protocol::types::method::{Cancelled, Notification as _};
use switchboard_protocol::{Limits, Method, RequestId};

use super::StdioOptions;
use super::outbox::Outbox;
use crate::handler::Exchange;

/// What each message of a frame costs beside its bytes.
const OVERHEAD: usize = 64;

/// Takes frames in for an exchange.
pub(super) struct Intake<'a> {
    exchange: &'a dyn Exchange,
    sink: &'a Arc<dyn Sink>,
    outbox: &'a Outbox,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// The tickets of held requests that were not cancelled.
    tickets: HashMap<RequestId<'static>, u64>,
    next_ticket: u64,
    /// From how many held bytes on nothing more is read.
    limit: usize,
    /// What a frame is parsed within, whether it waits or not.
    limits: Limits,
}

/// A frame that waits.
struct Held {
    frame: ClientFrame,
    /// What it is handled for: `None` is for nothing in particular.
    ticket: Option<(RequestId<'static>, u64)>,
}

impl Held {
    fn cost(&self) -> usize {
        self.frame.size() + OVERHEAD * self.frame.messages().len()
    }
}

impl<'a> Intake<'a> {
    pub(super) fn new(
        exchange: &'a dyn Exchange,
        sink: &'a Arc<dyn Sink>,
        outbox: &'a Outbox,
        options: &StdioOptions,
    ) -> Self {
        Self {
            exchange,
            sink,
            outbox,
            held: VecDeque::new(),
            held_bytes: 0,
            tickets: HashMap::new(),
            next_ticket: 0,
            limit: options.max_queued_bytes,
            limits: Limits {
                max_bytes: options.max_line_bytes,
                ..Limits::DEFAULT
            },
        }
    }

    /// Takes a frame in, now or when its turn comes.
    pub(super) fn take(&mut self, frame: &Bytes) {
        let frame = ClientFrame::parse(frame, &self.limits);
        if self.held.is_empty() && !self.outbox.is_over() {
            self.exchange.receive(frame, self.sink);
        } else {
            self.take_while_behind(frame);
        }
    }

    /// Answers a frame that was not taken in.
    pub(super) fn refuse(&mut self, answer: Option<(Bytes, Purpose)>) {
        if let Some((frame, purpose)) = answer {
            self.outbox.send(frame, purpose);
        }
    }

    /// Whether frames wait.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether so many frames wait that no more may be taken.
    pub(super) fn is_full(&self) -> bool {
        self.held_bytes > self.limit
    }

    /// Waits until the client has read enough, then takes in what has waited, as far as that goes.
    pub(super) async fn caught_up(&mut self) {
        self.outbox.drained().await;
        while !self.outbox.is_over()
            && let Some(held) = self.held.pop_front()
        {
            self.held_bytes -= held.cost();
            let is_wanted = held.ticket.is_none_or(|(id, ticket)| {
                self.tickets.get(&id) == Some(&ticket) && self.tickets.remove(&id).is_some()
            });
            if is_wanted {
                self.exchange.receive(held.frame, self.sink);
            }
        }
    }

    fn take_while_behind(&mut self, frame: ClientFrame) {
        let id = match frame.single() {
            Some(Ok(ClientMessage::Request(request))) => Some(request.id.clone()),
            Some(Ok(ClientMessage::OtherVersion { id: Some(id) })) => Some(id.clone()),
            Some(Ok(ClientMessage::Notification { method, params }))
                if method.is(Method::Cancelled) =>
            {
                let cancelled = Cancelled::decode_params(params.as_ref().map(SharedJson::raw));
                let id = cancelled.ok().and_then(|cancelled| cancelled.request_id);
                // A request that has not begun is just not begun.
                let begun = id.is_none_or(|id| self.tickets.remove(&id.into_owned()).is_none());
                if begun {
                    self.exchange.receive(frame, self.sink);
                }
                return;
            }
            Some(Ok(_)) => return self.exchange.receive(frame, self.sink),
            // These are answered, one way or another.
            Some(Err(_)) | None => None,
        };
        let ticket = id.and_then(|id| self.ticket(id));
        let held = Held { frame, ticket };
        self.held_bytes += held.cost();
        self.held.push_back(held);
    }

    /// A ticket for a request; none where its id is taken, which the handler will have to say.
    fn ticket(&mut self, id: RequestId<'static>) -> Option<(RequestId<'static>, u64)> {
        let Entry::Vacant(vacant) = self.tickets.entry(id.clone()) else {
            return None;
        };
        self.next_ticket += 1;
        vacant.insert(self.next_ticket);
        Some((id, self.next_ticket))
    }
}
