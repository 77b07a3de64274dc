//! Changes to a file's text that keep every byte outside the edited key.
//!
//! The formats' parsers say *where* things stand; a change is a list of splices into the text
//! as it was read, so comments, blank lines, indentation, line endings, quoting and the order of keys stay by
//! construction, not by a printer's care. The result is parsed again before it is handed out: an edit either
//! does exactly what was asked or returns an error.
//!
//! What belongs to a key, and goes when the key goes: the comments directly above it with no blank line
//! between, the comment on its own line, the comma that separates it, and, where it stood alone between two
//! blank lines (or a blank line and an end of the file), one of the two. To a section of TOML also belong the
//! comments right below its last statement, unless they are right above the next header.
//!
//! A new key that is set and removed again leaves the very same bytes, except for what it had to open up:
//! parents that were not there stay (JSON objects, inline tables, a `[header]` above sub-sections), an HCL
//! block on one line stays spread over lines, braces that held white space alone are left as `{}`, and a file
//! that was blank or empty keeps one blank line less or the empty object.
//!
//! Owns no file access: see [`crate::write`].

mod braces;
mod check;
mod error;
mod hcl;
mod json;
mod page;
mod render;
mod rule;
mod toml;

use crate::format::Format;
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::Node;

pub use error::{EditError, EditErrorKind};
pub use rule::{NewCondition, NewRule, add_rule};

/// One change to a file's text. Paths are keys from the root, such as `["mcp_servers", "github", "env"]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit<'a> {
    /// Puts a value at a path: replaces what stands there, or appends it and the parents it needs.
    ///
    /// A table that replaces a table is merged into it: members that stay the same keep their text.
    Set {
        /// Where.
        path: &'a [&'a str],
        /// What.
        value: Node<'a>,
    },
    /// Takes a key away, with the comments that belong to it.
    Remove {
        /// Where.
        path: &'a [&'a str],
    },
}

impl<'a> Edit<'a> {
    /// The path of the edited key.
    pub fn path(&self) -> &'a [&'a str] {
        match self {
            Edit::Set { path, .. } | Edit::Remove { path } => path,
        }
    }

    fn value(&self) -> Option<&Node<'a>> {
        match self {
            Edit::Set { value, .. } => Some(value),
            Edit::Remove { .. } => None,
        }
    }
}

/// Applies one change to the text of a file, and returns the new text.
pub fn apply(text: &str, format: Format, edit: &Edit<'_>) -> Result<String, EditError> {
    change(text, format, edit).map_err(|kind| EditError::new(edit.path(), kind))
}

fn change(text: &str, format: Format, edit: &Edit<'_>) -> Result<String, EditErrorKind> {
    const BYTE_ORDER_MARK: &str = "\u{feff}";

    if format == Format::Yaml {
        return Err(EditErrorKind::ReadOnlyFormat);
    }
    check::representable(format, edit)?;
    let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (BYTE_ORDER_MARK, body),
        None => ("", text),
    };
    let file = SourceFile::new("", Scope::Dynamic, body);
    let before = check::read(&file, format)?;
    let found = before.at(edit.path());
    match (edit, found) {
        (Edit::Set { value, .. }, Some(found)) if check::same(found, value) => {
            return Ok(text.to_owned());
        }
        _ => {}
    }
    let changed = match format {
        Format::Toml => toml::change(body, &before, edit),
        Format::Json => json::change(body, edit),
        Format::Hcl => hcl::change(body, edit),
        Format::Yaml => Err(EditErrorKind::ReadOnlyFormat),
    }?;
    check::verify(&before, &changed, format, edit)?;
    Ok(format!("{mark}{changed}"))
}
