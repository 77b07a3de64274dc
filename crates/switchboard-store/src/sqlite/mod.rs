//! The SQLite store: records and logs in one file.
//!
//! Owns this process's only connection, opened on first use; reads do not create the file. SQLite blocks, so operations
//! run on a blocking thread, one at a time. [`file`] handles the file system, [`migrate`] the schema, [`records`] the
//! SQL.

mod failure;
mod file;
mod log;
mod migrate;
mod records;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::log::check_sizes;
use crate::{
    Clock, ErrorKind, Expected, Key, Listing, LogEntry, LogQuery, Logged, Record, Retention,
    Revision, Space, Store, StoreError, SystemClock, Write,
};

/// A store in a SQLite file that any number of processes can share. Clones share one connection.
///
/// Its futures need a tokio runtime; programs without one can use [`SqliteStore::get_many_blocking`].
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
    /// Limits operations to one blocking thread; the others wait without one.
    turn: Arc<Semaphore>,
}

impl SqliteStore {
    /// A store in this file, which is neither opened nor created before the first use.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::with_settings(path, SqliteSettings::default())
    }

    /// The same with settings.
    pub fn with_settings(path: impl Into<PathBuf>, settings: SqliteSettings) -> Self {
        Self {
            shared: Arc::new(Shared {
                path: path.into(),
                settings,
                connection: Mutex::new(None),
                is_held: AtomicBool::new(false),
            }),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Path of the database file.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Reads several records like [`Store::get_many`], on this thread.
    ///
    /// For short-lived programs that only read: it avoids starting a thread. Do not call it from async code.
    pub fn get_many_blocking(
        &self,
        space: Space,
        keys: &[Key],
    ) -> Result<Vec<Option<Record>>, StoreError> {
        self.shared.get_many(space, keys)
    }

    /// Appends to a log like [`Store::append`], on this thread.
    pub fn append_blocking(
        &self,
        log: Space,
        entries: &[LogEntry],
        keep: Retention,
    ) -> Result<(), StoreError> {
        self.shared.append(log, entries, keep)
    }

    /// Reads a log like [`Store::read_log`], on this thread.
    pub fn read_log_blocking(
        &self,
        log: Space,
        query: LogQuery,
    ) -> Result<Vec<Logged>, StoreError> {
        self.shared.read_log(log, query)
    }

    /// Runs an operation on a blocking thread, after those before it.
    fn run<Output, Operation>(
        &self,
        operation: Operation,
    ) -> BoxFuture<'static, Result<Output, StoreError>>
    where
        Output: Send + 'static,
        Operation: FnOnce(&Shared) -> Result<Output, StoreError> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let turn = Arc::clone(&self.turn);
        async move {
            let lost = |why: &str| StoreError::new(ErrorKind::Unavailable, why).at(&shared.path);
            let runtime =
                Handle::try_current().map_err(|_| lost("no tokio runtime in this context"))?;
            let permit = turn
                .acquire_owned()
                .await
                .map_err(|_| lost("the store is closed"))?;
            let job = Arc::clone(&shared);
            // The operation holds the permit, because it continues even if its future is dropped.
            let outcome = runtime.spawn_blocking(move || {
                let outcome = operation(&job);
                drop(permit);
                outcome
            });
            outcome
                .await
                .map_err(|_| lost("the operation panicked or was aborted"))?
        }
        .boxed()
    }
}

/// Settings of a [`SqliteStore`].
#[derive(Debug, Clone)]
pub struct SqliteSettings {
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// How long a write waits for the lock of another process. After a timeout, further writes wait less until one
    /// succeeds. Reads never wait for a writer.
    pub patience: Duration,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            patience: Duration::from_secs(10),
        }
    }
}

impl Store for SqliteStore {
    fn get<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        let key = key.clone();
        self.run(move |shared| Ok(shared.get_many(space, &[key])?.pop().flatten()))
    }

    fn get_many<'a>(
        &'a self,
        space: Space,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        let keys = keys.to_vec();
        self.run(move |shared| shared.get_many(space, &keys))
    }

    fn list<'a>(
        &'a self,
        space: Space,
        after: Option<&'a Key>,
    ) -> BoxFuture<'a, Result<Listing, StoreError>> {
        let after = after.cloned();
        self.run(move |shared| {
            let listing = shared.existing(|connection, clock| {
                records::list(connection, clock, space, after.as_ref())
            });
            Ok(listing?.unwrap_or_default())
        })
    }

    fn put<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        write: Write,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        let key = key.clone();
        self.run(move |shared| {
            write.check_size()?;
            shared.created(|connection, clock| records::put(connection, clock, space, &key, &write))
        })
    }

    fn remove<'a>(
        &'a self,
        space: Space,
        key: &'a Key,
        expected: Expected,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let key = key.clone();
        self.run(move |shared| {
            let removed = shared.existing(|connection, clock| {
                records::remove(connection, clock, space, &key, expected)
            })?;
            match removed {
                Some(removed) => Ok(removed),
                None => expected.check(None).map(|()| false),
            }
        })
    }

    fn sweep(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.run(|shared| Ok(shared.existing(records::sweep)?.unwrap_or(0)))
    }

    fn append(
        &self,
        log: Space,
        entries: Vec<LogEntry>,
        keep: Retention,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.run(move |shared| shared.append(log, &entries, keep))
    }

    fn read_log(
        &self,
        log: Space,
        query: LogQuery,
    ) -> BoxFuture<'_, Result<Vec<Logged>, StoreError>> {
        self.run(move |shared| shared.read_log(log, query))
    }
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    settings: SqliteSettings,
    /// The open connection; `None` while an operation uses it, and after a failure.
    connection: Mutex<Option<Connection>>,
    /// Whether an operation timed out waiting for another process, and no write has succeeded since.
    is_held: AtomicBool,
}

