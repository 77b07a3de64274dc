//! The gateway as an OAuth resource server: accepts access tokens (JWT) of one authorization server, and tells clients
//! where to get them (RFC 9728).
//!
//! | where | what |
//! |---|---|
//! | this file | checking a token with the current keys, the metadata document |
//! | `jwt` | the form of a token, its signature and its claims |
//! | `keys` | the keys of the authorization server |

mod jwt;
mod keys;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::header::HeaderValue;
use serde_json::json;
use switchboard::internal::auth::{Fetcher, signing_keys};
use switchboard_config::text::visible;
use tokio::time::Instant;
use url::Url;

use super::grant::Grant;
use super::token::{Digest, Token};
use crate::handler::Principal;
use jwt::{Expected, JsonWebToken};
use keys::KeySet;

/// Path of the metadata of all resources of an origin.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Keys are fetched again after this time.
const FRESH: Duration = Duration::from_secs(600);
/// If they cannot be fetched, they are used for this long.
const USABLE: Duration = Duration::from_secs(3600);
/// Shortest interval between two fetches after a failure or for an unknown key: a token must not make the server fetch
/// for each request.
const PAUSE: Duration = Duration::from_secs(10);
/// Number of checked tokens to remember, so that their signatures are not checked for each request.
const MAX_CHECKED: usize = 1024;

/// Accepts the access tokens of an authorization server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OAuthOptions {
    /// The identifier of the authorization server, which its tokens and its metadata name.
    pub issuer: String,
    /// The identifier of this server, which tokens must be for: the URL of its endpoint as clients know it.
    pub audience: Url,
    /// Fetches the metadata and the keys of the authorization server.
    pub fetcher: Fetcher,
}

impl OAuthOptions {
    /// Accepts tokens of this issuer for this audience.
    pub fn new(issuer: String, audience: Url, fetcher: Fetcher) -> Self {
        Self {
            issuer,
            audience,
            fetcher,
        }
    }
}

#[derive(Debug)]
pub(super) struct ResourceServer {
    options: OAuthOptions,
    metadata: Bytes,
    /// The paths at which the metadata is.
    paths: [String; 2],
    /// The parameter of challenges that leads to the metadata.
    parameter: String,
    keys: Mutex<KnownKeys>,
    /// Held while keys are fetched, so that concurrent requests fetch once.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct KnownKeys {
    keys: Arc<KeySet>,
    fetched: Option<Instant>,
    /// When fetching failed.
    failed: Option<Instant>,
    /// When newer ones were fetched for a token with an unknown key.
    renewed: Option<Instant>,
    /// Tokens that these keys have signed, with their subject and expiry in seconds since the Unix epoch.
    checked: HashMap<Digest, (Arc<str>, u64)>,
}

/// Why an access token is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AccessTokenProblem {
    /// The reason, for the client that has presented it.
    Invalid(&'static str),
    Expired,
    /// The keys of the authorization server cannot be fetched.
    Unchecked,
}

