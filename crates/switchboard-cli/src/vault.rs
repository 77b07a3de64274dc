//! Wraps the login vault to warn the user, once, if a login cannot be read.
//!
//! Without the warning, an unreadable login would look like a missing one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use switchboard::internal::auth::vault::{Vault, VaultError, VaultKey, VaultLock};
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;

use crate::printer::Printer;

/// Whether the warning has been printed. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct VaultWarning(Arc<AtomicBool>);

impl VaultWarning {
    /// Warns, once, that a login cannot be read.
    pub(crate) fn warn(&self, error: &VaultError, printer: &Printer) {
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
                self.warning.warn(error, &self.printer);
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
