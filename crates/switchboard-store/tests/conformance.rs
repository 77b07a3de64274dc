//! Conformance tests that every store must pass.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use switchboard_store::{
    Clock, ErrorKind, Expected, Key, LOG_PAGE_ENTRIES, Listing, LogEntry, LogQuery,
    MAX_ENTRY_BYTES, MAX_VALUE_BYTES, MemoryStore, PAGE_ENTRIES, Record, Retention, Space, Store,
    Summary, Timestamp, Write, update,
};

const FRUIT: Space = Space::new("fruit");
const STONE: Space = Space::new("stone");

#[tokio::test]
async fn memory_store_conforms() {
    conforms(|clock| Arc::new(MemoryStore::with_clock(clock))).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn sqlite_store_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let made = AtomicI64::new(0);
    conforms(|clock| {
        let name = format!("{}/state.db", made.fetch_add(1, Ordering::Relaxed));
        let settings = switchboard_store::SqliteSettings {
            clock,
            ..Default::default()
        };
        let store =
            switchboard_store::SqliteStore::with_settings(folder.path().join(name), settings);
        Arc::new(store)
    })
    .await;
}

/// Runs every case against its own store.
async fn conforms(make: impl Fn(Arc<ManualClock>) -> Arc<dyn Store>) {
    let fresh = || {
        let clock = Arc::new(ManualClock(AtomicI64::new(1000)));
        Context {
            store: make(Arc::clone(&clock)),
            clock,
        }
    };
    an_empty_store_answers(fresh()).await;
    a_written_record_is_read_back(fresh()).await;
    values_of_every_size_survive(fresh()).await;
    odd_keys_are_keys(fresh()).await;
    spaces_are_independent(fresh()).await;
    revisions_only_grow(fresh()).await;
    preconditions_are_checked(fresh()).await;
    removal_has_conditions_too(fresh()).await;
    many_are_read_in_the_order_asked(fresh()).await;
    lists_come_in_order_and_in_pages(fresh()).await;
    records_expire_on_time(fresh()).await;
    an_end_can_be_moved_and_taken_back(fresh()).await;
    a_record_past_its_end_counts_as_absent(fresh()).await;
    sweeping_drops_what_has_ended_and_nothing_else(fresh()).await;
    updates_at_the_same_time_lose_nothing(fresh()).await;
    an_update_may_decline(fresh()).await;
    a_log_is_read_from_its_newest_entry_on(fresh()).await;
    a_log_is_bounded_by_age_and_by_size(fresh()).await;
    an_entry_too_large_leaves_a_log_as_it_was(fresh()).await;
}

const KEEP: Retention = Retention {
    max_age: Duration::from_secs(100),
    max_bytes: 1 << 30,
};

