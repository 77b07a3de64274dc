//! What a person is shown before a call is approved, the same in every front end.
//!
//! Owns the way from the arguments of a call to text. It is a total function: whatever the arguments are, all of them
//! are in the view, made harmless for a screen, with secrets masked and long runs of blanks collapsed visibly. A
//! [`Folded`] view for a small screen says of everything it leaves out how much that is, and [`Folded::is_complete`]
//! whether it is enough to approve. It must not decide anything, and never drops a part without saying so.

mod fold;
mod masked;
mod text;

use std::collections::HashSet;

use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Cursor, Malformed};

use super::approval::Question;

pub use fold::{Folded, Hidden, HiddenKind, Screen};
pub use text::sanitized;

/// Values in values get a line of their own so deep; what is deeper is shown as JSON.
const DEEPEST: usize = 24;
/// So many values get a line of their own; the rest is shown as JSON.
const MOST_ENTRIES: usize = 500;

/// What a call will do, in the words of its tool: a difference, mostly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// What it is, in one line, such as `change src/main.rs`.
    pub title: String,
    /// The whole of it.
    pub text: String,
    /// Arguments that it shows all of, so that they need not be shown again.
    pub covers: &'static [&'static str],
}

/// Everything that an approval is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentView {
    /// The tool, harmless to show.
    pub tool: String,
    /// Its server, harmless to show; `None` for a built-in tool.
    pub server: Option<String>,
    /// What is shown of the call, a preview first.
    pub entries: Vec<Entry>,
}

/// One argument, or one value in it, or the preview. Its text is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is called: the path of keys that leads to it, or the title of the preview.
    pub label: String,
    /// The value: harmless to show, with its line breaks.
    pub text: String,
    /// Whether it is the preview.
    pub is_preview: bool,
    /// How many characters were collapsed as blanks.
    pub collapsed: usize,
    /// Whether a part of it is masked because it sounds or looks secret.
    pub is_masked: bool,
}

impl ConsentView {
    /// The view of a question.
    pub fn of(question: &Question<'_>) -> Self {
        let subject = &question.subject;
        let mut view = Self::new(subject.tool, subject.server, question.arguments);
        if let Some(preview) = question.preview {
            view = view.with_preview(preview);
        }
        view
    }

    /// The view of a call.
    pub fn new(tool: &str, server: Option<&str>, arguments: Option<&RawValue>) -> Self {
        let mut entries = Vec::new();
        if let Some(raw) = arguments {
            let mut walk = Walk {
                entries: &mut entries,
            };
            if walk.members(raw.get()).is_err() {
                // Checked JSON is always readable; if it is not, all of it is shown as it is.
                entries.clear();
                entries.push(Entry::argument("arguments".to_owned(), "", raw.get()));
            }
        }
        Self {
            tool: sanitized(tool).text.replace('\n', " ⏎ "),
            server: server.map(|server| sanitized(server).text.replace('\n', " ⏎ ")),
            entries,
        }
    }

    /// The view with a preview at its beginning, in place of the arguments that it shows.
    #[must_use]
    pub fn with_preview(mut self, preview: &Preview) -> Self {
        self.entries
            .retain(|entry| !preview.covers.contains(&entry.label.as_str()));
        let (text, is_masked) = masked::shapes(&preview.text);
        let shown = sanitized(&text);
        self.entries.insert(
            0,
            Entry {
                label: sanitized(&preview.title).text.replace('\n', " ⏎ "),
                text: shown.text,
                is_preview: true,
                collapsed: shown.collapsed,
                is_masked,
            },
        );
        self
    }

