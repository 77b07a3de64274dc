//! Persistent vault: one encrypted file per secret, in a private folder.
//!
//! The key is in the system keyring or, without a usable one, in a file next to the secrets. A key file protects a
//! stray copy of a secret; a backup of the whole folder includes the key and is protected only by file modes. The
//! keyring holds the key rather than the secrets because keyrings limit the entry size (2,560 bytes on Windows; tokens
//! are longer), prompt for each entry (macOS) and cannot update several entries atomically. Each file records where its
//! key is, so a login stored without a keyring stays readable later.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::secret::Secret;
use switchboard_config::settings::LoginStore;
use switchboard_keyring::{Keyring, SystemKeyring};
use tokio::sync::OnceCell;

use super::folder::{FileError, FileProblem, PrivateFolder};
use super::seal::{self, KeyPlace, SealKey};
use super::{Vault, VaultError, VaultKey, VaultLock, lock};

/// Timeout for a lock. Its holder refreshes a login; waiters have a deadline of one minute.
const LOCK_PATIENCE: Duration = Duration::from_secs(50);
/// Maximum size of a secret file.
const MAXIMUM_BYTES: u64 = 1 << 20;
/// File with the key.
const KEY_FILE: &str = "key";
/// Lock held while a key is created.
const KEY_LOCK: &str = "key.lock";

const READ: &str = "could not be read";
const WRITTEN: &str = "could not be written";
const LOCKED: &str = "could not be locked";

/// Stores secrets in encrypted files.
///
/// The place of the key for new secrets is chosen on the first write, and the keyring is not accessed earlier: a
/// process that needs no login never accesses it.
pub struct SealedVault {
    folder: PathBuf,
    store: LoginStore,
    keyring: Arc<dyn Keyring>,
    /// Where the key for new secrets is stored.
    place: OnceCell<KeyPlace>,
    /// Cached key from the keyring: reading it may prompt the user.
    keyring_key: OnceCell<SealKey>,
    patience: Duration,
}

impl Vault for SealedVault {
    fn get<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<Option<Secret>, VaultError>> {
        Box::pin(self.read(key))
    }

    fn put<'a>(
        &'a self,
        key: &'a VaultKey,
        secret: &'a Secret,
    ) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(self.write(key, secret))
    }

    fn remove<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<bool, VaultError>> {
        Box::pin(async move {
            let file = file_of(key);
            let remove = move |folder: &PrivateFolder| folder.remove(&file);
            let removed = self.with_folder(WRITTEN, remove).await?;
            Ok(removed.unwrap_or_default())
        })
    }

    fn lock<'a>(&'a self, key: &'a VaultKey) -> BoxFuture<'a, Result<VaultLock, VaultError>> {
        Box::pin(self.lock_file(format!("{}.lock", key.as_str())))
    }
}

impl SealedVault {
    /// Creates a vault with the system keyring. The folder is created on the first write.
    pub fn new(folder: impl Into<PathBuf>, store: LoginStore) -> Self {
        Self {
            folder: folder.into(),
            store,
            keyring: Arc::new(SystemKeyring),
            place: OnceCell::new(),
            keyring_key: OnceCell::new(),
            patience: LOCK_PATIENCE,
        }
    }

    /// Replaces the keyring.
    #[must_use]
    pub fn with_keyring(mut self, keyring: Arc<dyn Keyring>) -> Self {
        self.keyring = keyring;
        self
    }

