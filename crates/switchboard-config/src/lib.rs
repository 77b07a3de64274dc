//! Where Switchboard's configuration comes from, what it means, and how it is changed.
//!
//! Synchronous and free of ambient state: folders, environment and file contents come in as values. Start with
//! [`resolve::Config::load`].

pub mod confusable;
pub mod diagnostic;
pub mod document;
pub mod edit;
pub mod entry;
pub mod expand;
pub mod files;
pub mod foreign;
pub mod format;
pub mod mask;
pub mod policy;
pub mod redact;
pub mod reference;
pub mod resolve;
pub mod schema;
pub mod scope;
pub mod secret;
pub mod settings;
pub mod shell;
pub mod source;
pub mod text;
pub mod tree;
pub mod trust;
pub mod words;
pub mod write;
