//! Durable records behind one trait: bytes under a [`Space`] and a [`Key`], with a revision and an optional expiry, in
//! memory or in `SQLite`. Switchboard keeps its pins, caches, sessions and audit log in it; it is independent of MCP.
//!
//! Several processes may use one store at once: a write can depend on the revision its author has seen, and [`update`]
//! changes a record without losing another writer's change. Logs are append-only, bounded by age and size, and read from
//! the newest entry on.
//!
//! | where | what |
//! |---|---|
//! | [`Store`], [`update`] | the trait, and changing one record |
//! | [`MemoryStore`] | a store in this process, for tests and for programs that want no file |
//! | [`SqliteStore`] | one file, shared by all processes of a user (feature `sqlite`, on by default) |
//! | [`UnavailableStore`] | a store that could not be opened: every operation fails with the reason |
//! | [`Record`], [`Write`], [`LogEntry`] | what is read and written |
//! | [`Clock`] | the time, which a test replaces |

mod error;
mod log;
mod memory;
mod name;
mod record;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod time;
mod unavailable;

pub use error::{ErrorKind, StoreError};
pub use log::{LOG_PAGE_ENTRIES, LogEntry, LogQuery, Logged, MAX_ENTRY_BYTES, Retention};
pub use memory::MemoryStore;
pub use name::{Key, MAX_KEY_BYTES, Space};
pub use record::{
    Expected, Listing, MAX_VALUE_BYTES, PAGE_ENTRIES, Record, Revision, Summary, Write,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSettings, SqliteStore};
pub use store::{Store, update};
pub use time::{Clock, SystemClock, Timestamp};
pub use unavailable::UnavailableStore;
