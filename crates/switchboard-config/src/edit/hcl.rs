//! Edits HCL: labelled blocks, blocks with a `name`, other blocks, and attributes.
//!
//! Finds a server in any notation; writes new ones as `mcp_servers "NAME" { … }`.

mod layout;

use super::braces::{BraceEditor, Entry, within};
use super::check::{Aligned, align, read};
use super::page::{Blank, Page};
use super::render::{Spread, Style, is_hcl_name, nested, quoted};
use super::{Edit, EditErrorKind};
use crate::format::Format;
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Member, Node, Value};
use layout::{Block, Body, Item};

/// Root blocks that form a map, keyed by label or by a `name` attribute.
pub(super) const NAMED_BLOCKS: [&str; 2] = ["mcp_servers", "mcpServers"];

/// Indentation if the file has none.
const DEFAULT_UNIT: &str = "  ";

pub(super) fn change(text: &str, edit: &Edit<'_>) -> Result<String, EditErrorKind> {
    let root = Body::parse(text).ok_or(EditErrorKind::NotClean)?;
    let page = Page::new(text, Format::Hcl);
    let unit = unit(&page, &root).unwrap_or(DEFAULT_UNIT).to_owned();
    let style = Style::new(Format::Hcl, page.newline, unit);
    let mut editor = Editor {
        page,
        style,
        one_line: None,
    };
    match edit {
        Edit::Set { path, value } => editor.set(&root, path, value, Level::Root)?,
        Edit::Remove { path } => editor.remove(&root, path, Level::Root)?,
    }
    match editor.one_line {
        Some(ref body) => change(&editor.opened_up(body), edit),
        None => Ok(editor.page.finish()),
    }
}

struct Editor<'t> {
    page: Page<'t>,
    style: Style,
    /// A single-line block that needs another attribute, and must be expanded to several lines first.
    one_line: Option<Body>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Level {
    Root,
    /// A root block without a label, such as `permissions`.
    Section,
    /// Deeper levels, where tables are written as objects.
    Entry,
}

