//! Authorization code grant of OAuth 2.1 with PKCE: from the authorization URL to stored tokens, and logout.
//!
//! Opens no browser and binds no listener; the caller passes the callback parameters to [`Login::finish`].

use std::sync::Arc;

use switchboard_config::secret::Secret;
use switchboard_config::text::visible;
use switchboard_store::{Clock, SystemClock};
use url::Url;
use url::form_urlencoded;

use super::challenge::{Challenge, union};
use super::client::{identify, short, uses_dpop};
use super::discovery::{Discovered, discover};
use super::error::{LoginError, LoginErrorKind};
use super::fetch::{Body, Fetcher};
use super::jose::{ProofKey, digest, random_text};
use super::record::{self, Client, Records};
use super::server::{AuthSettings, ProtectedServer};
use super::token::{TokenEndpoint, Tokens};
use super::vault::Vault;

/// Scope that requests a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// A started login and the URL for the user.
#[derive(Debug)]
pub struct LoginStart {
    /// URL for the user to open. Always `https`, or `http` on loopback.
    pub authorization_url: Url,
    /// Completes the login with the callback.
    pub login: Login,
}

/// A login in progress. Holds the `state` and PKCE verifier that the callback must match; dropping it cancels the
/// login.
#[derive(Debug)]
pub struct Login {
    server: ProtectedServer,
    fetcher: Fetcher,
    vault: Arc<dyn Vault>,
    found: Discovered,
    client: Client,
    redirect_uri: Url,
    scopes: Vec<String>,
    state: Secret,
    verifier: Secret,
    proof_key: Option<ProofKey>,
}

/// Query parameters that the authorization server sent to the redirect URI.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// Authorization code, if the user consented.
    pub code: Option<Secret>,
    /// Ties the callback to the login.
    pub state: Option<Secret>,
    /// Issuer identifier (RFC 9207).
    pub iss: Option<String>,
    /// OAuth error code, if consent was denied or the request failed.
    pub error: Option<String>,
    /// Human-readable `error_description`.
    pub error_description: Option<String>,
}

impl Callback {
    /// Parses the query of a callback: `code=…&state=…`.
    ///
    /// A repeated parameter invalidates the whole callback: two parsers could read different values.
    pub fn from_query(query: &str) -> Self {
        let mut callback = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let repeated = match &*name {
                "code" => callback.code.replace(Secret::new(value)).is_some(),
                "state" => callback.state.replace(Secret::new(value)).is_some(),
                "iss" => callback.iss.replace(value).is_some(),
                "error" => callback.error.replace(value).is_some(),
                "error_description" => callback.error_description.replace(value).is_some(),
                _ => false,
            };
            if repeated {
                return Self::default();
            }
        }
        callback
    }
}

impl Login {
    /// Discovers the authorization server, identifies or registers a client, and builds the authorization URL.
    pub async fn begin(
        server: ProtectedServer,
        fetcher: Fetcher,
        vault: Arc<dyn Vault>,
        redirect_uri: Url,
    ) -> Result<LoginStart, LoginError> {
        let settings = server.settings();
        if !settings.grant.needs_person() {
            return Err(LoginErrorKind::NoPerson.into());
        }
        let challenge = match server.heard() {
            Some(challenge) => challenge,
            None => probe(&fetcher, &server).await,
        };
        let found = discover(&fetcher, &server, &challenge).await?;
        let endpoint = found.endpoints.authorization.clone();
        let endpoint = endpoint.ok_or_else(|| LoginErrorKind::Document {
            url: visible(&found.issuer).into_owned(),
            problem: "has no authorization endpoint".to_owned(),
        })?;
        fetcher
            .check(&endpoint, &found.reach)
            .map_err(LoginErrorKind::Fetch)?;
        if !found.endpoints.has_s256 {
            return Err(LoginErrorKind::NoPkce.into());
        }
        let records = Records::of(&*vault, &server);
        let client = identify(
            &fetcher,
            records,
            settings,
            &found,
            &redirect_uri,
            SystemClock.now(),
        )
        .await?;
        let known = records.known().await.map_err(LoginErrorKind::Vault)?;
        let before = record::unless_lost(records.login().await).map_err(LoginErrorKind::Vault)?;
        let before = before
            .filter(|login| login.issuer == found.issuer && login.resource == found.resource)
            .map(|login| login.scopes);
        let before = if settings.scopes.is_empty() {
            union(&before.unwrap_or_default(), &known.wanted)
        } else {
            known.wanted
        };
        let scopes = person_scopes(settings, &challenge, &found, &before);
        let proof_key = if uses_dpop(&found, settings.dpop) {
            Some(ProofKey::generate()?)
        } else {
            None
        };
        let login = Self {
            state: random_text()?,
            verifier: random_text()?,
            server: server.clone(),
            fetcher,
            vault: Arc::clone(&vault),
            found,
            client,
            redirect_uri,
            scopes,
            proof_key,
        };
        Ok(LoginStart {
            authorization_url: login.authorization_url(endpoint),
            login,
        })
    }

