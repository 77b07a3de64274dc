//! Discovers the authorization server of an MCP server and its endpoints.
//!
//! In later revisions the resource metadata names the authorization servers. In 2025-03-26 the server's own origin is
//! the authorization server, with default endpoints if it publishes no metadata. Identifiers are compared literally:
//! `issuer` must equal the one that led to the metadata, and the resource must cover the server.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use switchboard_config::text::visible;
use url::Url;

use super::challenge::Challenge;
use super::error::LoginErrorKind;
use super::fetch::{Fetched, Fetcher, shown};
use super::server::ProtectedServer;
use super::ssrf::SsrfPolicy;

/// Maximum number of authorization servers tried for one resource.
const MOST_ISSUERS: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct Discovered {
    pub(super) issuer: String,
    /// Resource indicator for token requests.
    pub(super) resource: String,
    /// Scopes that the resource supports.
    pub(super) scopes: Vec<String>,
    /// The resource requires `DPoP`-bound tokens.
    pub(super) wants_dpop: bool,
    pub(super) endpoints: Endpoints,
    pub(super) reach: SsrfPolicy,
}

/// Endpoints and capabilities of an authorization server.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    pub(super) authorization: Option<Url>,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) revocation: Option<Url>,
    /// Supported client authentication methods; `None` if not published.
    pub(super) auth_methods: Option<Vec<String>>,
    pub(super) scopes: Vec<String>,
    pub(super) has_s256: bool,
    pub(super) has_dpop: bool,
    pub(super) names_itself: bool,
    pub(super) reads_client_metadata: bool,
}

