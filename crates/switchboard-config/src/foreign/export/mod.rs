//! Writes servers the way another tool wants them.

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

/// Servers as another tool writes them.
#[derive(Debug)]
pub struct Exported {
    /// How the tool's file is written.
    pub format: Format,
    /// The keys that lead to the table or list of servers.
    pub container: &'static [&'static str],
    /// Whether that is a list, whose elements carry their names, and not a table.
    pub is_list: bool,
    /// Each server's name and what stands behind it.
    pub entries: Vec<(String, Node<'static>)>,
    /// What the entries need elsewhere in the file: lists, by the keys that lead to them.
    pub extra: Vec<(Vec<&'static str>, Node<'static>)>,
    /// What the tool cannot express, by server and field.
    pub notes: Vec<Diagnostic>,
    head: &'static [(&'static str, &'static str)],
}

/// Writes servers for a tool. A server that the tool cannot run, or could not keep disabled, is left out;
/// `notes` say so, and name every field that is lost.
///
/// `beside` is the tree of the file the servers will go into, if there is one: some tools have several formats,
/// and a file must not mix them.
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
    /// A whole file with nothing but these servers.
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

/// Puts a node at the end of a path of keys, making the tables on the way.
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
