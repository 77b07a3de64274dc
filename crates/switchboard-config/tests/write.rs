//! Tests of locked, atomic updates of files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use switchboard_config::write::{Access, Outcome, Update, WriteErrorKind};
use tempfile::TempDir;

/// Set for processes that a test spawns from its own binary: path of the file to count in.
const COUNTER: &str = "SWITCHBOARD_TEST_COUNTER";

struct Folder {
    root: TempDir,
}

impl Folder {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn locks(&self) -> PathBuf {
        self.path("locks")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn put(text: &str) -> impl FnOnce(Option<&str>) -> Result<Option<String>, Infallible> {
    move |_| Ok(Some(text.to_owned()))
}

#[test]
fn a_file_is_created_updated_and_left_alone() {
    let folder = Folder::new();
    let (path, locks) = (folder.path("deep/er/mcp.toml"), folder.locks());
    let update = Update::new(&path, &locks, Access::Private);

    let outcome = update.run::<Infallible>(|text| {
        assert_eq!(text, None);
        Ok(None)
    });
    assert_eq!(outcome.unwrap(), Outcome::Unchanged);
    assert!(
        !path.parent().unwrap().exists(),
        "nothing was to be written"
    );

    assert_eq!(update.run(put("one")).unwrap(), Outcome::Created);
    assert_eq!(update.run(put("one")).unwrap(), Outcome::Unchanged);
    let outcome = update.run::<Infallible>(|text| Ok(text.map(|text| format!("{text} two"))));
    assert_eq!(outcome.unwrap(), Outcome::Updated);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
    assert_eq!(
        folder.names("deep/er"),
        ["mcp.toml"],
        "nothing else is left there"
    );
    assert_eq!(folder.names("locks").len(), 1);
}

#[test]
fn no_increment_is_lost_between_threads_and_processes() {
    let folder = Folder::new();
    let path = folder.write("counter", "0");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| count(&path));
        }
        let processes: Vec<_> = (0..4)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "counting_process"])
                    .env(COUNTER, &path)
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for mut process in processes {
            assert!(process.wait().unwrap().success());
        }
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "400");
}

/// Body of the processes of the test above; does nothing in a normal test run.
#[test]
fn counting_process() {
    if let Some(path) = std::env::var_os(COUNTER) {
        count(Path::new(&path));
        let total: u32 = fs::read_to_string(path).unwrap().parse().unwrap();
        assert!(total >= 50);
    }
}

fn count(path: &Path) {
    let locks = path.with_file_name("locks");
    let update = Update::new(path, &locks, Access::Private).waiting(Duration::from_secs(120));
    for _ in 0..50 {
        let outcome = update.run::<std::num::ParseIntError>(|text| {
            let count: u32 = text.unwrap().parse()?;
            Ok(Some((count + 1).to_string()))
        });
        assert_eq!(outcome.unwrap(), Outcome::Updated);
    }
}

#[test]
fn an_error_in_the_middle_leaves_the_old_file() {
    let folder = Folder::new();
    let (path, locks) = (folder.write("a.toml", "old"), folder.locks());
    let update = Update::new(&path, &locks, Access::Private);
    let error = update
        .run(|_| Err(io::Error::other("broken in the middle")))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot update {}: broken in the middle", path.display())
    );
    assert_eq!(error.hint(), None);
    let panicked =
        std::panic::catch_unwind(|| update.run::<Infallible>(|_| panic!("the process ends here")));
    assert!(panicked.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(folder.names(""), ["a.toml", "locks"]);
    assert_eq!(
        update.run(put("new")).unwrap(),
        Outcome::Updated,
        "the lock is free"
    );
}

