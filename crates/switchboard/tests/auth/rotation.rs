//! Tests of token refresh: ahead of expiry, by one of many clients at a time, and without losing tokens to network
//! errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, ready};
use switchboard::internal::auth::vault::{MemoryVault, Vault, VaultError, VaultKey, VaultLock};
use switchboard::internal::auth::{AuthSettings, OAuth, Renewals, Verdict};
use switchboard_config::secret::Secret;
use switchboard_store::{Clock, SystemClock, Timestamp};

use crate::world::World;
use crate::{authorization, credentials, refused, unauthorized};

/// The number of refresh requests.
fn refreshes(world: &World) -> usize {
    let seen = world.seen("auth POST /token").into_iter();
    seen.filter(|seen| seen.form["grant_type"] == "refresh_token")
        .count()
}

#[tokio::test]
async fn of_many_who_share_a_login_one_renews_it() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    // Each has its own cache, as processes have; they share only the vault and its lock.
    let many: Vec<OAuth> = (0..16)
        .map(|_| world.oauth(&world.server(AuthSettings::default())))
        .collect();
    let shown = join_all(many.iter().map(|oauth| credentials(&world, oauth))).await;
    world.expire();
    let verdicts = many.iter().zip(&shown).flat_map(|(oauth, shown)| {
        // Several requests of each are refused at the same time.
        (0..4).map(|_| unauthorized(&world, oauth, shown))
    });
    let verdicts = join_all(verdicts).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Again));
    assert_eq!(refreshes(&world), 1);
    let renewed = join_all(many.iter().map(|oauth| credentials(&world, oauth))).await;
    for shown in &renewed {
        assert_eq!(authorization(shown), Some("Bearer access-5"));
    }
    // The next round works as well: no refresh token was used twice.
    world.expire();
    let verdict = unauthorized(&world, &many[3], &renewed[3]).await;
    assert_eq!((verdict, refreshes(&world)), (Verdict::Again, 2));
}

#[tokio::test]
async fn a_renewal_that_nobody_waits_for_is_kept_all_the_same() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    world.expire();
    {
        let renewal = unauthorized(&world, &oauth, &shown);
        assert!(renewal.now_or_never().is_none(), "it takes longer");
    }
    // The next caller waits for the refresh in progress, and uses its tokens.
    assert_eq!(unauthorized(&world, &oauth, &shown).await, Verdict::Again);
    assert_eq!(refreshes(&world), 1);
}

#[tokio::test]
async fn a_network_that_fails_loses_no_login() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    world.expire();
    for status in [500, 503, 429] {
        let failure = (status, None, "no".to_owned());
        world.script().instead.insert("/token".to_owned(), failure);
        let verdict = unauthorized(&world, &oauth, &shown).await;
        assert!(matches!(verdict, Verdict::Unavailable(_)), "{verdict:?}");
    }
    world.script().instead.clear();
    let verdict = unauthorized(&world, &oauth, &shown).await;
    assert_eq!(verdict, Verdict::Again);
}

#[tokio::test]
async fn a_refresh_token_that_is_refused_is_not_sent_again() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    world.expire();
    let body = r#"{"error":"invalid_grant"}"#.to_owned();
    let refusal = (400, None, body);
    world.script().instead.insert("/token".to_owned(), refusal);
    for _ in 0..3 {
        let shown = credentials(&world, &oauth).await;
        let verdict = unauthorized(&world, &oauth, &shown).await;
        assert_eq!(verdict, Verdict::NeedsPerson);
    }
    assert_eq!(refreshes(&world), 1);
    // One login reconnects all hosts.
    world.script().instead.clear();
    world.log_in(&server).await.unwrap();
    let verdict = unauthorized(&world, &oauth, &shown).await;
    assert_eq!(verdict, Verdict::Again);
}

#[tokio::test]
async fn a_refresh_token_is_kept_if_the_refusal_is_not_about_it() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    world.expire();
    let refusal = (401, None, r#"{"error":"invalid_client"}"#.to_owned());
    world.script().instead.insert("/token".to_owned(), refusal);
    let verdict = unauthorized(&world, &oauth, &shown).await;
    assert_eq!(verdict, Verdict::NeedsPerson);
    // The authorization server accepts the client again.
    world.script().instead.clear();
    let verdict = unauthorized(&world, &oauth, &shown).await;
    assert_eq!((verdict, refreshes(&world)), (Verdict::Again, 2));
    let shown = credentials(&world, &oauth).await;
    assert_eq!(authorization(&shown), Some("Bearer access-5"));
}

#[tokio::test]
async fn a_token_that_is_refused_right_away_is_not_renewed_for_ever() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let mut attempts = 0;
    let verdict = loop {
        let shown = credentials(&world, &oauth).await;
        match refused(&world, &oauth, &shown, 401, "Bearer", attempts).await {
            Verdict::Again => attempts += 1,
            verdict => break verdict,
        }
    };
    assert_eq!((verdict, attempts), (Verdict::NeedsPerson, 2));
}

#[tokio::test]
async fn what_is_kept_and_cannot_be_read_is_no_login() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    let key = VaultKey::of(&["server", world.resource.as_str(), ""]);
    world
        .vault
        .put(&key, &"not what it was".into())
        .await
        .unwrap();
    let shown = credentials(&world, &world.oauth(&server)).await;
    assert_eq!(authorization(&shown), None);
    world.log_in(&server).await.unwrap();
    let shown = credentials(&world, &world.oauth(&server)).await;
    assert_eq!(authorization(&shown), Some("Bearer access-3"));
}

