//! A store on which every operation fails at once, with the reason the real one could not be opened.
//!
//! It prevents callers from taking a broken store for an empty one: security features (pins, the audit log) fail closed
//! on it, and caches are skipped.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::{
    Expected, Key, Listing, LogEntry, LogQuery, Logged, Record, Retention, Revision, Space, Store,
    StoreError, Write,
};

/// Fails every operation with the error it was created with.
#[derive(Debug, Clone)]
pub struct UnavailableStore(StoreError);

impl UnavailableStore {
    /// Fails every operation with this error.
    pub fn new(error: StoreError) -> Self {
        Self(error)
    }

    fn fail<T: Send + 'static>(&self) -> BoxFuture<'_, Result<T, StoreError>> {
        ready(Err(self.0.clone())).boxed()
    }
}

impl Store for UnavailableStore {
    fn get<'a>(
        &'a self,
        _: Space,
        _: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.fail()
    }

    fn get_many<'a>(
        &'a self,
        _: Space,
        _: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.fail()
    }

    fn list<'a>(
        &'a self,
        _: Space,
        _: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Listing, StoreError>> {
        self.fail()
    }

    fn put<'a>(
        &'a self,
        _: Space,
        _: &'a Key,
        _: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        self.fail()
    }

    fn remove<'a>(
        &'a self,
        _: Space,
        _: &'a Key,
        _: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.fail()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.fail()
    }

    fn append(
        &self,
        _: Space,
        _: Vec<LogEntry>,
        _: Retention,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.fail()
    }

    fn read_log(&self, _: Space, _: LogQuery) -> BoxFuture<'_, Result<Vec<Logged>, StoreError>> {
        self.fail()
    }
}
