//! Messages into the server's input, in the order of calls, with as few system calls and task switches as can be.
//!
//! Owns the queue. Exactly one party writes at a time. A sender that finds nobody writing writes itself, at once and
//! with no task in between; senders that come meanwhile leave their messages in the queue, and whoever writes takes
//! them along. When the pipe is full, or many requests are under way and one system call can serve many of them, the
//! task in [`Writer::drain`] writes. Nobody waits while having the turn except that task, so a dropped future leaves
//! nothing stuck and nothing half-written. This module must not know what a message says.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::system::Outlet;
use crate::transport::{TransportError, TransportErrorKind};

/// From this many unanswered requests on, messages are written together with those of neighbours.
const CROWD: usize = 3;

/// How much may be on its way before senders wait for it to be taken.
const UNDER_WAY: u64 = 64 * 1024;

/// How often a sender writes what others left meanwhile, before it leaves the rest to the task.
const ROUNDS: usize = 4;

/// A buffer above this is not kept for the next messages.
const MAX_KEPT: usize = 64 * 1024;

/// The sending side of a link.
#[derive(Debug)]
pub(super) struct Writer {
    state: Mutex<WriterQueue>,
    /// Something has been written, or nothing will be any more.
    progress: Notify,
    /// Nothing will be written any more.
    over: Notify,
    /// There is work for the task.
    work: Notify,
    /// Requests without an answer, by a rough count: a hint, nothing more.
    unanswered: AtomicUsize,
    max_message: usize,
    max_queued: usize,
}

#[derive(Debug)]
struct WriterQueue {
    /// `None` when no more is written.
    outlet: Option<Arc<Outlet>>,
    /// Why no more is written.
    ended: Option<TransportError>,
    /// Messages that nobody has taken yet.
    queue: Vec<u8>,
    /// What is left to the task, and how much of it is written.
    unfinished: Option<(Vec<u8>, usize)>,
    /// Whether somebody writes: a sender, or the task. If nobody does, everything is written.
    busy: bool,
    /// Whether anybody waits for progress.
    watched: bool,
    /// Bytes taken from senders, and bytes handed to the system, since the beginning.
    accepted: u64,
    written: u64,
    /// Whether the server had read none of it when the end came.
    read_nothing: bool,
}

/// What became of one attempt to write.
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

    /// Takes a message; its place in the order is fixed when this returns.
    ///
    /// With `company`, the message waits a moment for others to be written with it.
    pub(super) fn accept(
        &self,
        mut message: Vec<u8>,
        company: Company,
    ) -> Result<Handed, TransportError> {
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
        // What nobody waits for any more is in the queue all the same, so there has to be an end to it.
        if waiting > 0 && waiting + message.len() as u64 > self.max_queued as u64 {
            return Err(TransportError::new(
                TransportErrorKind::Io,
                format!("the server does not read its input: {waiting} bytes are waiting"),
            ));
        }
        state.accepted += message.len() as u64;
        let position = state.accepted;
        if state.busy {
            state.queue.extend_from_slice(&message);
        } else {
            state.busy = true;
            match company {
                Company::Crowd => self.leave_to_task(state, message, 0),
                Company::Alone => {
                    drop(state);
                    self.write_now(message);
                }
            }
            state = self.state();
        }
        let under_way = position.saturating_sub(state.written) <= UNDER_WAY;
        Ok(if under_way && state.ended.is_none() {
            Handed::Over
        } else {
            Handed::Later(position)
        })
    }

    /// Waits until everything up to `position` is handed over.
    pub(super) async fn handed_over(&self, position: u64) -> Result<(), TransportError> {
        loop {
            let mut progress = std::pin::pin!(self.progress.notified());
            // Listening begins before looking, so that nothing happens in between.
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

    /// Waits until nothing more can be written, and returns why.
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

    /// Waits until all that was accepted is handed over, or nothing more can be.
    pub(super) async fn flushed(&self) {
        let position = self.state().accepted;
        // If it cannot be, there is nothing left to wait for either.
        let _ = self.handed_over(position).await;
    }

    /// Closes the server's input. What is not written by now is lost, and later messages fail with `reason`.
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

    /// Whether the server had read nothing of what was sent to it when the end came.
    pub(super) fn read_nothing(&self) -> bool {
        self.state().read_nothing
    }

    /// Writes where senders cannot or should not, for as long as the link lives.
    pub(super) async fn drain(self: Arc<Self>) {
        loop {
            self.work.notified().await;
            // In a crowd, whoever is ready to run adds a message first, and one system call writes them all.
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

    /// A request is about to go out.
    pub(super) fn request(&self) -> Company {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) >= CROWD {
            Company::Crowd
        } else {
            Company::Alone
        }
    }

    /// That many answers have come, or are no longer wanted. Tells how many were outstanding until then.
    pub(super) fn answered(&self, count: usize) -> usize {
        let subtract = |unanswered: usize| Some(unanswered.saturating_sub(count));
        let before = self
            .unanswered
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        // The closure always gives a value, so this does not fail.
        before.unwrap_or_default()
    }

    /// Writes `batch` and what comes meanwhile, as far as the pipe takes it at once. The caller has the turn.
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

    /// Hands the turn to the task.
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

    /// Writes `batch` and what comes meanwhile, waiting for the server. The task has the turn.
    async fn write_all(&self, outlet: &Outlet, mut batch: Vec<u8>, mut written: usize) {
        loop {
            while let Some(rest) = batch.get(written..).filter(|rest| !rest.is_empty()) {
                let result = tokio::select! {
                    result = outlet.write(rest) => result,
                    // Closing the input must not wait for a server that does not read it.
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

    /// Wakes those who wait for progress, if there are any.
    fn announce(&self, mut state: MutexGuard<'_, WriterQueue>) {
        let watched = std::mem::take(&mut state.watched);
        drop(state);
        if watched {
            self.progress.notify_waiters();
        }
    }

    fn state(&self) -> MutexGuard<'_, WriterQueue> {
        // Nothing that can panic happens under the lock; if it ever does, the state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether other messages can be expected at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// This is the only one, as far as anybody knows.
    Alone,
    /// There are many.
    Crowd,
}

/// How far an accepted message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed {
    /// It is written, or on its way with little before it.
    Over,
    /// It waits for the server to read; its last byte has this place in the stream.
    Later(u64),
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

    /// Gives the turn back if nothing is left to write, and says whether it did.
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
        _ => format!("the server's input cannot be written to: {error}"),
    };
    TransportError::new(TransportErrorKind::Closed, message)
}
