//! Trust for files in a repository: which parts wait for approval, and what an approval is bound to.

use crate::sort;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::{Document, RawServer, Section};
use crate::entry::ServerEntry;
use crate::expand::{Environment, expand};
use crate::files::Files;
use crate::trust::{Fingerprint, LazyFingerprint, Leads, Named, Question, Subject, Verdict};

use super::layers::Resolver;

impl<F: Files> Resolver<'_, F> {
    /// Removes untrusted parts of repository files, and returns the questions about them.
    pub(super) fn withhold_untrusted(&mut self, documents: &mut [Document]) -> Vec<Arc<Question>> {
        let mut questions = Vec::new();
        for document in documents
            .iter_mut()
            .filter(|document| document.source.needs_trust)
        {
            let parts = [
                ("settings", document.settings.span),
                ("security", document.lists.span),
                ("permissions", document.rules.span),
                ("hooks", document.hooks.span),
                ("profiles", document.profiles.span),
            ];
            for (part, span) in parts {
                let Some(span) = span else { continue };
                let file = self.file_of(document);
                let source = Arc::clone(&document.source.file);
                // Hash the files of hooks now, as with the programs of servers.
                let files = match part {
                    "hooks" if !self.inputs.trust_project => {
                        let commands = document.hooks.content.iter();
                        let words = commands.flat_map(|hook| hook.command.iter().cloned());
                        let words: Vec<String> = words.collect();
                        let named = Named {
                            words: &words,
                            ..Named::default()
                        };
                        self.binder.bind(named, Path::new(""))
                    }
                    _ => Vec::new(),
                };
                let fingerprint = move || Fingerprint::of_section(source.slice(span), &files);
                let fingerprint = LazyFingerprint::new(Box::new(fingerprint));
                let Some(question) = self.question(Subject::Section { file, part }, fingerprint)
                else {
                    continue;
                };
                questions.push(question);
                match part {
                    "settings" => document.settings = Section::default(),
                    "security" => document.lists = Section::default(),
                    "permissions" => document.rules = Section::default(),
                    "profiles" => document.profiles = Section::default(),
                    _ => document.hooks = Section::default(),
                }
            }
        }
        questions
    }

    /// File name of a document, as used in approvals.
    fn file_of(&self, document: &Document) -> String {
        let path = document.source.file.path();
        path.strip_prefix(&self.inputs.folders.project)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// A question about an approved part that was removed: a deny rule, a server list, a hook. Until it is answered, no
    /// server of the project starts; otherwise a repository could lift a restriction by deleting it.
    pub(super) fn removed_section(
        &self,
        documents: &[Document],
        waiting: &[Arc<Question>],
    ) -> Option<Arc<Question>> {
        let project = &self.inputs.folders.project;
        if self.inputs.trust_project || self.inputs.skip_project {
            return None;
        }
        let needs_trust = || {
            documents
                .iter()
                .filter(|document| document.source.needs_trust)
        };
        needs_trust().next()?;
        let is_there = |subject: &Subject| {
            waiting.iter().any(|question| question.subject == *subject)
                || needs_trust().any(|document| {
                    let file = self.file_of(document);
                    let parts = [
                        ("settings", document.settings.span),
                        ("security", document.lists.span),
                        ("permissions", document.rules.span),
                        ("hooks", document.hooks.span),
                        ("profiles", document.profiles.span),
                    ];
                    parts.into_iter().any(|(part, span)| {
                        let file = file.clone();
                        span.is_some() && *subject == Subject::Section { file, part }
                    })
                })
        };
        let mut gone = self
            .inputs
            .decisions
            .sections(project)
            .filter(|(subject, _)| !is_there(subject));
        let (subject, approval) = gone.next()?;
        Some(Arc::new(Question {
            subject,
            fingerprint: LazyFingerprint::new(Box::new(Fingerprint::of_nothing)),
            earlier: Some(approval.fingerprint.clone()),
        }))
    }

    /// The question to answer before a subject of the repository takes effect; `None` if it is trusted.
    fn question(&self, subject: Subject, fingerprint: LazyFingerprint) -> Option<Arc<Question>> {
        if self.inputs.trust_project {
            return None;
        }
        let project = &self.inputs.folders.project;
        let earlier = match self
            .inputs
            .decisions
            .verdict(project, &subject, &fingerprint)
        {
            Verdict::Trusted => return None,
            Verdict::New => None,
            Verdict::Changed(earlier) => Some(earlier),
        };
        Some(Arc::new(Question {
            subject,
            fingerprint,
            earlier,
        }))
    }

    pub(super) fn server_question(
        &mut self,
        server: &RawServer,
        document: &Document,
    ) -> Option<Arc<Question>> {
        if self.inputs.trust_project {
            return None;
        }
        let entry = server.decoded.entry.clone();
        // Hash programs and files now: an approval is bound to their state when the configuration was read.
        let leads = self.leads(&entry, document);
        let fingerprint = move || Fingerprint::of_server(&entry, &leads);
        self.question(
            Subject::Server(server.name.clone()),
            LazyFingerprint::new(Box::new(fingerprint)),
        )
    }

    fn leads(&mut self, entry: &ServerEntry, document: &Document) -> Leads {
        let program = self.program(entry, document);
        let variables = self.variables(document);
        let expanded = |text: &str| {
            expand(text, &variables).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
        };
        let folder = expanded(entry.cwd.as_deref().unwrap_or_default());
        let words: Vec<String> = entry
            .command
            .iter()
            .chain(&entry.args)
            .map(|word| expanded(word))
            .collect();
        let values = entry.env.iter().map(|(_, value)| expanded(value.expose()));
        let values: Vec<String> = values.collect();
        let named = Named {
            words: &words,
            values: &values,
            program: program.as_deref(),
        };
        let mut files = self.binder.bind(named, Path::new(&folder));
        // A headers helper starts in the project folder, regardless of `cwd`.
        let helper: Vec<String> = entry
            .headers_helper
            .iter()
            .map(|word| expanded(word))
            .collect();
        if !helper.is_empty() {
            let named = Named {
                words: &helper,
                ..Named::default()
            };
            files.extend(self.binder.bind(named, Path::new("")));
        }
        // Certificates decide who can impersonate the server.
        let certificates = entry.ca_file.as_deref().map(expanded);
        files.extend(certificates.and_then(|file| self.binder.named(Path::new(&file))));
        sort::by(&mut files, |one, other| one.path.cmp(&other.path));
        files.dedup();
        Leads {
            program,
            folder: entry
                .cwd
                .as_ref()
                .map(|_| self.binder.folder(Path::new(&folder))),
            files,
        }
    }

    /// The program file of an entry.
    fn program(&mut self, entry: &ServerEntry, document: &Document) -> Option<Arc<Path>> {
        let variables = self.variables(document);
        let command = expand(entry.command.as_deref()?, &variables).ok()?;
        let folder = expand(entry.cwd.as_deref().unwrap_or_default(), &variables).ok()?;
        let found = self
            .programs
            .get(folder.as_ref())
            .and_then(|commands| commands.get(command.as_ref()));
        if let Some(program) = found {
            return program.clone();
        }
        let path = self.inputs.folders.project.join(folder.as_ref());
        let program = find_program(&command, &path, &self.inputs.environment, self.files);
        let program: Option<Arc<Path>> = program.map(Arc::from);
        let commands = self.programs.entry(folder.into_owned()).or_default();
        commands.insert(command.into_owned(), program.clone());
        program
    }
}

/// The program file of a command: a path as it is, a bare name from `PATH`.
fn find_program(
    command: &str,
    folder: &Path,
    environment: &Environment,
    files: &impl Files,
) -> Option<PathBuf> {
    let found = if command.contains(['/', '\\']) {
        Some(folder.join(command)).filter(|path| files.is_program(path))
    } else {
        let path = environment.get("PATH").unwrap_or_default();
        std::env::split_paths(path)
            .map(|folder| folder.join(command))
            .find(|path| files.is_program(path))
    };
    found.map(|path| files.real_path(&path).unwrap_or(path))
}
