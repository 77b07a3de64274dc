//! Keychain (macOS) and Credential Manager (Windows).
//!
//! The calls block, so they run on the blocking thread pool. A call that never returns occupies its thread until the
//! process exits; the caller times out.

use keyring::{Entry, Error};
use switchboard_config::secret::Secret;

use super::{KeyringError, LABEL};

/// Account name of the entry.
const USER: &str = "switchboard";

pub(super) async fn get() -> Result<Option<Secret>, KeyringError> {
    blocking(|entry| match entry.get_password() {
        Ok(secret) => Ok(Some(Secret::new(secret))),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    })
    .await
}

pub(super) async fn set(secret: Secret) -> Result<(), KeyringError> {
    blocking(move |entry| entry.set_password(secret.expose())).await
}

pub(super) async fn probe() -> Result<(), KeyringError> {
    blocking(|_| Ok(())).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
) -> Result<T, KeyringError> {
    let done = tokio::task::spawn_blocking(move || work(Entry::new(LABEL, USER)?)).await;
    let done =
        done.map_err(|_| KeyringError::Refused("the program is shutting down".to_owned()))?;
    done.map_err(|error| match error {
        Error::NoStorageAccess(_) => KeyringError::Locked,
        Error::NoDefaultStore => KeyringError::None("it cannot be opened".to_owned()),
        error => KeyringError::Refused(error.to_string()),
    })
}
