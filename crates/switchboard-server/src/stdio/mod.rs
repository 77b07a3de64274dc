//! One client over a pair of byte streams: newline-delimited JSON, as over standard input and output.
//!
//! Reading, handling and writing go on side by side. A client that does not read what it is sent holds up only itself:
//! its requests wait, its cancellations and answers are still taken in, and what waits in either direction is bounded.
//!
//! | where | what |
//! |---|---|
//! | this file | the streams, and how it ends |
//! | `intake` | which frames are handled at once, and which wait for the client to catch up |
//! | `outbox` | frames on their way out |
//!
//! Nothing here opens a stream or knows where it leads.

mod intake;
mod outbox;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard::service::{Answered, Purpose, Sink};
use switchboard::transport::stdio::frames::{Frame, Frames};
use switchboard_protocol::{ErrorCode, ErrorObject, encode, salvage};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::handler::{Client, Handler};
use intake::Intake;
use outbox::{Outbox, Taken};

/// How much is read, and written, at a time.
const CHUNK: usize = 64 * 1024;

/// The bounds of a client over stdio.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioOptions {
    /// How long a line may be. A longer one is answered with an error, and the next one is read.
    pub max_line_bytes: usize,
    /// How many bytes may wait to be read by the client before its requests wait too, and how many bytes of those.
    pub max_queued_bytes: usize,
    /// How long what is running may take to end, and what is queued to be written, once the client is gone.
    pub closing: Duration,
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            max_line_bytes: 16 * 1024 * 1024,
            max_queued_bytes: 4 * 1024 * 1024,
            closing: Duration::from_secs(2),
        }
    }
}

/// Why a client over stdio is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It has nothing more to say.
    Input,
    /// It does not listen any longer.
    Output,
}

/// A stream that failed.
#[derive(Debug, thiserror::Error)]
#[error("the client's {stream} failed")]
#[non_exhaustive]
pub struct StdioError {
    /// Which one: `input` or `output`.
    pub stream: &'static str,
    /// What the system says.
    pub source: io::Error,
}

/// Serves one client until it is gone, then cancels what is still running, writes what is queued, and returns.
///
/// Dropping the future ends it at once, with everything that is running. Has to be called within a tokio runtime.
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
    let exchange = handler.open(&Client::Stdio, Arc::clone(&sink));
    let intake = Intake::new(&*exchange, &sink, &outbox, options);
    let reading = read(intake, reader, options.max_line_bytes);
    let mut writing = std::pin::pin!(write(&outbox, writer));
    let ended = tokio::select! {
        ended = reading => ended,
        ended = &mut writing => return written(ended),
    };
    exchange.close();
    let closing = async {
        // What is running may still have something to say, so both go on until there is nothing left.
        tokio::select! {
            () = async { exchange.ended().await; outbox.close(); std::future::pending().await } => Ok(()),
            ended = &mut writing => ended,
        }
    };
    if let Ok(done) = timeout(options.closing, closing).await {
        done.or_else(|error| if_gone(error).map(drop))?;
    } else {
        tracing::warn!("the client went away and what it left did not end in time");
    }
    ended.map(|()| Ended::Input)
}

/// Takes in what the client says until there is no more of it.
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

/// Writes what is queued until the outbox is closed and empty.
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

/// A client that does not listen any longer is gone, which is no failure.
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

/// The answer to a line over the limit, of which this is the beginning; none where it asks for nothing.
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