    /// Redeems the callback's code and stores the tokens.
    ///
    /// The code is sent only if the callback belongs to this login (`state`) and comes from the same issuer (`iss`,
    /// compared literally). The same checks apply before an error is reported.
    pub async fn finish(self, callback: Callback) -> Result<(), LoginError> {
        if callback.state.as_ref() != Some(&self.state) {
            return Err(LoginErrorKind::StateMismatch.into());
        }
        match &callback.iss {
            Some(issuer) if *issuer != self.found.issuer => {
                return Err(LoginErrorKind::IssuerMismatch {
                    expected: visible(&self.found.issuer).into_owned(),
                    found: short(issuer),
                }
                .into());
            }
            None if self.found.endpoints.names_itself => {
                return Err(LoginErrorKind::IssuerMissing.into());
            }
            _ => {}
        }
        if let Some(error) = &callback.error {
            return Err(LoginErrorKind::Refused {
                error: short(error),
                description: callback.error_description.as_deref().map(short),
            }
            .into());
        }
        let code = callback.code.as_ref().ok_or(LoginErrorKind::NoCode)?;
        let tokens = self.redeem(code).await?;
        let login = record::Login {
            issuer: self.found.issuer.clone(),
            resource: self.found.resource.clone(),
            token_endpoint: self.found.endpoints.token.clone(),
            revocation_endpoint: self.found.endpoints.revocation.clone(),
            client: self.client.clone(),
            access_token: tokens.access_token,
            is_bound: tokens.is_bound,
            expires_at: tokens.expires_at,
            obtained_at: tokens.obtained_at,
            refresh_token: tokens.refresh_token,
            scopes: union(&self.scopes, &tokens.scopes.unwrap_or_default()),
            proof_key: self.proof_key.as_ref().map(|key| key.stored().clone()),
        };
        let records = Records::of(&*self.vault, &self.server);
        // Prevents a concurrent refresh of the old login from overwriting the new one.
        let _lock = records.lock().await.map_err(LoginErrorKind::Vault)?;
        let saved = records.keep(&login, Vec::new()).await;
        saved.map_err(LoginErrorKind::Vault)?;
        Ok(())
    }

    fn authorization_url(&self, mut url: Url) -> Url {
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.client.id)
                .append_pair("redirect_uri", self.redirect_uri.as_str())
                .append_pair("state", self.state.expose())
                .append_pair("code_challenge", &digest(self.verifier.expose()))
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", &self.found.resource);
            if !self.scopes.is_empty() {
                query.append_pair("scope", &self.scopes.join(" "));
            }
        }
        url
    }

    async fn redeem(&self, code: &Secret) -> Result<Tokens, LoginErrorKind> {
        let endpoint = TokenEndpoint {
            fetcher: &self.fetcher,
            reach: &self.found.reach,
            url: &self.found.endpoints.token,
            issuer: &self.found.issuer,
            client: &self.client,
            settings: self.server.settings(),
            proof_key: self.proof_key.as_ref(),
            must_bind: self.server.settings().dpop == Some(true),
            clock: &SystemClock,
        };
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", self.redirect_uri.as_str()),
            ("code_verifier", self.verifier.expose()),
            ("resource", &self.found.resource),
        ];
        endpoint.ask(&form).await
    }
}

/// Deletes the stored login of a server and revokes it if supported; returns whether one existed.
///
/// A failed revocation is logged, and the login is deleted anyway.
pub async fn logout(
    server: &ProtectedServer,
    fetcher: &Fetcher,
    vault: &dyn Vault,
) -> Result<bool, LoginError> {
    let records = Records::of(vault, server);
    let _lock = records.lock().await.map_err(LoginErrorKind::Vault)?;
    let stored = records.login().await;
    let was_lost = stored.as_ref().is_err_and(|error| error.is_lost);
    let login = record::unless_lost(stored).map_err(LoginErrorKind::Vault)?;
    let existed = was_lost | records.forget().await.map_err(LoginErrorKind::Vault)?;
    if let Some(login) = login
        && let Err(error) = revoke(server, fetcher, &login).await
    {
        tracing::warn!(%error, "deleted the stored login, but cannot revoke it");
    }
    Ok(existed)
}

/// Whether a login is stored. The server may still reject it.
pub async fn is_logged_in(server: &ProtectedServer, vault: &dyn Vault) -> Result<bool, LoginError> {
    let login = Records::of(vault, server).login().await;
    Ok(login.map_err(LoginErrorKind::Vault)?.is_some())
}

