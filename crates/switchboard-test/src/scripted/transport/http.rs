//! Streamable HTTP, both eras on one endpoint, `/mcp`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::{Stream, stream};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use switchboard_protocol::headers::ReceivedHeaders;
use switchboard_protocol::{Era, Revision, meta};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::event;
use super::listen::{Connection, accept};
use super::response::{
    event_stream, json_error, plain, record, refuse, refused, status_of, text, typed,
    unknown_session,
};
use super::streams::Streams;
use super::{QUEUE, run};
use crate::scripted::engine::{ClientSession, Inbound, Out, Request, Server, read};
use crate::scripted::fault::{Fault, Occasion};
use crate::scripted::perform::wait_at;
use crate::scripted::record::Record;

const SESSION_ID: &str = "mcp-session-id";

/// Serves until the server stops.
pub(crate) async fn serve(server: Arc<Server>, listener: TcpListener) {
    let state = Arc::new(Http {
        server: Arc::clone(&server),
        streams: Streams::default(),
    });
    let router = Router::new().fallback(handle).with_state(state);
    accept(server, listener, move |stream, connection| {
        serve_connection(router.clone(), stream, connection)
    })
    .await;
}

/// Serves HTTP on one connection.
pub(crate) async fn serve_connection(router: Router, stream: TcpStream, connection: Connection) {
    let service = TowerToHyperService::new(router.layer(Extension(connection)));
    let serving =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Tests cause connection errors on purpose.
    let _ = serving.await;
}

struct Http {
    server: Arc<Server>,
    streams: Streams,
}

async fn handle(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Connection>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    record(&http.server, &parts.method, &parts.headers);
    if parts.uri.path() != "/mcp" {
        return plain(StatusCode::NOT_FOUND, "unknown path");
    }
    if let Some(refusal) = refused(&http.server, &connection, &parts.headers) {
        return refusal;
    }
    match parts.method {
        Method::POST => {
            let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
                return plain(StatusCode::BAD_REQUEST, "incomplete body");
            };
            http.post(&connection, &parts.headers, &body).await
        }
        Method::GET => http.get(&connection, &parts.headers).await,
        Method::DELETE => {
            let id = text(&parts.headers, SESSION_ID).unwrap_or_default();
            let found = http.server.close_session(&id);
            plain(
                if found {
                    StatusCode::OK
                } else {
                    StatusCode::NOT_FOUND
                },
                "",
            )
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, ""),
    }
}

