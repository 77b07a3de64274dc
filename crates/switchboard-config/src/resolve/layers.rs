//! Decides which entry wins for each server name, and determines its status.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, RawServer};
use crate::entry::{Decoded, ValueFault};
use crate::expand::{ExpandError, Variables};
use crate::files::{Files, Looked};
use crate::policy::{AllowList, ProfileEntry, ServerLists, idle_patterns};
use crate::scope::Scope;
use crate::settings;
use crate::sort;
use crate::source::Origin;
use crate::tree::Span;
use crate::trust::{FileBinder, Question};

use super::endpoint::shadow_endpoints;
use super::names::refuse_confusable;
use super::{Config, Inputs, Server, ShadowReason, Shadowed, Status};

/// Maximum number of reported reference errors per server.
const MOST_FAULTS: usize = 20;

pub(super) struct Resolver<'i, F> {
    pub(super) inputs: &'i Inputs,
    pub(super) files: &'i F,
    diagnostics: Vec<Diagnostic>,
    /// Cache of resolved programs, by folder and command: a thousand servers start only a handful.
    pub(super) programs: HashMap<String, HashMap<String, Option<Arc<Path>>>>,
    pub(super) binder: FileBinder<'i, F>,
}

/// An entry that competes for its name.
struct Contender {
    document: usize,
    server: RawServer,
    question: Option<Arc<Question>>,
}