fn entry(at: i64, text: &str) -> LogEntry {
    LogEntry {
        at: Timestamp::from_millis(at),
        value: Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// The texts of a log's entries, newest first.
async fn texts(store: &dyn Store, log: Space, query: LogQuery) -> Vec<String> {
    let entries = store.read_log(log, query).await.unwrap();
    assert!(entries.is_sorted_by(|first, second| first.number > second.number));
    entries
        .iter()
        .map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
        .collect()
}

async fn a_log_is_read_from_its_newest_entry_on(Context { store, .. }: Context) {
    let all = LogQuery::default();
    assert_eq!(texts(&*store, FRUIT, all).await, Vec::<String>::new());
    let entries = vec![entry(1000, "a"), entry(2000, "b"), entry(1500, "c")];
    store.append(FRUIT, entries, KEEP).await.unwrap();
    let stone = vec![entry(1000, "s")];
    store.append(STONE, stone, KEEP).await.unwrap();
    assert_eq!(texts(&*store, FRUIT, all).await, ["c", "b", "a"]);
    assert_eq!(texts(&*store, STONE, all).await, ["s"]);
    let since = LogQuery {
        since: Some(Timestamp::from_millis(1500)),
        ..all
    };
    assert_eq!(texts(&*store, FRUIT, since).await, ["c", "b"]);
    let first = LogQuery {
        limit: Some(1),
        ..all
    };
    let newest = store.read_log(FRUIT, first).await.unwrap();
    let rest = LogQuery {
        before: newest.last().map(|entry| entry.number),
        ..all
    };
    assert_eq!(texts(&*store, FRUIT, rest).await, ["b", "a"]);

    let many = (0..=LOG_PAGE_ENTRIES).map(|_| entry(3000, "m")).collect();
    store.append(FRUIT, many, KEEP).await.unwrap();
    assert_eq!(texts(&*store, FRUIT, all).await.len(), LOG_PAGE_ENTRIES);
}

async fn a_log_is_bounded_by_age_and_by_size(Context { store, clock }: Context) {
    let all = LogQuery::default();
    let old = vec![entry(1000, "old"), entry(60_000, "young")];
    store.append(FRUIT, old, KEEP).await.unwrap();
    clock.0.store(101_001, Ordering::Relaxed);
    store.append(FRUIT, vec![], KEEP).await.unwrap();
    assert_eq!(texts(&*store, FRUIT, all).await, ["young"]);

    // The clock of another process may be behind.
    let small = Retention {
        max_bytes: 10,
        ..KEEP
    };
    let more = vec![entry(100_000, "1234"), entry(99_000, "5678")];
    store.append(FRUIT, more, small).await.unwrap();
    assert_eq!(texts(&*store, FRUIT, all).await, ["5678", "1234"]);
    let large = vec![entry(100_000, "more than all")];
    store.append(FRUIT, large, small).await.unwrap();
    assert_eq!(texts(&*store, FRUIT, all).await, Vec::<String>::new());
    let number = |entries: Vec<switchboard_store::Logged>| entries[0].number;
    store
        .append(FRUIT, vec![entry(100_000, "x")], small)
        .await
        .unwrap();
    let before = number(store.read_log(FRUIT, all).await.unwrap());
    let none = Retention {
        max_bytes: 0,
        ..KEEP
    };
    store
        .append(FRUIT, vec![entry(100_000, "y")], none)
        .await
        .unwrap();
    store
        .append(FRUIT, vec![entry(100_000, "z")], small)
        .await
        .unwrap();
    assert!(number(store.read_log(FRUIT, all).await.unwrap()) > before);
}

async fn an_entry_too_large_leaves_a_log_as_it_was(Context { store, .. }: Context) {
    let large = "x".repeat(MAX_ENTRY_BYTES + 1);
    let entries = vec![entry(1000, "a"), entry(1000, &large)];
    let error = store.append(FRUIT, entries, KEEP).await.unwrap_err();
    let size = large.len() as u64;
    assert_eq!(error.kind, ErrorKind::TooLarge { size });
    let none = texts(&*store, FRUIT, LogQuery::default()).await;
    assert_eq!(none, Vec::<String>::new());
}

async fn an_empty_store_answers(Context { store, .. }: Context) {
    assert_eq!(store.get(FRUIT, &key("apple")).await, Ok(None));
    assert_eq!(store.get_many(FRUIT, &[]).await, Ok(vec![]));
    assert_eq!(
        store.get_many(FRUIT, &[key("a"), key("b")]).await,
        Ok(vec![None, None])
    );
    assert_eq!(store.list(FRUIT, None).await, Ok(Listing::default()));
    assert_eq!(
        store.remove(FRUIT, &key("apple"), Expected::Anything).await,
        Ok(false)
    );
    assert_eq!(
        store.remove(FRUIT, &key("apple"), Expected::Absent).await,
        Ok(false)
    );
    assert_eq!(store.sweep().await, Ok(0));
}

async fn a_written_record_is_read_back(Context { store, clock }: Context) {
    clock.set(1234);
    let revision = store
        .put(FRUIT, &key("apple"), Write::new("red").expires_at(at(5000)))
        .await
        .unwrap();
    clock.set(2000);
    let expected = Record {
        value: Bytes::from("red"),
        revision,
        written_at: at(1234),
        expires_at: Some(at(5000)),
    };
    assert_eq!(store.get(FRUIT, &key("apple")).await, Ok(Some(expected)));

    let revision = store
        .put(FRUIT, &key("apple"), Write::new("green"))
        .await
        .unwrap();
    let expected = Record {
        value: Bytes::from("green"),
        revision,
        written_at: at(2000),
        expires_at: None,
    };
    assert_eq!(store.get(FRUIT, &key("apple")).await, Ok(Some(expected)));
}

async fn values_of_every_size_survive(Context { store, .. }: Context) {
    for size in [0, 1, 4095, 4096, 4097, 1_000_000, MAX_VALUE_BYTES] {
        let value: Bytes = (0..=250).cycle().take(size).collect();
        store
            .put(FRUIT, &key("melon"), Write::new(value.clone()))
            .await
            .unwrap();
        let record = store.get(FRUIT, &key("melon")).await.unwrap().unwrap();
        assert!(record.value == value, "{size} bytes came back different");
    }
    let before = store.get(FRUIT, &key("melon")).await;
    let size = MAX_VALUE_BYTES + 1;
    let error = store
        .put(FRUIT, &key("melon"), Write::new(vec![0; size]))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge { size: size as u64 });
    assert!(
        store.get(FRUIT, &key("melon")).await == before,
        "a refused value changed the record"
    );
}

async fn odd_keys_are_keys(Context { store, .. }: Context) {
    let names = [
        "a",
        "A",
        "ä",
        "a'; drop table record; --",
        "%",
        "a\nb",
        " ",
        "☎",
        "../../x",
        &"k".repeat(1024),
    ];
    for name in names {
        store
            .put(FRUIT, &key(name), Write::new(name.to_owned()))
            .await
            .unwrap();
    }
    for name in names {
        let record = store.get(FRUIT, &key(name)).await.unwrap().unwrap();
        assert_eq!(record.value, name);
    }
}

async fn spaces_are_independent(Context { store, .. }: Context) {
    store
        .put(FRUIT, &key("a"), Write::new("fruit"))
        .await
        .unwrap();
    store
        .put(STONE, &key("a"), Write::new("stone"))
        .await
        .unwrap();
    assert_eq!(value(&*store, FRUIT, "a").await.unwrap(), "fruit");
    assert_eq!(
        store.remove(FRUIT, &key("a"), Expected::Anything).await,
        Ok(true)
    );
    assert_eq!(value(&*store, FRUIT, "a").await, None);
    assert_eq!(value(&*store, STONE, "a").await.unwrap(), "stone");
}

async fn revisions_only_grow(Context { store, .. }: Context) {
    let first = store.put(FRUIT, &key("a"), Write::new("1")).await.unwrap();
    let second = store.put(FRUIT, &key("b"), Write::new("2")).await.unwrap();
    store
        .remove(FRUIT, &key("a"), Expected::Anything)
        .await
        .unwrap();
    let third = store.put(FRUIT, &key("a"), Write::new("1")).await.unwrap();
    assert!(
        first < second && second < third,
        "{first:?} {second:?} {third:?}"
    );
}

async fn preconditions_are_checked(Context { store, .. }: Context) {
    let apple = key("apple");
    let put = |value: &'static str, expected| {
        store.put(FRUIT, &apple, Write::new(value).expecting(expected))
    };

    let first = put("1", Expected::Absent).await.unwrap();
    let conflict = ErrorKind::Conflict {
        current: Some(first),
    };
    assert_eq!(put("2", Expected::Absent).await.unwrap_err().kind, conflict);

    let second = put("2", Expected::Revision(first)).await.unwrap();
    let conflict = ErrorKind::Conflict {
        current: Some(second),
    };
    assert_eq!(
        put("3", Expected::Revision(first)).await.unwrap_err().kind,
        conflict
    );
    assert_eq!(value(&*store, FRUIT, "apple").await.unwrap(), "2");

    // A record that was removed and written again has another revision, even with the same value.
    store
        .remove(FRUIT, &apple, Expected::Anything)
        .await
        .unwrap();
    let conflict = ErrorKind::Conflict { current: None };
    assert_eq!(
        put("2", Expected::Revision(second)).await.unwrap_err().kind,
        conflict
    );
    let third = put("2", Expected::Anything).await.unwrap();
    let conflict = ErrorKind::Conflict {
        current: Some(third),
    };
    assert_eq!(
        put("4", Expected::Revision(second)).await.unwrap_err().kind,
        conflict
    );
}

