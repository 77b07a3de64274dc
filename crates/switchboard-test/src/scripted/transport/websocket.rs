//! The WebSocket transport, sub-protocol `mcp`: one text frame per message.

use std::sync::Arc;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{self, Message};

use super::listen::{Connection, accept};
use super::response::record;
use super::{QUEUE, take_frame};
use crate::scripted::engine::{Out, Server};
use crate::scripted::fault::Fault;
use crate::scripted::perform::greet;

/// Serves until the server stops.
pub(crate) async fn serve(server: Arc<Server>, listener: TcpListener) {
    let of_connections = Arc::clone(&server);
    accept(server, listener, move |stream, connection| {
        serve_connection(Arc::clone(&of_connections), stream, connection)
    })
    .await;
}

#[expect(
    clippy::result_large_err,
    reason = "the library fixes the type of a refused handshake"
)]
async fn serve_connection(server: Arc<Server>, stream: TcpStream, connection: Connection) {
    let config = WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let shake = |request: &Request, response| shake(&server, &connection, request, response);
    let accepted =
        tokio_tungstenite::accept_hdr_async_with_config(stream, shake, Some(config)).await;
    let Ok(socket) = accepted else { return };
    let (sink, mut incoming) = socket.split();
    let (outbox, outs) = mpsc::channel(QUEUE);
    let session = server.open_session(outbox);
    let writing = write(sink, outs, &server, &connection);
    let reading = async {
        if !greet(&server, &connection.faults, &session.outbox).await {
            return std::future::pending().await;
        }
        while let Some(Ok(message)) = incoming.next().await {
            match message {
                Message::Text(text) => take_frame(&server, &session, text.as_bytes()),
                Message::Binary(bytes) => take_frame(&server, &session, &bytes),
                _ => {}
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
    server.close_session(&session.id);
    session.end();
}

#[expect(
    clippy::result_large_err,
    reason = "the library fixes the type of a refused handshake"
)]
fn shake(
    server: &Server,
    connection: &Connection,
    request: &Request,
    mut response: Response,
) -> Result<Response, ErrorResponse> {
    record(server, request.method(), request.headers());
    let refuse = |status: u16, body: &str| {
        let mut refusal = ErrorResponse::new(Some(body.to_owned()));
        *refusal.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        refusal
    };
    for fault in connection.faults.iter() {
        if let Fault::Status { status, body, .. } = fault {
            return Err(refuse(*status, body));
        }
    }
    let given = request.headers().get(header::AUTHORIZATION);
    if let Some(token) = &server.script().http.bearer_token
        && given.is_none_or(|given| given.as_bytes() != format!("Bearer {token}").as_bytes())
    {
        return Err(refuse(401, ""));
    }
    let offered = request.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
    if offered.is_some_and(|offered| offered.as_bytes() == b"mcp") {
        let protocol = HeaderValue::from_static("mcp");
        response
            .headers_mut()
            .insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

/// Writes until the client is gone or the connection is to be dropped.
async fn write(
    mut sink: SplitSink<WebSocketStream<TcpStream>, Message>,
    mut outs: mpsc::Receiver<Out>,
    server: &Server,
    connection: &Connection,
) {
    let mut in_pieces = false;
    let mut waiting = Vec::new();
    while let Some(out) = outs.recv().await {
        let written = match out {
            Out::Frame(frame) | Out::Last(frame, _) if in_pieces => {
                waiting.push(frame);
                Ok(())
            }
            Out::Frame(frame) | Out::Last(frame, _) => sink.send(text(frame)).await,
            Out::Piece(piece) => {
                let kind = if in_pieces {
                    Data::Continue
                } else {
                    Data::Text
                };
                in_pieces = true;
                let frame = Frame::message(piece, OpCode::Data(kind), false);
                sink.send(Message::Frame(frame)).await
            }
            Out::PieceEnd => {
                in_pieces = false;
                end_pieces(&mut sink, waiting.drain(..)).await
            }
            Out::CloseStream => sink.close().await,
            Out::Abort => {
                connection.abort();
                return std::future::pending().await;
            }
            Out::Exit(code) => {
                server.ended.send_replace(Some(code));
                return std::future::pending().await;
            }
            Out::Refuse(_) | Out::ContentType(_) => Ok(()),
        };
        if written.is_err() {
            return;
        }
    }
}

async fn end_pieces(
    sink: &mut SplitSink<WebSocketStream<TcpStream>, Message>,
    waiting: impl Iterator<Item = Vec<u8>>,
) -> Result<(), tungstenite::Error> {
    let end = Frame::message(Vec::new(), OpCode::Data(Data::Continue), true);
    sink.send(Message::Frame(end)).await?;
    for frame in waiting {
        sink.send(text(frame)).await?;
    }
    Ok(())
}

/// Invalid UTF-8 is sent as a binary frame.
fn text(frame: Vec<u8>) -> Message {
    match String::from_utf8(frame) {
        Ok(text) => Message::text(text),
        Err(error) => Message::binary(error.into_bytes()),
    }
}