impl<'i, F: Files> Resolver<'i, F> {
    pub(super) fn new(inputs: &'i Inputs, files: &'i F, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            inputs,
            files,
            diagnostics,
            programs: HashMap::new(),
            binder: FileBinder::new(files, &inputs.folders.project),
        }
    }

    pub(super) fn resolve(mut self, mut documents: Vec<Document>, looked: Vec<Looked>) -> Config {
        let enterprise = documents
            .iter()
            .find(|document| document.scope() == Scope::Enterprise);
        let enterprise = enterprise.map(Document::mode);
        let mut questions = self.withhold_untrusted(&mut documents);
        let removed = self.removed_section(&documents, &questions);
        questions.extend(removed.clone());
        let stated = documents.iter().map(|document| &document.settings.content);
        let settings = settings::resolve(stated, &self.inputs.environment, &mut self.diagnostics);
        let cloud_url = self.cloud_url(&documents);
        let lists: Vec<_> = documents
            .iter_mut()
            .map(|document| (document.scope(), document.lists.take()))
            .collect();
        let rules = documents
            .iter_mut()
            .flat_map(|document| document.rules.take())
            .collect();
        let hooks = documents
            .iter_mut()
            .flat_map(|document| document.hooks.take())
            .collect();
        let profiles = profiles(&mut documents);
        let (contenders, mut shadowed) = self.contenders(&mut documents, removed.as_ref());
        let lost = shadowed.iter().filter_map(|lost| match &lost.reason {
            ShadowReason::Untrusted(question) => Some(Arc::clone(question)),
            _ => None,
        });
        questions.extend(
            lost.chain(
                contenders
                    .iter()
                    .filter_map(|contender| contender.question.clone()),
            ),
        );
        let servers = contenders
            .into_iter()
            .enumerate()
            .map(|(place, contender)| self.server(contender, place, &documents, &lists))
            .collect();
        let mut servers = shadow_endpoints(servers, &mut shadowed);
        refuse_confusable(&mut servers, &mut self.diagnostics);
        self.warn_of_idle_profiles(&profiles, &servers);
        Config {
            servers,
            shadowed,
            settings,
            lists,
            rules,
            hooks,
            profiles,
            questions,
            cloud_url,
            enterprise,
            looked,
            diagnostics: self.diagnostics,
        }
    }

    /// The provider URL, which only the machine and the user may set.
    fn cloud_url(&mut self, documents: &[Document]) -> Option<(String, Origin)> {
        let mut chosen = None;
        for document in documents {
            if let Some((_, origin)) = &document.enterprise_mode
                && document.scope() != Scope::Enterprise
            {
                self.no_effect(
                    "mode",
                    document.scope(),
                    origin,
                    "set it in the machine's managed file",
                );
            }
            let Some((url, origin)) = &document.cloud_url else {
                continue;
            };
            if matches!(document.scope(), Scope::Enterprise | Scope::User) {
                chosen.get_or_insert_with(|| (url.clone(), origin.clone()));
            } else {
                self.no_effect(
                    "cloud",
                    document.scope(),
                    origin,
                    "set it in your user configuration",
                );
            }
        }
        chosen
    }

    /// Warns about profiles that name servers which are not configured.
    fn warn_of_idle_profiles(&mut self, profiles: &[ProfileEntry], servers: &[Server]) {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        for profile in profiles {
            for (message, hint) in idle_patterns(profile, &names) {
                let warning = Diagnostic::warning("no-effect", profile.origin.clone(), message);
                let hint = hint.unwrap_or_else(|| "check the name of the server".to_owned());
                self.diagnostics.push(warning.with_hint(hint));
            }
        }
    }

    fn no_effect(&mut self, key: &str, scope: Scope, origin: &Origin, hint: &str) {
        let message = format!("`{key}` has no effect in {scope} scope");
        self.diagnostics
            .push(Diagnostic::warning("no-effect", origin.clone(), message).with_hint(hint));
    }

    /// Selects one entry per name: the highest trusted one, else the highest. Also returns the others.
    fn contenders(
        &mut self,
        documents: &mut [Document],
        removed: Option<&Arc<Question>>,
    ) -> (Vec<Contender>, Vec<Shadowed>) {
        let count = documents
            .iter()
            .map(|document| document.servers.len())
            .sum();
        let mut winners: Vec<Contender> = Vec::with_capacity(count);
        let mut by_name: HashMap<String, usize> = HashMap::with_capacity(count);
        let mut losers: Vec<(Contender, Option<(usize, Span)>)> = Vec::new();
        for (index, document) in documents.iter_mut().enumerate() {
            for server in std::mem::take(&mut document.servers) {
                let question = document
                    .source
                    .needs_trust
                    .then(|| self.server_question(&server, document))
                    .flatten()
                    .or_else(|| removed.filter(|_| document.source.needs_trust).cloned());
                let contender = Contender {
                    document: index,
                    server,
                    question,
                };
                match by_name
                    .get(&contender.server.name)
                    .and_then(|at| winners.get_mut(*at))
                {
                    None => {
                        by_name.insert(contender.server.name.clone(), winners.len());
                        winners.push(contender);
                    }
                    Some(winner) if winner.question.is_some() && contender.question.is_none() => {
                        losers.push((std::mem::replace(winner, contender), None));
                    }
                    Some(winner) => {
                        losers.push((contender, Some((winner.document, winner.server.name_span))));
                    }
                }
            }
        }
        let origin = |document: usize, span: Span| {
            documents
                .get(document)
                .map(|document| document.origin(span))
        };
        let lost = |(loser, winner): (Contender, Option<(usize, Span)>)| {
            let reason = match (loser.question, winner) {
                // It would not win even if trusted, so the user is not asked about it.
                (_, Some((document, span))) => ShadowReason::SameName(origin(document, span)?),
                (Some(question), None) => ShadowReason::Untrusted(question),
                (None, None) => return None,
            };
            let origin = origin(loser.document, loser.server.name_span)?;
            Some(Shadowed {
                name: loser.server.name,
                origin,
                entry: loser.server.decoded.entry,
                reason,
            })
        };
        let shadowed = losers.into_iter().filter_map(lost).collect();
        (winners, shadowed)
    }

    pub(super) fn variables<'d>(&self, document: &'d Document) -> Variables<'d>
    where
        'i: 'd,
    {
        Variables {
            environment: &self.inputs.environment,
            workspace: &self.inputs.folders.project,
            home: &self.inputs.folders.home,
            plugin_root: document.source.plugin_root.as_deref(),
        }
    }

    /// Determines the status of a winning entry.
    fn server(
        &mut self,
        contender: Contender,
        place: usize,
        documents: &[Document],
        lists: &[(Scope, ServerLists)],
    ) -> Server {
        let Contender {
            document,
            server:
                RawServer {
                    name,
                    name_span,
                    decoded,
                },
            question,
        } = contender;
        // The index comes from enumerating these documents.
        let document = &documents[document];
        let origin = document.origin(name_span);
        let Decoded {
            entry,
            spans,
            faults,
        } = decoded;
        let mut server = Server {
            name,
            origin,
            entry,
            status: Status::Ready,
            expanded: None,
            spans,
            place,
        };
        server.status = if let Some(question) = question {
            Status::Untrusted(question)
        } else if server.entry.enabled == Some(false) {
            Status::Disabled
        } else if !faults.is_empty() {
            Status::Faulty(faults)
        } else if let Some(denied) = denied(&server, lists) {
            // Skip the check for missing variables if the server may not connect anyway.
            denied
        } else {
            self.expand(&mut server, document)
                .or_else(|| self.missing_secrets(&server))
                .or_else(|| denied(&server, lists))
                .or_else(|| not_allowed(&server, lists))
                .unwrap_or(Status::Ready)
        };
        server
    }

    /// Checks the variables that hold secrets of an entry. Returns a status if one is not set: the server could not
    /// connect, or would send an empty secret.
    fn missing_secrets(&mut self, server: &Server) -> Option<Status> {
        let mut reasons = Vec::new();
        for (field, key, variable) in server.effective().secret_variables() {
            let problem = match self.inputs.environment.get(variable) {
                None => "is not set",
                Some("") => "is empty",
                Some(_) => continue,
            };
            let reason = format!("the environment variable `{variable}` {problem}");
            let name = &server.name;
            let message = format!("{reason}, which `{key}` of server `{name}` needs");
            let diagnostic =
                Diagnostic::error("missing-variable", server.origin_of(field), message)
                    .with_hint(format!("set {variable}, or remove `{key}`"));
            self.diagnostics.push(diagnostic.about(name));
            reasons.push(reason);
        }
        (!reasons.is_empty()).then_some(Status::Faulty(reasons))
    }

    /// Expands the references of an entry; returns a status if that fails.
    fn expand(&mut self, server: &mut Server, document: &Document) -> Option<Status> {
        if !server.entry.has_references() {
            return None;
        }
        match server.entry.expanded(&self.variables(document)) {
            Ok(expanded) => {
                let faults = expanded.value_faults();
                server.expanded = Some(Box::new(expanded));
                let reasons: Vec<String> = faults.iter().map(ValueFault::message).collect();
                for fault in faults {
                    let origin = server.origin_of(fault.field);
                    let message = format!("{}, after variable expansion", fault.message());
                    let diagnostic =
                        Diagnostic::error("bad-value", origin, message).with_hint(fault.hint);
                    self.diagnostics.push(diagnostic.about(&server.name));
                }
                (!reasons.is_empty()).then_some(Status::Faulty(reasons))
            }
            Err(mut errors) => {
                errors.truncate(MOST_FAULTS);
                let reasons = errors.iter().map(|(_, error)| error.to_string()).collect();
                for (field, error) in errors {
                    let mut origin = server.origin_of(field);
                    if let Some(span) = error.place(origin.file.text(), origin.span) {
                        origin.span = span;
                    }
                    let (name, key) = (&server.name, field.name());
                    let (code, message) = match error {
                        ExpandError::Missing(_) => (
                            "missing-variable",
                            format!("{error}, which `{key}` of server `{name}` needs"),
                        ),
                        _ => (
                            "bad-reference",
                            format!("in `{key}` of server `{name}`, {error}"),
                        ),
                    };
                    let diagnostic =
                        Diagnostic::error(code, origin, message).with_hint(error.hint());
                    self.diagnostics.push(diagnostic.about(&server.name));
                }
                Some(Status::Faulty(reasons))
            }
        }
    }
}

