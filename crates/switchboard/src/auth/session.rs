//! OAuth session of one server: loads, sends, refreshes and drops its tokens.
//!
//! Refreshes are serialized in this process and across processes: each runs under the vault's lock and first reloads
//! the login, which another process may have refreshed. New tokens are stored before use. A refresh runs in its own
//! task, so that a cancelled caller does not abort it: a refresh token can be used once, and a dropped response would
//! lose the login. The fetcher's deadline bounds it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::redact::Redactor;
use switchboard_config::secret::Secret;
use switchboard_store::{Clock, SystemClock, Timestamp};
use url::Url;

use super::authorizer::{Authorizer, Credentials, Refusal, Target, Verdict};
use super::challenge::{Challenge, union};
use super::error::LoginErrorKind;
use super::fetch::Fetcher;
use super::grant;
use super::jose::{ProofKey, ProofOf};
use super::record::{Login, Records};
use super::server::{ProtectedServer, as_http};
use super::token::TokenEndpoint;
use super::vault::{Vault, VaultError};

/// Refresh margin before expiry, or a tenth of the token's lifetime if that is shorter.
const AHEAD: Duration = Duration::from_secs(60);
/// How long a request waits for a proactive refresh before it uses the current token.
const PATIENCE: Duration = Duration::from_secs(5);
/// Backoff after a failed proactive refresh.
const PAUSE: Duration = Duration::from_secs(10);
/// Backoff after a refused non-interactive grant.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of retries of one request.
const MOST_ATTEMPTS: u32 = 3;
/// Maximum length of a `DPoP` nonce.
const MAX_NONCE: usize = 1024;

/// Observer of token requests: called with `true` on success. Must not block.
#[derive(Clone)]
pub struct Renewals(Arc<dyn Fn(bool) + Send + Sync>);

impl Renewals {
    /// Calls `hears` with the outcome of every token request.
    pub fn heard_by(hears: impl Fn(bool) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hears))
    }
}

impl std::fmt::Debug for Renewals {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Renewals")
    }
}

