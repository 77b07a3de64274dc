//! Legacy HTTP+SSE transport: one GET stream carries every answer, and messages are sent by POST to the endpoint that
//! its first event names.
//!
//! The stream is the connection: when it ends, the link ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use switchboard_config::entry::Transport;
use switchboard_config::text::visible;
use switchboard_protocol::Revision;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use url::Url;

use super::address::shown_link;
use super::channel::{Channel, Content, Exchange, content, content_type, protocol_headers};
use super::delivery::{Begun, TAKE_DEADLINE, closed, deliver, plain, taken};
use super::events::{EventStream, looks_like_json, read_body};
use super::lifetime::{Lifetime, lock};
use super::sse::Decoded;
use super::{HttpClient, RemoteServer};
use crate::transport::{
    Abandoned, Closed, Connector, Destination, Inbound, Link, Outgoing, OutgoingKind,
    RequestFailure, Sending, Sent, TransportError, TransportErrorKind,
};

/// Events that may precede the one that names the endpoint.
const MOST_BEFORE_ENDPOINT: usize = 16;
/// Maximum length of the endpoint.
const MAX_ENDPOINT: usize = 8 * 1024;

/// Connector for HTTP+SSE links.
#[derive(Debug)]
pub struct LegacyConnector {
    channel: Arc<Channel>,
}

impl LegacyConnector {
    /// A connector for this server. Fails if the address or a header is invalid.
    pub fn new(client: &HttpClient, server: RemoteServer) -> Result<Self, TransportError> {
        Ok(Self::over(Channel::new(client, server)?))
    }

    pub(super) fn over(channel: Arc<Channel>) -> Self {
        Self { channel }
    }

    async fn open(&self) -> Result<(EventStream, Url), TransportError> {
        self.channel.prepare().await?;
        let address = self.channel.address();
        let exchange = Exchange {
            method: Method::GET,
            url: address.url().clone(),
            headers: HeaderMap::from_iter([(
                ACCEPT,
                HeaderValue::from_static("text/event-stream"),
            )]),
            body: None,
            in_session: false,
        };
        let response = self.channel.exchange(&exchange).await.map_err(plain)?;
        if content(&response) != Content::Events {
            let kind = content_type(&response);
            let kind = if kind.is_empty() {
                "no content type"
            } else {
                &kind
            };
            return Err(broken_rules(format!(
                "the server answered with {kind} where a stream of events was expected"
            )));
        }
        let mut stream = EventStream::new(response, self.channel.limit(), None);
        for _ in 0..=MOST_BEFORE_ENDPOINT {
            match stream.next(address).await? {
                Some(Decoded::Event { name, data }) if *name == *b"endpoint" => {
                    let url = self.endpoint(stream.url(), &data)?;
                    return Ok((stream, url));
                }
                Some(_) => {}
                None => {
                    return Err(broken_rules(
                        "the server's stream ended before it named an endpoint",
                    ));
                }
            }
        }
        Err(broken_rules("the server's stream names no endpoint"))
    }

    fn endpoint(&self, base: &Url, data: &[u8]) -> Result<Url, TransportError> {
        let address = self.channel.address();
        let link = std::str::from_utf8(data)
            .ok()
            .filter(|link| link.len() <= MAX_ENDPOINT && !link.trim().is_empty())
            .and_then(|link| address.resolve(base, link).ok())
            .ok_or_else(|| broken_rules("the server's stream names an invalid endpoint"))?;
        if !address.has_origin_of(&link) {
            let (link, own) = (shown_link(&link), address.shown());
            return Err(broken_rules(format!(
                "the server names the endpoint {link}, which is not at the origin of {own}"
            )));
        }
        Ok(link)
    }
}

impl Connector for LegacyConnector {
    fn transport(&self) -> Transport {
        Transport::Sse
    }

    fn destination(&self) -> Destination {
        self.channel.destination()
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            let (stream, endpoint) = self.open().await?;
            let shared = Arc::new(Shared {
                channel: Arc::clone(&self.channel),
                endpoint,
                inbound,
                posts: Mutex::default(),
                lifetime: Lifetime::new(),
            });
            let supervisor = Arc::clone(&shared).supervise(stream);
            shared.lifetime.supervise(supervisor);
            Ok(Arc::new(LegacyLink { shared }) as Arc<dyn Link>)
        })
    }
}

struct LegacyLink {
    shared: Arc<Shared>,
}

