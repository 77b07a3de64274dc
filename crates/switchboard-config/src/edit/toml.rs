//! Edits TOML: sections, dotted keys, inline tables and arrays of tables.
//!
//! A table may use all of these at once, so a key is looked up by its full path among all statements, and all its parts
//! are removed.

mod layout;

use super::braces::{BraceEditor, Place, style_like, within};
use super::check::{Aligned, align, same};
use super::page::{Blank, Page};
use super::render::{Spread, Style, nested};
use super::{Edit, EditErrorKind};
use crate::format::Format;
use crate::tree::{Member, Node, Value};
use layout::{Section, Sections};

/// Maximum number of keys in a header that we write: `[mcp_servers.NAME]`. Deeper tables are inline.
const HEADER_KEYS: usize = 2;

pub(super) fn change(
    text: &str,
    before: &Node<'_>,
    edit: &Edit<'_>,
) -> Result<String, EditErrorKind> {
    let page = Page::new(text, Format::Toml);
    let style = Style::new(Format::Toml, page.newline, String::new());
    let sections = Sections::parse(text);
    let mut editor = Editor {
        page,
        style,
        sections,
        before,
        section_blank: Blank::Above,
        statement_blank: Blank::Below,
    };
    match edit {
        Edit::Set { path, value } => editor.set(path, value)?,
        Edit::Remove { path } => editor.remove(path)?,
    }
    Ok(editor.page.finish())
}

struct Editor<'t, 'n> {
    page: Page<'t>,
    style: Style,
    sections: Sections,
    before: &'n Node<'n>,
    /// Blank line to remove with a section: new sections get one above.
    section_blank: Blank,
    /// Blank line to remove with a statement: the first one of the root gets one below.
    statement_blank: Blank,
}

/// A statement, as section and index.
#[derive(Debug, Clone, Copy)]
struct Statement {
    section: usize,
    index: usize,
}

