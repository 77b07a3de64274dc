//! The [`Store`] trait, and [`update`], a read-modify-write on top of it.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::{
    ErrorKind, Expected, Key, Listing, LogEntry, LogQuery, Logged, Record, Retention, Revision,
    Space, StoreError, Write,
};

/// Durable records, shared by every process that opens the same store.
///
/// Operations are atomic, and each sees all that completed before it started. Dropping a future does not undo its
/// change, which may still happen. Every operation has a timeout: a store that cannot be reached returns an error.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Reads one record; `None` if it does not exist or has expired.
    fn get<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// Reads several records from one snapshot, in the order of `keys`.
    fn get_many<'a>(
        &'a self,
        space: Space,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>>;

    /// Lists the records of a space, one page at a time, starting after the given key.
    fn list<'a>(
        &'a self,
        space: Space,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Listing, StoreError>>;

    /// Writes one record and drops expired ones.
    fn put<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        write: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>>;

    /// Removes one record; returns whether it existed.
    fn remove<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        expected: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Drops expired records and returns their number. Every [`put`](Store::put) does this too.
    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Appends entries to a log atomically, in this order, then drops those over the retention limits.
    fn append(
        &self,
        log: Space,
        entries: Vec<LogEntry>,
        keep: Retention,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let _ = (log, entries, keep);
        ready(Err(no_logs())).boxed()
    }

    /// Reads a log, newest entries first.
    fn read_log(
        &self,
        log: Space,
        query: LogQuery,
    ) -> BoxFuture<'_, Result<Vec<Logged>, StoreError>> {
        let _ = (log, query);
        ready(Err(no_logs())).boxed()
    }
}

fn no_logs() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "this store does not support logs")
}

/// Changes one record without losing concurrent writes (optimistic concurrency).
///
/// `change` gets the current record and returns the new one, or `None` to leave it. It is called again after each
/// conflict. Every conflict means that another writer has made progress, so there are at most as many retries as other
/// writes; drop the future to give up.
pub async fn update<Change>(
    store: &dyn Store,
    space: Space,
    key: &Key,
    mut change: Change,
) -> Result<Option<Revision>, StoreError>
where
    Change: FnMut(Option<&Record>) -> Option<Write> + Send,
{
    loop {
        let record = store.get(space, key).await?;
        let Some(write) = change(record.as_ref()) else {
            return Ok(None);
        };
        let write = write.expecting(Expected::seen(record.as_ref()));
        match store.put(space, key, write).await {
            Err(StoreError {
                kind: ErrorKind::Conflict { .. },
                ..
            }) => {}
            other => return other.map(Some),
        }
    }
}
