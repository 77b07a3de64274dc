//! Finds the file that a command writes to, and a server's entry in it.

use std::path::{Path, PathBuf};

use switchboard_config::files::{LOCAL_FILE, PROJECT_FILES, USER_FILES};
use switchboard_config::format::{self, Format};
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::text::visible;
use switchboard_config::tree::Node;

use crate::cli::{RuleScope, WritableScope};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;

/// The accepted spellings of the key that holds the servers.
const SERVER_KEYS: [&str; 3] = ["mcp_servers", "mcpServers", "mcp-servers"];

impl WritableScope {
    pub(crate) fn scope(self) -> Scope {
        match self {
            WritableScope::Local => Scope::Local,
            WritableScope::User => Scope::User,
            WritableScope::Project => Scope::Project,
        }
    }
}

impl From<RuleScope> for WritableScope {
    fn from(scope: RuleScope) -> Self {
        match scope {
            RuleScope::Local => Self::Local,
            RuleScope::User => Self::User,
        }
    }
}

/// A file that commands write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) scope: Scope,
}

impl Target {
    /// The file of a scope to which new servers are added.
    pub(crate) fn of_scope(scope: WritableScope, context: &Context) -> Self {
        let project = &context.project;
        let path = match scope {
            WritableScope::Local => project.join(LOCAL_FILE),
            WritableScope::User => existing_or_first(&context.environment.config, &USER_FILES),
            WritableScope::Project => {
                // Other tools read `.mcp.json`, so it is preferred for a new file.
                let ours = PROJECT_FILES.map(|(name, _)| name);
                let names = [".mcp.json", ours[0], ours[1]];
                existing_or_first(project, &names)
            }
        };
        Self::of_path(path, scope.scope())
    }

    pub(crate) fn of_path(path: PathBuf, scope: Scope) -> Self {
        let format = Format::of_path(&path).unwrap_or(Format::Toml);
        Self {
            path,
            format,
            scope,
        }
    }

    /// The path, sanitized for display.
    pub(crate) fn shown(&self) -> String {
        visible(&self.path.display().to_string()).into_owned()
    }

    /// Whether other tools read the file, so that their key spelling must be used.
    pub(crate) fn is_shared(&self) -> bool {
        self.format == Format::Json && self.scope == Scope::Project
    }
}

fn existing_or_first(folder: &Path, names: &[&str]) -> PathBuf {
    let first = names.first().copied().unwrap_or_default();
    let exists = |name: &&&str| folder.join(name).symlink_metadata().is_ok();
    folder.join(names.iter().find(exists).unwrap_or(&first))
}

/// The location of a server's entry in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntryLocation {
    /// The keys that lead to it.
    pub(crate) path: Vec<String>,
    /// The entry's own keys; `None` before the entry exists.
    pub(crate) keys: Option<Vec<String>>,
}

/// Locates a server's entry in the text of a file.
pub(crate) fn locate_entry(
    text: &str,
    target: &Target,
    name: &str,
) -> Result<EntryLocation, Failure> {
    let file = SourceFile::new(&target.path, target.scope, text);
    let mut findings = Vec::new();
    let root = format::parse(&file, target.format, &mut findings);
    let broken = findings.iter().find(|finding| finding.code == "syntax");
    let (Some(root), None) = (root, broken) else {
        let failure = Failure::new(
            Exit::Configuration,
            format!("{} contains an error and was not changed", target.shown()),
        );
        let failure = match findings.first() {
            Some(finding) => failure.because(visible(&finding.to_string())),
            None => failure,
        };
        return Err(failure.hint("run `switchboard config check`, fix the file, and try again"));
    };
    let stated = SERVER_KEYS.iter().find(|key| root.get(key).is_some());
    let parent = match stated {
        Some(key) => Some(*key),
        None if is_flat(&root) => None,
        None if target.format == Format::Json => Some("mcpServers"),
        None => Some("mcp_servers"),
    };
    let servers = parent.map_or(Some(&root), |key| root.get(key));
    if let Some(servers) = servers.filter(|servers| servers.as_table().is_none()) {
        let (file, kind) = (target.shown(), servers.kind());
        return Err(Failure::new(
            Exit::Configuration,
            format!("{file} has {kind} for its servers, which this command cannot edit"),
        )
        .hint("edit the file by hand, or write the servers as a table by name"));
    }
    let keys = servers.and_then(|servers| servers.get(name)).map(|server| {
        let members = server.as_table().unwrap_or_default();
        members
            .iter()
            .map(|member| member.key.to_string())
            .collect()
    });
    let path = parent.into_iter().chain([name]).map(String::from).collect();
    Ok(EntryLocation { path, keys })
}

/// Whether the top level of a JSON file is itself the map of servers.
fn is_flat(root: &Node<'_>) -> bool {
    let members = root.as_table().unwrap_or_default();
    let is_server = |node: &Node<'_>| {
        ["command", "url", "type", "transport"]
            .iter()
            .any(|key| node.get(key).is_some())
    };
    members.iter().any(|member| is_server(&member.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_located_in_every_layout() {
        let check = |name: &str, text: &str, path: &[&str], exists: bool| {
            let target = Target::of_path(PathBuf::from(name), Scope::Project);
            let location = locate_entry(text, &target, "a").unwrap();
            assert_eq!(location.path, path, "{text}");
            assert_eq!(location.keys.is_some(), exists, "{text}");
        };
        check("x.toml", "", &["mcp_servers", "a"], false);
        check("x.json", "", &["mcpServers", "a"], false);
        check("x.json", "{}", &["mcpServers", "a"], false);
        check("x.toml", "[mcp_servers.a]\n", &["mcp_servers", "a"], true);
        check(
            "x.json",
            "{\"mcp_servers\": {\"a\": {}}}",
            &["mcp_servers", "a"],
            true,
        );
        check("x.json", "{\"b\": {\"command\": \"x\"}}", &["a"], false);
        check("x.json", "{\"a\": {\"url\": \"x\"}}", &["a"], true);
        check(
            "x.hcl",
            "mcp_servers \"a\" {\n}\n",
            &["mcp_servers", "a"],
            true,
        );
    }

    #[test]
    fn a_broken_file_is_not_touched() {
        let target = Target::of_path(PathBuf::from("x.toml"), Scope::Project);
        let failure = locate_entry("a = [", &target, "a").unwrap_err();
        assert_eq!(failure.exit, Exit::Configuration);
        assert_eq!(
            failure.message,
            "x.toml contains an error and was not changed"
        );
    }
}
