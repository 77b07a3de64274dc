//! Tests of WebSocket through a proxy from the environment.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use switchboard::internal::transport::http::{HttpSettings, ProxySettings, RemoteServer};
use switchboard::internal::transport::websocket::WebSocketConnector;
use switchboard::transport::{
    Connector as _, Destination, Link, TransportError, TransportErrorKind,
};
use switchboard_config::secret::Secret;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::network::{certificate, client_with, recorder, request, send, within};

/// A proxy for one request.
struct Proxy {
    listener: TcpListener,
    address: SocketAddr,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        Self { listener, address }
    }

    /// The head of the request, and the connection.
    async fn asked(&self) -> (String, TcpStream) {
        let (mut stream, _) = within(self.listener.accept()).await.expect("a client");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(stream.read_u8()).await.expect("a byte"));
        }
        (String::from_utf8(head).expect("text"), stream)
    }

    /// Connects a client to this address, regardless of its request. Returns the head of the request.
    async fn let_through(&self, server: SocketAddr) -> String {
        let (head, mut stream) = self.asked().await;
        let answer = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n";
        stream.write_all(answer).await.expect("it is written");
        let mut onward = TcpStream::connect(server).await.expect("a server");
        tokio::spawn(async move { copy_bidirectional(&mut stream, &mut onward).await });
        head
    }

    /// Responds with `answer`. Returns the head of the request.
    async fn answer(&self, answer: &str) -> String {
        let (head, mut stream) = self.asked().await;
        stream
            .write_all(answer.as_bytes())
            .await
            .expect("it is written");
        head
    }
}

fn through(proxy: &Proxy) -> ProxySettings {
    let named = Secret::new(format!("http://u:p%40ss@{}", proxy.address));
    ProxySettings {
        all: Some(named),
        except: Some("localhost, 10.0.0.0/8, .internal".to_owned()),
        ..ProxySettings::default()
    }
}

fn connector(url: &str, proxy: ProxySettings, extra_roots: Vec<Vec<u8>>) -> WebSocketConnector {
    let client = client_with(HttpSettings {
        proxy,
        extra_roots,
        ..HttpSettings::default()
    });
    WebSocketConnector::new(&client, RemoteServer::new(url)).expect("a connector")
}

async fn connect(connector: &WebSocketConnector) -> Result<Arc<dyn Link>, TransportError> {
    let (inbound, _record) = recorder();
    within(connector.connect(inbound)).await
}

/// Serves one WebSocket and returns its first message.
async fn first_message(stream: impl AsyncRead + AsyncWrite + Unpin) -> Message {
    let mut socket = within(tokio_tungstenite::accept_async(stream))
        .await
        .expect("a handshake");
    within(socket.next())
        .await
        .expect("a message")
        .expect("a good message")
}

const EXPECTED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test]
async fn a_proxy_is_asked_to_connect_to_the_server() {
    let (proxy, server) = (Proxy::start().await, Proxy::start().await);
    let connector = connector("ws://mcp.invalid/x", through(&proxy), Vec::new());
    assert!(matches!(
        connector.destination(),
        Destination::Address {
            has_proxy: true,
            ..
        }
    ));
    let serving = async {
        let (stream, _) = within(server.listener.accept()).await.expect("a client");
        Box::pin(first_message(stream)).await
    };
    let using = async {
        let link = connect(&connector).await.expect("a link");
        send(&link, request(1)).await;
        link
    };
    let (head, message, _link) = tokio::join!(proxy.let_through(server.address), serving, using);
    assert_eq!(
        head,
        "CONNECT mcp.invalid:80 HTTP/1.1\r\nHost: mcp.invalid:80\r\nProxy-Authorization: Basic dTpwQHNz\r\n\r\n"
    );
    assert_eq!(message, Message::text(EXPECTED));
}

