//! Profiles of a gateway: the servers and tools that a client may use, and their names there.
//!
//! A [`Caller`](crate::caller::Caller) with a profile reaches nothing else: calls and requests for content are checked
//! where the host resolves their server, so that no front end can forget it.

use std::collections::{HashMap, HashSet};

use switchboard_config::files::Folders;
use switchboard_config::policy::{ProfileEntry, SearchWhen};
use switchboard_config::resolve::Config;

use crate::catalog::CatalogTool;
use crate::catalog::exposed::with_suffix;
use crate::permissions::NameGlob;
use crate::permissions::restrictions::Restrictions;

/// A compiled profile.
#[derive(Debug)]
pub struct Profile {
    name: String,
    /// `None`: all servers.
    servers: Option<Vec<NameGlob>>,
    /// `None`: all tools.
    tools: Option<Vec<ToolGlob>>,
    disabled: Vec<ToolGlob>,
    /// The names that clients see, by `server/tool`.
    renamed: HashMap<String, String>,
    /// The reverse.
    original: HashMap<String, String>,
    restrictions: Option<Restrictions>,
    /// Whether clients get search tools; `None`: as the gateway decides.
    pub search: Option<SearchWhen>,
    /// Tokens of definitions from which `auto` means search; `None`: by the client.
    pub search_budget: Option<u64>,
    /// Instructions for the model, before those of the servers.
    pub instructions: Option<String>,
}

/// A pattern over tools.
#[derive(Debug)]
enum ToolGlob {
    /// Over `server/tool`.
    Qualified(NameGlob),
    /// Over the name that models see, or the tool's own name.
    Name(NameGlob),
}

impl Profile {
    /// Compiles a profile of a configuration; the error says why it cannot be used.
    pub fn new(entry: &ProfileEntry, config: &Config, folders: &Folders) -> Result<Self, String> {
        if let Some(fault) = entry.faults.first() {
            return Err(fault.clone());
        }
        let (mut renamed, mut original) = (HashMap::new(), HashMap::new());
        let mut seen = HashSet::new();
        let twice: HashSet<&str> = entry
            .rename
            .iter()
            .filter(|(_, name)| !seen.insert(name.as_str()))
            .map(|(_, name)| name.as_str())
            .collect();
        for (tool, name) in &entry.rename {
            let name = if twice.contains(name.as_str()) {
                with_suffix(name, tool)
            } else {
                name.clone()
            };
            original.insert(name.clone(), tool.clone());
            renamed.insert(tool.clone(), name);
        }
        let servers = entry.servers.as_deref();
        let tools = entry.tools.as_deref();
        Ok(Self {
            name: entry.name.clone(),
            servers: servers
                .map(|patterns| compile(patterns, NameGlob::new))
                .transpose()?,
            tools: tools
                .map(|patterns| compile(patterns, ToolGlob::new))
                .transpose()?,
            disabled: compile(&entry.disabled_tools, ToolGlob::new)?,
            renamed,
            original,
            restrictions: Restrictions::new(&entry.rules, config, folders),
            search: entry.search,
            search_budget: entry.search_budget,
            instructions: entry.instructions.clone(),
        })
    }

    /// A profile without any server, in place of one that was removed while clients use it.
    pub fn nothing(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            servers: Some(Vec::new()),
            tools: None,
            disabled: Vec::new(),
            renamed: HashMap::new(),
            original: HashMap::new(),
            restrictions: None,
            search: None,
            search_budget: None,
            instructions: None,
        }
    }

    /// Its name, as in `/mcp/NAME`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it includes a server.
    pub fn has_server(&self, server: &str) -> bool {
        let patterns = self.servers.as_ref();
        patterns.is_none_or(|patterns| patterns.iter().any(|glob| glob.matches(server)))
    }

    /// Whether it includes a tool.
    pub fn has_tool(&self, tool: &CatalogTool) -> bool {
        let matches = |patterns: &[ToolGlob]| patterns.iter().any(|glob| glob.matches(tool));
        self.has_server(tool.reference().server.as_str())
            && self.tools.as_deref().is_none_or(matches)
            && !matches(&self.disabled)
    }

    /// The name under which its clients see a tool.
    pub fn name_of<'n>(&'n self, tool: &'n CatalogTool) -> &'n str {
        if self.renamed.is_empty() {
            return tool.exposed().as_str();
        }
        let renamed = self.renamed.get(&tool.reference().to_string());
        renamed.map_or_else(|| tool.exposed().as_str(), String::as_str)
    }

    /// The tool that has this name in the profile only, as `server/tool`.
    pub fn original(&self, name: &str) -> Option<&str> {
        self.original.get(name).map(String::as_str)
    }

    /// Its permission rules.
    pub fn restrictions(&self) -> Option<&Restrictions> {
        self.restrictions.as_ref()
    }
}

impl ToolGlob {
    fn new(pattern: &str) -> Option<Self> {
        let glob = NameGlob::new(pattern)?;
        Some(if pattern.contains('/') {
            Self::Qualified(glob)
        } else {
            Self::Name(glob)
        })
    }

    fn matches(&self, tool: &CatalogTool) -> bool {
        let reference = tool.reference();
        match self {
            Self::Qualified(glob) => glob.matches(&reference.to_string()),
            Self::Name(glob) => {
                glob.matches(reference.tool.as_str()) || glob.matches(tool.exposed().as_str())
            }
        }
    }
}

fn compile<T>(patterns: &[String], new: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let compiled = patterns
        .iter()
        .map(|pattern| new(pattern).ok_or_else(|| format!("the pattern \"{pattern}\" is invalid")));
    compiled.collect()
}
