//! The bridge between an MCP client on standard input and output and the daemon.
//!
//! Each direction passes lines by itself: a side that does not read delays only what is meant for it. If the daemon
//! ends, the bridge connects to the next one and continues where it was: lines that the daemon did not get are sent
//! again, requests that change nothing are repeated, the others fail with an error that says that they may have run.
//!
//! | where | what |
//! |---|---|
//! | this file | passing lines, and replacing the daemon |
//! | `ledger` | what must be known of the client for that |

mod ledger;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io;

use bytes::Bytes;
use switchboard::internal::transport::stdio::frames::{Frame, Frames};
use switchboard_protocol::{ErrorCode, ErrorObject, encode, salvage};
use switchboard_server::local::{Dialed, Wants};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use super::DaemonFiles;
use crate::context::Context;
use crate::error::Failure;
use ledger::Ledger;

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;
/// Longest line of a client, in bytes, as over standard input and output.
const MAX_REQUEST: usize = 16 * 1024 * 1024;
/// Longest line of the daemon, in bytes. It passes results on that servers may make long.
const MAX_ANSWER: usize = 256 * 1024 * 1024;
/// Attempts to reach the daemon again, each with the time that a new daemon may take.
const ATTEMPTS: usize = 3;

/// Passes lines until the client has ended and has its answers.
pub(crate) async fn run(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    wants: &Wants,
    files: &DaemonFiles,
    context: &Context,
) -> Result<(), Failure> {
    let mut dialed = files.dial_or_start(wants.clone(), context).await?;
    let state = State::default();
    let mut upward = Upward {
        input,
        frames: Frames::new(MAX_REQUEST, CHUNK),
        unsent: Vec::new(),
        written: 0,
        is_at_end: false,
        state: &state,
    };
    let mut downward = Downward {
        output,
        state: &state,
    };
    loop {
        let Dialed { reader, writer, .. } = &mut dialed;
        let end = tokio::select! {
            end = downward.pass(reader) => end,
            never = upward.pass(writer) => match never {},
        };
        if matches!(end, PassEnd::Client) {
            return Ok(());
        }
        upward.rewind();
        let recovery = state.ledger.borrow_mut().daemon_ended(&upward.unsent);
        if downward.write(&recovery.client).await.is_err() {
            return Ok(());
        }
        upward.unsent.splice(..0, recovery.daemon);
        if state.is_over() {
            return Ok(());
        }
        if files.was_stopped() && !upward.wait_for_work().await {
            return Ok(());
        }
        dialed = again(files, wants, context).await?;
        let greeting = state.ledger.borrow_mut().greeting();
        if let Some(greeting) = greeting {
            let shaken = shake_hands(&mut dialed, &greeting).await;
            if shaken.is_ok() && downward.write(&greeting.client).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Reaches the daemon after it has ended.
async fn again(files: &DaemonFiles, wants: &Wants, context: &Context) -> Result<Dialed, Failure> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match files.dial_or_start(wants.clone(), context).await {
            Ok(dialed) => return Ok(dialed),
            Err(failure) => last = Some(failure),
        }
    }
    Err(last.unwrap_or_else(|| Failure::failed("the daemon cannot be reached")))
}

/// Repeats the handshake of the client. If the new daemon ends meanwhile, the next read finds out.
async fn shake_hands(dialed: &mut Dialed, greeting: &ledger::Greeting) -> io::Result<()> {
    dialed.writer.write_all(&greeting.initialize).await?;
    let mut answer = Vec::new();
    dialed.reader.read_until(b'\n', &mut answer).await?;
    dialed.writer.write_all(&greeting.afterwards).await
}

/// Which side ended.
enum PassEnd {
    Client,
    Daemon,
}

enum Never {}

/// What both directions use.
#[derive(Default)]
struct State {
    ledger: RefCell<Ledger>,
    /// Answers of the bridge itself, for the client.
    own_answers: RefCell<Vec<u8>>,
    /// Whether the client has ended, and the daemon has all of its lines.
    has_ended: Cell<bool>,
    /// Wakes the downward direction.
    news: Notify,
}

impl State {
    /// Whether the client expects nothing more.
    fn is_over(&self) -> bool {
        self.has_ended.get() && self.ledger.borrow().is_settled()
    }
}

/// From the client to the daemon.
struct Upward<'s, R> {
    input: R,
    frames: Frames,
    /// Lines for the daemon, and how many bytes of them it got.
    unsent: Vec<u8>,
    written: usize,
    /// Whether the input has ended.
    is_at_end: bool,
    state: &'s State,
}

