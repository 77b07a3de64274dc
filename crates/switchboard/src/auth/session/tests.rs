//! Tests of renewing, refreshing and invalidating a session.

use std::future::ready;
use std::sync::atomic::{AtomicI64, Ordering};

use super::super::record::{Client, ClientAuth};
use super::super::server::{AuthSettings, Grant};
use super::super::vault::{MemoryVault, VaultKey, VaultLock};
use super::*;
use crate::transport::http::{HttpClient, HttpSettings};

#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

struct Session {
    oauth: OAuth,
    clock: Arc<SetClock>,
}

fn session(grant: Grant) -> Session {
    session_in(Arc::new(MemoryVault::default()), grant)
}

fn session_in(vault: Arc<dyn Vault>, grant: Grant) -> Session {
    let url = Url::parse("https://server.example/mcp").unwrap();
    let settings = AuthSettings {
        grant,
        ..AuthSettings::default()
    };
    let server = ProtectedServer::new(&url, settings).unwrap();
    let fetcher = Fetcher::new(&HttpClient::new(HttpSettings::default()).unwrap());
    let clock = Arc::new(SetClock::default());
    Session {
        oauth: OAuth::with_clock(server, fetcher, vault, clock.clone()),
        clock,
    }
}

/// The operation of a vault that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ReadFails,
    LockFails,
    /// Another process logs out before the lock is acquired.
    LoggedOut,
}

#[derive(Debug)]
struct FaultyVault(MemoryVault, Fault);

impl FaultyVault {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self(MemoryVault::default(), fault))
    }
}

impl Vault for FaultyVault {
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
        if self.1 == Fault::ReadFails {
            let error = VaultError::new("could not be read", "the keyring is locked");
            return Box::pin(ready(Err(error)));
        }
        self.0.get(key)
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
        Box::pin(async move {
            if self.1 == Fault::LockFails {
                return Err(VaultError::new("could not be locked", "permission denied"));
            }
            if self.1 == Fault::LoggedOut {
                self.0.remove(key).await?;
            }
            self.0.lock(key).await
        })
    }
}

/// A login that can be refreshed.
fn refreshable(token: &str) -> Login {
    Login {
        refresh_token: Some(Secret::new(format!("refresh-{token}"))),
        ..login(token)
    }
}

fn login(token: &str) -> Login {
    Login {
        issuer: "https://issuer.example".to_owned(),
        resource: "https://server.example/mcp".to_owned(),
        token_endpoint: Url::parse("https://issuer.example/token").unwrap(),
        revocation_endpoint: None,
        client: Client {
            id: "client".to_owned(),
            secret: None,
            method: ClientAuth::None,
            redirect_uri: None,
            expires_at: None,
        },
        access_token: Secret::new(token),
        is_bound: false,
        expires_at: None,
        obtained_at: 0,
        refresh_token: None,
        scopes: vec!["a".to_owned()],
        proof_key: None,
    }
}

impl Session {
    fn set(&self, login: Option<Login>) {
        let mut current = lock(&self.oauth.0.current);
        current.generation += 1;
        current.is_loaded = true;
        current.login = login.map(Arc::new);
    }

    fn generation(&self) -> u64 {
        lock(&self.oauth.0.current).generation
    }

    async fn refused(
        &self,
        status: u16,
        attempts: u32,
        challenge: &str,
        shown: &Credentials,
    ) -> Verdict {
        let url = self.oauth.server().url().clone();
        let target = Target {
            method: "POST",
            url: &url,
        };
        let challenges = [challenge.to_owned()];
        let refusal = Refusal {
            status,
            challenges: &challenges,
            attempts,
        };
        self.oauth.refused(target, shown, refusal).await
    }
}

fn sent_at(generation: u64) -> Credentials {
    Credentials {
        headers: vec![("authorization", Secret::new("Bearer x"))],
        generation,
    }
}

