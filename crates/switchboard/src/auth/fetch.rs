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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::transport::http::HttpSettings;

    /// Fetches from a server that answers each request with the next of these responses.
    async fn fetched(responses: Vec<String>) -> Result<Fetched, FetchError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = Url::parse(&format!("http://127.0.0.1:{port}/start?secret=1#part")).unwrap();
        let serve = async move {
            for response in responses {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                // Fails if the client has read enough.
                let _ = stream.write_all(response.as_bytes()).await;
            }
        };
        let settings = HttpSettings::default();
        let fetcher = Fetcher::new(&HttpClient::new(settings).unwrap());
        let reach = fetcher.reach(&url, Vec::new()).await;
        let server = tokio::spawn(serve);
        let outcome = fetcher.get(&url, &reach).await;
        server.abort();
        outcome
    }

    fn response(head: &str, length: usize) -> String {
        let body = "x".repeat(length);
        format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }

    fn redirects(count: usize) -> Vec<String> {
        let redirect = response("302 Found\r\nLocation: /next", 0);
        let mut responses = vec![redirect; count];
        responses.push(response("200 OK", 1));
        responses
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_a_length() {
        let longest = 256 * 1024;
        let body = fetched(vec![response("200 OK", longest)]).await.unwrap();
        assert_eq!((body.status, body.body.len()), (200, longest));
        let error = fetched(vec![response("200 OK", longest + 1)]).await;
        assert_eq!(error.unwrap_err().kind, FetchErrorKind::TooLarge);
    }

    #[tokio::test]
    async fn a_document_is_redirected_three_times_at_most() {
        assert_eq!(fetched(redirects(3)).await.unwrap().status, 200);
        let error = fetched(redirects(4)).await.unwrap_err();
        assert_eq!(error.kind, FetchErrorKind::Redirected);
        // Only a redirect with a target is one.
        let other = fetched(vec![response("304 Not Modified\r\nLocation: /next", 0)]).await;
        assert_eq!(other.unwrap().status, 304);
    }

    #[tokio::test]
    async fn only_what_was_not_compressed_is_read() {
        for (encoding, is_read) in [("", true), ("identity", true), ("gzip", false)] {
            let head = format!("200 OK\r\nContent-Encoding: {encoding}");
            let found = fetched(vec![response(&head, 1)]).await;
            assert_eq!(found.is_ok(), is_read, "{encoding}");
        }
    }
    /// The head of a request that posts a body with these headers.
    async fn posted(headers: &[(&'static str, Secret)]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let answer = response("200 OK", 1);
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap().to_ascii_lowercase()
        };
        let fetcher = Fetcher::new(&HttpClient::new(HttpSettings::default()).unwrap());
        let reach = fetcher.reach(&url, Vec::new()).await;
        let body = Body::Form(Secret::new("a=b"));
        let (head, answer) = tokio::join!(serve, fetcher.post(&url, &reach, headers, &body));
        assert_eq!(answer.unwrap().status, 200);
        head
    }

    #[tokio::test]
    async fn json_is_asked_for_unless_a_header_says_otherwise() {
        let accepted = |head: &str| -> Vec<String> {
            let lines = head
                .lines()
                .filter_map(|line| line.strip_prefix("accept: "));
            lines.map(str::to_owned).collect()
        };
        let other = ("x-other", Secret::new("1"));
        let head = posted(std::slice::from_ref(&other)).await;
        assert_eq!(accepted(&head), ["application/json"]);
        assert!(head.contains("x-other: 1"), "{head}");
        let own = ("accept", Secret::new("text/plain"));
        assert_eq!(accepted(&posted(&[other, own]).await), ["text/plain"]);
    }

    /// Names on the internet, in a private network and on this machine.
    #[derive(Debug)]
    struct Names;

    impl Network for Names {
        fn lookup<'a>(
            &'a self,
            host: &'a str,
        ) -> futures_util::future::BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
            let addresses: &[[u8; 4]] = match host {
                "far.example" => &[[1, 1, 1, 1]],
                "near.example" | "proxy.example" => &[[10, 0, 0, 1]],
                "both.example" => &[[1, 1, 1, 1], [10, 0, 0, 1]],
                "here.example" => &[[127, 0, 0, 1]],
                _ => &[],
            };
            let found = addresses.iter().map(|address| IpAddr::from(*address));
            Box::pin(std::future::ready(Ok(found.collect())))
        }
    }

    #[tokio::test]
    async fn a_proxy_is_not_asked_for_what_is_too_near() {
        let fetcher = |proxy: Option<&str>| {
            let mut settings = HttpSettings::default();
            settings.proxy.all = proxy.map(Secret::new);
            Fetcher::with_network(&HttpClient::new(settings).unwrap(), Arc::new(Names))
        };
        let url = |host: &str| Url::parse(&format!("https://{host}/")).unwrap();
        let behind = fetcher(Some("http://proxy.example:3128"));
        let direct = fetcher(None);
        for (server, host, is_allowed) in [
            ("far.example", "far.example", true),
            ("far.example", "unknown.example", true),
            ("far.example", "1.1.1.1", true),
            ("far.example", "near.example", false),
            ("far.example", "both.example", false),
            ("far.example", "here.example", false),
            ("far.example", "proxy.example", false),
            ("near.example", "far.example", true),
            ("near.example", "near.example", true),
            ("near.example", "proxy.example", true),
            ("near.example", "here.example", false),
        ] {
            let reach = behind.reach(&url(server), Vec::new()).await;
            let found = behind.client(&url(host), &reach).await.map(drop);
            let kind = found.map_err(|error| error.kind);
            let expected = if is_allowed {
                Ok(())
            } else {
                Err(FetchErrorKind::Forbidden(TOO_NEAR))
            };
            assert_eq!(kind, expected, "{server} leads to {host}");
            // Without a proxy, the resolver of the client checks names when it connects.
            let found = direct.client(&url(host), &reach).await;
            assert!(found.is_ok(), "{host}");
        }
    }

    #[tokio::test]
    async fn a_name_on_a_direct_way_is_checked_when_it_is_resolved() {
        let resolver = |nearest, proxies: &[&str]| SsrfResolver {
            network: Arc::new(Names),
            nearest,
            proxies: proxies.iter().map(|&proxy| proxy.to_owned()).collect(),
        };
        let check = async |resolver: SsrfResolver, name: &str, expected: Option<usize>| {
            let found = resolver.resolve(name.parse().unwrap()).await;
            assert_eq!(found.ok().map(Iterator::count), expected, "{name}");
        };
        check(resolver(Place::Public, &[]), "far.example", Some(1)).await;
        check(resolver(Place::Public, &[]), "both.example", Some(1)).await;
        check(resolver(Place::Public, &[]), "near.example", None).await;
        check(resolver(Place::Public, &[]), "unknown.example", Some(0)).await;
        check(resolver(Place::Private, &[]), "both.example", Some(2)).await;
        check(resolver(Place::Private, &[]), "here.example", None).await;
        let proxies = ["near.example"];
        check(resolver(Place::Public, &proxies), "near.example", Some(1)).await;
        check(resolver(Place::Public, &proxies), "here.example", None).await;
    }

    #[test]
    fn only_a_failure_of_the_network_passes() {
        let url = Url::parse("https://user:secret@h/path?secret#secret").unwrap();
        for (kind, is_passing) in [
            (FetchErrorKind::Timeout, true),
            (FetchErrorKind::Unreachable("x".to_owned()), true),
            (FetchErrorKind::Forbidden("x"), false),
            (FetchErrorKind::Redirected, false),
            (FetchErrorKind::TooLarge, false),
            (FetchErrorKind::Compressed, false),
        ] {
            let error = FetchError::new(&url, kind);
            assert_eq!(error.is_passing(), is_passing, "{error}");
            assert_eq!(error.url, "https://h/path");
        }
    }
}
