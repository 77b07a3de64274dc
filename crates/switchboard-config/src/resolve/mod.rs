//! From files to the one configuration in force: layering, trust, lists, expansion, duplicates.
//!
//! For one server name the highest scope wins *whole*. Nothing in a file that needs trust and lacks it has
//! any effect: its servers do not start, shadow nothing and lend their place to nobody. Every entry that
//! loses is listed with the reason.
//!
//! `read` gathers the files, `layers` decides who wins and with which status, `untrusted` what waits for trust,
//! `endpoint` finds two entries for one server, `names` two servers with confusable names, and `server` is what
//! comes out.

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
use crate::policy::{HookEntry, RuleEntry, ServerLists};
use crate::scope::Scope;
use crate::settings::Settings;
use crate::source::Origin;
use crate::trust::{Decisions, Question};

pub use server::{Server, ShadowReason, Shadowed, Status};

/// Everything a configuration is made from.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Where to look.
    pub folders: Folders,
    /// The environment.
    pub environment: Environment,
    /// Files named by hand; they belong to the local scope and need no trust.
    pub extra_files: Vec<PathBuf>,
    /// Sources that are no files: added at run time, or fetched.
    pub further: Vec<Source>,
    /// Whether the project's files are left out.
    pub skip_project: bool,
    /// Whether the project is trusted for this run.
    pub trust_project: bool,
    /// The trust decisions.
    pub decisions: Decisions,
}

/// The configuration in force.
#[derive(Debug)]
pub struct Config {
    /// One server for each name, sorted by name.
    pub servers: Vec<Server>,
    /// Entries that lost, and why.
    pub shadowed: Vec<Shadowed>,
    /// Scalar settings.
    pub settings: Settings,
    /// Server lists in force, with the scopes they come from.
    pub lists: Vec<(Scope, ServerLists)>,
    /// Permission rules in force, highest scope first.
    pub rules: Vec<RuleEntry>,
    /// Hooks in force, highest scope first.
    pub hooks: Vec<HookEntry>,
    /// What waits for the user's trust. A server or a loser that waits shares its question with this list.
    pub questions: Vec<Arc<Question>>,
    /// Where further servers are fetched from.
    pub cloud_url: Option<(String, Origin)>,
    /// How an enterprise file stands to the rest, when there is one.
    pub enterprise: Option<EnterpriseMode>,
    /// Every place that was looked at, highest precedence first.
    pub looked: Vec<Looked>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

impl Config {
    /// Reads and resolves everything.
    pub fn load(inputs: &Inputs, files: &impl Files) -> Self {
        let mut diagnostics = Vec::new();
        let (documents, looked) = read::documents(inputs, files, &mut diagnostics);
        layers::Resolver::new(inputs, files, diagnostics).resolve(documents, looked)
    }

    /// The server of a name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers
            .binary_search_by(|server| server.name.as_str().cmp(name))
            .ok()
            .and_then(|at| self.servers.get(at))
    }

    /// Whether something is wrong enough for `config check` to fail.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}
