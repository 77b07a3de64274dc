//! A login in progress: from the authorization URL to stored tokens.

use std::sync::Arc;

use switchboard_config::secret::Secret;
use url::Url;

use super::fetch::Fetcher;
use super::server::ProtectedServer;
use super::vault::Vault;

/// A login that has begun.
#[derive(Debug)]
pub struct LoginStart {
    /// Where the person is to go. It is `http` or `https`, whatever the server said.
    pub authorization_url: Url,
    /// What waits for the callback.
    pub login: Login,
}

/// A login in progress. It holds the proof that the callback belongs to it; dropping it gives the login up.
#[derive(Debug)]
pub struct Login {}

/// What the authorization server sent to the redirect URI: the parameters of its query.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// The code, where the person agreed.
    pub code: Option<Secret>,
    /// What ties the callback to the login.
    pub state: Option<Secret>,
    /// Who sends it.
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
    /// The same in words.
    pub error_description: Option<String>,
}

impl Callback {
    /// The parameters of a callback, from its query: `code=…&state=…`. A parameter that comes twice counts as hostile
    /// and makes the callback empty.
    pub fn from_query(query: &str) -> Self {
        let _ = query;
        Self::default()
    }
}

impl Login {
    /// Finds out where to log in, makes a client known there, and gives the address to send the person to.
    pub async fn begin(
        server: ProtectedServer,
        fetcher: Fetcher,
        vault: Arc<dyn Vault>,
        redirect_uri: Url,
    ) -> Result<LoginStart, LoginError> {
        let _ = (server, fetcher, vault, redirect_uri);
        Err(LoginError {
            kind: LoginErrorKind::NotOffered,
        })
    }

    /// Redeems the code of the callback and keeps the tokens.
    pub async fn finish(self, callback: Callback) -> Result<(), LoginError> {
        let _ = callback;
        Err(LoginError {
            kind: LoginErrorKind::NotOffered,
        })
    }
}

/// Forgets the login to a server, and revokes it where the authorization server can; whether there was one.
pub async fn logout(
    server: &ProtectedServer,
    fetcher: &Fetcher,
    vault: &dyn Vault,
) -> Result<bool, LoginError> {
    let _ = (server, fetcher, vault);
    Ok(false)
}

/// A login failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct LoginError {
    /// Why.
    pub kind: LoginErrorKind,
}

/// Why a login failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoginErrorKind {
    /// The server offers no way to log in.
    #[error("the server offers no way to log in")]
    NotOffered,
}
