//! Adds and removes one server in a YAML file, as text.
//!
//! No library at hand edits YAML with its comments, so lines are inserted and deleted at places that the parser reports,
//! and the result is parsed again: it must differ from the file by this one server, or nothing is changed.

use crate::edit::same;
use crate::foreign::write_tree;
use crate::format::{Format, parse};
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Member, Node, Value};

/// The text with a server in the table or list at `key`; an existing one of that name is replaced. `None` if the layout
/// of the file does not allow it.
pub(super) fn set(
    text: &str,
    key: &str,
    is_list: bool,
    name: &str,
    node: &Node<'_>,
) -> Option<String> {
    let without;
    let base = if names(text, key)?.iter().any(|each| each == name) {
        without = remove(text, key, name, false)?;
        &without
    } else {
        text
    };
    let changed = insert(base, key, is_list, name, node)?;
    let is_clean = with_roots(base, &changed, |before, after| {
        differs_by(before, after, key, name) && is_at(after, key, name, node)
    })?;
    is_clean.then_some(changed)
}

/// The text without a server. With `drops_container`, the key goes too if nothing else is in it.
pub(super) fn remove(text: &str, key: &str, name: &str, drops_container: bool) -> Option<String> {
    let changed = delete(text, key, name, drops_container)?;
    let is_clean = with_roots(text, &changed, |before, after| {
        differs_by(after, before, key, name)
    })?;
    // A list can have the name twice.
    let is_gone = !names(&changed, key)?.iter().any(|each| each == name);
    (is_clean && is_gone).then_some(changed)
}

fn insert(text: &str, key: &str, is_list: bool, name: &str, node: &Node<'_>) -> Option<String> {
    let lines = Lines::of(text);
    let source = SourceFile::new("", Scope::Dynamic, text);
    let root = read(&source)?;
    let block = |indent: &str| {
        let tree = if is_list {
            Node::detached([node.clone()].into_iter().collect::<Value<'_>>())
        } else {
            Node::table([(name, node.clone())])
        };
        let written = write_tree(Format::Yaml, &tree);
        let rows = written.lines().map(|line| format!("{indent}{line}"));
        rows.collect::<Vec<_>>()
    };
    let Some(member) = member(&root, key) else {
        if text.trim_start().starts_with(['{', '[']) {
            return None;
        }
        let mut rows = vec![format!("{key}:")];
        rows.extend(block("  "));
        return Some(lines.with_rows(text.len(), &rows));
    };
    let colon = colon_after(text, member)?;
    let line = lines.next(colon);
    let is_empty = match &member.value.value {
        Value::Null => true,
        Value::Table(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => return None,
    };
    if is_empty {
        // The value, if any, is on the line of the key: `{}`, `[]`, `~` or nothing.
        let rest = text.get(colon..lines.end(colon))?;
        let written = rest.split(" #").next().unwrap_or_default().trim_end();
        let cleared = format!(
            "{}{}",
            text.get(..colon)?,
            text.get(colon + written.len()..)?
        );
        let at = line - written.len();
        let indent = format!("{}  ", lines.indent(colon));
        return Some(Lines::of(&cleared).with_rows(at, &block(&indent)));
    }
    let opening = text.get(colon..)?.trim_start_matches([' ', '\t']);
    if opening.starts_with(['{', '[']) {
        let at = text.len() - opening.len() + 1;
        let json = write_tree(Format::Json, node);
        let value: serde_json::Value = serde_json::from_str(&json).ok()?;
        let entry = if is_list {
            format!("{value}, ")
        } else {
            format!("{}: {value}, ", serde_json::Value::from(name))
        };
        return Some(format!("{}{entry}{}", text.get(..at)?, text.get(at..)?));
    }
    // The first line of the block has the indentation of all entries.
    let mut rest = text.get(line..)?.split_inclusive('\n');
    let first = rest.find(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    })?;
    let indent = first.get(..first.len() - first.trim_start_matches(' ').len())?;
    Some(lines.with_rows(line, &block(indent)))
}

fn delete(text: &str, key: &str, name: &str, drops_container: bool) -> Option<String> {
    let lines = Lines::of(text);
    let source = SourceFile::new("", Scope::Dynamic, text);
    let root = read(&source)?;
    let container = member(&root, key)?;
    let (start, next, count) = place(&container.value, name)?;
    let colon = colon_after(text, container)?;
    let opening = text.get(colon..)?.trim_start_matches([' ', '\t']);
    if opening.starts_with(['{', '[']) {
        // Inside of braces, only an entry that another one follows has a definite end.
        return Some(format!("{}{}", text.get(..start)?, text.get(next?..)?));
    }
    let mut first = lines.start(start);
    let before = text.get(first..start)?;
    let is_dashed = before.trim() == "-";
    if before.trim().is_empty() && container.value.as_array().is_some() {
        // The dash is alone on the line above.
        let above = lines.above(first)?;
        if text.get(above..first)?.trim() != "-" {
            return None;
        }
        first = above;
    } else if !before.trim().is_empty() && !is_dashed {
        return None;
    }
    let width = lines.indent(first).len();
    let mut end = lines.next(start);
    let mut at = end;
    while at < text.len() {
        let after = lines.next(at);
        let line = text.get(at..after)?;
        let is_blank = line.trim().is_empty();
        if !is_blank && lines.indent(at).len() <= width {
            break;
        }
        if !is_blank {
            end = after;
        }
        at = after;
    }
    // Comments directly above belong to the entry, as in the other formats.
    while let Some(above) = lines.above(first) {
        let line = text.get(above..first)?;
        if !line.trim_start().starts_with('#')
            || lines.indent(above).len() != width
            || above <= colon
        {
            break;
        }
        first = above;
    }
    if count > 1 {
        return Some(lines.joined(text.get(..first)?, text.get(end..)?));
    }
    if drops_container {
        let start = lines.start(colon);
        return Some(lines.joined(text.get(..start)?, text.get(end..)?));
    }
    let empty = match container.value.value {
        Value::Array(_) => " []",
        _ => " {}",
    };
    let head = format!("{}{empty}{}", text.get(..colon)?, text.get(colon..first)?);
    Some(lines.joined(&head, text.get(end..)?))
}

/// Start of an entry, start of the one after it, and the number of entries.
fn place(container: &Node<'_>, name: &str) -> Option<(usize, Option<usize>, usize)> {
    let (starts, index): (Vec<u32>, _) = match &container.value {
        Value::Array(elements) => (
            elements
                .iter()
                .map(|element| element.extent().start)
                .collect(),
            elements.iter().position(|element| is_named(element, name)),
        ),
        Value::Table(members) => (
            members.iter().map(|member| member.key_span.start).collect(),
            members.iter().position(|member| member.key == name),
        ),
        _ => return None,
    };
    let index = index?;
    let at = |index: usize| starts.get(index).map(|start| *start as usize);
    Some((at(index)?, at(index + 1), starts.len()))
}

/// Offset after the colon of a key.
fn colon_after(text: &str, member: &Member<'_>) -> Option<usize> {
    let start = member.key_span.start as usize;
    let rest = text.get(start..)?;
    // Keys of these files are plain or quoted words.
    let end = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest.get(1..)?.find(quote)? + 2,
        _ => 0,
    };
    Some(start + end + rest.get(end..)?.find(':')? + 1)
}

