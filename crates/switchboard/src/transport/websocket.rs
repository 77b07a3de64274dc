//! WebSocket transport: one JSON-RPC message per WebSocket message, sub-protocol `mcp`.
//!
//! One task owns the connection: it reads, writes, answers pings and closes. Senders put messages into a bounded queue,
//! in call order. An oversized message is skipped without closing the connection (see `trim.rs`).

mod handshake;
mod trim;
mod tunnel;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Sink as _, Stream as _};
use switchboard_config::entry::Transport;
use switchboard_config::text::visible;
use switchboard_protocol::Revision;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::http::{Address, HttpClient, Lifetime, Permits, RemoteServer};
use super::{
    Abandoned, Closed, Connector, Destination, Inbound, Link, Outgoing, Sending, TransportError,
    TransportErrorKind, sending, sent,
};
use handshake::Socket;
use trim::Trimmed;

/// Maximum number of queued messages.
const MOST_QUEUED: usize = 1024;
/// Maximum bytes queued, except for a single larger message.
const MOST_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// Messages written before a flush.
const MOST_AT_ONCE: usize = 32;
/// How long the server may take to complete the closing handshake.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// Connector for WebSocket links.
#[derive(Debug)]
pub struct WebSocketConnector {
    client: HttpClient,
    address: Address,
    permits: Permits,
}

impl WebSocketConnector {
    /// A connector for this server. Fails if the address or a header is invalid.
    ///
    /// Uses the client's trust roots, proxies, size limit and connect timeout.
    pub fn new(client: &HttpClient, server: RemoteServer) -> Result<Self, TransportError> {
        let address = Address::parse(server.url.expose(), &["ws", "wss"])?;
        if !address.url().username().is_empty() || address.url().password().is_some() {
            return Err(TransportError::new(
                TransportErrorKind::Invalid,
                "credentials in the address of a WebSocket are not sent; use a header",
            ));
        }
        Ok(Self {
            address,
            permits: Permits::new(server)?,
            client: client.clone(),
        })
    }

    /// Opens the connection; if the server refuses, retries with better credentials if there are any.
    async fn open(&self) -> Result<(Socket, Vec<u8>), TransportError> {
        self.permits.prepare().await?;
        let url = self.address.url();
        let mut permit = self.permits.issue("GET", url, None).await;
        loop {
            let opened = handshake::open(&self.client, &self.address, &permit.headers).await;
            let Err(error) = opened else { return opened };
            let Some(refusal) = &error.refusal else {
                return Err(error);
            };
            if let Some(nonce) = &refusal.dpop_nonce {
                self.permits.noted(url, nonce);
            }
            let (status, challenges) = (refusal.status, &refusal.challenges);
            let again =
                self.permits
                    .is_worth_another_try("GET", url, &mut permit, status, challenges);
            if !again.await? {
                return Err(error);
            }
            permit = self.permits.issue("GET", url, Some(&permit)).await;
        }
    }
}

impl Connector for WebSocketConnector {
    fn transport(&self) -> Transport {
        Transport::Ws
    }

    fn destination(&self) -> Destination {
        let has_proxy = self.client.settings().proxy.applies_to(&self.address);
        self.address.destination(&self.permits, has_proxy)
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            let (socket, tail) = self.open().await?;
            let limit = self.client.settings().max_message_bytes;
            let socket = Trimmed::new(socket, &tail, limit);
            // Oversized messages are already trimmed, so the library's limits only must not be lower.
            let config = WebSocketConfig::default()
                .max_message_size(Some(limit))
                .max_frame_size(Some(limit));
            let stream = WebSocketStream::from_raw_socket(socket, Role::Client, Some(config)).await;
            let (queue, queued) = mpsc::channel(MOST_QUEUED);
            let lifetime = Arc::new(Lifetime::new());
            let waiting = Arc::new(AtomicUsize::new(0));
            let connection = Connection {
                stream,
                queued,
                waiting: Arc::clone(&waiting),
                inbound,
                limit,
                received: 0,
                unflushed: Vec::new(),
            };
            lifetime.supervise(supervise(connection, Arc::clone(&lifetime)));
            let link = WebSocketLink {
                queue,
                waiting,
                lifetime,
            };
            Ok(Arc::new(link) as Arc<dyn Link>)
        })
    }
}

struct WebSocketLink {
    queue: mpsc::Sender<Queued>,
    /// Bytes in the queue.
    waiting: Arc<AtomicUsize>,
    lifetime: Arc<Lifetime>,
}

/// A queued message, and the channel that reports its result.
#[derive(Debug)]
struct Queued {
    text: Utf8Bytes,
    written: oneshot::Sender<Result<(), TransportError>>,
}

impl Link for WebSocketLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        match self.enqueue(message.payload) {
            Ok(written) => sending(async { written.await.unwrap_or_else(|_| Err(closed())) }),
            Err(error) => sent(Err(error)),
        }
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn abandon(&self, _request: u64) -> Abandoned {
        Abandoned::NotTold
    }

    fn opened(&self, _revision: Revision) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.lifetime.close())
    }
}

impl Drop for WebSocketLink {
    fn drop(&mut self) {
        self.lifetime.stop();
    }
}

