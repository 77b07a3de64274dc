//! Bodies: how those of requests are read, and how those of answers are written.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::stream::{Event, Reader};

/// How many bytes of events are put together into one piece, and from where on a frame goes without being copied.
const PIECE: usize = 16 * 1024;

/// The body of an answer.
pub(super) enum Body {
    /// All of it; `None` is nothing.
    Whole(Option<Bytes>),
    /// Events as they come.
    Events(Box<Events>),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Whole(whole) => Poll::Ready(whole.take()),
            Self::Events(events) => events.poll_piece(context),
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => {
                let length = whole.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(length as u64)
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// A stream of events, for as long as its connection lasts.
pub(super) struct Events {
    reader: Reader,
    /// The number of the stream in its session; without one its events cannot be asked for again.
    label: Option<u64>,
    /// What is to be written next.
    pieces: std::collections::VecDeque<Bytes>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    /// When the client has to connect again.
    lifetime: Option<Pin<Box<Sleep>>>,
    /// Ends when the server does.
    stopped: BoxFuture<'static, ()>,
    is_over: bool,
    /// What lasts as long as the connection.
    _kept: Box<dyn Send + Sync>,
}

/// How a stream of events is written.
pub(super) struct EventOptions {
    /// The number of the stream in its session.
    pub(super) label: Option<u64>,
    /// What it begins with: an event without data, which has an id to come back with, or just a comment.
    pub(super) has_prologue: bool,
    /// After how long a client that lost the stream should connect again.
    pub(super) retry: Duration,
    /// How often it gives a sign of life.
    pub(super) keep_alive: Duration,
    /// When the client has to connect again.
    pub(super) lifetime: Option<Duration>,
}

impl Events {
    /// Writes what the reader finds, until the stream ends, another reader comes, or the server stops.
    pub(super) fn new(
        reader: Reader,
        options: &EventOptions,
        stopped: BoxFuture<'static, ()>,
        kept: Box<dyn Send + Sync>,
    ) -> Box<Self> {
        let prologue = match options.label {
            Some(label) if options.has_prologue => {
                let retry = options.retry.as_millis();
                format!("id: {label}-0\nretry: {retry}\ndata:\n\n").into()
            }
            _ => Bytes::from_static(b":\n\n"),
        };
        Box::new(Self {
            reader,
            label: options.label,
            pieces: [prologue].into(),
            keep_alive: options.keep_alive,
            silence: Box::pin(sleep(options.keep_alive)),
            lifetime: options.lifetime.map(|lifetime| Box::pin(sleep(lifetime))),
            stopped,
            is_over: false,
            _kept: kept,
        })
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(piece));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        self.gather(context);
        if let Some(piece) = self.pieces.pop_front() {
            self.silence
                .as_mut()
                .reset(Instant::now() + self.keep_alive);
            return Poll::Ready(Some(piece));
        }
        let lifetime = self.lifetime.as_mut();
        self.is_over |= self.stopped.as_mut().poll(context).is_ready()
            || lifetime.is_some_and(|lifetime| lifetime.as_mut().poll(context).is_ready());
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.silence.as_mut().poll(context).is_ready() {
            self.silence
                .as_mut()
                .reset(Instant::now() + self.keep_alive);
            // Registers the timer anew, or there would be no next sign of life.
            let _ = self.silence.as_mut().poll(context);
            return Poll::Ready(Some(Bytes::from_static(b": keep-alive\n\n")));
        }
        Poll::Pending
    }

    /// Turns frames that wait into pieces to write: small ones together, large ones as they are.
    fn gather(&mut self, context: &mut Context<'_>) {
        let mut text = String::new();
        while text.len() < PIECE && self.pieces.is_empty() {
            let (frame, number) = match self.reader.poll_next(context) {
                Poll::Ready(Event::Frame(frame, number)) => (frame, number),
                Poll::Ready(Event::End) => {
                    self.is_over = true;
                    break;
                }
                Poll::Pending => break,
            };
            if let Some(label) = self.label {
                // Writing to a string does not fail.
                let _ = writeln!(text, "id: {label}-{number}");
            }
            text.push_str("data: ");
            match str::from_utf8(&frame) {
                Ok(frame) if frame.len() <= PIECE => text.push_str(frame),
                _ => {
                    let head = std::mem::take(&mut text);
                    self.pieces.extend([head.into(), frame]);
                }
            }
            text.push_str("\n\n");
        }
        if !text.is_empty() {
            self.pieces.push_back(text.into());
        }
    }
}

/// Why the body of a request could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is larger than allowed.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// The client broke off.
    Broken,
}

/// Reads the body of a request.
pub(super) async fn read(
    body: &mut Incoming,
    max_bytes: usize,
    deadline: Duration,
) -> Result<Bytes, Unread> {
    let announced = body.size_hint().lower();
    if announced > max_bytes as u64 {
        return Err(Unread::TooLarge);
    }
    timeout(deadline, collect(body, max_bytes))
        .await
        .unwrap_or(Err(Unread::TooSlow))
}

async fn collect(body: &mut Incoming, max_bytes: usize) -> Result<Bytes, Unread> {
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) =
        std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
    {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.len() > max_bytes {
            return Err(Unread::TooLarge);
        }
        // Most bodies come in one piece, which need not be copied.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}
