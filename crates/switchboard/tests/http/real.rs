//! Tests against a third-party server: rmcp, in both eras.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use switchboard::transport::{Closed, Outgoing, OutgoingKind};
use switchboard_protocol::Revision;
use switchboard_protocol::headers::standard;
use tokio::net::TcpListener;

use crate::network::{Event, Record, send, within};
use crate::{connect, server_at};

struct Plain;

impl ServerHandler for Plain {}

async fn start() -> (SocketAddr, Arc<LocalSessionManager>) {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(
        || Ok(Plain),
        Arc::clone(&sessions),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback_service(service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, sessions)
}

fn message(revision: Revision, kind: OutgoingKind, method: &str, params: &Value) -> Outgoing {
    let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if let OutgoingKind::Request(id) = kind {
        message["id"] = json!(id);
    }
    Outgoing {
        payload: message.to_string().into_bytes(),
        kind,
        era: revision.era(),
        headers: standard(revision, method, None, None),
    }
}

async fn answer(record: &mut Record) -> Value {
    match record.next().await {
        Event::Frame(frame) => serde_json::from_str(&frame).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_is_opened_used_and_deleted() {
    let (address, sessions) = start().await;
    let (link, mut record) = connect(server_at(address)).await;
    let revision = Revision::V2025_11_25;
    let hello = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let request =
        |id, method, params: &Value| message(revision, OutgoingKind::Request(id), method, params);
    send(&link, request(1, "initialize", &hello)).await;
    let initialized = answer(&mut record).await;
    assert_eq!(initialized["id"], 1);
    assert_eq!(initialized["result"]["protocolVersion"], revision.as_str());
    let kind = OutgoingKind::Notification;
    send(
        &link,
        message(revision, kind, "notifications/initialized", &json!({})),
    )
    .await;
    link.opened(revision);
    assert_eq!(sessions.sessions.read().await.len(), 1);

    send(&link, request(2, "ping", &json!({}))).await;
    let pong = answer(&mut record).await;
    assert_eq!(pong["id"], 2);
    assert!(pong["error"].is_null(), "{pong}");

    within(link.close()).await;
    assert_eq!(sessions.sessions.read().await.len(), 0);
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn a_stateless_request_needs_no_session() {
    let (address, sessions) = start().await;
    let (link, mut record) = connect(server_at(address)).await;
    let revision = Revision::V2026_07_28;
    let params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": revision.as_str(),
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    for (id, method) in [(1, "server/discover"), (2, "tools/list")] {
        let kind = OutgoingKind::Request(id);
        send(&link, message(revision, kind, method, &params)).await;
        let answer = answer(&mut record).await;
        assert_eq!(answer["id"], id);
        assert!(answer["error"].is_null(), "{answer}");
        link.opened(revision);
    }
    assert_eq!(sessions.sessions.read().await.len(), 0);
    within(link.close()).await;
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}
