//! A client that sends raw messages over an in-process link, and records all responses.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::service::Service;
use switchboard::transport::{
    Closed, Connector, Inbound, Link, Outgoing, OutgoingKind, RequestFailure, TransportError,
};
use switchboard_protocol::Era;
use tokio::sync::mpsc;

/// The `_meta` of a request of the stateless era.
pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// An `initialize` with id 0.
pub(crate) fn initialize(version: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"test","version":"1"}}}}}}"#
    )
}

pub(crate) fn outgoing(text: &str) -> Outgoing {
    Outgoing {
        payload: text.as_bytes().to_vec(),
        kind: OutgoingKind::Notification,
        era: Era::Stateful,
        headers: Vec::new(),
    }
}

/// Records what a link delivers.
struct Recorder {
    frames: mpsc::UnboundedSender<String>,
    closed: Mutex<Vec<Closed>>,
    closing: tokio::sync::Notify,
}

impl Inbound for Recorder {
    fn frame(&self, frame: Bytes) {
        let _ = self
            .frames
            .send(String::from_utf8(frame.into()).expect("text"));
    }

    fn oversized(&self, _start: &[u8], _limit: usize) {
        unreachable!("nothing is too large in-process");
    }

    fn failed(&self, _request: u64, _failure: RequestFailure) {
        unreachable!("every request is answered in-process");
    }

    fn diagnostic(&self, _line: &str) {}

    fn closed(&self, closed: Closed) {
        self.closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(closed);
        self.closing.notify_one();
    }
}

pub(crate) struct Client {
    link: Option<Arc<dyn Link>>,
    frames: mpsc::UnboundedReceiver<String>,
    recorder: Arc<Recorder>,
    service: Arc<dyn Service>,
    /// The number of references to the service before the link was created.
    holders: usize,
}

impl Client {
    /// A client with its own service.
    pub(crate) async fn connect(service: impl Service) -> Self {
        Self::connect_to(Arc::new(service)).await
    }

    /// A client with its own service, after the handshake.
    pub(crate) async fn greet(service: impl Service, version: &str, capabilities: &str) -> Self {
        let mut client = Self::connect(service).await;
        client.send(&initialize(version, capabilities)).await;
        client.next().await;
        client
    }

    /// A client of a shared service.
    pub(crate) async fn connect_to(service: Arc<dyn Service>) -> Self {
        let (sender, frames) = mpsc::unbounded_channel();
        let recorder = Arc::new(Recorder {
            frames: sender,
            closed: Mutex::default(),
            closing: tokio::sync::Notify::new(),
        });
        let inbound = Arc::clone(&recorder) as Arc<dyn Inbound>;
        let holders = Arc::strong_count(&service);
        let connector = InProcessConnector::new(Arc::clone(&service));
        let link = connector.connect(inbound).await;
        Self {
            link: Some(link.expect("connects")),
            frames,
            recorder,
            service,
            holders,
        }
    }

    pub(crate) fn link(&self) -> &dyn Link {
        self.link.as_deref().expect("the link is there")
    }

    /// Another handle of the link.
    pub(crate) fn shared_link(&self) -> Arc<dyn Link> {
        Arc::clone(self.link.as_ref().expect("the link is there"))
    }

    /// Drops the link without closing it.
    pub(crate) fn drop_link(&mut self) {
        self.link = None;
    }

    pub(crate) async fn send(&self, text: &str) {
        self.try_send(text).await.expect("sends");
    }

    /// Sends a message; returns the error.
    pub(crate) async fn try_send(&self, text: &str) -> Result<(), TransportError> {
        self.link().send(outgoing(text)).await
    }

    /// Calls a tool without arguments.
    pub(crate) async fn call(&self, id: u64, tool: &str) {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#
        ))
        .await;
    }

    pub(crate) async fn next(&mut self) -> String {
        self.frames.recv().await.expect("a frame")
    }

    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(self.next().await);
        }
        frames
    }

    /// All frames received so far.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.frames.try_recv().ok()).collect()
    }

    /// Closes the link, and asserts that no other frames were received, that it closed once, and that everything was
    /// released.
    pub(crate) async fn end(mut self) {
        self.link().close().await;
        assert_eq!(self.closed().await, Closed::ByUs);
        self.drop_link();
        assert_eq!(self.rest(), Vec::<String>::new());
        // Running tasks hold references to the service; wait until only the earlier ones are left.
        while Arc::strong_count(&self.service) > self.holders {
            tokio::task::yield_now().await;
        }
    }

    /// Waits for the reason the link closed; panics if it closed more than once.
    pub(crate) async fn closed(&self) -> Closed {
        self.recorder.closing.notified().await;
        let closed = self
            .recorder
            .closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        assert_eq!(closed.len(), 1);
        closed[0].clone()
    }
}
