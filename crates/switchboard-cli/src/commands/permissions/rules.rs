//! `switchboard permissions allow`, `ask`, `deny` and `remove`: edit the rules in your files.

use serde_json::json;
use switchboard::internal::catalog::exposed::exposed_name;
use switchboard::internal::remembered;
use switchboard_config::confusable::BUILT_INS;
use switchboard_config::edit::NewRule;
use switchboard_config::entry::Permission;
use switchboard_config::entry::keys::nearest;
use switchboard_config::files::{Disk, Files as _};
use switchboard_config::policy::RuleEntry;
use switchboard_config::text::visible;

use super::{action_style, rest_after};
use crate::cli::{RuleArguments, RuleScope};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::Target;
use crate::printer::{paint, style};
use crate::servers::Servers;
use crate::{lookup, rehearse, store, view};

/// Adds a rule for all calls of the tools.
pub(super) fn add(
    arguments: &RuleArguments,
    action: Permission,
    servers: &Servers,
    context: &Context,
) -> Outcome {
    let pattern = pattern(&arguments.rule, servers, context);
    let target = Target::of_scope(arguments.scope.unwrap_or_default().into(), context);
    let is_here = |rule: &&RuleEntry| rule.origin.path() == target.path;
    let is_plain = |rule: &&RuleEntry| rule.arguments.is_empty() && rule.exact_arguments.is_none();
    let same = || {
        servers
            .config
            .rules
            .iter()
            .filter(|rule| rule.tool == pattern)
    };
    let exists = same()
        .filter(is_here)
        .filter(is_plain)
        .any(|rule| rule.action == action);
    let printer = &context.printer;
    if exists {
        printer.note(format!("{} has this rule already", target.shown()));
    } else {
        let rule = NewRule::new(pattern.as_str(), action);
        store::edit(&target, context, |text| {
            let changed = store::with_rule(text, &target, &rule)?;
            rehearse::check(&target, &changed, context)?;
            Ok(changed)
        })?;
        printer.note(format!(
            "{} {} in {} scope: {}",
            paint(action_style(action), action.name()),
            paint(style::NAME, visible(&pattern)),
            target.scope,
            target.shown()
        ));
    }
    for stricter in same().filter(|rule| strictness(rule.action) > strictness(action)) {
        let place = view::place(&stricter.origin, &context.environment.home);
        let hint =
            "the strictest matching rule decides; remove it with `switchboard permissions remove`";
        let word = stricter.action.name();
        printer.warning(
            format!("{place}: a rule with the action {word} still applies"),
            Some(hint),
        );
    }
    if printer.json {
        printer.json(&json!({
            "tool": pattern,
            "action": action.name(),
            "scope": target.scope.name(),
            "file": target.path.display().to_string(),
        }))?;
    }
    Ok(Exit::Done)
}

/// Removes every rule of the pattern from your files.
pub(super) fn remove(arguments: &RuleArguments, servers: &Servers, context: &Context) -> Outcome {
    let written = pattern(&arguments.rule, servers, context);
    let scopes = match arguments.scope {
        Some(scope) => vec![scope],
        None => vec![RuleScope::Local, RuleScope::User],
    };
    let printer = &context.printer;
    let mut files = Vec::new();
    for scope in scopes {
        let target = Target::of_scope(scope.into(), context);
        let before = Disk.read(&target.path).ok().flatten().unwrap_or_default();
        let before = String::from_utf8_lossy(&before);
        for tool in [arguments.rule.as_str(), written.as_str()] {
            if store::remove_rule(&before, &target, tool)?.is_none() {
                continue;
            }
            store::edit(&target, context, |text| {
                let changed = store::remove_rule(text, &target, tool)?;
                Ok(changed.unwrap_or_else(|| text.to_owned()))
            })?;
            printer.note(format!(
                "{} {} from {} scope: {}",
                paint(style::GOOD, "removed"),
                paint(style::NAME, visible(tool)),
                target.scope,
                target.shown()
            ));
            files.push(target.path.display().to_string());
            break;
        }
    }
    if files.is_empty() {
        return Err(not_found(&arguments.rule, &written, servers, context));
    }
    if printer.json {
        printer.json(&json!({"tool": written, "removed": files}))?;
    }
    Ok(Exit::Done)
}

fn not_found(rule: &str, written: &str, servers: &Servers, context: &Context) -> Failure {
    let failure = Failure::failed(format!("your files have no rule \"{}\"", visible(rule)));
    let rules = &servers.config.rules;
    if let Some(other) = rules.iter().find(|each| each.tool == written) {
        let place = view::place(&other.origin, &context.environment.home);
        let scope = other.origin.scope();
        return failure.hint(format!("it is in {scope} scope, at {place}; edit it there"));
    }
    match nearest(rule, rules.iter().map(|each| each.tool.as_str())) {
        Some(near) => failure.hint(format!("did you mean \"{}\"?", visible(near))),
        None => failure.hint("`switchboard permissions list` shows all rules"),
    }
}

/// The pattern for a rule: `server/tool`, a server or a tool's own name become the names that rules match.
fn pattern(rule: &str, servers: &Servers, context: &Context) -> String {
    let is_written = BUILT_INS.contains(&rule) || rule.starts_with("mcp__") || rule.contains('(');
    if is_written {
        return rule.to_owned();
    }
    let of_server = |server: &str, tool: &str| {
        // The exposed name of a one-letter tool, without the letter, is the prefix of all tools of the server.
        let exposed = exposed_name(server, "t");
        let prefix = exposed.as_str().strip_suffix('t').unwrap_or_default();
        format!("{prefix}{tool}")
    };
    if servers.has(rule) {
        return of_server(rule, "*");
    }
    let (outlines, lists) = servers.remembered(context);
    if let Ok(tool) = lookup::tool(&remembered::catalog(&outlines, &lists), rule) {
        return tool.exposed().as_str().to_owned();
    }
    let configured = servers.config.servers.iter().map(|server| &*server.name);
    let named = configured.filter(|server| rest_after(rule, server).is_some());
    match named.max_by_key(|server| server.len()) {
        Some(server) => of_server(server, rest_after(rule, server).unwrap_or("*")),
        None => rule.to_owned(),
    }
}

fn strictness(action: Permission) -> u8 {
    match action {
        Permission::Allow => 0,
        Permission::Ask => 1,
        Permission::Deny => 2,
    }
}
