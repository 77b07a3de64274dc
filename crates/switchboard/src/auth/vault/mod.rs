//! Where secrets are kept between runs, and the lock that lets one process at a time renew them.
//!
//! Owns storage alone: what the bytes mean is the business of whoever put them there. A vault never writes a secret in
//! the clear to a place that other users, a backup or a log may see.
//!
//! | where | what |
//! |---|---|
//! | [`sealed`] | the vault that lasts: sealed files whose key is in the keyring of the system, or in a file |
//! | [`keyring`] | the keyring of the system |
//! | `seal` | a secret that only the holder of a key can read, and nobody can change or swap |
//! | `folder` | files that belong to one user alone |
//! | `lock` | one process at a time |

mod folder;
pub(crate) mod keyring;
mod lock;
mod seal;
pub(crate) mod sealed;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use tokio::sync::OwnedMutexGuard;

use crate::digest::Digest;

/// Keeps secrets.
pub trait Vault: fmt::Debug + Send + Sync + 'static {
    /// The secret of that name, if there is one.
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>>;

    /// Keeps a secret in place of what was there.
    fn put<'a>(
        &'a self,
        key: &'a VaultKey,
        secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>>;

    /// Drops a secret; whether there was one.
    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>>;

    /// Waits until nobody else, in this or another process, holds the lock of that name.
    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>>;
}

/// The name of a secret: a digest of what it belongs to, so that the name itself tells nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VaultKey(String);

impl VaultKey {
    /// The key of anything that identifies a secret, such as an issuer and a resource.
    pub fn of(parts: &[&str]) -> Self {
        let parts = parts.iter().map(|part| part.as_bytes());
        Self(Digest::of(parts).to_hex())
    }

    /// The key as text: 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A lock that is held until it is dropped.
pub struct VaultLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send>);

impl VaultLock {
    /// Holds the lock for as long as the value lives.
    pub fn holding(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for VaultLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("VaultLock")
    }
}

/// Why a vault could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store of logins {doing}: {problem}")]
#[non_exhaustive]
pub struct VaultError {
    /// What was tried, such as "could not be read".
    pub doing: &'static str,
    /// What went wrong. It never holds a secret.
    pub problem: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether what was kept is lost, and keeping something anew is the way out.
    pub is_lost: bool,
}

impl VaultError {
    /// What was tried, and what went wrong.
    pub fn new(doing: &'static str, problem: impl fmt::Display) -> Self {
        Self {
            doing,
            problem: problem.to_string(),
            hint: None,
            is_lost: false,
        }
    }

    /// The same error, where what was kept is lost.
    #[must_use]
    pub(crate) fn lost(mut self) -> Self {
        self.is_lost = true;
        self
    }

    /// The same error, with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Keeps secrets for as long as the process lives.
#[derive(Debug, Default)]
pub struct MemoryVault {
    secrets: Mutex<HashMap<VaultKey, Secret>>,
    locks: Mutex<HashMap<VaultKey, Arc<tokio::sync::Mutex<()>>>>,
}

impl Vault for MemoryVault {
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
        Box::pin(async move { Ok(held(&self.secrets).get(key).cloned()) })
    }

    fn put<'a>(
        &'a self,
        key: &'a VaultKey,
        secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move {
            held(&self.secrets).insert(key.clone(), secret.clone());
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        Box::pin(async move { Ok(held(&self.secrets).remove(key).is_some()) })
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        Box::pin(async move {
            let lock = Arc::clone(held(&self.locks).entry(key.clone()).or_default());
            let guard: OwnedMutexGuard<()> = lock.lock_owned().await;
            Ok(VaultLock::holding(guard))
        })
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
