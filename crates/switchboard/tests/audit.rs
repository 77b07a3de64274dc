//! Tests of the audit log: no entry is lost silently.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot go on should say where"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use switchboard::internal::audit::{Audit, AuditSettings, Filter, LOG, What, read};
use switchboard_store::{
    ErrorKind, Expected, Key, Listing, LogEntry, LogQuery, Logged, MemoryStore, Record, Retention,
    Revision, Space, SqliteStore, Store, StoreError, Write,
};

const KEEP: AuditSettings = AuditSettings::new(Retention {
    max_age: Duration::from_secs(3600),
    max_bytes: 1 << 26,
});

fn change(about: impl Into<String>) -> What {
    What::Change {
        event: "test",
        about: about.into(),
    }
}

/// All entries of the log, oldest first.
async fn entries(store: &dyn Store) -> Vec<Value> {
    let mut all = Vec::new();
    let mut query = LogQuery::default();
    loop {
        let page = store.read_log(LOG, query).await.expect("a log");
        let Some(last) = page.last() else { break };
        query.before = Some(last.number);
        let value = |entry: &Logged| serde_json::from_slice(&entry.value).expect("JSON");
        all.extend(page.iter().map(value));
    }
    all.reverse();
    all
}

fn abouts(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .filter_map(|entry| entry["about"].as_str())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn entries_are_written_in_batches_soon_after() {
    let store = Arc::new(MemoryStore::new());
    let audit = Audit::start(Arc::clone(&store) as Arc<dyn Store>, KEEP, "test");
    audit.record(change("one"));
    audit.record(change("two"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(entries(&*store).await, Vec::<Value>::new());
    tokio::time::sleep(Duration::from_millis(200)).await;
    let found = entries(&*store).await;
    assert_eq!(abouts(&found), ["one", "two"]);
    assert_eq!(found[0]["by"], "test");
    assert_eq!(found[0]["process"], std::process::id());
    // Closing writes the rest at once.
    audit.record(change("three"));
    audit.close().await;
    assert_eq!(abouts(&entries(&*store).await), ["one", "two", "three"]);
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_waits() {
    let store = Arc::new(MemoryStore::new());
    let audit = Audit::start(Arc::clone(&store) as Arc<dyn Store>, KEEP, "test");
    audit.record(change("one"));
    drop(audit);
    while Arc::strong_count(&store) > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(abouts(&entries(&*store).await), ["one"]);
}

#[tokio::test]
async fn what_does_not_fit_into_the_queue_is_counted() {
    let store = Arc::new(MemoryStore::new());
    let audit = Audit::start(Arc::clone(&store) as Arc<dyn Store>, KEEP, "test");
    let recorded: u64 = 20_000;
    // The writer does not run until this task awaits.
    for number in 0..recorded {
        audit.record(change(number.to_string()));
    }
    audit.flush().await;
    // The count itself is written with the next batch at the latest.
    audit.flush().await;
    let found = entries(&*store).await;
    let lost: u64 = found
        .iter()
        .filter_map(|entry| entry["count"].as_u64())
        .sum();
    assert!(lost > 0);
    assert_eq!(abouts(&found).len() as u64 + lost, recorded);
}

/// A store that can be made to fail.
#[derive(Debug, Default)]
struct Fragile {
    inner: MemoryStore,
    is_broken: AtomicBool,
}

impl Store for Fragile {
    fn get<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.inner.get(space, key)
    }

    fn get_many<'a>(
        &'a self,
        space: Space,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.inner.get_many(space, keys)
    }

    fn list<'a>(
        &'a self,
        space: Space,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Listing, StoreError>> {
        self.inner.list(space, after)
    }

    fn put<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        write: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        self.inner.put(space, key, write)
    }

    fn remove<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        expected: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.inner.remove(space, key, expected)
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.sweep()
    }

    fn append(
        &self,
        log: Space,
        entries: Vec<LogEntry>,
        keep: Retention,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        if self.is_broken.load(Ordering::Relaxed) {
            let error = StoreError::new(ErrorKind::Full, "no space");
            return ready(Err(error)).boxed();
        }
        self.inner.append(log, entries, keep)
    }

    fn read_log(
        &self,
        log: Space,
        query: LogQuery,
    ) -> BoxFuture<'_, Result<Vec<Logged>, StoreError>> {
        self.inner.read_log(log, query)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_costs_entries_and_that_is_written() {
    let store = Arc::new(Fragile::default());
    let audit = Audit::start(Arc::clone(&store) as Arc<dyn Store>, KEEP, "test");
    store.is_broken.store(true, Ordering::Relaxed);
    audit.record(change("one"));
    audit.record(change("two"));
    audit.flush().await;
    audit.record(change("three"));
    audit.flush().await;
    store.is_broken.store(false, Ordering::Relaxed);
    audit.record(change("four"));
    audit.flush().await;
    let found = entries(&*store).await;
    assert_eq!(abouts(&found), ["four"]);
    assert_eq!(found[1]["kind"], "lost");
    assert_eq!(found[1]["count"], 3);
}

const WORKERS: usize = 8;
const ENTRIES: usize = 500;
const ROLE: &str = "SWITCHBOARD_AUDIT_TEST_ROLE";
const PATH: &str = "SWITCHBOARD_AUDIT_TEST_PATH";

#[tokio::test]
async fn processes_that_write_at_once_lose_nothing() {
    if let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(PATH)) {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::new(path));
        let audit = Audit::start(store, KEEP, &role);
        for number in 0..ENTRIES {
            audit.record(change(format!("{role}-{number}")));
            if number % 50 == 0 {
                audit.flush().await;
            }
        }
        audit.close().await;
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.db");
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            std::process::Command::new(std::env::current_exe().expect("a program"))
                .args(["--exact", "processes_that_write_at_once_lose_nothing"])
                .env(ROLE, format!("worker{worker}"))
                .env(PATH, &path)
                .stdout(std::process::Stdio::null())
                .spawn()
                .expect("a worker")
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().expect("an end").success());
    }
    let store = SqliteStore::new(&path);
    let found = entries(&store).await;
    for worker in 0..WORKERS {
        let prefix = format!("worker{worker}-");
        let own: Vec<&str> = abouts(&found)
            .into_iter()
            .filter(|about| about.starts_with(&prefix))
            .collect();
        let wanted: Vec<String> = (0..ENTRIES)
            .map(|number| format!("{prefix}{number}"))
            .collect();
        assert_eq!(own, wanted);
    }
    let filter = Filter {
        limit: 3,
        ..Filter::default()
    };
    let newest = read(&filter, |query| store.read_log_blocking(LOG, query)).expect("a log");
    let newest: Vec<&Value> = newest.iter().map(|found| &found.entry).collect();
    assert_eq!(newest, found.iter().rev().take(3).rev().collect::<Vec<_>>());
}
