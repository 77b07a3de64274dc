//! Queue of frames for an HTTP response: a single JSON document, or an event stream that can be resumed.
//!
//! An [`EventStream`] holds frames to write and, if it can be resumed, recently written ones. It outlives the
//! connection that reads it: its request continues, and the next connection takes over. It ends when the handler drops
//! its [`StreamSink`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use switchboard::internal::service::{Answered, Purpose, Sink};

use crate::backlog::{Backlog, Waiting};

/// Maximum number of written frames to store.
const MAX_KEPT_FRAMES: usize = 1024;

/// The frames of one request, or of the standalone stream of a session.
#[derive(Debug)]
pub(super) struct EventStream(Mutex<StreamBuffer>);

#[derive(Debug)]
struct StreamBuffer {
    backlog: Backlog,
    /// The purpose of the first frame.
    first: Option<Purpose>,
    /// Written frames, oldest first.
    written: VecDeque<Waiting>,
    written_bytes: usize,
    /// Limit for `written_bytes`; 0 if the stream cannot be resumed.
    max_written_bytes: usize,
    /// Whether no further frames will follow.
    is_finished: bool,
    /// The generation of the current reader, the latest one.
    reader: u64,
    waker: Option<Waker>,
}

/// The first event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The answer, so the response need not be a stream.
    Answer(Bytes, Answered),
    /// Any other frame.
    Other,
    /// The stream ended without a frame.
    Nothing,
}

/// Reads a stream until another reader replaces it.
#[derive(Debug)]
pub(super) struct Reader {
    stream: Arc<EventStream>,
    generation: u64,
}

/// The result of polling a [`Reader`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame and its sequence number.
    Frame(Bytes, u64),
    /// The stream has ended, or another reader has taken over.
    End,
}

impl EventStream {
    /// Drops reports while more than `max_waiting_bytes` are queued, and stores up to `max_written_bytes` of written
    /// frames.
    pub(super) fn new(max_waiting_bytes: usize, max_written_bytes: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(StreamBuffer {
            backlog: Backlog::new(max_waiting_bytes),
            first: None,
            written: VecDeque::new(),
            written_bytes: 0,
            max_written_bytes,
            is_finished: false,
            reader: 0,
            waker: None,
        })))
    }

    /// The sink of its frames. The stream ends when it is dropped.
    pub(super) fn sink(self: &Arc<Self>) -> Arc<dyn Sink> {
        Arc::new(StreamSink(Arc::clone(self)))
    }

    /// The first event, if there is one already.
    pub(super) fn first_now(&self) -> Option<First> {
        self.lock().take_first()
    }

    /// Waits for the first event.
    pub(super) async fn first(&self) -> First {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            match state.take_first() {
                Some(first) => Poll::Ready(first),
                None => state.wait(context),
            }
        })
        .await
    }

    /// Waits for the answer and drops frames before it; `None` if the stream ends without one.
    pub(super) async fn answer(&self) -> Option<(Bytes, Answered)> {
        loop {
            match self.first().await {
                First::Answer(frame, answered) => return Some((frame, answered)),
                First::Nothing => return None,
                First::Other => {
                    let mut state = self.lock();
                    state.backlog.pop();
                    state.first = state.backlog.purpose();
                }
            }
        }
    }

    /// Starts reading, replacing the previous reader. Frames written after number `after` are written again, as far as
    /// they are still stored.
    pub(super) fn read(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let mut state = self.lock();
        state.reader += 1;
        let generation = state.reader;
        if let Some(number) = after {
            state.rewind(number);
        }
        state.wake();
        drop(state);
        Reader {
            stream: Arc::clone(self),
            generation,
        }
    }

    /// Marks the stream as ended.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.is_finished = true;
        state.wake();
    }

    /// Whether no further frames will follow.
    pub(super) fn is_finished(&self) -> bool {
        self.lock().is_finished
    }

    /// Whether more is queued than a client that reads its stream lets happen.
    pub(super) fn is_behind(&self) -> bool {
        self.lock().backlog.is_over()
    }

    /// Whether the stream has ended and all frames were written.
    pub(super) fn is_spent(&self) -> bool {
        let state = self.lock();
        state.is_finished && state.backlog.is_empty()
    }

    /// Bytes held, queued and written.
    pub(super) fn bytes(&self) -> usize {
        let state = self.lock();
        state.backlog.bytes() + state.written_bytes
    }

    fn lock(&self) -> MutexGuard<'_, StreamBuffer> {
        // The queue is consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamBuffer {
    fn take_first(&mut self) -> Option<First> {
        match self.first {
            Some(Purpose::Answer(answered)) => {
                let answer = self.backlog.pop()?;
                self.first = self.backlog.purpose();
                Some(First::Answer(answer.frame, answered))
            }
            Some(_) => Some(First::Other),
            None => self.is_finished.then_some(First::Nothing),
        }
    }

    fn rewind(&mut self, number: u64) {
        while let Some(newest) = self.written.pop_back() {
            if newest.number <= number {
                self.written.push_back(newest);
                return;
            }
            self.written_bytes -= newest.cost();
            self.backlog.put_back(newest);
        }
    }

    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Stores a written frame, for resumption.
    fn keep(&mut self, waiting: Waiting) {
        if self.max_written_bytes == 0 {
            return;
        }
        self.written_bytes += waiting.cost();
        self.written.push_back(waiting);
        while self.written_bytes > self.max_written_bytes || self.written.len() > MAX_KEPT_FRAMES {
            let Some(oldest) = self.written.pop_front() else {
                return;
            };
            self.written_bytes -= oldest.cost();
        }
    }
}

