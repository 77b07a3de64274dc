//! `switchboard config show`: prints the effective configuration, with origins and shadowed entries.

use std::fmt::Write as _;

use serde_json::{Value, json};
use switchboard_config::document::EnterpriseMode;
use switchboard_config::mask;
use switchboard_config::policy::{HookEntry, HookEvent, ProfileEntry, RuleEntry, SearchWhen};
use switchboard_config::resolve::Config;
use switchboard_config::settings::{Setting, SettingOrigin};
use switchboard_config::source::Origin;
use switchboard_config::text::visible;
use switchboard_config::trust::Question;
use switchboard_config::words;

use super::server_text;
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::view::{self, Shadows};

pub(crate) fn run(context: &Context) -> Outcome {
    let config = context.load();
    if context.printer.json {
        context.printer.json(&to_json(&config, context))?;
    } else {
        context.printer.data(to_text(&config, context))?;
    }
    Ok(Exit::Done)
}

/// Which settings are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    All,
    /// Those that do not have their default.
    Changed,
}

/// The effective configuration, for people.
fn to_text(config: &Config, context: &Context) -> String {
    text(config, context, Listed::All)
}

/// Like `config show`, without the settings that have their defaults.
pub(crate) fn changed_text(config: &Config, context: &Context) -> String {
    text(config, context, Listed::Changed)
}

fn text(config: &Config, context: &Context, listed: Listed) -> String {
    let home = &context.environment.home;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}  {}",
        paint(style::NAME, "project"),
        view::path(&context.project, home)
    );
    if let Some(mode) = config.enterprise {
        let meaning = match mode {
            EnterpriseMode::Exclusive => "exclusive: nothing else is loaded",
            EnterpriseMode::Merge => {
                "merge: its entries take precedence and its lists apply to every scope"
            }
        };
        let _ = writeln!(text, "{}  {meaning}", paint(style::NAME, "enterprise file"));
    }
    if let Some((url, origin)) = &config.cloud_url {
        let place = paint(style::QUIET, view::place(origin, home));
        let place = match config.enterprise {
            Some(_) => format!("{place}  not fetched: the enterprise file excludes cloud servers"),
            None => place,
        };
        let _ = writeln!(
            text,
            "{}  {}  {place}",
            paint(style::NAME, "cloud"),
            visible(&mask::url(url))
        );
    }
    let shadows = Shadows::of(config);
    heading(&mut text, "servers", config.servers.is_empty());
    for server in &config.servers {
        text.push_str(&server_text(server, &shadows, home));
    }
    for lost in shadows.indirect() {
        let place = paint(style::QUIET, view::place(&lost.origin, home));
        let _ = writeln!(
            text,
            "{}  shadowed  {} scope  {place}\n    because {}",
            paint(style::NAME, visible(&lost.name)),
            lost.origin.scope(),
            visible(&lost.reason.to_string()),
        );
    }
    heading(&mut text, "settings", false);
    settings_text(&mut text, config, context, listed);
    let lists: Vec<_> = list_rows(config).collect();
    heading(&mut text, "server lists", lists.is_empty());
    for (list, pattern, origin) in lists {
        let place = paint(style::QUIET, view::place(origin, home));
        let pattern = pattern.map_or_else(
            || "nothing".to_owned(),
            |text| format!("\"{}\"", visible(text)),
        );
        let _ = writeln!(text, "{list} {pattern}  {place}");
    }
    heading(&mut text, "permission rules", config.rules.is_empty());
    for rule in &config.rules {
        let place = paint(style::QUIET, view::place(&rule.origin, home));
        let _ = writeln!(text, "{}  {place}", rule_text(rule));
    }
    heading(&mut text, "hooks", config.hooks.is_empty());
    for hook in &config.hooks {
        let place = paint(style::QUIET, view::place(&hook.origin, home));
        let _ = writeln!(text, "{}  {place}", hook_text(hook));
    }
    heading(&mut text, "profiles", config.profiles.is_empty());
    for profile in &config.profiles {
        let place = paint(style::QUIET, view::place(&profile.origin, home));
        let _ = writeln!(
            text,
            "{}{}  {place}",
            paint(style::NAME, visible(&profile.name)),
            profile_text(profile)
        );
    }
    heading(&mut text, "waiting for trust", config.questions.is_empty());
    for question in &config.questions {
        let subject = question.subject.to_string();
        let _ = writeln!(
            text,
            "{}  {}  `switchboard trust approve {}`",
            visible(&subject),
            paint(style::WARNING, question_word(question)),
            words::quote(&visible(&subject)),
        );
    }
    text
}

