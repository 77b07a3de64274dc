//! Frames on their way to a client over HTTP: a single JSON document, or a stream of events that can be resumed.
//!
//! An [`EventStream`] holds what waits to be written and, where the stream can be resumed, what was written last. It
//! outlives the connection that reads it: the request behind it goes on, and whoever connects next takes over. It ends
//! when the handler lets go of its [`StreamSink`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use switchboard::service::{Answered, Purpose, Sink};

use crate::backlog::{Backlog, Waiting};

/// How many written frames are kept at most, however small they are.
const MAX_KEPT_FRAMES: usize = 1024;

/// What waits to be written for one request, or for what no request asked for.
#[derive(Debug)]
pub(super) struct EventStream(Mutex<State>);

#[derive(Debug)]
struct State {
    backlog: Backlog,
    /// The purpose of the very first frame.
    first: Option<Purpose>,
    /// What was written, oldest first.
    written: VecDeque<Waiting>,
    written_bytes: usize,
    /// How many written bytes are kept; none where the stream cannot be resumed.
    max_written_bytes: usize,
    /// Whether nothing will follow.
    is_finished: bool,
    /// Who reads: the last one to come.
    reader: u64,
    waker: Option<Waker>,
}

/// What a stream begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The answer, before anything else: it need not be a stream.
    Answer(Bytes, Answered),
    /// Something else.
    Other,
    /// Nothing at all: it has ended.
    Nothing,
}

/// One who reads a stream, until another one comes.
#[derive(Debug)]
pub(super) struct Reader {
    stream: Arc<EventStream>,
    generation: u64,
}

/// What a reader finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame and its number.
    Frame(Bytes, u64),
    /// Nothing will follow, here or at all.
    End,
}

impl EventStream {
    /// Leaves reports out from so many waiting bytes on, and keeps so many written ones.
    pub(super) fn new(max_waiting_bytes: usize, max_written_bytes: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
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

    /// Where its frames come from. It ends when this is dropped.
    pub(super) fn sink(self: &Arc<Self>) -> Arc<dyn Sink> {
        Arc::new(StreamSink(Arc::clone(self)))
    }

    /// What it begins with, if that is known already.
    pub(super) fn first_now(&self) -> Option<First> {
        self.lock().take_first()
    }

    /// Waits for what it begins with.
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

    /// Waits for the answer and drops what comes before it; `None` where there is none.
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

    /// Begins to read, in place of whoever did before. All that was written after the number that is given is written
    /// again, as far as it is still there.
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

    /// Says that nothing will follow.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.is_finished = true;
        state.wake();
    }

    /// Whether nothing will follow.
    pub(super) fn is_finished(&self) -> bool {
        self.lock().is_finished
    }

    /// Whether nothing will follow and all of it was written.
    pub(super) fn is_spent(&self) -> bool {
        let state = self.lock();
        state.is_finished && state.backlog.is_empty()
    }

    /// How many bytes it holds, waiting and written.
    pub(super) fn bytes(&self) -> usize {
        let state = self.lock();
        state.backlog.bytes() + state.written_bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and if it did, the queue would still be whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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

    /// Keeps what was written, for those who lost it on the way.
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
    /// The next frame.
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

/// Where the frames of a stream come from.
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
    fn what_was_lost_on_the_way_is_written_again_to_whoever_comes_next() {
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
    fn what_is_kept_is_bounded() {
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
