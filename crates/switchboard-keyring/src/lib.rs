//! System keyring, which holds one entry: the key that encrypts the logins.
//!
//! On Linux and BSD the Secret Service (GNOME Keyring, `KWallet`, `KeePassXC`) over D-Bus in pure Rust; on macOS the
//! Keychain; on Windows the Credential Manager. Every call has a deadline, because a broken desktop session never
//! answers.
//!
//! A crate of its own because of its build time: the code that D-Bus needs is generic, and would be compiled and optimized
//! as part of the host.

#[cfg_attr(all(unix, not(target_vendor = "apple")), path = "secret_service.rs")]
#[cfg_attr(not(all(unix, not(target_vendor = "apple"))), path = "native.rs")]
mod platform;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use tokio::time::timeout;

/// Label of the entry in keyring managers.
pub const LABEL: &str = "Switchboard logins";

/// Timeout of [`Keyring::probe`].
const PROBE: Duration = Duration::from_secs(3);
/// Timeout of other calls. The keyring may prompt the user for a password.
const ANSWER: Duration = Duration::from_secs(50);

/// Stores one secret: the key of the vault.
pub trait Keyring: fmt::Debug + Send + Sync + 'static {
    /// Returns the secret, if any.
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, KeyringError>>;

    /// Stores a secret and replaces the previous one.
    fn set<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<(), KeyringError>>;

    /// Checks that the keyring is usable without a prompt.
    fn probe(&self) -> BoxFuture<'_, Result<(), KeyringError>>;
}

/// Cause of a keyring failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// No keyring is available.
    #[error("none is available ({0})")]
    None(String),
    /// Locked, or the user dismissed the prompt.
    #[error("it is locked")]
    Locked,
    /// No answer within this time.
    #[error("it did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// Any other error of the keyring.
    #[error("{0}")]
    Refused(String),
}

/// Keyring of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemKeyring;

impl Keyring for SystemKeyring {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, KeyringError>> {
        Box::pin(within(ANSWER, platform::get()))
    }

    fn set<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<(), KeyringError>> {
        Box::pin(within(ANSWER, platform::set(secret.clone())))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), KeyringError>> {
        Box::pin(within(PROBE, platform::probe()))
    }
}

async fn within<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, KeyringError>>,
) -> Result<T, KeyringError> {
    let done = timeout(deadline, work).await;
    done.unwrap_or(Err(KeyringError::Silent(deadline)))
}