/// One profile per name: that of the highest scope, as a whole.
fn profiles(documents: &mut [Document]) -> Vec<ProfileEntry> {
    let mut profiles: Vec<ProfileEntry> = Vec::new();
    for document in documents {
        for profile in document.profiles.take() {
            if !profiles.iter().any(|higher| higher.name == profile.name) {
                profiles.push(profile);
            }
        }
    }
    sort::by(&mut profiles, |one, other| one.name.cmp(&other.name));
    profiles
}

/// Lists that apply to a server. A server of the enterprise file is subject only to that file's lists.
fn binding<'l>(
    server: &Server,
    lists: &'l [(Scope, ServerLists)],
) -> impl Iterator<Item = &'l ServerLists> {
    let managed = server.scope() == Scope::Enterprise;
    let binds = move |scope: Scope| !managed || scope == Scope::Enterprise;
    lists
        .iter()
        .filter(move |(scope, _)| binds(*scope))
        .map(|(_, lists)| lists)
}

/// Status of a server that a deny list rejects.
fn denied(server: &Server, lists: &[(Scope, ServerLists)]) -> Option<Status> {
    let pattern = binding(server, lists)
        .flat_map(|lists| &lists.deny)
        .find(|pattern| pattern.matches(&server.name, server.effective()))?;
    let reason = format!(
        "denied by \"{}\" in mcp_server_denylist at {}",
        pattern.text, pattern.origin
    );
    let origin = pattern.origin.clone();
    Some(Status::Blocked { reason, origin })
}

/// Status of a server that is missing from an allow list. Its references must be expanded, or an allowed URL would not
/// be recognised.
fn not_allowed(server: &Server, lists: &[(Scope, ServerLists)]) -> Option<Status> {
    let matches = |list: &&AllowList| {
        list.patterns
            .iter()
            .any(|pattern| pattern.matches(&server.name, server.effective()))
    };
    let allow = binding(server, lists)
        .filter_map(|lists| lists.allow.as_ref())
        .find(|list| !matches(list))?;
    let reason = format!("not in the mcp_server_allowlist at {}", allow.origin);
    let origin = allow.origin.clone();
    Some(Status::Blocked { reason, origin })
}
