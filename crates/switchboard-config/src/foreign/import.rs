//! Imports servers from the configuration file of another tool.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Tool;
use super::dialect::{Dialect, Meaning};
use super::dialects::dialect;
use super::own::{own_note, own_of};
use super::read::{EntryReader, Input, Inputs, deadlines};
use super::variables::{Names, is_name, variable_name};
use crate::diagnostic::Diagnostic;
use crate::entry::{Field, Reader, ServerEntry, decode};
use crate::format::{Format, parse};
use crate::scope::Scope;
use crate::source::{Origin, SourceFile};
use crate::tree::{Member, Node, Span, Value};

/// Result of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// Servers in file order.
    pub servers: Vec<ImportedServer>,
    /// Entries that start Switchboard itself, which are never imported.
    pub own: Vec<ImportedServer>,
    /// Errors, and settings that could not be imported.
    pub notes: Vec<Diagnostic>,
}

/// A server of another tool, converted to our format.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedServer {
    /// As in the file.
    pub name: String,
    /// Defaults for the transport and `enabled` are left out.
    pub entry: ServerEntry,
    /// Scope of the file, unless the file contains several.
    pub scope: Scope,
    /// Position of the name.
    pub origin: Origin,
}

/// Imports the servers of a file. A server with an error is left out and reported.
///
/// `project` is the project folder: of a file with entries for many projects, only those of this one are imported.
pub fn import(tool: Tool, file: &Arc<SourceFile>, format: Format, project: &Path) -> Imported {
    let mut imported = Imported::default();
    let Some(root) = parse(file, format, &mut imported.notes) else {
        return imported;
    };
    let dialect = dialect(tool, Some(&root));
    let mut import = Import {
        dialect,
        file,
        imported,
        seen: HashSet::new(),
        defaults: Defaults::default(),
    };
    import.file(&root, project);
    import.imported
}

struct Import<'f> {
    dialect: &'static Dialect,
    file: &'f Arc<SourceFile>,
    imported: Imported,
    seen: HashSet<(Scope, String)>,
    defaults: Defaults,
}

/// Settings of the file that apply to all of its servers.
#[derive(Default)]
struct Defaults {
    startup: Option<Duration>,
    call: Option<Duration>,
    /// If present, only these servers are enabled.
    allowed: Option<Vec<String>>,
    excluded: Vec<String>,
}

