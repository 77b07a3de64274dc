//! Exports servers to the format of another tool.

mod fields;
mod writer;

use writer::{Shared, Writer};

use super::Tool;
use super::dialects::dialect;
use super::text;
use crate::diagnostic::Diagnostic;
use crate::entry::ServerEntry;
use crate::format::Format;
use crate::tree::{Member, Node, Span, Value};

/// Servers in the format of another tool.
#[derive(Debug)]
pub struct Exported {
    /// Format of the tool's file.
    pub format: Format,
    /// Path of the table or list of servers.
    pub container: &'static [&'static str],
    /// Whether the container is a list of elements with names, instead of a table.
    pub is_list: bool,
    /// Server names with their entries.
    pub entries: Vec<(String, Node<'static>)>,
    /// Lists that the entries need elsewhere in the file, by path.
    pub extra: Vec<(Vec<&'static str>, Node<'static>)>,
    /// What the tool cannot express, by server and field.
    pub notes: Vec<Diagnostic>,
    head: &'static [(&'static str, &'static str)],
}

/// Exports servers to a tool. Servers that the tool cannot run, or cannot keep disabled, are left out; `notes` lists
/// them and every lost field.
///
/// `beside` is the tree of the file that will contain the servers, if it exists: some tools have several formats, and a
/// file must not mix them.
pub fn export(tool: Tool, servers: &[(&str, &ServerEntry)], beside: Option<&Node<'_>>) -> Exported {
    let dialect = dialect(tool, beside);
    let mut exported = Exported {
        format: dialect.format,
        container: dialect.containers.first().copied().unwrap_or_default(),
        is_list: dialect.listed,
        entries: Vec::with_capacity(servers.len()),
        extra: Vec::new(),
        notes: Vec::new(),
        head: dialect.head,
    };
    let mut shared = Shared::default();
    for (name, entry) in servers {
        let mut writer = Writer::new(dialect, name, entry, &mut exported.notes, &mut shared);
        if let Some(node) = writer.write() {
            exported.entries.push(((*name).to_owned(), node));
        }
    }
    if !shared.inputs.is_empty() {
        let mut path: Vec<_> = exported.container.to_vec();
        path.pop();
        path.push("inputs");
        exported.extra.push((
            path,
            Node::detached(
                shared
                    .inputs
                    .into_iter()
                    .map(|(_, node)| node)
                    .collect::<Value<'_>>(),
            ),
        ));
    }
    if !shared.excluded.is_empty() {
        let names = shared
            .excluded
            .into_iter()
            .map(Node::detached)
            .collect::<Value<'_>>();
        exported
            .extra
            .push((vec!["mcp", "excluded"], Node::detached(names)));
    }
    exported
}

impl Exported {
    /// A new file with only these servers.
    pub fn to_text(&self) -> String {
        let mut root = Node::table(
            self.head
                .iter()
                .map(|(key, value)| (*key, Node::detached(*value))),
        );
        let servers = if self.is_list {
            Node::detached(
                self.entries
                    .iter()
                    .map(|(_, node)| node.clone())
                    .collect::<Value<'_>>(),
            )
        } else {
            Node::table(
                self.entries
                    .iter()
                    .map(|(name, node)| (name.clone(), node.clone())),
            )
        };
        for (path, node) in &self.extra {
            insert(&mut root, path, node.clone());
        }
        insert(&mut root, self.container, servers);
        text::write(self.format, &root)
    }
}

/// Inserts a node at a path, creating missing tables.
fn insert(root: &mut Node<'static>, path: &[&'static str], node: Node<'static>) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let mut at = root;
    for key in way {
        let Value::Table(members) = &mut at.value else {
            return;
        };
        let index = members.iter().position(|member| member.key == *key);
        let index = index.unwrap_or_else(|| {
            members.push(member(key, Node::detached(Value::Table(Vec::new()))));
            members.len() - 1
        });
        let Some(next) = members.get_mut(index) else {
            return;
        };
        at = &mut next.value;
    }
    if let Value::Table(members) = &mut at.value {
        members.push(member(last, node));
    }
}

fn member(key: &'static str, value: Node<'static>) -> Member<'static> {
    Member {
        key: key.into(),
        key_span: Span::default(),
        value,
    }
}
