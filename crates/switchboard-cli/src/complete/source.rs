//! Candidates from the configuration and the cache: servers, tools, prompts, resources, arguments, settings, rules.

use std::collections::BTreeSet;

use clap::Arg;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::catalog::{Catalog, CatalogTool};
use switchboard::internal::remembered::{self, Outline, Remembered};
use switchboard_config::confusable::BUILT_INS;
use switchboard_config::foreign::Tool;
use switchboard_config::settings::Setting;

use super::Candidate;
use super::position::Position;
use crate::commands::help;
use crate::context::Context;
use crate::lookup;
use crate::servers::Servers;
use crate::signature::Signature;

/// What is configured and cached.
#[derive(Default)]
pub(super) struct Known {
    context: Option<Context>,
    servers: Option<Servers>,
}

/// The cached lists of the servers.
struct Cached {
    outlines: Vec<Outline>,
    lists: Vec<Remembered>,
    catalog: Catalog,
}

/// A prompt, as far as it is completed.
#[derive(Deserialize)]
struct Prompt {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    arguments: Vec<PromptArgument>,
}

#[derive(Deserialize)]
struct PromptArgument {
    name: String,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
    #[serde(default)]
    name: String,
}

impl Known {
    pub(super) fn read(context: Context) -> Self {
        let servers = Servers::load_offline(&context);
        Self {
            context: Some(context),
            servers: Some(servers),
        }
    }

    fn servers(&self) -> Vec<Candidate> {
        let Some(servers) = &self.servers else {
            return Vec::new();
        };
        let candidate = |name: String| Candidate::new(name, "server");
        servers.names().into_iter().map(candidate).collect()
    }

    fn cached(&self) -> Option<Cached> {
        let (servers, context) = (self.servers.as_ref()?, self.context.as_ref()?);
        let (outlines, lists) = servers.remembered(context);
        let catalog = remembered::catalog(&outlines, &lists);
        Some(Cached {
            outlines,
            lists,
            catalog,
        })
    }

    /// Tools as `server/tool`.
    fn tools(&self) -> Vec<Candidate> {
        let Some(cached) = self.cached() else {
            return Vec::new();
        };
        let candidate = |tool: &CatalogTool| {
            let about = tool.description().or_else(|| tool.title());
            Candidate::new(
                tool.reference().to_string(),
                first_line(&about.unwrap_or_default()),
            )
        };
        cached.catalog.iter().map(candidate).collect()
    }

    /// The servers, and the tools once a server is typed: one server can have hundreds.
    fn servers_or_tools(&self, current: &str) -> Vec<Candidate> {
        let mut found = self.servers();
        if current.contains(['/', '.']) {
            found.extend(self.tools());
        } else {
            let open = |each: &Candidate| Candidate::open(format!("{}/", each.value), "its tools");
            let open: Vec<Candidate> = found.iter().map(open).collect();
            found.extend(open);
        }
        found
    }

    fn signature(&self, tool: &str) -> Signature {
        let Some(cached) = self.cached() else {
            return Signature::default();
        };
        let tool = lookup::tool(&cached.catalog, tool);
        tool.map_or_else(
            |_| Signature::default(),
            |tool| Signature::of(tool.input_schema()),
        )
    }

    /// The prompts of each server.
    fn prompts(&self) -> Vec<(String, Vec<Prompt>)> {
        let Some(cached) = self.cached() else {
            return Vec::new();
        };
        let pairs = cached.outlines.iter().zip(&cached.lists);
        pairs
            .map(|(outline, list)| {
                let prompts = list.prompts().map(|bytes| items(bytes));
                (
                    outline.name.as_str().to_owned(),
                    prompts.unwrap_or_default(),
                )
            })
            .collect()
    }

    fn prompt_names(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for (server, prompts) in self.prompts() {
            found.extend(prompts.into_iter().map(|prompt| {
                let about = prompt.description.unwrap_or_default();
                Candidate::new(format!("{server}/{}", prompt.name), first_line(&about))
            }));
        }
        found
    }

    /// The arguments of a prompt that is named as `server/prompt` or as two words.
    fn prompt_arguments(&self, words: &[String]) -> Vec<(String, String)> {
        let all = self.prompts();
        let is_named = |server: &str, prompt: &Prompt| match words {
            [first, ..] if *first == format!("{server}/{}", prompt.name) => true,
            [first, second, ..] => first == server && *second == prompt.name,
            _ => false,
        };
        let mut found = all.into_iter().flat_map(|(server, prompts)| {
            prompts.into_iter().map(move |each| (server.clone(), each))
        });
        let prompt = found.find(|(server, prompt)| is_named(server, prompt));
        let arguments = prompt
            .map(|(_, prompt)| prompt.arguments)
            .unwrap_or_default();
        arguments
            .into_iter()
            .map(|each| (each.name, each.description.unwrap_or_default()))
            .collect()
    }

    fn resources(&self, server: &str) -> Vec<Candidate> {
        let (Some(servers), Some(context)) = (&self.servers, &self.context) else {
            return Vec::new();
        };
        let bytes = servers.cached_resources(server, context);
        let resources: Vec<Resource> = bytes.map(|bytes| items(&bytes)).unwrap_or_default();
        let candidate = |each: Resource| Candidate::new(each.uri, each.name);
        resources.into_iter().map(candidate).collect()
    }

    fn rules(&self) -> Vec<Candidate> {
        let rules = self
            .servers
            .iter()
            .flat_map(|servers| &servers.config.rules);
        rules
            .map(|rule| Candidate::new(rule.tool.clone(), rule.action.name()))
            .collect()
    }
}

