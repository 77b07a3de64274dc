//! The SQLite store: shared by several processes, and with unusable files.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod processes;
mod support;
