//! Tests of servers over WebSocket.

#![expect(clippy::expect_used, reason = "helpers of a test fail by panicking")]

#[path = "../network/mod.rs"]
mod network;
mod proxy;

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use network::{
    Event, LIMIT, Record, answer, certificate, client, client_with, frame, kind, notification,
    recorder, request, self_signed, send, within,
};
use switchboard::internal::transport::http::{HeadersHelper, HttpSettings, RemoteServer};
use switchboard::internal::transport::websocket::WebSocketConnector;
use switchboard::transport::{
    Abandoned, Closed, Connector as _, Link, Outgoing, OutgoingKind, TransportError,
};
use switchboard_config::entry::Transport;
use switchboard_config::secret::Secret;
use switchboard_protocol::Era;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::{
    Frame, coding::CloseCode, coding::Data, coding::OpCode,
};

struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        Self { listener, address }
    }

    fn remote(&self) -> RemoteServer {
        RemoteServer::new(format!("ws://{}/mcp?a=1", self.address))
    }

    async fn tcp(&self) -> TcpStream {
        within(self.listener.accept()).await.expect("a client").0
    }

    /// Accepts a connection with this subprotocol.
    async fn accept(&self, protocol: Option<&str>) -> WebSocketStream<TcpStream> {
        #[expect(
            clippy::result_large_err,
            reason = "the library wants the whole response as the error"
        )]
        let check = |request: &Request, mut response: Response| {
            assert_eq!(request.uri(), "/mcp?a=1");
            let asked = request.headers().get("sec-websocket-protocol");
            assert_eq!(asked.expect("a sub-protocol"), "mcp");
            if let Some(protocol) = protocol {
                let value = protocol.parse().expect("a value");
                response
                    .headers_mut()
                    .insert("sec-websocket-protocol", value);
            }
            Ok(response)
        };
        let accepted = tokio_tungstenite::accept_hdr_async(self.tcp().await, check);
        within(accepted).await.expect("a handshake")
    }

    async fn connected(&self) -> (Arc<dyn Link>, Record, WebSocketStream<TcpStream>) {
        let ((link, record), socket) =
            tokio::join!(connect(self.remote()), self.accept(Some("mcp")));
        (link.expect("a link"), record, socket)
    }
}

async fn connect(server: RemoteServer) -> (Result<Arc<dyn Link>, TransportError>, Record) {
    let connector = WebSocketConnector::new(&client(), server).expect("a connector");
    let (inbound, record) = recorder();
    (within(connector.connect(inbound)).await, record)
}

async fn received(socket: &mut WebSocketStream<TcpStream>) -> Message {
    let message = within(socket.next()).await.expect("a message");
    message.expect("a good message")
}

