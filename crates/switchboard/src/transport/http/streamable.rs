//! Streamable HTTP in both eras: every message is a POST, answered by JSON or an event stream.
//!
//! Each message carries its era. In the stateful era the link adds the session, opens the stream for unsolicited
//! messages after the handshake, resumes broken streams, and deletes the session at the end. HTTP has no connection
//! that could break under a link, so only this side ends it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use switchboard_config::entry::Transport;
use switchboard_protocol::{Era, Feature, Revision, headers};
use tokio::sync::{oneshot, watch};

use super::address::Address;
use super::answer::{Answers, Delivered};
use super::channel::{Channel, Content, Exchange, content, content_type, protocol_headers};
use super::delivery::{Begun, TAKE_DEADLINE, closed, deliver, taken};
use super::events::{EventStream, looks_like_json, read_body};
use super::legacy::LegacyConnector;
use super::lifetime::{Lifetime, lock};
use super::{HttpClient, RemoteServer, failure};
use crate::transport::{
    Abandoned, Closed, Connector, Destination, Inbound, Link, Outgoing, OutgoingKind,
    RequestFailure, Sending, Sent, TransportError, TransportErrorKind,
};

/// Timeout for deleting the session.
const DELETE_DEADLINE: Duration = Duration::from_secs(2);
/// Maximum length of a session id.
const MAX_SESSION: usize = 4 * 1024;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Connector for Streamable HTTP links; falls back to HTTP+SSE at the same address.
#[derive(Debug)]
pub struct StreamableConnector {
    channel: Arc<Channel>,
    legacy: LegacyConnector,
}

impl StreamableConnector {
    /// A connector for this server. Fails if the address or a header is invalid.
    pub fn new(client: &HttpClient, server: RemoteServer) -> Result<Self, TransportError> {
        let channel = Channel::new(client, server)?;
        Ok(Self {
            legacy: LegacyConnector::over(Arc::clone(&channel)),
            channel,
        })
    }
}

impl Connector for StreamableConnector {
    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn destination(&self) -> Destination {
        self.channel.destination()
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            self.channel.prepare().await?;
            let shared = Arc::new(Shared {
                answers: Answers::new(inbound, self.channel.limit()),
                channel: Arc::clone(&self.channel),
                handshake: Mutex::default(),
                listening: AtomicUsize::new(0),
                listened: watch::Sender::new(false),
                lifetime: Lifetime::new(),
            });
            let supervisor = Arc::clone(&shared).supervise();
            shared.lifetime.supervise(supervisor);
            Ok(Arc::new(StreamableLink { shared }) as Arc<dyn Link>)
        })
    }

    fn legacy(&self) -> Option<&dyn Connector> {
        Some(&self.legacy)
    }
}

struct StreamableLink {
    shared: Arc<Shared>,
}

/// State shared by a link and its tasks.
pub(super) struct Shared {
    channel: Arc<Channel>,
    answers: Answers,
    handshake: Mutex<Handshake>,
    /// Open streams of unsolicited messages: one or none.
    listening: AtomicUsize,
    /// Whether the server has answered the first request for that stream, with success or failure.
    listened: watch::Sender<bool>,
    lifetime: Lifetime,
}

/// Result of the handshake.
#[derive(Debug, Default, Clone)]
struct Handshake {
    session: Option<HeaderValue>,
    revision: Option<Revision>,
}

impl Link for StreamableLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        taken(self.begin(message))
    }

    fn abandon(&self, request: u64) -> Abandoned {
        let era = self.shared.answers.abandon(request);
        let revision = lock(&self.shared.handshake).revision;
        match era.or(revision.map(Revision::era)) {
            Some(Era::Stateless) => Abandoned::Told,
            Some(Era::Stateful) | None => Abandoned::NotTold,
        }
    }

    fn opened(&self, revision: Revision) {
        let before = lock(&self.shared.handshake).revision.replace(revision);
        if before.is_none() && revision.has(Feature::GetStream) {
            let shared = Arc::clone(&self.shared);
            self.shared
                .lifetime
                .spawn(async move { shared.listen().await });
        }
    }

    fn listening(&self) -> BoxFuture<'_, ()> {
        let mut listened = self.shared.listened.subscribe();
        let revision = lock(&self.shared.handshake).revision;
        let has_stream = revision.is_some_and(|revision| revision.has(Feature::GetStream));
        Box::pin(async move {
            if has_stream {
                let _ = listened.wait_for(|listened| *listened).await;
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.lifetime.close())
    }
}