async fn removal_has_conditions_too(Context { store, .. }: Context) {
    let apple = key("apple");
    let remove = |expected| store.remove(FRUIT, &apple, expected);
    let first = store.put(FRUIT, &apple, Write::new("1")).await.unwrap();
    let second = store.put(FRUIT, &apple, Write::new("2")).await.unwrap();
    let conflict = ErrorKind::Conflict {
        current: Some(second),
    };
    assert_eq!(remove(Expected::Absent).await.unwrap_err().kind, conflict);
    assert_eq!(
        remove(Expected::Revision(first)).await.unwrap_err().kind,
        conflict
    );
    assert_eq!(value(&*store, FRUIT, "apple").await.unwrap(), "2");
    assert_eq!(remove(Expected::Revision(second)).await, Ok(true));
    let conflict = ErrorKind::Conflict { current: None };
    assert_eq!(
        remove(Expected::Revision(second)).await.unwrap_err().kind,
        conflict
    );
}

async fn many_are_read_in_the_order_asked(Context { store, .. }: Context) {
    for name in ["a", "b", "c"] {
        store
            .put(FRUIT, &key(name), Write::new(name.to_owned()))
            .await
            .unwrap();
    }
    let records = store
        .get_many(FRUIT, &[key("c"), key("x"), key("a"), key("c")])
        .await
        .unwrap();
    let values: Vec<_> = records
        .into_iter()
        .map(|record| record.map(|record| record.value))
        .collect();
    assert_eq!(
        values,
        [Some("c".into()), None, Some("a".into()), Some("c".into())]
    );
}

