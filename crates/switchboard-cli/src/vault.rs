//! The vault of logins, which tells the user once when a login cannot be read.
//!
//! Owns the warning alone: without it a login that is there and cannot be read would look like none at all.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use switchboard::auth::vault::{Vault, VaultError, VaultKey, VaultLock};
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;

use crate::printer::Printer;

/// Whether the user was told. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct VaultWarning(Arc<AtomicBool>);

impl VaultWarning {
    /// Warns, once, that a login cannot be read.
    pub(crate) fn tell(&self, error: &VaultError, printer: &Printer) {
        if !self.0.swap(true, Ordering::Relaxed) {
            printer.warning(visible(&error.to_string()), error.hint.as_deref());
        }
    }
}

/// A vault that warns when a secret cannot be read.
pub(crate) struct WarningVault {
    vault: Arc<dyn Vault>,
    warning: VaultWarning,
    printer: Printer,
}

impl WarningVault {
    pub(crate) fn new(vault: Arc<dyn Vault>, warning: VaultWarning, printer: Printer) -> Self {
        Self {
            vault,
            warning,
            printer,
        }
    }
}

impl fmt::Debug for WarningVault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.vault.fmt(formatter)
    }
}

impl Vault for WarningVault {
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
        Box::pin(async move {
            let got = self.vault.get(key).await;
            if let Err(error) = &got {
                self.warning.tell(error, &self.printer);
            }
            got
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a VaultKey,
        secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>> {
        self.vault.put(key, secret)
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        self.vault.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        self.vault.lock(key)
    }
}
