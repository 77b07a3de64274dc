//! Clients of revision 2024-11-05 over HTTP with server-sent events: GET opens the stream and announces where the client
//! POSTs its messages; all answers come on the stream.
//!
//! The client session lives as long as its stream. A client that does not read its stream cannot start more requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::StatusCode;
use hyper::body::Incoming as RequestBody;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use switchboard::internal::service::{ClientFrame, ClientMessage, Sink};
use switchboard_protocol::Limits;

use super::answer::{self, BoxedResponse};
use super::body::{self, EventOptions, Events};
use super::endpoint::{Endpoint, shutting_down, unreadable, unreadable_body};
use super::grant::Grant;
use super::head::{accepts, is_json};
use super::stream::EventStream;
use super::token::random_text;
use crate::handler::{ClientKind, Exchange, SessionKey};

/// Path of the stream.
pub(super) const STREAM: &str = "/sse";
/// Path for the messages of a client, which is announced with the id of its session.
pub(super) const MESSAGES: &str = "/messages";
const PARAMETER: &str = "session=";

/// The clients with an open stream.
#[derive(Default)]
pub(super) struct SseClients(Mutex<HashMap<SessionKey, Arc<SseClient>>>);

struct SseClient {
    owner: Grant,
    exchange: Box<dyn Exchange>,
    stream: Arc<EventStream>,
    sink: Arc<dyn Sink>,
}

/// Ends the session of a client with its stream.
struct OpenStream {
    clients: Arc<SseClients>,
    key: SessionKey,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let client = self.clients.lock().remove(&self.key);
        if let Some(client) = client {
            client.exchange.close();
        }
    }
}

impl SseClients {
    /// The number of requests that are running.
    pub(super) fn running(&self) -> usize {
        let clients = self.lock();
        clients
            .values()
            .map(|client| client.exchange.in_flight())
            .sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<SseClient>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    /// Opens the stream of a client.
    pub(super) fn open_stream(
        &self,
        grant: &Grant,
        headers: &HeaderMap,
    ) -> Result<BoxedResponse, BoxedResponse> {
        if !accepts(headers, "text", "event-stream") {
            return Err(answer::refuse(
                StatusCode::NOT_ACCEPTABLE,
                "the client must accept text/event-stream",
            ));
        }
        let limits = &self.options.limits;
        let key = random_text().as_deref().and_then(SessionKey::new);
        let key = key.ok_or_else(|| {
            answer::unavailable("cannot create a session id: the system returned no random bytes")
        })?;
        let stream = EventStream::new(limits.max_queued_bytes, 0);
        let sink = stream.sink();
        // Its messages are those of any pair of streams: the first one determines the era.
        let client = grant.client(ClientKind::Stdio);
        let client = SseClient {
            owner: grant.owner(),
            exchange: self.handler.open(&client, Arc::clone(&sink)),
            stream: Arc::clone(&stream),
            sink,
        };
        {
            let mut clients = self.sse.lock();
            if clients.len() >= limits.max_sessions {
                return Err(answer::unavailable("session limit reached"));
            }
            clients.insert(key.clone(), Arc::new(client));
        }
        let announcement = format!(
            "event: endpoint\ndata: {MESSAGES}?{PARAMETER}{}\n\n",
            key.as_str()
        );
        let options = EventOptions {
            label: None,
            has_prologue: false,
            retry: limits.retry,
            keep_alive: limits.keep_alive,
            lifetime: None,
        };
        let open = OpenStream {
            clients: Arc::clone(&self.sse),
            key,
        };
        let over = grant.until_expired(&self.stop);
        let events = Events::new(stream.read(None), &options, over, Box::new(open));
        Ok(answer::events(events.starting_with(announcement.into())))
    }

    /// Takes a message of a client, whose answers come on its stream.
    pub(super) async fn take_message(
        &self,
        grant: &Grant,
        head: &Parts,
        body: &mut RequestBody,
    ) -> Result<BoxedResponse, BoxedResponse> {
        if !is_json(&head.headers) {
            return Err(answer::refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be application/json",
            ));
        }
        let client = self.sse_client(grant, head.uri.query());
        let client = client.ok_or_else(|| {
            answer::refuse(
                StatusCode::NOT_FOUND,
                "unknown session: open a stream again",
            )
        })?;
        let limits = &self.options.limits;
        let body = body::read(body, limits.max_body_bytes, limits.body_deadline)
            .await
            .map_err(|unread| unreadable_body(unread, limits.max_body_bytes))?;
        let within = Limits {
            max_bytes: limits.max_body_bytes,
            ..Limits::DEFAULT
        };
        let frame = ClientFrame::parse(&body, &within);
        if let Some(Err(error)) = frame.single() {
            return Err(unreadable(error));
        }
        let mut messages = frame.messages().iter().flatten();
        let is_answered = messages.any(ClientMessage::is_answered);
        if is_answered && client.stream.is_behind() {
            return Err(answer::unavailable("the client does not read its stream"));
        }
        if is_answered && self.stop.is_draining() {
            return Err(shutting_down());
        }
        client.exchange.receive(frame, &client.sink);
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// The client whose session the query names; `None` if it does not exist or belongs to another one.
    fn sse_client(&self, grant: &Grant, query: Option<&str>) -> Option<Arc<SseClient>> {
        let mut parameters = query?.split('&');
        let name = parameters.find_map(|one| one.strip_prefix(PARAMETER))?;
        let key = SessionKey::new(name)?;
        let clients = self.sse.lock();
        let client = clients.get(&key)?;
        client
            .owner
            .covers_principal(grant)
            .then(|| Arc::clone(client))
    }
}
