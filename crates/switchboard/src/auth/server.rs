//! One server that wants authorization, and what its entry says about it.

use switchboard_config::secret::Secret;
use url::Url;

/// A server behind authorization. Clones share what the server has said about it.
#[derive(Debug, Clone)]
pub struct ProtectedServer {
    /// Where it is: an `http` or `https` address; that of a WebSocket is turned into one.
    pub url: Url,
    /// What its entry says.
    pub settings: AuthSettings,
}

/// The `oauth` table of an entry, with its variables looked up.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// A client registered beforehand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
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
}
