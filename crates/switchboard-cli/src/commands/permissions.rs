//! `switchboard permissions …`: lists the rules in force, explains the decision for a call, adds and removes rules.
//!
//! Starts no server: tools are looked up in the cached lists, else judged by name.

mod rules;

use std::fmt::Write as _;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::ExposedName;
use switchboard::internal::permissions::Explanation;
use switchboard::internal::remembered;
use switchboard::permissions::{Because, Engine, Policy, Rule, Subject};
use switchboard_config::confusable::BUILT_INS;
use switchboard_config::entry::Permission;
use switchboard_config::text::visible;

use crate::cli::PermissionsCommand;
use crate::commands::call::arguments::TypedArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, paint, style};
use crate::servers::Servers;
use crate::{lookup, session, view};

pub(crate) fn run(command: &PermissionsCommand, context: &Context) -> Outcome {
    let servers = Servers::load(context, None)?;
    match command {
        PermissionsCommand::List => list(&servers, context),
        PermissionsCommand::Explain { tool, arguments } => {
            explain(tool, arguments, &servers, context)
        }
        PermissionsCommand::Allow(rule) => rules::add(rule, Permission::Allow, &servers, context),
        PermissionsCommand::Ask(rule) => rules::add(rule, Permission::Ask, &servers, context),
        PermissionsCommand::Deny(rule) => rules::add(rule, Permission::Deny, &servers, context),
        PermissionsCommand::Remove(rule) => rules::remove(rule, &servers, context),
    }
}

fn list(servers: &Servers, context: &Context) -> Outcome {
    let printer = &context.printer;
    let engine = session::engine(servers, context, Policy::agent());
    for problem in engine.problems() {
        let place = view::place(&problem.origin, &context.environment.home);
        printer.warning(format!("{place}: {}", visible(&problem.message)), None);
    }
    if printer.json {
        printer.json(&engine.rules().iter().map(rule_json).collect())?;
        return Ok(Exit::Done);
    }
    if engine.rules().is_empty() {
        printer.note("no rules");
    } else {
        printer.table(&rules(&engine, context))?;
    }
    let typed = session::engine(servers, context, Policy::typed());
    let of = |engine: &Engine| engine.policy().default.name();
    printer.note(format!(
        "default without a matching rule: {} for calls you type, {} for calls of models and other programs",
        of(&typed),
        of(&engine)
    ));
    Ok(Exit::Done)
}

/// The rules in force, with their sources.
pub(crate) fn rules(engine: &Engine, context: &Context) -> Table {
    let mut table = Table::new(&[
        Column::new("ACTION"),
        Column::key("TOOL"),
        Column::text("IF").dropped(3),
        Column::new("SCOPE").dropped(2),
        Column::path("SOURCE").dropped(1),
    ]);
    for rule in engine.rules() {
        let source = view::place(&rule.origin, &context.environment.home);
        table.row([
            (action_style(rule.action), rule.action.name()),
            (style::NAME, &rule.tool),
            (anstyle::Style::new(), &rule.conditions.join(", ")),
            (style::QUIET, rule.origin.scope().name()),
            (style::QUIET, &source),
        ]);
    }
    table
}

fn explain(tool: &str, words: &[String], servers: &Servers, context: &Context) -> Outcome {
    let arguments = arguments(tool, words, servers, context)?;
    let engine = session::engine(servers, context, Policy::agent());
    let named = Named::find(tool, servers, context);
    let subject = named.subject();
    let explanation = engine.explain(&subject, arguments.as_deref());
    let typed = session::engine(servers, context, Policy::typed());
    let typed = typed.decide(&subject, arguments.as_deref()).permission;
    let may_be_read_only = matches!(explanation.decision.grounds.because, Because::Default)
        && subject
            .server
            .is_some_and(|server| servers.trusts_annotations(server));
    show(&named, &explanation, typed, context)?;
    if may_be_read_only {
        context
            .printer
            .note("its server is trusted: once connected, it may declare the tool read-only");
    }
    Ok(Exit::Done)
}

/// The arguments of the call, typed by the cached schema of the tool; `None` without words.
fn arguments(
    tool: &str,
    words: &[String],
    servers: &Servers,
    context: &Context,
) -> Result<Option<Box<RawValue>>, Failure> {
    if words.is_empty() {
        return Ok(None);
    }
    let typed = TypedArguments::read(words)?;
    let (outlines, lists) = servers.remembered(context);
    let catalog = remembered::catalog(&outlines, &lists);
    let known = lookup::tool(&catalog, tool);
    let schema = match &known {
        Ok(tool) => tool.input_schema(),
        Err(_) => RawValue::TRUE,
    };
    let arguments = typed.for_schema(schema)?;
    if !arguments.get().trim_start().starts_with('{') {
        return Err(Failure::usage("the arguments are not a JSON object")
            .hint("pass the arguments of the call, such as path=src or '{\"path\": \"src\"}'"));
    }
    Ok(Some(arguments))
}

