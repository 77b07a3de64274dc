//! HTTP client for OAuth requests: metadata, registration, tokens.
//!
//! Most URLs come from untrusted servers. The connected address is checked against the server's [`SsrfPolicy`], also
//! after DNS resolution and after each redirect. Responses are limited in size and time and must be uncompressed.
//! Redirects are followed only for documents, never for forms, which hold secrets.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response};
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;
use url::{Origin, Url};

use super::ssrf::{Network, Place, SsrfPolicy, SystemNetwork, TOO_NEAR};
use crate::transport::TransportError;
use crate::transport::http::HttpClient;

/// Maximum size of a response body, in bytes.
const MAX_BODY: usize = 256 * 1024;
/// Deadline for one exchange, from DNS lookup to the last byte.
const DEADLINE: Duration = Duration::from_secs(20);
/// Maximum number of redirects for one document.
const MOST_REDIRECTS: usize = 3;
/// Response header with the nonce for the next `DPoP` proof.
pub(crate) const DPOP_NONCE: &str = "dpop-nonce";

/// Fetches documents and posts forms under the SSRF policy of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    http: HttpClient,
    network: Arc<dyn Network>,
    /// One client per policy level, so that no server uses a pooled connection of a less restricted one.
    clients: [OnceLock<Result<reqwest::Client, TransportError>>; 3],
}

#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) status: u16,
    pub(super) body: Bytes,
    pub(super) challenges: Vec<String>,
    pub(super) dpop_nonce: Option<String>,
}

#[derive(Debug)]
pub(super) enum Body {
    Form(Secret),
    Json(Secret),
}

impl Fetcher {
    /// Uses the TLS roots and proxies of `client`.
    pub fn new(client: &HttpClient) -> Self {
        Self::with_network(client, Arc::new(SystemNetwork))
    }

    /// Resolves and classifies addresses with `network`.
    pub fn with_network(client: &HttpClient, network: Arc<dyn Network>) -> Self {
        Self(Arc::new(Inner {
            http: client.clone(),
            network,
            clients: Default::default(),
        }))
    }

    /// Returns the SSRF policy for a server at this URL.
    pub(super) async fn reach(&self, server: &Url, trusted: Vec<Origin>) -> SsrfPolicy {
        let found = SsrfPolicy::of(&*self.0.network, server, trusted.clone());
        match tokio::time::timeout(DEADLINE, found).await {
            Ok(reach) => reach,
            // A server that cannot be resolved in time is treated as public.
            Err(_) => SsrfPolicy::of(&Silent, server, trusted).await,
        }
    }

    /// Checks a URL against the policy without resolving its host name.
    pub(super) fn check(&self, url: &Url, reach: &SsrfPolicy) -> Result<(), FetchError> {
        let checked = reach.check(&*self.0.network, url);
        checked.map_err(|reason| FetchError::new(url, FetchErrorKind::Forbidden(reason)))
    }

    /// Fetches a document and follows redirects.
    pub(super) async fn get(&self, url: &Url, reach: &SsrfPolicy) -> Result<Fetched, FetchError> {
        let fetched = async {
            let mut url = url.clone();
            for _ in 0..=MOST_REDIRECTS {
                let client = self.client(&url, reach).await?;
                let request = client.get(url.clone()).header(ACCEPT, "application/json");
                let response = send(request, &url).await?;
                let Some(target) = redirect(&response, &url) else {
                    return read(response, &url).await;
                };
                url = target;
            }
            Err(FetchError::new(&url, FetchErrorKind::Redirected))
        };
        in_time(url, fetched).await
    }

