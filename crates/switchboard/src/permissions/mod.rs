//! Permissions: one engine for built-in and MCP tools.
//!
//! Implements permission rules, the protection of Switchboard's own files, the defaults when no rule matches, and
//! consent prompts. Rules are read from files by `switchboard-config`, hooks run in `hooks`, and calls are
//! recorded by `audit`.
//!
//! | item | purpose |
//! |---|---|
//! | [`Engine`] | all compiled rules; decides synchronously |
//! | [`Policy`] | defaults when no rule matches or no prompt is available |
//! | [`PermissionGate`] | the gate: engine, hooks, consent and audit for a [`Host`](crate::Host) |
//! | [`Approver`] | prompts the user; implemented by the front end |
//! | [`ConsentView`] | the content of a consent prompt |
//! | [`Offer`] | a broader grant, in exact words |
//! | `OwnFiles` | files that no tool may change |
//! | [`SecretPlaces`] | files that no tool may read unless a rule names them |
//!
//! To embed it:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use switchboard::HostOptions;
//! # use switchboard::permissions::{Engine, PermissionGate, Policy};
//! # use switchboard_config::{files::Folders, resolve::Config};
//! # fn example(config: &Config, folders: &Folders) -> HostOptions {
//! let engine = Engine::new(config, folders, Policy::agent());
//! HostOptions { gate: Arc::new(PermissionGate::new(engine)), ..HostOptions::default() }
//! # }
//! ```

mod address;
mod approval;
mod asking;
mod condition;
pub(crate) mod consent;
mod engine;
mod exact;
pub(crate) mod explain;
pub(crate) mod gate;
mod glob;
pub(crate) mod grants;
mod own_files;
mod path;
pub(crate) mod pattern;
mod policy;
pub(crate) mod restrictions;
mod rule;
mod secrets;
mod subject;

pub use approval::{Approver, GrantPlace, Previewer, PromptAnswer, Question};
pub use consent::{ConsentView, Entry, Folded, Hidden, HiddenKind, Preview, Screen};
pub use engine::{Decision, Engine};
pub use gate::PermissionGate;
pub use grants::Offer;
pub use policy::{Caller, Policy};
pub use rule::{Because, Grounds, Rule, RuleProblem};
pub use secrets::{Secrecy, SecretPlaces};
pub use subject::Subject;

/// A glob over names, with the syntax of rules and filters.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct NameGlob(glob::Glob);

impl NameGlob {
    /// Compiles a glob; `None` if the pattern is invalid.
    pub fn new(pattern: &str) -> Option<Self> {
        glob::Glob::new(pattern).map(Self)
    }

    /// Whether the whole name matches, ignoring case.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name, glob::Case::Ignored)
    }
}
