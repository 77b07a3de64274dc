//! Lists the items of a project's files that need the user's trust, with their trust status.

use std::collections::HashSet;
use switchboard_config::sort;

use switchboard_config::resolve::{Config, ShadowReason, Status};
use switchboard_config::source::Origin;
use switchboard_config::trust::{Decisions, Fingerprint, Question, Subject, Verdict};

use crate::context::Context;

#[derive(Debug)]
pub(crate) struct TrustItem {
    pub(crate) subject: Subject,
    /// Origin of a server's entry; `None` for other items.
    pub(crate) origin: Option<Origin>,
    /// What an approval is bound to.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) verdict: Verdict,
}

impl TrustItem {
    /// The status as a word, for tables and scripts.
    pub(crate) fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Trusted => "trusted",
            Verdict::New => "new",
            Verdict::Changed(_) => "changed",
        }
    }

    /// Why approval is pending, if the word does not say it.
    pub(crate) fn remark(&self) -> Option<&'static str> {
        match &self.verdict {
            Verdict::Changed(earlier) if earlier.is_of_earlier_version() => {
                Some("approved by an earlier version, which covered less: review all of it again")
            }
            Verdict::Changed(_) if self.fingerprint.components.is_empty() => {
                Some("removed from the file; approving this lifts its restrictions")
            }
            _ => None,
        }
    }

    pub(crate) fn waits(&self) -> bool {
        self.verdict != Verdict::Trusted
    }

    /// Path of the file, for people and scripts.
    pub(crate) fn file(&self, context: &Context) -> String {
        match (&self.origin, &self.subject) {
            (Some(origin), _) => origin.path().display().to_string(),
            (None, Subject::Section { file, .. }) => {
                context.project.join(file).display().to_string()
            }
            (None, Subject::Server(_)) => String::new(),
        }
    }
}

/// Lists everything that needs trust in this project, servers first, without duplicates.
///
/// Loads the files with no decisions, so that every item appears.
pub(crate) fn all(context: &Context, decisions: &Decisions) -> Vec<TrustItem> {
    let undecided = context.load_files(Decisions::default());
    let verdict = |question: &Question| {
        decisions.verdict(&context.project, &question.subject, &question.fingerprint)
    };
    let mut servers: Vec<TrustItem> = Vec::new();
    let mut seen: HashSet<&Subject> = HashSet::new();
    for (question, origin) in server_questions(&undecided) {
        // Of two entries with one name only the one of higher precedence can start, and a name has one approval.
        if seen.insert(&question.subject) {
            servers.push(TrustItem {
                subject: question.subject.clone(),
                origin: Some(origin.clone()),
                fingerprint: question.fingerprint.clone(),
                verdict: verdict(question),
            });
        }
    }
    sort::by(&mut servers, |one, other| one.subject.cmp(&other.subject));
    let sections = undecided
        .questions
        .iter()
        .filter(|question| matches!(question.subject, Subject::Section { .. }))
        .map(|question| TrustItem {
            subject: question.subject.clone(),
            origin: None,
            fingerprint: question.fingerprint.clone(),
            verdict: verdict(question),
        });
    servers.extend(sections);
    let present: HashSet<Subject> = servers.iter().map(|each| each.subject.clone()).collect();
    // Removing an approved part lifts its restrictions, so the removal needs approval as well. Without any file there
    // is nothing it could restrict.
    let removed = decisions
        .sections(&context.project)
        .filter(|(subject, _)| !present.is_empty() && !present.contains(subject))
        .map(|(subject, approval)| TrustItem {
            subject,
            origin: None,
            fingerprint: Fingerprint::of_nothing(),
            verdict: Verdict::Changed(approval.fingerprint.clone()),
        });
    servers.extend(removed);
    servers
}

/// Server entries that need trust, highest precedence first.
fn server_questions(config: &Config) -> Vec<(&Question, &Origin)> {
    let standing = config
        .servers
        .iter()
        .filter_map(|server| match &server.status {
            Status::Untrusted(question) => Some((question.as_ref(), &server.origin)),
            _ => None,
        });
    let lost = config
        .shadowed
        .iter()
        .filter_map(|shadowed| match &shadowed.reason {
            ShadowReason::Untrusted(question) => Some((question.as_ref(), &shadowed.origin)),
            _ => None,
        });
    let precedence = |origin: &Origin| {
        config
            .looked
            .iter()
            .position(|looked| looked.path == origin.path())
    };
    let mut questions: Vec<_> = standing.chain(lost).collect();
    sort::by_key(&mut questions, |(_, origin)| precedence(origin));
    questions
}
