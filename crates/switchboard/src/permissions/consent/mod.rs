//! The consent view: what the user sees before approving a call, the same in every front end.
//!
//! Converts arguments to text. The conversion is total: every argument is in the view, sanitized, with secrets masked
//! and long runs of blanks collapsed to a count. A [`Folded`] view for a small screen counts everything it omits, and
//! [`Folded::is_complete`] returns whether it suffices for approval. No decision is made here, and no part is dropped
//! silently.

mod fold;
mod masked;
mod text;

use std::collections::HashSet;

use serde_json::value::RawValue;
use switchboard_protocol::cursor::{Cursor, Malformed};

use super::approval::Question;

pub use fold::{Folded, Hidden, HiddenKind, Screen};
pub use text::sanitized;

/// The nesting depth up to which values get their own line; deeper ones are shown as JSON.
const DEEPEST: usize = 24;
/// The maximum number of values with their own line; the rest is shown as JSON.
const MOST_ENTRIES: usize = 500;

/// The effect of a call as described by its tool, usually a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// A one-line title, such as `change src/main.rs`.
    pub title: String,
    /// The complete text.
    pub text: String,
    /// Arguments fully contained in the preview, which are not shown again.
    pub covers: &'static [&'static str],
}

/// Everything that an approval covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentView {
    /// The tool, sanitized.
    pub tool: String,
    /// Its server, sanitized; `None` for a built-in tool.
    pub server: Option<String>,
    /// The entries, a preview first.
    pub entries: Vec<Entry>,
}

/// An argument, a value within one, or the preview. Its text is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path of keys that leads to it, or the title of the preview.
    pub label: String,
    /// The value, sanitized, with its line breaks.
    pub text: String,
    /// Whether it is the preview.
    pub is_preview: bool,
    /// The number of blanks that were collapsed.
    pub collapsed: usize,
    /// Whether a part is masked because it looks like a secret.
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
                // Validated JSON always parses; if not, show it verbatim.
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

    /// Prepends a preview, and removes the arguments that it covers.
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

    pub(crate) fn is_masked(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_masked)
    }

    /// The complete view as text, entry by entry, except for masked values and counted blanks.
    pub fn whole(&self) -> String {
        let lines = self.entries.iter().map(|entry| {
            let first = if entry.is_preview { "\n" } else { " " };
            // Indent continuation lines, so that they cannot imitate another entry.
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

/// Traverses the arguments without omitting any.
struct Walk<'v> {
    entries: &'v mut Vec<Entry>,
}

impl Walk<'_> {
    /// The arguments themselves: an object, or any other value in its place.
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
                // Keep the quotes of strings that look like another type.
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

/// The decoded string, or the escaped one if it cannot be decoded.
fn decoded<'a>(escaped: &'a str, decoded: &'a str) -> std::borrow::Cow<'a, str> {
    if decoded.is_empty() && !escaped.is_empty() {
        escaped.into()
    } else {
        decoded.into()
    }
}

/// Formats a key: bare if it is a plain name, else quoted.
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
