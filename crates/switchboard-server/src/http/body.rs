//! Reads request bodies and writes response bodies, including event streams.

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

/// Events are batched up to this many bytes; a larger frame is written without being copied.
const PIECE: usize = 16 * 1024;

pub(super) enum Body {
    /// `None` is an empty body.
    Whole(Option<Bytes>),
    /// Events, written as they arrive.
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

/// An event stream on one connection.
pub(super) struct Events {
    reader: Reader,
    /// The stream's number in its session; `None` if its events cannot be resumed.
    label: Option<u64>,
    /// Encoded pieces to write next.
    pieces: std::collections::VecDeque<Bytes>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    /// When the client must reconnect.
    lifetime: Option<Pin<Box<Sleep>>>,
    /// Completes when the server stops.
    stopped: BoxFuture<'static, ()>,
    is_over: bool,
    /// Dropped with the connection.
    _held: Box<dyn Send + Sync>,
}

pub(super) struct EventOptions {
    /// The stream's number in its session.
    pub(super) label: Option<u64>,
    /// Whether the stream starts with an empty event, whose id lets the client resume, or only with a comment.
    pub(super) has_prologue: bool,
    /// Delay before a client that lost the stream should reconnect.
    pub(super) retry: Duration,
    /// Interval between keep-alive comments.
    pub(super) keep_alive: Duration,
    /// Lifetime after which the client must reconnect.
    pub(super) lifetime: Option<Duration>,
}

impl Events {
    /// Writes events from the reader until the stream ends, another reader replaces it, or the server stops.
    pub(super) fn new(
        reader: Reader,
        options: &EventOptions,
        stopped: BoxFuture<'static, ()>,
        held: Box<dyn Send + Sync>,
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
            _held: held,
        })
    }

    /// Writes this first.
    pub(super) fn starting_with(mut self: Box<Self>, piece: Bytes) -> Box<Self> {
        self.pieces.push_front(piece);
        self
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
            // Polled again to register the waker, or there would be no further keep-alive.
            let _ = self.silence.as_mut().poll(context);
            return Poll::Ready(Some(Bytes::from_static(b": keep-alive\n\n")));
        }
        Poll::Pending
    }

    /// Encodes queued frames into pieces: small ones are batched, large ones are passed through.
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
                // Writing to a string cannot fail.
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

/// The reason a request body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// Larger than allowed.
    TooLarge,
    /// Not complete before the deadline.
    TooSlow,
    /// The connection failed mid-body.
    Broken,
}

/// Reads a request body of at most `max_bytes`.
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
        // Most bodies arrive in one chunk, which need not be copied.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}