#[tokio::test]
async fn messages_go_both_ways_one_in_each_frame() {
    let server = Server::start().await;
    let (link, mut record, mut socket) = server.connected().await;
    let waiting = [1, 2, 3].map(|id| link.send(request(id)));
    for sent in waiting {
        within(sent).await.expect("it is sent");
    }
    for id in [1, 2, 3] {
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        assert_eq!(received(&mut socket).await, Message::text(expected));
    }
    socket.send(Message::text(answer(1))).await.expect("sent");
    socket.send(Message::binary(answer(2))).await.expect("sent");
    socket.send(Message::Ping("p".into())).await.expect("sent");
    assert_eq!(received(&mut socket).await, Message::Pong("p".into()));
    // Fragmented, with a ping in between.
    for (payload, code, last) in [("{\"a\"", Data::Text, false), (":1}", Data::Continue, true)] {
        let piece = Frame::message(payload.as_bytes(), OpCode::Data(code), last);
        socket.send(Message::Frame(piece)).await.expect("sent");
        socket.send(Message::Ping("q".into())).await.expect("sent");
    }
    assert_eq!(record.next().await, frame(&answer(1)));
    assert_eq!(record.next().await, frame(&answer(2)));
    assert_eq!(record.next().await, frame(r#"{"a":1}"#));
    assert_eq!(link.abandon(3), Abandoned::NotTold);

    // Text that is not UTF-8 is dropped without closing the connection.
    let broken = Frame::message(&b"\xff\xfe"[..], OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(broken)).await.expect("sent");
    socket.send(Message::text(answer(3))).await.expect("sent");
    assert_eq!(record.next().await, frame("\u{fffd}\u{fffd}"));
    assert_eq!(record.next().await, frame(&answer(3)));

    let ((), ()) = tokio::join!(link.close(), async {
        while let Some(Ok(message)) = within(socket.next()).await {
            assert!(
                matches!(message, Message::Close(_) | Message::Pong(_)),
                "{message:?}"
            );
        }
    });
    let error = link
        .send(notification())
        .await
        .expect_err("the link has ended");
    assert_eq!(kind(&error), "Closed: the link has been closed");
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn a_message_over_the_limit_costs_only_itself() {
    let server = Server::start().await;
    let (_link, mut record, mut socket) = server.connected().await;
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#,
        "x".repeat(5 * LIMIT)
    );
    let start = large[..24].to_owned();
    let oversized = Event::Oversized {
        start,
        limit: LIMIT,
    };
    let exact = "y".repeat(LIMIT);
    for _ in 0..2 {
        socket
            .send(Message::text(exact.clone()))
            .await
            .expect("sent");
        socket
            .send(Message::text(large.clone()))
            .await
            .expect("sent");
        socket.send(Message::text(answer(2))).await.expect("sent");
        assert_eq!(record.next().await, frame(&exact));
        assert_eq!(record.next().await, oversized);
        assert_eq!(record.next().await, frame(&answer(2)));
    }
    // In fragments within the limit, split in the middle of a character.
    let (first, rest) = ("ä".repeat(LIMIT / 2 - 5), "ä".repeat(LIMIT / 2));
    for (payload, code, last) in [
        (&first, Data::Text, false),
        (&rest, Data::Continue, false),
        (&rest, Data::Continue, true),
    ] {
        let piece = Frame::message(payload.clone(), OpCode::Data(code), last);
        socket.send(Message::Frame(piece)).await.expect("sent");
    }
    socket.send(Message::text(answer(3))).await.expect("sent");
    let start = "ä".repeat(12);
    assert_eq!(
        record.next().await,
        Event::Oversized {
            start,
            limit: LIMIT
        }
    );
    assert_eq!(record.next().await, frame(&answer(3)));
    assert_eq!(record.rest(), []);
}

#[tokio::test]
async fn the_sub_protocol_may_be_left_out_but_not_be_another() {
    let server = Server::start().await;
    let check = async |protocol: Option<&str>, expected: Result<(), &str>| {
        let ((link, _record), _socket) =
            tokio::join!(connect(server.remote()), server.accept(protocol));
        assert_eq!(
            link.map(drop).map_err(|error| kind(&error)),
            expected.map_err(str::to_owned)
        );
    };
    check(Some("mcp"), Ok(())).await;
    check(None, Ok(())).await;
    let other = "Protocol: the server chose the WebSocket sub-protocol `wamp` instead of `mcp`";
    check(Some("wamp"), Err(other)).await;
}

/// Reads the head of a request.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.expect("a byte"));
    }
    String::from_utf8(head).expect("text")
}

