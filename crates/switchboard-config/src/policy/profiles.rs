//! Profiles (`[profiles.NAME]`): what the clients of one endpoint of the gateway see and may call.
//!
//! A profile only ever restricts. One with an error is not served at all: a partly understood one could offer more than
//! was meant.

use super::{RuleEntry, glob, rules};
use crate::confusable;
use crate::entry::keys::{Key, Shape, nearest};
use crate::entry::{Permission, Reader};
use crate::source::Origin;
use crate::tree::{Member, Node, Span};

/// Longest name of a profile, which is part of an address.
const MAX_NAME: usize = 64;
/// Longest name of a tool that model providers accept.
const MAX_TOOL_NAME: usize = 64;
/// Names of the gateway's own tools in search mode.
const SEARCH_TOOLS: [&str; 3] = ["search_tools", "describe_tool", "call_tool"];

/// One `[profiles.NAME]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileEntry {
    /// Name, as in `/mcp/NAME`.
    pub name: String,
    /// Globs over names of servers; `None`: all servers.
    pub servers: Option<Vec<String>>,
    /// Globs over tools; `None`: all tools of its servers.
    pub tools: Option<Vec<String>>,
    /// Globs over tools that are left out.
    pub disabled_tools: Vec<String>,
    /// `server/tool` and the name that clients see instead.
    pub rename: Vec<(String, String)>,
    /// Rules that apply in addition to the permission rules of all clients.
    pub rules: Vec<RuleEntry>,
    /// Whether clients get search tools; `None`: as the gateway decides.
    pub search: Option<SearchWhen>,
    /// Tokens of definitions from which `auto` replaces them with search; `None`: by the client.
    pub search_budget: Option<u64>,
    /// Instructions for the client's model, before those of the servers.
    pub instructions: Option<String>,
    /// Position of its name.
    pub origin: Origin,
    /// Errors, which make it unusable.
    pub faults: Vec<String>,
}

/// When clients get search tools instead of all definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchWhen {
    /// Always.
    On,
    /// If the definitions are large for the client.
    #[default]
    Auto,
    /// Never.
    Off,
}