    /// Sets the timeout for a lock.
    #[must_use]
    pub fn waiting(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn read(&self, name: &VaultKey) -> Result<Option<Secret>, VaultError> {
        let file = file_of(name);
        let read = move |folder: &PrivateFolder| folder.read(&file, MAXIMUM_BYTES);
        let Some(Some(sealed)) = self.with_folder(READ, read).await? else {
            return Ok(None);
        };
        let damaged = |error| {
            let path = self.folder.join(file_of(name));
            let path = path.display();
            let hint = "log in again to replace the file, or restore it from a backup";
            VaultError::new(READ, format!("{path}: {error}"))
                .with_hint(hint)
                .lost()
        };
        let key = match seal::place(&sealed).map_err(damaged)? {
            KeyPlace::File => self.file_key().await?.ok_or_else(|| {
                let path = self.folder.join(KEY_FILE);
                let problem = format!("the key file {} is missing", path.display());
                VaultError::new(READ, problem)
                    .with_hint("restore the key file from a backup, or log in again")
                    .lost()
            })?,
            KeyPlace::Keyring => self.keyring_key(MissingKey::IsAnError).await?,
        };
        let secret = seal::unseal(&key, name, sealed).map_err(damaged)?;
        Ok(Some(Secret::new(secret)))
    }

    async fn write(&self, name: &VaultKey, secret: &Secret) -> Result<(), VaultError> {
        let place = *self.place.get_or_init(|| self.choose()).await;
        let key = match place {
            KeyPlace::Keyring => self.keyring_key(MissingKey::IsMade).await?,
            KeyPlace::File => match self.file_key().await? {
                Some(key) => key,
                None => self.make_file_key().await?,
            },
        };
        let unable = |error: &dyn fmt::Display| VaultError::new(WRITTEN, error);
        let text = secret.expose().as_bytes();
        let sealed = seal::seal(&key, place, name, text).map_err(|error| unable(&error))?;
        if sealed.len() as u64 > MAXIMUM_BYTES {
            return Err(unable(&"the login is too large"));
        }
        let file = file_of(name);
        let write = move |folder: &PrivateFolder| folder.write(&file, &sealed);
        self.with_made_folder(WRITTEN, write).await
    }

    async fn lock_file(&self, name: String) -> Result<VaultLock, VaultError> {
        let open = move |folder: &PrivateFolder| {
            let file = folder.lock_file(&name)?;
            Ok((file, folder.path_of(&name)))
        };
        let (file, path) = self.with_made_folder(LOCKED, open).await?;
        let held = lock::lock(file, self.patience).await.map_err(|error| {
            let problem = format!("{}: {error}", path.display());
            let hint = "stop the process that hangs, then try again";
            VaultError::new(LOCKED, problem).with_hint(hint)
        })?;
        Ok(VaultLock::holding(held))
    }

    /// Chooses the place of the key for new secrets: the keyring if it is usable.
    async fn choose(&self) -> KeyPlace {
        match self.store {
            LoginStore::Keyring => KeyPlace::Keyring,
            LoginStore::File => KeyPlace::File,
            LoginStore::Auto => match self.keyring.probe().await {
                Ok(()) => KeyPlace::Keyring,
                Err(error) => {
                    tracing::info!(%error, "not using the keyring for logins");
                    KeyPlace::File
                }
            },
        }
    }

    async fn file_key(&self) -> Result<Option<SealKey>, VaultError> {
        let read = |folder: &PrivateFolder| folder.read(KEY_FILE, 1024);
        let Some(Some(content)) = self.with_folder(READ, read).await? else {
            return Ok(None);
        };
        let text = String::from_utf8(content).ok();
        let key = text.and_then(|text| SealKey::from_hex(&text));
        key.map(Some).ok_or_else(|| {
            let path = self.folder.join(KEY_FILE);
            let problem = format!("the key file {} is damaged", path.display());
            VaultError::new(READ, problem).with_hint(
                "restore it from a backup, or move it away and log in to every server again",
            )
        })
    }

    /// Creates the key, unless another process has created it in the meantime.
    async fn make_file_key(&self) -> Result<SealKey, VaultError> {
        let _lock = self.lock_file(KEY_LOCK.to_owned()).await?;
        if let Some(key) = self.file_key().await? {
            return Ok(key);
        }
        let key = SealKey::generate().map_err(|error| VaultError::new(WRITTEN, error))?;
        let content = format!("{}\n", key.to_hex());
        let write = move |folder: &PrivateFolder| folder.write(KEY_FILE, content.as_bytes());
        self.with_made_folder(WRITTEN, write).await?;
        Ok(key)
    }

    async fn keyring_key(&self, missing: MissingKey) -> Result<SealKey, VaultError> {
        if self.store == LoginStore::File {
            let problem = "the login was stored with the system keyring, which is not in use";
            return Err(VaultError::new(READ, problem)
                .with_hint("set login_store = \"keyring\" and unlock the keyring, or log in again")
                .lost());
        }
        let keyring = &self.keyring;
        let key = self.keyring_key.get_or_try_init(async || {
            let unusable = |error| {
                let problem = format!("the system keyring cannot be used: {error}");
                VaultError::new(READ, problem)
                    .with_hint("unlock the keyring; or set login_store = \"file\" and log in again")
            };
            if let Some(key) = keyring.get().await.map_err(unusable)? {
                return SealKey::from_hex(key.expose()).ok_or_else(|| {
                    let problem = "the key in the system keyring is damaged";
                    let hint = format!(
                        "remove the entry \"{}\" from the keyring and log in again",
                        switchboard_keyring::LABEL
                    );
                    VaultError::new(READ, problem).with_hint(hint)
                });
            }
            if missing == MissingKey::IsAnError {
                let problem = "the key is no longer in the system keyring";
                return Err(VaultError::new(READ, problem)
                    .with_hint("log in again")
                    .lost());
            }
            let _lock = self.lock_file(KEY_LOCK.to_owned()).await?;
            if let Some(made) = keyring.get().await.map_err(unusable)?
                && let Some(key) = SealKey::from_hex(made.expose())
            {
                return Ok(key);
            }
            let key = SealKey::generate().map_err(|error| VaultError::new(WRITTEN, error))?;
            let secret = Secret::new(key.to_hex());
            keyring.set(&secret).await.map_err(unusable)?;
            Ok(key)
        });
        key.await.cloned()
    }

    /// Runs `work` on the folder, if it exists, on the blocking thread pool.
    async fn with_folder<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&PrivateFolder) -> Result<T, FileError> + Send + 'static,
    ) -> Result<Option<T>, VaultError> {
        let path = self.folder.clone();
        run(doing, move || {
            PrivateFolder::open(&path)?
                .map(|folder| work(&folder))
                .transpose()
        })
        .await
    }

    async fn with_made_folder<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&PrivateFolder) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let path = self.folder.clone();
        run(doing, move || work(&PrivateFolder::create(&path)?)).await
    }
}

impl fmt::Debug for SealedVault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SealedVault")
            .field("folder", &self.folder)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// What to do if the keyring has no key of ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingKey {
    IsAnError,
    IsMade,
}

fn file_of(name: &VaultKey) -> String {
    format!("{}.login", name.as_str())
}

async fn run<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, VaultError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| VaultError::new(doing, "the program is shutting down"))?;
    done.map_err(|error| {
        let (hint, is_lost) = (error.hint(), matches!(error.problem, FileProblem::TooLarge));
        let error = VaultError::new(doing, error).with_hint(hint);
        if is_lost { error.lost() } else { error }
    })
}
