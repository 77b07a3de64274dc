//! The store of a program whose real one cannot be used: every operation fails, at once and with the same reason.
//!
//! It exists so that no caller takes a broken store for an empty one. What protects (pins, the audit log) fails closed
//! on it, and what is a convenience (caches) goes on without.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use crate::{
    Expected, Key, Listing, LogEntry, LogQuery, Logged, Record, Retention, Revision, Space, Store,
    StoreError, Write,
};

/// A store that cannot be used, and why.
#[derive(Debug, Clone)]
pub struct UnavailableStore(StoreError);

impl UnavailableStore {
    /// A store that fails with this error, whatever is asked of it.
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
