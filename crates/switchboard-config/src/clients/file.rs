//! The text of a client's file: the servers it defines, and edits that keep everything else.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use super::{ENTRY, yaml};
use crate::diagnostic::Diagnostic;
use crate::edit::{self, Edit, EditError};
use crate::entry::ServerEntry;
use crate::foreign::{ImportedServer, Layout, Tool, export, import, layout};
use crate::format::{Format, parse};
use crate::own_program::{OwnCommand, own_command};
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Member, Node, Value};

/// The entry that lets a client start the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// This program: its name if that finds it, else its path.
    pub command: String,
    /// Profile that the client gets; `None` for all servers.
    pub profile: Option<String>,
}

impl Bridge {
    /// The entry in our format.
    pub fn entry(&self) -> ServerEntry {
        let mut args = vec![OwnCommand::Connect.name().to_owned()];
        if let Some(profile) = &self.profile {
            args.extend(["--profile".to_owned(), profile.clone()]);
        }
        ServerEntry {
            command: Some(self.command.clone()),
            args,
            ..ServerEntry::default()
        }
    }

    /// The profile in the arguments of a bridge.
    pub fn profile_of(entry: &ServerEntry) -> Option<String> {
        let mut args = entry.args.iter();
        while let Some(word) = args.next() {
            if word == "--profile" {
                return args.next().cloned();
            }
            if let Some(profile) = word.strip_prefix("--profile=") {
                return Some(profile.to_owned());
            }
        }
        None
    }
}

/// What a client's file defines.
#[derive(Debug, Default)]
pub struct FileContent {
    /// The bridge, if the file has one under our name.
    pub bridge: Option<ImportedServer>,
    /// Name of another entry that starts the bridge.
    pub other_bridge: Option<String>,
    /// Whether an entry with our name starts something else.
    pub is_name_taken: bool,
    /// The client's own servers for all projects, in file order.
    pub servers: Vec<ImportedServer>,
    /// Names of entries that cannot be imported: unsupported, invalid, or not servers.
    pub unusable: Vec<String>,
    /// Errors, and settings that are lost in our format.
    pub notes: Vec<Diagnostic>,
}

/// A client's file as text. Edits return the new text and change nothing.
#[derive(Debug, Clone, Copy)]
pub struct ClientFile<'a> {
    /// The tool.
    pub tool: Tool,
    /// For messages.
    pub path: &'a Path,
    /// Syntax.
    pub format: Format,
    /// Content; empty if the file does not exist.
    pub text: &'a str,
}

/// Why a client's file was not edited.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The file cannot be parsed, or is not a table.
    #[error("{}: {}", .0.place, .0.message)]
    Unreadable(Box<Diagnostic>),
    /// The edit was rejected.
    #[error("{0}")]
    Edit(EditError),
    /// A YAML layout that cannot be edited without changing the rest of the file.
    #[error(
        "`{0}` is written in a way that cannot be edited without changing the rest of the file"
    )]
    YamlLayout(String),
}

impl ClientError {
    /// Suggested fix.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::Unreadable(diagnostic) => match &diagnostic.hint {
                Some(hint) => hint.clone().into(),
                None => "fix the file, then repeat the command".into(),
            },
            Self::Edit(error) => error.hint().into(),
            Self::YamlLayout(_) => {
                "write the servers as a block, one key per line, or edit the file by hand".into()
            }
        }
    }
}

impl<'a> ClientFile<'a> {
    /// Reads the servers. `program` is the running program.
    pub fn read(&self, program: &Path) -> Result<FileContent, ClientError> {
        let source = SourceFile::new(self.path, Scope::User, self.body());
        let root = self.parse(&source)?;
        // Entries for single projects are not the user's everywhere, so no project matches.
        let mut imported = import(self.tool, &source, self.format, Path::new(""));
        imported.set_program_aside(program);
        imported.notes.retain(|note| note.code != "own-program");
        let is_bridge = |server: &ImportedServer| {
            let command = server.entry.command.as_deref().unwrap_or_default();
            own_command(command, &server.entry.args, Some(program)) == Some(OwnCommand::Connect)
        };
        let mut bridges = imported.own.into_iter().filter(is_bridge);
        let (mut bridge, mut other_bridge) = (None, None);
        for found in bridges.by_ref() {
            if found.name == ENTRY {
                bridge = Some(found);
            } else {
                other_bridge = Some(found.name);
            }
        }
        let names = self.names(&root);
        let is_known = |name: &String| imported.servers.iter().any(|server| server.name == *name);
        let is_name_taken = bridge.is_none() && names.iter().any(|name| name == ENTRY);
        let unusable = names
            .iter()
            .filter(|name| !is_known(name) && *name != ENTRY)
            .filter(|name| other_bridge.as_ref() != Some(*name))
            .cloned()
            .collect();
        let mut servers = imported.servers;
        servers.retain(|server| server.name != ENTRY);
        Ok(FileContent {
            bridge,
            other_bridge,
            is_name_taken,
            servers,
            unusable,
            notes: imported.notes,
        })
    }

