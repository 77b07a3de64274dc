//! One server that wants authorization, and what its entry says about it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_config::secret::Secret;
use tokio::io::AsyncReadExt as _;
use url::{Origin, Url};

use super::challenge::Challenge;
use super::error::LoginErrorKind;

/// A server behind authorization. Clones share what the server has said about it.
#[derive(Debug, Clone)]
pub struct ProtectedServer {
    /// Where it is, as `http` or `https`.
    url: Url,
    /// What its entry says.
    settings: Arc<AuthSettings>,
    /// Its last challenge.
    heard: Arc<Mutex<Option<Challenge>>>,
}

/// The `oauth` table of an entry, with its variables looked up.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// A client registered beforehand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
    /// Its private key (PKCS #8 in PEM), where it signs instead of showing a secret.
    pub private_key: Option<SecretSource>,
    /// The name of that key.
    pub key_id: Option<String>,
    /// The address of this client's metadata document, for authorization servers that read such.
    pub client_metadata_url: Option<Url>,
    /// The scopes to ask for; empty means what the server wants.
    pub scopes: Vec<String>,
    /// The authorization server, when discovery should not choose.
    pub issuer: Option<String>,
    /// Where its metadata is, when that is an unusual place.
    pub metadata_url: Option<Url>,
    /// The resource indicator, when it is not the server's address.
    pub resource: Option<String>,
    /// How a token is obtained.
    pub grant: Grant,
    /// Whether tokens are bound to a key: always, never, or when the server asks for it.
    pub dpop: Option<bool>,
}

/// How a token is obtained.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in.
    #[default]
    AuthorizationCode,
    /// The client's own credentials.
    ClientCredentials,
    /// An identity provider of the enterprise vouches for the person (ID-JAG).
    EnterpriseManaged {
        /// The token endpoint of the identity provider.
        token_endpoint: Url,
        /// How the client is known there.
        client_id: Option<String>,
        /// Its secret there.
        client_secret: Option<Secret>,
        /// The person's identity token.
        id_token: SecretSource,
    },
    /// The platform vouches for the workload.
    WorkloadIdentity {
        /// The token of the platform.
        assertion: SecretSource,
    },
}

impl Grant {
    /// Whether a person has to log in.
    pub(crate) fn needs_person(&self) -> bool {
        matches!(self, Self::AuthorizationCode)
    }
}

/// Where a secret comes from each time it is needed.
#[derive(Debug, Clone)]
pub enum SecretSource {
    /// It is this one.
    Value(Secret),
    /// It is in this file, and may change there.
    File(PathBuf),
}

/// Larger files hold no token and no key.
const MAX_SECRET: u64 = 64 * 1024;

impl SecretSource {
    pub(super) async fn read(&self) -> Result<Secret, LoginErrorKind> {
        let path = match self {
            Self::Value(secret) => return Ok(secret.clone()),
            Self::File(path) => path,
        };
        let failed = |error: std::io::Error| {
            LoginErrorKind::Missing(format!("{} cannot be read: {error}", path.display()))
        };
        let file = tokio::fs::File::open(path).await.map_err(failed)?;
        let mut text = String::new();
        let mut limited = file.take(MAX_SECRET);
        limited.read_to_string(&mut text).await.map_err(failed)?;
        Ok(Secret::new(text.trim()))
    }
}

impl ProtectedServer {
    /// A server at this address: `http`, `https`, `ws` or `wss`. Any other has no authorization.
    pub fn new(url: &Url, settings: AuthSettings) -> Option<Self> {
        let mut url = url.clone();
        url.set_fragment(None);
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let url = as_http(&url)?;
        url.host()?;
        Some(Self {
            url,
            settings: Arc::new(settings),
            heard: Arc::default(),
        })
    }

    /// Where it is, as `http` or `https`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// What its entry says.
    pub fn settings(&self) -> &AuthSettings {
        &self.settings
    }

    /// Whether a token for this server may be sent to this address.
    pub(super) fn owns(&self, url: &Url) -> bool {
        as_http(url).is_some_and(|url| url.origin() == self.url.origin())
    }

    /// The resource identifier of the server, where its metadata gives none.
    pub(super) fn canonical(&self) -> String {
        let text = self.url.as_str();
        match self.url.path() {
            "/" if self.url.query().is_none() => text.trim_end_matches('/').to_owned(),
            _ => text.to_owned(),
        }
    }

    /// The origins that the configuration itself names.
    pub(super) fn trusted(&self) -> Vec<Origin> {
        let settings = &self.settings;
        let issuer = settings.issuer.as_ref();
        let issuer = issuer.and_then(|issuer| Url::parse(issuer).ok());
        let provider = match &settings.grant {
            Grant::EnterpriseManaged { token_endpoint, .. } => Some(token_endpoint.clone()),
            _ => None,
        };
        let named = [issuer, settings.metadata_url.clone(), provider];
        named.iter().flatten().map(Url::origin).collect()
    }

    /// Notes what the server has said. What it does not say again it has not taken back.
    pub(super) fn hear(&self, mut challenge: Challenge) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = heard.take() {
            challenge.wants_dpop |= before.wants_dpop;
            challenge.resource_metadata = challenge.resource_metadata.or(before.resource_metadata);
            if challenge.scopes.is_empty() {
                challenge.scopes = before.scopes;
            }
        }
        *heard = Some(challenge);
    }

    /// What the server has said last.
    pub(super) fn heard(&self) -> Option<Challenge> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    }
}

/// The address as HTTP has it. The library refuses to turn `ws` into `http`, so it is done in the text.
pub(super) fn as_http(url: &Url) -> Option<Url> {
    match url.scheme() {
        "http" | "https" => Some(url.clone()),
        "ws" | "wss" => Url::parse(&url.as_str().replacen("ws", "http", 1)).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_resources() {
        let check = |url: &str, canonical: &str| {
            let server =
                ProtectedServer::new(&Url::parse(url).expect(url), AuthSettings::default())
                    .expect(url);
            assert_eq!(server.canonical(), canonical);
        };
        check("https://Example.com", "https://example.com");
        check("https://example.com:443/", "https://example.com");
        check("https://u:p@example.com/mcp/#x", "https://example.com/mcp/");
        check("wss://example.com/ws", "https://example.com/ws");
        check("ws://localhost:1/", "http://localhost:1");
        check("https://example.com/?t=1", "https://example.com/?t=1");
        let other = Url::parse("file:///etc/passwd").expect("an address");
        assert!(ProtectedServer::new(&other, AuthSettings::default()).is_none());
    }

    #[test]
    fn a_token_is_for_one_origin() {
        let url = Url::parse("https://example.com/mcp").expect("an address");
        let server = ProtectedServer::new(&url, AuthSettings::default()).expect("a server");
        for (url, expected) in [
            ("https://example.com/other", true),
            ("wss://example.com/mcp", true),
            ("http://example.com/mcp", false),
            ("https://example.com:8443/mcp", false),
            ("https://example.com.evil.example/mcp", false),
            ("https://sub.example.com/mcp", false),
        ] {
            assert_eq!(server.owns(&Url::parse(url).expect(url)), expected, "{url}");
        }
    }
}
