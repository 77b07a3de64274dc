//! Who may call what: one engine for built-in and MCP tools.
//!
//! Owns the meaning of permission rules, the layer that protects Switchboard's own files, what is done when no rule
//! says anything, and the asking of a person. Reading rules from files is the configuration's business, running hooks
//! that of `crate::hooks`, and what is written down that of `crate::audit`.
//!
//! | where | what |
//! |---|---|
//! | [`Engine`] | all rules, compiled; decides about a call at once |
//! | [`Policy`] | what holds when no rule does, and when nobody can be asked |
//! | [`PermissionGate`] | the gate: engine, hooks, consent and audit for a [`Host`](crate::Host) |
//! | [`Approver`] | the front end's way to ask a person |
//! | [`ConsentView`] | what a person is shown before a call is approved |
//! | [`Offer`] | what can be allowed besides one call, in exact words |
//! | `OwnFiles` | files that no tool may change |
//! | [`SecretPlaces`] | files that no tool may read unless a rule names them |
//!
//! An embedder has all of it in two lines:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use switchboard::options::HostOptions;
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
mod grants;
mod own_files;
mod path;
pub(crate) mod pattern;
mod policy;
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

/// Whether a text is a glob over names that rules and filters understand, and if so, one that can be asked.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct NameGlob(glob::Glob);

impl NameGlob {
    /// Compiles a glob; `None` for what is none.
    pub fn new(pattern: &str) -> Option<Self> {
        glob::Glob::new(pattern).map(Self)
    }

    /// Whether the whole name fits, capital letters or not.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name, glob::Case::Ignored)
    }
}
