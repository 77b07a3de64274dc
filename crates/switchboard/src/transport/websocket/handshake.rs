//! Opening a WebSocket: TCP, a tunnel through a proxy (`tunnel.rs`), TLS, and the HTTP upgrade.
//!
//! The upgrade is done here and not by the library, because a server that picks no sub-protocol is to be accepted,
//! and one that refuses is to be quoted: its status, its challenges, its words.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HOST, HeaderMap};
use rustls::pki_types::ServerName;
use switchboard_config::text::visible;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::handshake::client::{Response, generate_key};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse as _;
use url::Position;

use super::tunnel;
use crate::transport::http::{
    Address, HttpClient, describe_io, describe_tls, refusal_head, tls_error,
};
use crate::transport::{TransportError, TransportErrorKind};

/// The sub-protocol of MCP.
const SUBPROTOCOL: &str = "mcp";
/// The head of an answer is not longer.
const MAX_HEAD: usize = 64 * 1024;
/// How much of a refusal's body is kept, and how long it may take.
const MAX_REFUSAL: u64 = 64 * 1024;
const REFUSAL_DEADLINE: Duration = Duration::from_secs(2);

/// An open connection.
pub(super) type Socket = Box<dyn Stream>;

/// Bytes both ways.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Opens a connection and upgrades it. What the server sent right behind its answer is returned, too.
pub(super) async fn open(
    client: &HttpClient,
    address: &Address,
    headers: &HeaderMap,
) -> Result<(Socket, Vec<u8>), TransportError> {
    let deadline = client.settings().connect_timeout;
    let connected = tokio::time::timeout(deadline, connect(client, address)).await;
    let mut socket = connected.map_err(|_| {
        TransportError::new(
            TransportErrorKind::Timeout,
            format!("{} did not answer in time", address.place()),
        )
    })??;
    let key = generate_key();
    let request = upgrade(address, headers, &key);
    let failed = |error: std::io::Error| {
        let (kind, message) = describe_io(&error, &address.place());
        TransportError::new(kind, message)
    };
    socket.write_all(&request).await.map_err(failed)?;
    socket.flush().await.map_err(failed)?;
    let hint = if address.url().scheme() == "ws" {
        "; if it speaks TLS, use wss://"
    } else {
        ""
    };
    let (response, tail) = read_head(&mut socket, &address.place(), hint).await?;
    if response.status().as_u16() != 101 {
        return Err(refused(response, tail, socket).await);
    }
    check(&response, &key)?;
    Ok((socket, tail))
}

/// Connects to the server, or to the proxy on the way and through it.
async fn connect(client: &HttpClient, address: &Address) -> Result<Socket, TransportError> {
    let url = address.url();
    let end = Place::of(
        url.host_str().unwrap_or_default(),
        url.port_or_known_default().unwrap_or(80),
    );
    let socket = match client.settings().proxy.on_the_way_to(address) {
        None => end.connect().await?,
        Some(proxy) => tunnel::open(client, &proxy, &end).await?,
    };
    match url.scheme() {
        "ws" => Ok(socket),
        _ => end.secure(client, socket).await,
    }
}

/// A host and a port to connect to.
pub(super) struct Place {
    host: String,
    port: u16,
}

impl Place {
    /// A place by the name of its host, in brackets or not.
    pub(super) fn of(host: &str, port: u16) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            host: host.to_owned(),
            port,
        }
    }

    /// The place as it stands in addresses.
    pub(super) fn shown(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<Socket, TransportError> {
        let host = self.host.as_str();
        let unknown = |_| {
            let message = format!("the name {host} is not known");
            TransportError::new(TransportErrorKind::Dns, message)
        };
        let found = tokio::net::lookup_host((host, self.port)).await;
        let found: Vec<_> = found.map_err(unknown)?.collect();
        let stream = TcpStream::connect(found.as_slice())
            .await
            .map_err(|error| self.failed(&error))?;
        // Messages are small and waited for.
        let _ = stream.set_nodelay(true);
        Ok(Box::new(stream))
    }

    /// Speaks TLS over a connection that leads there.
    pub(super) async fn secure(
        &self,
        client: &HttpClient,
        socket: Socket,
    ) -> Result<Socket, TransportError> {
        let mut config = client.tls().as_ref().clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            let message = format!("{} is no name that a certificate could have", self.host);
            TransportError::new(TransportErrorKind::Invalid, message)
        })?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(Box::new(stream))
    }

    /// What an error of a connection there means.
    pub(super) fn failed(&self, error: &std::io::Error) -> TransportError {
        if let Some(tls) = tls_error(error) {
            return TransportError::new(TransportErrorKind::Tls, describe_tls(tls, &self.shown()));
        }
        let (kind, message) = describe_io(error, &self.shown());
        TransportError::new(kind, message)
    }
}