/// Authorizes the requests to one server with OAuth.
#[derive(Debug, Clone)]
pub struct OAuth(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: ProtectedServer,
    fetcher: Fetcher,
    vault: Arc<dyn Vault>,
    clock: Arc<dyn Clock>,
    current: Mutex<Current>,
    /// Nonce for the next `DPoP` proof.
    nonce: Mutex<Option<String>>,
    /// Observer of token requests.
    renewals: OnceLock<Renewals>,
    /// Masks sent tokens in output.
    redactor: OnceLock<Redactor>,
    /// Serializes refreshes in this process, so that only one task waits for the vault.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Default)]
struct Current {
    login: Option<Arc<Login>>,
    /// Number of changes of the login.
    generation: u64,
    is_loaded: bool,
    /// Backoff: no proactive refresh and no non-interactive grant before this time.
    not_before: Option<Timestamp>,
    /// Used-up login that is still in the vault because its successor could not be stored.
    spent: Option<Arc<Login>>,
}

/// Outcome of a refresh.
#[derive(Debug)]
enum Renewal {
    /// Tokens have changed.
    Renewed,
    /// New tokens need an interactive login.
    Over,
    /// Temporary failure, with the reason.
    Unavailable(String),
}

impl OAuth {
    /// Authorizes requests to `server`.
    pub fn new(server: ProtectedServer, fetcher: Fetcher, vault: Arc<dyn Vault>) -> Self {
        Self::with_clock(server, fetcher, vault, Arc::new(SystemClock))
    }

    /// Same as [`Self::new`], with a custom clock.
    pub fn with_clock(
        server: ProtectedServer,
        fetcher: Fetcher,
        vault: Arc<dyn Vault>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Inner {
            server,
            fetcher,
            vault,
            clock,
            current: Mutex::default(),
            nonce: Mutex::default(),
            renewals: OnceLock::new(),
            redactor: OnceLock::new(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    /// Reports the success or failure of every later token request to `renewals`, without its content.
    #[must_use]
    pub fn telling(self, renewals: Renewals) -> Self {
        let _ = self.0.renewals.set(renewals);
        self
    }

    /// Registers tokens with `redactor`, which masks them in output.
    #[must_use]
    pub(crate) fn redacting(self, redactor: Redactor) -> Self {
        let _ = self.0.redactor.set(redactor);
        self
    }

    /// The server that this session authorizes.
    pub fn server(&self) -> &ProtectedServer {
        &self.0.server
    }

    /// Obtains tokens newer than generation `seen`, with the scopes `more` added.
    async fn renew(&self, seen: u64, more: Vec<String>) -> Renewal {
        let inner = Arc::clone(&self.0);
        let task = tokio::spawn(async move { inner.renew(seen, &more).await });
        task.await
            .unwrap_or_else(|error| Renewal::Unavailable(error.to_string()))
    }

    async fn answer_unauthorized(&self, shown: &Credentials, refusal: Refusal<'_>) -> Verdict {
        let challenge = Challenge::of(refusal.challenges);
        let wants_nonce = challenge.error.as_deref() == Some("use_dpop_nonce");
        self.0.server.hear(challenge);
        if refusal.attempts >= MOST_ATTEMPTS {
            return Verdict::NeedsPerson;
        }
        let has_nonce = lock(&self.0.nonce).is_some();
        if wants_nonce && has_nonce && !shown.headers.is_empty() && refusal.attempts < 2 {
            return Verdict::Again;
        }
        // If a fresh token is refused as well, another one will not help.
        if refusal.attempts >= 2 && lock(&self.0.current).generation == shown.generation {
            return Verdict::NeedsPerson;
        }
        match self.renew(shown.generation, Vec::new()).await {
            Renewal::Renewed => Verdict::Again,
            Renewal::Over => Verdict::NeedsPerson,
            Renewal::Unavailable(reason) => Verdict::Unavailable(reason),
        }
    }

    async fn answer_forbidden(&self, shown: &Credentials, refusal: Refusal<'_>) -> Verdict {
        let challenge = Challenge::of(refusal.challenges);
        if !challenge.wants_more_scope() || refusal.attempts >= MOST_ATTEMPTS {
            return Verdict::Final;
        }
        // The user may have granted more scopes in the meantime.
        match self.0.reload(shown.generation).await {
            Ok(true) => return Verdict::Again,
            Ok(false) => {}
            Err(error) => return Verdict::Unavailable(error.to_string()),
        }
        let Some(login) = lock(&self.0.current).login.clone() else {
            self.0.server.hear(challenge);
            return Verdict::NeedsPerson;
        };
        let wanted = union(&login.scopes, &challenge.scopes);
        if wanted == login.scopes {
            // They were requested already; requesting them again would loop.
            return Verdict::Final;
        }
        self.0.server.hear(challenge);
        if !self.0.server.settings().grant.needs_person() {
            return match self.renew(shown.generation, wanted).await {
                Renewal::Renewed => Verdict::Again,
                Renewal::Over => Verdict::Final,
                Renewal::Unavailable(reason) => Verdict::Unavailable(reason),
            };
        }
        if let Err(error) = self.0.want(wanted).await {
            tracing::warn!(%error, "cannot store the scopes that a server requested");
        }
        Verdict::NeedsPerson
    }
}

impl Authorizer for OAuth {
    fn credentials<'a>(&'a self, target: Target<'a>) -> BoxFuture<'a, Credentials> {
        Box::pin(async move {
            if !self.0.server.owns(target.url) {
                return Credentials::default();
            }
            let mut current = self.0.loaded().await;
            if self.0.is_due(&current) {
                // The current token may still be valid, so the wait is short.
                let renewal = self.renew(current.generation, Vec::new());
                let _ = tokio::time::timeout(PATIENCE, renewal).await;
                current = lock(&self.0.current).clone();
            }
            self.0.show(&current, target)
        })
    }

    fn refused<'a>(
        &'a self,
        target: Target<'a>,
        shown: &'a Credentials,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            if !self.0.server.owns(target.url) {
                return Verdict::Final;
            }
            match refusal.status {
                401 => self.answer_unauthorized(shown, refusal).await,
                403 => self.answer_forbidden(shown, refusal).await,
                _ => Verdict::Final,
            }
        })
    }

    fn nonce(&self, url: &Url, nonce: &str) {
        if self.0.server.owns(url) && nonce.len() <= MAX_NONCE {
            *lock(&self.0.nonce) = Some(nonce.to_owned());
        }
    }
}