async fn lists_come_in_order_and_in_pages(Context { store, clock }: Context) {
    let revision = store
        .put(STONE, &key("x"), Write::new("four").expires_at(at(9000)))
        .await
        .unwrap();
    let expected = Listing {
        entries: vec![Summary {
            key: key("x"),
            size: 4,
            revision,
            written_at: at(1000),
            expires_at: Some(at(9000)),
        }],
        more: false,
    };
    assert_eq!(store.list(STONE, None).await, Ok(expected));
    assert_eq!(
        store.list(STONE, Some(&key("x"))).await,
        Ok(Listing::default())
    );

    let count = PAGE_ENTRIES + 2;
    for number in (0..count).rev() {
        store
            .put(FRUIT, &key(&format!("{number:05}")), Write::new(""))
            .await
            .unwrap();
    }
    store
        .put(FRUIT, &key("gone"), Write::new("").expires_at(at(2000)))
        .await
        .unwrap();
    clock.set(2000);
    let first = store.list(FRUIT, None).await.unwrap();
    assert!(first.more);
    assert_eq!(first.entries.len(), PAGE_ENTRIES);
    let second = store
        .list(FRUIT, first.entries.last().map(|entry| &entry.key))
        .await
        .unwrap();
    assert!(!second.more);
    let names: Vec<_> = [first.entries, second.entries]
        .concat()
        .into_iter()
        .map(|entry| entry.key)
        .collect();
    let expected: Vec<_> = (0..count)
        .map(|number| key(&format!("{number:05}")))
        .collect();
    assert_eq!(names, expected);
}

async fn records_expire_on_time(Context { store, clock }: Context) {
    store
        .put(FRUIT, &key("a"), Write::new("1").expires_at(at(2000)))
        .await
        .unwrap();
    clock.set(1999);
    assert_eq!(value(&*store, FRUIT, "a").await.unwrap(), "1");
    clock.set(2000);
    assert_eq!(value(&*store, FRUIT, "a").await, None);
    assert_eq!(store.get_many(FRUIT, &[key("a")]).await, Ok(vec![None]));
    assert_eq!(store.list(FRUIT, None).await, Ok(Listing::default()));
    assert_eq!(
        store.remove(FRUIT, &key("a"), Expected::Anything).await,
        Ok(false)
    );
}