impl WebSocketLink {
    fn enqueue(
        &self,
        payload: Vec<u8>,
    ) -> Result<oneshot::Receiver<Result<(), TransportError>>, TransportError> {
        let text = Utf8Bytes::try_from(Bytes::from(payload)).map_err(|_| {
            TransportError::new(TransportErrorKind::Invalid, "the message is not UTF-8 text")
        })?;
        let length = text.len();
        let (written, receiver) = oneshot::channel();
        let before = self.waiting.fetch_add(length, Ordering::AcqRel);
        let outcome = if before > 0 && before.saturating_add(length) > MOST_QUEUED_BYTES {
            Err(congested())
        } else {
            self.queue
                .try_send(Queued { text, written })
                .map_err(|error| match error {
                    mpsc::error::TrySendError::Full(_) => congested(),
                    mpsc::error::TrySendError::Closed(_) => closed(),
                })
        };
        if outcome.is_err() {
            self.waiting.fetch_sub(length, Ordering::AcqRel);
        }
        outcome.map(|()| receiver)
    }
}

/// Runs the connection until it ends or is stopped, then closes it.
async fn supervise(mut connection: Connection, lifetime: Arc<Lifetime>) {
    let closed = tokio::select! {
        closed = connection.run() => closed,
        () = lifetime.stopped() => {
            connection.queued.close();
            let _ = tokio::time::timeout(CLOSE_DEADLINE, connection.close()).await;
            Closed::ByUs
        }
    };
    let inbound = Arc::clone(&connection.inbound);
    drop(connection);
    inbound.closed(closed);
    lifetime.end();
}

/// The connection and its outgoing messages.
struct Connection {
    stream: WebSocketStream<Trimmed<Socket>>,
    queued: mpsc::Receiver<Queued>,
    waiting: Arc<AtomicUsize>,
    inbound: Arc<dyn Inbound>,
    limit: usize,
    /// Number of messages received.
    received: u64,
    /// Sizes and result channels of messages written but not yet flushed.
    unflushed: Vec<(usize, oneshot::Sender<Result<(), TransportError>>)>,
}

enum Step {
    Received(Option<Result<Message, Error>>),
    Flushed(Result<(), Error>),
    Write(Queued),
}

impl Connection {
    async fn run(&mut self) -> Closed {
        loop {
            let outcome = match self.step().await {
                Step::Received(None) => return Closed::ByServer,
                Step::Received(Some(Ok(message))) => match self.take(message) {
                    None => Ok(()),
                    Some(closed) => {
                        // The server started the closing handshake; only the reply has to be flushed.
                        let flush =
                            poll_fn(|context| Pin::new(&mut self.stream).poll_flush(context));
                        let _ = tokio::time::timeout(CLOSE_DEADLINE, flush).await;
                        return closed;
                    }
                },
                Step::Flushed(Ok(())) => {
                    for (length, written) in self.unflushed.drain(..) {
                        self.waiting.fetch_sub(length, Ordering::AcqRel);
                        let _ = written.send(Ok(()));
                    }
                    Ok(())
                }
                Step::Received(Some(Err(error))) | Step::Flushed(Err(error)) => Err(error),
                Step::Write(queued) => self.write(queued),
            };
            if let Err(error) = outcome {
                return describe(&error);
            }
        }
    }

    /// Waits for the next event. Cancel-safe.
    async fn step(&mut self) -> Step {
        poll_fn(|context| {
            if let Poll::Ready(received) = Pin::new(&mut self.stream).poll_next(context) {
                return Poll::Ready(Step::Received(received));
            }
            if self.unflushed.is_empty() {
                return match self.queued.poll_recv(context) {
                    Poll::Ready(Some(queued)) => Poll::Ready(Step::Write(queued)),
                    // Without senders the connection only reads, until it is stopped.
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                };
            }
            Pin::new(&mut self.stream)
                .poll_flush(context)
                .map(Step::Flushed)
        })
        .await
    }

    fn write(&mut self, queued: Queued) -> Result<(), Error> {
        let mut next = Some(queued);
        while let Some(Queued { text, written }) = next.take() {
            self.unflushed.push((text.len(), written));
            Pin::new(&mut self.stream).start_send(Message::Text(text))?;
            if self.unflushed.len() < MOST_AT_ONCE {
                next = self.queued.try_recv().ok();
            }
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Option<Closed> {
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            Message::Close(reason) => return Some(closed_by_server(reason)),
            // The library answers pings.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return None,
        };
        self.received += 1;
        if self.stream.get_mut().is_cut(self.received) {
            self.inbound.oversized(&data, self.limit);
        } else {
            self.inbound.frame(data);
        }
        None
    }

    /// Performs the closing handshake.
    async fn close(&mut self) {
        let closing = poll_fn(|context| Pin::new(&mut self.stream).poll_close(context));
        if closing.await.is_err() {
            return;
        }
        // Reads until the server's close frame or the end of the stream. Messages received meanwhile are dropped.
        loop {
            match poll_fn(|context| Pin::new(&mut self.stream).poll_next(context)).await {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            }
        }
    }
}

fn closed_by_server(reason: Option<CloseFrame>) -> Closed {
    match reason {
        Some(frame) if u16::from(frame.code) != 1000 && u16::from(frame.code) != 1001 => {
            let code = u16::from(frame.code);
            let text = visible(&frame.reason).into_owned();
            let text = if text.is_empty() {
                text
            } else {
                format!(": {text}")
            };
            Closed::Broken(format!("the server closed it with code {code}{text}"))
        }
        _ => Closed::ByServer,
    }
}

fn describe(error: &Error) -> Closed {
    Closed::Broken(match error {
        Error::Io(error) => error.to_string(),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            "the server ended it without a closing handshake".to_owned()
        }
        Error::Protocol(error) => format!("the server violates the WebSocket protocol: {error}"),
        other => other.to_string(),
    })
}

fn closed() -> TransportError {
    TransportError::new(TransportErrorKind::Closed, "the link has been closed")
}

fn congested() -> TransportError {
    TransportError::new(
        TransportErrorKind::Io,
        "the server does not read; too many messages are queued",
    )
}
