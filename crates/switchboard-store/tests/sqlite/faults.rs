//! Unusable files: each fault has its own error kind, and the data stays intact.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::{SPACE, key};
use switchboard_store::{
    ErrorKind, Expected, SqliteSettings, SqliteStore, Store as _, StoreError, Write,
};

/// Asserts that every operation fails with this kind, names the file, and leaves its bytes unchanged.
async fn check_refused(path: &Path, expected: ErrorKind) {
    let before = fs::read(path).unwrap();
    let store = SqliteStore::new(path);
    let name = key("a");
    let errors: [StoreError; 5] = [
        store.get(SPACE, &name).await.unwrap_err(),
        store.list(SPACE, None).await.unwrap_err(),
        store.put(SPACE, &name, Write::new("1")).await.unwrap_err(),
        store
            .remove(SPACE, &name, Expected::Anything)
            .await
            .unwrap_err(),
        store.sweep().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind, expected, "{error}");
        assert_eq!(error.path.as_deref(), Some(path));
        assert!(error.hint().is_some());
    }
    assert!(fs::read(path).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    fs::write(
        &path,
        "this is a plain text file, not a database\n".repeat(100),
    )
    .unwrap();
    check_refused(&path, ErrorKind::Corrupt).await;
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = SqliteStore::new(&path);
    store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    // The header stays intact; all pages are overwritten.
    bytes[100..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    check_refused(&path, ErrorKind::Corrupt).await;
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("create table bookmark (url text)")
        .unwrap();
    drop(other);
    check_refused(&path, ErrorKind::Foreign).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = SqliteStore::new(&path);
    store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("pragma user_version = 7").unwrap();
    drop(connection);
    check_refused(&path, ErrorKind::NewerSchema { found: 7, known: 2 }).await;
}

#[tokio::test]
async fn a_folder_in_the_place_of_the_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = SqliteStore::new(folder.path())
        .get(SPACE, &key("a"))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotAFile);
    assert!(error.hint().is_some());
    assert_eq!(error.message, "the path is a folder");
}

#[tokio::test]
async fn a_value_larger_than_we_would_write_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = SqliteStore::new(&path);
    store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute("update record set value = zeroblob(40000000)", ())
        .unwrap();
    let error = store.get(SPACE, &key("a")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge { size: 40_000_000 });
    let listing = store.list(SPACE, None).await.unwrap();
    assert_eq!(listing.entries[0].size, 40_000_000);
}

#[tokio::test]
async fn a_writer_elsewhere_does_not_stop_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = SqliteStore::new(&path);
    store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    let record = store.get(SPACE, &key("a")).await.unwrap().unwrap();
    assert_eq!(record.value, "1");
    connection.execute_batch("rollback").unwrap();
    let revision = store.put(SPACE, &key("a"), Write::new("2")).await.unwrap();
    assert!(revision > record.revision);
}

#[tokio::test]
async fn a_writer_that_never_ends_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = SqliteStore::with_settings(
        &path,
        SqliteSettings {
            patience: Duration::from_millis(10),
            ..SqliteSettings::default()
        },
    );
    store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    let error = store
        .put(SPACE, &key("a"), Write::new("2"))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.path.as_deref()),
        (ErrorKind::Busy, Some(path.as_path()))
    );
    let record = store.get(SPACE, &key("a")).await.unwrap().unwrap();
    assert_eq!(record.value, "1");
}

#[tokio::test]
async fn a_locked_file_is_waited_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let settings = SqliteSettings {
        patience: Duration::from_millis(800),
        ..SqliteSettings::default()
    };
    let store = SqliteStore::with_settings(&path, settings);
    store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    let mut waited = Vec::new();
    for _ in 0..3 {
        // Reading does not reset the shortened wait.
        store.get(SPACE, &key("a")).await.unwrap();
        let start = std::time::Instant::now();
        let error = store.put(SPACE, &key("a"), Write::new("2")).await;
        assert_eq!(error.unwrap_err().kind, ErrorKind::Busy);
        waited.push(start.elapsed());
    }
    assert!(waited[1] + waited[2] < waited[0], "{waited:?}");
    connection.execute_batch("rollback").unwrap();
    store.put(SPACE, &key("a"), Write::new("3")).await.unwrap();
}

