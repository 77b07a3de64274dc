//! A login in progress: from the authorization URL to stored tokens, and the way back.
//!
//! The authorization code grant of OAuth 2.1 with PKCE. Nothing here opens a browser or listens for the callback;
//! whoever does hands the callback's parameters to [`Login::finish`].

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

/// The scope that asks for a token that outlives the login.
const OFFLINE_ACCESS: &str = "offline_access";

/// A login that has begun.
#[derive(Debug)]
pub struct LoginStart {
    /// Where the person is to go. It is `https`, or `http` on this machine, whatever the server said.
    pub authorization_url: Url,
    /// What waits for the callback.
    pub login: Login,
}

/// A login in progress. It holds the proof that the callback belongs to it; dropping it gives the login up.
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
    /// The parameters of a callback, from its query: `code=…&state=…`.
    ///
    /// A parameter that comes twice makes the whole callback worthless: whoever wrote it wants two readers to see two
    /// different things.
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
    /// Finds out where to log in, makes a client known there, and gives the address to send the person to.
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
            problem: "has no page to log in at".to_owned(),
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

    /// Redeems the code of the callback and keeps the tokens.
    ///
    /// The code goes to the authorization server only when the callback belongs to this login (`state`) and comes from
    /// that very server (`iss`, compared letter by letter). The same holds for believing an error.
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
        // A renewal of the old login must not be written over the new one.
        let _lock = records.lock().await.map_err(LoginErrorKind::Vault)?;
        let kept = records.keep(&login, Vec::new()).await;
        kept.map_err(LoginErrorKind::Vault)?;
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

/// Forgets the login to a server, and revokes it where the authorization server can; whether there was one.
///
/// A revocation that fails is noted in the log and does not keep the login.
pub async fn logout(
    server: &ProtectedServer,
    fetcher: &Fetcher,
    vault: &dyn Vault,
) -> Result<bool, LoginError> {
    let records = Records::of(vault, server);
    let _lock = records.lock().await.map_err(LoginErrorKind::Vault)?;
    let kept = records.login().await;
    let was_lost = kept.as_ref().is_err_and(|error| error.is_lost);
    let login = record::unless_lost(kept).map_err(LoginErrorKind::Vault)?;
    let existed = was_lost | records.forget().await.map_err(LoginErrorKind::Vault)?;
    if let Some(login) = login
        && let Err(error) = revoke(server, fetcher, &login).await
    {
        tracing::warn!(%error, "the login is forgotten here, but could not be revoked");
    }
    Ok(existed)
}

/// Whether a login to a server is kept here. Whether the server still accepts it, only the server can tell.
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
    // The refresh token first: with it the access tokens of most servers go, too.
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

/// The scopes to ask for: those of the entry, of the challenge, of the resource, in that order.
pub(super) fn scopes(
    settings: &AuthSettings,
    challenge: &Challenge,
    found: &Discovered,
) -> Vec<String> {
    let choices = [&settings.scopes, &challenge.scopes, &found.scopes];
    let chosen = choices.into_iter().find(|scopes| !scopes.is_empty());
    chosen.cloned().unwrap_or_default()
}

/// The same for a person, who would like to stay logged in. What was agreed to before, or
/// wanted by the server since, is asked for again.
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
    // Alone it would narrow what the server gives when nothing is asked for.
    if is_offered && !scopes.is_empty() {
        scopes = union(&scopes, &[OFFLINE_ACCESS.to_owned()]);
    }
    scopes
}

/// Asks the server something without a token, to hear what it wants. A server that says nothing is asked no further.
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
