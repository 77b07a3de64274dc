//! Writes messages to the server's input, in call order, with few system calls and task switches.
//!
//! Only one writer is active at a time. If there is none, a sender writes directly, without a task in between; senders
//! that arrive meanwhile queue their messages, and the active writer takes them along. The task in [`Writer::drain`]
//! writes when the pipe is full, or when many requests are in flight and one system call can serve several. Only that
//! task awaits while it is the active writer, so a dropped future leaves nothing stuck or half-written. Messages are
//! not inspected.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::system::Outlet;
use crate::transport::{TransportError, TransportErrorKind};

/// From this many unanswered requests on, writes are batched.
const CROWD: usize = 3;

/// Unwritten bytes above which senders wait.
const UNDER_WAY: u64 = 64 * 1024;

/// How often a sender writes messages queued meanwhile before it leaves the rest to the task.
const ROUNDS: usize = 4;

/// Buffers larger than this are not reused.
const MAX_KEPT: usize = 64 * 1024;

/// The sending side of a link.
#[derive(Debug)]
pub(super) struct Writer {
    state: Mutex<WriterQueue>,
    /// Bytes were written, or nothing more will be.
    progress: Notify,
    /// Nothing more will be written.
    over: Notify,
    /// There is work for the task.
    work: Notify,
    /// Approximate number of unanswered requests; only a hint.
    unanswered: AtomicUsize,
    max_message: usize,
    max_queued: usize,
}

#[derive(Debug)]
struct WriterQueue {
    /// `None` once the input is closed.
    outlet: Option<Arc<Outlet>>,
    /// Reason why nothing more is written.
    ended: Option<TransportError>,
    /// Messages not yet taken by a writer.
    queue: Vec<u8>,
    /// Batch left to the task, and how much of it is written.
    unfinished: Option<(Vec<u8>, usize)>,
    /// Whether a sender or the task is writing. If not, everything is written.
    busy: bool,
    /// Whether a waiter waits for progress.
    watched: bool,
    /// Bytes accepted from senders, and bytes passed to the system, since the start.
    accepted: u64,
    written: u64,
    /// Whether the server had read nothing when its input was closed.
    read_nothing: bool,
}

/// Result of one non-blocking write.
enum Attempt {
    Written,
    Full(usize),
    Failed(io::Error),
}

impl Writer {
    pub(super) fn new(outlet: Outlet, max_message: usize, max_queued: usize) -> Self {
        Self {
            state: Mutex::new(WriterQueue {
                outlet: Some(Arc::new(outlet)),
                ended: None,
                queue: Vec::new(),
                unfinished: None,
                busy: false,
                watched: false,
                accepted: 0,
                written: 0,
                read_nothing: false,
            }),
            progress: Notify::new(),
            over: Notify::new(),
            work: Notify::new(),
            unanswered: AtomicUsize::new(0),
            max_message,
            max_queued,
        }
    }

    /// Accepts a message; its position in the order is fixed when this returns.
    ///
    /// With `Traffic::Concurrent`, the message is left to the task, which batches it with others.
    pub(super) fn accept(
        &self,
        mut message: Vec<u8>,
        traffic: Traffic,
    ) -> Result<Accepted, TransportError> {
        debug_assert!(!message.contains(&b'\n'), "a message is one line");
        let length = message.len();
        if length > self.max_message {
            return Err(TransportError::new(
                TransportErrorKind::Invalid,
                format!(
                    "the message has {length} bytes, more than the limit of {}",
                    self.max_message
                ),
            ));
        }
        message.push(b'\n');
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let waiting = state.accepted - state.written;
        // Messages stay queued when their senders give up, so the queue needs a limit.
        if waiting > 0 && waiting + message.len() as u64 > self.max_queued as u64 {
            return Err(TransportError::new(
                TransportErrorKind::Io,
                format!("the server does not read its input: {waiting} bytes are queued"),
            ));
        }
        state.accepted += message.len() as u64;
        let position = state.accepted;
        if state.busy {
            state.queue.extend_from_slice(&message);
        } else {
            state.busy = true;
            match traffic {
                Traffic::Concurrent => self.leave_to_task(state, message, 0),
                Traffic::Single => {
                    drop(state);
                    self.write_now(message);
                }
            }
            state = self.state();
        }
        let under_way = position.saturating_sub(state.written) <= UNDER_WAY;
        Ok(if under_way && state.ended.is_none() {
            Accepted::Done
        } else {
            Accepted::Queued(position)
        })
    }

