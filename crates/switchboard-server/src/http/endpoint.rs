//! The Streamable HTTP endpoint: serves POST, GET and DELETE, in either era.
//!
//! A request with a version in its `_meta` is stateless; a handshake opens a session; everything else belongs to a
//! session. The content of requests is left to the handler.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::Incoming as RequestBody;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use switchboard::internal::service::{Answered, ClientFrame, ClientMessage, ClientRequest};
use switchboard_protocol::headers::{self, ReceivedHeaders};
use switchboard_protocol::meta::DeclaredMeta;
use switchboard_protocol::serve::{self, Opened, Serving};
use switchboard_protocol::{
    Era, ErrorCode, ErrorObject, Feature, Limits, Method, ParseError, Revision,
};
use tokio::time::timeout;

use super::access::AccessControl;
use super::answer::{self, BoxedResponse, Refused};
use super::body::{self, EventOptions, Events, Unread};
use super::grant::Grant;
use super::head::{
    accepts, check_post, event_id, received, session_id, speaks_stateful, speaks_stateless,
};
use super::legacy_sse::SseClients;
use super::options::HttpOptions;
use super::quota::Quotas;
use super::sessions::{ClientSession, STANDALONE, Sessions};
use super::stop::Stop;
use super::stream::{EventStream, First};
use crate::handler::{ClientKind, Exchange, Handler};

pub(super) struct Endpoint {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) options: HttpOptions,
    pub(super) access: AccessControl,
    pub(super) sessions: Sessions,
    pub(super) sse: Arc<SseClients>,
    pub(super) quotas: Quotas,
    pub(super) stop: Stop,
}

impl Endpoint {
    pub(super) fn new(
        handler: Arc<dyn Handler>,
        options: HttpOptions,
        access: AccessControl,
        stop: Stop,
    ) -> Self {
        Self {
            handler,
            access,
            sessions: Sessions::new(&options.limits),
            sse: Arc::default(),
            quotas: Quotas::new(&options.limits),
            options,
            stop,
        }
    }

    pub(super) async fn post(
        &self,
        grant: &Grant,
        head: &Parts,
        body: &mut RequestBody,
    ) -> Result<BoxedResponse, BoxedResponse> {
        check_post(&head.headers)?;
        let limits = &self.options.limits;
        let body = body::read(body, limits.max_body_bytes, limits.body_deadline)
            .await
            .map_err(|unread| unreadable_body(unread, limits.max_body_bytes))?;
        let within = Limits {
            max_bytes: limits.max_body_bytes,
            ..Limits::DEFAULT
        };
        let frame = ClientFrame::parse(&body, &within);
        let received = received(&head.headers);
        match frame.single() {
            Some(Err(error)) => Err(unreadable(error)),
            Some(Ok(ClientMessage::OtherVersion { id })) => {
                let error = ClientMessage::other_version();
                Err(answer::error(StatusCode::BAD_REQUEST, id.as_ref(), &error))
            }
            Some(Ok(ClientMessage::Request(request))) => {
                if self.stop.is_draining() {
                    return Err(shutting_down());
                }
                let id = request.id.clone();
                let route = self
                    .classify(grant, &received, request)
                    .map_err(|refused| refused.about(&id))?;
                self.request(grant, frame, &received, route)
                    .await
                    .map_err(|refused| refused.about(&id))
            }
            Some(Ok(ClientMessage::Notification { .. })) if speaks_stateless(&received) => {
                // In the stateless era a client cancels by closing the connection, so notifications carry nothing of
                // use.
                Ok(answer::empty(StatusCode::ACCEPTED))
            }
            Some(Ok(_)) => self.one_way(grant, frame, &received),
            None => self.batch(grant, frame, &received).await,
        }
    }

