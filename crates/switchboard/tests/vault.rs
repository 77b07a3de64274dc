//! Tests of storing logins: round trips, refusals, error messages, and locking.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use switchboard::internal::auth::vault::keyring::{Keyring, KeyringError};
use switchboard::internal::auth::vault::sealed::SealedVault;
use switchboard::internal::auth::vault::{MemoryVault, Vault, VaultError, VaultKey};
use switchboard_config::secret::Secret;
use switchboard_config::settings::LoginStore;

const CANARY: &str = "canary-d41f7c";

/// A scripted keyring.
#[derive(Debug, Default)]
struct ScriptedKeyring {
    secret: Mutex<Option<Secret>>,
    fails_with: Mutex<Option<KeyringError>>,
    questions: AtomicUsize,
}

impl ScriptedKeyring {
    fn failing(error: KeyringError) -> Arc<Self> {
        let keyring = Self::default();
        *keyring.fails_with.lock().unwrap() = Some(error);
        Arc::new(keyring)
    }

    fn asked(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }

    fn question<T>(&self, answer: impl FnOnce() -> T) -> Result<T, KeyringError> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        match &*self.fails_with.lock().unwrap() {
            Some(error) => Err(error.clone()),
            None => Ok(answer()),
        }
    }
}

impl Keyring for ScriptedKeyring {
    fn get(&self) -> BoxFuture<'_, Result<Option<Secret>, KeyringError>> {
        Box::pin(async { self.question(|| self.secret.lock().unwrap().clone()) })
    }

    fn set<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<(), KeyringError>> {
        Box::pin(async { self.question(|| *self.secret.lock().unwrap() = Some(secret.clone())) })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), KeyringError>> {
        Box::pin(async { self.question(|| ()) })
    }
}

struct Logins {
    state: tempfile::TempDir,
    key: VaultKey,
}

impl Logins {
    fn new() -> Self {
        Self {
            state: tempfile::tempdir().unwrap(),
            key: VaultKey::of(&["https://issuer.example", "https://server.example/mcp"]),
        }
    }

    fn folder(&self) -> std::path::PathBuf {
        self.state.path().join("logins")
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder().join(format!("{}.login", self.key.as_str()))
    }

    fn with_key_file(&self) -> SealedVault {
        self.choosing(LoginStore::File, &Arc::default())
    }

    fn with_keyring(&self, keyring: &Arc<ScriptedKeyring>) -> SealedVault {
        self.choosing(LoginStore::Keyring, keyring)
    }

    fn choosing(&self, store: LoginStore, keyring: &Arc<ScriptedKeyring>) -> SealedVault {
        SealedVault::new(self.folder(), store).with_keyring(Arc::clone(keyring) as _)
    }

    async fn kept(&self) -> SealedVault {
        let vault = self.with_key_file();
        vault.put(&self.key, &Secret::new(CANARY)).await.unwrap();
        vault
    }

    /// The login that a new process finds.
    async fn found(&self) -> Result<Option<Secret>, VaultError> {
        self.with_key_file().get(&self.key).await
    }

    /// The error in a new process, without the folder's name.
    async fn error(&self) -> (String, String) {
        let error = self.found().await.unwrap_err();
        let folder = self.folder().display().to_string();
        let shown = |text: &str| {
            text.replace(&folder, "FOLDER")
                .replace(self.key.as_str(), "KEY")
        };
        (shown(&error.to_string()), shown(&error.hint.unwrap()))
    }
}

async fn round_trip(vault: &dyn Vault) {
    let (key, other) = (VaultKey::of(&["a"]), VaultKey::of(&["b"]));
    assert_eq!(vault.get(&key).await, Ok(None));
    assert_eq!(vault.remove(&key).await, Ok(false));
    // Longer than a keyring accepts in one entry.
    for secret in ["first", &"x".repeat(200_000), ""] {
        vault.put(&key, &Secret::new(secret)).await.unwrap();
        assert_eq!(vault.get(&key).await, Ok(Some(Secret::new(secret))));
    }
    assert_eq!(vault.get(&other).await, Ok(None));
    assert_eq!(vault.remove(&key).await, Ok(true));
    assert_eq!(vault.get(&key).await, Ok(None));
    let lock = vault.lock(&key).await.unwrap();
    let unrelated = vault.lock(&other).await.unwrap();
    drop((lock, unrelated));
    drop(vault.lock(&key).await.unwrap());
}