/// Finds the authorization server of an MCP server.
pub(super) async fn discover(
    fetcher: &Fetcher,
    server: &ProtectedServer,
    challenge: &Challenge,
) -> Result<Discovered, LoginErrorKind> {
    let reach = fetcher.reach(server.url(), server.trusted()).await;
    let found = Finder { fetcher, reach };
    let resource = found.resource(server, challenge).await?;
    let settings = server.settings();
    let listed = resource.as_ref().map(|resource| &resource.issuers);
    let (issuers, is_legacy) = match (&settings.issuer, listed) {
        (Some(issuer), _) => (vec![issuer.clone()], false),
        (None, Some(issuers)) if !issuers.is_empty() => (issuers.clone(), false),
        _ => (vec![server.url().origin().ascii_serialization()], true),
    };
    let mut failure = None;
    let mut chosen = None;
    for issuer in issuers.iter().take(MOST_ISSUERS) {
        match found
            .metadata(issuer, settings.metadata_url.as_ref(), is_legacy)
            .await
        {
            Ok(Some(found)) => {
                chosen = Some(found);
                break;
            }
            Ok(None) => {
                failure.get_or_insert_with(|| LoginErrorKind::Document {
                    url: visible(issuer).into_owned(),
                    problem: "publishes no authorization server metadata".to_owned(),
                });
            }
            // The next issuer may work.
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    }
    let (issuer, endpoints) = match (chosen, failure) {
        (Some(chosen), _) => chosen,
        (None, Some(LoginErrorKind::Document { .. })) if is_legacy => {
            let issuer = server.url().origin().ascii_serialization();
            (issuer, Endpoints::at_origin(server.url())?)
        }
        (None, failure) => {
            return Err(failure.unwrap_or(LoginErrorKind::NoClient));
        }
    };
    let own = resource.unwrap_or_default();
    Ok(Discovered {
        issuer,
        endpoints,
        resource: settings
            .resource
            .clone()
            .or(own.identifier)
            .unwrap_or_else(|| server.canonical()),
        scopes: own.scopes,
        wants_dpop: own.wants_dpop || challenge.wants_dpop,
        reach: found.reach,
    })
}

/// Fetches the keys (a JWK set) with which an authorization server signs its tokens.
pub async fn signing_keys(
    fetcher: &Fetcher,
    issuer: &str,
) -> Result<Box<RawValue>, LoginErrorKind> {
    let problem = |url: &str, problem: &str| LoginErrorKind::Document {
        url: visible(url).into_owned(),
        problem: problem.to_owned(),
    };
    let address = Url::parse(issuer).map_err(|_| problem(issuer, "is not a valid issuer URL"))?;
    let reach = fetcher.reach(&address, Vec::new()).await;
    let found = Finder { fetcher, reach };
    for place in server_metadata_places(&address) {
        let Some(wire) = found.document::<KeysWire>(&place).await? else {
            continue;
        };
        if wire.issuer != issuer {
            return Err(LoginErrorKind::IssuerMismatch {
                expected: visible(issuer).into_owned(),
                found: visible(&wire.issuer).into_owned(),
            });
        }
        let keys = wire
            .jwks_uri
            .as_deref()
            .and_then(|url| Url::parse(url).ok());
        let keys = keys.ok_or_else(|| problem(place.as_str(), "names no valid URL of keys"))?;
        let document = found.document::<Box<RawValue>>(&keys).await?;
        return document.ok_or_else(|| problem(keys.as_str(), "is not a set of keys"));
    }
    Err(problem(
        issuer,
        "publishes no authorization server metadata",
    ))
}

impl Endpoints {
    /// Default endpoints of 2025-03-26 for a server without metadata.
    fn at_origin(server: &Url) -> Result<Self, LoginErrorKind> {
        let at = |path: &str| {
            server.join(path).map_err(|_| LoginErrorKind::Document {
                url: shown(server),
                problem: "has no origin".to_owned(),
            })
        };
        Ok(Self {
            authorization: Some(at("/authorize")?),
            token: at("/token")?,
            registration: Some(at("/register")?),
            revocation: None,
            auth_methods: None,
            scopes: Vec::new(),
            // Without metadata S256 is assumed: the revision requires PKCE.
            has_s256: true,
            has_dpop: false,
            names_itself: false,
            reads_client_metadata: false,
        })
    }
}

/// Protected resource metadata (RFC 9728).
#[derive(Debug, Default)]
struct Resource {
    identifier: Option<String>,
    issuers: Vec<String>,
    scopes: Vec<String>,
    wants_dpop: bool,
}

struct Finder<'f> {
    fetcher: &'f Fetcher,
    reach: SsrfPolicy,
}