#[tokio::test]
async fn a_refused_handshake_says_why() {
    let server = Server::start().await;
    let check = async |answer: &'static [u8], expected: &str| {
        let ((link, record), ()) = tokio::join!(connect(server.remote()), async {
            let mut stream = server.tcp().await;
            read_head(&mut stream).await;
            stream.write_all(answer).await.expect("written");
        });
        let error = link.err().expect("a refusal");
        let shown = kind(&error).replace(&server.address.to_string(), "HERE");
        assert!(shown.starts_with(expected), "{shown}");
        assert_eq!(record.end().await, []);
        error
    };
    let error = check(
        b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 2\r\n\r\nno",
        "Protocol: the server answered with HTTP status 401",
    )
    .await;
    let refusal = error.refusal.expect("a refusal");
    assert_eq!(refusal.challenges, ["Bearer"]);
    assert_eq!(refusal.body, "no");
    check(
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "Protocol: the server answered with HTTP status 200",
    )
    .await;
    check(
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n",
        "Protocol: the server does not complete the WebSocket handshake",
    )
    .await;
    check(
        b"",
        "Protocol: HERE closed the connection before it answered",
    )
    .await;
    check(
        b"\x15\x03\x01\x00\x02\x02\x16",
        "Protocol: HERE does not answer in HTTP",
    )
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn headers_are_sent_and_renewed_after_a_401() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().expect("folder");
    let count = folder.path().join("count");
    let script = format!(
        "echo x >> {0}; echo \"X-Turn: $(wc -l < {0} | tr -d ' ')\"",
        count.display()
    );
    let mut remote = server.remote();
    remote.headers = vec![("Authorization".to_owned(), Secret::new("Bearer t"))];
    remote.headers_helper = HeadersHelper::from_words(&["sh", "-c", &script].map(str::to_owned));
    let ((link, _record), ()) = tokio::join!(connect(remote), async {
        let mut stream = server.tcp().await;
        let head = read_head(&mut stream).await.to_ascii_lowercase();
        assert!(head.contains("\r\nauthorization: bearer t\r\n"), "{head}");
        assert!(head.contains("\r\nx-turn: 1\r\n"), "{head}");
        let refusal = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal).await.expect("written");
        let mut stream = server.tcp().await;
        let head = read_head(&mut stream).await.to_ascii_lowercase();
        assert!(head.contains("\r\nx-turn: 2\r\n"), "{head}");
        stream
            .write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            .await
            .expect("written");
    });
    assert_eq!(link.err().expect("a refusal").status(), Some(403));
}