#[tokio::test]
async fn every_vault_gives_back_what_it_was_given() {
    round_trip(&MemoryVault::default()).await;
    round_trip(&Logins::new().with_key_file()).await;
    round_trip(&Logins::new().with_keyring(&Arc::default())).await;
}

#[tokio::test]
async fn a_login_outlives_the_program_and_is_in_no_file_in_the_clear() {
    let logins = Logins::new();
    logins.kept().await;
    assert_eq!(logins.found().await, Ok(Some(Secret::new(CANARY))));
    let mut names = Vec::new();
    for file in fs::read_dir(logins.folder()).unwrap() {
        let file = file.unwrap();
        let content = fs::read(file.path()).unwrap();
        let canary = CANARY.as_bytes();
        assert!(!content.windows(canary.len()).any(|part| part == canary));
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    let login = format!("{}.login", logins.key.as_str());
    assert_eq!(names, [login.as_str(), "key", "key.lock"]);
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let logins = Logins::new();
    logins.kept().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&logins.folder()), 0o700);
    for file in fs::read_dir(logins.folder()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test]
async fn a_login_that_cannot_be_read_is_told_of_and_stays() {
    let check = async |spoil: fn(&Logins), problem: &str, hint: &str| {
        let logins = Logins::new();
        logins.kept().await;
        spoil(&logins);
        let before = fs::read(logins.file()).ok();
        let (message, message_hint) = logins.error().await;
        assert_eq!(
            message,
            format!("the login store could not be read: {problem}")
        );
        assert_eq!(message_hint, hint);
        assert_eq!(fs::read(logins.file()).ok(), before);
    };
    let again = "log in again to replace the file, or restore it from a backup";
    check(
        |logins| fs::write(logins.file(), "").unwrap(),
        "FOLDER/KEY.login: it is truncated or not a sealed secret",
        again,
    )
    .await;
    check(
        |logins| {
            let mut content = fs::read(logins.file()).unwrap();
            *content.last_mut().unwrap() ^= 1;
            fs::write(logins.file(), content).unwrap();
        },
        "FOLDER/KEY.login: it is damaged, or belongs to another login",
        again,
    )
    .await;
    check(
        |logins| fs::write(logins.folder().join("key"), "0".repeat(64)).unwrap(),
        "FOLDER/KEY.login: it was sealed with another key",
        again,
    )
    .await;
    check(
        |logins| fs::write(logins.folder().join("key"), "nonsense").unwrap(),
        "the key file FOLDER/key is damaged",
        "restore it from a backup, or move it away and log in to every server again",
    )
    .await;
    check(
        |logins| fs::remove_file(logins.folder().join("key")).unwrap(),
        "the key file FOLDER/key is missing",
        "restore the key file from a backup, or log in again",
    )
    .await;
    check(
        |logins| fs::write(logins.file(), vec![0; 2 << 20]).unwrap(),
        "FOLDER/KEY.login is too large for a login",
        "move FOLDER/KEY.login away and log in again",
    )
    .await;
}

#[tokio::test]
async fn a_damaged_login_is_replaced_by_the_next() {
    let logins = Logins::new();
    logins.kept().await;
    fs::write(logins.file(), "").unwrap();
    assert!(logins.found().await.is_err());
    logins.kept().await;
    assert_eq!(logins.found().await, Ok(Some(Secret::new(CANARY))));
}

