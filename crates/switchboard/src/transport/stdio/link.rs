//! The open stdio link: its tasks, and its shutdown.
//!
//! Owns four tasks that end with the link: reading messages, reading stderr, writing when the pipe is full, and
//! watching for the end. The process itself belongs to `system`; this module must not spawn, signal or reap.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, FusedFuture};
use switchboard_protocol::Revision;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;

use super::frames::{Frame, Frames};
use super::intake::Intake;
use super::system::{Process, Started};
use super::writer::{Accepted, Traffic, Writer};
use super::{Exit, StdioConnector};
use crate::transport::{
    Abandoned, Closed, Connector as _, Inbound, Link, Outgoing, OutgoingKind, Sending,
    TransportError, TransportErrorKind, sending, sent,
};

/// Bytes of stderr read at once, and the maximum length of one of its lines.
const DIAGNOSTIC_CHUNK: usize = 8 * 1024;

/// How long to wait for the exit status of a server that closed its output.
const STATUS_WAIT: Duration = Duration::from_millis(250);

/// How long output may take to end once the process has exited: an escaped descendant may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long pending messages may take before the server's input is closed.
const LAST_MESSAGES: Duration = Duration::from_millis(250);

/// How long after its grace period the process is killed from here.
const END_SLACK: Duration = Duration::from_secs(8);

pub(super) struct StdioLink {
    shared: Arc<Shared>,
    /// Becomes true when the link has ended and reported so.
    over: watch::Receiver<bool>,
    longest_end: Duration,
    /// Whether the program may install the server first.
    may_install: bool,
    /// Whether the handshake has taken place: then nothing is being installed.
    has_opened: AtomicBool,
    tasks: [AbortHandle; 4],
}

struct Shared {
    writer: Arc<Writer>,
    intake: Intake,
    process: Process,
    inbound: Arc<dyn Inbound>,
    closing: AtomicBool,
}

impl StdioLink {
    /// Starts reading and writing.
    pub(super) fn open(
        started: Started,
        connector: &StdioConnector,
        inbound: Arc<dyn Inbound>,
    ) -> Self {
        let Started {
            process,
            stdin,
            stdout,
            stderr,
        } = started;
        let limits = connector.limits;
        let writer = Arc::new(Writer::new(
            stdin,
            limits.max_message_bytes,
            limits.max_queued_bytes,
        ));
        let intake = Intake::new(
            stdout,
            limits.max_message_bytes,
            Arc::clone(&inbound),
            Arc::clone(&writer),
        );
        let shared = Arc::new(Shared {
            writer: Arc::clone(&writer),
            intake,
            process,
            inbound,
            closing: AtomicBool::new(false),
        });
        let (over, over_receiver) = watch::channel(false);
        let drain = tokio::spawn(Arc::clone(&writer).drain());
        let diagnostics = tokio::spawn(read_diagnostics(stderr, Arc::clone(&shared.inbound)));
        // A separate task, so that a message wakes only its reader.
        let reading = Arc::clone(&shared);
        let messages = tokio::spawn(async move { reading.intake.read().await });
        let helpers = [&drain, &diagnostics].map(JoinHandle::abort_handle);
        let reader = messages.abort_handle();
        let watching = Arc::clone(&shared);
        let watch = tokio::spawn(async move {
            let closed = watching.watch(messages, diagnostics).await;
            watching.inbound.closed(closed);
            over.send_replace(true);
        });
        let [drain, diagnostics] = helpers;
        Self {
            shared,
            over: over_receiver,
            longest_end: connector.grace.after_close + connector.grace.after_terminate + END_SLACK,
            may_install: connector.may_install(),
            has_opened: AtomicBool::new(false),
            tasks: [watch.abort_handle(), reader, drain, diagnostics],
        }
    }
}

