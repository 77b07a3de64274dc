//! The configuration of Switchboard: finding, reading, resolving and editing the files that name MCP servers. An internal
//! crate of Switchboard: programs use `switchboard::Host::from_config`, and this API may change in any version.
//!
//! Synchronous and free of ambient state: folders, environment and file contents are passed in as values. Start with
//! [`resolve::Config::load`].
//!
//! | where | what |
//! |---|---|
//! | [`resolve`] | all files resolved into one configuration: precedence, trust, server lists |
//! | [`files`], [`scope`], [`source`] | which files belong to which scope, and where a value comes from |
//! | [`entry`], [`expand`] | one server entry, and the `${…}` references in it |
//! | [`document`], [`mod@format`], [`tree`] | one file: TOML, JSONC, HCL or YAML, parsed with spans |
//! | [`settings`], [`mod@reference`], [`schema`] | scalar settings, their documentation, and the JSON Schema |
//! | [`policy`], [`shell`] | server lists, permission rules and hooks as written; command lines in rules |
//! | [`trust`] | approvals of files that a repository can contain |
//! | [`edit`], [`mod@write`] | edits that change nothing else; atomic, locked writes |
//! | [`foreign`], [`clients`] | import from and export to other tools' files; connecting those tools to Switchboard |
//! | [`own_program`] | Switchboard itself as a server: recognized and refused |
//! | [`diagnostic`] | problems, with location and hint |
//! | [`secret`], [`mask`], [`redact`], [`text`], [`confusable`], [`words`] | masking, sanitizing, names that look alike |

pub mod clients;
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
pub mod own_program;
pub mod policy;
pub mod redact;
pub mod reference;
pub mod resolve;
pub mod schema;
pub mod scope;
pub mod secret;
pub mod settings;
pub mod shell;
pub mod sort;
pub mod source;
pub mod text;
pub mod tree;
pub mod trust;
pub mod words;
pub mod write;