#[cfg(unix)]
#[tokio::test]
async fn what_another_may_have_made_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let check = async |spoil: fn(&Logins), problem: &str| {
        let logins = Logins::new();
        logins.kept().await;
        spoil(&logins);
        let (message, _) = logins.error().await;
        assert_eq!(
            message,
            format!("the login store could not be read: {problem}")
        );
    };
    let link = "is not a regular file or folder, or is a symlink";
    check(
        |logins| {
            let aside = logins.state.path().join("aside");
            fs::rename(logins.file(), &aside).unwrap();
            symlink(aside, logins.file()).unwrap();
        },
        &format!("FOLDER/KEY.login {link}"),
    )
    .await;
    check(
        |logins| {
            let aside = logins.state.path().join("aside");
            fs::rename(logins.folder(), &aside).unwrap();
            symlink(aside, logins.folder()).unwrap();
        },
        &format!("FOLDER {link}"),
    )
    .await;
    check(
        |logins| {
            fs::remove_dir_all(logins.folder()).unwrap();
            std::os::unix::net::UnixListener::bind(logins.folder()).unwrap();
        },
        &format!("FOLDER {link}"),
    )
    .await;
    check(
        |logins| {
            let key = logins.folder().join("key");
            let aside = logins.state.path().join("aside");
            fs::rename(&key, &aside).unwrap();
            symlink(aside, key).unwrap();
        },
        &format!("FOLDER/key {link}"),
    )
    .await;
    check(
        |logins| fs::set_permissions(logins.file(), PermissionsExt::from_mode(0o640)).unwrap(),
        "FOLDER/KEY.login can be read or written by others (mode 640)",
    )
    .await;
    check(
        |logins| fs::set_permissions(logins.folder(), PermissionsExt::from_mode(0o777)).unwrap(),
        "FOLDER can be read or written by others (mode 777)",
    )
    .await;
    check(
        |logins| {
            fs::remove_file(logins.file()).unwrap();
            fs::create_dir(logins.file()).unwrap();
            fs::set_permissions(logins.file(), PermissionsExt::from_mode(0o700)).unwrap();
        },
        &format!("FOLDER/KEY.login {link}"),
    )
    .await;
    // A pipe without a writer does not block.
    check(
        |logins| {
            fs::remove_file(logins.file()).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, logins.file(), kind, mode, 0).unwrap();
        },
        &format!("FOLDER/KEY.login {link}"),
    )
    .await;
}

#[tokio::test]
async fn the_keyring_is_asked_for_its_key_once() {
    let logins = Logins::new();
    let keyring: Arc<ScriptedKeyring> = Arc::default();
    let vault = logins.with_keyring(&keyring);
    assert_eq!(vault.get(&logins.key).await, Ok(None));
    assert_eq!(keyring.asked(), 0);
    vault.put(&logins.key, &Secret::new(CANARY)).await.unwrap();
    let asked = keyring.asked();
    vault
        .put(&logins.key, &Secret::new("renewed"))
        .await
        .unwrap();
    let renewed = Ok(Some(Secret::new("renewed")));
    assert_eq!(vault.get(&logins.key).await, renewed);
    assert_eq!(keyring.asked(), asked);
    let afresh = logins.with_keyring(&keyring);
    assert_eq!(afresh.get(&logins.key).await, renewed);
    // Without the keyring, the logins cannot be decrypted, and the key is not in a file.
    assert!(!logins.folder().join("key").exists());
    let (message, hint) = logins.error().await;
    assert_eq!(
        message,
        "the login store could not be read: the login was stored with the system keyring, which is not in use"
    );
    assert_eq!(
        hint,
        "set login_store = \"keyring\" and unlock the keyring, or log in again"
    );
}

#[tokio::test]
async fn a_key_that_is_gone_from_the_keyring_is_never_made_up() {
    let logins = Logins::new();
    let keyring: Arc<ScriptedKeyring> = Arc::default();
    let vault = || logins.with_keyring(&keyring);
    let secret = Secret::new(CANARY);
    vault().put(&logins.key, &secret).await.unwrap();
    *keyring.secret.lock().unwrap() = None;
    let error = vault().get(&logins.key).await.unwrap_err();
    assert_eq!(error.problem, "the key is no longer in the system keyring");
    assert!(keyring.secret.lock().unwrap().is_none());
    *keyring.secret.lock().unwrap() = Some(Secret::new("nonsense"));
    let error = vault().get(&logins.key).await.unwrap_err();
    assert_eq!(error.problem, "the key in the system keyring is damaged");
    *keyring.fails_with.lock().unwrap() = Some(KeyringError::Locked);
    let error = vault().get(&logins.key).await.unwrap_err();
    assert_eq!(
        error.problem,
        "the system keyring cannot be used: it is locked"
    );
}

