//! The legacy HTTP+SSE transport: a stream at `/sse`, and POST to the endpoint named by its first event.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use futures_util::{Stream, stream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::event;
use super::http::serve_connection;
use super::listen::{Connection, accept};
use super::response::{event_stream, plain, record, refused};
use super::{QUEUE, take_frame};
use crate::scripted::engine::{Out, Server};
use crate::scripted::fault::{Fault, Occasion};
use crate::scripted::perform::greet;

/// Serves until the server stops.
pub(crate) async fn serve(server: Arc<Server>, listener: TcpListener) {
    let router = Router::new()
        .fallback(handle)
        .with_state(Arc::clone(&server));
    accept(server, listener, move |stream, connection| {
        serve_connection(router.clone(), stream, connection)
    })
    .await;
}

async fn handle(
    State(server): State<Arc<Server>>,
    Extension(connection): Extension<Connection>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    record(&server, &parts.method, &parts.headers);
    if let Some(refusal) = refused(&server, &connection, &parts.headers) {
        return refusal;
    }
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/sse") => open(server, connection).await,
        (&Method::POST, "/messages") => {
            let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
                return plain(StatusCode::BAD_REQUEST, "incomplete body");
            };
            let query = parts.uri.query().unwrap_or_default();
            let id = query.strip_prefix("session=").unwrap_or_default();
            let Some(session) = server.session(id) else {
                return plain(StatusCode::NOT_FOUND, "unknown session");
            };
            take_frame(&server, &session, &body);
            plain(StatusCode::ACCEPTED, "Accepted")
        }
        (_, "/sse" | "/messages") => plain(StatusCode::METHOD_NOT_ALLOWED, ""),
        _ => plain(StatusCode::NOT_FOUND, "unknown path"),
    }
}

/// Opens the stream and its session, which ends with the stream.
async fn open(server: Arc<Server>, connection: Connection) -> Response {
    let faults = server.faults(Occasion::Stream);
    if faults.contains(&Fault::Silent) {
        return std::future::pending().await;
    }
    let (outbox, outs) = mpsc::channel(QUEUE);
    let session = server.open_session(outbox);
    let path = format!("/messages?session={}", session.id);
    let stream = events(
        event::endpoint(&path),
        outs,
        Arc::clone(&server),
        connection,
    );
    tokio::spawn(async move {
        if greet(&server, &faults, &session.outbox).await {
            session.outbox.closed().await;
        }
        server.close_session(&session.id);
        session.end();
    });
    event_stream(stream)
}

fn events(
    first: Vec<u8>,
    outs: mpsc::Receiver<Out>,
    server: Arc<Server>,
    connection: Connection,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let state = (Some(first), outs, server, connection, Line::default());
    stream::unfold(state, |state| async {
        let (first, mut outs, server, connection, mut line) = state;
        let mut bytes = first.unwrap_or_default();
        while bytes.is_empty() {
            match outs.recv().await? {
                Out::Abort => {
                    connection.abort();
                    std::future::pending::<()>().await;
                }
                Out::Exit(code) => {
                    server.ended.send_replace(Some(code));
                    std::future::pending::<()>().await;
                }
                out => line.write(out, &mut bytes),
            }
        }
        Some((Ok(bytes.into()), (None, outs, server, connection, line)))
    })
}

/// Serializes events, even if one is sent in pieces and others arrive in between.
#[derive(Default)]
struct Line {
    in_pieces: bool,
    waiting: Vec<Vec<u8>>,
}

impl Line {
    fn write(&mut self, out: Out, bytes: &mut Vec<u8>) {
        match out {
            Out::Frame(frame) | Out::Last(frame, _) if self.in_pieces => self.waiting.push(frame),
            Out::Frame(frame) | Out::Last(frame, _) => bytes.extend(event::event(&frame, None)),
            Out::Piece(piece) => {
                if !std::mem::replace(&mut self.in_pieces, true) {
                    bytes.extend_from_slice(b"event: message\ndata: ");
                }
                bytes.extend(piece);
            }
            Out::PieceEnd => {
                self.in_pieces = false;
                bytes.extend_from_slice(b"\n\n");
                for frame in self.waiting.drain(..) {
                    bytes.extend(event::event(&frame, None));
                }
            }
            _ => {}
        }
    }
}