    /// Whether any part of it is masked.
    pub(crate) fn is_masked(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_masked)
    }

    /// The whole view as text, entry by entry: nothing is left out but masked values and counted blanks.
    pub fn whole(&self) -> String {
        let lines = self.entries.iter().map(|entry| {
            let first = if entry.is_preview { "\n" } else { " " };
            // A line break in a value cannot begin what looks like another entry.
            let text = entry.text.replace('\n', "\n  │ ");
            let gutter = if entry.is_preview { "  │ " } else { "" };
            format!("  {}:{first}{gutter}{text}", entry.label)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Entry {
    fn argument(label: String, key: &str, value: &str) -> Self {
        let (text, is_masked) = masked::argument(key, value);
        let shown = sanitized(&text);
        Self {
            label,
            text: shown.text,
            is_preview: false,
            collapsed: shown.collapsed,
            is_masked,
        }
    }
}

/// A walk through the arguments that leaves nothing out.
struct Walk<'v> {
    entries: &'v mut Vec<Entry>,
}

impl Walk<'_> {
    /// The arguments themselves: an object, or whatever stands in its place.
    fn members(&mut self, text: &str) -> Result<(), Malformed> {
        if Cursor::new(text).peek() == b'{' {
            self.object("", text, 0)
        } else {
            self.value("arguments".to_owned(), "arguments", text, 0)
        }
    }

    fn object(&mut self, path: &str, text: &str, depth: usize) -> Result<(), Malformed> {
        let mut cursor = Cursor::new(text);
        cursor.enter(b'{')?;
        let mut seen = HashSet::new();
        let mut is_empty = true;
        while let Some(key) = cursor.next_key()? {
            is_empty = false;
            let value = cursor.value()?;
            let name = decoded(key.escaped, &key.decode()).into_owned();
            let again = if seen.insert(name.clone()) {
                ""
            } else {
                " (again)"
            };
            let dot = if path.is_empty() { "" } else { "." };
            let label = format!("{path}{dot}{}{again}", label(&name));
            self.value(label, &name, value, depth)?;
        }
        if is_empty && !path.is_empty() {
            self.entries
                .push(Entry::argument(path.to_owned(), "", "{}"));
        }
        Ok(())
    }

    fn value(
        &mut self,
        label: String,
        key: &str,
        text: &str,
        depth: usize,
    ) -> Result<(), Malformed> {
        let is_nested = depth < DEEPEST && self.entries.len() < MOST_ENTRIES;
        match text.as_bytes().first() {
            Some(b'{') if is_nested => self.object(&label, text, depth + 1),
            Some(b'[') if is_nested => {
                let mut cursor = Cursor::new(text);
                cursor.enter(b'[')?;
                let mut index = 0_usize;
                while cursor.next_item()? {
                    let value = cursor.value()?;
                    self.value(format!("{label}[{index}]"), key, value, depth + 1)?;
                    index += 1;
                }
                if index == 0 {
                    self.entries.push(Entry::argument(label, "", "[]"));
                }
                Ok(())
            }
            Some(b'"') => {
                let contents = Cursor::new(text).string()?;
                let decoded = decoded(contents.escaped, &contents.decode()).into_owned();
                // What would be taken for another kind of value keeps its quotation marks.
                let is_like_another = decoded.trim().is_empty()
                    || serde_json::from_str::<&RawValue>(&decoded).is_ok();
                let shown = if is_like_another && decoded.len() < 64 {
                    format!("\"{decoded}\"")
                } else {
                    decoded
                };
                self.entries.push(Entry::argument(label, key, &shown));
                Ok(())
            }
            _ => {
                self.entries.push(Entry::argument(label, key, text));
                Ok(())
            }
        }
    }
}

/// A string as it is meant, or as it is written where it means nothing.
fn decoded<'a>(escaped: &'a str, decoded: &'a str) -> std::borrow::Cow<'a, str> {
    if decoded.is_empty() && !escaped.is_empty() {
        escaped.into()
    } else {
        decoded.into()
    }
}

/// A key as it is shown: as it is where it is a plain name, else in quotation marks.
fn label(key: &str) -> String {
    let is_name = |character: char| {
        character.is_alphanumeric() || matches!(character, '_' | '-' | '/' | '$' | '@')
    };
    if !key.is_empty() && key.chars().all(is_name) && sanitized(key).text == key {
        key.to_owned()
    } else {
        format!("\"{}\"", sanitized(key).text.replace('\n', "⏎"))
    }
}

#[cfg(test)]
mod tests;