#[test]
fn a_token_is_due_a_minute_or_a_tenth_of_its_life_ahead() {
    let due = |grant: Grant, login: Option<Login>, not_before: Option<i64>, now: i64| {
        let session = session(grant);
        session.set(login);
        session.clock.0.store(now, Ordering::Relaxed);
        let mut current = lock(&session.oauth.0.current).clone();
        current.not_before = not_before.map(Timestamp::from_millis);
        session.oauth.0.is_due(&current)
    };
    let expiring = |expires_at: Option<i64>, refresh: bool| {
        Some(Login {
            expires_at,
            refresh_token: refresh.then(|| Secret::new("r")),
            ..login("t")
        })
    };
    let person = || Grant::AuthorizationCode;
    for (login, not_before, now, expected) in [
        (expiring(Some(3_600_000), true), None, 3_539_999, false),
        (expiring(Some(3_600_000), true), None, 3_540_000, true),
        (expiring(Some(100_000), true), None, 89_999, false),
        (expiring(Some(100_000), true), None, 90_000, true),
        // Not during a pause after a failure.
        (expiring(Some(100_000), true), Some(95_000), 94_999, false),
        (expiring(Some(100_000), true), Some(95_000), 95_000, true),
        (expiring(Some(100_000), false), None, 200_000, false),
        (expiring(None, true), None, 200_000, false),
        (None, None, 200_000, false),
    ] {
        let found = due(person(), login.clone(), not_before, now);
        assert_eq!(found, expected, "{login:?} at {now}");
    }
    // A grant without a user can be repeated without a refresh token.
    let login = expiring(Some(100_000), false);
    assert!(due(Grant::ClientCredentials, login, None, 95_000));
}

#[test]
fn the_login_of_another_process_is_adopted_and_a_spent_one_is_not() {
    let session = session(Grant::AuthorizationCode);
    let inner = &session.oauth.0;
    let token = || {
        let login = lock(&inner.current).login.clone();
        login.map(|login| login.access_token.expose().to_owned())
    };
    assert!(!inner.adopt_other(None, 0));
    assert_eq!(session.generation(), 0);
    assert!(inner.adopt_other(Some(login("first")), 0));
    assert_eq!(
        (session.generation(), token()),
        (1, Some("first".to_owned()))
    );
    // The same one is nothing new.
    assert!(!inner.adopt_other(Some(login("first")), 1));
    assert_eq!(session.generation(), 1);
    assert!(inner.adopt_other(Some(login("second")), 1));
    assert_eq!(session.generation(), 2);
    lock(&inner.current).spent = Some(Arc::new(login("first")));
    assert!(!inner.adopt_other(Some(login("first")), 2));
    assert_eq!(
        (session.generation(), token()),
        (2, Some("second".to_owned()))
    );
    // One that was deleted is gone, and no better credential.
    assert!(!inner.adopt_other(None, 2));
    assert_eq!((session.generation(), token()), (3, None));
}

#[test]
fn a_nonce_is_kept_if_it_is_the_servers_and_short() {
    let session = session(Grant::AuthorizationCode);
    let nonce = || lock(&session.oauth.0.nonce).clone();
    let own = session.oauth.server().url().clone();
    let other = Url::parse("https://other.example/mcp").unwrap();
    session.oauth.nonce(&other, "n");
    session.oauth.nonce(&own, &"n".repeat(1025));
    assert_eq!(nonce(), None);
    session.oauth.nonce(&own, &"n".repeat(1024));
    assert_eq!(nonce(), Some("n".repeat(1024)));
}

#[tokio::test]
async fn a_request_with_a_nonce_is_repeated_and_not_for_ever() {
    let challenge = "DPoP error=\"use_dpop_nonce\"";
    let session = session(Grant::AuthorizationCode);
    let shown = sent_at(0);
    let bare = Credentials::default();
    // Neither a nonce nor a login is known yet.
    let found = session.refused(401, 0, challenge, &shown).await;
    assert_eq!(found, Verdict::NeedsPerson);
    let own = session.oauth.server().url().clone();
    session.oauth.nonce(&own, "n");
    for (attempts, challenge, shown, expected) in [
        (0, challenge, &shown, Verdict::Again),
        (1, challenge, &shown, Verdict::Again),
        (2, challenge, &shown, Verdict::NeedsPerson),
        (0, challenge, &bare, Verdict::NeedsPerson),
        (0, "Bearer", &shown, Verdict::NeedsPerson),
    ] {
        let found = session.refused(401, attempts, challenge, shown).await;
        assert_eq!(found, expected, "{attempts} {challenge}");
    }
}