impl Drop for StreamableLink {
    fn drop(&mut self) {
        self.shared.lifetime.stop();
    }
}

impl StreamableLink {
    /// Starts sending a message. For anything but a request, returns a receiver that completes when the server has
    /// accepted it.
    fn begin(&self, message: Outgoing) -> Begun {
        let era = message.era;
        let exchange = self.shared.post(message.payload, message.headers, era)?;
        let shared = Arc::clone(&self.shared);
        let lifetime = &self.shared.lifetime;
        if let OutgoingKind::Request(request) = message.kind {
            let task = async move { shared.request(request, era, exchange).await };
            let started = self
                .shared
                .answers
                .begin(request, era, || lifetime.spawn(task));
            return if started { Ok(None) } else { Err(closed()) };
        }
        let (report, taken) = oneshot::channel();
        lifetime
            .spawn(async move { shared.tell(exchange, report).await })
            .ok_or_else(closed)?;
        Ok(Some(taken))
    }
}

impl Shared {
    /// Waits until the link is stopped, then ends it.
    async fn supervise(self: Arc<Self>) {
        self.lifetime.stopped().await;
        self.lifetime.end_tasks().await;
        if lock(&self.handshake).session.is_some() {
            let exchange = self.bare(Method::DELETE);
            let _ = tokio::time::timeout(DELETE_DEADLINE, self.channel.exchange(&exchange)).await;
        }
        self.answers.inbound().closed(Closed::ByUs);
        self.lifetime.end();
    }

    /// Sends a request and handles its answer.
    async fn request(&self, request: u64, era: Era, exchange: Exchange) {
        let outcome = self.ask(request, era, &exchange).await;
        if let Some(false) = self.answers.finish(request)
            && let Err(failure) = outcome
        {
            self.answers.inbound().failed(request, failure);
        }
    }

    async fn ask(&self, request: u64, era: Era, exchange: &Exchange) -> Result<(), RequestFailure> {
        let response = self.channel.exchange(exchange).await?;
        self.learn_session(&response, era);
        match content(&response) {
            Content::Events => {
                let stream = EventStream::new(response, self.limit(), None);
                self.read_answer(request, stream, era == Era::Stateful)
                    .await
            }
            Content::Body => self.take_body(request, response).await,
            // Some servers answer on the stream of unsolicited messages. If it is open, the answer can still arrive.
            Content::Nothing if self.listening.load(Ordering::Acquire) > 0 => Ok(()),
            Content::Nothing => Err(broken_rules(
                "the server accepted the request but sent no answer",
            )),
        }
    }

