//! Connects other tools on this machine to Switchboard: one entry in each tool's own file, and its exact undo.
//!
//! | where | what |
//! |---|---|
//! | [`Client`] | the tools, and which of them are on this machine |
//! | [`ClientFile`] | the text of one file: what it defines, and edits that change nothing else |
//! | [`Record`], [`ClientStore`] | what was done to a file, its backup, and locked writes that detect changes |
//! | [`masked`] | a file's text with its secrets masked, for previews |
//!
//! Synchronous. Asks and prints nothing: the caller shows a preview and decides.

mod client;
mod file;
mod preview;
mod record;
mod store;
mod yaml;

pub use client::Client;
pub use file::{Bridge, ClientError, ClientFile, FileContent};
pub use preview::masked;
pub use record::{MovedServer, Record, RecordError, digest, digest_of_entry};
pub use store::{ClientStore, StoreError};

/// Name of the entry in a client's file.
pub const ENTRY: &str = crate::own_program::PROGRAM;
