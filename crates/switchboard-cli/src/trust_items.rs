//! What a project's files want that needs the user's trust, and whether they have it.

use std::collections::HashSet;

use switchboard_config::resolve::{Config, ShadowReason, Status};
use switchboard_config::source::Origin;
use switchboard_config::trust::{Decisions, Fingerprint, Question, Subject, Verdict};

use crate::context::Context;

/// One thing that needs trust.
#[derive(Debug)]
pub(crate) struct TrustItem {
    pub(crate) subject: Subject,
    /// Where a server's entry stands.
    pub(crate) origin: Option<Origin>,
    /// What an approval is bound to.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) verdict: Verdict,
}

impl TrustItem {
    /// One word for tables and scripts.
    pub(crate) fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Trusted => "trusted",
            Verdict::New => "new",
            Verdict::Changed(_) => "changed",
        }
    }

    /// Why it waits, where the word does not tell.
    pub(crate) fn remark(&self) -> Option<&'static str> {
        match &self.verdict {
            Verdict::Changed(earlier) if earlier.is_of_earlier_version() => Some(
                "approved by an earlier version, which bound less: look at all of it once more",
            ),
            Verdict::Changed(_) if self.fingerprint.components.is_empty() => {
                Some("removed from the file; what it restricted is free once you approve that")
            }
            _ => None,
        }
    }

    pub(crate) fn waits(&self) -> bool {
        self.verdict != Verdict::Trusted
    }

    /// Where it stands, for people and scripts.
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

/// Everything that needs trust in this project, servers first, each once.
///
/// The files are read as if nothing had been decided, so that everything shows itself.
pub(crate) fn all(context: &Context, decisions: &Decisions) -> Vec<TrustItem> {
    let undecided = context.load_files(Decisions::default());
    let verdict = |question: &Question| {
        decisions.verdict(&context.project, &question.subject, &question.fingerprint)
    };
    let mut servers: Vec<TrustItem> = Vec::new();
    let mut seen: HashSet<&Subject> = HashSet::new();
    for (question, origin) in server_questions(&undecided) {
        // Of two entries with one name only the higher one can ever start, and one name has one approval.
        if seen.insert(&question.subject) {
            servers.push(TrustItem {
                subject: question.subject.clone(),
                origin: Some(origin.clone()),
                fingerprint: question.fingerprint.clone(),
                verdict: verdict(question),
            });
        }
    }
    servers.sort_by(|one, other| one.subject.cmp(&other.subject));
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
    // A part that was approved and is gone: that it no longer restricts anything has to be approved as well. Where no
    // file is left there is nothing that it could restrict.
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

/// Server entries that wait for trust, highest precedence first.
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
    questions.sort_by_key(|(_, origin)| precedence(origin));
    questions
}
