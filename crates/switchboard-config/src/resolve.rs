//! From files to the one configuration in force: layering, trust, lists, expansion, duplicates.
//!
//! For one server name the highest scope wins *whole*. Nothing in a file that needs trust and lacks it has
//! any effect: its servers do not start, shadow nothing and lend their place to nobody. Every entry that
//! loses is listed with the reason.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{Document, EnterpriseMode, RawServer, Section, Source};
use crate::entry::{Decoded, Field, ServerEntry, Transport};
use crate::expand::{Environment, ExpandError, Variables, expand};
use crate::files::{self, Candidate, Files, Folders, Looked};
use crate::mask;
use crate::policy::{HookEntry, RuleEntry, ServerLists};
use crate::scope::Scope;
use crate::settings::{self, Settings};
use crate::source::Origin;
use crate::tree::Span;
use crate::trust::{Decisions, Fingerprint, Question, Subject, Verdict};

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
    /// What waits for the user's trust.
    pub questions: Vec<Question>,
    /// Where further servers are fetched from.
    pub cloud_url: Option<(String, Origin)>,
    /// How an enterprise file stands to the rest, when there is one.
    pub enterprise: Option<EnterpriseMode>,
    /// Every place that was looked at, highest precedence first.
    pub looked: Vec<Looked>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
}

/// A server in force, or the best there is for its name.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where its entry stands.
    pub origin: Origin,
    /// The entry as written.
    pub entry: ServerEntry,
    /// Whether it may be connected, and if not, why.
    pub status: Status,
    expanded: Option<Box<ServerEntry>>,
    spans: Vec<(Field, Span)>,
}

impl Server {
    /// The scope it comes from.
    pub fn scope(&self) -> Scope {
        self.origin.scope()
    }

    /// The entry with every reference replaced. Only meaningful when the server is [`Status::Ready`].
    pub fn effective(&self) -> &ServerEntry {
        self.expanded.as_deref().unwrap_or(&self.entry)
    }

    /// How it is reached.
    pub fn transport(&self) -> Option<Transport> {
        self.effective().effective_transport()
    }

    /// Where each field that was stated stands.
    pub fn fields(&self) -> impl Iterator<Item = (Field, Origin)> {
        self.spans.iter().map(|(field, span)| {
            (
                *field,
                Origin {
                    file: self.origin.file.clone(),
                    span: *span,
                },
            )
        })
    }
}

/// Whether a server may be connected.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// It may.
    Ready,
    /// It is switched off.
    Disabled,
    /// Its entry is wrong; the diagnostics say how.
    Faulty(Vec<String>),
    /// Its project is not trusted.
    Untrusted(Box<Question>),
    /// A server list keeps it out.
    Blocked {
        /// Why, in words.
        reason: String,
        /// The list.
        origin: Origin,
    },
}

impl Status {
    /// One word for tables and scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Status::Ready => "ready",
            Status::Disabled => "disabled",
            Status::Faulty(_) => "invalid",
            Status::Untrusted(_) => "untrusted",
            Status::Blocked { .. } => "blocked",
        }
    }

    /// Why it may not be connected, for people.
    pub fn reason(&self) -> Option<String> {
        match self {
            Status::Ready => None,
            Status::Disabled => Some("disabled in its entry".to_owned()),
            Status::Faulty(reasons) => Some(reasons.join("; ")),
            Status::Untrusted(question) if question.earlier.is_some() => {
                Some("changed since it was approved".to_owned())
            }
            Status::Untrusted(_) => Some("not approved yet".to_owned()),
            Status::Blocked { reason, .. } => Some(reason.clone()),
        }
    }
}

/// An entry that lost.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub origin: Origin,
    /// The entry as written.
    pub entry: ServerEntry,
    /// Why it lost.
    pub reason: ShadowReason,
}

/// Why an entry lost.
#[derive(Debug, Clone, PartialEq)]
pub enum ShadowReason {
    /// A higher file has an entry of the same name.
    SameName(Origin),
    /// A server of a higher scope points to the same endpoint.
    SameEndpoint {
        /// The other server's name.
        name: String,
        /// Where it stands.
        origin: Origin,
    },
    /// It is not trusted, and another entry has the name.
    Untrusted(Box<Question>),
}