/// The items of a cached list. One that cannot be decoded costs only itself.
fn items<T: for<'d> Deserialize<'d>>(bytes: &[u8]) -> Vec<T> {
    let items: Vec<&RawValue> = serde_json::from_slice(bytes).unwrap_or_default();
    let items = items.into_iter();
    items
        .filter_map(|item| serde_json::from_str(item.get()).ok())
        .collect()
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().to_owned()
}

/// What the value of a flag can be.
pub(super) fn flag_values(flag: &Arg, known: &Known) -> Vec<Candidate> {
    let stated = flag.get_possible_values();
    if !stated.is_empty() {
        let shown = stated.iter().filter(|value| !value.is_hide_set());
        let about =
            |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string);
        return shown
            .map(|value| Candidate::new(value.get_name(), about(value).unwrap_or_default()))
            .collect();
    }
    match flag.get_long() {
        Some("server") => known.servers(),
        Some("from" | "to") => tools(),
        _ => Vec::new(),
    }
}

/// Tools whose files can be read and written.
fn tools() -> Vec<Candidate> {
    let tools = Tool::ALL.iter();
    tools
        .map(|tool| Candidate::new(tool.name(), tool.title()))
        .collect()
}

/// Candidates for a positional argument.
pub(super) fn positional(position: &Position<'_>, current: &str, known: &Known) -> Vec<Candidate> {
    let index = position.positional.len();
    match (position.path.as_slice(), index) {
        (["call" | "tools"] | ["permissions", "explain"], 0) => {
            let mut found = known.servers_or_tools(current);
            if position.path.as_slice() != ["tools"] {
                found.retain(|each| each.is_open || each.value.contains('/'));
            }
            found
        }
        (["permissions", "allow" | "ask" | "deny"], 0) => {
            let mut found = known.servers_or_tools(current);
            found.extend(
                BUILT_INS
                    .iter()
                    .map(|name| Candidate::new(*name, "built-in tool")),
            );
            found
        }
        (["permissions", "remove"], 0) => known.rules(),
        (["clients", ..], _) => {
            let mut found = tools();
            found.retain(|each| !position.positional.contains(&each.value));
            found
        }
        (["pins", ..], 0) => known.servers_or_tools(current),
        (
            [
                "mcp",
                "remove" | "enable" | "disable" | "get" | "login" | "logout" | "rename" | "edit"
                | "test",
            ]
            | ["doctor" | "logs" | "read"]
            | ["trust", "approve" | "revoke" | "diff"],
            0,
        ) => known.servers(),
        (["read"], 1) => known.resources(&position.positional[0]),
        (["prompt"], 0) => {
            let mut found = known.prompt_names();
            found.extend(known.servers());
            found
        }
        (["prompt"], 1) if !position.positional[0].contains('/') => {
            let prefix = format!("{}/", position.positional[0]);
            let names = known.prompt_names().into_iter();
            let own = names.filter_map(|each| {
                let value = each.value.strip_prefix(&prefix)?.to_owned();
                Some(Candidate { value, ..each })
            });
            own.collect()
        }
        (["call" | "prompt"] | ["permissions", "explain"], _) => {
            arguments(position, current, known)
        }
        (["config", "set"], 0) => {
            let keys = Setting::all().map(Setting::key);
            keys.map(|key| Candidate::new(key.name, key.about))
                .collect()
        }
        (["help"], 0) => {
            let topics = help::topics();
            topics
                .map(|(name, about)| Candidate::new(name, about))
                .collect()
        }
        _ => position
            .command
            .get_positionals()
            .nth(index)
            .map(|argument| flag_values(argument, known))
            .unwrap_or_default(),
    }
}

/// The arguments of the tool or prompt that the line names, as `key=` or `--key`, or the values of one.
pub(super) fn arguments(position: &Position<'_>, current: &str, known: &Known) -> Vec<Candidate> {
    let words = &position.positional;
    let flag = if current.starts_with("--") { "--" } else { "" };
    let given: BTreeSet<&str> = words
        .iter()
        .map(|word| word.trim_start_matches('-'))
        .filter_map(|word| word.split(['=', ':']).next())
        .collect();
    if position.path.as_slice() == ["prompt"] {
        let arguments = known.prompt_arguments(words).into_iter();
        let missing = arguments.filter(|(name, _)| !given.contains(name.as_str()));
        return missing
            .map(|(name, about)| Candidate::open(format!("{flag}{name}="), first_line(&about)))
            .collect();
    }
    let takes_arguments = matches!(
        position.path.as_slice(),
        ["call"] | ["permissions", "explain"]
    );
    let Some(tool) = words.first().filter(|_| takes_arguments) else {
        return Vec::new();
    };
    let signature = known.signature(tool);
    // After `--key`, its value.
    let awaited = words.last().and_then(|word| word.strip_prefix("--"));
    let awaited = awaited.and_then(|name| signature.flag(name));
    if let Some(parameter) = awaited.filter(|each| !each.is_boolean && !current.starts_with("--")) {
        return parameter
            .choices
            .iter()
            .map(|value| Candidate::new(value, ""))
            .collect();
    }
    if let Some((key, _)) = current.trim_start_matches('-').split_once('=') {
        let choices = signature.get(key).map(|each| each.choices.as_slice());
        let choices = choices.unwrap_or_default().iter();
        return choices
            .map(|value| Candidate::new(format!("{flag}{key}={value}"), ""))
            .collect();
    }
    let missing = signature.parameters.iter();
    missing
        .filter(|each| !given.contains(each.name.as_str()))
        .map(|each| {
            let about = match &each.about {
                Some(about) => format!("{}: {}", each.kind, first_line(about)),
                None => each.kind.clone(),
            };
            Candidate::open(format!("{flag}{}=", each.name), about)
        })
        .collect()
}