fn heading(text: &mut String, name: &str, empty: bool) {
    let name = paint(style::HINT, format!("[{name}]"));
    let none = if empty {
        format!("  {}", paint(style::QUIET, "none"))
    } else {
        String::new()
    };
    let _ = writeln!(text, "\n{name}{none}");
}

fn settings_text(text: &mut String, config: &Config, context: &Context, listed: Listed) {
    let home = &context.environment.home;
    let place = |origin: &SettingOrigin| match origin {
        SettingOrigin::File(origin) => {
            format!("{} scope, {}", origin.scope(), view::place(origin, home))
        }
        other => other.to_string(),
    };
    let mut defaults = 0;
    for setting in Setting::all() {
        let effective = config.settings.get(setting);
        let is_default = matches!(effective.origin, SettingOrigin::Default);
        if is_default && listed == Listed::Changed {
            defaults += 1;
            continue;
        }
        let _ = write!(
            text,
            "{} = {}  {}",
            setting.key().name,
            effective.value,
            paint(style::QUIET, place(&effective.origin))
        );
        for (value, origin) in &effective.shadowed {
            let _ = write!(
                text,
                "  {} {value} ({})",
                paint(style::WARNING, "shadows"),
                place(origin)
            );
        }
        text.push('\n');
    }
    if defaults > 0 {
        let rest = format!("{defaults} settings have their defaults: `switchboard config show`");
        let _ = writeln!(text, "{}", paint(style::QUIET, rest));
    }
}

/// List, pattern and origin. An allow list without a valid pattern allows nothing.
fn list_rows(config: &Config) -> impl Iterator<Item = (&'static str, Option<&str>, &Origin)> {
    config.lists.iter().flat_map(|(_, lists)| {
        let empty = lists.allow.iter().filter(|allow| allow.patterns.is_empty());
        let allow = lists.allow.iter().flat_map(|allow| &allow.patterns);
        let allow = allow.map(|pattern| ("allow", pattern));
        let stated = allow.chain(lists.deny.iter().map(|pattern| ("deny", pattern)));
        empty.map(|allow| ("allow", None, &allow.origin)).chain(
            stated.map(|(list, pattern)| (list, Some(pattern.text.as_str()), &pattern.origin)),
        )
    })
}

fn rule_text(rule: &RuleEntry) -> String {
    let mut text = format!("{} {}", rule.action, visible(&rule.tool));
    for (index, condition) in rule.arguments.iter().enumerate() {
        let word = if index == 0 { "when" } else { "and" };
        let _ = write!(
            text,
            " {word} {} {} \"{}\"",
            visible(&condition.argument),
            condition.test.name(),
            visible(&condition.value)
        );
    }
    text
}

fn hook_text(hook: &HookEntry) -> String {
    let command = words::join(mask::arguments(&hook.command));
    let mut text = format!(
        "{} {} {}",
        event(hook),
        visible(&hook.tool),
        visible(&command)
    );
    if let Some(timeout) = hook.timeout {
        let _ = write!(text, " (at most {} s)", timeout.as_secs_f64());
    }
    if hook.fail_open {
        text.push_str(" (calls continue if it fails)");
    }
    text
}

fn profile_text(profile: &ProfileEntry) -> String {
    let mut text = String::new();
    if let Some(fault) = profile.faults.first() {
        let _ = write!(
            text,
            "  {}: {}",
            paint(style::WARNING, "not usable"),
            visible(fault)
        );
    }
    let mut list = |name: &str, patterns: &[String]| {
        let patterns: Vec<_> = patterns.iter().map(|pattern| visible(pattern)).collect();
        let _ = write!(text, "  {name} {}", patterns.join(", "));
    };
    if let Some(servers) = &profile.servers {
        list("servers", servers);
    }
    if let Some(tools) = &profile.tools {
        list("tools", tools);
    }
    if !profile.disabled_tools.is_empty() {
        list("without", &profile.disabled_tools);
    }
    for (tool, name) in &profile.rename {
        let _ = write!(text, "  {} as {}", visible(tool), visible(name));
    }
    for rule in &profile.rules {
        let _ = write!(text, "  {}", rule_text(rule));
    }
    if let Some(search) = profile.search {
        let _ = write!(text, "  search {}", search.name());
    }
    text
}