impl ResourceServer {
    pub(super) fn new(options: &OAuthOptions) -> Self {
        let audience = &options.audience;
        let path = audience.path().trim_end_matches('/');
        let mut place = audience.clone();
        place.set_path(&format!("{WELL_KNOWN}{path}"));
        place.set_query(None);
        place.set_fragment(None);
        let metadata = json!({
            "resource": identifier(audience),
            "authorization_servers": [options.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Switchboard",
        });
        Self {
            options: options.clone(),
            metadata: metadata.to_string().into(),
            paths: [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}{path}")],
            parameter: format!(", resource_metadata=\"{place}\""),
            keys: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// The metadata document, if it is at this path.
    pub(super) fn metadata_at(&self, path: &str) -> Option<Bytes> {
        let is_here = self.paths.iter().any(|place| place == path);
        is_here.then(|| self.metadata.clone())
    }

    /// Adds where the metadata is to the challenge of a 401.
    pub(super) fn extend(&self, challenge: &HeaderValue) -> Option<HeaderValue> {
        let text = format!("{}{}", challenge.to_str().ok()?, self.parameter);
        HeaderValue::from_str(&text).ok()
    }

    /// The grant of a presented access token.
    pub(super) async fn check(&self, presented: &[u8]) -> Result<Grant, AccessTokenProblem> {
        let digest = Token::digest_of(presented);
        let now = now();
        if let Some((subject, expires)) = self.lock().checked.get(&digest) {
            return granted(Arc::clone(subject), *expires, now);
        }
        let token = JsonWebToken::parse(presented).map_err(AccessTokenProblem::Invalid)?;
        let audience = identifier(&self.options.audience);
        let expected = Expected {
            issuer: &self.options.issuer,
            audience: &audience,
            now,
        };
        // Claims first: fetching keys is the most expensive part.
        let claims = token.claims(&expected)?;
        let mut keys = self.current_keys().await?;
        if !keys.has(&token.header) {
            // The authorization server may have a new key.
            keys = self.newer_keys(&keys).await?;
        }
        let is_signed = keys
            .candidates(&token.header)
            .any(|key| token.is_signed_by(key));
        if !is_signed {
            return Err(AccessTokenProblem::Invalid("the signature is not valid"));
        }
        let mut known = self.lock();
        if Arc::ptr_eq(&known.keys, &keys) {
            if known.checked.len() >= MAX_CHECKED {
                known.checked.retain(|_, (_, expires)| *expires > now);
            }
            if known.checked.len() < MAX_CHECKED {
                let checked = (Arc::clone(&claims.subject), claims.expires);
                known.checked.insert(digest, checked);
            }
        }
        drop(known);
        granted(claims.subject, claims.expires, now)
    }

    async fn current_keys(&self) -> Result<Arc<KeySet>, AccessTokenProblem> {
        let fresh = |known: &KnownKeys| {
            let is_fresh = known.fetched.is_some_and(|at| at.elapsed() < FRESH);
            is_fresh.then(|| Arc::clone(&known.keys))
        };
        if let Some(keys) = fresh(&self.lock()) {
            return Ok(keys);
        }
        let _fetching = self.fetching.lock().await;
        if let Some(keys) = fresh(&self.lock()) {
            return Ok(keys);
        }
        self.fetch().await;
        let known = self.lock();
        let is_usable = known.fetched.is_some_and(|at| at.elapsed() < USABLE);
        if is_usable {
            Ok(Arc::clone(&known.keys))
        } else {
            Err(AccessTokenProblem::Unchecked)
        }
    }

    /// Keys newer than these, if they can be fetched now.
    async fn newer_keys(&self, old: &Arc<KeySet>) -> Result<Arc<KeySet>, AccessTokenProblem> {
        let _fetching = self.fetching.lock().await;
        let may_fetch = {
            let mut known = self.lock();
            let is_old = Arc::ptr_eq(&known.keys, old);
            let may_fetch = is_old && known.renewed.is_none_or(|at| at.elapsed() >= PAUSE);
            if may_fetch {
                known.renewed = Some(Instant::now());
            }
            may_fetch
        };
        if may_fetch {
            self.fetch().await;
        }
        Ok(Arc::clone(&self.lock().keys))
    }

    /// Fetches the keys, unless that has failed a moment ago.
    async fn fetch(&self) {
        if self.lock().failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        let OAuthOptions {
            issuer, fetcher, ..
        } = &self.options;
        let fetched = signing_keys(fetcher, issuer).await;
        let parsed = fetched
            .map_err(|error| error.to_string())
            .and_then(|document| KeySet::parse(document.get()));
        match parsed {
            Ok(keys) => {
                let mut known = self.lock();
                known.fetched = Some(Instant::now());
                known.keys = Arc::new(keys);
                known.checked.clear();
            }
            Err(error) => {
                self.lock().failed = Some(Instant::now());
                let issuer = visible(issuer);
                tracing::warn!(%issuer, error = %visible(&error), "cannot fetch the signing keys");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn granted(subject: Arc<str>, expires: u64, now: u64) -> Result<Grant, AccessTokenProblem> {
    if expires <= now {
        return Err(AccessTokenProblem::Expired);
    }
    Ok(Grant {
        expires: Some(Instant::now() + Duration::from_secs(expires - now)),
        ..Grant::new(Principal::Subject(subject))
    })
}

/// The audience as tokens name it: a URL without the slash that stands for an empty path.
fn identifier(audience: &Url) -> String {
    let text = audience.as_str();
    match audience.path() {
        "/" if audience.query().is_none() => text.trim_end_matches('/').to_owned(),
        _ => text.to_owned(),
    }
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
