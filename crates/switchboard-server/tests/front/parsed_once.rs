//! Requests are parsed once, by the front end; answers are never parsed.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use switchboard::internal::service::{Answered, ClientFrame, Purpose, Sink};
use switchboard_protocol::{ErrorCode, Revision};
use switchboard_server::http::{Access, HttpOptions, HttpServer};
use switchboard_server::{Client, Exchange, Handler, ServiceHandler};

use crate::bench::Bench;
use crate::client::{MODERN, Server};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Answers every request with the same bytes and this purpose.
#[derive(Clone, Copy)]
struct Opaque(&'static str, Answered);

impl Handler for Opaque {
    fn open(&self, _client: &Client, _sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        Box::new(*self)
    }
}

impl Exchange for Opaque {
    fn receive(&self, _frame: ClientFrame, sink: &Arc<dyn Sink>) {
        sink.send(
            Bytes::from_static(self.0.as_bytes()),
            Purpose::Answer(self.1),
        );
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn close(&self) {}

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

async fn served(handler: impl Handler) -> Server {
    let options = HttpOptions::new(Access::Anybody);
    let (server, shutdown) = HttpServer::bind(options, Arc::new(handler)).await.unwrap();
    Server {
        bench: Arc::default(),
        address: server.local_addr().unwrap(),
        shutdown,
        serving: tokio::spawn(server.serve()),
    }
}

/// Neither the status nor the session depends on the bytes of an answer.
#[tokio::test]
async fn an_answer_is_never_parsed() {
    let result = r#"{"result":{"protocolVersion":"2025-11-25"}}"#;
    let error = r#"{"error":{"code":-32601,"message":"no"}}"#;
    let handshake = Answered::Handshake(Revision::V2025_06_18);
    let failed = Answered::Error(ErrorCode::METHOD_NOT_FOUND);
    for (document, answered, has_session, status) in [
        ("not JSON", handshake, true, 200),
        (error, handshake, true, 200),
        ("not JSON", Answered::Result, false, 200),
        (error, Answered::Result, false, 200),
        (result, Answered::Result, false, 200),
        ("not JSON", failed, false, 404),
        (result, failed, false, 404),
    ] {
        let server = served(Opaque(document, answered)).await;
        let shaken = server.post(&[], HELLO).await;
        assert_eq!(
            (shaken.status, shaken.header("mcp-session-id").is_some()),
            (200, has_session),
            "{document} {answered:?}"
        );
        assert_eq!(shaken.text().await, document);
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{MODERN}}}}}"#);
        let single = server.ask("tools/list", None, &body).await;
        assert_eq!(single.status, status, "{document} {answered:?}");
        assert_eq!(single.text().await, document);
        server.stop().await;
    }
}

/// Resumes every session in this revision, without a handshake of the service.
struct Resuming(ServiceHandler, Revision);

impl Handler for Resuming {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        self.0.open(client, sink)
    }

    fn resume(
        &self,
        client: &Client,
        sink: Arc<dyn Sink>,
    ) -> Option<(Box<dyn Exchange>, Revision)> {
        Some((self.0.open(client, sink), self.1))
    }
}

/// The revision of a session comes with each frame; the service does not determine it again.
#[tokio::test]
async fn the_service_answers_in_the_revision_of_the_session() {
    let service = ServiceHandler::new(Arc::new(Bench::default()));
    let server = served(Resuming(service, Revision::V2025_03_26)).await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for body in [list.to_owned(), format!("[{list}]")] {
        let answer = server.within("known", &body).await;
        assert_eq!(answer.status, 200);
        let text = answer.text().await;
        assert!(text.contains(r#""result":{"tools":["#), "{text}");
    }
    server.stop().await;
}

/// Nesting up to the limit is accepted, and one level more is rejected.
#[tokio::test]
async fn one_limit_of_depth_counts() {
    let server = Server::start().await;
    for (depth, status) in [(100, 200), (128, 200), (129, 400)] {
        // The message and its params take two levels.
        let levels = depth - 2;
        let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{deep},{MODERN}}}}}"#
        );
        let answer = server.ask("tools/list", None, &body).await;
        assert_eq!(answer.status, status, "{depth}");
        assert_eq!(answer.text().await.contains("result"), status == 200);
    }
    server.stop().await;
}
