//! The store in a file: shared by processes, and faced with files it cannot use.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod processes;
mod support;
