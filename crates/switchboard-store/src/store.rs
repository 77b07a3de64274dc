//! The trait, and the one algorithm that stands on it.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::{
    ErrorKind, Expected, Key, Listing, LogEntry, LogQuery, Logged, Record, Retention, Revision,
    Space, StoreError, Write,
};

/// Durable records, shared by every process that opens the same store.
///
/// Each operation happens wholly or not at all, and sees every one that ended before it began. A future that is
/// dropped does not take its change back: it may still happen. No operation waits without end: a store that cannot
/// be reached says so.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Reads one record, unless it is past its end.
    fn get<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// Reads several records at one moment; the answer has the order of the question.
    fn get_many<'a>(
        &'a self,
        space: Space,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>>;

    /// Tells which records a space has, a page at a time, beginning after that key.
    fn list<'a>(
        &'a self,
        space: Space,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Listing, StoreError>>;

    /// Writes one record and drops those past their end.
    fn put<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        write: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>>;

    /// Removes one record; tells whether there was one.
    fn remove<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        expected: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Drops every record past its end; tells how many. Every [`put`](Store::put) does this too.
    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Adds entries to a log, in this order and all or none, and drops what is then too old or too much.
    fn append(
        &self,
        log: Space,
        entries: Vec<LogEntry>,
        keep: Retention,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let _ = (log, entries, keep);
        ready(Err(no_logs())).boxed()
    }

    /// Reads a log, the newest entries first.
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
    StoreError::new(ErrorKind::Unavailable, "this store keeps no logs")
}

/// Changes one record so that no other writer's change is lost.
///
/// `change` sees the record and says what to write, or `None` to leave it. It is called again whenever somebody else
/// was faster. Each such round means that another writer has got on, so the rounds are at most as many as there are
/// other writes; a caller for whom that is too long drops the future.
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