impl Finder<'_> {
    /// Fetches the resource metadata from the URL in the challenge, else from the well-known URLs.
    async fn resource(
        &self,
        server: &ProtectedServer,
        challenge: &Challenge,
    ) -> Result<Option<Resource>, LoginErrorKind> {
        let named = challenge.resource_metadata.as_deref();
        let places = match named {
            Some(link) => vec![
                server
                    .url()
                    .join(link)
                    .map_err(|_| LoginErrorKind::Document {
                        url: shown(server.url()),
                        problem: "names an invalid resource metadata URL".to_owned(),
                    })?,
            ],
            None => well_known(server.url(), "oauth-protected-resource"),
        };
        for place in &places {
            let Some(wire) = self.document::<ResourceWire>(place).await? else {
                continue;
            };
            if !is_resource_of(&wire.resource, server.url()) {
                return Err(LoginErrorKind::ResourceMismatch(
                    visible(&wire.resource).into_owned(),
                ));
            }
            return Ok(Some(Resource {
                identifier: Some(wire.resource),
                issuers: wire.authorization_servers.unwrap_or_default(),
                scopes: wire.scopes_supported.unwrap_or_default(),
                wants_dpop: wire.dpop_bound_access_tokens_required.unwrap_or_default(),
            }));
        }
        match (named, places.first()) {
            (Some(_), Some(place)) => Err(LoginErrorKind::Document {
                url: shown(place),
                problem: "is not resource metadata, although the server refers to it".to_owned(),
            }),
            _ => Ok(None),
        }
    }

    /// Fetches the metadata of an authorization server; `None` if it publishes none.
    async fn metadata(
        &self,
        issuer: &str,
        place: Option<&Url>,
        is_legacy: bool,
    ) -> Result<Option<(String, Endpoints)>, LoginErrorKind> {
        let address = Url::parse(issuer).map_err(|_| LoginErrorKind::Document {
            url: visible(issuer).into_owned(),
            problem: "is not a valid issuer URL".to_owned(),
        })?;
        let is_named = place.is_some();
        let places = match place {
            Some(place) => vec![place.clone()],
            None => server_metadata_places(&address),
        };
        for place in places {
            let Some(wire) = self.document::<ServerWire>(&place).await? else {
                continue;
            };
            // If no metadata named the issuer, a trailing slash on the origin is accepted, and a document at a
            // configured URL may carry any issuer.
            let is_same = wire.issuer == issuer
                || (is_legacy && (is_named || wire.issuer == format!("{issuer}/")));
            if !is_same {
                return Err(LoginErrorKind::IssuerMismatch {
                    expected: visible(issuer).into_owned(),
                    found: visible(&wire.issuer).into_owned(),
                });
            }
            let issuer = wire.issuer.clone();
            return Ok(Some((issuer, self.endpoints(wire, &place)?)));
        }
        Ok(None)
    }

    fn endpoints(&self, wire: ServerWire, place: &Url) -> Result<Endpoints, LoginErrorKind> {
        let endpoint = |text: Option<&String>| -> Result<Option<Url>, LoginErrorKind> {
            let Some(text) = text else { return Ok(None) };
            let url = Some(text).filter(|text| is_written_as_address(text));
            let url = url.and_then(|text| Url::parse(text).ok());
            let url = url.ok_or_else(|| LoginErrorKind::Document {
                url: shown(place),
                problem: "names an invalid endpoint URL".to_owned(),
            })?;
            self.fetcher.check(&url, &self.reach)?;
            Ok(Some(url))
        };
        let has = |list: &Option<Vec<String>>, word: &str| {
            let list = list.iter().flatten();
            list.into_iter().any(|one| one == word)
        };
        let token = endpoint(wire.token_endpoint.as_ref())?;
        Ok(Endpoints {
            authorization: endpoint(wire.authorization_endpoint.as_ref())?,
            token: token.ok_or_else(|| LoginErrorKind::Document {
                url: shown(place),
                problem: "names no token endpoint".to_owned(),
            })?,
            registration: endpoint(wire.registration_endpoint.as_ref())?,
            revocation: endpoint(wire.revocation_endpoint.as_ref())?,
            has_s256: has(&wire.code_challenge_methods_supported, "S256"),
            has_dpop: has(&wire.dpop_signing_alg_values_supported, "ES256"),
            auth_methods: wire.token_endpoint_auth_methods_supported,
            scopes: wire.scopes_supported.unwrap_or_default(),
            names_itself: wire
                .authorization_response_iss_parameter_supported
                .unwrap_or_default(),
            reads_client_metadata: wire
                .client_id_metadata_document_supported
                .unwrap_or_default(),
        })
    }

    /// Fetches a document; `None` if absent. A failing server (5xx, 429) is an error, not an absent document.
    async fn document<T: DeserializeOwned>(
        &self,
        place: &Url,
    ) -> Result<Option<T>, LoginErrorKind> {
        let Fetched { status, body, .. } = self.fetcher.get(place, &self.reach).await?;
        match status {
            200..=299 => {}
            500..=599 | 429 => return Err(LoginErrorKind::Unavailable(status)),
            _ => return Ok(None),
        }
        let is_object = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if !is_object {
            // An HTML page: some servers answer every path with one.
            return Ok(None);
        }
        let read = serde_json::from_slice(&body);
        read.map(Some).map_err(|error| LoginErrorKind::Document {
            url: shown(place),
            problem: format!("is not valid metadata: {}", visible(&error.to_string())),
        })
    }
}

