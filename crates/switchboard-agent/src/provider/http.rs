//! HTTP for all providers: sends one POST and decodes the event stream that comes back.
//!
//! Enforces timeouts and size limits. Connecting has a deadline (set in the client), and so has each wait for more
//! bytes; a whole answer has none, as a model may think for a long time. A [`Decode`] interprets the events.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use switchboard::internal::transport::http::sse::{Decoded, Decoder};
use switchboard_config::secret::Secret;
use tokio::time::timeout;

use super::failure::{self, ErrorResponse};
use super::{Chunk, ModelReply, ProviderError, ProviderErrorKind};

/// Maximum size of one event, in bytes.
const MAX_EVENT: usize = 8 * 1024 * 1024;
/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Maximum number of bytes read of an error response.
const MAX_REFUSAL: usize = 64 * 1024;
/// Deadline for the body of an error response or JSON document.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait for more events after a complete answer: some servers send the usage last, and some never close the
/// stream.
const AFTER_THE_END: Duration = Duration::from_secs(3);

/// A URL to post to, with its client and headers.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// Name of the provider, for errors.
    pub(super) provider: String,
    pub(super) client: reqwest::Client,
    pub(super) url: reqwest::Url,
    /// Sent with every request, including the key.
    pub(super) headers: HeaderMap,
    /// Redacted from errors.
    pub(super) key: Option<Secret>,
    /// Maximum time without any bytes.
    pub(super) idle: Duration,
}

/// Decodes the events of one answer into chunks.
pub(super) trait Decode: Send {
    /// Decodes the data of one event.
    fn take(&mut self, data: &[u8], chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError>;

    /// Whether the answer is complete, though more events, such as the usage, may follow.
    fn is_complete(&self) -> bool;

    /// Whether the end-of-stream marker was received.
    fn is_over(&self) -> bool;

    /// Returns the answer, or an error if it is incomplete.
    fn finish(&mut self) -> Result<ModelReply, ProviderError>;
}

/// Streams the decoded answer. `opening` sends the request.
pub(super) fn answer<'a, D: Decode + 'a>(
    opening: BoxFuture<'a, Result<Events, ProviderError>>,
    decoder: D,
) -> BoxStream<'a, Result<Chunk, ProviderError>> {
    let streaming = Streaming {
        source: Source::Opening(opening),
        decoder,
        chunks: VecDeque::new(),
    };
    Box::pin(stream::unfold(streaming, |mut streaming| async move {
        let item = streaming.next().await?;
        Some((item, streaming))
    }))
}