    /// Reads the answer to a request from a body that should be JSON.
    pub(super) async fn take_body(
        &self,
        request: u64,
        response: Response,
    ) -> Result<(), RequestFailure> {
        let kind = content_type(&response);
        let body = read_body(response, self.limit(), self.channel.address()).await?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(broken_rules("the server's answer is empty"));
        }
        if !looks_like_json(&body) {
            let kind = if kind.is_empty() { "something" } else { &kind };
            return Err(broken_rules(format!(
                "the server answered with {kind} where JSON was expected; is the address right?"
            )));
        }
        match self.answers.deliver(body.clone(), Some(request)) {
            Delivered::Answer => Ok(()),
            Delivered::UnaddressedError => Err(self.unaddressed(&body)),
            Delivered::TooLarge => Err(RequestFailure::TooLarge {
                limit: self.limit(),
            }),
            Delivered::Other => Err(broken_rules(
                "the server's response does not answer the request",
            )),
        }
    }

    /// Sends a message other than a request.
    async fn tell(&self, exchange: Exchange, report: oneshot::Sender<Sent>) {
        if let Some(response) = deliver(&self.channel, &exchange, report).await {
            let _ = tokio::time::timeout(TAKE_DEADLINE, self.take_stray(response)).await;
        }
    }

    /// Passes on a message that a server sent where the response should be empty.
    async fn take_stray(&self, response: Response) {
        let is_taken = response.status() == StatusCode::ACCEPTED;
        match content(&response) {
            Content::Events => {
                let mut stream = EventStream::new(response, self.limit(), None);
                while let Ok(Some(decoded)) = stream.next(self.address()).await {
                    self.answers.deliver_event(decoded, None);
                }
            }
            Content::Body => {
                // Read in any case, so that the connection can be reused.
                let body = read_body(response, self.limit(), self.channel.address()).await;
                let is_message = |body: &Bytes| !is_taken && looks_like_json(body);
                if let Some(body) = body.ok().filter(is_message) {
                    self.answers.deliver(body, None);
                }
            }
            Content::Nothing => {}
        }
    }

    /// Opens the stream of unsolicited messages, or resumes another stream.
    pub(super) async fn open_stream(
        &self,
        last_id: Option<&Bytes>,
    ) -> Result<Response, RequestFailure> {
        let mut exchange = self.bare(Method::GET);
        exchange.headers.insert(ACCEPT, EVENTS);
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            exchange.headers.insert(LAST_EVENT_ID, id);
        }
        self.channel.exchange(&exchange).await
    }

    /// Marks the stream of unsolicited messages as open until the guard is dropped.
    pub(super) fn listening(&self) -> impl Drop + '_ {
        struct Listening<'l>(&'l AtomicUsize);
        impl Drop for Listening<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::AcqRel);
            }
        }
        self.listening.fetch_add(1, Ordering::AcqRel);
        Listening(&self.listening)
    }

    /// Records that the server has answered the request for the stream of unsolicited messages.
    pub(super) fn has_listened(&self) {
        self.listened.send_replace(true);
    }

    pub(super) fn answers(&self) -> &Answers {
        &self.answers
    }

    pub(super) fn address(&self) -> &Address {
        self.channel.address()
    }

    pub(super) fn limit(&self) -> usize {
        self.channel.limit()
    }

    /// The failure for an error without an id.
    pub(super) fn unaddressed(&self, body: &Bytes) -> RequestFailure {
        let in_session = lock(&self.handshake).session.is_some();
        let refusal = failure::unaddressed_error(body, in_session);
        RequestFailure::Refused(Box::new(refusal))
    }

    fn post(
        &self,
        payload: Vec<u8>,
        headers: Vec<headers::Header>,
        era: Era,
    ) -> Result<Exchange, TransportError> {
        let mut headers = protocol_headers(headers)?;
        headers.insert(ACCEPT, JSON_OR_EVENTS);
        headers.insert(CONTENT_TYPE, JSON);
        let session = match era {
            Era::Stateful => lock(&self.handshake).session.clone(),
            Era::Stateless => None,
        };
        let in_session = session.is_some();
        if let Some(session) = session {
            headers.insert(SESSION, session);
        }
        Ok(Exchange {
            method: Method::POST,
            url: self.channel.address().url().clone(),
            headers,
            body: Some(Bytes::from(payload)),
            in_session,
        })
    }

    /// A request without a body, in the session and revision of the handshake.
    fn bare(&self, method: Method) -> Exchange {
        let Handshake { session, revision } = lock(&self.handshake).clone();
        let mut headers = HeaderMap::new();
        let version = revision.filter(|revision| revision.has(Feature::VersionHeader));
        if let Some(revision) = version {
            headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
        }
        let in_session = session.is_some();
        if let Some(session) = session {
            headers.insert(SESSION, session);
        }
        Exchange {
            method,
            url: self.channel.address().url().clone(),
            headers,
            body: None,
            in_session,
        }
    }

    /// Stores the session id of a response. After the handshake it no longer changes.
    fn learn_session(&self, response: &Response, era: Era) {
        let Some(session) = response.headers().get(SESSION) else {
            return;
        };
        let is_valid = (1..=MAX_SESSION).contains(&session.len())
            && session.as_bytes().iter().all(u8::is_ascii_graphic);
        let mut handshake = lock(&self.handshake);
        if era == Era::Stateless || handshake.revision.is_some() {
            return;
        }
        if is_valid {
            let mut session = session.clone();
            session.set_sensitive(true);
            handshake.session = Some(session);
        } else {
            tracing::warn!("the server's session id is not visible ASCII and is not used");
        }
    }
}

fn broken_rules(message: impl Into<String>) -> RequestFailure {
    RequestFailure::Lost(TransportError::new(TransportErrorKind::Protocol, message))
}