async fn revoke(
    server: &ProtectedServer,
    fetcher: &Fetcher,
    login: &record::Login,
) -> Result<(), LoginErrorKind> {
    let Some(url) = &login.revocation_endpoint else {
        return Ok(());
    };
    let reach = fetcher.reach(server.url(), server.trusted()).await;
    let endpoint = TokenEndpoint {
        fetcher,
        reach: &reach,
        url,
        issuer: &login.issuer,
        client: &login.client,
        settings: server.settings(),
        proof_key: None,
        must_bind: false,
        clock: &SystemClock,
    };
    // Revoke the refresh token first: most servers then revoke its access tokens, too.
    let refresh = login.refresh_token.as_ref();
    let tokens = [
        refresh.map(|token| (token, "refresh_token")),
        Some((&login.access_token, "access_token")),
    ];
    for (token, kind) in tokens.into_iter().flatten() {
        let form = [("token", token.expose()), ("token_type_hint", kind)];
        endpoint.tell(&form).await?;
    }
    Ok(())
}

/// Selects the scopes to request: the entry's, else the challenge's, else the resource's.
pub(super) fn scopes(
    settings: &AuthSettings,
    challenge: &Challenge,
    found: &Discovered,
) -> Vec<String> {
    let choices = [&settings.scopes, &challenge.scopes, &found.scopes];
    let chosen = choices.into_iter().find(|scopes| !scopes.is_empty());
    chosen.cloned().unwrap_or_default()
}

/// Scopes for an interactive login: also those granted or requested before, and `offline_access` if offered.
fn person_scopes(
    settings: &AuthSettings,
    challenge: &Challenge,
    found: &Discovered,
    before: &[String],
) -> Vec<String> {
    let mut scopes = union(before, &scopes(settings, challenge, found));
    if !settings.scopes.is_empty() {
        return scopes;
    }
    let is_offered = found
        .endpoints
        .scopes
        .iter()
        .any(|one| one == OFFLINE_ACCESS);
    // Alone it would narrow the default scopes of the server.
    if is_offered && !scopes.is_empty() {
        scopes = union(&scopes, &[OFFLINE_ACCESS.to_owned()]);
    }
    scopes
}

/// Sends a request without a token to get a challenge. Returns an empty challenge unless the server answers 401.
async fn probe(fetcher: &Fetcher, server: &ProtectedServer) -> Challenge {
    const QUESTION: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [
        ("accept", Secret::new("application/json, text/event-stream")),
        ("mcp-protocol-version", Secret::new("2026-07-28")),
        ("mcp-method", Secret::new("server/discover")),
    ];
    let reach = fetcher.reach(server.url(), server.trusted()).await;
    let body = Body::Json(Secret::new(QUESTION));
    match fetcher.post(server.url(), &reach, &headers, &body).await {
        Ok(answer) if answer.status == 401 => Challenge::of(&answer.challenges),
        _ => Challenge::default(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::super::server::AuthSettings;
    use super::super::vault::{MemoryVault, VaultError, VaultKey, VaultLock};
    use super::*;
    use crate::transport::http::{HttpClient, HttpSettings};

    /// A vault in which a secret was damaged: it exists and cannot be read.
    #[derive(Debug, Default)]
    struct Damaged(MemoryVault);

    impl Vault for Damaged {
        fn get<'a>(
            &'a self,
            key: &'a VaultKey,
        ) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
            Box::pin(async move {
                match self.0.get(key).await? {
                    Some(secret) if secret.expose() == "damaged" => {
                        Err(VaultError::new("could not be read", "it is damaged").lost())
                    }
                    found => Ok(found),
                }
            })
        }

        fn put<'a>(
            &'a self,
            key: &'a VaultKey,
            secret: &'a Secret,
        ) -> BoxFuture<'a, Result<(), VaultError>> {
            self.0.put(key, secret)
        }

        fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
            self.0.remove(key)
        }

        fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
            self.0.lock(key)
        }
    }

    #[tokio::test]
    async fn a_login_that_is_damaged_was_there() {
        let url = Url::parse("https://server.example/mcp").unwrap();
        let server = ProtectedServer::new(&url, AuthSettings::default()).unwrap();
        let fetcher = Fetcher::new(&HttpClient::new(HttpSettings::default()).unwrap());
        let vault = Damaged::default();
        let (issuer, resource) = ("https://issuer.example", "https://server.example/mcp");
        let known = record::Known {
            login: Some((issuer.to_owned(), resource.to_owned())),
            wanted: Vec::new(),
        };
        let key = VaultKey::of(&["login", issuer, resource, ""]);
        Records::of(&vault, &server).note(&known).await.unwrap();
        vault.put(&key, &Secret::new("damaged")).await.unwrap();
        assert!(is_logged_in(&server, &vault).await.is_err());
        assert!(logout(&server, &fetcher, &vault).await.unwrap());
        assert!(!is_logged_in(&server, &vault).await.unwrap());
        assert!(!logout(&server, &fetcher, &vault).await.unwrap());
    }
}