#[derive(Deserialize)]
struct ResourceWire {
    resource: String,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    dpop_bound_access_tokens_required: Option<bool>,
}

#[derive(Deserialize)]
struct ServerWire {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    scopes_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    dpop_signing_alg_values_supported: Option<Vec<String>>,
    authorization_response_iss_parameter_supported: Option<bool>,
    client_id_metadata_document_supported: Option<bool>,
}

#[derive(Deserialize)]
struct KeysWire {
    issuer: String,
    jwks_uri: Option<String>,
}

/// Whether a text contains only characters allowed in a URI (RFC 3986). The authorization URL is passed to another
/// program, so nothing is repaired: no spaces, quotes or backticks.
fn is_written_as_address(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    text.bytes().all(is_allowed)
}

/// Well-known URLs for metadata: for the path first, then for the origin.
fn well_known(url: &Url, kind: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("/.well-known/{kind}{path}")];
    if !path.is_empty() {
        paths.push(format!("/.well-known/{kind}"));
    }
    places(url, &paths)
}

/// Well-known URLs for authorization server metadata. Metadata at the bare origin does not apply to an issuer with a
/// path.
fn server_metadata_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    places(issuer, &paths)
}

fn places(base: &Url, paths: &[String]) -> Vec<Url> {
    let place = |path: &String| {
        let mut url = base.clone();
        url.set_path(path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths.iter().map(place).collect()
}

/// Whether a resource identifier covers a server: same origin, and the same or a parent path.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let above = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(above);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && (resource.query().is_none() || resource.query() == server.query())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_the_rules_say() {
        let check = |found: Vec<Url>, expected: &[&str]| {
            let found: Vec<&str> = found.iter().map(Url::as_str).collect();
            assert_eq!(found, expected);
        };
        let url = |text: &str| Url::parse(text).expect(text);
        check(
            well_known(&url("https://h:1/a/mcp?q=1"), "x"),
            &[
                "https://h:1/.well-known/x/a/mcp",
                "https://h:1/.well-known/x",
            ],
        );
        check(
            well_known(&url("https://h/"), "x"),
            &["https://h/.well-known/x"],
        );
        check(
            server_metadata_places(&url("https://h/tenant/")),
            &[
                "https://h/.well-known/oauth-authorization-server/tenant",
                "https://h/.well-known/openid-configuration/tenant",
                "https://h/tenant/.well-known/openid-configuration",
            ],
        );
        check(
            server_metadata_places(&url("https://h")),
            &[
                "https://h/.well-known/oauth-authorization-server",
                "https://h/.well-known/openid-configuration",
            ],
        );
    }

    #[test]
    fn a_resource_covers_the_server_or_it_does_not() {
        let server = Url::parse("https://h/a/mcp").expect("an address");
        for (resource, expected) in [
            ("https://h/a/mcp", true),
            ("https://h/a/mcp/", true),
            ("https://h/a", true),
            ("https://h", true),
            ("https://H:443/", true),
            ("https://h/a/m", false),
            ("https://h/a/mcp/x", false),
            ("https://h/b", false),
            ("http://h/a/mcp", false),
            ("https://evil/a/mcp", false),
            ("https://h/a/mcp#x", false),
            ("https://h/a?x=1", false),
            ("h", false),
        ] {
            assert_eq!(is_resource_of(resource, &server), expected, "{resource}");
        }
    }
    #[test]
    fn a_query_of_a_resource_has_to_be_that_of_the_server() {
        let server = Url::parse("https://h/mcp?tenant=1").expect("an address");
        for (resource, expected) in [
            ("https://h/mcp", true),
            ("https://h/mcp?tenant=1", true),
            ("https://h/mcp?tenant=2", false),
        ] {
            assert_eq!(is_resource_of(resource, &server), expected, "{resource}");
        }
    }
}
