//! Adds a server to a file: shared by `mcp add`, `mcp add-json` and `mcp import`.

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
use crate::local_file::{Target, locate_entry};
use crate::printer::{paint, style};
use crate::{store, view};

/// What to do if the name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Refuse,
    Replace,
}

/// Adds a server and reports it.
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

/// If the name is confusable with that of an existing server, the reason and an alternative name.
pub(crate) fn look_alike(name: &str, scope: Scope, context: &Context) -> Option<(String, String)> {
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

/// Validates an entry before any file is changed.
pub(crate) fn check(name: &str, entry: &ServerEntry) -> Result<(), Failure> {
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

/// Parses a JSON document of servers, with no variables set.
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

/// Whether a diagnostic prevents adding the entry. A missing variable may be set later.
pub(super) fn matters(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error && finding.code != "missing-variable"
}

pub(crate) fn insert(
    name: &str,
    entry: &ServerEntry,
    target: &Target,
    existing: Existing,
    context: &Context,
) -> Result<(), Failure> {
    store::edit(target, context, |text| {
        let location = locate_entry(text, target, name)?;
        if location.keys.is_some() && existing == Existing::Refuse {
            let message = format!(
                "server `{}` already exists in {}",
                visible(name),
                target.shown()
            );
            return Err(Failure::failed(message).hint(
                "choose another name, replace it with --force, or remove it with `switchboard mcp remove`",
            ));
        }
        let path: Vec<&str> = location.path.iter().map(String::as_str).collect();
        let entry = for_file(entry, target);
        let value = renamed(entry.to_node(), target);
        store::apply(text, target, &Edit::Set { path: &path, value })
    })
}

/// Adds the explicit transport that other tools require for remote servers.
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

/// Renames `transport` to `type`, as other tools expect.
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

/// Approves the entry that the user typed, and warns if it has no effect.
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
            "the entry has no effect: this machine's enterprise file excludes all others",
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
                "`{}` ({} scope, {place}) points to the same endpoint, so `{}` is used instead",
                visible(&server.name),
                server.scope(),
                visible(name)
            ));
        }
    }
    Ok(())
}

/// The trust question for the entry, if the file still contains what the user typed.
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

/// Renews the approval of a trusted entry that the user has just changed by a command.
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
    // Renew only if `enabled` is the sole change since the earlier approval.
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
                "{} is shared with everyone in the project, and contains the value of {name}",
                target.shown()
            ),
            Some("replace the secret with ${NAME} and set the variable, or use local scope"),
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
            .note(format!("add {LOCAL_FILE} to .gitignore: it is personal"));
    }
}
