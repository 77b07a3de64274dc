//! Clients that must be rejected, and clients that try to exhaust the server.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::Request;
use switchboard_server::ServiceHandler;
use switchboard_server::http::{Access, Address, BindErrorKind, HttpOptions, HttpServer, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::{Bench, soon, tasks, wait_until};
use crate::client::{Server, send_over};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn guarded() -> HttpOptions {
    HttpOptions::new(Access::Token(Token::new(SECRET).unwrap()))
}

#[tokio::test]
async fn only_local_clients_with_the_token_are_served() {
    let mut options = guarded();
    options.allowed_origins = vec!["https://app.example".into()];
    let server = Server::with(options).await;
    let own = server.address.to_string();
    let bearer = format!("Bearer {SECRET}");
    let (host, token) = (("host", own.as_str()), ("authorization", bearer.as_str()));
    for (headers, expected) in [
        (vec![host, token], 200),
        (vec![("host", "localhost"), token], 200),
        (vec![host, token, ("origin", "http://localhost:6274")], 200),
        (vec![host, token, ("origin", "https://app.example")], 200),
        (vec![host], 401),
        (vec![host, ("authorization", "Bearer wrong")], 401),
        (vec![host, ("authorization", "Basic dXNlcjpwYXNz")], 401),
        (vec![("host", "evil.example"), token], 421),
        (vec![("host", "evil.example:80")], 421),
        (vec![host, token, ("origin", "https://evil.example")], 403),
        (vec![host, token, ("origin", "null")], 403),
        (vec![token], 400),
    ] {
        for method in ["POST", "GET", "DELETE", "OPTIONS"] {
            let mut request = Request::builder().method(method).uri("/mcp");
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let request = request.header("content-type", "application/json");
            let answer = server.send(request.body(PING.to_owned()).unwrap()).await;
            // A client with access gets an error about the request instead.
            let expected = match (expected, method) {
                (200, "GET" | "OPTIONS") => 405,
                (200, "DELETE") => 400,
                _ => expected,
            };
            assert_eq!(answer.status, expected, "{method} {headers:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge.is_some(), expected == 401, "{challenge:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn with_cors_pages_of_allowed_origins_can_read_answers() {
    let mut options = guarded();
    options.cors = true;
    options.allowed_origins = vec!["https://app.example".into()];
    let server = Server::with(options).await;
    let origin = ("origin", "https://app.example");
    let wanted = ("access-control-request-method", "POST");
    let asked = server.bare("OPTIONS", &[origin, wanted]).await;
    assert_eq!(asked.status, 204);
    assert_eq!(
        asked.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let bearer = format!("Bearer {SECRET}");
    let answer = server
        .post(&[origin, ("authorization", &bearer)], PING)
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    // A page has to be able to see that it lacks the token.
    let answer = server.post(&[origin], PING).await;
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let evil = server
        .bare("OPTIONS", &[("origin", "https://evil.example"), wanted])
        .await;
    assert_eq!(
        (evil.status, evil.header("access-control-allow-origin")),
        (403, None)
    );
    server.stop().await;
}

#[tokio::test]
async fn remote_addresses_need_to_be_allowed() {
    let bind = |allow_remote| async move {
        let mut options = guarded();
        options.address = Address::Tcp(SocketAddr::from(([0, 0, 0, 0], 0)));
        options.allow_remote = allow_remote;
        let handler = ServiceHandler::new(std::sync::Arc::new(Bench::default()));
        HttpServer::bind(options, std::sync::Arc::new(handler)).await
    };
    let error = bind(false).await.unwrap_err();
    assert!(matches!(error.kind, BindErrorKind::Remote));
    assert_eq!(
        error.to_string(),
        "cannot listen on 0.0.0.0:0: other machines could reach it"
    );
    assert!(bind(true).await.is_ok());
}

#[tokio::test]
async fn invalid_requests_are_answered_with_the_reason() {
    let server = Server::start().await;
    let request = |headers: &[(&str, &str)], uri: &str| {
        let mut request = Request::post(uri).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(PING.to_owned()).unwrap()
    };
    let json = ("content-type", "application/json");
    for (headers, uri, expected) in [
        (vec![json], "/mcp", 200),
        (
            vec![("content-type", "Application/JSON; charset=utf-8")],
            "/mcp?x=1",
            200,
        ),
        (vec![json, ("accept", "*/*")], "/mcp", 200),
        (
            vec![json, ("accept", "text/*;q=0.5, application/json")],
            "/mcp",
            200,
        ),
        (vec![json, ("accept", "application/json")], "/mcp", 406),
        (vec![json, ("accept", "text/html")], "/mcp", 406),
        // A page can send these without a preflight request.
        (vec![("content-type", "text/plain")], "/mcp", 415),
        (vec![], "/mcp", 415),
        (vec![json], "/", 404),
        (vec![json], "/mcp/", 404),
        (
            vec![json, ("mcp-session-id", "a"), ("mcp-session-id", "b")],
            "/mcp",
            400,
        ),
        (vec![json, ("mcp-session-id", "unknown")], "/mcp", 404),
        (vec![json, ("mcp-session-id", "")], "/mcp", 404),
    ] {
        let answer = server.send(request(&headers, uri)).await;
        assert_eq!(answer.status, expected, "{uri} {headers:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_body_bytes = 1_000;
    let server = Server::with(options).await;
    let fits = format!("{PING}{}", " ".repeat(1_000 - PING.len()));
    assert_eq!(server.post(&[], &fits).await.status, 200);
    assert_eq!(server.post(&[], &format!("{fits} ")).await.status, 413);
    // With a content length, it is rejected before the body arrives.
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let announced = format!("{head}content-length: 99999999999\r\n\r\n");
    assert_eq!(
        raw(&server, &announced).await,
        "HTTP/1.1 413 Payload Too Large"
    );
    // Without one, it is rejected once it exceeds the limit.
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1024));
    let creeping = format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}");
    assert_eq!(
        raw(&server, &creeping).await,
        "HTTP/1.1 413 Payload Too Large"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_limit_on_bodies_above_16_mib_counts() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_body_bytes = 20 * 1024 * 1024;
    let server = Server::with(options).await;
    let padded = |bytes: usize| {
        let text = "x".repeat(bytes);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"text":"{text}"}}}}"#)
    };
    let answer = server.post(&[], &padded(18 * 1024 * 1024)).await;
    assert_eq!(answer.status, 200);
    let text = answer.text().await;
    assert!(text.contains(r#""result""#), "{text}");
    let answer = server.post(&[], &padded(20 * 1024 * 1024)).await;
    assert_eq!(answer.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_is_not_of_json_rpc_2_is_refused() {
    let server = Server::start().await;
    for body in [
        r#"{"id":5,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#,
        r#"{"jsonrpc":2,"id":5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
    ] {
        let answer = server.post(&[], body).await;
        assert_eq!(answer.status, 400, "{body}");
        let text = answer.text().await;
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{body}: {text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn slow_senders_time_out() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.body_deadline = Duration::from_millis(100);
    options.limits.head_deadline = Duration::from_millis(300);
    let server = Server::with(options).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let slow = format!("{head}content-length: 100\r\n\r\n{{");
    assert_eq!(raw(&server, &slow).await, "HTTP/1.1 408 Request Timeout");
    // An incomplete head gets no answer, or 408.
    let status = raw(&server, head).await;
    assert!(status.is_empty() || status.contains("408"), "{status}");
    // An endless head exceeds its limit.
    let endless = format!("{head}x: {}", "x".repeat(200_000));
    assert_eq!(
        raw(&server, &endless).await,
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
    server.stop().await;
}

#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.stall_deadline = Duration::from_millis(200);
    options.limits.max_queued_bytes = 1024 * 1024;
    let server = Server::with(options).await;
    let at_rest = tasks();
    // Far more than the socket buffers and the queue hold: most of it is dropped, and the rest is not waited for.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"bytes":50000000},"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: big\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    server.bench.ended.reaches(1).await;
    // The same as a stream that is never read.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let flood = request
        .replace("big", "flood")
        .replace(r#"{"bytes":50000000}"#, r#"{"count":5000,"bytes":10000}"#);
    let length = flood.rsplit("\r\n\r\n").next().unwrap().len();
    let flood = flood.replace(
        &format!("content-length: {}", body.len()),
        &format!("content-length: {length}"),
    );
    stream.write_all(flood.as_bytes()).await.unwrap();
    server.bench.ended.reaches(2).await;
    // Both connections are cleaned up, although nothing was read.
    wait_until(|| tasks() <= at_rest).await;
    for mut socket in [socket, stream] {
        // The data already in the socket buffer can be read; then the connection ends, long before the complete answer.
        let mut read = 0;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match soon(socket.read(&mut buffer)).await {
                Ok(0) | Err(_) => break,
                Ok(more) => read += more,
            }
        }
        assert!(read < 45_000_000, "{read} bytes were written");
    }
    server.stop().await;
}

#[tokio::test]
async fn connections_are_bounded_and_waiting_ones_are_served_later() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_connections = 2;
    let server = Server::with(options).await;
    let mut one = server.call("report", "{}").await;
    let mut other = server.call("report", "{}").await;
    one.data().await.unwrap();
    other.data().await.unwrap();
    let mut waiting = Box::pin(server.post(&[], PING));
    // A server with free slots answers many times in the meantime.
    let roomy = Server::with(HttpOptions::new(Access::Anybody)).await;
    let meanwhile = async {
        for _ in 0..50 {
            assert_eq!(roomy.post(&[], PING).await.status, 200);
        }
    };
    tokio::select! {
        _ = &mut waiting => panic!("it was served although all slots are taken"),
        () = meanwhile => {}
    }
    roomy.stop().await;
    drop(one);
    assert_eq!(soon(&mut waiting).await.status, 200);
    drop((waiting, other));
    server.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let bind = || {
        let mut options = HttpOptions::new(Access::Anybody);
        options.address = Address::Unix(path.clone());
        let handler = ServiceHandler::new(std::sync::Arc::new(Bench::default()));
        HttpServer::bind(options, std::sync::Arc::new(handler))
    };
    let (server, shutdown) = bind().await.unwrap();
    assert_eq!((server.local_addr(), server.url()), (None, None));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The path cannot be bound twice.
    assert!(bind().await.is_err());
    let serving = tokio::spawn(server.serve());
    let socket = tokio::net::UnixStream::connect(&path).await.unwrap();
    let request = Request::post("/mcp")
        .header("host", "whatever")
        .header("content-type", "application/json");
    let answer = send_over(socket, request.body(PING.to_owned()).unwrap()).await;
    assert_eq!(answer.status, 200);
    drop(answer);
    shutdown.stop();
    soon(serving).await.unwrap();
    assert!(!path.exists());
    // A stale socket file is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    assert!(bind().await.is_ok());
}

/// Sends bytes and returns the status line of the answer; empty if there is none.
async fn raw(server: &Server, request: &str) -> String {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    // The server may close the connection before everything is written.
    let _ = socket.write_all(request.as_bytes()).await;
    let mut answer = vec![0; 4096];
    let read = soon(socket.read(&mut answer)).await.unwrap_or(0);
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}
