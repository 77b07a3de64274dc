//! Opens a WebSocket: TCP, a tunnel through a proxy (`tunnel.rs`), TLS, and the HTTP upgrade.
//!
//! The upgrade is done here instead of by the library, to accept a server that selects no sub-protocol, and to report
//! the status, challenges and body of one that refuses.

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

const SUBPROTOCOL: &str = "mcp";
/// Maximum size of a response head.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum size of a refusal's body, and the time to read it.
const MAX_REFUSAL: u64 = 64 * 1024;
const REFUSAL_DEADLINE: Duration = Duration::from_secs(2);

pub(super) type Socket = Box<dyn Stream>;

/// A bidirectional byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Opens a connection and upgrades it. Also returns the bytes the server sent right after its response.
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

/// Connects to the server directly or through the proxy.
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
    /// A place from a host name or address; brackets are optional.
    pub(super) fn of(host: &str, port: u16) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            host: host.to_owned(),
            port,
        }
    }

    /// `host:port`, as in URLs.
    pub(super) fn shown(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    pub(super) async fn connect(&self) -> Result<Socket, TransportError> {
        let host = self.host.as_str();
        let unknown = |_| {
            let message = format!("cannot resolve host {host}");
            TransportError::new(TransportErrorKind::Dns, message)
        };
        let found = tokio::net::lookup_host((host, self.port)).await;
        let found: Vec<_> = found.map_err(unknown)?.collect();
        let stream = TcpStream::connect(found.as_slice())
            .await
            .map_err(|error| self.failed(&error))?;
        // Messages are small and latency matters.
        let _ = stream.set_nodelay(true);
        Ok(Box::new(stream))
    }

    /// Starts TLS on a connection to this place.
    pub(super) async fn secure(
        &self,
        client: &HttpClient,
        socket: Socket,
    ) -> Result<Socket, TransportError> {
        let mut config = client.tls().as_ref().clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            let message = format!("{} is not a valid TLS server name", self.host);
            TransportError::new(TransportErrorKind::Invalid, message)
        })?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(Box::new(stream))
    }

    /// Classifies an error of a connection to this place.
    pub(super) fn failed(&self, error: &std::io::Error) -> TransportError {
        if let Some(tls) = tls_error(error) {
            return TransportError::new(TransportErrorKind::Tls, describe_tls(tls, &self.shown()));
        }
        let (kind, message) = describe_io(error, &self.shown());
        TransportError::new(kind, message)
    }
}

/// The upgrade request as bytes.
///
/// Built here, because the library would log it with its secrets. Header names and values are valid by their types, and
/// so are the parts of an address.
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

/// Reads a response head, and the bytes received after it.
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
                    "{place} sends headers over the size limit"
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

/// Checks that the server upgraded to the right protocol.
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
            "the server uses a WebSocket extension that was not requested".to_owned(),
        );
    }
    match header("sec-websocket-protocol") {
        None | Some("" | SUBPROTOCOL) => Ok(()),
        Some(other) => broken_rules(format!(
            "the server chose the WebSocket sub-protocol `{}` instead of `{SUBPROTOCOL}`",
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
    // The raw body, chunked or not: it is only shown to users.
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