#[tokio::test]
async fn the_end_of_the_connection_is_the_end_of_the_link() {
    let server = Server::start().await;
    let close = |code: u16, reason: &'static str| {
        Message::Close(Some(CloseFrame {
            code: CloseCode::from(code),
            reason: reason.into(),
        }))
    };
    let check = async |message: Option<Message>, expected: Closed| {
        let (link, mut record, mut socket) = server.connected().await;
        match message {
            Some(message) => {
                socket.send(message).await.expect("sent");
                // The close is answered.
                while let Some(Ok(_)) = within(socket.next()).await {}
            }
            None => drop(socket),
        }
        assert_eq!(record.next().await, Event::Closed(expected));
        within(link.close()).await;
        drop(link);
        assert_eq!(record.end().await, []);
    };
    let broken = |text: &str| Closed::Broken(text.to_owned());
    check(Some(close(1000, "")), Closed::ByServer).await;
    check(Some(close(1001, "bye")), Closed::ByServer).await;
    check(
        Some(close(1011, "out of\u{1b} memory")),
        broken("the server closed it with code 1011: out of\\u{1b} memory"),
    )
    .await;
    check(
        None,
        broken("the server ended it without a closing handshake"),
    )
    .await;
    let reserved = Frame::message("x", OpCode::Data(Data::Reserved(3)), true);
    let (_link, mut record, mut socket) = server.connected().await;
    socket.send(Message::Frame(reserved)).await.expect("sent");
    let Event::Closed(Closed::Broken(reason)) = record.next().await else {
        panic!("the connection is not closed");
    };
    assert!(
        reason.starts_with("the server violates the WebSocket protocol"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_read_fills_a_bounded_queue() {
    let server = Server::start().await;
    let (link, record, socket) = server.connected().await;
    let large = || Outgoing {
        payload: vec![b'x'; 4 * 1024 * 1024],
        kind: OutgoingKind::Notification,
        era: Era::Stateful,
        headers: Vec::new(),
    };
    let mut refused = None;
    for _ in 0..40 {
        let sent = link.send(large());
        // Polled once: a refusal is immediate.
        if let Some(Err(error)) = futures_util::FutureExt::now_or_never(sent) {
            refused = Some(kind(&error));
            break;
        }
    }
    let expected = "Io: the server does not read; too many messages are queued";
    assert_eq!(refused.as_deref(), Some(expected));
    // Closing is bounded, although the server does not respond.
    within(link.close()).await;
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
    drop(socket);
}

#[tokio::test]
async fn a_dropped_link_ends_its_connection() {
    let server = Server::start().await;
    let (link, record, mut socket) = server.connected().await;
    drop(link);
    while let Some(Ok(message)) = within(socket.next()).await {
        assert!(message.is_close(), "{message:?}");
    }
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn what_keeps_a_connection_from_opening_is_told_apart() {
    let server = Server::start().await;
    let address = server.address;
    let (link, _record) = connect(RemoteServer::new("ws://127.0.0.1:1/")).await;
    let error = link.err().expect("connection refused");
    assert_eq!(
        kind(&error),
        "Refused: the connection to 127.0.0.1:1 was refused"
    );

    let name = format!("{}.invalid", "a".repeat(64));
    let (link, _record) = connect(RemoteServer::new(format!("ws://{name}/"))).await;
    let error = link.err().expect("no such name");
    assert_eq!(kind(&error), format!("Dns: cannot resolve host {name}"));

    let ((link, _record), ()) = tokio::join!(
        connect(RemoteServer::new(format!("wss://{address}/"))),
        async {
            let mut stream = server.tcp().await;
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .await
                .expect("written");
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    );
    let expected =
        format!("Tls: {address} does not speak TLS; if it should not, use http:// or ws://");
    assert_eq!(kind(&link.err().expect("no TLS")), expected);

    let secret = RemoteServer::new("ws://user:hunter2@127.0.0.1/");
    let error = WebSocketConnector::new(&client(), secret).expect_err("credentials");
    assert_eq!(
        kind(&error),
        "Invalid: credentials in the address of a WebSocket are not sent; use a header"
    );
    let http = RemoteServer::new("http://127.0.0.1/");
    let error = WebSocketConnector::new(&client(), http).expect_err("no WebSocket address");
    assert_eq!(
        kind(&error),
        "Invalid: `http://127.0.0.1/` is not a valid address: its scheme is not ws or wss"
    );
}

#[tokio::test]
async fn wss_trusts_what_https_trusts() {
    for (root, acceptor) in [certificate(&[]), self_signed()] {
        wss_trusts(root, acceptor).await;
    }
}

async fn wss_trusts(root: Vec<u8>, acceptor: TlsAcceptor) {
    let server = Server::start().await;
    let client = client_with(HttpSettings {
        extra_roots: vec![root],
        ..HttpSettings::default()
    });
    let remote = RemoteServer::new(format!("wss://localhost:{}/", server.address.port()));
    let connector = WebSocketConnector::new(&client, remote).expect("a connector");
    assert_eq!(connector.transport(), Transport::Ws);
    let (inbound, mut record) = recorder();
    let (link, socket) = tokio::join!(connector.connect(inbound), async {
        let stream = acceptor.accept(server.tcp().await).await.expect("TLS");
        tokio_tungstenite::accept_async(stream)
            .await
            .expect("a handshake")
    });
    let (link, mut socket) = (link.expect("a link"), socket);
    send(&link, request(1)).await;
    let message = within(socket.next())
        .await
        .expect("a message")
        .expect("a message");
    assert!(message.is_text());
    socket.send(Message::text(answer(1))).await.expect("sent");
    assert_eq!(record.next().await, frame(&answer(1)));
}
