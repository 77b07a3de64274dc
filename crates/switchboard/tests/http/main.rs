//! Tests of servers over HTTP: both eras, the legacy transport, and failures.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail by panicking"
)]

mod faults;
mod legacy;
#[path = "../network/mod.rs"]
mod network;
mod real;
mod resumption;
mod streamable;
mod tls;
#[path = "../network/web.rs"]
mod web;

use std::net::SocketAddr;
use std::sync::Arc;

use network::{Record, client, notification, recorder, send, within};
use switchboard::internal::transport::http::{HttpClient, RemoteServer, StreamableConnector};
use switchboard::transport::{Connector as _, Link, Outgoing, OutgoingKind};
use switchboard_protocol::headers::Header;
use switchboard_protocol::{Era, Revision};
use web::Web;

fn server_at(address: SocketAddr) -> RemoteServer {
    RemoteServer::new(format!("http://{address}/mcp"))
}

async fn connect(server: RemoteServer) -> (Arc<dyn Link>, Record) {
    connect_with(&client(), server).await
}

async fn connect_with(client: &HttpClient, server: RemoteServer) -> (Arc<dyn Link>, Record) {
    let connector = StreamableConnector::new(client, server).expect("a connector");
    let (inbound, record) = recorder();
    let link = within(connector.connect(inbound)).await.expect("a link");
    (link, record)
}

/// A link in a session of the stateful era, without a server-initiated stream.
async fn in_session(web: &mut Web) -> (Arc<dyn Link>, Record) {
    let (link, mut record) = connect(server_at(web.address)).await;
    send(&link, network::request(0)).await;
    let asked = web.next().await;
    let response = axum::http::Response::builder()
        .header("content-type", "application/json")
        .header("mcp-session-id", "s-1")
        .body(network::answer(0).into());
    asked.reply(response.expect("a response"));
    assert_eq!(record.next().await, network::frame(&network::answer(0)));
    link.opened(Revision::V2025_11_25);
    web.next().await.reply_with(405, "", "");
    (link, record)
}

/// A request of the stateless era.
fn stateless_request(id: u64) -> Outgoing {
    let header = |name: &'static str, value: &str| Header {
        name: name.into(),
        value: value.to_owned(),
    };
    Outgoing {
        era: Era::Stateless,
        headers: vec![
            header("MCP-Protocol-Version", "2026-07-28"),
            header("Mcp-Method", "tools/list"),
        ],
        ..network::request(id)
    }
}

fn response_to_server() -> Outgoing {
    Outgoing {
        kind: OutgoingKind::Response,
        ..notification()
    }
}

fn failed(request: u64, failure: &str) -> network::Event {
    network::Event::Failed(request, failure.to_owned())
}
