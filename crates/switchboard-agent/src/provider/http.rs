//! What every provider needs of HTTP: one POST, and the events that stream back.
//!
//! Owns deadlines and sizes. Opening a connection has a deadline (the client's), and so has every wait for more bytes;
//! an answer as a whole has none, for a model may think for long. It must not know what an event means: that is the
//! business of a [`Decode`].

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use switchboard::internal::transport::http::sse::{Decoded, Decoder};
use switchboard_config::secret::Secret;
use tokio::time::timeout;

use super::failure::{self, Told};
use super::{Chunk, ModelReply, ProviderError, ProviderErrorKind};

/// The largest event.
const MAX_EVENT: usize = 8 * 1024 * 1024;
/// The largest answer, all its events together.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// How much of a refusal is read.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long the rest of a refusal may take.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(10);
/// How long more is waited for when the answer is complete but the stream goes on: some servers tell the usage then,
/// and some forget to end the stream.
const AFTER_THE_END: Duration = Duration::from_secs(3);

/// Where a model is asked.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// The provider, for errors.
    pub(super) provider: String,
    pub(super) client: reqwest::Client,
    /// The address that is posted to.
    pub(super) url: reqwest::Url,
    /// Headers for every request, the key among them.
    pub(super) headers: HeaderMap,
    /// The key, so that it can be kept out of errors.
    pub(super) key: Option<Secret>,
    /// How long nothing may come.
    pub(super) idle: Duration,
}

/// Turns the events of one answer into chunks.
pub(super) trait Decode: Send {
    /// Takes the data of one event.
    fn take(&mut self, data: &[u8], chunks: &mut VecDeque<Chunk>) -> Result<(), ProviderError>;

    /// Whether the answer is complete, though more may come.
    fn is_complete(&self) -> bool;

    /// Whether nothing more comes.
    fn is_over(&self) -> bool;

    /// The answer, or what is missing.
    fn finish(&mut self) -> Result<ModelReply, ProviderError>;
}

/// Asks, and streams what is decoded of the answer.
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
    /// Posts a body. What streams back are events.
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

    /// Gets a JSON document, such as the list of models.
    pub(super) async fn get(&self) -> Result<Bytes, ProviderError> {
        self.fetch(None).await
    }

    /// Gets a JSON document, with a question in JSON where it takes one.
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
        body.await
            .map_err(|_| self.error(ProviderErrorKind::TimedOut, "the answer does not end"))
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
        Err(failure::refused(&Told {
            provider: &self.provider,
            url: &self.shown(),
            status: response.status().as_u16(),
            headers: response.headers(),
            body: &body.unwrap_or_default(),
            key: self.key.as_ref(),
        }))
    }

    /// The address without what may be secret in it.
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

/// A header that says who asks, kept out of logs.
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

/// The events of one answer.
pub(super) struct Events {
    provider: String,
    response: reqwest::Response,
    form: Form,
    idle: Duration,
    /// How many bytes may still come.
    left: usize,
    has_ended: bool,
}

enum Form {
    Events(Decoder),
    /// One document, from a server that does not stream.
    Whole(BytesMut),
}

impl Events {
    /// The data of the next event; nothing at the end.
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
                    return Err(self.broken(&format!("the answer broke off: {cause}")));
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
                    // The last event counts also where the blank line after it is missing.
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

/// Takes one event; gives the answer when it was the last.
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
        // What comes after a complete answer is not worth losing it.
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
    format!("nothing came for {idle:?}")
}

fn starts_with(value: &[u8], essence: &str) -> bool {
    let start = value.get(..essence.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(essence.as_bytes()))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