impl<'t> Editor<'t, '_> {
    fn set(&mut self, path: &[&str], value: &Node<'_>) -> Result<(), EditErrorKind> {
        self.refuse_array(path)?;
        let found = self.before.at(path);
        if found.is_some_and(|found| same(found, value)) {
            return Ok(());
        }
        if let Some((place, used)) = self.holder(path) {
            let rest = path.get(used..).unwrap_or_default();
            return self
                .braces()
                .set(&place, rest, value)
                .map_err(|error| within(path, used, error));
        }
        match (found.map(|found| &found.value), &value.value) {
            (None, _) => self.insert(path, value),
            (Some(Value::Table(old)), Value::Table(new)) => self.merge(path, old, new)?,
            (Some(Value::Array(old)), Value::Array(new)) if are_tables(new) => {
                self.merge_array(path, old, new)?;
            }
            (Some(_), _) => {
                self.keep_blank_lines();
                self.remove_pieces(path);
                self.insert(path, value);
            }
        }
        Ok(())
    }

    fn remove(&mut self, path: &[&str]) -> Result<(), EditErrorKind> {
        self.refuse_array(path)?;
        match self.holder(path) {
            Some((place, used)) if used < path.len() => {
                let rest = path.get(used..).unwrap_or_default();
                self.braces()
                    .remove(&place, rest)
                    .map_err(|error| within(path, used, error))
            }
            _ if self.remove_pieces(path) => Ok(()),
            _ => Err(EditErrorKind::NotFound),
        }
    }

    /// Replaces a table that is spread over statements and sections.
    fn merge(
        &mut self,
        path: &[&str],
        old: &[Member<'_>],
        new: &[Member<'_>],
    ) -> Result<(), EditErrorKind> {
        self.keep_blank_lines();
        for member in old {
            if new.iter().all(|other| other.key != member.key) {
                self.remove_pieces(&child(path, &member.key));
            }
        }
        // Members that may become sections come last: statements below their header would belong to them.
        let may_be_section = |member: &&Member<'_>| {
            let value = &member.value;
            value.as_table().is_some() || value.as_array().is_some_and(are_tables)
        };
        let (sections, statements): (Vec<_>, Vec<_>) = new.iter().partition(may_be_section);
        for member in statements.into_iter().chain(sections) {
            self.set(&child(path, &member.key), &member.value)?;
        }
        Ok(())
    }

    /// Keeps the blank lines around removed parts that are about to be replaced.
    fn keep_blank_lines(&mut self) {
        self.statement_blank = Blank::Keep;
    }

    /// Replaces an array of tables. Equal elements at both ends keep their text.
    fn merge_array(
        &mut self,
        path: &[&str],
        old: &[Node<'_>],
        new: &[Node<'_>],
    ) -> Result<(), EditErrorKind> {
        let elements = self.sections.elements(path);
        if elements.len() != old.len() || elements.is_empty() {
            return Err(EditErrorKind::NotClean);
        }
        let Aligned {
            old: old_middle,
            new: new_middle,
        } = align(old, new, same);
        let new_middle = new.get(new_middle).unwrap_or_default();
        for (offset, index) in old_middle.clone().enumerate() {
            let Some(element) = elements.get(index) else {
                continue;
            };
            match new_middle.get(offset) {
                Some(value) if element.len() == 1 => self.merge_element(element.start, value)?,
                Some(value) => {
                    let last = element.end.saturating_sub(1);
                    self.insert_section_after(last, path, value, true);
                    element.clone().for_each(|index| self.remove_section(index));
                }
                None => element.clone().for_each(|index| self.remove_section(index)),
            }
        }
        let added = new_middle.get(old_middle.len()..).unwrap_or_default();
        let anchor = elements
            .get(old_middle.end.saturating_sub(1))
            .map_or(0, |element| element.end.saturating_sub(1));
        for value in added {
            self.insert_section_after(anchor, path, value, true);
        }
        Ok(())
    }

    /// Replaces one element of an array of tables, a section without sub-sections.
    fn merge_element(&mut self, section: usize, value: &Node<'_>) -> Result<(), EditErrorKind> {
        let members = value.as_table().unwrap_or_default();
        let entries = self.sections.entries(section).to_vec();
        for (index, entry) in entries.iter().enumerate() {
            let member = members
                .iter()
                .find(|member| entry.path == [member.key.as_ref()]);
            match member {
                Some(member) => self.braces().merge(&entry.value, &member.value)?,
                None => self.remove_statement(Statement { section, index }, Blank::Keep),
            }
        }
        for member in members {
            if !entries.iter().any(|entry| entry.path == [&*member.key]) {
                self.insert_statement(section, None, &[&member.key], &member.value);
            }
        }
        Ok(())
    }

    /// Adds a new key, with missing parents.
    fn insert(&mut self, path: &[&str], value: &Node<'_>) {
        let tables = matches!(&value.value, Value::Array(elements) if are_tables(elements));
        let table = value.as_table().is_some();
        let dotted = path
            .split_last()
            .is_some_and(|(_, parent)| self.last_dotted(parent).is_some());
        if (table || tables) && path.len() <= HEADER_KEYS && !dotted {
            let after = self.last_section_under(first_key(path));
            let array = value.as_array().unwrap_or_default();
            for element in if tables {
                array
            } else {
                std::slice::from_ref(value)
            } {
                self.insert_section(after, path, element, tables);
            }
            return;
        }
        for length in (1..path.len()).rev() {
            let (parent, rest) = path.split_at(length);
            if let Some(section) = self.header(parent) {
                let (key, rest) = rest.split_at(1);
                return self.insert_statement(section, None, key, &nested(rest, value));
            }
            if let Some(Statement { section, index }) = self.last_dotted(parent) {
                let depth = self
                    .sections
                    .get(section)
                    .map_or(0, |section| section.path.len());
                let (key, rest) = path.split_at(length + 1);
                let key = key.get(depth..).unwrap_or_default();
                return self.insert_statement(section, Some(index), key, &nested(rest, value));
            }
        }
        if let [_] = path {
            return self.insert_statement(0, None, path, value);
        }
        let (header, rest) = path.split_at(HEADER_KEYS.min(path.len() - 1));
        let value = nested(rest, value);
        match self.first_section_under(header) {
            Some(section) => self.insert_section_before(section, header, &value),
            None => self.insert_section(
                self.last_section_under(first_key(header)),
                header,
                &value,
                false,
            ),
        }
    }

    fn insert_statement(
        &mut self,
        section: usize,
        after: Option<usize>,
        key: &[&str],
        value: &Node<'_>,
    ) {
        let entries = self.sections.entries(section);
        let anchor = match after {
            Some(index) => entries.get(index),
            None => entries.last(),
        };
        let header = self
            .sections
            .get(section)
            .and_then(|section| section.header.clone());
        let statement = |style: &Style, indent: &str| {
            let member = style.member(key, value, indent, Spread::Lines);
            format!("{indent}{member}")
        };
        if let Some(anchor) = anchor {
            let style = style_like(&self.page, &self.style, anchor);
            let line = statement(&style, self.page.indent(anchor.start));
            self.page
                .insert_lines_after(anchor.value.range.end, &[line]);
        } else if let Some(header) = header {
            let line = statement(&self.style, self.page.indent(header.start));
            self.page.insert_lines_after(header.end, &[line]);
        } else if let Some(first) = self.sections.get(1) {
            // Root keys must precede all headers.
            let header = first.header.clone().unwrap_or_default();
            let start = self.page.line_start(self.page.lead(0, header.start));
            let line = statement(&self.style, "");
            self.page.insert_lines_at(start, &[line, String::new()]);
        } else {
            // Only comments: a blank line keeps them separate from the new key.
            let line = statement(&self.style, "");
            match self.page.content_end() {
                0 => self.page.insert_lines_at(self.page.text.len(), &[line]),
                end => self.page.insert_lines_after(end, &[String::new(), line]),
            }
        }
    }

    fn insert_section(
        &mut self,
        after: Option<usize>,
        path: &[&str],
        value: &Node<'_>,
        array: bool,
    ) {
        if let Some(section) = after {
            return self.insert_section_after(section, path, value, array);
        }
        let mut lines = self.section_lines(path, value, array, ["", ""]);
        match self.page.content_end() {
            0 => self.page.insert_lines_at(self.page.text.len(), &lines),
            end => {
                lines.insert(0, String::new());
                self.page.insert_lines_after(end, &lines);
            }
        }
    }

    fn insert_section_after(
        &mut self,
        section: usize,
        path: &[&str],
        value: &Node<'_>,
        array: bool,
    ) {
        let end = self.section_end(section);
        let indents = self.indents_of(section);
        let mut lines = self.section_lines(path, value, array, indents);
        // Follow the spacing of the existing sections.
        if self.page.blank_below(self.page.next_line(end)) {
            lines.insert(0, String::new());
        }
        self.page.insert_lines_after(end, &lines);
    }

    fn insert_section_before(&mut self, section: usize, path: &[&str], value: &Node<'_>) {
        let start = self.section_start(section);
        let indents = self.indents_of(section);
        let mut lines = self.section_lines(path, value, false, indents);
        lines.push(String::new());
        self.page
            .insert_lines_at(self.page.line_start(start), &lines);
    }

    fn section_lines(
        &self,
        path: &[&str],
        value: &Node<'_>,
        array: bool,
        [header, body]: [&str; 2],
    ) -> Vec<String> {
        let name = self.style.key_path(path);
        let first = if array {
            format!("{header}[[{name}]]")
        } else {
            format!("{header}[{name}]")
        };
        let members = value.as_table().unwrap_or_default().iter().map(|member| {
            let member = self
                .style
                .member(&[&member.key], &member.value, body, Spread::Lines);
            format!("{body}{member}")
        });
        std::iter::once(first).chain(members).collect()
    }

    /// Indentation of a section's header and of its statements.
    fn indents_of(&self, section: usize) -> [&'t str; 2] {
        let Some(section) = self.sections.get(section) else {
            return ["", ""];
        };
        let at = |start: Option<usize>| start.map(|start| self.page.indent(start));
        let header = at(section.header.as_ref().map(|header| header.start)).unwrap_or_default();
        let body = at(section.entries.first().map(|entry| entry.start)).unwrap_or(header);
        [header, body]
    }

    /// Deletes all statements and sections that define the key or a part of it.
    fn remove_pieces(&mut self, path: &[&str]) -> bool {
        let mut statements = Vec::new();
        let mut sections = Vec::new();
        for (number, section) in self.sections.iter() {
            if section.path.len() >= path.len() {
                if section.is_under(path) {
                    sections.push(number);
                }
                continue;
            }
            let entries = section.entries.iter().enumerate();
            let found = entries.filter(|(_, entry)| section.entry_is_under(entry, path));
            statements.extend(found.map(|(index, _)| Statement {
                section: number,
                index,
            }));
        }
        for statement in &statements {
            self.remove_statement(*statement, self.statement_blank);
        }
        for section in &sections {
            self.remove_section(*section);
        }
        !(statements.is_empty() && sections.is_empty())
    }

    fn remove_section(&mut self, section: usize) {
        let start = self.section_start(section);
        let end = self.section_end(section);
        self.page.delete_lines(start, end, self.section_blank);
    }

    fn remove_statement(&mut self, Statement { section, index }: Statement, blank: Blank) {
        let Some(entry) = self.sections.entries(section).get(index) else {
            return;
        };
        let above = index
            .checked_sub(1)
            .and_then(|index| self.sections.entries(section).get(index));
        let header = self
            .sections
            .get(section)
            .and_then(|section| section.header.as_ref());
        let floor = match (above, header) {
            (Some(above), _) => above.value.range.end,
            (None, Some(header)) => header.end,
            (None, None) => 0,
        };
        let lead = self.page.lead(floor, entry.start);
        self.page.delete_lines(lead, entry.value.range.end, blank);
    }

    /// Start of a section, including the comments of its header.
    fn section_start(&self, section: usize) -> usize {
        let header = self
            .sections
            .get(section)
            .and_then(|section| section.header.as_ref());
        let floor = section
            .checked_sub(1)
            .map_or(0, |above| self.last_end(above));
        header.map_or(0, |header| self.page.lead(floor, header.start))
    }

    /// End of a section, including comments directly below its last statement that do not belong to the next section.
    fn section_end(&self, section: usize) -> usize {
        let last = self.last_end(section);
        let next = self
            .sections
            .get(section + 1)
            .and_then(|next| next.header.as_ref());
        let next = next.map(|header| self.page.line_start(header.start));
        let mut end = last;
        let mut line = self.page.next_line(last);
        while self
            .page
            .slice(line..self.page.line_end(line))
            .trim_start()
            .starts_with('#')
        {
            end = self.page.line_end(line);
            line = self.page.next_line(line);
        }
        if next == Some(line) { last } else { end }
    }

    fn last_end(&self, section: usize) -> usize {
        let Some(section) = self.sections.get(section) else {
            return 0;
        };
        let header = section.header.as_ref().map_or(0, |header| header.end);
        section
            .entries
            .last()
            .map_or(header, |entry| entry.value.range.end)
    }

    fn braces(&mut self) -> BraceEditor<'_, 't> {
        BraceEditor {
            page: &mut self.page,
            style: &self.style,
        }
    }

    /// The statement that contains the path, and how many keys it covers.
    fn holder(&self, path: &[&str]) -> Option<(Place, usize)> {
        self.sections.iter().find_map(|(_, section)| {
            section.entries.iter().find_map(|entry| {
                let used = section.entry_leads_to(entry, path)?;
                Some((entry.value.clone(), used))
            })
        })
    }

    /// Array elements have no keys, so a path cannot enter them.
    fn refuse_array(&self, path: &[&str]) -> Result<(), EditErrorKind> {
        let through = |section: &Section| {
            let length = section.path.len();
            let part = path.get(..length)?;
            let passed = section.is_element && length < path.len() && section.is_under(part);
            passed.then(|| part.join("."))
        };
        match self
            .sections
            .iter()
            .find_map(|(_, section)| through(section))
        {
            Some(key) => Err(EditErrorKind::NotATable { key }),
            None => Ok(()),
        }
    }

    fn header(&self, path: &[&str]) -> Option<usize> {
        self.sections
            .iter()
            .find(|(_, section)| {
                section.header.is_some()
                    && section.path.len() == path.len()
                    && section.is_under(path)
            })
            .map(|(number, _)| number)
    }

    fn first_section_under(&self, path: &[&str]) -> Option<usize> {
        let mut sections = self.sections.iter();
        sections
            .find(|(_, section)| section.is_under(path))
            .map(|(number, _)| number)
    }

    fn last_section_under(&self, path: &[&str]) -> Option<usize> {
        let mut sections = self.sections.iter();
        sections
            .rfind(|(_, section)| section.is_under(path))
            .map(|(number, _)| number)
    }

    /// The last statement with dotted keys that defines a part of the table.
    fn last_dotted(&self, path: &[&str]) -> Option<Statement> {
        self.sections.iter().rev().find_map(|(number, section)| {
            let index = (section.path.len() < path.len())
                .then(|| {
                    let entries = &section.entries;
                    entries
                        .iter()
                        .rposition(|entry| section.entry_is_under(entry, path))
                })
                .flatten()?;
            Some(Statement {
                section: number,
                index,
            })
        })
    }
}

fn child<'a>(path: &[&'a str], key: &'a str) -> Vec<&'a str> {
    path.iter().copied().chain([key]).collect()
}

fn are_tables(elements: &[Node<'_>]) -> bool {
    !elements.is_empty() && elements.iter().all(|element| element.as_table().is_some())
}

fn first_key<'p, 'a>(path: &'p [&'a str]) -> &'p [&'a str] {
    path.get(..1).unwrap_or_default()
}