    /// Waits until everything up to `position` is written.
    pub(super) async fn handed_over(&self, position: u64) -> Result<(), TransportError> {
        loop {
            let mut progress = std::pin::pin!(self.progress.notified());
            // Registered before the check, so that no notification is missed.
            progress.as_mut().enable();
            {
                let mut state = self.state();
                if state.written >= position {
                    return Ok(());
                }
                if let Some(ended) = &state.ended {
                    return Err(ended.clone());
                }
                state.watched = true;
            }
            progress.await;
        }
    }

    /// Waits until nothing more can be written, and returns the reason.
    pub(super) async fn ended(&self) -> TransportError {
        loop {
            let mut over = std::pin::pin!(self.over.notified());
            over.as_mut().enable();
            if let Some(ended) = &self.state().ended {
                return ended.clone();
            }
            over.await;
        }
    }

    /// Waits until everything accepted is written, or nothing more can be.
    pub(super) async fn flushed(&self) {
        let position = self.state().accepted;
        // On an error there is nothing left to wait for.
        let _ = self.handed_over(position).await;
    }

    /// Closes the server's input. Unwritten messages are lost, and later ones fail with `reason`.
    pub(super) fn end(&self, reason: TransportError) {
        let mut state = self.state();
        if state.ended.is_none() {
            state.ended = Some(reason);
        }
        if let Some(outlet) = state.outlet.take() {
            state.read_nothing = state.accepted > 0 && outlet.unread() >= state.written;
        }
        state.queue = Vec::new();
        state.unfinished = None;
        drop(state);
        self.progress.notify_waiters();
        self.over.notify_waiters();
        self.work.notify_one();
    }

    /// Whether the server had read nothing when its input was closed.
    pub(super) fn read_nothing(&self) -> bool {
        self.state().read_nothing
    }

    /// Writes what senders cannot or should not write, for as long as the link lives.
    pub(super) async fn drain(self: Arc<Self>) {
        loop {
            self.work.notified().await;
            // Lets tasks that are ready to run queue their messages first, so that one system call writes them all.
            tokio::task::yield_now().await;
            let (outlet, unfinished) = {
                let mut state = self.state();
                (state.outlet.clone(), state.unfinished.take())
            };
            let Some(outlet) = outlet else {
                return;
            };
            if let Some((mut batch, written)) = unfinished {
                self.state().take_along(&mut batch);
                self.write_all(&outlet, batch, written).await;
            }
        }
    }

