//! Twelve accidents that happened to other gateways, and the tests that show that they do not happen to this one.
//!
//! | accident | seen in | tests |
//! |---|---|---|
//! | the gateway is one of its own servers | MetaMCP #133 | `own_program` of the CLI tests: `switchboard_is_never_one_of_its_own_servers`, `a_server_knows_that_switchboard_started_it` |
//! | clients that start at once start a daemon each | mcphub.nvim #19 | `daemon` of the CLI tests: `clients_that_come_at_once_share_one_daemon_and_its_servers` |
//! | sessions of clients that never send DELETE fill the memory | n8n #33201 | `sessions` of the front end tests: `sessions_over_the_limit_evict_idle_ones_only` |
//! | a server forgets its session, and all sessions of clients fail | agentgateway #3622 | [`a_server_that_forgets_its_session_is_initialized_again_by_itself`] |
//! | first calls at once connect a server several times | metamcp #273 | [`first_calls_at_once_share_one_connection`] |
//! | a server that ignores the end of its input is never gone | MCPJungle #207 | `stdio` of the host tests: `closing_ends_even_the_stubborn_and_says_so_once` |
//! | a question of a server does not arrive on the stream of the call | ContextForge #4302 | [`a_question_arrives_on_the_stream_of_its_call`] |
//! | a header names another tool than the body | zentinel #443 | [`a_header_that_names_another_tool_is_refused`] |
//! | another client uses the state of a request | | [`a_state_cannot_be_replayed_by_another_principal`] |
//! | a server with an empty list looks healthy | LiteLLM #17650 | the state of such a server says so (`state.rs` of the CLI), and `doctor` warns (`doctor/habits.rs` of the host) |
//! | a client adds a program over HTTP, and it is started | CVE-2026-42271 | [`no_method_adds_a_server`]; untrusted project files: `untrusted` of the CLI tests |
//! | a token expires in a gateway that runs for long | ContextForge #1023 | `logins` of the test crate: `sixteen_processes_refresh_an_expired_token_once` |

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{
    HttpClient, HttpSettings, RemoteServer, StreamableConnector,
};
use switchboard::permissions::Policy;
use switchboard_server::gateway::GatewayOptions;
use switchboard_server::http::{Access, Address, HttpOptions, HttpServer, Shutdown};
use switchboard_server::{Handler, Principal, ServiceHandler};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::client::{Client, all, text};
use super::upstream::Upstream;
use super::{Era, World, soon};

/// A listening server.
struct Listening {
    url: String,
    shutdown: Shutdown,
    serving: JoinHandle<()>,
}

impl Listening {
    async fn start(handler: Arc<dyn Handler>, port: u16) -> Self {
        let mut options = HttpOptions::new(Access::Anybody);
        options.address = Address::Tcp(([127, 0, 0, 1], port).into());
        options.limits.stream_after = Duration::from_millis(20);
        let (server, shutdown) = HttpServer::bind(options, handler).await.unwrap();
        Self {
            url: server.url().unwrap(),
            shutdown,
            serving: tokio::spawn(server.serve()),
        }
    }

    async fn stop(self) {
        self.shutdown.stop();
        soon(self.serving).await.unwrap();
    }

    fn port(&self) -> u16 {
        let address = self.url.strip_prefix("http://127.0.0.1:").unwrap();
        address.split('/').next().unwrap().parse().unwrap()
    }
}

fn over_http(name: &str, url: &str) -> ServerSpec {
    let client = HttpClient::new(HttpSettings::default()).unwrap();
    let connector = StreamableConnector::new(&client, RemoteServer::new(url)).unwrap();
    ServerSpec::new(
        name,
        Arc::new(connector),
        ConnectionKey::of(&[name.as_bytes()]),
    )
}