#[tokio::test]
async fn reading_does_not_create_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/state.db");
    let store = SqliteStore::new(&path);
    assert_eq!(store.get(SPACE, &key("a")).await, Ok(None));
    assert_eq!(store.get_many_blocking(SPACE, &[key("a")]), Ok(vec![None]));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn outside_a_runtime_there_is_an_error_and_no_panic() {
    let store = SqliteStore::new("never-opened.db");
    let error = futures_util::FutureExt::now_or_never(store.sweep())
        .unwrap()
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[cfg(unix)]
mod unix {
    use std::env;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;
    use crate::support::{assert_passed, role, worker};

    #[tokio::test]
    async fn new_files_are_private_to_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/here/state.db");
        let store = SqliteStore::new(&path);
        store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("made")), 0o700);
        assert_eq!(mode(&folder.path().join("made/here")), 0o700);
        for entry in folder.path().join("made/here").read_dir().unwrap() {
            let entry = entry.unwrap().path();
            assert_eq!(mode(&entry), 0o600, "{}", entry.display());
        }
    }

    #[tokio::test]
    async fn a_read_only_folder_is_reported() {
        if let Some((role, path)) = role() {
            let store = SqliteStore::new(&path);
            if role == "existing" {
                check_refused(&path, ErrorKind::ReadOnly).await;
            } else {
                assert_eq!(store.get(SPACE, &key("a")).await, Ok(None));
                let error = store
                    .put(SPACE, &key("a"), Write::new("1"))
                    .await
                    .unwrap_err();
                assert_eq!(error.kind, ErrorKind::ReadOnly, "{error}");
            }
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let path = target.join("state.db");
        let store = SqliteStore::new(&path);
        store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
        drop(store);
        // File modes do not apply to root, so another user runs the test then, from a copy of the program that it can
        // access.
        let program = folder.path().join("program");
        fs::copy(env::current_exe().unwrap(), &program).unwrap();
        for (path, mode) in [
            (folder.path(), 0o755),
            (&program, 0o755),
            (&path, 0o644),
            (&target, 0o555),
        ] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let is_superuser = fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0);
        let test = "faults::unix::a_read_only_folder_is_reported";
        for (role, path) in [("existing", path), ("missing", target.join("other.db"))] {
            let mut command = worker(&program, test, role, &path);
            command.current_dir("/");
            if is_superuser {
                command.uid(65534).gid(65534);
            }
            let output = command.output().unwrap();
            assert_passed(&output);
        }
        fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[tokio::test]
    async fn a_full_file_system_is_reported() {
        if let Some((_, path)) = role() {
            let store = SqliteStore::new(&path);
            let error = store
                .put(SPACE, &key("b"), Write::new(vec![1; 1 << 20]))
                .await
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::Full, "{error}");
            // Existing records can be read, and a value that fits can be written.
            let record = store.get(SPACE, &key("a")).await.unwrap().unwrap();
            assert_eq!(record.value, "1");
            store.put(SPACE, &key("c"), Write::new("3")).await.unwrap();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = SqliteStore::new(&path);
        store.put(SPACE, &key("a"), Write::new("1")).await.unwrap();
        drop(store);
        let limited = worker(
            &env::current_exe().unwrap(),
            "faults::unix::a_full_file_system_is_reported",
            "limited",
            &path,
        );
        // `ulimit` limits file sizes to 256 or 512 KiB, depending on the shell; the trap makes the write fail instead
        // of killing us.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' XFSZ; ulimit -f 512; exec \"$0\" \"$@\""])
            .arg(limited.get_program())
            .args(limited.get_args())
            .envs(
                limited
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        let output = shell.output().unwrap();
        assert_passed(&output);

        let store = SqliteStore::new(&path);
        let names: Vec<_> = store
            .list(SPACE, None)
            .await
            .unwrap()
            .entries
            .into_iter()
            .map(|entry| entry.key)
            .collect();
        assert_eq!(names, [key("a"), key("c")]);
    }
}
