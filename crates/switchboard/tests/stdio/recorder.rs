//! An [`Inbound`] that records events in order, for a test to await.

use std::sync::Arc;

use bytes::Bytes;
use switchboard::transport::{Closed, Inbound, RequestFailure};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// An event of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Frame(String),
    /// A frame over the limit: its beginning, and the limit.
    Oversized(String, usize),
    /// A line of standard error.
    Diagnostic(String),
    Closed(Closed),
}

/// Records the events of a link.
pub(crate) struct Recorder {
    // Unbounded, because a test controls its server's output.
    sender: UnboundedSender<Event>,
    receiver: Mutex<UnboundedReceiver<Event>>,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        let (sender, receiver) = unbounded_channel();
        Arc::new(Self {
            sender,
            receiver: Mutex::new(receiver),
        })
    }

    /// Waits for the next event that is not a diagnostic.
    pub(crate) async fn next(&self) -> Event {
        loop {
            match self.receiver.lock().await.recv().await.unwrap() {
                Event::Diagnostic(_) => {}
                event => return event,
            }
        }
    }

    /// Waits for the close, and returns all events up to it.
    pub(crate) async fn all(&self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.receiver.lock().await.recv().await.unwrap();
            let is_last = matches!(event, Event::Closed(_));
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

impl Inbound for Recorder {
    fn frame(&self, frame: Bytes) {
        let text = String::from_utf8_lossy(&frame).into_owned();
        let _ = self.sender.send(Event::Frame(text));
    }

    fn oversized(&self, start: &[u8], limit: usize) {
        let start = start.get(..8).unwrap_or(start);
        let text = String::from_utf8_lossy(start).into_owned();
        let _ = self.sender.send(Event::Oversized(text, limit));
    }

    fn failed(&self, request: u64, failure: RequestFailure) {
        panic!("stdio never fails one request alone: {request}, {failure}");
    }

    fn diagnostic(&self, line: &str) {
        let _ = self.sender.send(Event::Diagnostic(line.to_owned()));
    }

    fn closed(&self, closed: Closed) {
        let _ = self.sender.send(Event::Closed(closed));
    }
}