#[test]
fn a_lock_that_is_held_is_waited_for_no_longer_than_asked() {
    let folder = Folder::new();
    let (path, locks) = (folder.write("a.toml", "old"), folder.locks());
    let update = Update::new(&path, &locks, Access::Private).waiting(Duration::from_millis(20));
    let outcome = update.run::<Infallible>(|_| {
        let start = Instant::now();
        let error = update.run(put("other")).unwrap_err();
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert!(matches!(error.kind, WriteErrorKind::Busy { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("another update is in progress; waited 0.02 s for")
        );
        assert!(error.hint().is_some());
        Ok(Some("new".to_owned()))
    });
    assert_eq!(outcome.unwrap(), Outcome::Updated);
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_change_by_someone_who_does_not_lock_is_not_overwritten() {
    let folder = Folder::new();
    let locks = folder.locks();
    for existing in [Some("old"), None] {
        let path = folder.path("a.toml");
        let _ = fs::remove_file(&path);
        if let Some(text) = existing {
            fs::write(&path, text).unwrap();
        }
        let update = Update::new(&path, &locks, Access::Private);
        let error = update
            .run::<Infallible>(|text| {
                assert_eq!(text, existing);
                fs::write(&path, "saved by an editor").unwrap();
                Ok(Some("ours".to_owned()))
            })
            .unwrap_err();
        assert!(matches!(error.kind, WriteErrorKind::Changed), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "saved by an editor");
        assert_eq!(folder.names(""), ["a.toml", "locks"]);
    }
}

#[test]
fn what_is_not_text_or_not_a_file_is_refused() {
    let folder = Folder::new();
    let locks = folder.locks();
    let path = folder.path("latin");
    fs::write(&path, b"caf\xe9").unwrap();
    let error = Update::new(&path, &locks, Access::Private)
        .run(put("x"))
        .unwrap_err();
    assert!(
        matches!(error.kind, WriteErrorKind::NotText { offset: 3 }),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9");

    let error = Update::new(folder.root.path(), &locks, Access::Private)
        .run(put("x"))
        .unwrap_err();
    assert!(matches!(error.kind, WriteErrorKind::NotAFile), "{error}");

    // A file in place of a folder, which fails even for root.
    let path = path.join("mcp.toml");
    let error = Update::new(&path, &locks, Access::Private)
        .run(put("x"))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot update {}: cannot ", path.display())),
        "{text}"
    );
    assert!(error.hint().is_some());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_link_stays_and_its_target_changes() {
        let folder = Folder::new();
        let locks = folder.locks();
        fs::create_dir(folder.path("dotfiles")).unwrap();
        let target = folder.write("dotfiles/real.toml", "old");
        symlink("dotfiles/real.toml", folder.path("first")).unwrap();
        symlink(folder.path("first"), folder.path("second")).unwrap();
        let path = folder.path("second");
        let update = Update::new(&path, &locks, Access::Private);
        assert_eq!(update.run(put("new")).unwrap(), Outcome::Updated);
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::read_link(&path).unwrap(), folder.path("first"));
        assert_eq!(folder.names("dotfiles"), ["real.toml"]);

        let update = Update::new(&target, &locks, Access::Private);
        assert_eq!(update.run(put("newer")).unwrap(), Outcome::Updated);
        assert_eq!(
            folder.names("locks").len(),
            1,
            "all names of a file share one lock"
        );

        let path = folder.path("dangling");
        symlink("dotfiles/later.toml", &path).unwrap();
        let update = Update::new(&path, &locks, Access::Private);
        assert_eq!(update.run(put("made")).unwrap(), Outcome::Created);
        assert_eq!(
            fs::read_to_string(folder.path("dotfiles/later.toml")).unwrap(),
            "made"
        );
    }

    #[test]
    fn links_in_a_circle_are_refused() {
        let folder = Folder::new();
        let (path, locks) = (folder.path("a"), folder.locks());
        symlink("b", &path).unwrap();
        symlink("a", folder.path("b")).unwrap();
        let error = Update::new(&path, &locks, Access::Private)
            .run(put("x"))
            .unwrap_err();
        assert!(matches!(error.kind, WriteErrorKind::Links), "{error}");
    }

    #[test]
    fn permissions_are_kept_and_new_files_get_what_was_asked() {
        let folder = Folder::new();
        let locks = folder.locks();
        for bits in [0o600, 0o640, 0o664, 0o755, 0o400] {
            let path = folder.write("kept", "old");
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            let update = Update::new(&path, &locks, Access::Shared);
            assert_eq!(update.run(put("new")).unwrap(), Outcome::Updated);
            assert_eq!(mode(&path), bits, "{bits:o}");
            fs::remove_file(&path).unwrap();
        }
        let (private, shared) = (folder.path("private"), folder.path("shared"));
        Update::new(&private, &locks, Access::Private)
            .run(put("x"))
            .unwrap();
        Update::new(&shared, &locks, Access::Shared)
            .run(put("x"))
            .unwrap();
        assert_eq!(mode(&private), 0o600);
        // The umask of the test run may remove permissions of others, but not of the owner.
        assert_eq!(mode(&shared) & 0o700, 0o600);
        assert_eq!(mode(&shared) & !0o644, 0);
        assert_eq!(mode(&locks), 0o700);
    }

    #[test]
    fn a_folder_that_may_not_be_written_to_is_named_with_a_remedy() {
        let folder = Folder::new();
        let locks = folder.locks();
        let shut = folder.path("shut");
        fs::create_dir(&shut).unwrap();
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o555)).unwrap();
        let path = shut.join("mcp.toml");
        let result = Update::new(&path, &locks, Access::Private).run(put("x"));
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
        match result {
            Err(error) => {
                let shut = shut.canonicalize().unwrap();
                assert!(
                    error
                        .to_string()
                        .contains(&format!("cannot write to {}", shut.display()))
                );
                assert!(error.hint().unwrap().contains(&shut.display().to_string()));
            }
            Ok(outcome) => {
                println!("run as root, who may write anywhere");
                assert_eq!(outcome, Outcome::Created);
            }
        }
    }
}
