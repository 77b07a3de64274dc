//! Floods of connections without a token must not displace clients that have one.
//!
//! Deadlines are an hour unless a test is about them, so no test passes because an attacker timed out.

use std::time::Duration;

use hyper::Request;
use switchboard_server::http::{Access, HttpOptions, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::{soon, wait_until};
use crate::client::Server;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const SECRET: &str = "0123456789abcdef0123456789abcdef";
const HOUR: Duration = Duration::from_secs(3_600);

fn patient() -> HttpOptions {
    let mut options = HttpOptions::new(Access::Token(Token::new(SECRET).unwrap()));
    options.limits.head_deadline = HOUR;
    options.limits.body_deadline = HOUR;
    options.limits.idle_deadline = HOUR;
    options
}

/// Raises the limit of open files as far as the system allows, and returns how many connections fit with both ends.
fn room_for_connections() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / 2).unwrap_or(usize::MAX) - 200
}

async fn ping(server: &Server) -> u16 {
    let bearer = format!("Bearer {SECRET}");
    server
        .post(&[("authorization", &bearer)], PING)
        .await
        .status
}

/// A connection that sends this text and then nothing.
async fn half_open(server: &Server, sent: &str) -> TcpStream {
    let mut socket = soon(TcpStream::connect(server.address)).await.unwrap();
    // The server may have closed it already.
    let _ = socket.write_all(sent.as_bytes()).await;
    socket
}

/// Reads until the server closes the connection.
async fn rest(mut socket: TcpStream) -> String {
    let mut all = Vec::new();
    // A reset counts as an end.
    let _ = soon(socket.read_to_end(&mut all)).await;
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn half_open_connections_do_not_starve_a_valid_client() {
    let server = Server::with(patient()).await;
    // The stream of an already connected client must continue.
    let bearer = format!("Bearer {SECRET}");
    let token = ("authorization", bearer.as_str());
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{},"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let modern = [
        token,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "report"),
    ];
    let mut stream = server.post(&modern, body).await;
    stream.data().await.unwrap();

    let count = room_for_connections().min(2_400);
    assert!(count >= 1_200, "the flood must exceed every default limit");
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        let sent = match number % 4 {
            0 => "",
            1 => "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthoriz",
            2 => "P",
            _ => {
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
            }
        };
        held.push(half_open(&server, sent).await);
        if number % 300 == 0 {
            assert_eq!(ping(&server).await, 200, "after {number}");
        }
    }
    assert_eq!(ping(&server).await, 200);
    server.bench.go.notify_one();
    let data = stream.data().await.unwrap();
    assert!(data.contains(r#""progress":2"#), "{data}");
    drop((held, stream));
    server.stop().await;
}

#[tokio::test]
async fn a_flood_that_does_not_stop_does_not_starve_a_valid_client() {
    let mut options = patient();
    options.limits.max_strangers = 16;
    options.limits.max_strangers_per_address = 16;
    let server = Server::with(options).await;
    let address = server.address;
    let flood = tokio::spawn(async move {
        let mut held = std::collections::VecDeque::new();
        loop {
            held.push_back(TcpStream::connect(address).await.unwrap());
            if held.len() > 200 {
                held.pop_front();
            }
        }
    });
    for number in 0..200 {
        assert_eq!(ping(&server).await, 200, "{number}");
    }
    flood.abort();
    server.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_valid_request_has_a_short_deadline_and_a_known_one_a_long_one() {
    let mut options = patient();
    options.limits.head_deadline = Duration::from_millis(200);
    let server = Server::with(options).await;
    // A known client may be idle for longer than a stranger.
    let mut known = soon(TcpStream::connect(server.address)).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {SECRET}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{PING}",
        PING.len()
    );
    let mut answer = [0; 4096];
    known.write_all(request.as_bytes()).await.unwrap();
    soon(known.read(&mut answer)).await.unwrap();
    for sent in [
        "",
        "POST /mcp HTTP/1.1\r\n",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\n",
    ] {
        let socket = half_open(&server, sent).await;
        assert_eq!(rest(socket).await, "", "{sent:?} is not answered");
    }
    known.write_all(request.as_bytes()).await.unwrap();
    let read = soon(known.read(&mut answer)).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 200 OK"));
    // The same for a client that sends an endless head slowly.
    let mut slow = soon(TcpStream::connect(server.address)).await.unwrap();
    slow.write_all(b"POST /mcp HTTP/1.1\r\n").await.unwrap();
    let dripping = async {
        while slow.write_all(b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(dripping).await;
    server.stop().await;
}

#[tokio::test]
async fn an_idle_known_connection_is_closed_at_its_deadline() {
    let mut options = patient();
    options.limits.idle_deadline = Duration::from_millis(100);
    let server = Server::with(options).await;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {SECRET}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{PING}",
        PING.len()
    );
    let socket = half_open(&server, &request).await;
    let answer = rest(socket).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_refused_request_ends_its_connection() {
    let server = Server::with(patient()).await;
    let refused = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    for (sent, status) in [
        // The server waits neither for a missing body nor for further requests.
        (
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{".to_owned(),
            "401",
        ),
        (refused.repeat(100), "401"),
        (
            "GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n".repeat(3),
            "421",
        ),
        ("GET / HTTP/1.1\r\n\r\n".repeat(3), "400"),
        ("\u{0}\u{1}garbage\r\n\r\n".repeat(100), "400"),
        ("{\"jsonrpc\":\"2.0\"}\n".repeat(100), "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), ""),
    ] {
        let socket = half_open(&server, &sent).await;
        let answer = rest(socket).await;
        let answers = answer.matches("HTTP/1.1 ").count();
        let expected = usize::from(!status.is_empty());
        assert!(answers <= expected, "{sent:?}: {answer}");
        assert!(
            answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{sent:?}: {answer}"
        );
    }
    assert_eq!(ping(&server).await, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_known_connection_may_be_refused_a_request_and_go_on() {
    let server = Server::with(patient()).await;
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {SECRET}"))
        .header("content-type", "text/plain");
    let answer = server.send(request.body(PING.to_owned()).unwrap()).await;
    assert_eq!(answer.status, 415);
    assert_eq!(answer.header("connection"), None);
    drop(answer);
    let answer = server.post(&[], PING).await;
    assert_eq!(
        (answer.status, answer.header("connection")),
        (401, Some("close"))
    );
    drop(answer);
    // All connections are cleaned up.
    let server_tasks = || crate::bench::tasks();
    wait_until(|| server_tasks() <= 1).await;
    server.stop().await;
}