impl Http {
    async fn post(&self, connection: &Connection, headers: &HeaderMap, body: &[u8]) -> Response {
        let mut requests = Vec::new();
        let mut others = Vec::new();
        for message in read(body) {
            match message {
                Ok((inbound, message)) => {
                    self.server.recorder.record(Record::Received { message });
                    match inbound {
                        Inbound::Request(request) => requests.push(request),
                        other => others.push(other),
                    }
                }
                Err(text) => {
                    self.server.recorder.record(Record::Unreadable { text });
                    return json_error(StatusCode::BAD_REQUEST, -32700, "Parse error");
                }
            }
        }
        let (session, is_new) = match self.session(headers, requests.first()) {
            Ok(found) => found,
            Err(refusal) => return *refusal,
        };
        if requests.is_empty() {
            let faults = self.server.faults(Occasion::Message);
            if let Some(response) = met(&self.server, connection, &faults).await {
                return response;
            }
            for other in &others {
                self.server.take(&session, other);
            }
            return plain(StatusCode::ACCEPTED, "");
        }
        let received: ReceivedHeaders<'_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let (out, outs) = mpsc::channel(QUEUE);
        let count = requests.len();
        let mut is_refused = false;
        for request in requests {
            let plan = self.server.plan(&session, &request, Some(&received));
            if plan.faults.contains(&Fault::ForgetSession) {
                self.server.close_session(&session.id);
                return unknown_session();
            }
            is_refused |= plan.faults.iter().any(|fault| status_of(fault).is_some());
            run(&self.server, &session, plan, out.clone());
        }
        drop(out);
        let script = self.server.script();
        let resumable = script.http.resumable_retry_ms.filter(|_| {
            let settled = session.settled();
            !is_refused && settled.is_some_and(|revision| revision.era() == Era::Stateful)
        });
        let mut response = if let Some(retry_ms) = resumable {
            self.resumable(connection, outs, retry_ms)
        } else {
            let answering = Answering {
                server: Arc::clone(&self.server),
                connection: connection.clone(),
                event_streams: script.http.event_streams || count > 1,
            };
            answering.respond(outs).await
        };
        if is_new
            && script.http.sessions
            && let Ok(id) = HeaderValue::from_str(&session.id)
        {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    /// The session of a POST, and whether it is new. Without sessions, each request gets a temporary one.
    fn session(
        &self,
        headers: &HeaderMap,
        request: Option<&Request>,
    ) -> Result<(Arc<ClientSession>, bool), Box<Response>> {
        let script = self.server.script();
        let supported = script.supported();
        let serves = |era: Era| supported.iter().any(|revision| revision.era() == era);
        let passing = || {
            let (outbox, _) = mpsc::channel(1);
            Arc::new(ClientSession::new("none".to_owned(), outbox))
        };
        let is_handshake = request.is_some_and(|request| request.method == "initialize");
        let is_stateless = request.is_some_and(|request| {
            let meta = &request.value["_meta"];
            !meta[meta::PROTOCOL_VERSION].is_null()
        });
        if is_handshake && serves(Era::Stateful) {
            let (outbox, outs) = mpsc::channel(QUEUE);
            let session = self.server.open_session(outbox);
            let stream = self
                .streams
                .begin(&session.id, script.http.resumable_retry_ms);
            tokio::spawn(async move { stream.pump(outs, |_| ()).await });
            return Ok((session, true));
        }
        if let Some(id) = text(headers, SESSION_ID) {
            let session = self.server.session(&id);
            return session
                .map(|session| (session, false))
                .ok_or_else(|| Box::new(unknown_session()));
        }
        if serves(Era::Stateless) && (is_stateless || !serves(Era::Stateful)) {
            return Ok((passing(), false));
        }
        if script.http.sessions {
            let message = "Bad Request: no valid session ID provided";
            return Err(Box::new(json_error(
                StatusCode::BAD_REQUEST,
                -32000,
                message,
            )));
        }
        // Without sessions, the header names the revision; [`Revision::WITHOUT_HEADER`] is the fallback.
        let session = passing();
        let revision = text(headers, "mcp-protocol-version");
        let revision = revision.and_then(|revision| revision.parse().ok());
        session.settle(revision.unwrap_or(Revision::WITHOUT_HEADER));
        Ok((session, false))
    }

    /// An answer that outlives its connection.
    fn resumable(
        &self,
        connection: &Connection,
        outs: mpsc::Receiver<Out>,
        retry_ms: u64,
    ) -> Response {
        let name = format!("stream-{}", self.server.next());
        let stream = self.streams.begin(&name, Some(retry_ms));
        let reader = stream.read(Some(0));
        let (server, connection) = (Arc::clone(&self.server), connection.clone());
        tokio::spawn(async move {
            stream
                .pump(outs, |out| match out {
                    Out::Abort | Out::Refuse(_) => connection.abort(),
                    Out::Exit(code) => {
                        server.ended.send_replace(Some(code));
                    }
                    _ => {}
                })
                .await;
        });
        event_stream(read_all(reader))
    }

    async fn get(&self, connection: &Connection, headers: &HeaderMap) -> Response {
        let faults = self.server.faults(Occasion::Stream);
        if let Some(response) = met(&self.server, connection, &faults).await {
            return response;
        }
        if !self.server.script().http.get_stream {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "");
        }
        if let Some(id) = text(headers, "last-event-id") {
            return match self.streams.of_event(&id) {
                Some((stream, after)) => event_stream(read_all(stream.read(Some(after)))),
                None => plain(StatusCode::BAD_REQUEST, "unknown event"),
            };
        }
        let Some(id) = text(headers, SESSION_ID) else {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "");
        };
        match (self.server.session(&id), self.streams.get(&id)) {
            (Some(_), Some(stream)) => event_stream(read_all(stream.read(None))),
            _ => unknown_session(),
        }
    }
}