    /// The text with the bridge. Keys that the user added to an existing bridge stay.
    pub fn with_bridge(&self, bridge: &Bridge, program: &Path) -> Result<String, ClientError> {
        let entry = bridge.entry();
        if self.body().trim().is_empty() {
            let text = export(self.tool, &[(ENTRY, &entry)], None).to_text();
            return Ok(format!("{}{text}", split_mark(self.text).0));
        }
        let is_ours = self.read(program)?.bridge.is_some();
        let source = SourceFile::new(self.path, Scope::User, self.body());
        let root = self.parse(&source)?;
        let exported = export(self.tool, &[(ENTRY, &entry)], Some(&root));
        let Some((_, node)) = exported.entries.into_iter().next() else {
            return Ok(self.text.to_owned());
        };
        let layout = layout(self.tool, Some(&root));
        let standing = container_of(&root, layout, ENTRY);
        let (container, node) = match standing {
            Some((container, found)) if is_ours => (container, merged(found, node)),
            Some((container, _)) => (container, node),
            None => (layout.containers.first().copied().unwrap_or_default(), node),
        };
        self.set(container, layout.is_list, ENTRY, &node)
    }

    /// The text without these servers. Names that it does not have are ignored. With `drops_container`, an empty table
    /// of servers is removed too.
    pub fn without(&self, names: &[&str], drops_container: bool) -> Result<String, ClientError> {
        let mut text = self.text.to_owned();
        for name in names {
            let file = ClientFile {
                text: &text,
                ..*self
            };
            text = file.without_one(name, drops_container)?;
        }
        Ok(text)
    }

    /// The text with entries of this tool, as [`Self::value_of`] returned them. Names that it has are left as they are.
    pub fn with_values(&self, values: &[(&str, &str)]) -> Result<String, ClientError> {
        let mut text = self.text.to_owned();
        for (name, value) in values {
            let file = ClientFile {
                text: &text,
                ..*self
            };
            let source = SourceFile::new(self.path, Scope::User, file.body());
            let root = file.parse(&source)?;
            let is_blank = file.body().trim().is_empty();
            let layout = layout(self.tool, (!is_blank).then_some(&root));
            let container = layout.containers.first().copied().unwrap_or_default();
            if container_of(&root, layout, name).is_some() {
                continue;
            }
            let json = SourceFile::new("", Scope::Dynamic, *value);
            let Some(node) = parse(&json, Format::Json, &mut Vec::new()) else {
                continue;
            };
            text = file.set(container, layout.is_list, name, &node)?;
        }
        Ok(text)
    }

    /// An entry as JSON text, in the tool's own keys.
    pub fn value_of(&self, name: &str) -> Option<String> {
        let source = SourceFile::new(self.path, Scope::User, self.body());
        let root = self.parse(&source).ok()?;
        let (_, node) = container_of(&root, layout(self.tool, Some(&root)), name)?;
        Some(crate::foreign::write_tree(Format::Json, node))
    }

    /// Whether the file has the table or list that holds its servers.
    pub fn has_container(&self) -> bool {
        let source = SourceFile::new(self.path, Scope::User, self.body());
        let Ok(root) = self.parse(&source) else {
            return false;
        };
        let layout = layout(self.tool, Some(&root));
        layout.containers.iter().any(|path| root.at(path).is_some())
    }

