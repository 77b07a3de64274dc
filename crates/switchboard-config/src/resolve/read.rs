//! Loads the files of all effective scopes.

use crate::diagnostic::Diagnostic;
use crate::document::{Document, EnterpriseMode};
use crate::files::{self, Candidate, Files, Looked};
use crate::scope::Scope;
use crate::sort;

use super::Inputs;

/// Loads the files of all effective scopes, highest precedence first.
pub(super) fn documents(
    inputs: &Inputs,
    files: &impl Files,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<Document>, Vec<Looked>) {
    let mut documents = Vec::new();
    let mut looked = Vec::new();
    let mut candidates = inputs.folders.candidates(files);
    let by_hand = inputs
        .extra_files
        .iter()
        .map(|path| Candidate::by_hand(path.clone()));
    let first_local = candidates
        .iter()
        .position(|candidate| candidate.scope < Scope::Enterprise)
        .unwrap_or(0);
    candidates.splice(first_local..first_local, by_hand);
    for candidate in candidates {
        let (scope, path, by_hand) = (candidate.scope, candidate.path.clone(), candidate.by_hand);
        if inputs.skip_project && candidate.needs_trust {
            continue;
        }
        let outcome = files::open(candidate, &inputs.folders.project, files, diagnostics);
        let found = !matches!(outcome, Ok(None));
        looked.push(Looked {
            scope,
            path: path.clone(),
            found,
        });
        match outcome {
            Ok(Some(source)) => {
                let document = Document::read(source, diagnostics);
                let exclusive = scope == Scope::Enterprise && document.excludes_others(diagnostics);
                documents.push(document);
                if exclusive {
                    return (documents, looked);
                }
            }
            // An unreadable managed file still takes effect: nothing else is loaded.
            Err(()) if scope == Scope::Enterprise => return (documents, looked),
            // An agent's own configuration without servers exists, but has nothing for us.
            Ok(None) if by_hand && !files.exists(&path) => {
                let error = Diagnostic::error("unreadable", path, "the file does not exist");
                diagnostics.push(error.with_hint("check the path given to --config"));
            }
            Ok(None) | Err(()) => {}
        }
    }
    let merged = documents
        .iter()
        .any(|document| document.scope() == Scope::Enterprise);
    let further = inputs
        .further
        .iter()
        .filter(|source| !(merged && source.file.scope() == Scope::Cloud));
    for source in further {
        looked.push(Looked {
            scope: source.file.scope(),
            path: source.file.path().to_owned(),
            found: true,
        });
        documents.push(Document::read(source.clone(), diagnostics));
    }
    sort::by_key(&mut documents, |document| {
        std::cmp::Reverse(document.scope())
    });
    (documents, looked)
}

impl Document {
    /// Whether this enterprise file excludes every other scope. A broken one does.
    fn excludes_others(&self, diagnostics: &[Diagnostic]) -> bool {
        let broken = !self.readable
            || diagnostics
                .iter()
                .any(|diagnostic| diagnostic.code == "syntax");
        broken || self.mode() == EnterpriseMode::Exclusive
    }
}