    /// Finds the session of a single request, if any, and how the request opens.
    fn classify(
        &self,
        grant: &Grant,
        received: &ReceivedHeaders<'_>,
        request: &ClientRequest,
    ) -> Result<Route, Refused> {
        let (method, params) = (request.method.as_str(), request.params());
        let declared = DeclaredMeta::read(params).protocol_version;
        let declares_stateless = declared
            .as_deref()
            .and_then(|version| version.parse::<Revision>().ok())
            .is_some_and(|revision| revision.era() == Era::Stateless);
        // A stateless request is served even if it names an unknown session.
        let session = match self.named_session(grant, received) {
            Err(_) if declares_stateless => None,
            session => session?,
        };
        if declares_stateless && request.method.is(Method::Initialize) {
            // The stateless era does not have this method, and the client declares a revision of it.
            let version = declared.as_deref().unwrap_or_default();
            headers::check_standard(received, version, method, params)
                .map_err(|mismatch| Refused::of(400, mismatch.to_error()))?;
            let code = ErrorCode::METHOD_NOT_FOUND;
            let error = ErrorObject::new(code, "method not found: initialize");
            return Err(Refused::of(code.http_status(), error));
        }
        let serving = Serving {
            supported: &Revision::ALL,
            settled: session.as_ref().map(|session| session.revision),
        };
        let opening = serve::classify_http(serving, received, method, params)
            .map_err(|refusal| Refused::of(refusal.http_status, refusal.error))?;
        Ok(Route {
            opened: opening.opened(),
            session,
        })
    }

    async fn request(
        &self,
        grant: &Grant,
        frame: ClientFrame,
        received: &ReceivedHeaders<'_>,
        route: Route,
    ) -> Result<BoxedResponse, Refused> {
        let Route { opened, session } = route;
        let frame = frame.opened(opened);
        match (opened, session) {
            (Opened::Handshake(_), _) => {
                let answered = self.handshake(grant, frame).await;
                answered.map_err(Refused::Whole)
            }
            (Opened::Stateful(_), Some(session)) => {
                Ok(self.within_session(grant, &session, frame).await)
            }
            (Opened::Stateful(_) | Opened::Stateless(_), _) => {
                self.by_itself(grant, frame, received).await
            }
        }
    }

    /// Serves a stateless request: its exchange ends with the answer or with the connection.
    async fn by_itself(
        &self,
        grant: &Grant,
        frame: ClientFrame,
        received: &ReceivedHeaders<'_>,
    ) -> Result<BoxedResponse, Refused> {
        // Stateless requests receive nothing besides their answer.
        let client = grant.client(ClientKind::Request);
        let exchange = self.handler.open(&client, Arc::new(|_: Bytes| {}));
        if let Some(Ok(ClientMessage::Request(request))) = frame.single() {
            exchange
                .check_headers(received, request.method.as_str(), request.params())
                .map_err(|error| Refused::of(error.code.http_status(), error))?;
        }
        let stream = EventStream::new(self.options.limits.max_queued_bytes, 0);
        exchange.receive(frame, &stream.sink());
        let first = self.first(grant, &stream).await.map_err(Refused::Whole)?;
        Ok(match first {
            First::Answer(document, answered) => {
                let status = answered.error().map_or(200, ErrorCode::http_status);
                answer::json(answer::status(status), document)
            }
            First::Nothing => answer::no_events(),
            First::Other => {
                let options = self.event_options(None, None);
                let held: Box<dyn Exchange> = exchange;
                let held = Box::new((held, grant.running.clone()));
                let over = grant.until_over(&self.stop);
                answer::events(Events::new(stream.read(None), &options, over, held))
            }
        })
    }

    /// Serves one or more requests of a session. They continue if the connection is lost.
    async fn within_session(
        &self,
        grant: &Grant,
        session: &Arc<ClientSession>,
        frame: ClientFrame,
    ) -> BoxedResponse {
        let connected = session.connect();
        let limits = &self.options.limits;
        let stream = EventStream::new(limits.max_queued_bytes, limits.max_replay_bytes / 4);
        session.exchange.receive(frame, &stream.sink());
        match self.first(grant, &stream).await {
            Err(refused) => refused,
            Ok(First::Answer(document, _)) => answer::json(StatusCode::OK, document),
            Ok(First::Nothing) => answer::no_events(),
            Ok(First::Other) => {
                let label = session.keep(&stream);
                let options = self.event_options(Some(label), Some(session.revision));
                let held = Box::new((connected, grant.running.clone()));
                let over = grant.until_over(&self.stop);
                answer::events(Events::new(stream.read(None), &options, over, held))
            }
        }
    }