/// The request to upgrade, as it goes over the wire.
///
/// It is put together here, because the library would write it to its trace with all its secrets. Names and values
/// of headers are valid by their type, and the parts of an address by theirs.
fn upgrade(address: &Address, headers: &HeaderMap, key: &str) -> Vec<u8> {
    let url = address.url();
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let own = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n"
    );
    let mut request = own.into_bytes();
    for (name, value) in headers.iter().filter(|(name, _)| *name != HOST) {
        request.extend_from_slice(name.as_str().as_bytes());
        request.extend_from_slice(b": ");
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

/// Reads the head of an answer, and whatever came right behind it.
pub(super) async fn read_head(
    socket: &mut Socket,
    place: &str,
    hint: &str,
) -> Result<(Response, Vec<u8>), TransportError> {
    let broken_rules = |message: String| TransportError::new(TransportErrorKind::Protocol, message);
    let mut bytes = Vec::with_capacity(1024);
    loop {
        let count = socket.read_buf(&mut bytes).await.map_err(|error| {
            let (kind, message) = describe_io(&error, place);
            TransportError::new(kind, message)
        })?;
        if count == 0 {
            return Err(broken_rules(format!(
                "{place} closed the connection before it answered"
            )));
        }
        match Response::try_parse(&bytes) {
            Ok(Some((size, response))) => return Ok((response, bytes.split_off(size))),
            Ok(None) if bytes.len() <= MAX_HEAD => {}
            Ok(None) => {
                return Err(broken_rules(format!(
                    "{place} answers with endless headers"
                )));
            }
            Err(error) => {
                let error = visible(&error.to_string()).into_owned();
                return Err(broken_rules(format!(
                    "{place} does not answer in HTTP ({error}){hint}"
                )));
            }
        }
    }
}

/// Whether the server has really upgraded, and to the right protocol.
fn check(response: &Response, key: &str) -> Result<(), TransportError> {
    let broken_rules =
        |message: String| Err(TransportError::new(TransportErrorKind::Protocol, message));
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::trim)
    };
    let is_upgraded =
        header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    if !is_upgraded || header("sec-websocket-accept") != Some(&derive_accept_key(key.as_bytes())) {
        return broken_rules("the server does not complete the WebSocket handshake".to_owned());
    }
    if header("sec-websocket-extensions").is_some_and(|value| !value.is_empty()) {
        return broken_rules(
            "the server uses a WebSocket extension it was not asked for".to_owned(),
        );
    }
    match header("sec-websocket-protocol") {
        None | Some("" | SUBPROTOCOL) => Ok(()),
        Some(other) => broken_rules(format!(
            "the server chose the WebSocket sub-protocol `{}` and not `{SUBPROTOCOL}`",
            visible(other)
        )),
    }
}

pub(super) async fn refused(
    response: Response,
    mut body: Vec<u8>,
    mut socket: Socket,
) -> TransportError {
    let mut refusal = refusal_head(response.status().as_u16(), response.headers());
    // The body as it comes, chunked or not: it is for people to read.
    let rest = async {
        let length = response.headers().get("content-length");
        let announced = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let missing = announced.map_or(MAX_REFUSAL, |announced| {
            announced.saturating_sub(body.len() as u64).min(MAX_REFUSAL)
        });
        let _ = (&mut socket).take(missing).read_to_end(&mut body).await;
    };
    let _ = tokio::time::timeout(REFUSAL_DEADLINE, rest).await;
    body.truncate(usize::try_from(MAX_REFUSAL).unwrap_or(usize::MAX));
    refusal.body = Bytes::from(body);
    TransportError::refused(Box::new(refusal))
}
