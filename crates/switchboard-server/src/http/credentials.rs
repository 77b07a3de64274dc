//! Checks bearer tokens: those in files, and the named ones of a store.
//!
//! Both can change while the server runs. Files and store are read again when a token is presented and the last reading
//! is older than [`FRESH`]; what has vanished or expired ends the [`Lease`](super::grant::Lease)s that sessions and
//! streams hold. While there are such, [`Credentials::refresh`] is called regularly.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use switchboard_store::{Revision, StoreError, Timestamp};
use tokio::time::Instant;

use super::grant::{Grant, Lessor};
use super::named_tokens::{NamedTokens, ReadToken, TokenName};
use super::token::{Digest, Token, TokenError, is_same};
use crate::handler::Principal;

/// Time for which what was read is taken to be current.
const FRESH: Duration = Duration::from_millis(250);
/// A token's last use is recorded at most this often, in milliseconds.
const USE_INTERVAL: i64 = 60_000;

/// The tokens that a server accepts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TokenSources {
    /// Files with one token each, by the token's name.
    pub files: Vec<(TokenName, PathBuf)>,
    /// The tokens of a store.
    pub named: Option<NamedTokens>,
}

#[derive(Debug)]
pub(super) struct Credentials {
    files: Vec<TokenFile>,
    named: Option<StoreTokens>,
}

/// Why a presented token is not accepted.
#[derive(Debug)]
pub(super) enum TokenProblem {
    Unknown,
    Expired,
    /// Whether it is valid cannot be found out.
    Unchecked(StoreError),
}

/// A token that is accepted until it expires or vanishes.
#[derive(Debug)]
struct KnownToken {
    name: TokenName,
    digest: Digest,
    profile: Option<Arc<str>>,
    expires: Option<Timestamp>,
    /// The write that created it; `None` for one in a file.
    revision: Option<Revision>,
    lessor: Lessor,
    /// Milliseconds since the Unix epoch; 0 if not used since the server started.
    used: AtomicI64,
    recorded: AtomicI64,
}

#[derive(Debug)]
struct TokenFile {
    name: TokenName,
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    read: Option<Instant>,
    stamp: Option<(SystemTime, u64)>,
    token: Option<Arc<KnownToken>>,
}