    async fn handshake(
        &self,
        grant: &Grant,
        frame: ClientFrame,
    ) -> Result<BoxedResponse, BoxedResponse> {
        let limits = &self.options.limits;
        let beginning = self.sessions.begin(&*self.handler, limits, grant);
        let beginning = beginning.ok_or_else(|| {
            answer::unavailable("cannot create a session id: the system returned no random bytes")
        })?;
        let stream = EventStream::new(limits.max_queued_bytes, 0);
        beginning.exchange.receive(frame, &stream.sink());
        let answered = tokio::select! {
            answered = stream.answer() => answered,
            () = grant.until_over(&self.stop) => return Err(cut_short(grant)),
        };
        let Some((document, answered)) = answered else {
            return Ok(answer::no_events());
        };
        let Answered::Handshake(revision) = answered else {
            // The handshake failed, so there is no session.
            return Ok(answer::json(StatusCode::OK, document));
        };
        let name = HeaderValue::from_str(beginning.key.as_str());
        let name = name.map_err(|_| answer::unavailable("invalid session id"))?;
        if !self.sessions.enter(beginning, revision) {
            return Err(answer::unavailable(
                "session limit reached, and all sessions are in use",
            ));
        }
        let mut answer = answer::json(StatusCode::OK, document);
        answer.headers_mut().insert(SESSION_ID, name);
        Ok(answer)
    }

    /// Passes on messages that get no answer.
    fn one_way(
        &self,
        grant: &Grant,
        frame: ClientFrame,
        received: &ReceivedHeaders<'_>,
    ) -> Result<BoxedResponse, BoxedResponse> {
        let session = self.needed_session(grant, received)?;
        let _connected = session.connect();
        session.exchange.receive(frame, &session.sink);
        Ok(answer::empty(StatusCode::ACCEPTED))
    }

    /// Serves a batch, which only revision 2025-03-26 allows.
    async fn batch(
        &self,
        grant: &Grant,
        frame: ClientFrame,
        received: &ReceivedHeaders<'_>,
    ) -> Result<BoxedResponse, BoxedResponse> {
        if let Some(error) = frame.messages().iter().find_map(|one| one.as_ref().err()) {
            return Err(unreadable(error));
        }
        let session = self.needed_session(grant, received)?;
        if !frame.is_array() || !session.revision.has(Feature::Batches) {
            let why = format!(
                "the body must be a single message in revision {}",
                session.revision
            );
            return Err(answer::refuse(StatusCode::BAD_REQUEST, why));
        }
        let mut messages = frame.messages().iter().flatten();
        if messages.any(|message| message.requests(Method::Initialize)) {
            return Err(answer::refuse(
                StatusCode::BAD_REQUEST,
                "initialize must not be part of a batch",
            ));
        }
        let mut messages = frame.messages().iter().flatten();
        if !messages.any(ClientMessage::is_answered) {
            return self.one_way(grant, frame, received);
        }
        if self.stop.is_draining() {
            return Err(shutting_down());
        }
        let frame = frame.in_session(session.revision);
        Ok(self.within_session(grant, &session, frame).await)
    }

    /// Opens the session's standalone stream, or resumes a lost one.
    pub(super) fn listen(
        &self,
        grant: &Grant,
        headers: &HeaderMap,
    ) -> Result<BoxedResponse, BoxedResponse> {
        let received = received(headers);
        if session_id(&received)?.is_none() && !speaks_stateful(&received) {
            return Err(answer::not_allowed(
                "POST",
                "GET opens the stream of a session: missing Mcp-Session-Id header",
            ));
        }
        if !accepts(headers, "text", "event-stream") {
            return Err(answer::refuse(
                StatusCode::NOT_ACCEPTABLE,
                "the client must accept text/event-stream",
            ));
        }
        let session = self.needed_session(grant, &received)?;
        let last = match headers.get(LAST_EVENT_ID) {
            None => None,
            Some(last) => {
                let last = last.to_str().ok().and_then(event_id);
                Some(last.ok_or_else(lost_event)?)
            }
        };
        let number = last.map_or(STANDALONE, |(stream, _)| stream);
        let stream = session.stream(number).ok_or_else(lost_event)?;
        let reader = stream.read(last.map(|(_, event)| event));
        if stream.is_spent() {
            // 204 stops the client from reconnecting.
            return Ok(answer::empty(StatusCode::NO_CONTENT));
        }
        let options = self.event_options(Some(number), Some(session.revision));
        let held = Box::new(session.connect());
        let events = Events::new(reader, &options, grant.until_expired(&self.stop), held);
        Ok(answer::events(events))
    }