    /// Posts a body and returns the response. Does not follow redirects.
    pub(super) async fn post(
        &self,
        url: &Url,
        reach: &SsrfPolicy,
        headers: &[(&'static str, Secret)],
        body: &Body,
    ) -> Result<Fetched, FetchError> {
        let fetched = async {
            let client = self.client(url, reach).await?;
            let (kind, text) = match body {
                Body::Form(text) => ("application/x-www-form-urlencoded", text),
                Body::Json(text) => ("application/json", text),
            };
            let mut request = client
                .post(url.clone())
                .header(CONTENT_TYPE, kind)
                .body(text.expose().to_owned());
            if !headers.iter().any(|(name, _)| *name == ACCEPT.as_str()) {
                request = request.header(ACCEPT, "application/json");
            }
            for (name, value) in headers {
                request = request.header(*name, value.expose());
            }
            let response = send(request, url).await?;
            if response.status().is_redirection() {
                return Err(FetchError::new(url, FetchErrorKind::Redirected));
            }
            read(response, url).await
        };
        in_time(url, fetched).await
    }

    async fn client(&self, url: &Url, reach: &SsrfPolicy) -> Result<reqwest::Client, FetchError> {
        self.check(url, reach)?;
        let nearest = reach.nearest_for(url);
        let proxies = self.0.http.proxy_hosts();
        if !proxies.is_empty() {
            self.check_behind_proxy(url, nearest, &proxies).await?;
        }
        let slot = match nearest {
            Place::Public => &self.0.clients[0],
            Place::Private => &self.0.clients[1],
            Place::Loopback | Place::Nowhere => &self.0.clients[2],
        };
        let client = slot.get_or_init(|| {
            self.0.http.resolving_by(Arc::new(SsrfResolver {
                network: Arc::clone(&self.0.network),
                nearest,
                proxies,
            }))
        });
        client.clone().map_err(|error| {
            FetchError::new(url, FetchErrorKind::Unreachable(error.message.clone()))
        })
    }

    /// A proxy resolves names itself, so the name is resolved and checked here beforehand.
    async fn check_behind_proxy(
        &self,
        url: &Url,
        nearest: Place,
        proxies: &[String],
    ) -> Result<(), FetchError> {
        let too_near = || FetchError::new(url, FetchErrorKind::Forbidden(TOO_NEAR));
        let Some(url::Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        if nearest == Place::Public && proxies.iter().any(|proxy| proxy == name) {
            return Err(too_near());
        }
        let found = self.0.network.lookup(name).await.unwrap_or_default();
        let is_near = |address: &IpAddr| self.0.network.place(*address) > nearest;
        if found.iter().any(is_near) {
            return Err(too_near());
        }
        Ok(())
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fetcher")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// DNS resolver that drops addresses not allowed by the policy.
#[derive(Debug)]
struct SsrfResolver {
    network: Arc<dyn Network>,
    nearest: Place,
    /// Proxy host names from the machine's configuration; exempt from the policy.
    proxies: Vec<String>,
}

impl Resolve for SsrfResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let network = Arc::clone(&self.network);
        let is_proxy = self.proxies.iter().any(|proxy| proxy == name.as_str());
        let nearest = self.nearest;
        Box::pin(async move {
            let found = network.lookup(name.as_str()).await?;
            let allowed: Vec<SocketAddr> = found
                .iter()
                .filter(|address| is_proxy || network.place(**address) <= nearest)
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            if allowed.is_empty() && !found.is_empty() {
                return Err(TooNear.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the name resolves to a private address")]
struct TooNear;

/// Network that resolves no names, so that every named host counts as public.
#[derive(Debug)]
struct Silent;

impl Network for Silent {
    fn lookup<'a>(
        &'a self,
        _host: &'a str,
    ) -> futures_util::future::BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

async fn in_time<T>(
    url: &Url,
    future: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(outcome) => outcome,
        Err(_) => Err(FetchError::new(url, FetchErrorKind::Timeout)),
    }
}

async fn send(request: RequestBuilder, url: &Url) -> Result<Response, FetchError> {
    request.send().await.map_err(|error| {
        let is_too_near = |cause: &(dyn Error + 'static)| cause.is::<TooNear>();
        let kind = if causes(&error).any(is_too_near) {
            FetchErrorKind::Forbidden(TOO_NEAR)
        } else if error.is_timeout() {
            FetchErrorKind::Timeout
        } else {
            let last = causes(&error).last();
            let reason = last.map_or_else(|| "no connection".to_owned(), ToString::to_string);
            FetchErrorKind::Unreachable(visible(&reason).into_owned())
        };
        FetchError::new(url, kind)
    })
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| {
        (*cause).source()
    })
}

/// Returns the target of a redirect response.
fn redirect(response: &Response, base: &Url) -> Option<Url> {
    let follows = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| follows)?;
    let mut target = base.join(location.to_str().ok()?).ok()?;
    target.set_fragment(None);
    Some(target)
}

async fn read(mut response: Response, url: &Url) -> Result<Fetched, FetchError> {
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let encoding = header(CONTENT_ENCODING.as_str());
    if encoding.is_some_and(|encoding| !matches!(encoding.as_str(), "" | "identity")) {
        return Err(FetchError::new(url, FetchErrorKind::Compressed));
    }
    let dpop_nonce = header(DPOP_NONCE);
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let challenges = challenges
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    let status = response.status().as_u16();
    let mut body = BytesMut::new();
    loop {
        let chunk = response.chunk().await.map_err(|_| {
            let reason = "connection lost mid-response".to_owned();
            FetchError::new(url, FetchErrorKind::Unreachable(reason))
        })?;
        let Some(chunk) = chunk else { break };
        if body.len() + chunk.len() > MAX_BODY {
            return Err(FetchError::new(url, FetchErrorKind::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Fetched {
        status,
        body: body.freeze(),
        challenges,
        dpop_nonce,
    })
}

/// Error of one HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url} {kind}")]
#[non_exhaustive]
pub struct FetchError {
    /// Target URL, without its query.
    pub url: String,
    /// Cause of the failure.
    pub kind: FetchErrorKind,
}

impl FetchError {
    fn new(url: &Url, kind: FetchErrorKind) -> Self {
        Self {
            url: shown(url),
            kind,
        }
    }

    /// Whether a retry may succeed: the network failed, and the request was not refused.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.kind,
            FetchErrorKind::Timeout | FetchErrorKind::Unreachable(_)
        )
    }
}

/// Cause of a failed fetch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The SSRF policy forbids the address.
    #[error("may not be fetched: {0}")]
    Forbidden(&'static str),
    /// Name resolution, connection or transfer failed.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The deadline passed.
    #[error("did not answer in time")]
    Timeout,
    /// A redirect that may not be followed, or too many redirects.
    #[error("sent a redirect, which is not followed")]
    Redirected,
    /// The body exceeds the size limit.
    #[error("sent more than {MAX_BODY} bytes")]
    TooLarge,
    /// The response is compressed although no encoding was requested.
    #[error("sent a compressed response, which was not requested")]
    Compressed,
}

/// Formats a URL for display: removes user info, query and fragment, which can hold secrets, and sanitizes the rest.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    visible(url.as_str()).into_owned()
}