fn profile_json(profile: &ProfileEntry) -> Value {
    let rename = profile.rename.iter();
    let rename: serde_json::Map<String, Value> = rename
        .map(|(tool, name)| (tool.clone(), json!(name)))
        .collect();
    json!({
        "name": profile.name,
        "servers": profile.servers,
        "tools": profile.tools,
        "disabled_tools": profile.disabled_tools,
        "rename": rename,
        "rules": profile.rules.iter().map(rule_json).collect::<Vec<_>>(),
        "search": profile.search.map(SearchWhen::name),
        "search_budget": profile.search_budget,
        "instructions": profile.instructions,
        "errors": profile.faults,
        "source": view::place_json(&profile.origin),
    })
}

fn rule_json(rule: &RuleEntry) -> Value {
    let conditions = rule.arguments.iter().map(|condition| {
        json!({
            "argument": condition.argument,
            "test": condition.test.name(),
            "value": condition.value,
        })
    });
    json!({
        "tool": rule.tool,
        "action": rule.action.name(),
        "arguments": conditions.collect::<Vec<_>>(),
        "source": view::place_json(&rule.origin),
    })
}

fn event(hook: &HookEntry) -> &'static str {
    match hook.event {
        HookEvent::PreToolUse => "PreToolUse",
        HookEvent::PostToolUse => "PostToolUse",
    }
}

fn question_word(question: &Question) -> String {
    visible(&question.reason()).into_owned()
}

fn to_json(config: &Config, context: &Context) -> Value {
    let shadows = Shadows::of(config);
    let servers = config
        .servers
        .iter()
        .map(|server| view::server_json(server, &shadows));
    let rules = config.rules.iter().map(rule_json);
    let hooks = config.hooks.iter().map(|hook| {
        json!({
            "event": event(hook),
            "tool": hook.tool,
            "command": mask::arguments(&hook.command),
            "timeout_sec": hook.timeout.map(|timeout| timeout.as_secs_f64()),
            "fail_open": hook.fail_open,
            "source": view::place_json(&hook.origin),
        })
    });
    let lists = list_rows(config).map(|(list, pattern, origin)| {
        json!({"list": list, "pattern": pattern, "source": view::place_json(origin)})
    });
    let waiting = config.questions.iter().map(|question| {
        json!({
            "subject": question.subject.to_string(),
            "state": if question.earlier.is_some() { "changed" } else { "new" },
        })
    });
    json!({
        "project": context.project.display().to_string(),
        "enterprise": config.enterprise.map(|mode| match mode {
            EnterpriseMode::Exclusive => "exclusive",
            EnterpriseMode::Merge => "merge",
        }),
        "cloud": config.cloud_url.as_ref().map(|(url, origin)| json!({
            "url": mask::url(url),
            "source": view::place_json(origin),
        })),
        "servers": servers.collect::<Vec<_>>(),
        "shadowed": config.shadowed.iter().map(view::shadowed_json).collect::<Vec<_>>(),
        "settings": Setting::all().map(|setting| setting_json(setting, config)).collect::<Vec<_>>(),
        "lists": lists.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
        "hooks": hooks.collect::<Vec<_>>(),
        "profiles": config.profiles.iter().map(profile_json).collect::<Vec<_>>(),
        "waiting": waiting.collect::<Vec<_>>(),
    })
}

fn setting_json(setting: Setting, config: &Config) -> Value {
    let source = |origin: &SettingOrigin| match origin {
        SettingOrigin::Default => view::no_place_json("default"),
        SettingOrigin::Environment(_) => view::no_place_json("environment"),
        SettingOrigin::File(origin) => view::place_json(origin),
    };
    let variable = |origin: &SettingOrigin| match origin {
        SettingOrigin::Environment(variable) => Some((*variable).to_owned()),
        _ => None,
    };
    let value = |value: &dyn std::fmt::Display| {
        let text = value.to_string();
        serde_json::from_str::<serde_json::Number>(&text)
            .map_or_else(|_| json!(text), Value::Number)
    };
    let effective = config.settings.get(setting);
    let shadows = effective
        .shadowed
        .iter()
        .map(|(hidden, origin)| json!({"value": value(hidden), "source": source(origin), "variable": variable(origin)}));
    json!({
        "key": setting.key().name,
        "value": value(&effective.value),
        "source": source(&effective.origin),
        "variable": variable(&effective.origin),
        "shadows": shadows.collect::<Vec<_>>(),
    })
}