#[tokio::test]
async fn the_keyring_is_used_where_it_works_and_not_looked_at_before() {
    let check = async |store: LoginStore, keyring: Arc<ScriptedKeyring>, in_keyring: bool| {
        let logins = Logins::new();
        let vault = logins.choosing(store, &keyring);
        assert_eq!(vault.get(&logins.key).await, Ok(None));
        assert_eq!(keyring.asked(), 0);
        vault.put(&logins.key, &Secret::new(CANARY)).await.unwrap();
        let found = vault.get(&logins.key).await;
        assert_eq!(found, Ok(Some(Secret::new(CANARY))));
        assert_eq!(keyring.secret.lock().unwrap().is_some(), in_keyring);
        assert_eq!(logins.folder().join("key").exists(), !in_keyring);
    };
    let silent = || ScriptedKeyring::failing(KeyringError::Silent(Duration::from_secs(3)));
    check(LoginStore::Auto, Arc::default(), true).await;
    check(LoginStore::Auto, silent(), false).await;
    check(LoginStore::Keyring, Arc::default(), true).await;
    check(LoginStore::File, Arc::default(), false).await;
    check(LoginStore::File, silent(), false).await;
    // If the keyring is required, there is no fallback to a file.
    let logins = Logins::new();
    let vault = logins.with_keyring(&silent());
    let error = vault.put(&logins.key, &Secret::new(CANARY)).await;
    let error = error.unwrap_err();
    assert_eq!(
        error.problem,
        "the system keyring cannot be used: it did not answer within 3 s"
    );
    assert!(!logins.file().exists());
}

#[tokio::test]
async fn a_login_made_without_a_keyring_is_found_when_there_is_one() {
    let logins = Logins::new();
    logins.kept().await;
    let keyring: Arc<ScriptedKeyring> = Arc::default();
    let vault = logins.choosing(LoginStore::Auto, &keyring);
    let found = vault.get(&logins.key).await;
    assert_eq!(found, Ok(Some(Secret::new(CANARY))));
    assert_eq!(vault.remove(&logins.key).await, Ok(true));
    drop(vault.lock(&logins.key).await.unwrap());
    // None of this needed the keyring.
    assert_eq!(keyring.asked(), 0);
}

#[tokio::test]
async fn the_first_logins_of_many_share_one_key() {
    let logins = Logins::new();
    let names: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let put = names.iter().map(async |name| {
        let vault = logins.with_key_file();
        vault.put(&VaultKey::of(&[name]), &Secret::new(name)).await
    });
    assert!(join_all(put).await.iter().all(Result::is_ok));
    for name in &names {
        let found = logins.with_key_file().get(&VaultKey::of(&[name])).await;
        assert_eq!(found, Ok(Some(Secret::new(name))));
    }
}

#[tokio::test]
async fn a_login_too_large_to_be_read_back_is_not_stored() {
    let logins = Logins::new();
    // A file may have 1 MiB, and its header and tag take 64 bytes.
    let largest = Secret::new("x".repeat((1 << 20) - 64));
    let vault = logins.with_key_file();
    vault.put(&logins.key, &largest).await.unwrap();
    assert_eq!(logins.found().await, Ok(Some(largest.clone())));
    for more in 1..3 {
        let larger = Secret::new(format!("{}{}", largest.expose(), "x".repeat(more)));
        let error = vault.put(&logins.key, &larger).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the login store could not be written: the login is too large"
        );
    }
    assert_eq!(logins.found().await, Ok(Some(largest)));
}

#[tokio::test]
async fn a_lock_is_waited_for_and_given_up_in_time() {
    let logins = Logins::new();
    let key = &logins.key;
    let held = logins.with_key_file().lock(key).await.unwrap();
    let patience = Duration::from_millis(30);
    let error = logins.with_key_file().waiting(patience).lock(key).await;
    let error = error.unwrap_err();
    let path = logins.folder().join(format!("{}.lock", key.as_str()));
    assert_eq!(
        error.to_string(),
        format!(
            "the login store could not be locked: {}: another process has held it for 0 s",
            path.display()
        )
    );
    let vault = logins.with_key_file();
    let waiting = vault.lock(key);
    drop(held);
    let held = waiting.await.unwrap();
    // A cancelled waiter leaves nothing behind.
    let vault = logins.with_key_file();
    let mut waiting = vault.lock(key);
    let not_yet = tokio::time::timeout(patience, &mut waiting).await;
    assert!(not_yet.is_err());
    drop((waiting, held));
    logins.with_key_file().lock(key).await.unwrap();
}
