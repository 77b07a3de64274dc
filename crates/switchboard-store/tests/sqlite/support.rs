//! Support for multi-process tests: a test runs its own executable again as a worker.
//!
//! The worker runs the same test, which detects by [`role`] that it is one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use switchboard_store::{Key, Record, Space, SqliteStore, Write, update};

pub(crate) const SPACE: Space = Space::new("test");

const PATH: &str = "SWITCHBOARD_STORE_TEST_PATH";
const ROLE: &str = "SWITCHBOARD_STORE_TEST_ROLE";

/// The worker's role and file; `None` in the main process.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((env::var(ROLE).ok()?, env::var_os(PATH)?.into()))
}

/// A command that runs this test executable as a worker.
pub(crate) fn worker(program: &Path, test: &str, role: &str, path: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Runs one worker per role, concurrently, and asserts that all succeed.
pub(crate) fn run_workers(test: &str, path: &Path, roles: impl IntoIterator<Item = String>) {
    let program = env::current_exe().unwrap();
    let workers: Vec<Child> = roles
        .into_iter()
        .map(|role| worker(&program, test, &role, path).spawn().unwrap())
        .collect();
    for worker in workers {
        assert_passed(&worker.wait_with_output().unwrap());
    }
}

/// Asserts that a worker ran its test: a run without a matching test also exits with 0.
pub(crate) fn assert_passed(output: &Output) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(crate) fn number(record: Option<&Record>) -> u64 {
    record.map_or(0, |record| {
        std::str::from_utf8(&record.value).unwrap().parse().unwrap()
    })
}

/// Increments the number under this key.
pub(crate) async fn increment(store: &SqliteStore, name: &str) {
    let add = |record: Option<&Record>| Some(Write::new((number(record) + 1).to_string()));
    update(store, SPACE, &key(name), add).await.unwrap();
}
