//! Clients over WebSocket: one JSON-RPC message per text message, in both directions.
//!
//! After the upgrade, the connection is served as one over standard input and output, with the same queues: each message
//! becomes a line. The connection's task serves it, so that it keeps the place of the connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::time::{Instant, interval};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};

use super::answer::{self, BoxedResponse};
use super::grant::Grant;
use super::options::HttpLimits;
use super::stop::Stop;
use crate::handler::Handler;
use crate::stdio::{StdioOptions, serve};

const SUBPROTOCOL: &str = "mcp";
/// Bytes in memory between the two representations, each way.
const PIPE: usize = 64 * 1024;
/// A client that has not even answered pings for this many intervals is gone.
const MISSED_PINGS: u32 = 3;

/// What a connection does after its HTTP part has ended.
#[derive(Default)]
pub(super) struct Upgrade(Mutex<Option<BoxFuture<'static, ()>>>);

impl Upgrade {
    fn set(&self, serving: BoxFuture<'static, ()>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(serving);
    }

    pub(super) fn take(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Accepts the handshake of a WebSocket; `upgrade` serves the connection afterwards.
pub(super) fn accept(
    head: &mut Parts,
    grant: &Grant,
    handler: Arc<dyn Handler>,
    limits: &HttpLimits,
    stop: &Stop,
    upgrade: &Upgrade,
) -> Result<BoxedResponse, BoxedResponse> {
    let (key, has_subprotocol) = check(&head.headers)?;
    let Some(upgraded) = head.extensions.remove::<OnUpgrade>() else {
        return Err(answer::refuse(
            StatusCode::BAD_REQUEST,
            "this connection cannot be upgraded",
        ));
    };
    let served = Served {
        grant: grant.owner(),
        handler,
        limits: limits.clone(),
        over: grant.until_expired(stop),
    };
    upgrade.set(
        async move {
            match upgraded.await {
                Ok(socket) => served.run(TokioIo::new(socket)).await,
                Err(error) => tracing::debug!(%error, "a WebSocket was not opened"),
            }
        }
        .boxed(),
    );
    let mut answer = answer::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert("sec-websocket-accept", key);
    if has_subprotocol {
        let name = HeaderValue::from_static(SUBPROTOCOL);
        headers.insert("sec-websocket-protocol", name);
    }
    Ok(answer)
}

/// Checks the headers of the handshake. Returns the answer to its key, and whether the client names the sub-protocol.
fn check(headers: &HeaderMap) -> Result<(HeaderValue, bool), BoxedResponse> {
    let refused = |why: &'static str| answer::refuse(StatusCode::BAD_REQUEST, why);
    let has = |name: &str, wanted: &str| {
        words(headers, name).any(|word| word.eq_ignore_ascii_case(wanted))
    };
    if !has("connection", "upgrade") || !has("upgrade", "websocket") {
        let mut answer = answer::refuse(
            StatusCode::UPGRADE_REQUIRED,
            "this endpoint is for WebSocket clients",
        );
        let websocket = HeaderValue::from_static("websocket");
        answer.headers_mut().insert(UPGRADE, websocket);
        return Err(answer);
    }
    if !has("sec-websocket-version", "13") {
        let mut answer = refused("the WebSocket version must be 13");
        let version = HeaderValue::from_static("13");
        answer
            .headers_mut()
            .insert("sec-websocket-version", version);
        return Err(answer);
    }
    let mut keys = headers.get_all("sec-websocket-key").iter();
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return Err(refused(
            "the request must have one Sec-WebSocket-Key header",
        ));
    };
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let accepted = accepted.map_err(|_| refused("invalid Sec-WebSocket-Key header"))?;
    let has_subprotocol = has("sec-websocket-protocol", SUBPROTOCOL);
    if !has_subprotocol && words(headers, "sec-websocket-protocol").next().is_some() {
        return Err(refused("the WebSocket sub-protocol must be mcp"));
    }
    Ok((accepted, has_subprotocol))
}

/// The words of a header that is a comma-separated list.
fn words<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let words = values.flat_map(|value| value.split(',')).map(str::trim);
    words.filter(|word| !word.is_empty())
}

struct Served {
    grant: Grant,
    handler: Arc<dyn Handler>,
    limits: HttpLimits,
    over: BoxFuture<'static, ()>,
}

impl Served {
    async fn run(self, socket: impl AsyncRead + AsyncWrite + Unpin) {
        let limits = &self.limits;
        let config = WebSocketConfig::default()
            .max_message_size(Some(limits.max_body_bytes))
            .max_frame_size(Some(limits.max_body_bytes));
        let socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await;
        let (mut sender, receiver) = socket.split();
        let (from_client, lines_in) = tokio::io::duplex(PIPE);
        let (lines_out, to_client) = tokio::io::duplex(PIPE);
        let options = StdioOptions {
            max_line_bytes: limits.max_body_bytes,
            max_queued_bytes: limits.max_queued_bytes,
            principal: self.grant.principal.clone(),
            profile: self.grant.profile.clone(),
            ..StdioOptions::default()
        };
        let serving = serve(&*self.handler, from_client, to_client, &options);
        let heard = Mutex::new(Instant::now());
        let reading = read(receiver, lines_in, &heard);
        let ended = {
            let writing = write(&mut sender, lines_out, &heard, limits.keep_alive);
            // The end of the input ends the client's requests; what they have written is still sent.
            let serving = async {
                let _ = tokio::join!(serving, reading);
                std::future::pending().await
            };
            tokio::select! {
                ended = writing => ended,
                ended = serving => ended,
                () = self.over => CloseCode::Away,
            }
        };
        let farewell = Message::Close(Some(CloseFrame {
            code: ended,
            reason: Utf8Bytes::default(),
        }));
        let closing = async {
            // Fails if the client has closed the connection.
            let _ = sender.send(farewell).await;
            let _ = sender.close().await;
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), closing).await;
    }
}

