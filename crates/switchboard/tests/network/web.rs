//! A web server whose responses the test writes, request by request.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Response, Version};
use axum::serve::Listener;
use bytes::Bytes;
use futures_util::Stream;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::network::within;

/// A web server; dropping it stops it.
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    requests: mpsc::UnboundedReceiver<Asked>,
    serving: JoinHandle<()>,
}

/// A request that awaits its response.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    reply: oneshot::Sender<Response<Body>>,
}

impl Web {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        Self::serve(listener, address)
    }

    pub(crate) fn start_on_socket(path: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        Self::serve(listener, SocketAddr::from(([0, 0, 0, 0], 0)))
    }

    pub(crate) async fn start_with_tls(acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        Self::serve(TlsListener { listener, acceptor }, address)
    }

    fn serve<L: Listener>(listener: L, address: SocketAddr) -> Self
    where
        L::Addr: std::fmt::Debug,
    {
        let (sender, requests) = mpsc::unbounded_channel();
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let sender = sender.clone();
            async move { ask(request, &sender).await }
        });
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Self {
            address,
            requests,
            serving,
        }
    }

    /// The next request of any client.
    pub(crate) async fn next(&mut self) -> Asked {
        within(self.requests.recv()).await.expect("a server")
    }

    /// The requests not yet taken, as `METHOD path`.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok())
            .map(|asked| format!("{} {}", asked.method, asked.path))
            .collect()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?;
        Some(value.to_str().expect("text"))
    }

    pub(crate) fn reply(self, response: Response<Body>) {
        self.reply.send(response).expect("the client is there");
    }

    /// Responds with a body of this type.
    pub(crate) fn reply_with(self, status: u16, content_type: &str, body: &str) {
        let mut response = Response::builder().status(status);
        if !content_type.is_empty() {
            response = response.header("content-type", content_type);
        }
        self.reply(
            response
                .body(Body::from(body.to_owned()))
                .expect("a response"),
        );
    }

    pub(crate) fn reply_json(self, body: &str) {
        self.reply_with(200, "application/json", body);
    }

    pub(crate) fn accept(self) {
        self.reply_with(202, "", "");
    }

    /// Responds with an event stream that the test continues to write.
    pub(crate) fn reply_stream(self) -> Events {
        let (chunks, receiver) = mpsc::unbounded_channel();
        let (guard, dropped) = oneshot::channel();
        let body = Body::from_stream(Chunks {
            receiver,
            _guard: guard,
        });
        let response = Response::builder()
            .header("content-type", "text/event-stream")
            .body(body);
        self.reply(response.expect("a response"));
        Events { chunks, dropped }
    }

    /// Waits until the client cancels the request.
    pub(crate) async fn abandoned(mut self) {
        within(self.reply.closed()).await;
    }
}

/// The writing end of an event stream; dropping it ends the stream.
pub(crate) struct Events {
    chunks: mpsc::UnboundedSender<Bytes>,
    dropped: oneshot::Receiver<()>,
}

impl Events {
    pub(crate) fn write(&self, text: &str) {
        let _ = self.chunks.send(Bytes::copy_from_slice(text.as_bytes()));
    }

    pub(crate) fn event(&self, data: &str) {
        self.write(&format!("data: {data}\n\n"));
    }

    /// Waits until the client has dropped the stream.
    pub(crate) async fn abandoned(self) {
        let _ = within(self.dropped).await;
    }
}

struct Chunks {
    receiver: mpsc::UnboundedReceiver<Bytes>,
    _guard: oneshot::Sender<()>,
}

impl Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|chunk| chunk.map(Ok))
    }
}

async fn ask(
    request: axum::extract::Request,
    sender: &mpsc::UnboundedSender<Asked>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let (reply, answer) = oneshot::channel();
    let path = parts.uri.path_and_query().map(ToString::to_string);
    let _ = sender.send(Asked {
        method: parts.method,
        path: path.unwrap_or_default(),
        version: parts.version,
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        reply,
    });
    // A request dropped without a response leaves the client waiting.
    match answer.await {
        Ok(response) => response,
        Err(_) => std::future::pending().await,
    }
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    fn accept(&mut self) -> impl Future<Output = (Self::Io, Self::Addr)> + Send {
        let acceptor = self.acceptor.clone();
        async move {
            loop {
                if let Ok((stream, address)) = self.listener.accept().await
                    && let Ok(stream) = acceptor.accept(stream).await
                {
                    return (stream, address);
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
