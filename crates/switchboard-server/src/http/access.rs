//! Access control: checks `Host`, `Origin` and the bearer token before anything else of a request is read.
//!
//! The first two keep web pages out. A page can make a browser send requests to loopback, and through DNS rebinding
//! even under its own host name, but it cannot forge these two headers.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, HOST, HeaderMap,
    HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use url::{Host, Url};

use super::answer::{self, BoxedResponse};
use super::credentials::{Credentials, TokenProblem};
use super::grant::Grant;
use super::named_tokens::DEFAULT_TOKEN;
use super::oauth::{AccessTokenProblem, ResourceServer};
use super::options::{Access, HttpOptions};
use super::token::Token;
use crate::handler::Principal;

#[derive(Debug)]
pub(super) struct AccessControl {
    clients: Clients,
    /// Host names served; `None` for a unix-domain socket, which has none.
    hosts: Option<Hosts>,
    /// Allowed origins besides loopback, as serialized by [`Url`].
    origins: Vec<String>,
    cors: bool,
    oauth: Option<ResourceServer>,
}

/// Which clients have access.
#[derive(Debug)]
enum Clients {
    Anyone(Grant),
    Holders(Token, Grant),
    Tokens(Credentials),
}

#[derive(Debug)]
struct Hosts {
    /// The address the server listens on.
    own: IpAddr,
    /// Additional names, each with the required port, if any.
    named: Vec<(String, Option<u16>)>,
}

impl AccessControl {
    /// `own` is the address the server listens on; `None` for a unix-domain socket.
    pub(super) fn new(options: &HttpOptions, own: Option<IpAddr>) -> Self {
        let named = options.allowed_hosts.iter();
        let named = named.filter_map(|host| split_port(host)).collect();
        let origins = options.allowed_origins.iter();
        Self {
            clients: match &options.access {
                Access::Anybody => Clients::Anyone(Grant::new(Principal::Anyone)),
                Access::Token(token) => {
                    let grant = Grant::new(Principal::Token(DEFAULT_TOKEN.into()));
                    Clients::Holders(token.clone(), grant)
                }
                Access::Tokens(sources) => Clients::Tokens(Credentials::new(sources)),
            },
            hosts: own.map(|own| Hosts { own, named }),
            origins: origins
                .map(|origin| match Url::parse(origin) {
                    Ok(url) => url.origin().ascii_serialization(),
                    Err(_) => origin.clone(),
                })
                .collect(),
            cors: options.cors,
            oauth: options.oauth.as_ref().map(ResourceServer::new),
        }
    }

    /// Identifies the client of a request. Rejects requests without access, and answers CORS preflight requests.
    pub(super) async fn check(&self, request: &Parts) -> Result<Grant, BoxedResponse> {
        self.check_host(request)?;
        let origin = self.check_origin(&request.headers)?;
        if self.cors && origin.is_some() && is_preflight(request) {
            // Preflight requests carry no token.
            return Err(preflight());
        }
        let Some(oauth) = &self.oauth else {
            return self.check_token(&request.headers).await;
        };
        if request.method == Method::GET
            && let Some(document) = oauth.metadata_at(request.uri.path())
        {
            // Clients without a token read it.
            return Err(answer::json(StatusCode::OK, document));
        }
        let checked = self.check_token(&request.headers).await;
        checked.map_err(|mut refused| {
            let challenge = refused.headers().get(WWW_AUTHENTICATE);
            if let Some(challenge) = challenge.and_then(|challenge| oauth.extend(challenge)) {
                refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            refused
        })
    }

    /// Ends the leases of tokens that are no longer valid. To be called about every second.
    pub(super) async fn refresh(&self) {
        if let Clients::Tokens(credentials) = &self.clients {
            credentials.refresh().await;
        }
    }

    /// Whether access can end while the server runs, so that [`refresh`](Self::refresh) must be called.
    pub(super) fn can_end(&self) -> bool {
        matches!(self.clients, Clients::Tokens(_))
    }

    /// Adds the CORS headers that let a page of an allowed origin read the answer.
    pub(super) fn share(&self, origin: Option<&HeaderValue>, answer: &mut BoxedResponse) {
        let Some(origin) = origin.filter(|_| self.cors) else {
            return;
        };
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
        );
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }

    fn check_host(&self, request: &Parts) -> Result<(), BoxedResponse> {
        let Some(hosts) = &self.hosts else {
            return Ok(());
        };
        let mut named = request.headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(answer::refuse(
                StatusCode::BAD_REQUEST,
                "the request must have one Host header",
            ));
        };
        let is_served = |host: &str| hosts.serve(host);
        // The request target may name a host too; both must be allowed.
        let authority = request.uri.authority();
        if host.to_str().is_ok_and(is_served)
            && authority.is_none_or(|authority| is_served(authority.as_str()))
        {
            return Ok(());
        }
        Err(answer::refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "Host not allowed; add it to the allowed hosts to accept it",
        ))
    }

    fn check_origin<'h>(
        &self,
        headers: &'h HeaderMap,
    ) -> Result<Option<&'h HeaderValue>, BoxedResponse> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else {
            return Ok(None);
        };
        let is_allowed = origin.to_str().is_ok_and(|origin| self.allows(origin));
        if is_allowed && origins.next().is_none() {
            return Ok(Some(origin));
        }
        Err(answer::refuse(
            StatusCode::FORBIDDEN,
            "Origin not allowed; add it to the allowed origins to accept it",
        ))
    }

    fn allows(&self, origin: &str) -> bool {
        let Ok(url) = Url::parse(origin) else {
            return false;
        };
        let canonical = url.origin().ascii_serialization();
        if !is_written_as(origin, &canonical, url.port_or_known_default()) {
            return false;
        }
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        (is_web && is_loopback) || self.origins.contains(&canonical)
    }

    async fn check_token(&self, headers: &HeaderMap) -> Result<Grant, BoxedResponse> {
        if let Clients::Anyone(grant) = &self.clients
            && self.oauth.is_none()
        {
            return Ok(grant.clone());
        }
        let mut presented = headers.get_all(AUTHORIZATION).iter();
        let (Some(header), None) = (presented.next(), presented.next()) else {
            return Err(answer::unauthorized(false));
        };
        let Some(presented) = bearer(header.as_bytes()) else {
            return Err(answer::unauthorized(false));
        };
        if let Some(oauth) = &self.oauth
            && is_access_token(presented)
        {
            let checked = oauth.check(presented).await;
            return checked.map_err(|problem| match problem {
                AccessTokenProblem::Invalid(why) => answer::invalid_token(why),
                AccessTokenProblem::Expired => answer::expired(),
                AccessTokenProblem::Unchecked => {
                    answer::unavailable("the access token cannot be checked; try again later")
                }
            });
        }
        match &self.clients {
            Clients::Holders(token, grant) if token.is(presented) => Ok(grant.clone()),
            Clients::Anyone(_) | Clients::Holders(..) => Err(answer::unauthorized(true)),
            Clients::Tokens(credentials) => {
                let checked = credentials.check(presented).await;
                checked.map_err(|problem| match problem {
                    TokenProblem::Unknown => answer::unauthorized(true),
                    TokenProblem::Expired => answer::expired(),
                    TokenProblem::Unchecked(error) => {
                        tracing::warn!(%error, "cannot read the tokens; refusing a request");
                        answer::unavailable("the token cannot be checked; try again later")
                    }
                })
            }
        }
    }
}

impl Hosts {
    fn serve(&self, host: &str) -> bool {
        let Some((name, port)) = split_port(host) else {
            return false;
        };
        // DNS rebinding needs a name, so if the server listens on all addresses, any address is accepted.
        let is_own = |address: IpAddr| {
            address.is_loopback() || address == self.own || self.own.is_unspecified()
        };
        name == "localhost"
            || name.parse().is_ok_and(is_own)
            || self.named.iter().any(|(wanted, wanted_port)| {
                *wanted == name && wanted_port.is_none_or(|wanted| port == Some(wanted))
            })
    }
}

