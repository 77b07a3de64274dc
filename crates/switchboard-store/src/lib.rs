//! Durable key-value records and append-only logs behind one trait.
//!
//! A [`Store`] holds *records*: bytes under a [`Space`] and a [`Key`], each with a revision, the time it was written
//! and an optional expiry. Values are opaque; this crate does not depend on MCP. Several processes may share a store: a
//! write can require the revision that its author has read, and [`update`] uses that for read-modify-write without lost
//! updates.
//!
//! It also holds *logs*: append-only entries, bounded by age and size, read newest first.
//!
//! - [`MemoryStore`] is in memory, for tests and for embedders without a file.
//! - [`SqliteStore`] (feature `sqlite`, on by default) is one file, shared by all processes of a user.
//! - [`UnavailableStore`] replaces a store that cannot be opened: every operation fails with the reason.
//!
//! The time comes from a [`Clock`], which tests replace.

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