impl Link for StdioLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        let writer = &self.shared.writer;
        let traffic = match message.kind {
            OutgoingKind::Request(_) => match writer.request() {
                Traffic::Single if self.shared.intake.is_one_of_many() => Traffic::Concurrent,
                traffic => traffic,
            },
            OutgoingKind::Notification | OutgoingKind::Response => Traffic::Single,
        };
        match writer.accept(message.payload, traffic) {
            Ok(Accepted::Done) => {
                if traffic == Traffic::Single && matches!(message.kind, OutgoingKind::Request(_)) {
                    self.shared.intake.look();
                }
                sent(Ok(()))
            }
            Ok(Accepted::Queued(position)) => sending(writer.handed_over(position)),
            Err(error) => sent(Err(error)),
        }
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn abandon(&self, _request: u64) -> Abandoned {
        self.shared.writer.answered(1);
        Abandoned::NotTold
    }

    fn opened(&self, _revision: Revision) {
        self.has_opened.store(true, Ordering::Relaxed);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let shared = &self.shared;
        let mut over = self.over.clone();
        async move {
            shared.closing.store(true, Ordering::Relaxed);
            shared.process.end();
            // Messages that the server has not read by then are lost.
            let _ = timeout(LAST_MESSAGES, shared.writer.flushed()).await;
            shared.writer.end(closed_by_us());
            if timeout(self.longest_end, shared.process.gone())
                .await
                .is_err()
            {
                shared.process.kill();
                let _ = timeout(LAST_WORDS, shared.process.gone()).await;
            }
            // The task that reports the end has its own timeouts; if it is gone, so is the link.
            let _ = timeout(2 * LAST_WORDS, over.wait_for(|over| *over)).await;
        }
        .boxed()
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        let shared = &self.shared;
        async move {
            shared.closing.store(true, Ordering::Relaxed);
            if !shared.process.leave() {
                return self.close().await;
            }
            let _ = timeout(LAST_MESSAGES, shared.writer.flushed()).await;
            shared.writer.end(closed_by_us());
        }
        .boxed()
    }

    fn process(&self) -> Option<u32> {
        self.shared.process.id()
    }

    fn read_nothing(&self) -> bool {
        self.shared.writer.read_nothing()
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.writer.end(closed_by_us());
        if self.may_install && !self.has_opened.load(Ordering::Relaxed) {
            self.shared.process.finish();
        } else {
            self.shared.process.end();
        }
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Shared {
    /// Waits until the link ends for any reason, and reports how. Nothing is delivered after that.
    async fn watch(
        &self,
        messages: JoinHandle<io::Result<()>>,
        mut diagnostics: JoinHandle<()>,
    ) -> Closed {
        let reader = messages.abort_handle();
        let mut messages = messages.fuse();
        let ending = tokio::select! {
            biased;
            end = &mut messages => Ending::Output(end.unwrap_or_else(|lost| Err(lost.into()))),
            () = self.process.ended() => Ending::Process,
            error = self.writer.ended() => Ending::Input(error),
        };
        let by_server = match ending {
            Ending::Output(end) => {
                let _ = timeout(STATUS_WAIT, self.process.ended()).await;
                match end {
                    Ok(()) => Closed::ByServer,
                    Err(error) => Closed::Broken(error.to_string()),
                }
            }
            Ending::Process => {
                let _ = timeout(LAST_WORDS, &mut messages).await;
                Closed::ByServer
            }
            Ending::Input(error) if self.closing.load(Ordering::Relaxed) => {
                // This side closed the input, and the server may take its time.
                self.read_to_the_end(&mut messages).await;
                Closed::Broken(error.to_string())
            }
            Ending::Input(error) => {
                // A dying process closes its input first. If it does not die, it can no longer be served.
                let both = async { tokio::join!(&mut messages, self.process.ended()) };
                let _ = timeout(LAST_WORDS, both).await;
                Closed::Broken(error.to_string())
            }
        };
        reader.abort();
        if !messages.is_terminated() {
            let _ = messages.await;
        }
        self.intake.close();
        let exit = self.process.life().exit();
        self.process.end();
        self.writer.end(TransportError::new(
            TransportErrorKind::Closed,
            "the server has exited",
        ));
        if timeout(STATUS_WAIT, &mut diagnostics).await.is_err() {
            diagnostics.abort();
        }
        if self.closing.load(Ordering::Relaxed) {
            return Closed::ByUs;
        }
        exit.and_then(Exit::closed).unwrap_or(by_server)
    }

    /// Continues reading until shortly after the process has ended.
    async fn read_to_the_end(&self, messages: impl Future) {
        let a_little_longer = async {
            self.process.gone().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            _ = messages => {}
            () = a_little_longer => {}
        }
    }
}

enum Ending {
    /// The server's output ended.
    Output(io::Result<()>),
    /// The server's main process exited.
    Process,
    /// The server's input was closed, or writing to it failed.
    Input(TransportError),
}

/// Delivers lines of stderr until it ends or fails.
async fn read_diagnostics(mut stderr: impl AsyncRead + Unpin, inbound: Arc<dyn Inbound>) {
    let mut frames = Frames::new(DIAGNOSTIC_CHUNK, DIAGNOSTIC_CHUNK);
    while let Ok(1..) = stderr.read_buf(frames.room()).await {
        frames.split(|frame| {
            let line = match &frame {
                Frame::Line(line) => line,
                Frame::Oversized(start) => start.get(..DIAGNOSTIC_CHUNK).unwrap_or(start),
            };
            inbound.diagnostic(&String::from_utf8_lossy(line));
        });
    }
    // The last line of a crash often lacks a line end.
    if let Some(rest) = frames.rest() {
        inbound.diagnostic(&String::from_utf8_lossy(rest));
    }
}

fn closed_by_us() -> TransportError {
    TransportError::new(TransportErrorKind::Closed, "the link has been closed")
}
