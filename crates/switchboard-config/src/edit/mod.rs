//! Edits configuration files in place, preserving every byte outside the edited key.
//!
//! Parsers provide the positions; an edit is a list of splices into the original text, so comments, blank lines,
//! indentation, line endings, quoting and key order are preserved by construction. The result is parsed again and
//! verified: an edit either does exactly what was requested or returns an error.
//!
//! Removed together with a key: the comments directly above it, the comment on its line, its comma, and, if it was
//! surrounded by blank lines (or a blank line and the end of the file), one of them. A TOML section also includes the
//! comments directly below its last statement, unless they are directly above the next header.
//!
//! Setting and removing a new key restores the original bytes, with these exceptions: new parents stay (JSON objects,
//! inline tables, a `[header]` above sub-sections), a single-line HCL block stays expanded, braces with only white
//! space become `{}`, and a blank file keeps one blank line less or the empty object.
//!
//! Does not access files: see [`crate::write`].

mod braces;
mod check;
mod error;
mod hcl;
mod json;
mod page;
mod rename;
mod render;
mod rule;
mod toml;

use crate::format::Format;
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::Node;

pub(crate) use check::same;
pub use error::{EditError, EditErrorKind};
pub use rename::rename;
pub use rule::{NewCondition, NewRule, add_rule, remove_rule};

/// An edit of a file's text. Paths are keys from the root, such as `["mcp_servers", "github", "env"]`.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit<'a> {
    /// Sets a value: replaces the existing one, or appends it with missing parents.
    ///
    /// A table is merged into an existing table: unchanged members keep their text.
    Set {
        /// Keys from the root.
        path: &'a [&'a str],
        /// New value.
        value: Node<'a>,
    },
    /// Removes a key, with its comments.
    Remove {
        /// Keys from the root.
        path: &'a [&'a str],
    },
}

impl<'a> Edit<'a> {
    /// Keys from the root.
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

/// Applies an edit and returns the new text.
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
        (Edit::Set { value, .. }, Some(found)) if same(found, value) => {
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