/// After a timeout, operations wait only this fraction of the time, so that a command that needs the file ten times
/// does not wait ten times.
const IMPATIENT: u32 = 40;

impl Shared {
    fn get_many(&self, space: Space, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let records =
            self.existing(|connection, clock| records::get_many(connection, clock, space, keys))?;
        Ok(records.unwrap_or_else(|| vec![None; keys.len()]))
    }

    fn append(
        &self,
        space: Space,
        entries: &[LogEntry],
        keep: Retention,
    ) -> Result<(), StoreError> {
        check_sizes(entries)?;
        self.created(|connection, clock| log::append(connection, clock, space, entries, keep))
    }

    fn read_log(&self, space: Space, query: LogQuery) -> Result<Vec<Logged>, StoreError> {
        let entries = self.existing(|connection, _| log::read(connection, space, query))?;
        Ok(entries.unwrap_or_default())
    }

    /// Runs an operation on the file if it exists.
    fn existing<Output>(
        &self,
        operation: impl FnOnce(&mut Connection, &dyn Clock) -> Result<Output, StoreError>,
    ) -> Result<Option<Output>, StoreError> {
        self.with_connection(file::open, operation)
    }

    /// Runs an operation on the file, creating it if necessary.
    fn created<Output>(
        &self,
        operation: impl FnOnce(&mut Connection, &dyn Clock) -> Result<Output, StoreError>,
    ) -> Result<Output, StoreError> {
        let open = |path: &Path, patience| file::open_or_create(path, patience).map(Some);
        let output = self.with_connection(open, operation)?;
        self.is_held.store(false, Ordering::Relaxed);
        output.ok_or_else(|| {
            StoreError::new(ErrorKind::Unavailable, "the file does not exist").at(&self.path)
        })
    }

    fn with_connection<Output>(
        &self,
        open: impl FnOnce(&Path, Duration) -> Result<Option<Connection>, StoreError>,
        operation: impl FnOnce(&mut Connection, &dyn Clock) -> Result<Output, StoreError>,
    ) -> Result<Option<Output>, StoreError> {
        let outcome = self.on_connection(open, operation);
        if matches!(&outcome, Err(error) if error.kind == ErrorKind::Busy) {
            self.is_held.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn patience(&self) -> Duration {
        let patience = self.settings.patience;
        if self.is_held.load(Ordering::Relaxed) {
            patience / IMPATIENT
        } else {
            patience
        }
    }

    fn on_connection<Output>(
        &self,
        open: impl FnOnce(&Path, Duration) -> Result<Option<Connection>, StoreError>,
        operation: impl FnOnce(&mut Connection, &dyn Clock) -> Result<Output, StoreError>,
    ) -> Result<Option<Output>, StoreError> {
        // The connection is taken out of its slot, so that a panic only closes the file.
        let mut slot = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let connection = match slot.take() {
            Some(connection) => Some(connection),
            None => open(&self.path, self.patience()).map_err(|error| error.at(&self.path))?,
        };
        let Some(mut connection) = connection else {
            return Ok(None);
        };
        connection
            .busy_timeout(self.patience())
            .map_err(|error| failure::translate(error).at(&self.path))?;
        let outcome = operation(&mut connection, &*self.settings.clock);
        // After an error of the file itself, the next operation opens it again.
        let is_reusable = outcome
            .as_ref()
            .map_or_else(|error| is_about_record(error.kind), |_| true);
        if is_reusable {
            *slot = Some(connection);
        }
        outcome.map(Some).map_err(|error| error.at(&self.path))
    }
}

/// Whether an error concerns a record only, so that the connection can be reused.
fn is_about_record(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Conflict { .. } | ErrorKind::TooLarge { .. } | ErrorKind::InvalidKey
    )
}
