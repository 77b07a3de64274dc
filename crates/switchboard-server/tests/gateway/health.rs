//! `/healthz`, `/readyz` and `/metrics` of a gateway over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_server::http::{Access, Address, HttpOptions, HttpServer, Token};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::Client;
use super::{Era, World, soon};

/// Sends a GET request and returns the status and the body.
async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let token = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[tokio::test]
async fn health_needs_no_token_and_metrics_need_one() {
    let world = World::new(Era::Stateful);
    let mut client = Client::new(&world, Era::Stateful).await;
    client.call("mcp__desk__echo", json!({})).await;
    client.call("mcp__desk__nothing", json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token = Token::load_or_create(&file).unwrap();
    let mut options = HttpOptions::new(Access::Token(token));
    options.address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    let bound = HttpServer::bind(options, Arc::new(world.gateway.clone())).await;
    let (server, _shutdown) = bound.unwrap();
    let url = server.url().unwrap();
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let serving = tokio::spawn(server.serve());

    let token = std::fs::read_to_string(&file).unwrap();
    let token = Some(token.trim());
    assert_eq!(
        get(address, "/healthz", None).await,
        (200, r#"{"status":"ok"}"#.to_owned())
    );
    let (status, body) = get(address, "/readyz", None).await;
    assert_eq!((status, body.as_str()), (200, r#"{"status":"ready"}"#));
    let (_, body) = get(address, "/readyz", token).await;
    let detail: Value = serde_json::from_str(&body).unwrap();
    let expected = json!([{"name": "desk", "state": "connected", "required": false, "tools": 9, "reason": null}]);
    assert_eq!(detail["servers"], expected);

    let (status, _) = get(address, "/metrics", None).await;
    assert_eq!(status, 401);
    let (status, metrics) = get(address, "/metrics", token).await;
    assert_eq!(status, 200);
    for line in [
        r#"switchboard_calls_total{server="desk",tool="echo",outcome="done"} 1"#,
        r#"switchboard_calls_total{server="other",tool="other",outcome="failed"} 1"#,
        r#"switchboard_call_duration_seconds_count{server="desk",tool="echo"} 1"#,
        r#"switchboard_call_duration_seconds_bucket{server="desk",tool="echo",le="+Inf"} 1"#,
        r#"switchboard_server_state{server="desk",state="connected"} 1"#,
        r#"switchboard_server_tools{server="desk"} 9"#,
        r#"switchboard_server_restarts_total{server="desk"} 0"#,
        r#"switchboard_requests_running{server="desk"} 0"#,
        r#"switchboard_requests_waiting{server="desk"} 0"#,
        r#"switchboard_breaker_closed{server="desk"} 1"#,
        "switchboard_clients 1",
    ] {
        assert!(
            metrics.lines().any(|each| each == line),
            "{line}\n{metrics}"
        );
    }
    serving.abort();
}
