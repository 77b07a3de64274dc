//! Tunnels through a proxy with HTTP CONNECT.
//!
//! The proxy's password is sent to the proxy alone and never part of a message.

use hyper_util::client::proxy::matcher::Intercept;
use tokio::io::AsyncWriteExt as _;

use super::handshake::{Place, Socket, read_head, refused};
use crate::transport::http::HttpClient;
use crate::transport::{TransportError, TransportErrorKind};

/// The status of a proxy that requires a login.
const LOGIN_WANTED: u16 = 407;

pub(super) async fn open(
    client: &HttpClient,
    proxy: &Intercept,
    end: &Place,
) -> Result<Socket, TransportError> {
    let uri = proxy.uri();
    let (is_secure, port) = match uri.scheme_str() {
        Some("http") => (false, 80),
        Some("https") => (true, 443),
        _ => {
            let message = "the proxy for WebSocket connections is not an HTTP proxy";
            return Err(TransportError::new(TransportErrorKind::Invalid, message));
        }
    };
    let port = uri.port_u16().unwrap_or(port);
    let place = Place::of(uri.host().unwrap_or_default(), port);
    let mut socket = place.connect().await.map_err(on_the_way)?;
    if is_secure {
        socket = place.secure(client, socket).await.map_err(on_the_way)?;
    }
    let target = end.shown();
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(login) = proxy.basic_auth() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(login.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let failed = |error: std::io::Error| on_the_way(place.failed(&error));
    socket.write_all(&request).await.map_err(failed)?;
    socket.flush().await.map_err(failed)?;
    let shown = place.shown();
    let answer = read_head(&mut socket, &shown, "").await;
    let (response, tail) = answer.map_err(on_the_way)?;
    match response.status().as_u16() {
        // The server does not send first, so bytes received already are not from it.
        200..=299 if tail.is_empty() => Ok(socket),
        200..=299 => {
            let message = format!("the proxy {shown} sends data after its response");
            Err(TransportError::new(TransportErrorKind::Protocol, message))
        }
        LOGIN_WANTED => Err(refused(response, tail, socket).await),
        // Not a server refusal: the status comes from the proxy.
        status => {
            let message =
                format!("the proxy {shown} does not connect to {target}: status {status}");
            Err(TransportError::new(
                TransportErrorKind::Unreachable,
                message,
            ))
        }
    }
}

/// An error before the server was reached.
fn on_the_way(error: TransportError) -> TransportError {
    TransportError {
        message: format!("the proxy cannot be used: {}", error.message),
        ..error
    }
}
