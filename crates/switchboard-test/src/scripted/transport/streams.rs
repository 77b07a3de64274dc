//! Event streams that can be resumed.
//!
//! Stores the events of each stream, so that a client that reconnects with `Last-Event-ID` gets the rest. Events
//! without a reader are queued.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::event;
use crate::scripted::engine::Out;
use crate::scripted::lock;

/// All streams of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<String, Arc<Stream>>>);

#[derive(Debug)]
pub(crate) struct Stream {
    name: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Bytes>,
    /// Number of events given to the previous reader.
    given: usize,
    /// Unbounded: the events are stored in `events` anyway.
    reader: Option<mpsc::UnboundedSender<Bytes>>,
    is_done: bool,
}

impl Streams {
    /// Creates a stream. With `retry_ms`, its first event only carries the id and the retry time.
    pub(crate) fn begin(&self, name: &str, retry_ms: Option<u64>) -> Arc<Stream> {
        let stream = Arc::new(Stream {
            name: name.to_owned(),
            state: Mutex::default(),
        });
        if let Some(retry_ms) = retry_ms {
            stream.push(|id| event::priming(id, retry_ms));
        }
        lock(&self.0).insert(name.to_owned(), Arc::clone(&stream));
        stream
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Stream>> {
        lock(&self.0).get(name).cloned()
    }

    /// The stream of this event, and the number of the event in it.
    pub(crate) fn of_event(&self, id: &str) -> Option<(Arc<Stream>, usize)> {
        let (name, number) = id.rsplit_once('/')?;
        Some((self.get(name)?, number.parse().ok()?))
    }
}

impl Stream {
    /// Writes all output as events; passes anything else to `other`.
    pub(crate) async fn pump(&self, mut outs: mpsc::Receiver<Out>, other: impl Fn(Out)) {
        let mut piece = Vec::new();
        while let Some(out) = outs.recv().await {
            match out {
                Out::Frame(frame) | Out::Last(frame, _) => {
                    self.push(|id| event::event(&frame, Some(id)));
                }
                Out::Piece(bytes) => piece.extend_from_slice(&bytes),
                Out::PieceEnd => {
                    let frame = std::mem::take(&mut piece);
                    self.push(|id| event::event(&frame, Some(id)));
                }
                Out::CloseStream => lock(&self.state).reader = None,
                out => other(out),
            }
        }
        let mut state = lock(&self.state);
        state.is_done = true;
        state.reader = None;
    }

    /// Reads after this many events; with `None`, after those given to the previous reader.
    pub(crate) fn read(&self, after: Option<usize>) -> mpsc::UnboundedReceiver<Bytes> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = lock(&self.state);
        let after = after.unwrap_or(state.given);
        for event in state.events.iter().skip(after) {
            // The receiver is still alive.
            let _ = sender.send(event.clone());
        }
        state.given = state.events.len();
        if !state.is_done {
            state.reader = Some(sender);
        }
        receiver
    }

    fn push(&self, event: impl FnOnce(&str) -> Vec<u8>) {
        let mut state = lock(&self.state);
        // Numbered from one, so that the number is also the count of events up to it.
        let id = format!("{}/{}", self.name, state.events.len() + 1);
        let event = Bytes::from(event(&id));
        state.events.push(event.clone());
        if let Some(reader) = &state.reader
            && reader.send(event).is_ok()
        {
            state.given = state.events.len();
        }
    }
}
