//! The credentials of one server over time: loaded, shown, renewed, given up.
//!
//! A renewal is one at a time, in this process and across processes: it happens under the vault's lock, and whoever
//! gets the lock looks first whether somebody else has renewed meanwhile. New tokens are stored before they are used. A
//! renewal that has begun is not undone by whoever asked for it going away: a refresh token can be used once, and an
//! answer that nobody keeps is a lost login. It ends by the fetcher's deadline.

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

/// A token is renewed this long before it expires, or when a tenth of its life is left.
const AHEAD: Duration = Duration::from_secs(60);
/// A request waits this long for a renewal ahead of time; after that it goes with the token there is.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a renewal that failed, the next one ahead of time waits this long.
const PAUSE: Duration = Duration::from_secs(10);
/// After a grant without a person was refused, it is not tried again for this long.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// How often one request is sent again.
const MOST_ATTEMPTS: u32 = 3;
/// The longest nonce that is sent back.
const MAX_NONCE: usize = 1024;

/// Hears of attempts at new tokens: whether there are any now. It must be short.
#[derive(Clone)]
pub struct Renewals(Arc<dyn Fn(bool) + Send + Sync>);

impl Renewals {
    /// Hears of them like this.
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
    /// The nonce for the next proof of possession.
    nonce: Mutex<Option<String>>,
    /// Who hears of attempts at new tokens.
    renewals: OnceLock<Renewals>,
    /// Learns the tokens that are sent.
    redactor: OnceLock<Redactor>,
    /// One renewal at a time in this process, so that only one waits for the vault.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Default)]
struct Current {
    login: Option<Arc<Login>>,
    /// How often the login has changed.
    generation: u64,
    is_loaded: bool,
    /// No renewal ahead of time, and no refused grant, before this moment.
    not_before: Option<Timestamp>,
    /// What the vault still has although it is used up, because its successor could not be kept.
    spent: Option<Arc<Login>>,
}

/// What came of a renewal.
#[derive(Debug)]
enum Renewal {
    /// There are other tokens now.
    Renewed,
    /// There is no way to other tokens without a person.
    Over,
    /// It could not be found out.
    Unavailable(String),
}

impl OAuth {
    /// Authorizes requests to this server.
    pub fn new(server: ProtectedServer, fetcher: Fetcher, vault: Arc<dyn Vault>) -> Self {
        Self::with_clock(server, fetcher, vault, Arc::new(SystemClock))
    }

    /// The same by another clock.
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

    /// Tells somebody of every attempt at new tokens that is made from now on, and of nothing in them.
    #[must_use]
    pub fn telling(self, renewals: Renewals) -> Self {
        let _ = self.0.renewals.set(renewals);
        self
    }

    /// Lets tokens be masked wherever they come back.
    #[must_use]
    pub(crate) fn redacting(self, redactor: Redactor) -> Self {
        let _ = self.0.redactor.set(redactor);
        self
    }

    /// The server it is for.
    pub fn server(&self) -> &ProtectedServer {
        &self.0.server
    }

    /// Other tokens than those of `seen`, with these scopes besides.
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
        // A new token that is refused, too, is not made better by another.
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
        // Somebody may have agreed to more meanwhile.
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
            // They have been asked for already. Asking again would go round in circles.
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
            tracing::warn!(%error, "the scopes that a server wants could not be noted");
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
                // The token may be good for a while yet, so nobody waits long for the next one.
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

    /// The credentials of the moment; from the vault the first time.
    async fn loaded(&self) -> Current {
        let current = lock(&self.current).clone();
        if current.is_loaded {
            return current;
        }
        match self.records().login().await {
            Ok(login) => {
                let mut current = lock(&self.current);
                // Somebody may have been faster, with something newer.
                if !current.is_loaded {
                    current.is_loaded = true;
                    current.generation += u64::from(login.is_some());
                    current.login = login.map(Arc::new);
                    self.learn(&current);
                }
                current.clone()
            }
            Err(error) => {
                tracing::warn!(%error, "what is kept of a login could not be read");
                current
            }
        }
    }

