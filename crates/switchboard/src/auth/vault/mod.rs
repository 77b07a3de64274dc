//! Secret storage that outlives the process, and the cross-process lock for refreshing tokens.
//!
//! Handles storage only; callers interpret the bytes. A vault never writes plain-text secrets where other users,
//! backups or logs could see them.
//!
//! | where | what |
//! |---|---|
//! | [`sealed`] | persistent vault: encrypted files, with the key in the system keyring or in a file |
//! | `seal` | authenticated encryption of a secret, bound to its name |
//! | `folder` | files that only the current user can access |
//! | `lock` | cross-process file lock |

mod folder;
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

/// Stores secrets by key.
pub trait Vault: fmt::Debug + Send + Sync + 'static {
    /// Returns the secret, if any.
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>>;

    /// Stores a secret and replaces the previous one.
    fn put<'a>(
        &'a self,
        key: &'a VaultKey,
        secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>>;

    /// Deletes a secret; returns whether it existed.
    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>>;

    /// Waits for the named lock, which excludes other tasks and other processes.
    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>>;
}

/// Key of a secret: a digest, so that the key reveals nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VaultKey(String);

impl VaultKey {
    /// Derives the key from identifying parts, such as an issuer and a resource.
    pub fn of(parts: &[&str]) -> Self {
        let parts = parts.iter().map(|part| part.as_bytes());
        Self(Digest::of(parts).to_hex())
    }

    /// Key as 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Holds a vault lock until dropped.
pub struct VaultLock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send>);

impl VaultLock {
    /// Wraps a guard whose drop releases the lock.
    pub fn holding(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for VaultLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("VaultLock")
    }
}

/// Error of a vault operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the login store {doing}: {problem}")]
#[non_exhaustive]
pub struct VaultError {
    /// Predicate for the failed operation, such as "could not be read".
    pub doing: &'static str,
    /// Cause. Never contains a secret.
    pub problem: String,
    /// Remedy, if one is known.
    pub hint: Option<String>,
    /// The stored secret is unrecoverable; storing a new one is the remedy.
    pub is_lost: bool,
}

impl VaultError {
    /// Creates an error without a hint.
    pub fn new(doing: &'static str, problem: impl fmt::Display) -> Self {
        Self {
            doing,
            problem: problem.to_string(),
            hint: None,
            is_lost: false,
        }
    }

    /// Marks the stored secret as unrecoverable.
    #[must_use]
    pub(crate) fn lost(mut self) -> Self {
        self.is_lost = true;
        self
    }

    /// Adds a remedy for the user.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Vault in memory; lost when the process exits.
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