#[tokio::test]
async fn a_newer_login_is_tried_a_few_times() {
    let session = session(Grant::AuthorizationCode);
    let inner = &session.oauth.0;
    inner
        .records()
        .keep(&login("stored"), Vec::new())
        .await
        .unwrap();
    // Found in the vault.
    let shown = sent_at(0);
    let found = session.refused(401, 0, "Bearer", &shown).await;
    assert_eq!((found, session.generation()), (Verdict::Again, 1));
    for (attempts, generation, expected) in [
        (0, 0, Verdict::Again),
        (2, 0, Verdict::Again),
        (3, 0, Verdict::NeedsPerson),
        // The newest, without a way to renew it.
        (0, 1, Verdict::NeedsPerson),
        (2, 1, Verdict::NeedsPerson),
    ] {
        let shown = sent_at(generation);
        let found = session.refused(401, attempts, "Bearer", &shown).await;
        assert_eq!(found, expected, "{attempts} {generation}");
    }
    let shown = sent_at(0);
    assert_eq!(
        session.refused(402, 0, "Bearer", &shown).await,
        Verdict::Final
    );
}

#[tokio::test]
async fn scopes_that_are_missing_are_remembered_for_the_next_login() {
    let session = session(Grant::AuthorizationCode);
    let inner = &session.oauth.0;
    let wanted = async || inner.records().known().await.unwrap().wanted;
    let stored = login("t");
    inner.records().keep(&stored, Vec::new()).await.unwrap();
    session.set(Some(stored));
    let more = "Bearer error=\"insufficient_scope\", scope=\"b\"";
    let same = "Bearer error=\"insufficient_scope\", scope=\"a\"";
    for (attempts, challenge, expected) in [
        (0, "Bearer scope=\"b\"", Verdict::Final),
        (0, same, Verdict::Final),
        (3, more, Verdict::Final),
    ] {
        let shown = sent_at(1);
        let found = session.refused(403, attempts, challenge, &shown).await;
        assert_eq!(found, expected, "{attempts} {challenge}");
        assert!(wanted().await.is_empty());
    }
    // A login with more may be there by now.
    let shown = sent_at(0);
    assert_eq!(session.refused(403, 0, more, &shown).await, Verdict::Again);
    let shown = sent_at(1);
    let found = session.refused(403, 2, more, &shown).await;
    assert_eq!(found, Verdict::NeedsPerson);
    assert_eq!(wanted().await, ["a", "b"]);
}

#[tokio::test]
async fn a_login_in_the_vault_has_to_be_that_of_its_key() {
    let session = session(Grant::AuthorizationCode);
    let records = session.oauth.0.records();
    assert_eq!(records.login().await.unwrap(), None);
    records.keep(&login("t"), Vec::new()).await.unwrap();
    assert_eq!(records.login().await.unwrap(), Some(login("t")));
    let loaded = session.oauth.0.loaded().await;
    assert_eq!(loaded.generation, 1);
    for (issuer, resource) in [
        ("https://other.example", "https://server.example/mcp"),
        ("https://issuer.example", "https://other.example"),
    ] {
        let other = Login {
            issuer: issuer.to_owned(),
            resource: resource.to_owned(),
            ..login("t")
        };
        records.put_instead_of(&login("t"), &other).await.unwrap();
        assert_eq!(records.login().await.unwrap(), None, "{issuer}");
    }
    assert!(records.forget().await.unwrap());
    assert!(!records.forget().await.unwrap());
    assert_eq!(records.login().await.unwrap(), None);
}

