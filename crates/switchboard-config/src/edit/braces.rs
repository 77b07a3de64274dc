//! Edits members in braces: JSON objects, HCL objects and TOML inline tables.
//!
//! The formats differ only in how a key is assigned and whether a line break separates members; adding and removing
//! members is shared here.

use std::ops::Range;

use super::EditErrorKind;
use super::check::reads_as;
use super::page::{Blank, Page, Trivia};
use super::render::{Spread, Style, nested};
use crate::format::Format;
use crate::tree::{Member, Node};

/// A value's range in the text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    /// Its members, if it is a table.
    pub(super) braces: Option<Braces>,
}

#[derive(Debug, Clone)]
pub(super) struct Braces {
    /// Offset after the opening brace.
    pub(super) open: usize,
    /// Offset of the closing brace.
    pub(super) close: usize,
    pub(super) entries: Vec<Entry>,
}

/// A member: a key, which in TOML may be dotted, and a value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) path: Vec<String>,
    pub(super) start: usize,
    pub(super) value: Place,
}

impl Braces {
    /// End of the entry before `index`, or of the opening brace.
    fn floor(&self, index: usize) -> usize {
        index
            .checked_sub(1)
            .and_then(|index| self.entries.get(index))
            .map_or(self.open, |entry| entry.value.range.end)
    }
}

pub(super) struct BraceEditor<'p, 't> {
    pub(super) page: &'p mut Page<'t>,
    pub(super) style: &'p Style,
}

/// Result of looking up a path in a table.
pub(super) enum Lookup<'e> {
    /// Found in the value of an entry; the number is the count of path parts used.
    Into(&'e Entry, usize),
    /// A table that exists only as a prefix of dotted keys.
    Dotted,
    /// Not found; this many parts of the path exist as a prefix of dotted keys.
    Missing(usize),
}

/// Looks up a path among keys that may be dotted.
pub(super) fn look_up<'e>(
    entries: impl Iterator<Item = &'e Entry>,
    path: &[&str],
) -> Result<Lookup<'e>, EditErrorKind> {
    let mut into = None;
    let mut shared = 0;
    for entry in entries {
        let common = common_length(&entry.path, path);
        if common == entry.path.len() && into.replace(entry).is_some() {
            let key = path.get(..common).unwrap_or_default().join(".");
            return Err(EditErrorKind::Duplicate { key });
        }
        shared = shared.max(common);
    }
    Ok(match into {
        Some(entry) => Lookup::Into(entry, entry.path.len()),
        None if shared == path.len() => Lookup::Dotted,
        None => Lookup::Missing(shared),
    })
}

impl BraceEditor<'_, '_> {
    /// Sets the value at a path.
    pub(super) fn set(
        &mut self,
        place: &Place,
        path: &[&str],
        value: &Node<'_>,
    ) -> Result<(), EditErrorKind> {
        if path.is_empty() {
            return self.merge(place, value);
        }
        let braces = members_of(place)?;
        match look_up(braces.entries.iter(), path)? {
            Lookup::Into(entry, used) => {
                let rest = path.get(used..).unwrap_or_default();
                self.set(&entry.value, rest, value)
                    .map_err(|error| within(path, used, error))
            }
            Lookup::Dotted => {
                let removed = |entry: &Entry| common_length(&entry.path, path) == path.len();
                self.change(braces, &removed, &[(path, value.clone())]);
                Ok(())
            }
            Lookup::Missing(shared) => {
                let (key, rest) = path.split_at((shared + 1).min(path.len()));
                self.change(braces, &|_| false, &[(key, nested(rest, value))]);
                Ok(())
            }
        }
    }

    /// Removes a path.
    pub(super) fn remove(&mut self, place: &Place, path: &[&str]) -> Result<(), EditErrorKind> {
        let braces = members_of(place)?;
        match look_up(braces.entries.iter(), path)? {
            Lookup::Into(entry, used) if used < path.len() => {
                let rest = path.get(used..).unwrap_or_default();
                self.remove(&entry.value, rest)
                    .map_err(|error| within(path, used, error))
            }
            Lookup::Into(..) | Lookup::Dotted => {
                let removed = |entry: &Entry| common_length(&entry.path, path) == path.len();
                self.change(braces, &removed, &[]);
                Ok(())
            }
            Lookup::Missing(_) => Err(EditErrorKind::NotFound),
        }
    }