#[tokio::test]
async fn tls_is_spoken_with_the_server_behind_the_proxy() {
    let (proxy, server) = (Proxy::start().await, Proxy::start().await);
    let (root, acceptor) = certificate(&["http/1.1"]);
    let settings = ProxySettings {
        https: Some(Secret::new(proxy.address.to_string())),
        // Not used for WebSocket.
        http: Some(Secret::new("http://127.0.0.1:9")),
        ..ProxySettings::default()
    };
    let port = server.address.port();
    let connector = connector(&format!("wss://localhost:{port}/x"), settings, vec![root]);
    let serving = async {
        let (stream, _) = within(server.listener.accept()).await.expect("a client");
        let stream = within(acceptor.accept(stream)).await.expect("TLS");
        Box::pin(first_message(stream)).await
    };
    let using = async {
        let link = connect(&connector).await.expect("a link");
        send(&link, request(1)).await;
        link
    };
    let (head, message, _link) = tokio::join!(proxy.let_through(server.address), serving, using);
    let target = format!("localhost:{port}");
    assert_eq!(
        head,
        format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
    );
    assert_eq!(message, Message::text(EXPECTED));
}

#[tokio::test]
async fn what_is_excepted_is_reached_directly() {
    let (proxy, server) = (Proxy::start().await, Proxy::start().await);
    let url = format!("ws://localhost:{}/x", server.address.port());
    let connector = connector(&url, through(&proxy), Vec::new());
    assert!(matches!(
        connector.destination(),
        Destination::Address {
            has_proxy: false,
            ..
        }
    ));
    let serving = async {
        let (stream, _) = within(server.listener.accept()).await.expect("a client");
        within(tokio_tungstenite::accept_async(stream))
            .await
            .expect("a handshake")
    };
    let (link, _socket) = tokio::join!(connect(&connector), serving);
    assert!(link.is_ok());
}

#[tokio::test]
async fn a_proxy_that_does_not_let_through_is_told_apart_from_the_server() {
    let check = async |answer: &str, kind, status: Option<u16>, expected: &str| {
        let proxy = Proxy::start().await;
        let connector = connector("wss://mcp.invalid/x", through(&proxy), Vec::new());
        let (link, _) = tokio::join!(connect(&connector), proxy.answer(answer));
        let error = link.err().expect("an error");
        let message = error.message.replace(&proxy.address.to_string(), "PROXY");
        let refused = error.refusal.as_ref().map(|refusal| refusal.status);
        assert_eq!((error.kind, refused), (kind, status), "{answer}: {message}");
        assert!(message.contains(expected), "{message}");
        // Its password must not be shown.
        assert!(!format!("{error:?}").contains("p@ss"), "{error:?}");
    };
    let kind = TransportErrorKind::Unreachable;
    let refused = "the proxy PROXY does not connect to mcp.invalid:443: status 502";
    check("HTTP/1.1 502 Bad Gateway\r\n\r\n", kind, None, refused).await;
    // A proxy's 401 does not mean that the server requires a login.
    check(
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\n\r\n",
        kind,
        None,
        "status 401",
    )
    .await;
    let kind = TransportErrorKind::Protocol;
    check(
        "HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n",
        kind,
        Some(407),
        "407",
    )
    .await;
    check(
        "SSH-2.0-x\r\n\r\n",
        kind,
        None,
        "the proxy cannot be used: PROXY does not answer in HTTP",
    )
    .await;
    check(
        "",
        kind,
        None,
        "the proxy cannot be used: PROXY closed the connection",
    )
    .await;
    check(
        "HTTP/1.1 200 OK\r\n\r\nmore",
        kind,
        None,
        "the proxy PROXY sends data after its response",
    )
    .await;
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let proxy = Proxy::start().await;
    let settings = through(&proxy);
    let place = proxy.address.to_string();
    drop(proxy);
    let connector_there = connector("ws://mcp.invalid/x", settings, Vec::new());
    let error = connect(&connector_there).await.err().expect("an error");
    assert_eq!(error.kind, TransportErrorKind::Refused);
    assert!(
        error.message.starts_with("the proxy cannot be used: "),
        "{error}"
    );
    assert!(error.message.contains(&place), "{error}");
}
