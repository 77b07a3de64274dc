//! Clients over WebSocket, and clients of the transport of 2024-11-05.

use futures_util::{SinkExt as _, StreamExt as _};
use hyper::Request;
use switchboard_server::http::{Access, HttpOptions, Token};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::bench::soon;
use crate::client::{Answered, Server};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const GREETING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const ECHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;

fn guarded() -> HttpOptions {
    HttpOptions::new(Access::Token(Token::new(SECRET).unwrap()))
}

async fn open(
    server: &Server,
    headers: &[(&'static str, &str)],
) -> Result<WebSocketStream<TcpStream>, Error> {
    let url = format!("ws://{}/ws", server.address);
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let socket = TcpStream::connect(server.address).await.unwrap();
    let opened = soon(tokio_tungstenite::client_async(request, socket)).await;
    opened.map(|(socket, _)| socket)
}

/// The status with which a WebSocket is refused.
async fn refused(server: &Server, headers: &[(&'static str, &str)]) -> u16 {
    match open(server, headers).await {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

async fn received(socket: &mut WebSocketStream<TcpStream>) -> String {
    loop {
        match soon(socket.next()).await.unwrap().unwrap() {
            Message::Text(text) => return text.to_string(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_over_websocket_is_served() {
    let server = Server::with(guarded()).await;
    let bearer = format!("Bearer {SECRET}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("sec-websocket-protocol", "mcp"),
    ];
    let mut socket = open(&server, &headers).await.unwrap();
    // Line breaks are allowed within a message.
    let greeting = GREETING.replace(',', ",\r\n");
    socket.send(Message::text(greeting)).await.unwrap();
    let hello = received(&mut socket).await;
    assert!(
        hello.contains(r#""protocolVersion":"2024-11-05""#),
        "{hello}"
    );
    socket.send(Message::text(ECHO)).await.unwrap();
    let answer = received(&mut socket).await;
    assert!(
        answer.contains(r#""id":1"#) && answer.contains("hello"),
        "{answer}"
    );
    // A call that runs when the client leaves is cancelled.
    let wait = ECHO
        .replace("echo", "wait")
        .replace(r#""id":1"#, r#""id":2"#);
    let before = server.bench.ended.now();
    socket.send(Message::text(wait)).await.unwrap();
    socket
        .send(Message::text(ECHO.replace(r#""id":1"#, r#""id":3"#)))
        .await
        .unwrap();
    received(&mut socket).await;
    drop(socket);
    server.bench.ended.reaches(before + 2).await;
    server.stop().await;
}

#[tokio::test]
async fn websockets_pass_the_same_access_control() {
    let server = Server::with(guarded()).await;
    let bearer = format!("Bearer {SECRET}");
    let token = ("authorization", bearer.as_str());
    assert_eq!(refused(&server, &[]).await, 401);
    assert_eq!(
        refused(&server, &[("authorization", "Bearer wrong")]).await,
        401
    );
    assert_eq!(
        refused(&server, &[token, ("origin", "https://evil.example")]).await,
        403
    );
    assert_eq!(
        refused(&server, &[token, ("host", "evil.example")]).await,
        421
    );
    let other = [token, ("sec-websocket-protocol", "chat")];
    assert_eq!(refused(&server, &other).await, 400);
    let request = Request::get("/ws")
        .header("host", "localhost")
        .header("authorization", &bearer);
    let answer = server.send(request.body(String::new()).unwrap()).await;
    assert_eq!(
        (answer.status, answer.header("upgrade")),
        (426, Some("websocket"))
    );
    assert!(open(&server, &[token]).await.is_ok());
    server.stop().await;
}

/// Opens the stream of a legacy client and returns it with the announced path.
async fn stream(server: &Server, token: &str) -> (Answered, String) {
    let request = Request::get("/sse")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header("authorization", token);
    let mut stream = server.send(request.body(String::new()).unwrap()).await;
    assert_eq!(stream.status, 200);
    let path = stream.data().await.unwrap();
    assert!(path.starts_with("/messages?session="), "{path}");
    (stream, path)
}

#[tokio::test]
async fn a_legacy_client_gets_its_answers_on_its_stream() {
    let server = Server::with(guarded()).await;
    let bearer = format!("Bearer {SECRET}");
    let headers = [("authorization", bearer.as_str())];
    let (mut events, path) = stream(&server, &bearer).await;
    assert_eq!(server.post_to(&path, &headers, GREETING).await.status, 202);
    let hello = events.data().await.unwrap();
    assert!(
        hello.contains(r#""protocolVersion":"2024-11-05""#),
        "{hello}"
    );
    assert_eq!(server.post_to(&path, &headers, ECHO).await.status, 202);
    assert!(events.data().await.unwrap().contains("hello"));
    assert_eq!(server.post_to(&path, &[], ECHO).await.status, 401);
    assert_eq!(
        server.post_to(&path, &headers, "not json").await.status,
        400
    );
    let unknown = "/messages?session=unknown";
    assert_eq!(server.post_to(unknown, &headers, ECHO).await.status, 404);
    // The session ends with its stream, and so do its calls.
    let before = server.bench.ended.now();
    let wait = ECHO.replace("echo", "wait");
    assert_eq!(server.post_to(&path, &headers, &wait).await.status, 202);
    drop(events);
    server.bench.ended.reaches(before + 1).await;
    soon(async {
        while server.post_to(&path, &headers, ECHO).await.status != 404 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.stop().await;
}