    /// Replaces a value, changing only what differs.
    pub(super) fn merge(&mut self, place: &Place, value: &Node<'_>) -> Result<(), EditErrorKind> {
        let text = self.page.slice(place.range.clone());
        if reads_as(text, self.style.format, value) {
            return Ok(());
        }
        let dotted = |braces: &Braces| braces.entries.iter().any(|entry| entry.path.len() != 1);
        match (&place.braces, value.as_table()) {
            (Some(braces), Some(members)) if !dotted(braces) => self.merge_members(braces, members),
            _ => {
                let spread = self.spread_of(place);
                let indent = self.page.indent(place.range.start).to_owned();
                let text = self.style.value(value, &indent, spread);
                self.page.replace(place.range.clone(), text);
                Ok(())
            }
        }
    }

    fn merge_members(
        &mut self,
        braces: &Braces,
        members: &[Member<'_>],
    ) -> Result<(), EditErrorKind> {
        let mut added = Vec::new();
        for member in members {
            let path = [member.key.as_ref()];
            match look_up(braces.entries.iter(), &path)? {
                Lookup::Into(entry, _) => self.merge(&entry.value, &member.value)?,
                Lookup::Dotted | Lookup::Missing(_) => added.push(member),
            }
        }
        let stays = |entry: &Entry| members.iter().any(|member| entry.path == [&*member.key]);
        let keys: Vec<_> = added.iter().map(|member| [member.key.as_ref()]).collect();
        let added: Vec<_> = keys
            .iter()
            .zip(&added)
            .map(|(key, member)| (key.as_slice(), member.value.clone()))
            .collect();
        self.change(braces, &|entry| !stays(entry), &added);
        Ok(())
    }

    /// A single-line value in a single-line table stays on one line.
    fn spread_of(&self, place: &Place) -> Spread {
        let start = place.range.start;
        let line = self.page.slice(self.page.line_start(start)..start);
        let after = self
            .page
            .slice(place.range.end..self.page.line_end(place.range.end));
        let crowded = line.contains(['{', '[']) || after.trim_start().starts_with(['}', ']']);
        if crowded {
            Spread::OneLine
        } else {
            Spread::Lines
        }
    }

    /// Removes entries and appends new ones, adjusting the commas.
    fn change(
        &mut self,
        braces: &Braces,
        removed: &dyn Fn(&Entry) -> bool,
        added: &[(&[&str], Node<'_>)],
    ) {
        let entries = &braces.entries;
        let first_kept = entries.iter().position(|entry| !removed(entry));
        let last_kept = entries.iter().rposition(|entry| !removed(entry));
        if last_kept.is_none() && !self.leaves_comments(braces) {
            return self.rewrite(braces, added);
        }
        for (index, entry) in entries.iter().enumerate() {
            if removed(entry) {
                let leads = first_kept.is_none_or(|first| index < first);
                self.take_out(braces, index, leads);
            }
        }
        match last_kept {
            None => self.put_before_comments(braces, added),
            Some(last) if added.is_empty() => {
                // The new last member gets a trailing comma only if the old one had it.
                let ends_with_comma = comma_in(&self.gap(braces, entries.len())).is_some();
                let comma = comma_in(&self.gap(braces, last + 1));
                if let (Some(comma), false) = (comma, ends_with_comma) {
                    self.page.delete(comma..comma + 1);
                }
            }
            Some(last) => self.append(braces, last, added),
        }
    }

    fn take_out(&mut self, braces: &Braces, index: usize, leads: bool) {
        let (lead, tail) = self.extent(braces, index);
        let gap = self.gap(braces, index + 1);
        let page = &mut *self.page;
        let whole_lines = page.begins_line(lead)
            && page.line_start(lead) >= braces.open
            && page.slice(tail..page.line_end(tail)).trim().is_empty()
            && page.next_line(tail) <= braces.close;
        if whole_lines {
            page.delete_lines(lead, tail, Blank::Below);
        } else if leads {
            let shares_line = index + 1 < braces.entries.len() && !gap.contains(&Trivia::Newline);
            let end = if shares_line {
                self.extent(braces, index + 1).0
            } else {
                tail
            };
            self.page.delete(lead..end);
        } else {
            let floor = braces.floor(index);
            let after_line_comment = self
                .gap(braces, index)
                .iter()
                .rfind(|item| matches!(item, Trivia::Comment { range, .. } if range.end <= lead))
                .is_some_and(|item| {
                    matches!(
                        item,
                        Trivia::Comment {
                            to_line_end: true,
                            ..
                        }
                    )
                });
            let start = if after_line_comment {
                lead
            } else {
                floor + self.page.slice(floor..lead).trim_end().len()
            };
            self.page.delete(start..tail);
        }
        if let Some(comma) = comma_in(&gap).filter(|comma| *comma >= tail) {
            self.page.delete(comma..comma + 1);
        }
    }

    fn append(&mut self, braces: &Braces, last: usize, added: &[(&[&str], Node<'_>)]) {
        let count = braces.entries.len();
        let Some(anchor) = braces.entries.get(last) else {
            return;
        };
        let style = style_like(self.page, self.style, anchor);
        let gap = self.gap(braces, last + 1);
        let comma = comma_in(&gap);
        let ends_with_comma = comma_in(&self.gap(braces, count)).is_some();
        let (_, tail) = self.extent(braces, last);
        if gap.contains(&Trivia::Newline) {
            let uses_commas = style.format != Format::Hcl
                || ends_with_comma
                || (count > 1 && comma_in(&self.gap(braces, 1)).is_some());
            let indent = self.member_indent(braces, anchor);
            let lines: Vec<_> = added
                .iter()
                .map(|(path, value)| style.member(path, value, &indent, Spread::Lines))
                .map(|member| format!("{}{indent}{member}", style.newline))
                .collect();
            // The end of a heredoc must be alone on its line.
            let is_heredoc = self
                .page
                .slice(anchor.value.range.clone())
                .starts_with("<<");
            if uses_commas && comma.is_none() && !is_heredoc {
                self.page.insert(anchor.value.range.end, ",");
            }
            let separator = if uses_commas { "," } else { "" };
            let end = if ends_with_comma { "," } else { "" };
            self.page
                .insert(tail, format!("{}{end}", lines.join(separator)));
        } else {
            let members: Vec<_> = added
                .iter()
                .map(|(path, value)| style.member(path, value, "", Spread::OneLine))
                .collect();
            let members = members.join(&style.separator);
            let space = style.separator.trim_start_matches(',');
            let before = if comma.is_some() {
                space
            } else {
                &style.separator
            };
            let end = if ends_with_comma { "," } else { "" };
            self.page.insert(tail, format!("{before}{members}{end}"));
        }
    }

    /// Fills braces that contain only white space.
    fn rewrite(&mut self, braces: &Braces, added: &[(&[&str], Node<'_>)]) {
        let inside = braces.open..braces.close;
        if added.is_empty() {
            return self.page.delete(inside);
        }
        let before = self
            .page
            .slice(self.page.line_start(braces.open)..braces.open);
        let crowded = before.trim_end_matches('{').contains(['{', '[']);
        let style = self.style;
        let text = if crowded || style.format == Format::Toml {
            let members: Vec<_> = added
                .iter()
                .map(|(path, value)| style.member(path, value, "", Spread::OneLine))
                .collect();
            let padding = if style.format == Format::Json {
                ""
            } else {
                " "
            };
            format!("{padding}{}{padding}", members.join(&style.separator))
        } else {
            self.lines_inside(braces, added)
        };
        self.page.replace(inside, text);
    }

    /// Fills braces that contain only comments. New members go above the comments, so that these stay unattached.
    fn put_before_comments(&mut self, braces: &Braces, added: &[(&[&str], Node<'_>)]) {
        if added.is_empty() {
            return;
        }
        let lines = self.lines_inside(braces, added);
        let end = self.page.line_end(braces.open);
        if end < braces.close {
            let indent = self.page.indent(braces.open).to_owned();
            let last = format!("{}{indent}", self.style.newline);
            let lines = lines.strip_suffix(&last).unwrap_or(&lines).to_owned();
            self.page.insert(end, lines);
        } else {
            let inside = self.page.slice(braces.open..braces.close);
            let start = braces.open + inside.trim_end().len();
            self.page.replace(start..braces.close, lines);
        }
    }

    fn lines_inside(&self, braces: &Braces, added: &[(&[&str], Node<'_>)]) -> String {
        let style = self.style;
        let outer = self.page.indent(braces.open);
        let indent = format!("{outer}{}", style.unit);
        let separator = if style.format == Format::Hcl { "" } else { "," };
        let lines: Vec<_> = added
            .iter()
            .map(|(path, value)| style.member(path, value, &indent, Spread::Lines))
            .map(|member| format!("{}{indent}{member}", style.newline))
            .collect();
        format!("{}{}{outer}", lines.join(separator), style.newline)
    }

    /// Whether comments remain when all entries are removed.
    fn leaves_comments(&self, braces: &Braces) -> bool {
        let extents: Vec<_> = (0..braces.entries.len())
            .map(|index| self.extent(braces, index))
            .collect();
        (0..=braces.entries.len()).any(|index| {
            let neighbours = [index.checked_sub(1), Some(index)];
            let owned = |range: &Range<usize>| {
                neighbours
                    .iter()
                    .flatten()
                    .filter_map(|index| extents.get(*index))
                    .any(|(lead, tail)| *lead <= range.start && range.end <= *tail)
            };
            self.gap(braces, index)
                .iter()
                .any(|item| matches!(item, Trivia::Comment { range, .. } if !owned(range)))
        })
    }

    /// Range of an entry with its comments, and the comma if it is in between.
    fn extent(&self, braces: &Braces, index: usize) -> (usize, usize) {
        let Some(entry) = braces.entries.get(index) else {
            return (braces.close, braces.close);
        };
        let lead = self.page.lead(braces.floor(index), entry.start);
        let mut before_comma = entry.value.range.end;
        let mut tail = before_comma;
        let mut ends_line = index + 1 == braces.entries.len();
        for item in self.gap(braces, index + 1) {
            match item {
                Trivia::Newline => {
                    ends_line = true;
                    break;
                }
                Trivia::Comma(at) => {
                    tail = at + 1;
                    before_comma = tail;
                }
                Trivia::Comment { range, .. } => tail = range.end,
            }
        }
        // A comment between a comma and another member on the same line belongs to the other member.
        (lead, if ends_line { tail } else { before_comma })
    }

    /// Trivia between entry `index - 1` (or the opening brace) and entry `index` (or the closing one).
    fn gap(&self, braces: &Braces, index: usize) -> Vec<Trivia> {
        let end = braces
            .entries
            .get(index)
            .map_or(braces.close, |entry| entry.start);
        self.page.trivia(braces.floor(index)..end)
    }

    fn member_indent(&self, braces: &Braces, anchor: &Entry) -> String {
        let sibling = std::iter::once(anchor)
            .chain(&braces.entries)
            .find(|entry| self.page.begins_line(entry.start));
        match sibling {
            Some(entry) => self.page.indent(entry.start).to_owned(),
            None => format!("{}{}", self.page.indent(braces.open), self.style.unit),
        }
    }
}

/// Copies a neighbour's spacing between key and value.
pub(super) fn style_like(page: &Page<'_>, style: &Style, neighbour: &Entry) -> Style {
    let mut style = style.clone();
    let before_value = page.slice(neighbour.start..neighbour.value.range.start);
    match style.format {
        Format::Json => {
            let assign = before_value.rsplit('"').next().unwrap_or_default();
            if assign.trim() == ":" && !assign.contains('\n') {
                assign.clone_into(&mut style.assign);
            }
            if assign == ":" {
                ",".clone_into(&mut style.separator);
            }
        }
        Format::Toml | Format::Hcl | Format::Yaml => {
            let key = before_value.strip_suffix('=').unwrap_or_default();
            if !key.is_empty() && !key.ends_with([' ', '\t']) {
                "=".clone_into(&mut style.assign);
            }
        }
    }
    style
}

/// Prepends the used part of the path to the key of an error.
pub(super) fn within(path: &[&str], used: usize, error: EditErrorKind) -> EditErrorKind {
    let prefix = path.get(..used).unwrap_or_default().join(".");
    let extended = |key: String| {
        if key.is_empty() {
            prefix.clone()
        } else {
            format!("{prefix}.{key}")
        }
    };
    match error {
        EditErrorKind::NotATable { key } => EditErrorKind::NotATable { key: extended(key) },
        EditErrorKind::Duplicate { key } => EditErrorKind::Duplicate { key: extended(key) },
        other => other,
    }
}

fn members_of(place: &Place) -> Result<&Braces, EditErrorKind> {
    let key = String::new();
    place
        .braces
        .as_ref()
        .ok_or(EditErrorKind::NotATable { key })
}

fn common_length(entry: &[String], path: &[&str]) -> usize {
    entry.iter().zip(path).take_while(|(l, r)| l == r).count()
}

fn comma_in(gap: &[Trivia]) -> Option<usize> {
    gap.iter().find_map(|item| match item {
        Trivia::Comma(at) => Some(*at),
        _ => None,
    })
}