#[derive(Debug)]
struct StoreTokens {
    tokens: NamedTokens,
    read: Mutex<Snapshot>,
    /// Held while the store is read, so that concurrent requests read it once.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Default)]
struct Snapshot {
    at: Option<Instant>,
    tokens: Arc<[Arc<KnownToken>]>,
}

impl Credentials {
    pub(super) fn new(sources: &TokenSources) -> Self {
        let files = sources.files.iter();
        Self {
            files: files
                .map(|(name, path)| TokenFile {
                    name: name.clone(),
                    path: path.clone(),
                    state: Mutex::default(),
                })
                .collect(),
            named: sources.named.clone().map(|tokens| StoreTokens {
                tokens,
                read: Mutex::default(),
                reading: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// The grant of a presented token.
    pub(super) async fn check(&self, presented: &[u8]) -> Result<Grant, TokenProblem> {
        let digest = Token::digest_of(presented);
        let files = self.files.iter();
        let mut of_files = files.filter_map(TokenFile::current);
        if let Some(token) = of_files.find(|token| is_same(&token.digest, &digest)) {
            return token.grant();
        }
        let Some(named) = &self.named else {
            return Err(TokenProblem::Unknown);
        };
        match named.find(&digest).await {
            Ok(Some(token)) => token.grant(),
            Ok(None) => Err(TokenProblem::Unknown),
            Err(error) => Err(TokenProblem::Unchecked(error)),
        }
    }

    /// Ends the leases of tokens that have expired, vanished or changed, and records which tokens were used.
    pub(super) async fn refresh(&self) {
        let in_files = self.files.iter().filter_map(TokenFile::current);
        let mut tokens: Vec<_> = in_files.collect();
        if let Some(named) = &self.named {
            let is_in_use = named
                .snapshot()
                .tokens
                .iter()
                .any(|token| token.is_in_use());
            if is_in_use && let Err(error) = named.read_since(None).await {
                tracing::warn!(%error, "cannot read the tokens; revoked ones are not noticed");
            }
            tokens.extend(named.snapshot().tokens.iter().cloned());
        }
        for token in &tokens {
            if token.has_expired() {
                token.lessor.end();
            }
        }
        if let Some(named) = &self.named {
            for token in tokens {
                named.record_use(&token).await;
            }
        }
    }
}

impl KnownToken {
    fn new(name: TokenName, digest: Digest) -> Self {
        Self {
            name,
            digest,
            profile: None,
            expires: None,
            revision: None,
            lessor: Lessor::new(),
            used: AtomicI64::new(0),
            recorded: AtomicI64::new(0),
        }
    }

    fn stored(
        ReadToken {
            name,
            revision,
            token,
        }: ReadToken,
    ) -> Self {
        Self {
            expires: token.expires(),
            profile: token.profile.map(Into::into),
            revision: Some(revision),
            ..Self::new(name, token.sha256)
        }
    }

    fn grant(&self) -> Result<Grant, TokenProblem> {
        if self.has_expired() {
            self.lessor.end();
            return Err(TokenProblem::Expired);
        }
        self.used.store(now().as_millis(), Ordering::Relaxed);
        Ok(Grant {
            profile: self.profile.clone(),
            lease: Some(self.lessor.lease()),
            ..Grant::new(Principal::Token(self.name.shared()))
        })
    }

    fn has_expired(&self) -> bool {
        self.expires.is_some_and(|end| end <= now())
    }

    fn is_in_use(&self) -> bool {
        self.lessor.is_in_use()
    }
}

impl TokenFile {
    /// The token in the file; `None` if it cannot be read.
    fn current(&self) -> Option<Arc<KnownToken>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.read.is_none_or(|read| read.elapsed() >= FRESH) {
            state.read = Some(Instant::now());
            let stamp = stamp(&self.path);
            if stamp.is_none() || stamp != state.stamp {
                state.stamp = stamp;
                let token = self.load(state.token.take());
                state.token = token;
            }
        }
        state.token.clone()
    }

    fn load(&self, before: Option<Arc<KnownToken>>) -> Option<Arc<KnownToken>> {
        let loaded = match Token::load(&self.path) {
            Ok(token) => Some(token),
            Err(TokenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                None
            }
            Err(error) => {
                tracing::warn!(%error, "the token in the file is not accepted");
                None
            }
        };
        match (before, loaded) {
            (Some(before), Some(token)) if is_same(&before.digest, token.digest()) => Some(before),
            (before, loaded) => {
                if let Some(before) = before {
                    before.lessor.end();
                }
                let token = loaded?;
                let known = KnownToken::new(self.name.clone(), *token.digest());
                Some(Arc::new(known))
            }
        }
    }
}

impl StoreTokens {
    async fn find(&self, digest: &Digest) -> Result<Option<Arc<KnownToken>>, StoreError> {
        let find = |tokens: &[Arc<KnownToken>]| {
            // Every candidate is compared, and each comparison takes the same time.
            let mut found = None;
            for token in tokens {
                if is_same(&token.digest, digest) {
                    found = Some(Arc::clone(token));
                }
            }
            found
        };
        let arrived = Instant::now();
        match find(&self.read_since(arrived.checked_sub(FRESH)).await?) {
            Some(token) => Ok(Some(token)),
            // It may have been created a moment ago.
            None => Ok(find(&self.read_since(Some(arrived)).await?)),
        }
    }

    /// The tokens, as they were at this time or later; as they are now if it is `None`.
    async fn read_since(
        &self,
        earliest: Option<Instant>,
    ) -> Result<Arc<[Arc<KnownToken>]>, StoreError> {
        let earliest = earliest.unwrap_or_else(Instant::now);
        let current = |snapshot: Snapshot| {
            let is_current = snapshot.at.is_some_and(|at| at >= earliest);
            is_current.then_some(snapshot.tokens)
        };
        if let Some(tokens) = current(self.snapshot()) {
            return Ok(tokens);
        }
        let _reading = self.reading.lock().await;
        if let Some(tokens) = current(self.snapshot()) {
            return Ok(tokens);
        }
        let at = Instant::now();
        let read = self.tokens.read().await?;
        let before = self.snapshot().tokens;
        let same = |read: &ReadToken| {
            let same = |token: &&Arc<KnownToken>| {
                token.revision == Some(read.revision) && token.name == read.name
            };
            before.iter().find(same).map(Arc::clone)
        };
        let tokens: Arc<[_]> = read
            .into_iter()
            .map(|read| same(&read).unwrap_or_else(|| Arc::new(KnownToken::stored(read))))
            .collect();
        for token in before.iter() {
            if !tokens.iter().any(|other| Arc::ptr_eq(other, token)) {
                token.lessor.end();
            }
        }
        let mut snapshot = self.lock();
        snapshot.at = Some(at);
        snapshot.tokens = Arc::clone(&tokens);
        Ok(tokens)
    }

    async fn record_use(&self, token: &KnownToken) {
        let used = token.used.load(Ordering::Relaxed);
        let recorded = token.recorded.load(Ordering::Relaxed);
        if used <= recorded || used - recorded < USE_INTERVAL {
            return;
        }
        token.recorded.store(used, Ordering::Relaxed);
        if let Err(error) = self.tokens.record_use(&token.name).await {
            tracing::debug!(%error, "cannot record the use of a token");
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes when the file does.
fn stamp(path: &std::path::Path) -> Option<(SystemTime, u64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

fn now() -> Timestamp {
    SystemTime::now().into()
}
