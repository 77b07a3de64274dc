//! An in-memory store, for tests and embedders. It passes the same conformance tests as the SQLite store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::log::check_sizes;
use crate::{
    Clock, Expected, Key, Listing, LogEntry, LogQuery, Logged, PAGE_ENTRIES, Record, Retention,
    Revision, Space, Store, StoreError, Summary, SystemClock, Timestamp, Write,
};

/// An in-memory store, dropped with its last handle. Clones share their records.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// Creates an empty store that uses the system clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// Creates an empty store that uses `clock`.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Arc::default(),
            clock,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic is possible in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn get<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        let record = self.state().get(space, key, self.clock.now()).cloned();
        ready(Ok(record)).boxed()
    }

    fn get_many<'a>(
        &'a self,
        space: Space,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        let now = self.clock.now();
        let state = self.state();
        let records = keys
            .iter()
            .map(|key| state.get(space, key, now).cloned())
            .collect();
        ready(Ok(records)).boxed()
    }

    fn list<'a>(
        &'a self,
        space: Space,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Listing, StoreError>> {
        let listing = self.state().list(space, after, self.clock.now());
        ready(Ok(listing)).boxed()
    }

    fn put<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        write: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        let result = self.state().put(space, key, write, self.clock.now());
        ready(result).boxed()
    }

    fn remove<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        expected: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let result = self.state().remove(space, key, expected, self.clock.now());
        ready(result).boxed()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let swept = self.state().sweep(self.clock.now());
        ready(Ok(swept)).boxed()
    }

    fn append(
        &self,
        log: Space,
        entries: Vec<LogEntry>,
        keep: Retention,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let added = check_sizes(&entries)
            .map(|()| self.state().append(log, entries, keep, self.clock.now()));
        ready(added).boxed()
    }

    fn read_log(
        &self,
        log: Space,
        query: LogQuery,
    ) -> BoxFuture<'_, Result<Vec<Logged>, StoreError>> {
        let entries = self.state().read_log(log, query);
        ready(Ok(entries)).boxed()
    }
}

#[derive(Debug, Default)]
struct State {
    spaces: BTreeMap<Space, BTreeMap<Key, Record>>,
    /// Expiry times in order, so that a sweep only touches expired records.
    ends: BTreeSet<(Timestamp, Space, Key)>,
    latest: i64,
    logs: BTreeMap<Space, Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Logged>,
    bytes: u64,
    latest: i64,
}

impl Log {
    fn drop_first(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes = self.bytes.saturating_sub(entry.value.len() as u64);
        }
    }
}

impl State {
    fn append(&mut self, space: Space, entries: Vec<LogEntry>, keep: Retention, now: Timestamp) {
        let log = self.logs.entry(space).or_default();
        for LogEntry { at, value } in entries {
            log.latest += 1;
            log.bytes += value.len() as u64;
            log.entries.push_back(Logged {
                number: log.latest,
                at,
                value,
            });
        }
        let oldest = now.before(keep.max_age);
        let is_old = |log: &Log| log.entries.front().is_some_and(|entry| entry.at < oldest);
        while is_old(log) || (log.bytes > keep.max_bytes && !log.entries.is_empty()) {
            log.drop_first();
        }
    }

    fn read_log(&self, space: Space, query: LogQuery) -> Vec<Logged> {
        let Some(log) = self.logs.get(&space) else {
            return Vec::new();
        };
        let wanted = |entry: &&Logged| {
            query.before.is_none_or(|before| entry.number < before)
                && query.since.is_none_or(|since| entry.at >= since)
        };
        let newest = log.entries.iter().rev().filter(wanted);
        newest.take(query.page()).cloned().collect()
    }

    fn get(&self, space: Space, key: &Key, now: Timestamp) -> Option<&Record> {
        self.spaces
            .get(&space)?
            .get(key)
            .filter(|record| is_alive(record, now))
    }

    fn list(&self, space: Space, after: Option<&Key>, now: Timestamp) -> Listing {
        let Some(records) = self.spaces.get(&space) else {
            return Listing::default();
        };
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut alive = records
            .range::<Key, _>((start, Bound::Unbounded))
            .filter(|(_, record)| is_alive(record, now));
        let entries = alive.by_ref().take(PAGE_ENTRIES).map(summary).collect();
        Listing {
            entries,
            more: alive.next().is_some(),
        }
    }

    fn put(
        &mut self,
        space: Space,
        key: &Key,
        write: Write,
        now: Timestamp,
    ) -> Result<Revision, StoreError> {
        write.check_size()?;
        self.sweep(now);
        write
            .expected
            .check(self.get(space, key, now).map(|record| record.revision))?;
        self.take(space, key);
        self.latest += 1;
        let record = Record {
            value: write.value,
            revision: Revision(self.latest),
            written_at: now,
            expires_at: write.expires_at,
        };
        if let Some(end) = write.expires_at {
            self.ends.insert((end, space, key.clone()));
        }
        self.spaces
            .entry(space)
            .or_default()
            .insert(key.clone(), record);
        Ok(Revision(self.latest))
    }

    fn remove(
        &mut self,
        space: Space,
        key: &Key,
        expected: Expected,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let current = self.get(space, key, now).map(|record| record.revision);
        expected.check(current)?;
        self.take(space, key);
        Ok(current.is_some())
    }

    fn sweep(&mut self, now: Timestamp) -> u64 {
        let mut swept = 0;
        while let Some((end, _, _)) = self.ends.first() {
            if now < *end {
                break;
            }
            if let Some((_, space, key)) = self.ends.pop_first() {
                self.take(space, &key);
                swept += 1;
            }
        }
        swept
    }

    /// Removes a record, expired or not.
    fn take(&mut self, space: Space, key: &Key) {
        let Some(record) = self
            .spaces
            .get_mut(&space)
            .and_then(|records| records.remove(key))
        else {
            return;
        };
        if let Some(end) = record.expires_at {
            self.ends.remove(&(end, space, key.clone()));
        }
    }
}

fn is_alive(record: &Record, now: Timestamp) -> bool {
    record.expires_at.is_none_or(|end| now < end)
}

fn summary((key, record): (&Key, &Record)) -> Summary {
    Summary {
        key: key.clone(),
        size: record.value.len() as u64,
        revision: record.revision,
        written_at: record.written_at,
        expires_at: record.expires_at,
    }
}