/// A read-only vault.
#[derive(Debug)]
struct Full(Arc<MemoryVault>);

impl Vault for Full {
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
        self.0.get(key)
    }

    fn put<'a>(
        &'a self,
        _key: &'a VaultKey,
        _secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(ready(Err(VaultError::new(
            "could not be written",
            "no space",
        ))))
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        self.0.lock(key)
    }
}

#[tokio::test]
async fn tokens_that_cannot_be_kept_are_used_and_what_they_replaced_is_not_sent_again() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let vault = Arc::new(Full(Arc::clone(&world.vault)));
    let oauth = OAuth::new(server.clone(), world.fetcher(), vault);
    for expected in ["Bearer access-5", "Bearer access-7", "Bearer access-9"] {
        let shown = credentials(&world, &oauth).await;
        world.expire();
        let verdict = unauthorized(&world, &oauth, &shown).await;
        assert_eq!(verdict, Verdict::Again);
        let shown = credentials(&world, &oauth).await;
        assert_eq!(authorization(&shown), Some(expected));
    }
    // A login by another process is used all the same.
    world.log_in(&server).await.unwrap();
    let shown = credentials(&world, &oauth).await;
    let verdict = unauthorized(&world, &oauth, &shown).await;
    assert_eq!((verdict, refreshes(&world)), (Verdict::Again, 3));
}

/// A clock stopped at a number of seconds after its creation.
#[derive(Debug)]
pub(crate) struct Later {
    made: Timestamp,
    seconds: AtomicU64,
}

impl Later {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            made: SystemClock.now(),
            seconds: AtomicU64::new(0),
        })
    }

    pub(crate) fn set(&self, seconds: u64) {
        self.seconds.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for Later {
    fn now(&self) -> Timestamp {
        let more = Duration::from_secs(self.seconds.load(Ordering::SeqCst));
        self.made.after(more)
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    // The lifetime in seconds; a time before the refresh; the time of the refresh.
    for (lifetime, good, due) in [(3600, Some(3000), 3541), (100, Some(50), 91), (0, None, 0)] {
        let world = World::start().await;
        world.script().expires_in = Some(lifetime);
        let server = world.server(AuthSettings::default());
        world.log_in(&server).await.unwrap();
        world.script().expires_in = Some(100_000);
        let clock = Later::new();
        let oauth = OAuth::with_clock(
            server,
            world.fetcher(),
            world.vault(),
            Arc::clone(&clock) as Arc<dyn Clock>,
        );
        if let Some(good) = good {
            clock.set(good);
            let shown = credentials(&world, &oauth).await;
            assert_eq!(authorization(&shown), Some("Bearer access-3"));
            assert_eq!(refreshes(&world), 0);
        }
        clock.set(due);
        let shown = credentials(&world, &oauth).await;
        assert_eq!(authorization(&shown), Some("Bearer access-5"));
        assert_eq!(refreshes(&world), 1);
    }
}

#[tokio::test]
async fn the_lifetime_of_a_refreshed_token_counts_from_its_refresh() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    world.script().expires_in = Some(100);
    let clock = Later::new();
    let oauth = OAuth::with_clock(
        server,
        world.fetcher(),
        world.vault(),
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    // Refreshed at 3550 s for 100 s, so due again at 3640 s.
    for (seconds, expected) in [(3550, 1), (3639, 1), (3640, 2)] {
        clock.set(seconds);
        credentials(&world, &oauth).await;
        assert_eq!(refreshes(&world), expected, "at {seconds} s");
    }
}

#[tokio::test]
async fn a_renewal_ahead_of_time_that_fails_leaves_the_token_and_the_server_alone_for_a_while() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let clock = Later::new();
    let oauth = OAuth::with_clock(
        server,
        world.fetcher(),
        world.vault(),
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    let failure = (503, None, String::new());
    world.script().instead.insert("/token".to_owned(), failure);
    clock.set(3550);
    for _ in 0..3 {
        let shown = credentials(&world, &oauth).await;
        assert_eq!(authorization(&shown), Some("Bearer access-3"));
    }
    assert_eq!(refreshes(&world), 1);
    clock.set(3565);
    world.script().instead.clear();
    let shown = credentials(&world, &oauth).await;
    assert_eq!(authorization(&shown), Some("Bearer access-5"));
}

#[tokio::test]
async fn every_attempt_at_new_tokens_is_told() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let oauth = world.oauth(&server).telling(Renewals::heard_by({
        let told = Arc::clone(&told);
        move |succeeded| told.lock().unwrap().push(succeeded)
    }));
    let shown = credentials(&world, &oauth).await;
    assert!(told.lock().unwrap().is_empty());
    world.expire();
    assert_eq!(unauthorized(&world, &oauth, &shown).await, Verdict::Again);
    assert_eq!(*told.lock().unwrap(), [true]);
    let refusal = (400, None, r#"{"error":"invalid_grant"}"#.to_owned());
    world.script().instead.insert("/token".to_owned(), refusal);
    world.expire();
    // Further requests do not report it again.
    for _ in 0..3 {
        let shown = credentials(&world, &oauth).await;
        unauthorized(&world, &oauth, &shown).await;
    }
    assert_eq!(*told.lock().unwrap(), [true, false]);
}
