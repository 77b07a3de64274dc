//! Trust in project files: fingerprints, and the user's decisions about them.
//!
//! A decision is bound to a project folder, to one server (or another part of a file) and to its fingerprint, and is
//! stored outside the project. This module computes and compares; it never prompts.
//!
//! A project may have thousands of undecided servers. They wait regardless of their fingerprints, so a [`Question`] has
//! a [`LazyFingerprint`], computed only to compare it with an approval or to show it.

mod bound;
mod fingerprint;
mod identity;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

pub(crate) use bound::{FileBinder, Leads, Named};
pub use fingerprint::{Component, FILE_PART, Fingerprint, SECTION_TEXT};

/// Name of the decisions file in the state folder.
pub const TRUST_FILE: &str = "trust.json";

/// Subject of an approval.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A server, by name.
    Server(String),
    /// Another part of a file: `settings`, `security`, `permissions`, `hooks` or `profiles`.
    Section {
        /// File name, relative to the project.
        file: String,
        /// Name of the table.
        part: &'static str,
    },
}

/// Parts of a file besides its servers.
pub(crate) const SECTIONS: [&str; 5] = ["settings", "security", "permissions", "hooks", "profiles"];

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Server(name) => formatter.write_str(name),
            Subject::Section { file, part } => write!(formatter, "{file}#{part}"),
        }
    }
}

impl Subject {
    /// Key in the decisions file. Servers and sections have different prefixes, so they cannot collide.
    fn key(&self) -> String {
        match self {
            Subject::Server(name) => format!("server:{name}"),
            Subject::Section { .. } => format!("section:{self}"),
        }
    }
}

/// Result of checking a subject.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Approved in its current state.
    Trusted,
    /// Not decided yet.
    New,
    /// Approved, but changed since.
    Changed(Fingerprint),
}

/// A fingerprint that is computed on first access. Its input was read before, so the time of the access does not
/// matter.
pub type LazyFingerprint = LazyLock<Fingerprint, Box<dyn FnOnce() -> Fingerprint + Send + Sync>>;

/// A pending trust decision.
#[derive(Debug)]
pub struct Question {
    /// Server or part of a file.
    pub subject: Subject,
    /// What an approval would be bound to.
    pub fingerprint: LazyFingerprint,
    /// The approved fingerprint, if the subject has changed since.
    pub earlier: Option<Fingerprint>,
}

impl Question {
    /// Reason for the question, for the user.
    pub fn reason(&self) -> String {
        match (&self.earlier, &self.subject) {
            (None, _) => "not approved yet".to_owned(),
            (Some(earlier), _) if earlier.is_of_earlier_version() => {
                "approved by an earlier version, which covered less; review it again".to_owned()
            }
            (Some(_), Subject::Section { .. }) if self.fingerprint.components.is_empty() => {
                format!("{} was removed after it was approved", self.subject)
            }
            (Some(_), _) => "changed since it was approved".to_owned(),
        }
    }
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        self.subject == other.subject
            && self.earlier == other.earlier
            && *self.fingerprint == *other.fingerprint
    }
}

/// All decisions, by project and subject.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions {
    version: u32,
    projects: BTreeMap<PathBuf, BTreeMap<String, Approval>>,
}

/// The user's approval of one subject, valid while its fingerprint is the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// State of the subject when it was approved.
    pub fingerprint: Fingerprint,
    /// Seconds since 1970.
    pub approved_at: u64,
}

/// The decisions file is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the trust decisions cannot be read: {0}")]
pub struct DecisionsError(String);

impl Decisions {
    const VERSION: u32 = 1;

    /// Parses the decisions file. An empty text has no decisions.
    pub fn parse(text: &str) -> Result<Self, DecisionsError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let decisions: Self =
            serde_json::from_str(text).map_err(|error| DecisionsError(error.to_string()))?;
        match decisions.version {
            Self::VERSION => Ok(decisions),
            other => Err(DecisionsError(format!("version {other} is not known here"))),
        }
    }

    /// Serializes the decisions file.
    pub fn to_text(&self) -> Result<String, DecisionsError> {
        let current = Self {
            version: Self::VERSION,
            projects: self.projects.clone(),
        };
        serde_json::to_string_pretty(&current)
            .map(|text| text + "\n")
            .map_err(|error| DecisionsError(error.to_string()))
    }

    /// Checks whether a subject is trusted in its current state. Its fingerprint is computed only if there is an
    /// approval to compare it with.
    pub fn verdict(
        &self,
        project: &Path,
        subject: &Subject,
        fingerprint: &LazyFingerprint,
    ) -> Verdict {
        match self
            .projects
            .get(project)
            .and_then(|subjects| subjects.get(&subject.key()))
        {
            None => Verdict::New,
            Some(approval) if approval.fingerprint.is_bound_like(fingerprint) => Verdict::Trusted,
            Some(approval) => Verdict::Changed(approval.fingerprint.clone()),
        }
    }

    /// Records an approval.
    pub fn approve(
        &mut self,
        project: &Path,
        subject: &Subject,
        fingerprint: Fingerprint,
        approved_at: u64,
    ) {
        let subjects = self.projects.entry(project.to_owned()).or_default();
        subjects.insert(
            subject.key(),
            Approval {
                fingerprint,
                approved_at,
            },
        );
    }

    /// Revokes the approval of one name, or of the whole project. Returns the revoked names.
    pub fn revoke(&mut self, project: &Path, name: Option<&str>) -> Vec<String> {
        let Some(subjects) = self.projects.get_mut(project) else {
            return Vec::new();
        };
        let mut revoked = Vec::new();
        subjects.retain(|key, _| {
            let subject = subject_name(key);
            let goes = name.is_none_or(|name| name == subject);
            if goes {
                revoked.push(subject.to_owned());
            }
            !goes
        });
        if subjects.is_empty() {
            self.projects.remove(project);
        }
        revoked
    }

    /// Approved, non-empty parts of a project's files.
    pub fn sections(&self, project: &Path) -> impl Iterator<Item = (Subject, &Approval)> {
        let subjects = self.projects.get(project).into_iter().flatten();
        subjects.filter_map(|(key, approval)| {
            let (file, part) = key.strip_prefix("section:")?.rsplit_once('#')?;
            let part = SECTIONS.into_iter().find(|known| *known == part)?;
            let file = file.to_owned();
            let has_content = !approval.fingerprint.components.is_empty();
            has_content.then_some((Subject::Section { file, part }, approval))
        })
    }

    /// Approvals of one project, by name.
    pub fn approvals(&self, project: &Path) -> impl Iterator<Item = (&str, &Approval)> {
        self.projects
            .get(project)
            .into_iter()
            .flatten()
            .map(|(key, approval)| (subject_name(key), approval))
    }
}

fn subject_name(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, name)| name)
}