impl Reader {
    pub(super) fn poll_next(&mut self, context: &Context<'_>) -> Poll<Event> {
        let mut state = self.stream.lock();
        if state.reader != self.generation {
            return Poll::Ready(Event::End);
        }
        if let Some(waiting) = state.backlog.pop() {
            let event = Event::Frame(waiting.frame.clone(), waiting.number);
            state.keep(waiting);
            return Poll::Ready(event);
        }
        if state.is_finished {
            return Poll::Ready(Event::End);
        }
        state.wait(context)
    }
}

struct StreamSink(Arc<EventStream>);

impl Sink for StreamSink {
    fn frame(&self, frame: Bytes) {
        self.send(frame, Purpose::Message);
    }

    fn send(&self, frame: Bytes, purpose: Purpose) {
        let mut state = self.0.lock();
        if !state.is_finished && state.backlog.push(frame, purpose) {
            state.first.get_or_insert(purpose);
            state.wake();
        }
    }
}

impl Drop for StreamSink {
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[cfg(test)]
mod tests {
    use switchboard_protocol::ErrorCode;

    use super::*;

    fn next(reader: &mut Reader) -> (String, u64) {
        match reader.poll_next(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Event::Frame(frame, number)) => {
                (String::from_utf8_lossy(&frame).into_owned(), number)
            }
            Poll::Ready(Event::End) => seen("end", 0),
            Poll::Pending => seen("nothing", 0),
        }
    }

    fn seen(text: &str, number: u64) -> (String, u64) {
        (text.to_owned(), number)
    }

    #[test]
    fn an_answer_that_comes_first_need_not_be_a_stream() {
        let stream = EventStream::new(1_000, 1_000);
        let sink = stream.sink();
        assert_eq!(stream.first_now(), None);
        let answered = Answered::Error(ErrorCode(-1));
        sink.send("answer".into(), Purpose::Answer(answered));
        let first = First::Answer("answer".into(), answered);
        assert_eq!(stream.first_now(), Some(first));
        assert_eq!(stream.first_now(), None);
        drop(sink);
        assert_eq!(stream.first_now(), Some(First::Nothing));

        let stream = EventStream::new(1_000, 1_000);
        let sink = stream.sink();
        sink.send("report".into(), Purpose::Report);
        sink.send("answer".into(), Purpose::Answer(Answered::Result));
        assert_eq!(stream.first_now(), Some(First::Other));
        let mut reader = stream.read(None);
        assert_eq!(next(&mut reader), seen("report", 1));
        assert_eq!(next(&mut reader), seen("answer", 2));
        assert_eq!(next(&mut reader), seen("nothing", 0));
        assert!(!stream.is_spent());
        drop(sink);
        assert_eq!(next(&mut reader), seen("end", 0));
        assert!(stream.is_spent());
    }

    #[test]
    fn lost_frames_are_written_again_to_the_next_reader() {
        let stream = EventStream::new(10_000, 10_000);
        let sink = stream.sink();
        for text in ["one", "two", "three"] {
            sink.frame(text.into());
        }
        let mut reader = stream.read(None);
        assert_eq!(next(&mut reader), seen("one", 1));
        assert_eq!(next(&mut reader), seen("two", 2));
        let mut second = stream.read(Some(1));
        assert_eq!(next(&mut reader), seen("end", 0));
        assert_eq!(next(&mut second), seen("two", 2));
        assert_eq!(next(&mut second), seen("three", 3));
        assert_eq!(next(&mut second), seen("nothing", 0));
        drop(sink);
        let mut third = stream.read(Some(0));
        for (text, number) in [("one", 1), ("two", 2), ("three", 3), ("end", 0)] {
            assert_eq!(next(&mut third), seen(text, number));
        }
    }

    #[test]
    fn stored_frames_are_bounded() {
        let stream = EventStream::new(10_000, 200);
        let sink = stream.sink();
        let mut reader = stream.read(None);
        for _ in 0..100 {
            sink.frame("x".into());
            next(&mut reader);
        }
        assert_eq!(stream.bytes(), 3 * 65);
        let mut reader = stream.read(Some(0));
        assert_eq!(next(&mut reader), seen("x", 98));
    }
}
