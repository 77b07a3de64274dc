//! Where the key of the logins is kept: in the keyring of the system where there is one that works, else in a file.
//!
//! Owns the decision. It is made when a secret is first asked for, so that a program that needs no login never speaks
//! with the keyring.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use switchboard_config::settings::LoginStore;
use tokio::sync::OnceCell;

use super::keyring::{Keyring, SystemKeyring};
use super::sealed::SealedVault;
use super::{Vault, VaultError, VaultKey, VaultLock};

/// A vault that is chosen when it is first needed.
#[derive(Debug)]
pub struct ChosenVault {
    store: LoginStore,
    folder: PathBuf,
    keyring: Arc<dyn Keyring>,
    chosen: OnceCell<SealedVault>,
}

/// The vault in that folder, by what the configuration wants. Nothing is looked at before it is used.
pub fn choose(store: LoginStore, folder: impl Into<PathBuf>) -> ChosenVault {
    choose_with(store, folder, Arc::new(SystemKeyring))
}

/// The same with another keyring than the system's.
pub fn choose_with(
    store: LoginStore,
    folder: impl Into<PathBuf>,
    keyring: Arc<dyn Keyring>,
) -> ChosenVault {
    ChosenVault {
        store,
        folder: folder.into(),
        keyring,
        chosen: OnceCell::new(),
    }
}

impl ChosenVault {
    async fn chosen(&self) -> &SealedVault {
        self.chosen
            .get_or_init(async || {
                let uses_keyring = match self.store {
                    LoginStore::Keyring => true,
                    LoginStore::File => false,
                    LoginStore::Auto => match self.keyring.probe().await {
                        Ok(()) => true,
                        Err(error) => {
                            tracing::info!(%error, "the keyring is not used for logins");
                            false
                        }
                    },
                };
                if uses_keyring {
                    SealedVault::with_keyring(&self.folder, Arc::clone(&self.keyring))
                } else {
                    SealedVault::with_key_file(&self.folder)
                }
            })
            .await
    }
}

impl Vault for ChosenVault {
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
        Box::pin(async move { self.chosen().await.get(key).await })
    }

    fn put<'a>(
        &'a self,
        key: &'a VaultKey,
        secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move { self.chosen().await.put(key, secret).await })
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        Box::pin(async move { self.chosen().await.remove(key).await })
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        Box::pin(async move { self.chosen().await.lock(key).await })
    }
}
