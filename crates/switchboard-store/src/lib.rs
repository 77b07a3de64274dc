//! Durable state behind one trait.
//!
//! A [`Store`] keeps *records*: bytes under a [`Space`] and a [`Key`], each with a revision, the time it was written
//! and, if wanted, the time it ends. What the bytes mean is the caller's business; this crate knows nothing of MCP.
//! Several processes may use one store at once: a write can be made to depend on the revision its author has seen,
//! and [`update`] turns that into "change this record" with nothing lost.
//!
//! Beside records it keeps *logs*: entries that are only added, bounded by age and size, and read from the newest on.
//!
//! - [`MemoryStore`] keeps everything in this process, for tests and for embedders that want no file.
//! - [`SqliteStore`] (feature `sqlite`, on by default) keeps it in one file, shared by all processes of a person.
//! - [`UnavailableStore`] stands for one that cannot be used: every operation fails with the reason.
//!
//! Time comes from one [`Clock`], which a test replaces.

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
