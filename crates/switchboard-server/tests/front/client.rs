//! A server under test, and a hand-written HTTP client.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use switchboard_server::http::{Access, HttpOptions, HttpServer, Shutdown};
use switchboard_server::{Handler, ServiceHandler};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::bench::{Bench, soon};

pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) struct Server {
    pub(crate) bench: Arc<Bench>,
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: Shutdown,
    pub(crate) serving: JoinHandle<()>,
}

pub(crate) struct Answered {
    pub(crate) status: u16,
    head: Response<()>,
    body: Incoming,
    unread: Vec<u8>,
    /// Drives the connection, which is closed when the answer is dropped.
    connection: JoinHandle<()>,
}

/// One event of a stream; all fields of a comment are `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) retry: Option<String>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(HttpOptions::new(Access::Anybody)).await
    }

    pub(crate) async fn with(options: HttpOptions) -> Self {
        Self::serving(options, |bench| Arc::new(bench)).await
    }

    /// Serves the bench through a handler.
    pub(crate) async fn serving(
        options: HttpOptions,
        handler: impl FnOnce(ServiceHandler) -> Arc<dyn Handler>,
    ) -> Self {
        let bench = Arc::new(Bench::default());
        let handler = handler(ServiceHandler::new(bench.clone()));
        let (server, shutdown) = HttpServer::bind(options, handler).await.unwrap();
        let address = server.local_addr().unwrap();
        Self {
            bench,
            address,
            shutdown,
            serving: tokio::spawn(server.serve()),
        }
    }

    pub(crate) async fn send(&self, request: Request<String>) -> Answered {
        let socket = TcpStream::connect(self.address).await.unwrap();
        send_over(socket, request).await
    }

    /// POSTs a body with these headers besides the usual ones.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> Answered {
        self.post_to("/mcp", headers, body).await
    }

    pub(crate) async fn post_to(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut request = Request::post(path)
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.to_owned()).unwrap()).await
    }

    /// POSTs a stateless request.
    pub(crate) async fn ask(&self, method: &str, name: Option<&str>, body: &str) -> Answered {
        let mut headers = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.post(&headers, body).await
    }

    /// POSTs a stateless call.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Answered {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#
        );
        self.ask("tools/call", Some(tool), &body).await
    }

    /// Sends a request without a body, such as GET and DELETE.
    pub(crate) async fn bare(&self, method: &str, headers: &[(&str, &str)]) -> Answered {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(String::new()).unwrap()).await
    }

    /// Performs a handshake and returns the session id.
    pub(crate) async fn session(&self, version: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"elicitation":{{}}}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        );
        let answer = self.post(&[], &body).await;
        assert_eq!(answer.status, 200);
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let body = answer.text().await;
        assert!(
            body.contains(&format!(r#""protocolVersion":"{version}""#)),
            "{body}"
        );
        session
    }

    /// Opens this many sessions over one connection and returns their ids.
    pub(crate) async fn sessions_over_one_connection(&self, count: usize) -> Vec<String> {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket));
        let (mut sender, connection) = soon(handshake).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut names = Vec::new();
        for _ in 0..count {
            let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
            let request = Request::post("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json");
            let request = request.body(body.to_owned()).unwrap();
            soon(sender.ready()).await.unwrap();
            let mut answer = soon(sender.send_request(request)).await.unwrap();
            let name = answer.headers().get("mcp-session-id").unwrap();
            names.push(name.to_str().unwrap().to_owned());
            while let Some(frame) = soon(std::future::poll_fn(|context| {
                Pin::new(answer.body_mut()).poll_frame(context)
            }))
            .await
            {
                frame.unwrap();
            }
        }
        connection.abort();
        names
    }

    /// POSTs within a session.
    pub(crate) async fn within(&self, session: &str, body: &str) -> Answered {
        self.post(&[("mcp-session-id", session)], body).await
    }

    /// Calls a tool within a session, with a progress token.
    pub(crate) async fn call_within(
        &self,
        session: &str,
        id: u64,
        tool: &str,
        arguments: &str,
    ) -> Answered {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":7}}}}}}"#
        );
        self.within(session, &body).await
    }

    /// Opens the stream of a session.
    pub(crate) async fn listen(&self, session: &str, last_event: Option<&str>) -> Answered {
        let mut headers = vec![("mcp-session-id", session), ("accept", "text/event-stream")];
        headers.extend(last_event.map(|last| ("last-event-id", last)));
        self.bare("GET", &headers).await
    }

    pub(crate) async fn stop(self) {
        self.shutdown.stop();
        soon(self.serving).await.unwrap();
    }
}

pub(crate) async fn send_over<S>(socket: S, request: Request<String>) -> Answered
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(socket));
    let (mut sender, connection) = soon(handshake).await.unwrap();
    let connection = tokio::spawn(async move {
        // Some tests expect the connection to be cut off.
        let _ = connection.await;
    });
    let answer = soon(sender.send_request(request)).await.unwrap();
    let (head, body) = answer.into_parts();
    Answered {
        status: head.status.as_u16(),
        head: Response::from_parts(head, ()),
        body,
        unread: Vec::new(),
        connection,
    }
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name)?.to_str().ok()
    }

    /// Reads the whole body.
    pub(crate) async fn text(mut self) -> String {
        while let Some(piece) = self.piece().await {
            self.unread.extend_from_slice(&piece);
        }
        String::from_utf8(std::mem::take(&mut self.unread)).unwrap()
    }

    /// The next event that is not a comment; `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            let event = self.block().await?;
            if event != Event::default() {
                return Some(event);
            }
        }
    }

    /// The data of the next event that has any.
    pub(crate) async fn data(&mut self) -> Option<String> {
        loop {
            let data = self.event().await?.data.filter(|data| !data.is_empty());
            if data.is_some() {
                return data;
            }
        }
    }

    /// The next event or comment.
    pub(crate) async fn block(&mut self) -> Option<Event> {
        let mut scanned = 0;
        let end = loop {
            let unseen = &self.unread[scanned..];
            if let Some(end) = unseen.windows(2).position(|window| window == b"\n\n") {
                break scanned + end;
            }
            scanned = self.unread.len().saturating_sub(1);
            let piece = self.piece().await?;
            self.unread.extend_from_slice(&piece);
        };
        let block: Vec<u8> = self.unread.drain(..end + 2).collect();
        let block = String::from_utf8(block).unwrap();
        let mut event = Event::default();
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(':').unwrap();
            let value = Some(value.trim_start().to_owned());
            match field {
                "id" => event.id = value,
                "data" => event.data = value,
                "retry" => event.retry = value,
                "" | "event" => {}
                other => panic!("unknown field {other}"),
            }
        }
        Some(event)
    }

    /// The next chunk of the body; `None` at its end, or if the connection is cut off.
    async fn piece(&mut self) -> Option<Bytes> {
        let frame = soon(std::future::poll_fn(|context| {
            Pin::new(&mut self.body).poll_frame(context)
        }))
        .await?;
        frame.ok()?.into_data().ok()
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