/// Turns the output for a request into one response.
struct Answering {
    server: Arc<Server>,
    connection: Connection,
    event_streams: bool,
}

impl Answering {
    async fn respond(self, mut outs: mpsc::Receiver<Out>) -> Response {
        let mut content_type = None;
        loop {
            match outs.recv().await {
                Some(Out::ContentType(other)) => content_type = Some(other),
                Some(Out::Refuse(refusal)) => return refuse(refusal),
                Some(Out::Last(body, status)) if !self.event_streams => {
                    let status = StatusCode::from_u16(status).unwrap_or_default();
                    return typed(status, content_type.as_deref(), Body::from(body));
                }
                Some(Out::Piece(piece)) if !self.event_streams => {
                    let body = Body::from_stream(self.pieces(piece, outs));
                    return typed(StatusCode::OK, content_type.as_deref(), body);
                }
                Some(Out::CloseStream) => {}
                first @ (Some(Out::Abort | Out::Exit(_)) | None) => {
                    self.end(first.as_ref());
                    if first.is_some() {
                        return std::future::pending().await;
                    }
                    return event_stream(stream::empty());
                }
                Some(first) => {
                    let mut response = event_stream(self.events(first, outs));
                    if let Some(content_type) = content_type.and_then(|one| one.parse().ok()) {
                        response
                            .headers_mut()
                            .insert(header::CONTENT_TYPE, content_type);
                    }
                    return response;
                }
            }
        }
    }

    fn end(&self, out: Option<&Out>) {
        match out {
            Some(Out::Exit(code)) => {
                self.server.ended.send_replace(Some(*code));
            }
            Some(Out::Abort) => self.connection.abort(),
            _ => {}
        }
    }

    /// A JSON body in pieces.
    fn pieces(
        self,
        first: Vec<u8>,
        outs: mpsc::Receiver<Out>,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold((self, Some(Out::Piece(first)), outs), |state| async {
            let (this, first, mut outs) = state;
            let out = match first {
                Some(first) => Some(first),
                None => outs.recv().await,
            };
            match out {
                Some(Out::Piece(piece)) => Some((Ok(piece.into()), (this, None, outs))),
                Some(end @ (Out::Abort | Out::Exit(_))) => {
                    this.end(Some(&end));
                    std::future::pending().await
                }
                _ => None,
            }
        })
    }

    fn events(
        self,
        first: Out,
        outs: mpsc::Receiver<Out>,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold((self, Some(first), outs, false), |state| async move {
            let (this, first, mut outs, in_pieces) = state;
            let out = match first {
                Some(first) => first,
                None => outs.recv().await?,
            };
            let (bytes, in_pieces) = match out {
                Out::Frame(frame) | Out::Last(frame, _) => (event::event(&frame, None), false),
                Out::Piece(piece) if in_pieces => (piece, true),
                Out::Piece(piece) => ([b"data: ".as_slice(), &piece].concat(), true),
                Out::PieceEnd => (b"\n\n".to_vec(), false),
                Out::CloseStream => return None,
                end => {
                    this.end(Some(&end));
                    std::future::pending().await
                }
            };
            Some((Ok(bytes.into()), (this, None, outs, in_pieces)))
        })
    }
}

/// The response of a fault to a message or a GET, if any.
async fn met(server: &Server, connection: &Connection, faults: &[Fault]) -> Option<Response> {
    for fault in faults {
        match fault {
            Fault::Silent => std::future::pending().await,
            Fault::Abort { .. } => {
                connection.abort();
                std::future::pending::<()>().await;
            }
            Fault::Exit { code, .. } => {
                server.ended.send_replace(Some(*code));
                std::future::pending::<()>().await;
            }
            Fault::Gate { gate } => wait_at(server, gate).await,
            Fault::Status { .. } => return status_of(fault),
            _ => {}
        }
    }
    None
}

fn read_all(
    reader: mpsc::UnboundedReceiver<Bytes>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(reader, |mut reader| async {
        let event = reader.recv().await?;
        Some((Ok(event), reader))
    })
}