    pub(super) fn end_session(
        &self,
        grant: &Grant,
        headers: &HeaderMap,
    ) -> Result<BoxedResponse, BoxedResponse> {
        let received = received(headers);
        let name = session_id(&received)?.ok_or_else(no_session_named)?;
        // A session from before a restart can be ended, too.
        let found = self.session(grant, name);
        let key = found
            .and_then(|_| self.sessions.end(name))
            .ok_or_else(gone)?;
        self.handler.forget(&key);
        Ok(answer::empty(StatusCode::NO_CONTENT))
    }

    fn session(&self, grant: &Grant, name: &str) -> Option<Arc<ClientSession>> {
        let limits = &self.options.limits;
        self.sessions.find(name, grant, &*self.handler, limits)
    }

    /// The session named by the request; `None` if it names none.
    fn named_session(
        &self,
        grant: &Grant,
        received: &ReceivedHeaders<'_>,
    ) -> Result<Option<Arc<ClientSession>>, Refused> {
        let Some(name) = session_id(received).map_err(Refused::Whole)? else {
            return Ok(None);
        };
        let found = self.session(grant, name).map(Some);
        found.ok_or_else(|| Refused::of(404, gone_error()))
    }

    /// The session of a message that requires one, after checking its version header.
    fn needed_session(
        &self,
        grant: &Grant,
        received: &ReceivedHeaders<'_>,
    ) -> Result<Arc<ClientSession>, BoxedResponse> {
        let session = self.named_session(grant, received);
        let session = session.map_err(Refused::whole)?;
        headers::stateful_revision(received).map_err(|mismatch| {
            answer::error(StatusCode::BAD_REQUEST, None, &mismatch.to_error())
        })?;
        session.ok_or_else(no_session_named)
    }

    /// Waits for the first frame, or until the answer has to become a stream.
    async fn first(&self, grant: &Grant, stream: &EventStream) -> Result<First, BoxedResponse> {
        if let Some(first) = stream.first_now() {
            return Ok(first);
        }
        tokio::select! {
            first = timeout(self.options.limits.stream_after, stream.first()) => {
                Ok(first.unwrap_or(First::Other))
            }
            () = grant.until_over(&self.stop) => Err(cut_short(grant)),
        }
    }

    fn event_options(&self, label: Option<u64>, revision: Option<Revision>) -> EventOptions {
        let limits = &self.options.limits;
        // Older clients treat every event as a message.
        let can_poll = revision.is_some_and(|revision| revision >= Revision::V2025_11_25);
        EventOptions {
            label,
            has_prologue: can_poll,
            retry: limits.retry,
            keep_alive: limits.keep_alive,
            lifetime: limits.stream_lifetime.filter(|_| can_poll),
        }
    }
}

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";

/// The session of a single request and how it opens.
struct Route {
    opened: Opened,
    session: Option<Arc<ClientSession>>,
}

/// The answer to a request that ends because its token or the server does.
fn cut_short(grant: &Grant) -> BoxedResponse {
    if grant.is_over() {
        answer::unauthorized(true)
    } else {
        shutting_down()
    }
}

/// The client should send the request again over another connection, to another server.
pub(super) fn shutting_down() -> BoxedResponse {
    answer::closing(answer::unavailable("the server is shutting down"))
}

pub(super) fn unreadable_body(unread: Unread, max_bytes: usize) -> BoxedResponse {
    match unread {
        Unread::TooLarge => answer::refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {max_bytes} bytes"),
        ),
        Unread::TooSlow => {
            answer::refuse(StatusCode::REQUEST_TIMEOUT, "timed out reading the body")
        }
        Unread::Broken => answer::refuse(
            StatusCode::BAD_REQUEST,
            "the connection failed while the body was read",
        ),
    }
}

pub(super) fn unreadable(error: &ParseError) -> BoxedResponse {
    let object = ErrorObject::new(error.code(), error.to_string());
    answer::error(StatusCode::BAD_REQUEST, error.id.as_ref(), &object)
}

fn lost_event() -> BoxedResponse {
    answer::refuse(
        StatusCode::BAD_REQUEST,
        "the event is no longer available; repeat the request if that is safe",
    )
}

fn gone_error() -> ErrorObject<'static> {
    ErrorObject::new(
        ErrorCode::INVALID_REQUEST,
        "unknown or expired session: initialize again",
    )
}

fn gone() -> BoxedResponse {
    answer::error(StatusCode::NOT_FOUND, None, &gone_error())
}

fn no_session_named() -> BoxedResponse {
    answer::refuse(
        StatusCode::BAD_REQUEST,
        "the request needs a session: missing Mcp-Session-Id header",
    )
}
