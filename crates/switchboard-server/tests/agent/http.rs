//! The agent over Streamable HTTP, with hand-written requests.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use switchboard_server::http::{Access, HttpOptions, HttpServer, Shutdown, Token};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{World, answered, progress, reply, soon, start};

struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl Server {
    async fn new(world: &World) -> Self {
        let token = Token::new("a-token-for-tests-0123456789abcdef").unwrap();
        let options = HttpOptions::new(Access::Token(token));
        let handler = Arc::new(world.handler());
        let (server, shutdown) = HttpServer::bind(options, handler).await.unwrap();
        Self {
            address: server.local_addr().unwrap(),
            shutdown,
            serving: tokio::spawn(server.serve()),
        }
    }

    async fn stop(self) {
        self.shutdown.stop();
        soon(self.serving).await.unwrap();
    }

    /// POSTs a message and returns the status, the session and the messages of the response.
    async fn post(
        &self,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> (u16, Option<String>, Vec<Value>) {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket));
        let (mut sender, connection) = soon(handshake).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::post("/mcp")
            .header("host", self.address.to_string())
            .header("authorization", "Bearer a-token-for-tests-0123456789abcdef")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(message.to_string()).unwrap();
        let response = soon(sender.send_request(request)).await.unwrap();
        let status = response.status().as_u16();
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|session| session.to_str().unwrap().to_owned());
        let body = soon(read(response.into_body())).await;
        connection.abort();
        // A JSON document or an event stream.
        let messages = if body.starts_with('{') {
            vec![serde_json::from_str(&body).unwrap()]
        } else {
            let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
            let data = data.map(str::trim).filter(|data| !data.is_empty());
            data.map(|data| serde_json::from_str(data).unwrap())
                .collect()
        };
        (status, session, messages)
    }

    /// Makes a call in the stateless era and returns all messages, the answer last.
    async fn call(&self, mut params: Value) -> Vec<Value> {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        let name = params["name"].as_str().unwrap().to_owned();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", name.as_str()),
        ];
        let (status, _, messages) = self.post(&headers, &message).await;
        assert_eq!(status, 200, "{messages:?}");
        messages
    }
}

async fn read(mut body: hyper::body::Incoming) -> String {
    use hyper::body::Body as _;
    let mut bytes = Vec::new();
    while let Some(frame) =
        std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await
    {
        if let Ok(data) = frame.unwrap().into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn sessions_of_the_stateful_era_hold_conversations() {
    let world = World::new();
    let server = Server::new(&world).await;
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let (status, session, messages) = server.post(&[], &hello).await;
    assert_eq!((status, messages.len()), (200, 1));
    let session = session.unwrap();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post(&headers, &ready).await.0, 202);
    let call = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let (_, _, messages) = server.post(&headers, &call(start("hello"))).await;
    let (id, response) = answered(messages.last().unwrap());
    assert_eq!(response, "hello (1)");
    let (_, _, messages) = server.post(&headers, &call(reply(&id, "more"))).await;
    assert_eq!(answered(messages.last().unwrap()).1, "more (3)");
    server.stop().await;
}

#[tokio::test]
async fn single_requests_hold_conversations_across_restarts() {
    let world = World::new();
    let server = Server::new(&world).await;
    std::fs::write(world.folder.path().join("a.txt"), "content\n").unwrap();
    let prompt = r#"call Read {"file_path": "a.txt"}"#;
    let mut messages = server.call(start(prompt)).await;
    let (id, response) = answered(&messages.pop().unwrap());
    assert_eq!(response, "result: 1\tcontent\n");
    assert_eq!(
        progress(&messages).first().map(String::as_str),
        Some("Read started")
    );
    server.stop().await;
    let world = world.restarted();
    let server = Server::new(&world).await;
    let messages = server.call(reply(&id, "more")).await;
    assert!(answered(messages.last().unwrap()).1.starts_with("more ("));
    server.stop().await;
}

#[tokio::test]
async fn a_question_is_answered_by_the_next_request() {
    let world = World::new();
    let server = Server::new(&world).await;
    let prompt = r#"call Bash {"command": "echo $((6 * 7))"}"#;
    let messages = server.call(start(prompt)).await;
    let asked = &messages.last().unwrap()["result"];
    assert_eq!(asked["resultType"], "input_required", "{messages:?}");
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let mut again = start(prompt);
    again["inputResponses"] =
        json!({ key.as_str(): {"action": "accept", "content": {"answer": "once"}} });
    let messages = server.call(again).await;
    assert_eq!(answered(messages.last().unwrap()).1, "result: 42");
    server.stop().await;
}

#[tokio::test]
async fn requests_without_the_token_are_refused() {
    let world = World::new();
    let server = Server::new(&world).await;
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
    let (status, _, _) = server
        .post(&[("authorization", "Bearer wrong")], &hello)
        .await;
    assert!((400..500).contains(&status), "{status}");
    server.stop().await;
}