impl<R: AsyncRead + Unpin> Upward<'_, R> {
    /// Passes lines. Ends only by being dropped, between any two bytes.
    async fn pass(&mut self, daemon: &mut OwnedWriteHalf) -> Never {
        loop {
            while let Some(rest) = self.unsent.get(self.written..).filter(|it| !it.is_empty()) {
                match daemon.write(rest).await {
                    Ok(count @ 1..) => self.written += count,
                    // Reading finds out that the daemon has ended, after its last answers.
                    Ok(0) | Err(_) => return pending().await,
                }
            }
            self.unsent.clear();
            self.written = 0;
            if !self.read().await {
                self.state.has_ended.set(true);
                self.state.news.notify_one();
                return pending().await;
            }
        }
    }

    /// Reads lines; `false` after the last one.
    async fn read(&mut self) -> bool {
        if self.is_at_end {
            return false;
        }
        let read = self.input.read_buf(self.frames.room()).await;
        let is_end = !matches!(read, Ok(1..));
        let rest = self.frames.rest().filter(|_| is_end);
        let last = rest.map(Bytes::copy_from_slice);
        let mut ledger = self.state.ledger.borrow_mut();
        let mut take = |line: Bytes| {
            if let Some(line) = ledger.take_from_client(line) {
                self.unsent.extend_from_slice(&line);
                self.unsent.push(b'\n');
            }
        };
        self.frames.split(|frame| match frame {
            Frame::Line(line) => take(line),
            Frame::Oversized(start) => {
                let mut answers = self.state.own_answers.borrow_mut();
                if refuse(&mut answers, start, Side::Client) {
                    self.state.news.notify_one();
                }
            }
        });
        if let Some(last) = last {
            take(last);
        }
        self.is_at_end = is_end;
        !is_end || !self.unsent.is_empty()
    }

    /// Waits until there is something for a daemon; `false` if the client has ended.
    async fn wait_for_work(&mut self) -> bool {
        while self.unsent.is_empty() {
            if !self.read().await {
                return false;
            }
        }
        true
    }

    /// Goes back to the begin of the line that the daemon did not get in full.
    fn rewind(&mut self) {
        let sent = self.unsent.get(..self.written).unwrap_or_default();
        let begin = sent.iter().rposition(|byte| *byte == b'\n');
        let begin = begin.map_or(0, |end| end + 1);
        self.unsent.drain(..begin);
        self.written = 0;
    }
}

/// From the daemon to the client.
struct Downward<'s, W> {
    output: W,
    state: &'s State,
}

impl<W: AsyncWrite + Unpin> Downward<'_, W> {
    /// Passes lines until a side has ended.
    async fn pass(&mut self, daemon: &mut BufReader<OwnedReadHalf>) -> PassEnd {
        let mut frames = Frames::new(MAX_ANSWER, CHUNK);
        let mut out = Vec::new();
        loop {
            out.append(&mut self.state.own_answers.borrow_mut());
            if !out.is_empty() {
                if self.write(&out).await.is_err() {
                    return PassEnd::Client;
                }
                out.clear();
                out.shrink_to(CHUNK);
            }
            if self.state.is_over() {
                return PassEnd::Client;
            }
            tokio::select! {
                read = daemon.read_buf(frames.room()) => if !matches!(read, Ok(1..)) {
                    return PassEnd::Daemon;
                },
                () = self.state.news.notified() => continue,
            }
            let mut ledger = self.state.ledger.borrow_mut();
            frames.split(|frame| {
                let line = match frame {
                    Frame::Line(line) => Some(line),
                    Frame::Oversized(start) => {
                        let mut answer = Vec::new();
                        refuse(&mut answer, start, Side::Daemon).then(|| answer.into())
                    }
                };
                if let Some(line) = line.and_then(|line| ledger.take_from_daemon(line)) {
                    out.extend_from_slice(&line);
                    if !line.ends_with(b"\n") {
                        out.push(b'\n');
                    }
                }
            });
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes).await?;
        self.output.flush().await
    }
}

/// Whose line it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Daemon,
}

/// Adds the error for a line over the limit, given its beginning; `false` if none is due.
fn refuse(answers: &mut Vec<u8>, start: &[u8], side: Side) -> bool {
    let salvaged = salvage(start);
    let is_answer = salvaged.id.is_some() && !salvaged.has_method;
    // A request is answered by us; an answer is replaced by ours.
    if is_answer != (side == Side::Daemon) {
        return false;
    }
    let (code, text) = match side {
        Side::Client => (
            ErrorCode::INVALID_REQUEST,
            format!("the message is longer than {MAX_REQUEST} bytes"),
        ),
        Side::Daemon => (
            ErrorCode::INTERNAL_ERROR,
            format!("the answer is longer than {MAX_ANSWER} bytes"),
        ),
    };
    let error = ErrorObject::new(code, text);
    if encode::error(answers, salvaged.id.as_ref(), &error).is_err() {
        return false;
    }
    answers.push(b'\n');
    true
}
