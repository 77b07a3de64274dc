//! One HTTP exchange with a server: sends a request and returns the response head.
//!
//! Owns the address and configured headers of a server. Redirects are followed here and only within the origin, because
//! the headers contain secrets. A request refused for lack of credentials is retried with better ones if there are any
//! (`permit.rs`).

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Method, Response, StatusCode};
use switchboard_config::text::visible;
use switchboard_protocol::headers::Header;
use url::Url;

use super::address::Address;
use super::client::HttpClient;
use super::permit::Permits;
use super::{RemoteServer, failure};
use crate::transport::{Destination, RequestFailure, TransportError, TransportErrorKind};

/// Maximum number of redirects per request.
const MOST_REDIRECTS: usize = 5;

/// HTTP access to one server.
#[derive(Debug)]
pub(super) struct Channel {
    client: reqwest::Client,
    address: Address,
    permits: Permits,
    limit: usize,
    has_proxy: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) url: Url,
    /// Headers besides the configured ones, which they override.
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) in_session: bool,
}

/// Content type of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    Events,
    /// JSON, or anything else that may turn out to be JSON.
    Body,
}

impl Channel {
    pub(super) fn new(
        client: &HttpClient,
        server: RemoteServer,
    ) -> Result<Arc<Self>, TransportError> {
        let address = Address::parse(server.url.expose(), &["http", "https"])?;
        Ok(Arc::new(Self {
            client: client.for_address(&address)?,
            permits: Permits::new(server)?,
            limit: client.settings().max_message_bytes,
            has_proxy: client.settings().proxy.applies_to(&address),
            address,
        }))
    }

    /// Target of the channel, for messages.
    pub(super) fn destination(&self) -> Destination {
        self.address.destination(&self.permits, self.has_proxy)
    }

    /// Prepares the headers for a new link.
    pub(super) async fn prepare(&self) -> Result<(), TransportError> {
        self.permits.prepare().await
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Maximum size of a received message, in bytes.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Sends a request and waits for the head of a successful response.
    pub(super) async fn exchange(&self, exchange: &Exchange) -> Result<Response, RequestFailure> {
        let mut url = exchange.url.clone();
        let mut redirects = 0;
        let method = exchange.method.as_str();
        let mut permit = self.permits.issue(method, &url, None).await;
        loop {
            let response = self.send(exchange, &url, &permit.headers).await?;
            self.permits.answered(&url, response.headers());
            let status = response.status();
            if status.is_success() {
                return accept(response);
            }
            let challenges = failure::challenges(response.headers());
            let again = self.permits.is_worth_another_try(
                method,
                &url,
                &mut permit,
                status.as_u16(),
                &challenges,
            );
            if again.await.map_err(RequestFailure::NotSent)? {
                permit = self.permits.issue(method, &url, Some(&permit)).await;
                continue;
            }
            match self.redirect(exchange, &url, &response) {
                Some(target) if !self.address.has_origin_of(&target) => {
                    let refusal = failure::foreign_redirect(&response, &target);
                    return Err(RequestFailure::Refused(Box::new(refusal)));
                }
                Some(target) if redirects < MOST_REDIRECTS => {
                    redirects += 1;
                    url = target;
                    permit = self.permits.issue(method, &url, Some(&permit)).await;
                }
                _ => {
                    let refusal = failure::refusal(response, exchange.in_session).await;
                    return Err(RequestFailure::Refused(Box::new(refusal)));
                }
            }
        }
    }

    async fn send(
        &self,
        exchange: &Exchange,
        url: &Url,
        configured: &HeaderMap,
    ) -> Result<Response, RequestFailure> {
        let mut request = self
            .client
            .request(exchange.method.clone(), url.clone())
            .headers(configured.clone())
            .headers(exchange.headers.clone());
        if let Some(body) = &exchange.body {
            request = request.body(body.clone());
        }
        request
            .send()
            .await
            .map_err(|error| failure::of_request(&error, &self.address))
    }

    /// Target of a redirect that repeats the request unchanged.
    ///
    /// 301 and 302 also repeat a POST: browsers turn it into a GET, which is never right for an MCP server that has
    /// moved.
    fn redirect(&self, exchange: &Exchange, base: &Url, response: &Response) -> Option<Url> {
        let repeats = match response.status().as_u16() {
            301 | 302 | 307 | 308 => true,
            303 => exchange.method == Method::GET,
            _ => false,
        };
        let location = response.headers().get(LOCATION).filter(|_| repeats)?;
        let location = std::str::from_utf8(location.as_bytes()).ok()?;
        self.address.resolve(base, location).ok()
    }
}

pub(super) fn content(response: &Response) -> Content {
    let nothing = matches!(
        response.status(),
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT
    );
    let essence = content_type(response);
    if essence.eq_ignore_ascii_case("text/event-stream") {
        Content::Events
    } else if response.content_length() == Some(0) || (nothing && essence.is_empty()) {
        Content::Nothing
    } else {
        Content::Body
    }
}

/// Content type without parameters, sanitized; empty if absent.
pub(super) fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    visible(essence).into_owned()
}

/// Converts protocol headers to HTTP headers.
pub(super) fn protocol_headers(headers: Vec<Header>) -> Result<HeaderMap, TransportError> {
    let mut map = HeaderMap::with_capacity(headers.len() + 4);
    for Header { name, value } in headers {
        let invalid = || {
            TransportError::new(
                TransportErrorKind::Invalid,
                format!(
                    "the header `{}` of the message cannot be sent",
                    visible(&name)
                ),
            )
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        map.insert(header, value);
    }
    Ok(map)
}

/// Rejects a compressed body, which was not requested and could be a decompression bomb.
fn accept(response: Response) -> Result<Response, RequestFailure> {
    let encoding = response.headers().get(CONTENT_ENCODING);
    match encoding.map(|value| value.to_str().unwrap_or("unknown")) {
        None | Some("identity" | "") => Ok(response),
        Some(encoding) => Err(RequestFailure::Lost(TransportError::new(
            TransportErrorKind::Protocol,
            format!(
                "the server's answer is compressed ({}), which it was not asked for",
                visible(encoding)
            ),
        ))),
    }
}
