//! Puts a server into a file: what `mcp add`, `mcp add-json` and `mcp import` share.

use std::borrow::Cow;

use switchboard_config::confusable;
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::document::EnterpriseMode;
use switchboard_config::edit::Edit;
use switchboard_config::entry::{Field, ServerEntry};
use switchboard_config::files::{InMemory, LOCAL_FILE, detached_source};
use switchboard_config::format::Format;
use switchboard_config::resolve::{Config, Inputs, ShadowReason, Status};
use switchboard_config::scope::Scope;
use switchboard_config::secret::MASK;
use switchboard_config::text::visible;
use switchboard_config::tree::Node;
use switchboard_config::trust::{Question, Subject};

use crate::cli::WritableScope;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::{Target, seat};
use crate::printer::{paint, style};
use crate::{store, view};

/// What happens when the name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// It is an error.
    Refuse,
    /// The entry is replaced.
    Replace,
}

/// Adds a server and says so.
pub(super) fn run(
    name: &str,
    entry: &ServerEntry,
    scope: WritableScope,
    existing: Existing,
    context: &Context,
) -> Outcome {
    let printer = &context.printer;
    check(name, entry)?;
    if let Some((reason, instead)) = look_alike(name, scope.scope(), context) {
        let message = format!("`{}` was not added: {reason}", visible(name));
        let hint = format!("use another name, for example `{}`", visible(&instead));
        return Err(Failure::usage(message).hint(hint));
    }
    context.warn_of_findings(&context.decisions());
    let target = Target::of_scope(scope, context);
    insert(name, entry, &target, existing, context)?;
    let transport = entry
        .effective_transport()
        .map_or("", |transport| transport.name());
    printer.note(format!(
        "{} {} ({transport}) in {} scope: {}",
        paint(style::GOOD, "added"),
        paint(style::NAME, visible(name)),
        target.scope,
        target.shown()
    ));
    warn_of_shared_secrets(entry, &target, context);
    remind_of_git(&target, context);
    settle(name, entry, &target, context)?;
    if printer.json {
        let mut shown = view::entry_json(entry);
        shown["name"] = name.into();
        printer.json(&shown)?;
    }
    Ok(Exit::Done)
}

/// Why a name cannot be told from that of a server that is used, and a name to use instead.
pub(super) fn look_alike(name: &str, scope: Scope, context: &Context) -> Option<(String, String)> {
    let config = context.load_files(context.decisions());
    let key = confusable::server_key(name);
    let other = config.servers.iter().find(|server| {
        server.status == Status::Ready
            && server.name != name
            && confusable::server_key(&server.name) == key
    })?;
    let place = view::place(&other.origin, &context.environment.home);
    let reason = format!(
        "its name can be mistaken for `{}` ({} scope, {place})",
        visible(&other.name),
        other.scope()
    );
    let is_taken = |name: &str| config.server(name).is_some();
    let plain = format!("{}-{}", other.name, scope.name());
    let mut numbered = (2..100).map(|number| format!("{plain}-{number}"));
    let instead = if is_taken(&plain) {
        numbered.find(|name| !is_taken(name)).unwrap_or(plain)
    } else {
        plain
    };
    Some((reason, instead))
}

/// Checks an entry by the rules of the files, before any file is touched.
pub(super) fn check(name: &str, entry: &ServerEntry) -> Result<(), Failure> {
    let node = Node::table([("mcpServers", Node::table([(name, entry.to_node())]))]);
    let (_, findings) = read_json(&view::node_json(&node).to_string());
    match findings.iter().find(|finding| matters(finding)) {
        None => Ok(()),
        Some(finding) => {
            let message = format!(
                "`{}` was not added: {}",
                visible(name),
                visible(&finding.message)
            );
            let failure = Failure::usage(message);
            Err(match &finding.hint {
                Some(hint) => failure.hint(visible(hint)),
                None => failure,
            })
        }
    }
}

/// Reads a document of servers that stands in no file, with no variable set.
pub(super) fn read_json(text: &str) -> (Option<ServerEntry>, Vec<Diagnostic>) {
    let inputs = Inputs {
        further: vec![detached_source(
            Scope::Dynamic,
            "command line",
            Format::Json,
            text,
        )],
        ..Inputs::default()
    };
    let Config {
        servers,
        diagnostics,
        ..
    } = Config::load(&inputs, &InMemory::default());
    (
        servers.into_iter().next().map(|server| server.entry),
        diagnostics,
    )
}

/// Whether a finding keeps an entry from being written. A variable may well be set later.
pub(super) fn matters(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error && finding.code != "missing-variable"
}

/// Writes the entry.
pub(super) fn insert(
    name: &str,
    entry: &ServerEntry,
    target: &Target,
    existing: Existing,
    context: &Context,
) -> Result<(), Failure> {
    store::edit(target, context, |text| {
        let seat = seat(text, target, name)?;
        if seat.keys.is_some() && existing == Existing::Refuse {
            let message = format!(
                "there is a server `{}` in {} already",
                visible(name),
                target.shown()
            );
            return Err(Failure::failed(message).hint(
                "choose another name, replace it with --force, or remove it with `switchboard mcp remove`",
            ));
        }
        let path: Vec<&str> = seat.path.iter().map(String::as_str).collect();
        let entry = for_file(entry, target);
        let value = renamed(entry.to_node(), target);
        store::apply(text, target, &Edit::Set { path: &path, value })
    })
}

/// Other tools want to be told the transport of a remote server.
fn for_file<'e>(entry: &'e ServerEntry, target: &Target) -> Cow<'e, ServerEntry> {
    if target.is_shared() && entry.url.is_some() {
        let transport = entry.effective_transport();
        Cow::Owned(ServerEntry {
            transport,
            ..entry.clone()
        })
    } else {
        Cow::Borrowed(entry)
    }
}