fn names(text: &str, key: &str) -> Option<Vec<String>> {
    let source = SourceFile::new("", Scope::Dynamic, text);
    let root = read(&source)?;
    let Some(container) = root.get(key) else {
        return Some(Vec::new());
    };
    let keys = container.as_table().unwrap_or_default().iter();
    let keys = keys.map(|member| member.key.to_string());
    let elements = container.as_array().unwrap_or_default().iter();
    let named = elements.filter_map(|element| Some(element.get("name")?.as_str()?.to_owned()));
    Some(keys.chain(named).collect())
}

/// Parses a text that must have no syntax error.
fn read(source: &std::sync::Arc<SourceFile>) -> Option<Node<'_>> {
    let mut diagnostics = Vec::new();
    let root = parse(source, Format::Yaml, &mut diagnostics)?;
    let is_broken = diagnostics.iter().any(|found| found.code == "syntax");
    (!is_broken).then_some(match root.value {
        Value::Null => Node::detached(Value::Table(Vec::new())),
        _ => root,
    })
}

fn with_roots(
    before: &str,
    after: &str,
    check: impl FnOnce(&Node<'_>, &Node<'_>) -> bool,
) -> Option<bool> {
    let (before, after) = (
        SourceFile::new("", Scope::Dynamic, before),
        SourceFile::new("", Scope::Dynamic, after),
    );
    Some(check(&read(&before)?, &read(&after)?))
}