impl std::fmt::Display for ShadowReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ShadowReason::SameName(origin) => write!(
                formatter,
                "{} scope has the same name, at {origin}",
                origin.scope()
            ),
            ShadowReason::SameEndpoint { name, origin } => {
                write!(
                    formatter,
                    "same endpoint as `{name}` of {} scope, at {origin}",
                    origin.scope()
                )
            }
            ShadowReason::Untrusted(_) => {
                formatter.write_str("not trusted, so it replaces nothing")
            }
        }
    }
}

impl Config {
    /// Reads and resolves everything.
    pub fn load(inputs: &Inputs, files: &impl Files) -> Self {
        let mut diagnostics = Vec::new();
        let (documents, looked) = read_documents(inputs, files, &mut diagnostics);
        Resolver {
            inputs,
            files,
            diagnostics,
            programs: HashMap::new(),
        }
        .resolve(documents, looked)
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

/// Reads the files of all scopes that count, highest precedence first.
fn read_documents(
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
        if inputs.skip_project && candidate.guarded {
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
            // A managed file that cannot be read still rules: nothing else may be loaded in its place.
            Err(()) if scope == Scope::Enterprise => return (documents, looked),
            Ok(None) if by_hand => {
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
    documents.sort_by_key(|document| std::cmp::Reverse(document.scope()));
    (documents, looked)
}

impl Document {
    /// Whether this enterprise file keeps every other scope out. A broken one does.
    fn excludes_others(&self, diagnostics: &[Diagnostic]) -> bool {
        let broken = !self.readable
            || diagnostics
                .iter()
                .any(|diagnostic| diagnostic.code == "syntax");
        broken || self.mode() == EnterpriseMode::Exclusive
    }
}

struct Resolver<'i, F> {
    inputs: &'i Inputs,
    files: &'i F,
    diagnostics: Vec<Diagnostic>,
    /// Programs found so far: a thousand servers start a handful of them.
    programs: HashMap<(String, PathBuf), Option<PathBuf>>,
}

/// An entry on its way to being a server.
struct Contender {
    document: usize,
    server: RawServer,
    question: Option<Question>,
}

impl<'i, F: Files> Resolver<'i, F> {
    fn resolve(mut self, mut documents: Vec<Document>, looked: Vec<Looked>) -> Config {
        let enterprise = documents
            .iter()
            .find(|document| document.scope() == Scope::Enterprise);
        let enterprise = enterprise.map(Document::mode);
        let mut questions = self.guard_sections(&mut documents);
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
        let (contenders, mut shadowed) = self.contenders(&mut documents);
        let lost = shadowed.iter().filter_map(|lost| match &lost.reason {
            ShadowReason::Untrusted(question) => Some((**question).clone()),
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
            .map(|contender| self.server(contender, &documents, &lists))
            .collect();
        let servers = one_per_endpoint(servers, &mut shadowed);
        Config {
            servers,
            shadowed,
            settings,
            lists,
            rules,
            hooks,
            questions,
            cloud_url,
            enterprise,
            looked,
            diagnostics: self.diagnostics,
        }
    }

    /// Empties every part of a guarded file that is not trusted, and asks about it.
    fn guard_sections(&self, documents: &mut [Document]) -> Vec<Question> {
        let mut questions = Vec::new();
        for document in documents
            .iter_mut()
            .filter(|document| document.source.guarded)
        {
            let parts = [
                ("settings", document.settings.span),
                ("security", document.lists.span),
                ("permissions", document.rules.span),
                ("hooks", document.hooks.span),
            ];
            for (part, span) in parts {
                let Some(span) = span else { continue };
                let path = document.source.file.path();
                let file = path
                    .strip_prefix(&self.inputs.folders.project)
                    .unwrap_or(path)
                    .display()
                    .to_string();
                let fingerprint = Fingerprint::of_section(document.source.file.slice(span));
                let Some(question) = self.question(Subject::Section { file, part }, fingerprint)
                else {
                    continue;
                };
                questions.push(question);
                match part {
                    "settings" => document.settings = Section::default(),
                    "security" => document.lists = Section::default(),
                    "permissions" => document.rules = Section::default(),
                    _ => document.hooks = Section::default(),
                }
            }
        }
        questions
    }

    /// What has to be asked before a guarded subject counts, if anything.
    fn question(&self, subject: Subject, fingerprint: Fingerprint) -> Option<Question> {
        match self
            .inputs
            .decisions
            .verdict(&self.inputs.folders.project, &subject, &fingerprint)
        {
            _ if self.inputs.trust_project => None,
            Verdict::Trusted => None,
            Verdict::New => Some(Question {
                subject,
                fingerprint,
                earlier: None,
            }),
            Verdict::Changed(earlier) => Some(Question {
                subject,
                fingerprint,
                earlier: Some(earlier),
            }),
        }
    }

    /// The provider address, which only the machine and the user may choose.
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

    fn no_effect(&mut self, key: &str, scope: Scope, origin: &Origin, hint: &str) {
        let message = format!("`{key}` has no effect in {scope} scope");
        self.diagnostics
            .push(Diagnostic::warning("no-effect", origin.clone(), message).with_hint(hint));
    }

    /// One contender for each name: the highest that is trusted, or else the highest. And those that lost.
    fn contenders(&mut self, documents: &mut [Document]) -> (Vec<Contender>, Vec<Shadowed>) {
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
                    .guarded
                    .then(|| self.server_question(&server, document))
                    .flatten();
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
                // Trust would not make it win, so nobody is asked about it.
                (_, Some((document, span))) => ShadowReason::SameName(origin(document, span)?),
                (Some(question), None) => ShadowReason::Untrusted(Box::new(question)),
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

    fn server_question(&mut self, server: &RawServer, document: &Document) -> Option<Question> {
        if self.inputs.trust_project {
            return None;
        }
        let entry = &server.decoded.entry;
        let program = entry
            .command
            .as_deref()
            .and_then(|command| self.program(command, entry, document));
        let fingerprint = Fingerprint::of_server(entry, program.as_deref());
        self.question(Subject::Server(server.name.clone()), fingerprint)
    }

    /// The file that a command names.
    fn program(
        &mut self,
        command: &str,
        entry: &ServerEntry,
        document: &Document,
    ) -> Option<PathBuf> {
        let variables = self.variables(document);
        let command = expand(command, &variables).ok()?.into_owned();
        let project = &self.inputs.folders.project;
        let folder = match &entry.cwd {
            Some(cwd) => project.join(expand(cwd, &variables).ok()?.as_ref()),
            None => project.clone(),
        };
        let (inputs, files) = (self.inputs, self.files);
        let find = |(command, folder): &(String, PathBuf)| {
            find_program(command, folder, &inputs.environment, files)
        };
        self.programs
            .entry((command, folder))
            .or_insert_with_key(find)
            .clone()
    }

    fn variables<'d>(&self, document: &'d Document) -> Variables<'d>
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

    /// Decides what a winner's status is.
    fn server(
        &mut self,
        contender: Contender,
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
        // The index came from enumerating these very documents.
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
        };
        server.status = if let Some(question) = question {
            Status::Untrusted(Box::new(question))
        } else if server.entry.enabled == Some(false) {
            Status::Disabled
        } else if !faults.is_empty() {
            Status::Faulty(faults)
        } else if let Some(blocked) = blocked(&server, lists) {
            blocked
        } else {
            self.expand(&mut server, document)
                .or_else(|| blocked(&server, lists))
                .unwrap_or(Status::Ready)
        };
        server
    }

    /// Replaces the references of an entry. The status when that fails.
    fn expand(&mut self, server: &mut Server, document: &Document) -> Option<Status> {
        if !server.entry.has_references() {
            return None;
        }
        match server.entry.expanded(&self.variables(document)) {
            Ok(expanded) => {
                server.expanded = Some(Box::new(expanded));
                None
            }
            Err(errors) => {
                let reasons = errors.iter().map(|(_, error)| error.to_string()).collect();
                for (field, error) in errors {
                    let origin = server
                        .fields()
                        .find(|(stated, _)| *stated == field)
                        .map(|(_, origin)| origin);
                    let origin = origin.unwrap_or_else(|| server.origin.clone());
                    let code = if matches!(error, ExpandError::Missing(_)) {
                        "missing-variable"
                    } else {
                        "bad-reference"
                    };
                    let message = format!(
                        "{error}, which `{}` of server `{}` needs",
                        field.name(),
                        server.name
                    );
                    let diagnostic =
                        Diagnostic::error(code, origin, message).with_hint(error.hint());
                    self.diagnostics.push(diagnostic.about(&server.name));
                }
                Some(Status::Faulty(reasons))
            }
        }
    }
}

/// The list that keeps a server out, if one does. A server of the enterprise file answers to its lists only.
fn blocked(server: &Server, lists: &[(Scope, ServerLists)]) -> Option<Status> {
    let entry = server.effective();
    let binding = |(scope, _): &&(Scope, ServerLists)| {
        server.scope() != Scope::Enterprise || *scope == Scope::Enterprise
    };
    for (_, lists) in lists.iter().filter(binding) {
        if let Some(pattern) = lists
            .deny
            .iter()
            .find(|pattern| pattern.matches(&server.name, entry))
        {
            let reason = format!(
                "denied by \"{}\" in mcp_server_denylist at {}",
                pattern.text, pattern.origin
            );
            return Some(Status::Blocked {
                reason,
                origin: pattern.origin.clone(),
            });
        }
        if let Some(allow) = &lists.allow
            && !allow
                .patterns
                .iter()
                .any(|pattern| pattern.matches(&server.name, entry))
        {
            let reason = format!("not in the mcp_server_allowlist at {}", allow.origin);
            return Some(Status::Blocked {
                reason,
                origin: allow.origin.clone(),
            });
        }
    }
    None
}

/// What makes two entries one server.
#[derive(PartialEq, Eq, Hash)]
enum Endpoint {
    Program {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
    },
    Address(String),
}

impl Endpoint {
    fn of(entry: &ServerEntry) -> Option<Self> {
        if let Some(url) = &entry.url {
            return Some(Endpoint::Address(mask::url_signature(url)));
        }
        let mut env: Vec<_> = entry
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        env.sort();
        let command = entry.command.clone()?;
        Some(Endpoint::Program {
            command,
            args: entry.args.clone(),
            env,
            cwd: entry.cwd.clone(),
        })
    }
}

/// Keeps one server for each endpoint, that of the highest scope, sorted by name.
fn one_per_endpoint(mut servers: Vec<Server>, shadowed: &mut Vec<Shadowed>) -> Vec<Server> {
    servers.sort_by(|one, other| {
        other
            .scope()
            .cmp(&one.scope())
            .then_with(|| one.name.cmp(&other.name))
    });
    // With one scope there is nothing to compare.
    let several = servers.first().map(Server::scope) != servers.last().map(Server::scope);
    let mut seen: HashMap<Endpoint, (String, Origin)> = HashMap::new();
    let mut kept = Vec::with_capacity(servers.len());
    for server in servers {
        let comparable = several && matches!(server.status, Status::Ready | Status::Disabled);
        let endpoint = if comparable {
            Endpoint::of(server.effective())
        } else {
            None
        };
        match endpoint.as_ref().and_then(|endpoint| seen.get(endpoint)) {
            Some((name, origin)) if origin.scope() != server.scope() => {
                let reason = ShadowReason::SameEndpoint {
                    name: name.clone(),
                    origin: origin.clone(),
                };
                shadowed.push(Shadowed {
                    name: server.name,
                    origin: server.origin,
                    entry: server.entry,
                    reason,
                });
            }
            _ => {
                if let Some(endpoint) = endpoint {
                    seen.entry(endpoint)
                        .or_insert_with(|| (server.name.clone(), server.origin.clone()));
                }
                kept.push(server);
            }
        }
    }
    kept.sort_by(|one, other| one.name.cmp(&other.name));
    kept
}

/// The file that a command starts: a path as it is, a bare name by `PATH`.
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