type Receiver<S> = futures_util::stream::SplitStream<WebSocketStream<S>>;
type Sender<S> = futures_util::stream::SplitSink<WebSocketStream<S>, Message>;

/// Passes the client's messages on as lines, until it closes the connection.
async fn read<S>(
    mut receiver: Receiver<S>,
    mut lines: impl AsyncWrite + Unpin,
    heard: &Mutex<Instant>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(received) = receiver.next().await {
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let line = match received {
            Ok(Message::Text(text)) => one_line(Bytes::from(text)),
            Ok(Message::Binary(bytes)) => one_line(bytes),
            Ok(Message::Close(_)) => return,
            Ok(_) => continue,
            Err(error) => {
                tracing::debug!(%error, "a WebSocket failed");
                return;
            }
        };
        if lines.write_all(&line).await.is_err() || lines.write_all(b"\n").await.is_err() {
            return;
        }
    }
}

/// Line breaks in JSON are white space between its parts.
fn one_line(message: Bytes) -> Bytes {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !message.iter().any(is_break) {
        return message;
    }
    let spaced = |byte: &u8| if is_break(byte) { b' ' } else { *byte };
    message.iter().map(spaced).collect::<Vec<_>>().into()
}

/// Sends lines as messages until they end, and pings a client that is silent. Returns why it ended.
async fn write<S>(
    sender: &mut Sender<S>,
    lines: impl AsyncRead + Unpin,
    heard: &Mutex<Instant>,
    every: Duration,
) -> CloseCode
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut lines = BufReader::with_capacity(PIPE, lines);
    let mut line = Vec::new();
    let mut ping = interval(every);
    loop {
        let message = tokio::select! {
            read = lines.read_until(b'\n', &mut line) => match read {
                Ok(1..) => {
                    let end = usize::from(line.last() == Some(&b'\n'));
                    line.truncate(line.len() - end);
                    let Ok(text) = String::from_utf8(std::mem::take(&mut line)) else {
                        return CloseCode::Error;
                    };
                    Message::text(text)
                }
                _ => return CloseCode::Normal,
            },
            _ = ping.tick() => {
                let silence = heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
                if silence > every * MISSED_PINGS {
                    return CloseCode::Policy;
                }
                Message::Ping(Bytes::new())
            }
        };
        if sender.send(message).await.is_err() {
            return CloseCode::Abnormal;
        }
    }
}