impl SearchWhen {
    const NAMES: &[&str] = &["auto", "on", "off"];

    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "on" => Some(Self::On),
            "auto" => Some(Self::Auto),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

pub(crate) fn profiles(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<ProfileEntry> {
    let members = reader.table("profiles", node).unwrap_or_default();
    members
        .iter()
        .map(|member| profile(member, reader))
        .collect()
}

fn profile(member: &Member<'_>, reader: &mut Reader<'_, '_>) -> ProfileEntry {
    let before = std::mem::take(&mut reader.faults);
    let name = member.key.as_ref();
    let mut profile = ProfileEntry {
        name: name.to_owned(),
        servers: None,
        tools: None,
        disabled_tools: Vec::new(),
        rename: Vec::new(),
        rules: Vec::new(),
        search: None,
        search_budget: None,
        instructions: None,
        origin: reader.origin(member.key_span),
        faults: Vec::new(),
    };
    if !is_name(name) {
        reader.error(
            "bad-value",
            member.key_span,
            format!("`{name}` is not a valid name of a profile"),
            "use letters, digits, `-`, `_` and `.`, at most 64, and begin with a letter or digit",
        );
    }
    let key = |key: &str| format!("profiles.{name}.{key}");
    for member in reader
        .table(&format!("profiles.{name}"), &member.value)
        .unwrap_or_default()
    {
        let value = &member.value;
        let known = Reader::normal(&member.key);
        match known.as_ref() {
            "servers" => profile.servers = globs(&key("servers"), value, reader),
            "tools" => profile.tools = globs(&key("tools"), value, reader),
            "disabled_tools" => {
                let patterns = globs(&key("disabled_tools"), value, reader);
                profile.disabled_tools = patterns.unwrap_or_default();
            }
            "rename" => profile.rename = renames(&key("rename"), value, reader),
            "permissions" => profile.rules = restrictions(value, reader),
            "search" => {
                let words = SearchWhen::NAMES;
                profile.search = reader.word(&key("search"), value, words, SearchWhen::from_name);
            }
            "search_budget" => profile.search_budget = reader.count(&key("search_budget"), value),
            "instructions" => profile.instructions = reader.text(&key("instructions"), value),
            _ => reader.unknown_key(member, PROFILE_KEYS.iter().map(|key| key.name)),
        }
    }
    profile.faults = std::mem::replace(&mut reader.faults, before);
    profile
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.len() <= MAX_NAME
        && name.bytes().all(is_allowed)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn globs(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Option<Vec<String>> {
    let patterns = reader.texts(key, node)?;
    for (index, pattern) in patterns.iter().enumerate() {
        if pattern.is_empty() || glob(pattern).is_none() {
            reader.error(
                "bad-pattern",
                element(node, index),
                format!("`{key}` has the invalid pattern \"{pattern}\""),
                "write a glob such as \"github\" or \"github/create_*\"",
            );
        }
    }
    Some(patterns)
}

fn element(node: &Node<'_>, index: usize) -> Span {
    let elements = node.as_array().unwrap_or_default();
    elements
        .get(index)
        .map_or(node.span, |element| element.span)
}

fn renames(key: &str, node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<(String, String)> {
    let mut renames: Vec<(String, String)> = Vec::new();
    for member in reader.table(key, node).unwrap_or_default() {
        let tool = member.key.as_ref();
        let has_both = tool
            .split_once('/')
            .is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
        if !has_both {
            reader.error(
                "bad-value",
                member.key_span,
                format!("`{key}` names the tool \"{tool}\" without its server"),
                "write the server and the tool's own name, such as \"github/create_issue\"",
            );
            continue;
        }
        let Some(name) = reader.text(&format!("{key}.{tool}"), &member.value) else {
            continue;
        };
        let span = member.value.span;
        if let Some((message, hint)) = name_fault(&name) {
            let message = format!("`{key}` cannot rename {tool} to \"{name}\": {message}");
            reader.error("bad-value", span, message, hint);
            continue;
        }
        if let Some((other, _)) = renames.iter().find(|(_, taken)| *taken == name) {
            let message = format!("{other} and {tool} have the same name \"{name}\"");
            let hint = "choose different names; until then both get a suffix";
            reader.warning("duplicate-name", span, message, hint);
        }
        renames.push((tool.to_owned(), name));
    }
    renames
}

/// Why clients cannot see a tool under this name, with a hint.
fn name_fault(name: &str) -> Option<(&'static str, &'static str)> {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > MAX_TOOL_NAME || !name.bytes().all(is_safe) {
        return Some((
            "model providers do not accept it",
            "use letters, digits, `-` and `_`, at most 64",
        ));
    }
    if confusable::has_tool_prefix(name) {
        return Some((
            "names with the prefix mcp__ belong to the tools of servers",
            "choose a name without the prefix",
        ));
    }
    if SEARCH_TOOLS.contains(&name) {
        return Some(("the gateway has a tool of this name", "choose another name"));
    }
    if confusable::built_in(name).is_some_and(|built_in| name != built_in.to_ascii_lowercase()) {
        return Some((
            "it could be mistaken for a built-in tool",
            "choose another name",
        ));
    }
    None
}

/// The rules of a profile. One that allows has no effect, and is left out.
fn restrictions(node: &Node<'_>, reader: &mut Reader<'_, '_>) -> Vec<RuleEntry> {
    let mut rules = rules(node, reader);
    rules.retain(|rule| {
        if rule.action != Permission::Allow {
            return true;
        }
        reader.warning(
            "no-effect",
            rule.origin.span,
            format!(
                "the rule \"{}\" allows, but a profile can only restrict",
                rule.tool
            ),
            "use action = \"ask\" or \"deny\"; rules that allow belong in [[permissions.rules]]",
        );
        false
    });
    rules
}

/// What in a profile matches no server, with a hint: a wrong name would silently offer nothing.
pub(crate) fn idle_patterns(
    profile: &ProfileEntry,
    servers: &[&str],
) -> Vec<(String, Option<String>)> {
    let name = &profile.name;
    let suggestion = |text: &str| {
        let near = nearest(text, servers.iter().copied());
        near.map(|server| format!("did you mean \"{server}\"?"))
    };
    let mut found = Vec::new();
    for pattern in profile.servers.iter().flatten() {
        let compiled = glob(pattern);
        let matches = |server: &&str| compiled.as_ref().is_some_and(|glob| glob.is_match(server));
        if !servers.iter().any(matches) {
            found.push((
                format!("\"{pattern}\" in `profiles.{name}.servers` matches no server"),
                suggestion(pattern),
            ));
        }
    }
    for (tool, _) in &profile.rename {
        let is_of = |server: &&str| {
            tool.strip_prefix(*server)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        if !servers.iter().any(is_of) {
            let (server, _) = tool.split_once('/').unwrap_or((tool, ""));
            found.push((
                format!(
                    "\"{tool}\" in `profiles.{name}.rename` is not a tool of a configured server"
                ),
                suggestion(server),
            ));
        }
    }
    found
}

pub(crate) const PROFILE_KEYS: &[Key] = &[
    Key {
        name: "servers",
        shape: Shape::TextList,
        about: "Globs over the names of servers. When absent: all servers.",
    },
    Key {
        name: "tools",
        shape: Shape::TextList,
        about: "Globs over tools: `server/tool`, or the tool's own name. When absent: all tools of these servers.",
    },
    Key {
        name: "disabled_tools",
        shape: Shape::TextList,
        about: "Globs over tools that are left out, written like `tools`.",
    },
    Key {
        name: "rename",
        shape: Shape::TextMap,
        about: "Names that clients see: `\"server/tool\" = \"name\"`.",
    },
    Key {
        name: "permissions",
        shape: Shape::Rules,
        about: "Permission rules for the clients of this profile. They can only be stricter than those for all clients.",
    },
    Key {
        name: "search",
        shape: Shape::OneOf(SearchWhen::NAMES),
        about: "Whether clients get search tools instead of all definitions. When absent: as `--search` says.",
    },
    Key {
        name: "search_budget",
        shape: Shape::Count,
        about: "Tokens of definitions from which `auto` replaces them with search. When absent: by the client.",
    },
    Key {
        name: "instructions",
        shape: Shape::Text,
        about: "Instructions for the client's model, before those of the servers.",
    },
];