#[tokio::test]
async fn a_failing_vault_is_an_outage_only_for_a_login_that_can_be_refreshed() {
    for fault in [Fault::ReadFails, Fault::LockFails] {
        let session = session_in(FaultyVault::new(fault), Grant::AuthorizationCode);
        let inner = &session.oauth.0;
        let verdict = async |current: Option<Login>| {
            if let Some(login) = &current {
                // Fails if the vault cannot be read, which makes no difference then.
                let _ = inner.records().keep(login, Vec::new()).await;
            }
            session.set(current);
            let shown = sent_at(session.generation());
            session.refused(401, 0, "Bearer", &shown).await
        };
        // The remedy is a login, and reading the vault later would not change that.
        for current in [None, Some(login("t"))] {
            let found = verdict(current.clone()).await;
            assert_eq!(found, Verdict::NeedsPerson, "{fault:?} {current:?}");
        }
        let found = verdict(Some(refreshable("t"))).await;
        assert!(matches!(found, Verdict::Unavailable(_)), "{found:?}");
    }
}

#[tokio::test]
async fn a_logout_by_another_process_ends_a_refresh_before_it_is_sent() {
    let vault = FaultyVault::new(Fault::LoggedOut);
    let mut session = session_in(vault, Grant::AuthorizationCode);
    let told = Arc::new(Mutex::new(Vec::new()));
    session.oauth = session.oauth.telling(Renewals::heard_by({
        let told = Arc::clone(&told);
        move |succeeded| lock(&told).push(succeeded)
    }));
    let records = session.oauth.0.records();
    records.keep(&refreshable("t"), Vec::new()).await.unwrap();
    session.set(Some(refreshable("t")));
    let found = session.refused(401, 0, "Bearer", &sent_at(1)).await;
    assert_eq!(found, Verdict::NeedsPerson);
    // No token request was made.
    assert!(lock(&told).is_empty());
    assert_eq!(lock(&session.oauth.0.current).login, None);
}

#[test]
fn the_backoff_is_longer_after_a_refusal_than_after_an_outage() {
    let session = session(Grant::ClientCredentials);
    let inner = &session.oauth.0;
    session.clock.0.store(1000, Ordering::Relaxed);
    let not_before = || lock(&inner.current).not_before.map(Timestamp::as_millis);
    let refused = LoginErrorKind::Refused {
        error: "invalid_client".to_owned(),
        description: None,
    };
    assert!(matches!(inner.after(Err(refused)), Renewal::Over));
    assert_eq!(not_before(), Some(61_000));
    assert!(matches!(inner.after(Ok(Renewal::Over)), Renewal::Over));
    assert_eq!(not_before(), Some(61_000));
    let outage = inner.after(Err(LoginErrorKind::Unavailable(503)));
    assert!(matches!(outage, Renewal::Unavailable(_)), "{outage:?}");
    assert_eq!(not_before(), Some(11_000));
    let renewed = inner.after(Ok(Renewal::Renewed));
    assert!(matches!(renewed, Renewal::Renewed), "{renewed:?}");
    assert_eq!(not_before(), None);
}

#[tokio::test]
async fn every_token_of_a_session_is_masked_in_output() {
    let redactor = Redactor::default();
    let mut session = session(Grant::AuthorizationCode);
    session.oauth = session.oauth.redacting(redactor.clone());
    let inner = &session.oauth.0;
    let is_masked = |token: &str| {
        let text = format!("{token} and refresh-{token}");
        !redactor.redact_known(&text).contains(token)
    };
    let stored = refreshable("loaded-token");
    inner.records().keep(&stored, Vec::new()).await.unwrap();
    assert!(!is_masked("loaded-token"));
    inner.loaded().await;
    assert!(is_masked("loaded-token"));
    inner.keep(refreshable("renewed-token")).await;
    assert!(is_masked("renewed-token"));
    assert!(inner.adopt_other(Some(refreshable("adopted-token")), 0));
    assert!(is_masked("adopted-token"));
}