    /// Counts a request about to be sent, and returns whether to batch it.
    pub(super) fn request(&self) -> Traffic {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) >= CROWD {
            Traffic::Concurrent
        } else {
            Traffic::Single
        }
    }

    /// The approximate number of unanswered requests.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Counts answers that arrived or are no longer wanted. Returns the number outstanding before.
    pub(super) fn answered(&self, count: usize) -> usize {
        let subtract = |unanswered: usize| Some(unanswered.saturating_sub(count));
        let before = self
            .unanswered
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        // The closure always returns `Some`, so this does not fail.
        before.unwrap_or_default()
    }

    /// Writes `batch` and messages queued meanwhile, until the pipe is full. The caller must be the active writer.
    fn write_now(&self, mut batch: Vec<u8>) {
        for _ in 0..ROUNDS {
            let outlet = {
                let mut state = self.state();
                state.take_along(&mut batch);
                state.outlet.clone()
            };
            let Some(outlet) = outlet else {
                return;
            };
            let attempt = attempt(&outlet, &batch);
            drop(outlet);
            let mut state = self.state();
            match attempt {
                Attempt::Written => {
                    state.written += batch.len() as u64;
                    batch.clear();
                    let done = state.rest();
                    self.announce(state);
                    if done {
                        return;
                    }
                }
                Attempt::Full(written) => {
                    state.written += written as u64;
                    return self.leave_to_task(state, batch, written);
                }
                Attempt::Failed(error) => {
                    drop(state);
                    return self.end(no_longer_reads(&error));
                }
            }
        }
        self.leave_to_task(self.state(), batch, 0);
    }

    /// Makes the task the active writer.
    fn leave_to_task(
        &self,
        mut state: MutexGuard<'_, WriterQueue>,
        batch: Vec<u8>,
        written: usize,
    ) {
        if state.outlet.is_some() {
            state.unfinished = Some((batch, written));
        }
        self.announce(state);
        self.work.notify_one();
    }

    /// Writes `batch` and messages queued meanwhile, waiting for the server. The task must be the active writer.
    async fn write_all(&self, outlet: &Outlet, mut batch: Vec<u8>, mut written: usize) {
        loop {
            while let Some(rest) = batch.get(written..).filter(|rest| !rest.is_empty()) {
                let result = tokio::select! {
                    result = outlet.write(rest) => result,
                    // Closing the input must not wait for a server that does not read.
                    _ = self.ended() => return,
                };
                match result {
                    Ok(count) => {
                        written += count;
                        let mut state = self.state();
                        state.written += count as u64;
                        self.announce(state);
                    }
                    Err(error) => return self.end(no_longer_reads(&error)),
                }
            }
            batch.clear();
            written = 0;
            let mut state = self.state();
            if state.rest() {
                return;
            }
            state.take_along(&mut batch);
        }
    }

    /// Wakes the waiters for progress, if there are any.
    fn announce(&self, mut state: MutexGuard<'_, WriterQueue>) {
        let watched = std::mem::take(&mut state.watched);
        drop(state);
        if watched {
            self.progress.notify_waiters();
        }
    }

    fn state(&self) -> MutexGuard<'_, WriterQueue> {
        // No code panics under the lock; if it did, the state would still be consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether concurrent messages are expected, so that batching pays off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// No other message is expected.
    Single,
    /// Many messages are expected.
    Concurrent,
}

/// Progress of an accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepted {
    /// Written, or queued with little before it.
    Done,
    /// Waits for the server to read; the position of its last byte in the stream.
    Queued(u64),
}

impl WriterQueue {
    /// Moves the queue to the end of `batch`.
    fn take_along(&mut self, batch: &mut Vec<u8>) {
        if batch.is_empty() {
            std::mem::swap(batch, &mut self.queue);
        } else {
            batch.extend_from_slice(&self.queue);
            self.queue.clear();
        }
        if self.queue.capacity() > MAX_KEPT {
            self.queue = Vec::new();
        }
    }

    /// Stops being the active writer if the queue is empty; returns whether it did.
    fn rest(&mut self) -> bool {
        if self.queue.is_empty() {
            self.busy = false;
        }
        !self.busy
    }
}

fn attempt(outlet: &Outlet, batch: &[u8]) -> Attempt {
    let mut written = 0;
    while let Some(rest) = batch.get(written..).filter(|rest| !rest.is_empty()) {
        match outlet.try_write(rest) {
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Attempt::Full(written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Attempt::Failed(error),
        }
    }
    Attempt::Written
}

fn no_longer_reads(error: &io::Error) -> TransportError {
    let message = match error.kind() {
        io::ErrorKind::BrokenPipe => "the server has closed its input".to_owned(),
        _ => format!("cannot write to the server's input: {error}"),
    };
    TransportError::new(TransportErrorKind::Closed, message)
}