    /// Takes over what the vault has, if that is something else; whether it is, or has been since `seen`.
    async fn reload(&self, seen: u64) -> Result<bool, VaultError> {
        if lock(&self.current).generation != seen {
            return Ok(true);
        }
        let kept = self.records().login().await?;
        Ok(self.adopt_other(kept, seen))
    }

    fn adopt_other(&self, kept: Option<Login>, seen: u64) -> bool {
        let mut current = lock(&self.current);
        let is_spent = kept.is_some() && kept.as_ref() == current.spent.as_deref();
        let is_other = kept.as_ref() != current.login.as_deref();
        if is_other && !is_spent {
            current.login = kept.map(Arc::new);
            current.generation += 1;
            current.is_loaded = true;
            current.spent = None;
            self.learn(&current);
        }
        // A login that is gone is nothing better to show.
        current.generation != seen && current.login.is_some()
    }

    /// Whether there is a way to new tokens without a person.
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

    /// The headers of a request.
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
            Err(error) => tracing::warn!(%error, "a proof of possession could not be made"),
        }
        credentials
    }

    async fn renew(&self, seen: u64, more: &[String]) -> Renewal {
        let _turn = self.turn.lock().await;
        if lock(&self.current).generation != seen {
            return Renewal::Renewed;
        }
        // Most refusals are of servers that nobody has logged in to: those need no lock.
        match self.reload(seen).await {
            Ok(true) => return Renewal::Renewed,
            Ok(false) if !self.can_renew() => return Renewal::Over,
            Ok(false) => {}
            Err(error) if !self.can_renew() => {
                tracing::warn!(%error, "what is kept of a login could not be read");
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

    /// What an attempt at new tokens means.
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
                tracing::warn!(server, %error, "no new token was given");
                Renewal::Over
            }
        }
    }

    /// New tokens for the refresh token.
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
                    // Without a new one the old one stays good.
                    refresh_token: tokens.refresh_token.or_else(|| Some(refresh_token.clone())),
                    ..login.clone()
                };
                self.keep(renewed).await;
                Ok(Renewal::Renewed)
            }
            Err(LoginErrorKind::Refused { error, .. }) if error == "invalid_grant" => {
                // Somebody who does not know the lock may have used it and kept what came of it.
                if self.reload(seen).await? {
                    return Ok(Renewal::Renewed);
                }
                let spent = Login {
                    refresh_token: None,
                    ..login.clone()
                };
                self.keep(spent).await;
                // The access token has not changed, so there is nothing better to show.
                Ok(Renewal::Over)
            }
            Err(error) => Err(error),
        }
    }

    /// New tokens without a person.
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

    /// Keeps new tokens, and only then uses them.
    async fn keep(&self, login: Login) {
        let wanted = self.records().known().await.map(|known| known.wanted);
        let kept = self
            .records()
            .keep(&login, wanted.unwrap_or_default())
            .await;
        let mut current = lock(&self.current);
        if let Err(error) = kept {
            // The old tokens may be worth nothing any longer, so the new ones are used all the same.
            tracing::warn!(%error, "a renewed login could not be kept; it ends with this process");
            current.spent = current.spent.take().or_else(|| current.login.clone());
        } else {
            current.spent = None;
        }
        current.login = Some(Arc::new(login));
        current.generation += 1;
        current.is_loaded = true;
        self.learn(&current);
    }

    /// Lets the tokens of a login that is new here be masked.
    fn learn(&self, current: &Current) {
        if let (Some(redactor), Some(login)) = (self.redactor.get(), &current.login) {
            redactor.learn(&login.access_token);
            if let Some(token) = &login.refresh_token {
                redactor.learn(token);
            }
        }
    }

    /// Notes the scopes that the next login should ask for.
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
