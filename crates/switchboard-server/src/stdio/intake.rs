//! Decides which incoming frames are handled at once and which wait for a slow client to catch up.
//!
//! While the client lags behind, frames that would produce more output are queued here, in order. Cancellations and
//! answers to our requests bypass the queue.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use switchboard::SharedJson;
use switchboard::internal::service::{ClientFrame, ClientMessage, Purpose, Sink};
use switchboard_protocol::types::method::{Cancelled, Notification as _};
use switchboard_protocol::{Limits, Method, RequestId};

use super::StdioOptions;
use super::outbox::Outbox;
use crate::handler::Exchange;

/// Memory per message of a frame beyond its bytes.
const OVERHEAD: usize = 64;

/// Passes frames to an exchange, delaying those that would add to the output of a slow client.
pub(super) struct Intake<'a> {
    exchange: &'a dyn Exchange,
    sink: &'a Arc<dyn Sink>,
    outbox: &'a Outbox,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// The tickets of queued requests that were not cancelled.
    tickets: HashMap<RequestId<'static>, u64>,
    next_ticket: u64,
    /// Reading stops while more bytes than this are queued.
    limit: usize,
    /// Parse limits for all frames.
    limits: Limits,
}

struct Held {
    frame: ClientFrame,
    /// The request and its ticket; `None` if the frame cannot be cancelled.
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

    /// Handles a frame, now or once the client has caught up.
    pub(super) fn take(&mut self, frame: &Bytes) {
        let frame = ClientFrame::parse(frame, &self.limits);
        if self.held.is_empty() && !self.outbox.is_over() {
            self.exchange.receive(frame, self.sink);
        } else {
            self.take_while_behind(frame);
        }
    }

    /// Sends an answer to a frame that was not handled.
    pub(super) fn refuse(&mut self, answer: Option<(Bytes, Purpose)>) {
        if let Some((frame, purpose)) = answer {
            self.outbox.send(frame, purpose);
        }
    }

    /// Whether frames are queued.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the queue is over its limit, so that reading must stop.
    pub(super) fn is_full(&self) -> bool {
        self.held_bytes > self.limit
    }

    /// Waits until the client has caught up, then handles queued frames until it lags behind again.
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
                // A queued request is cancelled by dropping it from the queue.
                let has_started =
                    id.is_none_or(|id| self.tickets.remove(&id.into_owned()).is_none());
                if has_started {
                    self.exchange.receive(frame, self.sink);
                }
                return;
            }
            Some(Ok(_)) => return self.exchange.receive(frame, self.sink),
            // The exchange answers these with an error or as a batch.
            Some(Err(_)) | None => None,
        };
        let ticket = id.and_then(|id| self.ticket(id));
        let held = Held { frame, ticket };
        self.held_bytes += held.cost();
        self.held.push_back(held);
    }

    /// Issues a ticket for a request. Returns `None` if its id is in use, which the handler reports.
    fn ticket(&mut self, id: RequestId<'static>) -> Option<(RequestId<'static>, u64)> {
        let Entry::Vacant(vacant) = self.tickets.entry(id.clone()) else {
            return None;
        };
        self.next_ticket += 1;
        vacant.insert(self.next_ticket);
        Some((id, self.next_ticket))
    }
}