    fn body(&self) -> &'a str {
        split_mark(self.text).1
    }

    fn parse<'s>(&self, source: &'s Arc<SourceFile>) -> Result<Node<'s>, ClientError> {
        let mut diagnostics = Vec::new();
        let root = parse(source, self.format, &mut diagnostics);
        let syntax = diagnostics.into_iter().find(|found| found.code == "syntax");
        let unreadable = |diagnostic| Err(ClientError::Unreadable(Box::new(diagnostic)));
        match (root, syntax) {
            (_, Some(syntax)) => unreadable(syntax),
            (Some(root), None) if root.as_table().is_some() => Ok(root),
            (Some(root), None) if matches!(root.value, Value::Null) => {
                Ok(Node::detached(Value::Table(Vec::new())))
            }
            (root, None) => {
                let kind = root.map_or("nothing", |root| root.kind());
                let message = format!("the file must hold a table, but holds {kind}");
                let place = self.path.to_owned();
                let hint = "fix the file, then repeat the command";
                unreadable(Diagnostic::error("wrong-type", place, message).with_hint(hint))
            }
        }
    }

    /// Names in all tables of servers.
    fn names(&self, root: &Node<'_>) -> Vec<String> {
        let layout = layout(self.tool, Some(root));
        let mut names = Vec::new();
        for container in layout.containers.iter().filter_map(|path| root.at(path)) {
            let keys = container.as_table().unwrap_or_default().iter();
            names.extend(keys.map(|member| member.key.to_string()));
            let elements = container.as_array().unwrap_or_default().iter();
            let listed = elements.filter_map(|element| element.get("name")?.as_str());
            names.extend(listed.map(String::from));
        }
        names
    }

    fn set(
        &self,
        container: &[&str],
        is_list: bool,
        name: &str,
        node: &Node<'_>,
    ) -> Result<String, ClientError> {
        let (mark, body) = split_mark(self.text);
        if self.format == Format::Yaml {
            let key = container.first().copied().unwrap_or_default();
            let text = yaml::set(body, key, is_list, name, node);
            let text = text.ok_or_else(|| ClientError::YamlLayout(key.to_owned()))?;
            return Ok(format!("{mark}{text}"));
        }
        let path: Vec<&str> = container.iter().copied().chain([name]).collect();
        let value = node.clone();
        let edit = Edit::Set { path: &path, value };
        edit::apply(self.text, self.format, &edit).map_err(ClientError::Edit)
    }

    fn without_one(&self, name: &str, drops_container: bool) -> Result<String, ClientError> {
        let (mark, body) = split_mark(self.text);
        let source = SourceFile::new(self.path, Scope::User, body);
        let root = self.parse(&source)?;
        let Some((container, _)) = container_of(&root, layout(self.tool, Some(&root)), name) else {
            return Ok(self.text.to_owned());
        };
        if self.format == Format::Yaml {
            let key = container.first().copied().unwrap_or_default();
            let text = yaml::remove(body, key, name, drops_container);
            let text = text.ok_or_else(|| ClientError::YamlLayout(key.to_owned()))?;
            return Ok(format!("{mark}{text}"));
        }
        let count = root.at(container).and_then(Node::as_table).map(<[_]>::len);
        let path: Vec<&str> = container.iter().copied().chain([name]).collect();
        let path: &[&str] = if drops_container && count == Some(1) {
            container
        } else {
            &path
        };
        edit::apply(self.text, self.format, &Edit::Remove { path }).map_err(ClientError::Edit)
    }
}

/// Splits a byte order mark off, which the parsers of some formats do not accept.
fn split_mark(text: &str) -> (&str, &str) {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split_at(text.len() - body.len())
}

/// The container that has a server of this name, and its entry.
fn container_of<'n, 'a>(
    root: &'n Node<'a>,
    layout: Layout,
    name: &str,
) -> Option<(&'static [&'static str], &'n Node<'a>)> {
    layout.containers.iter().find_map(|path| {
        let container = root.at(path)?;
        let found = match &container.value {
            Value::Array(elements) => elements
                .iter()
                .find(|element| element.get("name").and_then(Node::as_str) == Some(name)),
            _ => container.get(name),
        };
        Some((*path, found?))
    })
}

/// An entry with some of its keys replaced.
fn merged<'n>(standing: &Node<'n>, new: Node<'n>) -> Node<'n> {
    let (Some(old), Value::Table(mut rest)) = (standing.as_table(), new.value.clone()) else {
        return new;
    };
    let mut members: Vec<Member<'n>> = Vec::with_capacity(old.len());
    for member in old {
        let replaced = rest.iter().position(|other| other.key == member.key);
        // A client's switch is the user's decision.
        let is_switch = matches!(&*member.key, "enabled" | "disabled");
        match replaced.map(|index| rest.remove(index)) {
            Some(other) if !is_switch => members.push(other),
            _ => members.push(member.clone()),
        }
    }
    members.append(&mut rest);
    Node::detached(Value::Table(members))
}
