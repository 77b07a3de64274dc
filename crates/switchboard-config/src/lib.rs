//! Where Switchboard's configuration comes from, what it means, and how it is changed.
//!
//! Synchronous and free of ambient state: folders, environment and file contents come in as values.

pub mod diagnostic;
pub mod entry;
pub mod expand;
pub mod foreign;
pub mod format;
pub mod scope;
pub mod secret;
pub mod source;
pub mod text;
pub mod tree;
pub mod words;