struct Shared {
    channel: Arc<Channel>,
    endpoint: Url,
    inbound: Arc<dyn Inbound>,
    /// POSTs of requests that the server has not accepted yet.
    posts: Mutex<HashMap<u64, AbortHandle>>,
    lifetime: Lifetime,
}

impl Link for LegacyLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        taken(self.begin(message))
    }

    fn abandon(&self, request: u64) -> Abandoned {
        if let Some(post) = lock(&self.shared.posts).remove(&request) {
            post.abort();
        }
        Abandoned::NotTold
    }

    fn opened(&self, _revision: Revision) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.lifetime.close())
    }
}

impl Drop for LegacyLink {
    fn drop(&mut self) {
        self.shared.lifetime.stop();
    }
}

impl LegacyLink {
    fn begin(&self, message: Outgoing) -> Begun {
        let mut headers = protocol_headers(message.headers)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let exchange = Exchange {
            method: Method::POST,
            url: self.shared.endpoint.clone(),
            headers,
            body: Some(Bytes::from(message.payload)),
            in_session: false,
        };
        let shared = Arc::clone(&self.shared);
        let lifetime = &self.shared.lifetime;
        if let OutgoingKind::Request(request) = message.kind {
            // The lock is held meanwhile, so that a task that ends at once finds its entry.
            let mut posts = lock(&self.shared.posts);
            let post = lifetime
                .spawn(async move { shared.request(request, exchange).await })
                .ok_or_else(closed)?;
            posts.insert(request, post);
            return Ok(None);
        }
        let (report, taken) = oneshot::channel();
        lifetime
            .spawn(async move { shared.tell(exchange, report).await })
            .ok_or_else(closed)?;
        Ok(Some(taken))
    }
}

impl Shared {
    /// Reads the stream until it ends or the link is stopped, then ends the link.
    async fn supervise(self: Arc<Self>, stream: EventStream) {
        let closed = tokio::select! {
            closed = self.read(stream) => closed,
            () = self.lifetime.stopped() => Closed::ByUs,
        };
        self.lifetime.end_tasks().await;
        self.inbound.closed(closed);
        self.lifetime.end();
    }

    async fn read(&self, mut stream: EventStream) -> Closed {
        loop {
            match stream.next(self.channel.address()).await {
                Ok(Some(Decoded::Event { name, data })) => {
                    if name.is_empty() || *name == *b"message" || looks_like_json(&data) {
                        self.inbound.frame(data);
                    }
                }
                Ok(Some(Decoded::Oversized { start })) => {
                    self.inbound.oversized(&start, self.channel.limit());
                }
                Ok(None) => return Closed::ByServer,
                Err(error) => return Closed::Broken(error.message),
            }
        }
    }

    async fn request(&self, request: u64, exchange: Exchange) {
        let outcome = self.channel.exchange(&exchange).await;
        let outcome = match outcome {
            Ok(response) => self.take(response).await,
            Err(failure) => Err(failure),
        };
        let is_wanted = lock(&self.posts).remove(&request).is_some();
        if let Err(failure) = outcome
            && is_wanted
        {
            self.inbound.failed(request, failure);
        }
    }

    async fn tell(&self, exchange: Exchange, report: oneshot::Sender<Sent>) {
        if let Some(response) = deliver(&self.channel, &exchange, report).await {
            // The server has accepted the message; the outcome of reading its body does not matter.
            let _ = self.take(response).await;
        }
    }

    /// Reads the body of a POST's response. It should be empty or `Accepted`; some servers send a message.
    async fn take(&self, response: Response) -> Result<(), RequestFailure> {
        if content(&response) != Content::Body {
            return Ok(());
        }
        let body = read_body(response, self.channel.limit(), self.channel.address());
        let body = match tokio::time::timeout(TAKE_DEADLINE, body).await {
            Ok(Ok(body)) => body,
            Ok(Err(failure @ RequestFailure::TooLarge { .. })) => return Err(failure),
            // The answer arrives on the stream, so a truncated or stalled body does not matter.
            Ok(Err(_)) | Err(_) => return Ok(()),
        };
        if looks_like_json(&body) && body.len() > 2 {
            self.inbound.frame(body);
        }
        Ok(())
    }
}

fn broken_rules(message: impl Into<String>) -> TransportError {
    let message = message.into();
    TransportError::new(TransportErrorKind::Protocol, visible(&message).into_owned())
}