/// Whether `more` is `less` with one more server of this name.
fn differs_by(less: &Node<'_>, more: &Node<'_>, key: &str, name: &str) -> bool {
    let beside = |root: &Node<'_>| {
        let members = root.as_table().unwrap_or_default().iter();
        let others = members.filter(|member| member.key != key);
        Node::detached(Value::Table(others.map(detached).collect()))
    };
    let rest = |root: &Node<'_>| -> Vec<Member<'static>> {
        match root.get(key).map(|node| &node.value) {
            Some(Value::Table(members)) => members
                .iter()
                .filter(|member| member.key != name)
                .map(detached)
                .collect(),
            // The order of a list matters, so the index is the key.
            Some(Value::Array(elements)) => {
                let others = elements.iter().filter(|element| !is_named(element, name));
                let numbered = others.enumerate().map(|(index, element)| Member {
                    key: index.to_string().into(),
                    key_span: crate::tree::Span::default(),
                    value: owned(element),
                });
                numbered.collect()
            }
            _ => Vec::new(),
        }
    };
    let table = |members| Node::detached(Value::Table(members));
    same(&beside(less), &beside(more)) && same(&table(rest(less)), &table(rest(more)))
}

/// Whether the file has the server exactly once, with the requested settings.
fn is_at(root: &Node<'_>, key: &str, name: &str, node: &Node<'_>) -> bool {
    match root.get(key).map(|found| &found.value) {
        Some(Value::Table(members)) => {
            let mut found = members.iter().filter(|member| member.key == name);
            found.next().is_some_and(|member| same(&member.value, node)) && found.next().is_none()
        }
        Some(Value::Array(elements)) => {
            let mut found = elements.iter().filter(|element| is_named(element, name));
            found.next().is_some_and(|element| same(element, node)) && found.next().is_none()
        }
        _ => false,
    }
}

fn is_named(element: &Node<'_>, name: &str) -> bool {
    element.get("name").and_then(Node::as_str) == Some(name)
}

fn member<'n, 'a>(root: &'n Node<'a>, key: &str) -> Option<&'n Member<'a>> {
    root.as_table()?.iter().find(|member| member.key == key)
}

fn detached(member: &Member<'_>) -> Member<'static> {
    Member {
        key: member.key.to_string().into(),
        key_span: crate::tree::Span::default(),
        value: owned(&member.value),
    }
}

fn owned(node: &Node<'_>) -> Node<'static> {
    Node::detached(match &node.value {
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(*value),
        Value::Integer(value) => Value::Integer(*value),
        Value::Float(value) => Value::Float(*value),
        Value::String(text) => Value::String(text.to_string().into()),
        Value::Array(elements) => elements.iter().map(owned).collect(),
        Value::Table(members) => Value::Table(members.iter().map(detached).collect()),
    })
}

/// A text by lines.
struct Lines<'t> {
    text: &'t str,
    newline: &'static str,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let is_windows = text
            .find('\n')
            .is_some_and(|at| text.get(..at).is_some_and(|line| line.ends_with('\r')));
        let newline = if is_windows { "\r\n" } else { "\n" };
        Self { text, newline }
    }

    fn start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.rfind('\n').map_or(0, |found| found + 1)
    }

    /// Offset before the line's terminator.
    fn end(&self, at: usize) -> usize {
        let line = self.text.get(at..self.next(at)).unwrap_or_default();
        at + line.trim_end_matches(['\r', '\n']).len()
    }

    /// Start of the next line.
    fn next(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.find('\n')
            .map_or(self.text.len(), |found| at + found + 1)
    }

    /// Start of the line above a line that starts at `start`.
    fn above(&self, start: usize) -> Option<usize> {
        Some(self.start(start.checked_sub(1)?))
    }

    /// Indentation of the line of `at`.
    fn indent(&self, at: usize) -> &'t str {
        let line = self.text.get(self.start(at)..).unwrap_or_default();
        let width = line.len() - line.trim_start_matches(' ').len();
        line.get(..width).unwrap_or_default()
    }

    /// The text with rows inserted at the start of a line, or at its end. A missing final line break stays missing.
    fn with_rows(&self, at: usize, rows: &[String]) -> String {
        let (head, tail) = self.text.split_at(at.min(self.text.len()));
        let mut text = head.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(self.newline);
        }
        for row in rows {
            text.push_str(row);
            text.push_str(self.newline);
        }
        text.push_str(tail);
        self.terminated(text)
    }

    /// Two parts of the text, with its final line break as it was.
    fn joined(&self, head: &str, tail: &str) -> String {
        self.terminated(format!("{head}{tail}"))
    }

    fn terminated(&self, mut text: String) -> String {
        let was = self.text.is_empty() || self.text.ends_with('\n');
        if let (false, Some(rest)) = (was, text.strip_suffix('\n')) {
            text.truncate(rest.strip_suffix('\r').unwrap_or(rest).len());
        }
        text
    }
}

#[cfg(test)]
mod tests;