impl Import<'_> {
    fn file(&mut self, root: &Node<'_>, project: &Path) {
        if root.as_table().is_none() {
            let message = format!("the file must hold a table, but holds {}", root.kind());
            self.reader()
                .error("wrong-type", root.span, message, "start it with `{`");
            return;
        }
        self.read_defaults(root);
        let scope = self.file.scope();
        for path in self.dialect.containers {
            if let Some(container) = root.at(path) {
                let inputs = self.inputs(root, path);
                self.container(container, scope, &inputs);
            }
        }
        if self.dialect.tool == Tool::ClaudeCode {
            self.claude_projects(root, project);
            self.claude_approvals(root);
        }
        self.allowed_tools(root);
    }

    fn reader(&mut self) -> Reader<'_, '_> {
        Reader::new(self.file, &mut self.imported.notes)
    }

    fn container(&mut self, container: &Node<'_>, scope: Scope, inputs: &Inputs) {
        if let Some(elements) = container.as_array().filter(|_| self.dialect.listed) {
            for element in elements {
                self.listed(element, scope, inputs);
            }
            return;
        }
        let name = self
            .dialect
            .containers
            .first()
            .and_then(|path| path.last())
            .copied();
        let members = self.reader().table(name.unwrap_or_default(), container);
        for member in members.unwrap_or_default() {
            self.server(&member.key, member.key_span, &member.value, scope, inputs);
        }
    }

    /// A list element, which contains its own name.
    fn listed(&mut self, element: &Node<'_>, scope: Scope, inputs: &Inputs) {
        let mut reader = self.reader();
        if element.get("uses").is_some() {
            let message = "the entry refers to a block of the tool's hub and is left out";
            reader.warning(
                "skipped",
                element.span,
                message,
                "add the server that the block describes",
            );
            return;
        }
        let Some(name) = element.get("name") else {
            let message = "a server in the list has no `name`";
            reader.error("missing-key", element.span, message, "add `name`");
            return;
        };
        if let Some(text) = reader.text("name", name) {
            self.server(&text, name.span, element, scope, inputs);
        }
    }

    fn server(
        &mut self,
        name: &str,
        name_span: Span,
        node: &Node<'_>,
        scope: Scope,
        inputs: &Inputs,
    ) {
        let dialect = self.dialect;
        let first = self.seen.insert((scope, name.to_owned()));
        let flattened = flattened(dialect, node);
        let node = flattened.as_ref().unwrap_or(node);
        let mut reader = self.reader();
        reader.enter(name);
        if !first {
            let message =
                format!("the server {name} is defined twice; the first definition is used");
            reader.error(
                "duplicate-name",
                name_span,
                message,
                "remove or rename one of the two",
            );
            return;
        }
        if let Some(reason) = (dialect.skip)(node) {
            let message = format!("{name} {reason} and is left out");
            reader.warning(
                "skipped",
                name_span,
                message,
                "nothing to do, unless you want the same server here",
            );
            return;
        }
        let Some(members) = reader.table(name, node) else {
            return;
        };
        let draft = EntryReader::new(dialect, &mut reader, inputs, name).read(members);
        if reader.faults.is_empty() && !draft.has_endpoint() {
            missing_endpoint(dialect, name_span, &mut reader);
        }
        if !reader.faults.is_empty() {
            return;
        }
        let decoded = decode(name, name_span, &draft.into_node(node.span), &mut reader);
        if !decoded.faults.is_empty() {
            return;
        }
        let mut entry = decoded.entry;
        if entry.command.as_deref().is_some_and(is_address) {
            // Some tools' own `mcp add` writes this for a URL without a stated transport.
            reader.warning(
                "address-as-program",
                name_span,
                format!("{name} would start an address as a program"),
                "write it as `url` in the imported entry",
            );
        }
        self.defaults.apply(name, &mut entry);
        normalize(&mut entry);
        let origin = Origin {
            file: Arc::clone(self.file),
            span: name_span,
        };
        let server = ImportedServer {
            name: name.to_owned(),
            entry,
            scope,
            origin,
        };
        if own_of(&server.entry, None).is_some() {
            let left_out = own_note(name, server.origin.clone());
            self.imported.notes.push(left_out);
            self.imported.own.push(server);
        } else {
            self.imported.servers.push(server);
        }
    }

    /// Reads settings outside the server table that apply to all servers.
    fn read_defaults(&mut self, root: &Node<'_>) {
        let mut defaults = Defaults::default();
        let tool = self.dialect.tool;
        let mut reader = self.reader();
        match tool {
            Tool::Opencode => {
                let second = root
                    .at(&["mcp", "timeout"])
                    .filter(|node| node.get("type").is_none())
                    .map(|node| ("mcp.timeout", node));
                let first = root
                    .at(&["experimental", "mcp_timeout"])
                    .map(|node| ("experimental.mcp_timeout", node));
                let (name, stated) = first.or(second).unzip();
                for (field, node) in stated.map(deadlines).unwrap_or_default() {
                    let duration = reader.milliseconds(name.unwrap_or_default(), node);
                    match field {
                        Field::ToolTimeout => defaults.call = duration,
                        _ => defaults.startup = duration,
                    }
                }
            }
            Tool::Zed => {
                let stated = root.get("context_server_timeout");
                defaults.call =
                    stated.and_then(|node| reader.seconds("context_server_timeout", node));
            }
            Tool::Gemini => {
                let mut names = |key: &str| reader.texts(key, root.at(&["mcp", key])?);
                defaults.allowed = names("allowed").filter(|names| !names.is_empty());
                defaults.excluded = names("excluded").unwrap_or_default();
            }
            _ => {}
        }
        self.defaults = defaults;
    }

    /// Inputs that VS Code prompts for, defined next to the servers.
    fn inputs(&mut self, root: &Node<'_>, container: &[&str]) -> Inputs {
        let beside = container.split_last().map_or(&[][..], |(_, beside)| beside);
        let list = root.at(beside).and_then(|node| node.get("inputs"));
        let Some(list) = list.filter(|_| self.dialect.tool == Tool::VsCode) else {
            return Inputs::new();
        };
        let mut reader = self.reader();
        let Some(elements) = list.as_array() else {
            let message = format!("`inputs` must be a list, but is {}", list.kind());
            reader.error("wrong-type", list.span, message, "write \"inputs\": []");
            return Inputs::new();
        };
        let mut names = Names::default();
        let mut inputs = Inputs::new();
        for element in elements {
            let Some(id) = element.get("id").and_then(Node::as_str) else {
                reader.error(
                    "missing-key",
                    element.span,
                    "an input has no `id`",
                    "add \"id\": \"…\"",
                );
                continue;
            };
            let is_upper = |text: &str| !text.bytes().any(|byte| byte.is_ascii_lowercase());
            let base = if is_name(id) && is_upper(id) {
                id.to_owned()
            } else {
                variable_name(id)
            };
            let variable = names.unique(&base);
            let default = element
                .get("default")
                .and_then(Node::as_str)
                .map(String::from);
            let input = Input { variable, default };
            inputs.entry(id.to_owned()).or_insert(input);
        }
        inputs
    }

    /// `~/.claude.json` also contains per-project servers of the user.
    fn claude_projects(&mut self, root: &Node<'_>, project: &Path) {
        let Some(projects) = root.get("projects").and_then(Node::as_table) else {
            return;
        };
        let mut elsewhere = 0_usize;
        for member in projects {
            let servers = member.value.get("mcpServers");
            if Path::new(member.key.as_ref()) == project {
                if let Some(servers) = servers {
                    self.container(servers, Scope::Local, &Inputs::new());
                }
                self.claude_approvals(&member.value);
            } else {
                elsewhere += servers.and_then(Node::as_table).map_or(0, <[_]>::len);
            }
        }
        if elsewhere > 0 {
            let span = root.get("projects").map_or(root.span, |node| node.span);
            let message = format!("{elsewhere} servers of other projects are not imported");
            let hint = "import them from the folder of their project";
            self.reader().warning("other-projects", span, message, hint);
        }
    }

    /// Claude Code stores approvals in files that may belong to the repository they approve.
    fn claude_approvals(&mut self, node: &Node<'_>) {
        let mut reader = self.reader();
        for member in node.as_table().unwrap_or_default() {
            let is_stated = match &member.value.value {
                Value::Bool(value) => *value,
                Value::Array(names) => !names.is_empty(),
                _ => false,
            };
            let (code, message, hint) = match member.key.as_ref() {
                key @ ("enableAllProjectMcpServers" | "enabledMcpjsonServers") => (
                    "approval-ignored",
                    format!("`{key}` is ignored: a file cannot approve a project's servers"),
                    "look at them with `switchboard trust list`, then run `switchboard trust approve NAME`",
                ),
                key @ ("disabledMcpjsonServers" | "disabledMcpServers") => (
                    "not-translated",
                    format!("`{key}` is not taken over"),
                    "disable unwanted servers with `switchboard mcp disable NAME`",
                ),
                _ => continue,
            };
            if is_stated {
                reader.warning(code, member.key_span, message, hint);
            }
        }
    }

    /// Lists of tools that a file approves for all of its servers.
    fn allowed_tools(&mut self, root: &Node<'_>) {
        let (path, prefix): (&[&str], _) = match self.dialect.tool {
            Tool::ClaudeCode => (&["permissions", "allow"], "mcp__"),
            Tool::Crush => (&["permissions", "allowed_tools"], "mcp_"),
            Tool::AmazonQ | Tool::Kiro => (&["allowedTools"], "@"),
            _ => return,
        };
        let Some(list) = root.at(path) else {
            return;
        };
        let approved = list
            .as_array()
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_str);
        if approved.into_iter().any(|tool| tool.starts_with(prefix)) {
            let message = format!(
                "`{}` is ignored: an import approves no calls",
                path.join(".")
            );
            let hint = "if you want that, add [[permissions.rules]] with tool = \"mcp__SERVER__TOOL\", action = \"allow\" to your user configuration";
            self.reader()
                .warning("approval-ignored", list.span, message, hint);
        }
    }
}

