//! One HTTP connection: serves its requests, and closes it if the client stops reading.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::admission::Place;
use super::endpoint::Endpoint;
use super::options::HttpLimits;
use super::stop::Stop;
use super::websocket::Upgrade;

/// Maximum size of a request head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Serves a connection until it ends or is evicted. On shutdown, running answers are still written.
pub(super) async fn serve<S>(
    socket: S,
    endpoint: Arc<Endpoint>,
    limits: &HttpLimits,
    place: Place,
    stop: Stop,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = TokioIo::new(Watched {
        socket,
        deadline: limits.stall_deadline,
        stalled: None,
    });
    let place = Arc::new(place);
    let upgrade = Arc::new(Upgrade::default());
    let service = service_fn({
        let (place, upgrade) = (Arc::clone(&place), Arc::clone(&upgrade));
        move |request| {
            let (endpoint, place) = (Arc::clone(&endpoint), Arc::clone(&place));
            let upgrade = Arc::clone(&upgrade);
            async move { Ok::<_, Infallible>(*endpoint.respond(request, &place, &upgrade).await) }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_deadline)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(socket, service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = place.lost() => {
            tracing::debug!("closed a connection without a valid request");
            return;
        }
        () = stop.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection error");
        return;
    }
    let upgraded = upgrade.take();
    if let Some(serving) = upgraded {
        serving.await;
    }
}

/// A socket whose writes fail once the peer has read nothing for too long.
struct Watched<S> {
    socket: S,
    deadline: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    /// Starts the stall timer when a write is pending, and resets it when the write succeeds.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let deadline = self.deadline;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(deadline)));
        stalled.as_mut().poll(context).map(|()| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client stopped reading",
            ))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.socket).poll_shutdown(context);
        self.watch(context, closed)
    }
}