async fn an_end_can_be_moved_and_taken_back(Context { store, clock }: Context) {
    for name in ["moved", "taken-back", "kept"] {
        store
            .put(FRUIT, &key(name), Write::new("1").expires_at(at(2000)))
            .await
            .unwrap();
    }
    store
        .put(FRUIT, &key("moved"), Write::new("2").expires_at(at(3000)))
        .await
        .unwrap();
    store
        .put(FRUIT, &key("taken-back"), Write::new("2"))
        .await
        .unwrap();
    clock.set(2000);
    assert_eq!(store.sweep().await, Ok(1));
    assert_eq!(value(&*store, FRUIT, "moved").await.unwrap(), "2");
    clock.set(3000);
    assert_eq!(store.sweep().await, Ok(1));
    assert_eq!(value(&*store, FRUIT, "taken-back").await.unwrap(), "2");
}

async fn a_record_past_its_end_counts_as_absent(Context { store, clock }: Context) {
    let apple = key("apple");
    let old = store
        .put(FRUIT, &apple, Write::new("1").expires_at(at(2000)))
        .await
        .unwrap();
    clock.set(2000);
    let write = Write::new("2").expecting(Expected::Revision(old));
    let conflict = ErrorKind::Conflict { current: None };
    assert_eq!(
        store.put(FRUIT, &apple, write).await.unwrap_err().kind,
        conflict
    );
    let write = Write::new("2").expecting(Expected::Absent);
    assert!(store.put(FRUIT, &apple, write).await.unwrap() > old);
    assert_eq!(value(&*store, FRUIT, "apple").await.unwrap(), "2");
}

async fn sweeping_drops_what_has_ended_and_nothing_else(Context { store, clock }: Context) {
    for (name, end) in [("a", 2000), ("b", 2000), ("c", 3000)] {
        store
            .put(FRUIT, &key(name), Write::new(name).expires_at(at(end)))
            .await
            .unwrap();
    }
    store.put(STONE, &key("d"), Write::new("d")).await.unwrap();
    assert_eq!(store.sweep().await, Ok(0));
    clock.set(2000);
    assert_eq!(store.sweep().await, Ok(2));
    assert_eq!(store.sweep().await, Ok(0));
    clock.set(4000);
    // A write sweeps, too.
    store.put(STONE, &key("e"), Write::new("e")).await.unwrap();
    assert_eq!(store.sweep().await, Ok(0));
    // Swept records stay absent when the clock goes back.
    clock.set(1000);
    assert_eq!(store.list(FRUIT, None).await, Ok(Listing::default()));
    assert_eq!(value(&*store, STONE, "d").await.unwrap(), "d");
}

async fn updates_at_the_same_time_lose_nothing(Context { store, .. }: Context) {
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..10 {
                    update(&*store, FRUIT, &key("count"), |record| {
                        let count: u64 = record.map_or(0, number);
                        Some(Write::new((count + 1).to_string()))
                    })
                    .await
                    .unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let record = store.get(FRUIT, &key("count")).await.unwrap().unwrap();
    assert_eq!(number(&record), 80);
}

async fn an_update_may_decline(Context { store, .. }: Context) {
    assert_eq!(update(&*store, FRUIT, &key("a"), |_| None).await, Ok(None));
    assert_eq!(value(&*store, FRUIT, "a").await, None);
}

struct Context {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

/// A clock that only advances when set.
#[derive(Debug)]
struct ManualClock(AtomicI64);

impl ManualClock {
    fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        at(self.0.load(Ordering::Relaxed))
    }
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn number(record: &Record) -> u64 {
    std::str::from_utf8(&record.value).unwrap().parse().unwrap()
}

async fn value(store: &dyn Store, space: Space, name: &str) -> Option<Bytes> {
    store
        .get(space, &key(name))
        .await
        .unwrap()
        .map(|record| record.value)
}