impl Inner {
    fn records(&self) -> Records<'_> {
        Records::of(&*self.vault, &self.server)
    }

    /// Returns the current login; loads it from the vault on first use.
    async fn loaded(&self) -> Current {
        let current = lock(&self.current).clone();
        if current.is_loaded {
            return current;
        }
        match self.records().login().await {
            Ok(login) => {
                let mut current = lock(&self.current);
                // A concurrent load or refresh may have set it already.
                if !current.is_loaded {
                    current.is_loaded = true;
                    current.generation += u64::from(login.is_some());
                    current.login = login.map(Arc::new);
                    self.learn(&current);
                }
                current.clone()
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the stored login");
                current
            }
        }
    }

    /// Adopts the vault's login if it differs; returns whether a login newer than generation `seen` is available.
    async fn reload(&self, seen: u64) -> Result<bool, VaultError> {
        if lock(&self.current).generation != seen {
            return Ok(true);
        }
        let stored = self.records().login().await?;
        Ok(self.adopt_other(stored, seen))
    }

    fn adopt_other(&self, stored: Option<Login>, seen: u64) -> bool {
        let mut current = lock(&self.current);
        let is_spent = stored.is_some() && stored.as_ref() == current.spent.as_deref();
        let is_other = stored.as_ref() != current.login.as_deref();
        if is_other && !is_spent {
            current.login = stored.map(Arc::new);
            current.generation += 1;
            current.is_loaded = true;
            current.spent = None;
            self.learn(&current);
        }
        // A deleted login is not a better credential.
        current.generation != seen && current.login.is_some()
    }

    /// Whether new tokens can be obtained without an interactive login.
    fn can_renew(&self) -> bool {
        let login = lock(&self.current).login.clone();
        login.is_some_and(|login| login.refresh_token.is_some())
            || !self.server.settings().grant.needs_person()
    }

    fn is_due(&self, current: &Current) -> bool {
        let Some(login) = &current.login else {
            return false;
        };
        let Some(expires_at) = login.expires_at else {
            return false;
        };
        let now = self.clock.now();
        if current.not_before.is_some_and(|moment| now < moment) {
            return false;
        }
        let tenth = expires_at.saturating_sub(login.obtained_at) / 10;
        let ahead = i64::try_from(AHEAD.as_millis()).unwrap_or(i64::MAX);
        self.can_renew() && now.as_millis() >= expires_at.saturating_sub(tenth.min(ahead))
    }

    /// Builds the headers of a request.
    fn show(&self, current: &Current, target: Target<'_>) -> Credentials {
        let mut credentials = Credentials {
            headers: Vec::new(),
            generation: current.generation,
        };
        let Some(login) = &current.login else {
            return credentials;
        };
        let token = login.access_token.expose();
        if !login.is_bound {
            let value = Secret::new(format!("Bearer {token}"));
            credentials.headers.push(("authorization", value));
            return credentials;
        }
        let nonce = lock(&self.nonce).clone();
        let url = as_http(target.url);
        let key = login.proof_key.clone().map(ProofKey::from_stored);
        let (Some(url), Some(key)) = (url, key) else {
            return credentials;
        };
        let proof = key.proof(&ProofOf {
            method: target.method,
            url: &url,
            nonce: nonce.as_deref(),
            access_token: Some(&login.access_token),
            now: self.clock.now(),
        });
        match proof {
            Ok(proof) => {
                let value = Secret::new(format!("DPoP {token}"));
                credentials.headers.push(("authorization", value));
                credentials.headers.push(("dpop", proof));
            }
            Err(error) => tracing::warn!(%error, "cannot create a DPoP proof"),
        }
        credentials
    }

    async fn renew(&self, seen: u64, more: &[String]) -> Renewal {
        let _turn = self.turn.lock().await;
        if lock(&self.current).generation != seen {
            return Renewal::Renewed;
        }
        // Most refusals come from servers without a login; those need no lock.
        match self.reload(seen).await {
            Ok(true) => return Renewal::Renewed,
            Ok(false) if !self.can_renew() => return Renewal::Over,
            Ok(false) => {}
            Err(error) if !self.can_renew() => {
                tracing::warn!(%error, "cannot read the stored login");
                return Renewal::Over;
            }
            Err(error) => return Renewal::Unavailable(error.to_string()),
        }
        let records = self.records();
        let _lock = match records.lock().await {
            Ok(lock) => lock,
            Err(error) => return Renewal::Unavailable(error.to_string()),
        };
        match self.reload(seen).await {
            Ok(true) => return Renewal::Renewed,
            Ok(false) => {}
            Err(error) => return Renewal::Unavailable(error.to_string()),
        }
        let login = lock(&self.current).login.clone();
        let refreshes = login
            .as_ref()
            .is_some_and(|login| login.refresh_token.is_some());
        let outcome = match login {
            Some(login) if refreshes => self.refresh(&login, seen).await,
            _ if !self.server.settings().grant.needs_person() => self.obtain(more).await,
            _ => return Renewal::Over,
        };
        self.after(outcome)
    }

    /// Updates the backoff and maps the outcome of a token request.
    fn after(&self, outcome: Result<Renewal, LoginErrorKind>) -> Renewal {
        let until = |pause: Duration| Some(self.clock.now().after(pause));
        let not_before = match &outcome {
            Ok(Renewal::Renewed) => None,
            Ok(_) => lock(&self.current).not_before,
            Err(error) if error.is_passing() => until(PAUSE),
            Err(_) => until(REFUSED_PAUSE),
        };
        lock(&self.current).not_before = not_before;
        match outcome {
            Ok(renewal) => renewal,
            Err(error) if error.is_passing() => Renewal::Unavailable(error.to_string()),
            Err(error) => {
                let server = self.server.url().host_str().unwrap_or_default();
                tracing::warn!(server, %error, "the authorization server refused a new token");
                Renewal::Over
            }
        }
    }

    /// Redeems the refresh token.
    async fn refresh(&self, login: &Login, seen: u64) -> Result<Renewal, LoginErrorKind> {
        let Some(refresh_token) = &login.refresh_token else {
            return Ok(Renewal::Over);
        };
        let reach = self
            .fetcher
            .reach(self.server.url(), self.server.trusted())
            .await;
        let proof_key = login.proof_key.clone().map(ProofKey::from_stored);
        let endpoint = TokenEndpoint {
            fetcher: &self.fetcher,
            reach: &reach,
            url: &login.token_endpoint,
            issuer: &login.issuer,
            client: &login.client,
            settings: self.server.settings(),
            proof_key: proof_key.as_ref(),
            must_bind: login.is_bound,
            clock: &*self.clock,
        };
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose()),
            ("resource", login.resource.as_str()),
        ];
        let answer = endpoint.ask(&form).await;
        self.tell_of_renewal(answer.is_ok());
        match answer {
            Ok(tokens) => {
                let renewed = Login {
                    access_token: tokens.access_token,
                    is_bound: tokens.is_bound,
                    expires_at: tokens.expires_at,
                    obtained_at: tokens.obtained_at,
                    // Without a new refresh token the old one stays valid.
                    refresh_token: tokens.refresh_token.or_else(|| Some(refresh_token.clone())),
                    ..login.clone()
                };
                self.keep(renewed).await;
                Ok(Renewal::Renewed)
            }
            Err(LoginErrorKind::Refused { error, .. }) if error == "invalid_grant" => {
                // Another program that ignores the lock may have redeemed the token and stored the result.
                if self.reload(seen).await? {
                    return Ok(Renewal::Renewed);
                }
                let spent = Login {
                    refresh_token: None,
                    ..login.clone()
                };
                self.keep(spent).await;
                // The access token has not changed, so a retry would not help.
                Ok(Renewal::Over)
            }
            Err(error) => Err(error),
        }
    }

    /// Obtains tokens with a non-interactive grant.
    async fn obtain(&self, more: &[String]) -> Result<Renewal, LoginErrorKind> {
        let (not_before, login) = {
            let current = lock(&self.current);
            (current.not_before, current.login.clone())
        };
        if not_before.is_some_and(|moment| self.clock.now() < moment) {
            return Ok(Renewal::Over);
        }
        let challenge = self.server.heard().unwrap_or_default();
        let before = login.map(|login| login.scopes.clone()).unwrap_or_default();
        let more = union(&before, more);
        let (fetcher, clock) = (&self.fetcher, &*self.clock);
        let login = grant::obtain(fetcher, &self.server, &challenge, &more, clock).await;
        self.tell_of_renewal(login.is_ok());
        self.keep(login?).await;
        Ok(Renewal::Renewed)
    }

    fn tell_of_renewal(&self, succeeded: bool) {
        if let Some(renewals) = self.renewals.get() {
            (renewals.0)(succeeded);
        }
    }

    /// Stores new tokens before using them.
    async fn keep(&self, login: Login) {
        let wanted = self.records().known().await.map(|known| known.wanted);
        let stored = self
            .records()
            .keep(&login, wanted.unwrap_or_default())
            .await;
        let mut current = lock(&self.current);
        if let Err(error) = stored {
            // The old tokens may already be invalid, so the new ones are used anyway.
            tracing::warn!(%error, "cannot store the refreshed login; it is lost when this process exits");
            current.spent = current.spent.take().or_else(|| current.login.clone());
        } else {
            current.spent = None;
        }
        current.login = Some(Arc::new(login));
        current.generation += 1;
        current.is_loaded = true;
        self.learn(&current);
    }

    /// Registers the current tokens with the redactor.
    fn learn(&self, current: &Current) {
        if let (Some(redactor), Some(login)) = (self.redactor.get(), &current.login) {
            redactor.learn(&login.access_token);
            if let Some(token) = &login.refresh_token {
                redactor.learn(token);
            }
        }
    }

    /// Stores the scopes that the next login should request.
    async fn want(&self, wanted: Vec<String>) -> Result<(), VaultError> {
        let records = self.records();
        let _lock = records.lock().await?;
        let mut known = records.known().await?;
        if known.wanted != wanted {
            known.wanted = wanted;
            records.note(&known).await?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
