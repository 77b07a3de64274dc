//! A server that requires authorization, and the authorization settings of its entry.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_config::secret::Secret;
use tokio::io::AsyncReadExt as _;
use url::{Origin, Url};

use super::challenge::Challenge;
use super::error::LoginErrorKind;

/// A server behind authorization. Clones share its last challenge.
#[derive(Debug, Clone)]
pub struct ProtectedServer {
    /// Server URL, as `http` or `https`.
    url: Url,
    settings: Arc<AuthSettings>,
    /// Merged challenges of the server; see [`Self::hear`].
    heard: Arc<Mutex<Option<Challenge>>>,
}

/// The `oauth` table of an entry, with variables expanded.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// Id of a preregistered client.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<Secret>,
    /// Private key of the client (PKCS #8 in PEM), if it signs assertions instead of sending a secret.
    pub private_key: Option<SecretSource>,
    /// `kid` of that key.
    pub key_id: Option<String>,
    /// URL of this client's metadata document, for authorization servers that support one.
    pub client_metadata_url: Option<Url>,
    /// Scopes to request; empty means those that the server asks for.
    pub scopes: Vec<String>,
    /// Authorization server; overrides discovery.
    pub issuer: Option<String>,
    /// URL of its metadata, if not at a well-known place.
    pub metadata_url: Option<Url>,
    /// Resource indicator, if not the server's URL.
    pub resource: Option<String>,
    /// OAuth grant type.
    pub grant: Grant,
    /// `DPoP`: `Some(true)` always, `Some(false)` never, `None` when the server requires it.
    pub dpop: Option<bool>,
}

/// OAuth grant type, with its parameters.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Grant {
    /// Interactive login by a user.
    #[default]
    AuthorizationCode,
    /// The client authenticates with its own credentials.
    ClientCredentials,
    /// The enterprise's identity provider vouches for the user (ID-JAG).
    EnterpriseManaged {
        /// Token endpoint of the identity provider.
        token_endpoint: Url,
        /// Client id at the identity provider.
        client_id: Option<String>,
        /// Client secret at the identity provider.
        client_secret: Option<Secret>,
        /// ID token of the user.
        id_token: SecretSource,
    },
    /// The platform vouches for the workload.
    WorkloadIdentity {
        /// Token issued by the platform.
        assertion: SecretSource,
    },
}

impl Grant {
    /// Whether the grant needs an interactive login.
    pub(crate) fn needs_person(&self) -> bool {
        matches!(self, Self::AuthorizationCode)
    }
}

/// Source of a secret, read each time it is needed.
#[derive(Debug, Clone)]
pub enum SecretSource {
    /// Fixed value.
    Value(Secret),
    /// File; re-read each time, because its content may change.
    File(PathBuf),
}

/// Maximum size of a secret file.
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
    /// Accepts `http`, `https`, `ws` and `wss` URLs; `None` for any other.
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

    /// Server URL, as `http` or `https`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Authorization settings of the entry.
    pub fn settings(&self) -> &AuthSettings {
        &self.settings
    }

    /// Whether a token for this server may be sent to this URL: same origin only.
    pub(super) fn owns(&self, url: &Url) -> bool {
        as_http(url).is_some_and(|url| url.origin() == self.url.origin())
    }

    /// Default resource identifier, if the metadata has none.
    pub(super) fn canonical(&self) -> String {
        let text = self.url.as_str();
        match self.url.path() {
            "/" if self.url.query().is_none() => text.trim_end_matches('/').to_owned(),
            _ => text.to_owned(),
        }
    }

    /// Origins that the configuration names explicitly.
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

    /// Stores a challenge. Values that the new one omits are carried over from the previous one.
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

    pub(super) fn heard(&self) -> Option<Challenge> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    }
}

/// Converts a `ws` URL to `http`. `Url::set_scheme` rejects that conversion, so the text is edited.
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
        check("https://example.com/?t=/", "https://example.com/?t=/");
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
    #[tokio::test]
    async fn a_secret_is_read_from_its_file_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let source = SecretSource::File(path.clone());
        assert!(matches!(
            source.read().await,
            Err(LoginErrorKind::Missing(_))
        ));
        // Private keys and tokens of platforms have thousands of letters.
        for secret in ["short".to_owned(), "x".repeat(64 * 1024)] {
            std::fs::write(&path, format!("{secret}\n")).unwrap();
            assert_eq!(source.read().await.ok(), Some(Secret::new(secret)));
        }
        std::fs::write(&path, "x".repeat(64 * 1024 + 1)).unwrap();
        let cut = source.read().await.ok().map(|secret| secret.expose().len());
        assert_eq!(cut, Some(64 * 1024));
    }
    fn protected(settings: AuthSettings) -> ProtectedServer {
        let url = Url::parse("https://example.com/mcp").expect("an address");
        ProtectedServer::new(&url, settings).expect("a server")
    }

    #[test]
    fn what_the_configuration_names_is_trusted() {
        let url = |text: &str| Url::parse(text).expect(text);
        let settings = AuthSettings {
            issuer: Some("https://issuer.example/tenant".to_owned()),
            metadata_url: Some(url("https://metadata.example/x")),
            grant: Grant::EnterpriseManaged {
                token_endpoint: url("https://provider.example/token"),
                client_id: None,
                client_secret: None,
                id_token: SecretSource::Value(Secret::new("x")),
            },
            ..AuthSettings::default()
        };
        let expected = [
            "https://issuer.example",
            "https://metadata.example",
            "https://provider.example",
        ];
        assert!(!settings.grant.needs_person());
        let trusted = protected(settings).trusted();
        assert_eq!(trusted, expected.map(|text| url(text).origin()));
        let settings = AuthSettings::default();
        assert!(settings.grant.needs_person());
        assert!(protected(settings).trusted().is_empty());
    }

    #[test]
    fn a_challenge_keeps_what_an_earlier_one_said() {
        let server = protected(AuthSettings::default());
        assert_eq!(server.heard(), None);
        let first = Challenge {
            wants_dpop: true,
            error: Some("invalid_token".to_owned()),
            scopes: vec!["a".to_owned()],
            resource_metadata: Some("/metadata".to_owned()),
        };
        server.hear(first.clone());
        assert_eq!(server.heard(), Some(first.clone()));
        server.hear(Challenge::default());
        let kept = Challenge {
            error: None,
            ..first
        };
        assert_eq!(server.heard(), Some(kept));
        let second = Challenge {
            wants_dpop: false,
            error: None,
            scopes: vec!["b".to_owned()],
            resource_metadata: Some("/other".to_owned()),
        };
        server.clone().hear(second.clone());
        let merged = Challenge {
            wants_dpop: true,
            ..second
        };
        assert_eq!(server.heard(), Some(merged));
    }
}