impl Endpoint {
    /// Posts a body and returns the event stream.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<Events, ProviderError> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
            .body(body);
        let response = self.send(request).await?;
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.map(HeaderValue::as_bytes).unwrap_or_default();
        let form = if starts_with(content_type, "application/json") {
            Form::Whole(BytesMut::new())
        } else if starts_with(content_type, "text/html") {
            let message = format!("{} is a web page, not a model", self.shown());
            return Err(self.error(ProviderErrorKind::Refused, message));
        } else {
            Form::Events(Decoder::new(MAX_EVENT, None))
        };
        Ok(Events {
            provider: self.provider.clone(),
            response,
            form,
            idle: self.idle,
            left: MAX_ANSWER,
            has_ended: false,
        })
    }

    /// Fetches a JSON document, such as the list of models.
    pub(super) async fn get(&self) -> Result<Bytes, ProviderError> {
        self.fetch(None).await
    }

    /// Fetches a JSON document: a POST with `question` as the body if given, else a GET.
    pub(super) async fn fetch(&self, question: Option<String>) -> Result<Bytes, ProviderError> {
        let request = match question {
            None => self.client.get(self.url.clone()),
            Some(question) => self
                .client
                .post(self.url.clone())
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(question),
        };
        let request = request.headers(self.headers.clone());
        let mut response = self.send(request).await?;
        let body = timeout(REFUSAL_DEADLINE, read_start(&mut response, MAX_EVENT));
        body.await.map_err(|_| {
            self.error(
                ProviderErrorKind::TimedOut,
                "timed out while reading the answer",
            )
        })
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, ProviderError> {
        let sent = timeout(self.idle, request.send()).await;
        let mut response = match sent {
            Err(_) => return Err(self.error(ProviderErrorKind::TimedOut, silence(self.idle))),
            Ok(Err(error)) => {
                return Err(failure::not_sent(&self.provider, &self.shown(), &error));
            }
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let body = timeout(REFUSAL_DEADLINE, read_start(&mut response, MAX_REFUSAL)).await;
        Err(failure::refused(&ErrorResponse {
            provider: &self.provider,
            url: &self.shown(),
            status: response.status().as_u16(),
            headers: response.headers(),
            body: &body.unwrap_or_default(),
            key: self.key.as_ref(),
        }))
    }

    /// The URL without credentials and query.
    pub(super) fn shown(&self) -> String {
        let mut url = self.url.clone();
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.set_query(None);
        url.into()
    }

    fn error(&self, kind: ProviderErrorKind, message: impl Into<String>) -> ProviderError {
        ProviderError::new(&self.provider, kind, message)
    }
}

/// Adds a header that holds a secret; its value is kept out of logs.
pub(super) fn secret_header(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: &str,
) -> Result<(), reqwest::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

pub(super) struct Events {
    provider: String,
    response: reqwest::Response,
    form: Form,
    idle: Duration,
    /// Remaining bytes of `MAX_ANSWER`.
    left: usize,
    has_ended: bool,
}

enum Form {
    Events(Decoder),
    /// A JSON document, from a server that does not stream.
    Whole(BytesMut),
}

impl Events {
    /// The data of the next event; `None` at the end.
    async fn next(&mut self, idle: Duration) -> Result<Option<Bytes>, ProviderError> {
        loop {
            if let Form::Events(decoder) = &mut self.form {
                match decoder.take() {
                    Some(Decoded::Event { data, .. }) => return Ok(Some(data)),
                    Some(Decoded::Oversized { .. }) => {
                        return Err(self.broken("an event is too large"));
                    }
                    None => {}
                }
            }
            if self.has_ended {
                return Ok(None);
            }
            let chunk = match timeout(idle, self.response.chunk()).await {
                Err(_) => {
                    let kind = ProviderErrorKind::TimedOut;
                    return Err(ProviderError::new(&self.provider, kind, silence(idle)));
                }
                Ok(Err(error)) => {
                    let cause = failure::innermost(&error);
                    return Err(self.broken(&format!("the answer was cut off: {cause}")));
                }
                Ok(Ok(chunk)) => chunk,
            };
            match (chunk, &mut self.form) {
                (Some(chunk), form) => {
                    let Some(left) = self.left.checked_sub(chunk.len()) else {
                        return Err(self.broken("the answer is too large"));
                    };
                    self.left = left;
                    match form {
                        Form::Events(decoder) => decoder.push(chunk),
                        Form::Whole(whole) => whole.extend_from_slice(&chunk),
                    }
                }
                (None, Form::Events(decoder)) => {
                    self.has_ended = true;
                    // Flush the last event, in case the blank line after it is missing.
                    decoder.push(Bytes::from_static(b"\n\n"));
                }
                (None, Form::Whole(whole)) => {
                    self.has_ended = true;
                    return Ok(Some(whole.split().freeze()));
                }
            }
        }
    }

    fn broken(&self, message: &str) -> ProviderError {
        ProviderError::new(&self.provider, ProviderErrorKind::Broken, message)
    }
}

struct Streaming<'a, D> {
    source: Source<'a>,
    decoder: D,
    chunks: VecDeque<Chunk>,
}

enum Source<'a> {
    Opening(BoxFuture<'a, Result<Events, ProviderError>>),
    Open(Box<Events>),
    Ended,
}

impl<D: Decode> Streaming<'_, D> {
    async fn next(&mut self) -> Option<Result<Chunk, ProviderError>> {
        loop {
            if let Some(chunk) = self.chunks.pop_front() {
                return Some(Ok(chunk));
            }
            let stepped = match &mut self.source {
                Source::Ended => return None,
                Source::Opening(opening) => match opening.await {
                    Ok(events) => {
                        self.source = Source::Open(Box::new(events));
                        continue;
                    }
                    Err(error) => Err(error),
                },
                Source::Open(events) => step(events, &mut self.decoder, &mut self.chunks).await,
            };
            match stepped {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    self.source = Source::Ended;
                    self.chunks.push_back(Chunk::End(answer));
                }
                Err(error) => {
                    self.source = Source::Ended;
                    self.chunks.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Decodes one event; returns the answer if it was the last.
async fn step<D: Decode>(
    events: &mut Events,
    decoder: &mut D,
    chunks: &mut VecDeque<Chunk>,
) -> Result<Option<ModelReply>, ProviderError> {
    let is_complete = decoder.is_complete();
    let idle = if is_complete {
        events.idle.min(AFTER_THE_END)
    } else {
        events.idle
    };
    match events.next(idle).await {
        Ok(Some(data)) => {
            decoder.take(&data, chunks)?;
            if decoder.is_over() {
                return decoder.finish().map(Some);
            }
            Ok(None)
        }
        Ok(None) => decoder.finish().map(Some),
        // An error after a complete answer does not matter.
        Err(_) if is_complete => decoder.finish().map(Some),
        Err(error) => Err(error),
    }
}

async fn read_start(response: &mut reqwest::Response, most: usize) -> Bytes {
    let mut start = BytesMut::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = most.saturating_sub(start.len());
        start.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if start.len() >= most {
            break;
        }
    }
    start.freeze()
}

fn silence(idle: Duration) -> String {
    format!("no data received for {idle:?}")
}

fn starts_with(value: &[u8], essence: &str) -> bool {
    let start = value.get(..essence.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(essence.as_bytes()))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
