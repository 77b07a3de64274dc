//! Resolves all files to the effective configuration: precedence, trust, lists, expansion, duplicates.
//!
//! For each server name, the entry of the highest scope wins as a whole. Untrusted parts of a file have no effect:
//! their servers do not start and do not shadow others. Every losing entry is listed with the reason.
//!
//! `read` loads the files, `layers` selects entries and their status, `untrusted` handles trust, `endpoint` detects
//! duplicate endpoints, `names` confusable names, and `server` has the result types.

mod endpoint;
mod layers;
mod names;
mod read;
mod server;
mod untrusted;

use std::path::PathBuf;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{EnterpriseMode, Source};
use crate::expand::Environment;
use crate::files::{Files, Folders, Looked};
use crate::policy::{HookEntry, ProfileEntry, RuleEntry, ServerLists};
use crate::scope::Scope;
use crate::settings::Settings;
use crate::source::Origin;
use crate::trust::{Decisions, Question};

pub use endpoint::same_endpoint;
pub use server::{Server, ShadowReason, Shadowed, Status};

/// Input of [`Config::load`].
#[derive(Debug, Default)]
pub struct Inputs {
    /// Folders to search.
    pub folders: Folders,
    /// Snapshot of the environment.
    pub environment: Environment,
    /// Files given with `--config`; they have local scope and need no trust.
    pub extra_files: Vec<PathBuf>,
    /// Sources that are not files: added at run time, or fetched.
    pub further: Vec<Source>,
    /// Whether to ignore the project's files.
    pub skip_project: bool,
    /// Whether to trust the project for this run.
    pub trust_project: bool,
    /// Stored trust decisions.
    pub decisions: Decisions,
}

/// The effective configuration.
#[derive(Debug)]
pub struct Config {
    /// One server per name, sorted by name.
    pub servers: Vec<Server>,
    /// Losing entries, with the reason.
    pub shadowed: Vec<Shadowed>,
    /// Scalar settings, with their origins.
    pub settings: Settings,
    /// Effective server lists, with their scopes.
    pub lists: Vec<(Scope, ServerLists)>,
    /// Effective permission rules, highest scope first.
    pub rules: Vec<RuleEntry>,
    /// Effective hooks, highest scope first.
    pub hooks: Vec<HookEntry>,
    /// One profile per name, sorted by name, those with errors included.
    pub profiles: Vec<ProfileEntry>,
    /// Pending trust questions. Waiting servers and entries share theirs with this list.
    pub questions: Vec<Arc<Question>>,
    /// URL of additional servers.
    pub cloud_url: Option<(String, Origin)>,
    /// Mode of the enterprise file; `None` if there is none.
    pub enterprise: Option<EnterpriseMode>,
    /// All searched locations, highest precedence first.
    pub looked: Vec<Looked>,
    /// All findings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Config {
    /// Reads and resolves all files.
    pub fn load(inputs: &Inputs, files: &impl Files) -> Self {
        let mut diagnostics = Vec::new();
        let (documents, looked) = read::documents(inputs, files, &mut diagnostics);
        layers::Resolver::new(inputs, files, diagnostics).resolve(documents, looked)
    }

    /// Looks up a server by name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers
            .binary_search_by(|server| server.name.as_str().cmp(name))
            .ok()
            .and_then(|at| self.servers.get(at))
    }

    /// Looks up a profile by name.
    pub fn profile(&self, name: &str) -> Option<&ProfileEntry> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// Whether `config check` should fail.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}