fn show(
    named: &Named,
    explanation: &Explanation<'_>,
    typed: Permission,
    context: &Context,
) -> Outcome {
    let printer = &context.printer;
    let decision = &explanation.decision;
    let because = &decision.grounds.because;
    if printer.json {
        let losers = explanation.losers.iter().map(|loser| {
            let mut rule = rule_json(loser.rule);
            rule["lost"] = json!(loser.loss.reason());
            rule
        });
        printer.json(&json!({
            "decision": decision.permission.name(),
            "rule": because.rule(),
            "conditions": explanation.rule.map(|rule| rule.conditions.as_slice()).unwrap_or_default(),
            "source": because.origin().map(view::place_json),
            "because": because.word(),
            "reason": because.to_string(),
            "typed": typed.name(),
            "tool": named.exposed.as_str(),
            "server": named.server,
            "others": losers.collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    let home = &context.environment.home;
    let reason = match because {
        Because::Rule { tool, origin } => {
            let conditions = explanation
                .rule
                .map(|rule| rule.conditions.as_slice())
                .unwrap_or_default();
            format!(
                "rule \"{}\"{} at {}",
                visible(tool),
                in_words(conditions),
                view::place(origin, home)
            )
        }
        other => visible(&other.to_string()).into_owned(),
    };
    let mut text = format!(
        "{}  {}\n  because {reason}\n",
        paint(
            action_style(decision.permission),
            decision.permission.name()
        ),
        paint(style::NAME, visible(named.exposed.as_str())),
    );
    if typed != decision.permission {
        let what = match typed {
            Permission::Allow => "is allowed",
            Permission::Ask => "asks",
            Permission::Deny => "is denied",
        };
        let _ = writeln!(text, "  a call that you type yourself {what}");
    }
    for loser in &explanation.losers {
        let rule = loser.rule;
        let _ = writeln!(
            text,
            "  {} {} \"{}\"{} at {}: {}",
            paint(style::QUIET, "not applied:"),
            rule.action.name(),
            visible(&rule.tool),
            in_words(&rule.conditions),
            view::place(&rule.origin, home),
            loser.loss.reason()
        );
    }
    printer.data(text)?;
    if !named.is_known {
        printer.note("no known server has this tool; judged by name");
    }
    Ok(Exit::Done)
}

/// A tool as named on the command line.
struct Named {
    exposed: ExposedName,
    server: Option<String>,
    tool: String,
    /// Whether a server is known to offer it.
    is_known: bool,
}

impl Named {
    fn find(name: &str, servers: &Servers, context: &Context) -> Self {
        if BUILT_INS.contains(&name) {
            return Self::built_in(name, true);
        }
        let (outlines, lists) = servers.remembered(context);
        if let Ok(tool) = lookup::tool(&remembered::catalog(&outlines, &lists), name) {
            let reference = tool.reference();
            return Self::of(reference.server.as_str(), reference.tool.as_str(), true);
        }
        // The longest matching server name wins: one name can be a prefix of another.
        let configured = servers.config.servers.iter().map(|server| &*server.name);
        let begins = |server: &&str| rest_after(name, server).is_some();
        if let Some(server) = configured.filter(begins).max_by_key(|server| server.len()) {
            let tool = rest_after(name, server).unwrap_or_default();
            return Self::of(server, tool, false);
        }
        // For an unknown server, split the name itself.
        let rest = name.strip_prefix("mcp__");
        let parts = rest
            .and_then(|rest| rest.split_once("__"))
            .or_else(|| name.split_once('/'));
        match (parts, rest) {
            (Some((server, tool)), _) if !server.is_empty() && !tool.is_empty() => {
                Self::of(server, tool, false)
            }
            _ => Self::built_in(name, false),
        }
    }

    fn of(server: &str, tool: &str, is_known: bool) -> Self {
        Self {
            exposed: Subject::exposed_name(server, tool),
            server: Some(server.to_owned()),
            tool: tool.to_owned(),
            is_known,
        }
    }

    fn built_in(name: &str, is_known: bool) -> Self {
        Self {
            exposed: name.into(),
            server: None,
            tool: name.to_owned(),
            is_known,
        }
    }

    fn subject(&self) -> Subject<'_> {
        match &self.server {
            Some(server) => Subject::of_server(server, &self.tool, &self.exposed),
            None => Subject::built_in(&self.tool),
        }
    }
}

/// The part of a tool's name after its server's name.
fn rest_after<'n>(name: &'n str, server: &str) -> Option<&'n str> {
    let exposed = name
        .strip_prefix("mcp__")
        .and_then(|name| name.strip_prefix(server))
        .and_then(|rest| rest.strip_prefix("__"));
    let rest = exposed.or_else(|| {
        let rest = name.strip_prefix(server)?;
        rest.strip_prefix(['/', '.'])
    });
    rest.filter(|rest| !rest.is_empty())
}

/// The conditions of a rule as text, to follow its pattern.
fn in_words(conditions: &[String]) -> String {
    if conditions.is_empty() {
        return String::new();
    }
    format!(" if {}", visible(&conditions.join(" and ")))
}

fn rule_json(rule: &Rule) -> Value {
    json!({
        "tool": rule.tool,
        "action": rule.action.name(),
        "conditions": rule.conditions,
        "source": view::place_json(&rule.origin),
    })
}

fn action_style(action: Permission) -> anstyle::Style {
    match action {
        Permission::Allow => style::GOOD,
        Permission::Ask => style::WARNING,
        Permission::Deny => style::ERROR,
    }
}
