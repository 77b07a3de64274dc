//! Sessions of the stateful era, from handshake to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use switchboard::internal::service::{ClientFrame, Sink};
use switchboard_protocol::{Limits, Revision};
use switchboard_server::http::{Access, HttpOptions, HttpServer};
use switchboard_server::{
    Client, ClientKind, Exchange, Handler, Principal, ServiceHandler, SessionKey,
};

use crate::bench::{Bench, soon};
use crate::client::Server;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn a_session_lasts_from_its_handshake_to_its_end() {
    let server = Server::start().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = server.session(version).await;
        assert!(
            session.bytes().all(|byte| byte.is_ascii_graphic()),
            "{session}"
        );
        let accepted = server.within(&session, INITIALIZED).await;
        assert_eq!(
            (accepted.status, accepted.text().await),
            (202, String::new())
        );
        let listed = server.within(&session, LIST).await;
        assert_eq!(listed.status, 200);
        assert_eq!(listed.header("content-type"), Some("application/json"));
        assert!(
            listed
                .text()
                .await
                .starts_with(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["#)
        );
        // In this era errors have status 200.
        let unknown = r#"{"jsonrpc":"2.0","id":2,"method":"nothing/here"}"#;
        let refused = server.within(&session, unknown).await;
        assert_eq!(refused.status, 200);
        assert!(refused.text().await.contains("-32601"));
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(server.bare("DELETE", &headers).await.status, 204);
        assert_eq!(server.within(&session, LIST).await.status, 404);
        assert_eq!(server.within(&session, INITIALIZED).await.status, 404);
        assert_eq!(server.bare("DELETE", &headers).await.status, 404);
        assert_eq!(server.listen(&session, None).await.status, 404);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_without_a_session_is_refused_with_the_reason() {
    let server = Server::start().await;
    assert_eq!(server.post(&[], LIST).await.status, 400);
    assert_eq!(server.post(&[], INITIALIZED).await.status, 400);
    assert_eq!(server.bare("DELETE", &[]).await.status, 400);
    assert_eq!(server.bare("GET", &[]).await.status, 405);
    let old = [("mcp-protocol-version", "2025-11-25")];
    assert_eq!(server.bare("GET", &old).await.status, 400);
    assert_eq!(server.bare("PUT", &[]).await.status, 405);
    assert_eq!(server.bare("OPTIONS", &[]).await.status, 405);
    server.stop().await;
}

#[tokio::test]
async fn a_version_header_that_no_session_can_have_is_refused() {
    let server = Server::start().await;
    let session = server.session("2025-11-25").await;
    for (version, expected) in [
        ("2025-11-25", 200),
        ("2025-06-18", 200),
        ("2026-07-28", 400),
        ("1999-01-01", 400),
        ("", 400),
    ] {
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", version),
        ];
        let answer = server.post(&headers, LIST).await;
        assert_eq!(answer.status, expected, "{version}");
    }
    server.stop().await;
}

#[tokio::test]
async fn batches_are_for_the_revision_that_has_them() {
    let server = Server::start().await;
    let batch = format!(r#"[{LIST},{INITIALIZED},{{"jsonrpc":"2.0","id":2,"method":"ping"}}]"#);
    let session = server.session("2025-03-26").await;
    let answer = server.within(&session, &batch).await;
    assert_eq!(answer.status, 200);
    let answer: serde_json::Value = serde_json::from_str(&answer.text().await).unwrap();
    let ids: Vec<_> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| &answer["id"])
        .collect();
    assert_eq!(ids, [1, 2]);
    let accepted = server.within(&session, &format!("[{INITIALIZED}]")).await;
    assert_eq!(accepted.status, 202);
    let greeting = r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]"#;
    assert_eq!(server.within(&session, greeting).await.status, 400);
    assert_eq!(server.within(&session, "[]").await.status, 400);
    let newer = server.session("2025-06-18").await;
    assert_eq!(server.within(&newer, &batch).await.status, 400);
    assert_eq!(server.post(&[], &batch).await.status, 400);
    // Two concatenated messages are invalid in any revision.
    assert_eq!(
        server
            .within(&session, &format!("{LIST}{LIST}"))
            .await
            .status,
        400
    );
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_that_fails_opens_no_session() {
    let server = Server::start().await;
    let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":17}"#;
    let answer = server.post(&[], greeting).await;
    assert_eq!(
        (answer.status, answer.header("mcp-session-id")),
        (200, None)
    );
    assert!(answer.text().await.contains("-32602"));
    server.stop().await;
}

#[tokio::test]
async fn sessions_over_the_limit_evict_idle_ones_only() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_sessions = 50;
    let server = Server::with(options).await;
    let listening = server.session("2025-11-25").await;
    let mut stream = server.listen(&listening, None).await;
    stream.event().await.unwrap();
    let calling = server.session("2025-11-25").await;
    let mut call = server.call_within(&calling, 1, "report", "{}").await;
    call.data().await.unwrap();
    // Over one connection, because the system would run out of ports.
    let opened = server.sessions_over_one_connection(10_000).await;
    assert_eq!(opened.len(), 10_000);
    assert_eq!(server.within(&opened[0], LIST).await.status, 404);
    assert_eq!(server.within(&opened[9_999], LIST).await.status, 200);
    assert_eq!(server.within(&opened[9_960], LIST).await.status, 200);
    assert_eq!(server.within(&listening, LIST).await.status, 200);
    server.bench.go.notify_one();
    assert!(call.data().await.unwrap().contains(r#""progress":2"#));
    assert!(call.data().await.unwrap().contains("reported"));
    server.stop().await;
}

#[tokio::test]
async fn when_all_sessions_are_in_use_there_is_no_room_for_another() {
    let mut options = HttpOptions::new(Access::Anybody);
    options.limits.max_sessions = 1;
    let server = Server::with(options).await;
    let session = server.session("2025-11-25").await;
    let stream = server.listen(&session, None).await;
    let greeting = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let refused = server.post(&[], greeting).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    drop(stream);
    server.stop().await;
}

/// A handler that can resume one session.
struct Remembering(ServiceHandler, AtomicBool);

impl Handler for Remembering {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        self.0.open(client, sink)
    }

    fn resume(
        &self,
        client: &Client,
        sink: Arc<dyn Sink>,
    ) -> Option<(Box<dyn Exchange>, Revision)> {
        assert_eq!(client.principal, Principal::Anyone);
        let is_known = matches!(&client.kind, ClientKind::Session(key) if key.as_str() == "known")
            && self.1.load(Ordering::Relaxed);
        is_known.then(|| {
            let exchange = Greeted(self.0.open(client, sink));
            exchange.greet();
            let exchange: Box<dyn Exchange> = Box::new(exchange);
            (exchange, Revision::V2025_11_25)
        })
    }

    fn forget(&self, session: &SessionKey) {
        assert_eq!(session.as_str(), "known");
        self.1.store(false, Ordering::Relaxed);
    }
}

/// An exchange that has had its handshake.
struct Greeted(Box<dyn Exchange>);

impl Greeted {
    fn greet(&self) {
        let greeting = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let nowhere: Arc<dyn Sink> = Arc::new(|_: Bytes| {});
        let greeting = ClientFrame::parse(&greeting.into(), &Limits::DEFAULT);
        self.0.receive(greeting, &nowhere);
    }
}

impl Exchange for Greeted {
    fn receive(&self, frame: ClientFrame, sink: &Arc<dyn Sink>) {
        self.0.receive(frame, sink);
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn close(&self) {
        self.0.close();
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.0.ended()
    }
}

#[tokio::test]
async fn a_session_survives_a_restart_if_the_handler_can_resume_it() {
    let handler = Remembering(
        ServiceHandler::new(Arc::new(Bench::default())),
        AtomicBool::new(true),
    );
    let options = HttpOptions::new(Access::Anybody);
    let (server, shutdown) = HttpServer::bind(options, Arc::new(handler)).await.unwrap();
    let server = Server {
        bench: Arc::default(),
        address: server.local_addr().unwrap(),
        shutdown,
        serving: tokio::spawn(server.serve()),
    };
    assert_eq!(server.within("unknown", LIST).await.status, 404);
    assert_eq!(server.within("known", LIST).await.status, 200);
    let headers = [("mcp-session-id", "known")];
    assert_eq!(server.bare("DELETE", &headers).await.status, 204);
    assert_eq!(server.within("known", LIST).await.status, 404);
    server.shutdown.stop();
    soon(server.serving).await.unwrap();
}