#[tokio::test]
async fn a_server_that_forgets_its_session_is_initialized_again_by_itself() {
    let (desk, shelf) = (Arc::new(Upstream::default()), Arc::new(Upstream::default()));
    let handler = |upstream: &Arc<Upstream>| {
        Arc::new(ServiceHandler::new(Arc::clone(upstream) as _)) as Arc<dyn Handler>
    };
    let first = Listening::start(handler(&desk), 0).await;
    let second = Listening::start(handler(&shelf), 0).await;
    let specs = vec![
        over_http("desk", &first.url),
        over_http("shelf", &second.url),
    ];
    let world = World::of(
        Arc::clone(&desk),
        specs,
        Policy::gateway(),
        Era::Stateful,
        GatewayOptions::default(),
    );
    let mut client = Client::new(&world, Era::Stateful).await;
    for tool in ["mcp__desk__echo", "mcp__shelf__echo"] {
        let answer = client.call(tool, json!({"a": 1})).await;
        assert_eq!(text(&answer), r#"{"a":1}"#);
    }
    // After its restart, the server answers 404 to requests of the old session.
    let port = first.port();
    first.stop().await;
    let again = Listening::start(handler(&desk), port).await;
    for tool in ["mcp__desk__echo", "mcp__shelf__echo"] {
        let answer = client.call(tool, json!({"a": 2})).await;
        assert_eq!(text(&answer), r#"{"a":2}"#, "{tool}");
    }
    assert_eq!(desk.connections.load(Ordering::Relaxed), 2);
    assert_eq!(shelf.connections.load(Ordering::Relaxed), 1);
    world.host.shutdown().await;
    again.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn first_calls_at_once_share_one_connection() {
    for servers in [Era::Stateful, Era::Stateless] {
        let world = World::new(servers);
        let calls = (0..32).map(|number| {
            let world = &world;
            async move {
                let mut client = Client::new(world, Era::Stateful).await;
                let answer = client.call("mcp__desk__echo", json!({"n": number})).await;
                assert_eq!(text(&answer), json!({"n": number}).to_string());
            }
        });
        soon(join_all(calls)).await;
        assert_eq!(world.upstream.connections.load(Ordering::Relaxed), 1);
    }
}

/// Sends a POST and reads until the text occurs in the answer.
async fn post(url: &str, headers: &[(&str, &str)], body: &Value, until: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let address = address.split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut chunk = [0; 4096];
    while !answer.contains(until) {
        let read = soon(stream.read(&mut chunk)).await.unwrap();
        assert!(read > 0, "{answer}");
        answer.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    answer
}

#[tokio::test]
async fn a_question_arrives_on_the_stream_of_its_call() {
    let world = World::new(Era::Stateful);
    let front = Listening::start(Arc::new(world.gateway.clone()), 0).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": all(), "clientInfo": {"name": "t", "version": "1"},
    }});
    let answer = post(&front.url, &[], &hello, "serverInfo").await;
    let session = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then(|| value.trim().to_owned())
    });
    let session = session.unwrap();
    let headers = [
        ("Mcp-Session-Id", session.as_str()),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "mcp__desk__ask", "arguments": {},
    }});
    // No other stream is open.
    let asked = post(&front.url, &headers, &call, "How many?").await;
    assert!(asked.contains("elicitation/create"), "{asked}");
    front.stop().await;
}

#[tokio::test]
async fn a_header_that_names_another_tool_is_refused() {
    let world = World::new(Era::Stateful);
    let front = Listening::start(Arc::new(world.gateway.clone()), 0).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "mcp__desk__echo", "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    for (name, status) in [("mcp__desk__echo", "200"), ("mcp__desk__log", "400")] {
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", name),
        ];
        let answer = post(&front.url, &headers, &call, "}").await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&expected), "{answer}");
    }
    front.stop().await;
}

#[tokio::test]
async fn a_state_cannot_be_replayed_by_another_principal() {
    for servers in [Era::Stateful, Era::Stateless] {
        let world = World::new(servers);
        let token = |name: &str| Principal::Token(name.into());
        let mut alice = Client::of(token("alice"), &world, Era::Stateless, all()).await;
        let mut mallory = Client::of(token("mallory"), &world, Era::Stateless, all()).await;
        let mut params = json!({"name": "mcp__desk__ask", "arguments": {}});
        let first = alice.request("tools/call", params.clone()).await;
        let asked = first["result"]["inputRequests"].as_object().unwrap();
        let key = asked.keys().next().unwrap();
        params["requestState"] = first["result"]["requestState"].clone();
        params["inputResponses"] = json!({key: {"action": "accept", "content": {"count": 5}}});
        let stolen = mallory.request("tools/call", params.clone()).await;
        assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
        assert_eq!(world.upstream.answered.load(Ordering::Relaxed), 0);
        // The attempt has not used it up.
        let answer = alice.request("tools/call", params).await;
        assert_eq!(text(&answer), r#"Accept {"count":5}"#);
    }
}

#[tokio::test]
async fn no_method_adds_a_server() {
    let world = World::new(Era::Stateful);
    let mut client = Client::new(&world, Era::Stateful).await;
    let entry = json!({"name": "evil", "command": "sh", "args": ["-c", "touch /tmp/owned"]});
    for method in ["servers/add", "mcp/add", "config/set"] {
        let answer = client.request(method, entry.clone()).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    let names: Vec<String> = world
        .host
        .statuses()
        .iter()
        .map(|status| status.name.to_string())
        .collect();
    assert_eq!(names, ["desk"]);
}
