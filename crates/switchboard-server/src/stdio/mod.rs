//! One client over a pair of byte streams: newline-delimited JSON, as over standard input and output.
//!
//! Reading, handling and writing run concurrently. A client that does not read blocks only itself: its requests are
//! queued, its cancellations and answers are still handled, and the queues in both directions are bounded.
//!
//! | where | what |
//! |---|---|
//! | this file | reading and writing the streams, and shutting down |
//! | `intake` | which frames are handled at once, and which wait for the client to catch up |
//! | `outbox` | queue of outgoing frames |
//!
//! The caller opens the streams.

mod intake;
mod outbox;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard::internal::service::{Answered, Purpose, Sink};
use switchboard::internal::transport::stdio::frames::{Frame, Frames};
use switchboard_protocol::{ErrorCode, ErrorObject, encode, salvage};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::handler::{Client, ClientKind, Handler, Principal};
use intake::Intake;
use outbox::{Outbox, Taken};

/// Bytes read or written at a time.
const CHUNK: usize = 64 * 1024;

/// Limits for a client over stdio.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioOptions {
    /// Maximum length of a line. A longer one is answered with an error and skipped.
    pub max_line_bytes: usize,
    /// Output bytes that may be queued before the client's requests are queued too, and the limit of that second queue.
    pub max_queued_bytes: usize,
    /// After the input ends: time for running requests to be answered before they are cancelled. A script may write its
    /// requests and close the pipe at once.
    pub finishing: Duration,
    /// After that: time for cancelled requests to end and for queued output to be written.
    pub closing: Duration,
    /// Who the client is.
    pub principal: Principal,
    /// The profile that it uses; `None` for everything that is configured.
    pub profile: Option<Arc<str>>,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            max_line_bytes: 16 * 1024 * 1024,
            max_queued_bytes: 4 * 1024 * 1024,
            finishing: Duration::from_secs(1),
            closing: Duration::from_secs(2),
            principal: Principal::Parent,
            profile: None,
        }
    }
}

/// The stream whose end ended the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed our input.
    Input,
    /// The client closed our output.
    Output,
}

/// A read or write error on one of the streams.
#[derive(Debug, thiserror::Error)]
#[error("the client's {stream} failed")]
#[non_exhaustive]
pub struct StdioError {
    /// Either `input` or `output`.
    pub stream: &'static str,
    /// The error of the operating system.
    pub source: io::Error,
}

/// Serves one client until it disconnects, then cancels running requests, writes the queued output, and returns.
///
/// Dropping the future cancels everything at once. Must be called within a tokio runtime.
pub async fn serve<R, W>(
    handler: &dyn Handler,
    reader: R,
    writer: W,
    options: &StdioOptions,
) -> Result<Ended, StdioError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let outbox = Arc::new(Outbox::new(options.max_queued_bytes));
    let sink = Arc::clone(&outbox) as Arc<dyn Sink>;
    let mut client = Client::new(ClientKind::Stdio, options.principal.clone());
    client.profile.clone_from(&options.profile);
    let exchange = handler.open(&client, Arc::clone(&sink));
    let intake = Intake::new(&*exchange, &sink, &outbox, options);
    let reading = read(intake, reader, options.max_line_bytes);
    let mut writing = std::pin::pin!(write(&outbox, writer));
    let ended = tokio::select! {
        ended = reading => ended,
        ended = &mut writing => return written(ended),
    };
    let finishing = async {
        tokio::select! {
            () = exchange.ended() => None,
            written = &mut writing => Some(written),
        }
    };
    if let Ok(Some(failed)) = timeout(options.finishing, finishing).await {
        return written(failed);
    }
    exchange.close();
    let closing = async {
        // Running requests may still produce output, so writing continues until they have ended.
        tokio::select! {
            () = async { exchange.ended().await; outbox.close(); std::future::pending().await } => Ok(()),
            ended = &mut writing => ended,
        }
    };
    if let Ok(done) = timeout(options.closing, closing).await {
        done.or_else(|error| if_gone(error).map(drop))?;
    } else {
        tracing::warn!("the client disconnected; its requests did not end before the deadline");
    }
    ended.map(|()| Ended::Input)
}

/// Passes frames to the intake until the input ends.
async fn read<R: AsyncRead + Unpin>(
    mut intake: Intake<'_>,
    mut reader: R,
    max_line_bytes: usize,
) -> Result<(), StdioError> {
    let mut frames = Frames::new(max_line_bytes, CHUNK);
    loop {
        if intake.is_full() {
            intake.caught_up().await;
            continue;
        }
        let read = tokio::select! {
            read = reader.read_buf(frames.room()) => read,
            () = intake.caught_up(), if intake.is_holding() => continue,
        };
        let read = read.map_err(|source| StdioError {
            stream: "input",
            source,
        })?;
        if read == 0 {
            if let Some(rest) = frames.rest() {
                intake.take(&Bytes::copy_from_slice(rest));
            }
            return Ok(());
        }
        frames.split(|frame| match frame {
            Frame::Line(line) => intake.take(&line),
            Frame::Oversized(start) => intake.refuse(too_long(start, max_line_bytes)),
        });
    }
}

/// Writes queued frames until the outbox is closed and empty.
async fn write<W: AsyncWrite + Unpin>(outbox: &Outbox, mut writer: W) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(CHUNK);
    loop {
        let taken = outbox.take(&mut buffer, CHUNK);
        match taken {
            Taken::Last => return writer.flush().await,
            Taken::Nothing => {
                writer.flush().await?;
                outbox.filled().await;
            }
            Taken::Frames => writer.write_all(&buffer).await?,
            Taken::Large(frame) => {
                writer.write_all(&buffer).await?;
                writer.write_all(&frame).await?;
                writer.write_all(b"\n").await?;
            }
        }
        buffer.clear();
    }
}

fn written(ended: io::Result<()>) -> Result<Ended, StdioError> {
    ended.map(|()| Ended::Output).or_else(if_gone)
}

/// Treats a closed output as a disconnected client, not as an error.
fn if_gone(source: io::Error) -> Result<Ended, StdioError> {
    match source.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::WriteZero => Ok(Ended::Output),
        _ => Err(StdioError {
            stream: "output",
            source,
        }),
    }
}

/// The error for a line over the limit, given its beginning. `None` for a response, which is never answered.
fn too_long(start: &[u8], limit: usize) -> Option<(Bytes, Purpose)> {
    let salvaged = salvage(start);
    if salvaged.id.is_some() && !salvaged.has_method {
        return None;
    }
    let code = ErrorCode::INVALID_REQUEST;
    let error = ErrorObject::new(code, format!("the message is longer than {limit} bytes"));
    let mut frame = Vec::new();
    encode::error(&mut frame, salvaged.id.as_ref(), &error).ok()?;
    Some((frame.into(), Purpose::Answer(Answered::Error(code))))
}