impl Defaults {
    fn apply(&self, name: &str, entry: &mut ServerEntry) {
        entry.startup_timeout = entry.startup_timeout.or(self.startup);
        entry.tool_timeout = entry.tool_timeout.or(self.call);
        let is_listed = |names: &[String]| names.iter().any(|other| other == name);
        if is_listed(&self.excluded)
            || self
                .allowed
                .as_deref()
                .is_some_and(|names| !is_listed(names))
        {
            entry.enabled = Some(false);
        }
    }
}

/// Older goose files nest an extension's settings in a table next to `enabled`.
fn flattened<'a>(dialect: &Dialect, node: &Node<'a>) -> Option<Node<'a>> {
    if dialect.tool != Tool::Goose {
        return None;
    }
    let inner = node.get("config")?.as_table()?;
    let outer = node
        .as_table()?
        .iter()
        .filter(|member| member.key != "config");
    let mut members: Vec<Member<'a>> = outer.cloned().collect();
    let stated: HashSet<&str> = node
        .as_table()?
        .iter()
        .map(|member| member.key.as_ref())
        .collect();
    let inner = inner
        .iter()
        .filter(|member| !stated.contains(member.key.as_ref()));
    members.extend(inner.cloned());
    Some(Node {
        span: node.span,
        value: Value::Table(members),
    })
}

fn missing_endpoint(dialect: &Dialect, span: Span, reader: &mut Reader<'_, '_>) {
    let command = dialect.name_of(|meaning| {
        matches!(
            meaning,
            Meaning::Command | Meaning::CommandLine | Meaning::CommandOrTable
        )
    });
    let url = dialect.name_of(|meaning| matches!(meaning, Meaning::Url(_)));
    let (message, hint) = match (command, url) {
        (Some(command), Some(url)) => (
            format!("the entry has neither `{command}` nor `{url}`"),
            format!("add `{command}` for a program, or `{url}` for a remote server"),
        ),
        _ => (
            format!("the entry has no `{}`", command.unwrap_or("command")),
            format!("{} only starts programs; name one", dialect.tool),
        ),
    };
    reader.error("missing-key", span, message, hint);
}

fn is_address(command: &str) -> bool {
    command.starts_with("https://") || command.starts_with("http://")
}

/// Removes defaults, so that an entry does not depend on how verbose its tool is.
fn normalize(entry: &mut ServerEntry) {
    if let Some(stated) = entry.transport.take()
        && entry.effective_transport() != Some(stated)
    {
        entry.transport = Some(stated);
    }
    if entry.enabled == Some(true) {
        entry.enabled = None;
    }
    if entry.required == Some(false) {
        entry.required = None;
    }
}
