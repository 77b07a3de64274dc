//! The keyring of the system, which holds one entry of ours: the key that logins are sealed with.
//!
//! On Linux and its kin that is the Secret Service of the desktop (GNOME Keyring, `KWallet`, `KeePassXC`), spoken to over
//! D-Bus in plain Rust; on macOS the Keychain, on Windows the Credential Manager. Every question has a deadline, because
//! a desktop that is half gone answers nothing.

#[cfg_attr(all(unix, not(target_vendor = "apple")), path = "secret_service.rs")]
#[cfg_attr(not(all(unix, not(target_vendor = "apple"))), path = "native.rs")]
mod platform;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use tokio::time::timeout;

/// What the entry is called where people look at their keyring.
pub(crate) const LABEL: &str = "Switchboard logins";

/// How long a keyring may take to show that it is there.
const PROBE: Duration = Duration::from_secs(3);
/// How long it may take to answer. It may have to ask the user for a password first.
const ANSWER: Duration = Duration::from_secs(50);

/// Keeps one secret.
pub trait Keyring: fmt::Debug + Send + Sync + 'static {
    /// The secret, if there is one.
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, KeyringError>>;

    /// Keeps a secret in place of what was there.
    fn set<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<(), KeyringError>>;

    /// Whether it can be used as it is, without asking the user anything.
    fn probe(&self) -> BoxFuture<'_, Result<(), KeyringError>>;
}

/// Why a keyring could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyringError {
    /// There is none.
    #[error("there is none ({0})")]
    None(String),
    /// It is locked.
    #[error("it is locked")]
    Locked,
    /// It did not answer in time.
    #[error("it gave no answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// It refused.
    #[error("{0}")]
    Refused(String),
}

/// The keyring of this system.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemKeyring;

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