/// Whether an origin is written as browsers write it: scheme, host and optional port. Anything with a user, a path or
/// other parts does not come from a browser and cannot be trusted.
fn is_written_as(origin: &str, canonical: &str, port: Option<u16>) -> bool {
    let origin = origin.to_ascii_lowercase();
    match origin.strip_prefix(canonical) {
        Some("") => true,
        Some(rest) => {
            let rest = rest.strip_prefix(':');
            rest.is_some_and(|rest| port.is_some_and(|port| rest == port.to_string()))
        }
        None => false,
    }
}

/// Lower-case host name, without the brackets of an IPv6 address, and the port.
fn split_port(host: &str) -> Option<(String, Option<u16>)> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            // Only IPv6 addresses are written in brackets.
            address.parse::<Ipv6Addr>().ok()?;
            match rest.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None if rest.is_empty() => (address, None),
                None => return None,
            }
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let port = match port {
        // `parse` accepts a leading plus sign.
        Some(port) if port.starts_with('+') => return None,
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    (!name.is_empty()).then(|| (name.to_ascii_lowercase(), port))
}

/// The token of a `Bearer TOKEN` header.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked("Bearer ".len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ");
    is_bearer.then(|| token.trim_ascii())
}

/// Whether a token has the form of a JWT, whose first part is JSON in base64.
fn is_access_token(presented: &[u8]) -> bool {
    let dots = presented.iter().filter(|byte| **byte == b'.').count();
    dots == 2 && presented.starts_with(b"ey")
}

fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> BoxedResponse {
    let mut answer = answer::empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, DELETE"),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name",
        ),
    );
    answer
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Asserts the status with which a request with these headers is rejected; `None` if it passes.
    fn check(options: &HttpOptions, own: &str, headers: &[(&str, &str)], expected: Option<u16>) {
        let mut request = hyper::Request::get("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let access = AccessControl::new(options, Some(own.parse().unwrap()));
        let checked = access.check(&parts).now_or_never().unwrap();
        let refused = checked.err();
        let status = refused.map(|answer| answer.status().as_u16());
        assert_eq!(status, expected, "{own} {headers:?}");
    }

    #[test]
    fn only_names_of_this_machine_are_served() {
        let mut options = HttpOptions::new(Access::Anybody);
        options.allowed_hosts = vec!["Box.example".into(), "other.example:8443".into()];
        let host =
            |own: &str, host: &str, expected| check(&options, own, &[("host", host)], expected);
        for served in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]:8080",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "LocalHost",
            "box.example",
            "box.example:99",
            "other.example:8443",
        ] {
            host("127.0.0.1", served, None);
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:8080",
            "192.168.0.5",
            "other.example",
            "other.example:1",
            "",
            ":80",
            "[::1",
            "[::1]x",
            "localhost:port",
            "localhost:99999",
            "127.0.0.1.nip.example",
            "evil-localhost",
            "evillocalhost",
            "notlocalhost:8080",
            "x.localhost",
            "x.localhost:8080",
            "localhost.",
            "localhost.:8080",
            ".localhost",
            "localhost.evil.com",
            "localhostevil.com",
            "localhost@evil.example",
            "evil.example@localhost",
            "user:pass@localhost",
            "localhost:80@evil.example",
            "localhost/evil",
            "localhost:",
            "localhost:+80",
            "localhost:-80",
            "localhost:80:80",
            "[localhost]",
            "[127.0.0.1]",
            "[::1%lo]",
            "[::2]",
            "[::ffff:192.168.0.5]",
            "::1",
            "::1:8080",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
            "l\u{f6}calhost",
            "evil.box.example",
            "box.example.",
            "xbox.example",
        ] {
            host("127.0.0.1", foreign, Some(421));
        }
        host("192.168.0.5", "192.168.0.5:80", None);
        host("192.168.0.5", "192.168.0.6", Some(421));
        host("0.0.0.0", "192.168.0.6", None);
        host("0.0.0.0", "evil.example", Some(421));
        check(&options, "127.0.0.1", &[], Some(400));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        check(&options, "127.0.0.1", &twice, Some(400));
    }

    #[test]
    fn a_host_in_the_request_line_has_to_be_right_too() {
        let options = HttpOptions::new(Access::Anybody);
        let access = AccessControl::new(&options, Some("127.0.0.1".parse().unwrap()));
        for (uri, expected) in [
            ("http://localhost/mcp", None),
            ("http://[::1]:80/mcp", None),
            (
                "http://evil-localhost/mcp",
                Some(StatusCode::MISDIRECTED_REQUEST),
            ),
            (
                "http://user@localhost/mcp",
                Some(StatusCode::MISDIRECTED_REQUEST),
            ),
            (
                "http://evil.example/mcp",
                Some(StatusCode::MISDIRECTED_REQUEST),
            ),
        ] {
            let request = hyper::Request::get(uri).header("host", "localhost");
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let checked = access.check(&parts).now_or_never().unwrap();
            let refused = checked.err().map(|answer| answer.status());
            assert_eq!(refused, expected, "{uri}");
        }
    }

    #[test]
    fn no_foreign_origin_is_let_in() {
        let mut options = HttpOptions::new(Access::Anybody);
        options.allowed_origins = vec!["https://App.example/".into()];
        let origin = |origin: &str, expected| {
            let headers = [("host", "localhost"), ("origin", origin)];
            check(&options, "127.0.0.1", &headers, expected);
        };
        for own in [
            "http://localhost",
            "http://localhost:6274",
            "https://127.0.0.1:1",
            "http://[::1]:80",
            "https://app.example",
            "https://app.example:443",
            "HTTP://LOCALHOST:6274",
            "http://localhost:80",
        ] {
            origin(own, None);
        }
        for foreign in [
            "null",
            "",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://app.example",
            "https://app.example:444",
            "file://localhost",
            "chrome-extension://localhost",
            "http://evil-localhost",
            "http://notlocalhost",
            "http://evillocalhost:6274",
            "http://x.localhost",
            "http://localhost.",
            "http://localhost.evil.com",
            "http://evil.example@localhost",
            "http://user:pass@localhost",
            "http://localhost/evil.example",
            "http://localhost/",
            "http://localhost?evil.example",
            "http://localhost#evil.example",
            "http:localhost",
            "http:\\\\localhost",
            "http://localhost:80:80",
            "http://localhost:080",
            "http://[::2]",
            "http://[::ffff:192.168.0.5]",
            "ws://localhost",
            "https://evil.app.example",
            "https://xapp.example",
            "https://app.example.",
            "https://app.example/",
            "https://user@app.example",
            "http://localhost, http://evil.example",
        ] {
            origin(foreign, Some(403));
        }
    }

    #[test]
    fn only_the_right_token_opens() {
        let token = Token::new("0123456789abcdef").unwrap();
        let options = HttpOptions::new(Access::Token(token));
        let presented = |value: &str, expected| {
            let headers = [("host", "localhost"), ("authorization", value)];
            check(&options, "127.0.0.1", &headers, expected);
        };
        presented("Bearer 0123456789abcdef", None);
        presented("bearer  0123456789abcdef", None);
        for wrong in [
            "Bearer 0123456789abcdeF",
            "Bearer ",
            "Bearer",
            "",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            presented(wrong, Some(401));
        }
        check(&options, "127.0.0.1", &[("host", "localhost")], Some(401));
        let twice = [
            ("host", "localhost"),
            ("authorization", "Bearer 0123456789abcdef"),
            ("authorization", "Bearer other"),
        ];
        check(&options, "127.0.0.1", &twice, Some(401));
        // A preflight header on a GET does not make it a preflight request.
        let page = HttpOptions {
            cors: true,
            allowed_origins: vec!["https://page.example".into()],
            ..options
        };
        let not_preflight = [
            ("host", "localhost"),
            ("origin", "https://page.example"),
            ("access-control-request-method", "POST"),
        ];
        check(&page, "127.0.0.1", &not_preflight, Some(401));
    }
}