/// Result of looking up a path in a body.
enum Found<'b> {
    /// The value of an attribute.
    Attribute(&'b Entry),
    /// A block, after this many keys.
    Block(&'b Block, usize),
    /// All blocks of a name.
    Blocks(Vec<&'b Block>),
    Missing,
}

impl<'t> Editor<'t> {
    fn set(
        &mut self,
        body: &Body,
        path: &[&str],
        value: &Node<'_>,
        level: Level,
    ) -> Result<(), EditErrorKind> {
        let Some((key, rest)) = path.split_first() else {
            return Ok(());
        };
        match find(body, path, level)? {
            Found::Attribute(entry) => self
                .braces()
                .set(&entry.value, rest, value)
                .map_err(|error| within(path, 1, error)),
            Found::Block(block, used) if used == path.len() => {
                let named = level == Level::Root && block.given_name.is_some();
                self.set_block(block, value, named)
            }
            Found::Block(block, used) => {
                let rest = path.get(used..).unwrap_or_default();
                self.set(&block.body, rest, value, level.inside(block))
                    .map_err(|error| within(path, used, error))
            }
            Found::Blocks(blocks) => self.set_blocks(body, key, &blocks, value, level),
            Found::Missing => self.insert(body, key, rest, value, level),
        }
    }

    fn remove(&mut self, body: &Body, path: &[&str], level: Level) -> Result<(), EditErrorKind> {
        match find(body, path, level)? {
            Found::Attribute(entry) if path.len() == 1 => {
                self.remove_item(body, entry.start);
                Ok(())
            }
            Found::Attribute(entry) => {
                let rest = path.get(1..).unwrap_or_default();
                self.braces()
                    .remove(&entry.value, rest)
                    .map_err(|error| within(path, 1, error))
            }
            Found::Block(block, used) if used == path.len() => {
                self.remove_item(body, block.range.start);
                Ok(())
            }
            Found::Block(block, used) => {
                let rest = path.get(used..).unwrap_or_default();
                self.remove(&block.body, rest, level.inside(block))
                    .map_err(|error| within(path, used, error))
            }
            Found::Blocks(blocks) => {
                for block in blocks {
                    self.remove_item(body, block.range.start);
                }
                Ok(())
            }
            Found::Missing => Err(EditErrorKind::NotFound),
        }
    }

    /// Replaces the contents of a block.
    fn set_block(
        &mut self,
        block: &Block,
        value: &Node<'_>,
        named: bool,
    ) -> Result<(), EditErrorKind> {
        let Some(members) = value.as_table() else {
            return unrepresentable("a block can only become another table");
        };
        let body = &block.body;
        let level = if block.labels.is_empty() && !named {
            Level::Section
        } else {
            Level::Entry
        };
        for item in &body.items {
            let key = item.key();
            let is_identity = named && block.labels.is_empty() && key == "name";
            if !is_identity && members.iter().all(|member| member.key != key) {
                self.remove(body, &[key], level)?;
            }
        }
        for member in members {
            self.set(body, &[&member.key], &member.value, level)?;
        }
        Ok(())
    }

    /// Replaces all blocks of a name.
    fn set_blocks(
        &mut self,
        body: &Body,
        key: &str,
        blocks: &[&Block],
        value: &Node<'_>,
        level: Level,
    ) -> Result<(), EditErrorKind> {
        let is_map = blocks.iter().any(|block| !block.labels.is_empty())
            || (level == Level::Root && NAMED_BLOCKS.contains(&key));
        match (&value.value, blocks) {
            (Value::Table(members), _) if is_map => {
                for name in blocks.iter().flat_map(|block| names_in(block)) {
                    if members.iter().all(|member| member.key != name) {
                        self.remove(body, &[key, name], level)?;
                    }
                }
                members.iter().try_for_each(|member| {
                    self.set(body, &[key, &member.key], &member.value, level)
                })
            }
            (Value::Table(_), [block]) => self.set_block(block, value, false),
            (Value::Array(elements), _) if !is_map && are_blocks(elements) => {
                self.set_list(body, key, blocks, elements)
            }
            (_, [first, others @ ..]) => {
                check_name(key)?;
                let indent = self.page.indent(first.range.start).to_owned();
                let member = self.style.member(&[key], value, &indent, Spread::Lines);
                self.page.replace(first.range.clone(), member);
                for block in others {
                    self.remove_item(body, block.range.start);
                }
                Ok(())
            }
            (_, []) => self.insert(body, key, &[], value, level),
        }
    }

    /// Replaces a list of blocks. Equal blocks at both ends keep their text.
    fn set_list(
        &mut self,
        body: &Body,
        key: &str,
        blocks: &[&Block],
        elements: &[Node<'_>],
    ) -> Result<(), EditErrorKind> {
        let says = |block: &&Block, value: &Node<'_>| self.block_says(block, value);
        let Aligned { old, new } = align(blocks, elements, says);
        let middle = blocks.get(old.clone()).unwrap_or_default();
        let elements = elements.get(new).unwrap_or_default();
        for (index, block) in middle.iter().enumerate() {
            match elements.get(index) {
                Some(value) => self.set_block(block, value, false)?,
                None => self.remove_item(body, block.range.start),
            }
        }
        let anchor = blocks.get(old.end.saturating_sub(1));
        for value in elements.get(middle.len()..).unwrap_or_default() {
            self.insert_block(body, anchor.copied(), key, None, value, Level::Section)?;
        }
        Ok(())
    }

    /// Adds a new key, with missing parent blocks.
    fn insert(
        &mut self,
        body: &Body,
        key: &str,
        rest: &[&str],
        value: &Node<'_>,
        level: Level,
    ) -> Result<(), EditErrorKind> {
        let blocks = body.blocks_named(key);
        let last = blocks.last().copied();
        let is_map = (level == Level::Root && NAMED_BLOCKS.contains(&key))
            || blocks.iter().any(|block| !block.labels.is_empty());
        if let (true, Some((name, rest))) = (is_map, rest.split_first()) {
            let value = nested(rest, value);
            return self.insert_block(body, last, key, Some(name), &value, level);
        }
        if let (Some(block), false) = (last, rest.is_empty()) {
            return self.set(&block.body, rest, value, level.inside(block));
        }
        let value = nested(rest, value);
        match &value.value {
            Value::Table(members) if is_map => {
                for Member {
                    key: name, value, ..
                } in members
                {
                    self.insert_block(body, last, key, Some(name), value, level)?;
                }
                Ok(())
            }
            Value::Table(members) if level == Level::Root && are_names(members) => {
                self.insert_block(body, last, key, None, &value, level)
            }
            Value::Array(elements) if level != Level::Entry && are_blocks(elements) => {
                for value in elements {
                    self.insert_block(body, last, key, None, value, Level::Section)?;
                }
                Ok(())
            }
            _ => self.insert_attribute(body, key, &value),
        }
    }

    fn insert_attribute(
        &mut self,
        body: &Body,
        key: &str,
        value: &Node<'_>,
    ) -> Result<(), EditErrorKind> {
        check_name(key)?;
        if self.is_one_line(body) {
            return Ok(());
        }
        let anchor = body.attributes().next_back();
        let indent = match anchor {
            Some(anchor) => self.page.indent(anchor.start).to_owned(),
            None => self.inner_indent(body),
        };
        let member = self.style.member(&[key], value, &indent, Spread::Lines);
        let line = format!("{indent}{member}");
        match anchor {
            Some(anchor) => self
                .page
                .insert_lines_after(anchor.value.range.end, &[line]),
            None if body.open > 0 => self.page.insert_lines_after(body.open, &[line]),
            None => self.append_lines(vec![line]),
        }
        Ok(())
    }

    fn insert_block(
        &mut self,
        body: &Body,
        anchor: Option<&Block>,
        key: &str,
        label: Option<&str>,
        value: &Node<'_>,
        level: Level,
    ) -> Result<(), EditErrorKind> {
        check_name(key)?;
        let Some(members) = value.as_table() else {
            return unrepresentable("a block can only hold a table");
        };
        if self.is_one_line(body) {
            return Ok(());
        }
        let indent = match anchor {
            Some(anchor) => self.page.indent(anchor.range.start).to_owned(),
            None => self.inner_indent(body),
        };
        let inner = match label {
            None if level == Level::Root => Level::Section,
            _ => Level::Entry,
        };
        let mut lines = self.block_lines(&indent, key, label, members, inner)?;
        let last = body.items.last().filter(|_| body.open > 0);
        let after = match (anchor, last) {
            (Some(anchor), _) => anchor.range.end,
            (None, Some(item)) => item.range().end,
            (None, None) if body.open > 0 => body.open,
            (None, None) => {
                self.append_lines(lines);
                return Ok(());
            }
        };
        if anchor.is_some() && self.page.blank_below(self.page.next_line(after)) {
            lines.insert(0, String::new());
        }
        self.page.insert_lines_after(after, &lines);
        Ok(())
    }

    fn block_lines(
        &self,
        indent: &str,
        key: &str,
        label: Option<&str>,
        members: &[Member<'_>],
        level: Level,
    ) -> Result<Vec<String>, EditErrorKind> {
        let label = label.map_or_else(String::new, |label| format!(" {}", quoted(label)));
        if members.is_empty() {
            return Ok(vec![format!("{indent}{key}{label} {{}}")]);
        }
        let inner = format!("{indent}{}", self.style.unit);
        let mut lines = vec![format!("{indent}{key}{label} {{")];
        for Member { key, value, .. } in members {
            check_name(key)?;
            match value.as_array() {
                Some(elements) if level == Level::Section && are_blocks(elements) => {
                    for element in elements {
                        let members = element.as_table().unwrap_or_default();
                        lines.extend(self.block_lines(&inner, key, None, members, Level::Entry)?);
                    }
                }
                _ => {
                    let member = self.style.member(&[key], value, &inner, Spread::Lines);
                    lines.push(format!("{inner}{member}"));
                }
            }
        }
        lines.push(format!("{indent}}}"));
        Ok(lines)
    }

    /// Appends lines to the file, separated by a blank line.
    fn append_lines(&mut self, mut lines: Vec<String>) {
        match self.page.content_end() {
            0 => self.page.insert_lines_at(self.page.text.len(), &lines),
            end => {
                lines.insert(0, String::new());
                self.page.insert_lines_after(end, &lines);
            }
        }
    }

    fn remove_item(&mut self, body: &Body, start: usize) {
        let Some(index) = body
            .items
            .iter()
            .position(|item| item.range().start == start)
        else {
            return;
        };
        let Some(item) = body.items.get(index) else {
            return;
        };
        if body.open > 0 && !self.page.slice(body.open..body.close).contains('\n') {
            return self.page.delete(body.open..body.close);
        }
        let above = index.checked_sub(1).and_then(|index| body.items.get(index));
        let floor = above.map_or(body.open, |item| item.range().end);
        let lead = self.page.lead(floor, start);
        let blank = match item {
            Item::Attribute(_) => Blank::Below,
            Item::Block(_) => Blank::Above,
        };
        self.page.delete_lines(lead, item.range().end, blank);
    }

    /// Whether the body is on one line and cannot take another item. If so, marks it for expansion.
    fn is_one_line(&mut self, body: &Body) -> bool {
        let inside = self.page.slice(body.open..body.close);
        let one_line = body.open > 0 && !inside.contains('\n');
        if one_line {
            self.one_line = Some(body.clone());
        }
        one_line
    }

    fn inner_indent(&self, body: &Body) -> String {
        match body.items.first() {
            Some(item) => self.page.indent(item.range().start).to_owned(),
            None if body.open > 0 => {
                format!("{}{}", self.page.indent(body.open), self.style.unit)
            }
            None => String::new(),
        }
    }

    fn block_says(&self, block: &Block, value: &Node<'_>) -> bool {
        let inside = self.page.slice(block.body.open..block.body.close);
        let file = SourceFile::new("", Scope::Dynamic, format!("value {{{inside}}}\n"));
        read(&file, Format::Hcl).is_ok_and(|tree| {
            tree.get("value")
                .is_some_and(|found| super::check::same(found, value))
        })
    }

    /// Expands a single-line body.
    fn opened_up(&self, body: &Body) -> String {
        // Pending edits are discarded and planned again on the new text.
        let mut page = Page::new(self.page.text, Format::Hcl);
        let indent = page.indent(body.open);
        let Style { newline, unit, .. } = &self.style;
        let item = body.items.first().map_or_else(String::new, |item| {
            format!("{newline}{indent}{unit}{}", page.slice(item.range()))
        });
        page.replace(body.open..body.close, format!("{item}{newline}{indent}"));
        page.finish()
    }

    fn braces(&mut self) -> BraceEditor<'_, 't> {
        BraceEditor {
            page: &mut self.page,
            style: &self.style,
        }
    }
}

impl Level {
    fn inside(self, block: &Block) -> Self {
        if self == Level::Root && block.labels.is_empty() && !NAMED_BLOCKS.contains(&&*block.name) {
            Level::Section
        } else {
            Level::Entry
        }
    }
}

fn find<'b>(body: &'b Body, path: &[&str], level: Level) -> Result<Found<'b>, EditErrorKind> {
    let Some((key, rest)) = path.split_first() else {
        return Ok(Found::Missing);
    };
    let attribute = body.attribute(key);
    let blocks = body.blocks_named(key);
    let duplicate = |length: usize| EditErrorKind::Duplicate {
        key: path.get(..length).unwrap_or_default().join("."),
    };
    let Some(name) = rest.first() else {
        return match (attribute, blocks.is_empty()) {
            (Some(_), false) => Err(duplicate(1)),
            (Some(entry), true) => Ok(Found::Attribute(entry)),
            (None, false) => Ok(Found::Blocks(blocks)),
            (None, true) => Ok(Found::Missing),
        };
    };
    let named = level == Level::Root && NAMED_BLOCKS.contains(key);
    let mut candidates = blocks.into_iter().filter_map(|block| {
        let (found, used) = match (block.labels.as_slice(), &block.given_name) {
            ([label], _) => (label == name, 2),
            ([], Some(given)) if named => (given == name, 2),
            ([], _) => (block.body.has(name), 1),
            _ => (false, 0),
        };
        found.then_some(Found::Block(block, used))
    });
    let found = candidates.next();
    if candidates.next().is_some() {
        return Err(duplicate(2));
    }
    let in_attribute = attribute.filter(|entry| {
        let braces = entry.value.braces.as_ref();
        braces.is_some_and(|braces| braces.entries.iter().any(|entry| entry.path == [*name]))
    });
    match (found, attribute) {
        (Some(_), _) if in_attribute.is_some() => Err(duplicate(2)),
        (Some(found), _) => Ok(found),
        (None, Some(entry)) => Ok(Found::Attribute(entry)),
        (None, None) => Ok(Found::Missing),
    }
}

/// Names in a block of a map: its own, or those of its members.
fn names_in(block: &Block) -> Vec<&str> {
    match (block.labels.first(), &block.given_name) {
        (Some(label), _) => vec![label],
        (None, Some(name)) => vec![name],
        (None, None) => block.body.items.iter().map(Item::key).collect(),
    }
}

/// Whether a list still reads back equal if each element is written as a block.
fn are_blocks(elements: &[Node<'_>]) -> bool {
    let is_block = |element: &Node<'_>| {
        element.as_table().is_some_and(|members| {
            members
                .iter()
                .any(|member| member.value.as_table().is_none())
                && are_names(members)
        })
    };
    !elements.is_empty() && elements.iter().all(is_block)
}

fn are_names(members: &[Member<'_>]) -> bool {
    members.iter().all(|member| is_hcl_name(&member.key))
}

fn check_name(key: &str) -> Result<(), EditErrorKind> {
    if is_hcl_name(key) {
        return Ok(());
    }
    let message = format!("`{key}` cannot be the name of an HCL attribute or block");
    Err(EditErrorKind::Unrepresentable(message))
}

fn unrepresentable(message: &str) -> Result<(), EditErrorKind> {
    Err(EditErrorKind::Unrepresentable(message.to_owned()))
}

/// Indentation unit, taken from the first item that starts a line in a block.
fn unit<'t>(page: &Page<'t>, root: &Body) -> Option<&'t str> {
    root.blocks().find_map(|block| {
        let outer = page.indent(block.range.start);
        let mut items = block.body.items.iter().map(|item| item.range().start);
        let first = items.find(|start| page.begins_line(*start))?;
        page.indent(first)
            .strip_prefix(outer)
            .filter(|unit| !unit.is_empty())
    })
}