/// Other tools call the transport `type`.
fn renamed<'n>(mut node: Node<'n>, target: &Target) -> Node<'n> {
    if target.is_shared()
        && let switchboard_config::tree::Value::Table(members) = &mut node.value
    {
        for member in members {
            if member.key == Field::Transport.name() {
                member.key = "type".into();
            }
        }
    }
    node
}

/// Records the user's trust in what the user typed, and says when the entry has no effect.
pub(super) fn settle(
    name: &str,
    entry: &ServerEntry,
    target: &Target,
    context: &Context,
) -> Result<(), Failure> {
    let printer = &context.printer;
    let config = context.load_files(context.decisions());
    if config.enterprise == Some(EnterpriseMode::Exclusive) {
        printer.warning(
            "the entry has no effect: this machine has an enterprise file, which keeps out all others",
            Some("ask the machine's administrator to add the server"),
        );
        return Ok(());
    }
    if let Some(question) = question(name, &for_file(entry, target), target, &config) {
        let (subject, fingerprint) = (question.subject.clone(), question.fingerprint.clone());
        store::change_decisions(context, |decisions, now| {
            decisions.approve(&context.project, &subject, fingerprint, now);
        })?;
        printer.note("approved for this project, because you added it yourself");
    }
    let config = context.load_files(context.decisions());
    match config.server(name) {
        Some(winner) if winner.origin.path() != target.path => {
            let place = view::place(&winner.origin, &context.environment.home);
            printer.warning(
                format!(
                    "the entry has no effect: {} scope has the same name, at {place}",
                    winner.scope()
                ),
                Some("remove one of the two, or rename the server"),
            );
        }
        Some(winner) => {
            if let Some(reason) = winner.status.reason() {
                let name = visible(name);
                let hint = format!("`switchboard mcp get {name}` shows the entry");
                printer.warning(
                    format!("`{name}` cannot connect yet: {}", visible(&reason)),
                    Some(&hint),
                );
            }
        }
        None => {}
    }
    for server in &config.servers {
        if let Status::Shadowed { by, .. } = &server.status
            && by == name
        {
            let place = view::place(&server.origin, &context.environment.home);
            printer.note(format!(
                "`{}` ({} scope, {place}) points to the same endpoint, so `{}` is used in its place",
                visible(&server.name),
                server.scope(),
                visible(name)
            ));
        }
    }
    Ok(())
}

/// What would be asked about the entry of this file, as long as the file says what the user typed.
fn question<'c>(
    name: &str,
    entry: &ServerEntry,
    target: &Target,
    config: &'c Config,
) -> Option<&'c Question> {
    let standing = config
        .servers
        .iter()
        .filter(|server| server.name == name && server.origin.path() == target.path)
        .find_map(|server| match &server.status {
            Status::Untrusted(question) => Some((&server.entry, question.as_ref())),
            _ => None,
        });
    let lost = config
        .shadowed
        .iter()
        .filter(|lost| lost.name == name && lost.origin.path() == target.path)
        .find_map(|lost| match &lost.reason {
            ShadowReason::Untrusted(question) => Some((&lost.entry, question.as_ref())),
            _ => None,
        });
    let (read, question) = standing.or(lost)?;
    let is_about_it = question.subject == Subject::Server(name.to_owned());
    (read == entry && is_about_it).then_some(question)
}

/// Keeps the approval of an entry that the user has just changed by a command, and that was trusted before.
pub(super) fn stay_approved(
    name: &str,
    entry: &ServerEntry,
    target: &Target,
    context: &Context,
) -> Result<(), Failure> {
    let config = context.load_files(context.decisions());
    let Some(question) = question(name, entry, target, &config) else {
        return Ok(());
    };
    let (subject, fingerprint) = (question.subject.clone(), question.fingerprint.clone());
    // Something else may have changed since it was approved.
    let Some(earlier) = &question.earlier else {
        return Ok(());
    };
    let changes = fingerprint.changes(earlier);
    if changes.iter().any(|(part, ..)| *part != "enabled") {
        return Ok(());
    }
    store::change_decisions(context, |decisions, now| {
        decisions.approve(&context.project, &subject, fingerprint, now);
    })
}

fn warn_of_shared_secrets(entry: &ServerEntry, target: &Target, context: &Context) {
    if target.scope != Scope::Project {
        return;
    }
    let literal = entry
        .env
        .iter()
        .chain(&entry.headers)
        .find(|(_, secret)| secret.shown() == MASK);
    if let Some((name, _)) = literal {
        let name = visible(name);
        context.printer.warning(
            format!(
                "{} is shared with everybody in the project, and the value of {name} is in it",
                target.shown()
            ),
            Some("write ${NAME} in place of a secret and set the variable, or use local scope"),
        );
    }
}

fn remind_of_git(target: &Target, context: &Context) {
    let folder = &context.project;
    if target.scope != Scope::Local || folder.join(".git").symlink_metadata().is_err() {
        return;
    }
    let ignored = std::fs::read_to_string(folder.join(".gitignore")).unwrap_or_default();
    let covers = |line: &str| {
        let pattern = line
            .trim()
            .trim_start_matches("**/")
            .trim_start_matches('/');
        matches!(
            pattern,
            LOCAL_FILE | ".switchboard.local.*" | ".switchboard*" | "*.local.toml"
        )
    };
    if !ignored.lines().any(covers) {
        context
            .printer
            .note(format!("add {LOCAL_FILE} to .gitignore: it is yours alone"));
    }
}
