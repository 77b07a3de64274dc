//! Edits JSON with comments.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions};

use super::braces::{BraceEditor, Braces, Entry, Place, style_like};
use super::page::Page;
use super::render::{Spread, Style, nested};
use super::{Edit, EditErrorKind};
use crate::format::Format;

/// Indentation if the file has none.
const DEFAULT_UNIT: &str = "  ";

pub(super) fn change(text: &str, edit: &Edit<'_>) -> Result<String, EditErrorKind> {
    let mut page = Page::new(text, Format::Json);
    let root = parse(text);
    let unit = root
        .as_ref()
        .and_then(|root| unit(&page, root))
        .unwrap_or_else(|| DEFAULT_UNIT.to_owned());
    let mut style = Style::new(Format::Json, page.newline, unit);
    let first = root
        .as_ref()
        .and_then(|root| root.braces.as_ref()?.entries.first());
    if let (Some(first), false) = (first, text.contains('\n')) {
        style = style_like(&page, &style, first);
    }
    let mut editor = BraceEditor {
        page: &mut page,
        style: &style,
    };
    match (root, edit) {
        (Some(root), Edit::Set { path, value }) => editor.set(&root, path, value)?,
        (Some(root), Edit::Remove { path }) => editor.remove(&root, path)?,
        (None, Edit::Set { path, value }) => {
            // The file has only white space and comments: append an object.
            let object = style.value(&nested(path, value), "", Spread::Lines);
            match page.content_end() {
                0 => page.replace(0..text.len(), format!("{object}{}", page.newline)),
                end => page.insert(end, format!("{}{object}", page.newline)),
            }
        }
        (None, Edit::Remove { .. }) => return Err(EditErrorKind::NotFound),
    }
    Ok(page.finish())
}

fn parse(text: &str) -> Option<Place> {
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::Off,
        tokens: false,
    };
    // The file was validated when it was read, so accept all extensions here.
    let options = ParseOptions::default();
    let result = jsonc_parser::parse_to_ast(text, &collect, &options).ok()?;
    result.value.map(place)
}

fn place(value: ast::Value<'_>) -> Place {
    let range = value.range();
    let braces = match value {
        ast::Value::Object(object) => Some(Braces {
            open: range.start + 1,
            close: range.end.saturating_sub(1),
            entries: object.properties.into_iter().map(entry).collect(),
        }),
        _ => None,
    };
    Place {
        range: range.start..range.end,
        braces,
    }
}

fn entry(property: ast::ObjectProp<'_>) -> Entry {
    let start = property.range.start;
    let key = match property.name {
        ast::ObjectPropName::String(name) => name.value.into_owned(),
        ast::ObjectPropName::Word(word) => word.value.to_owned(),
    };
    Entry {
        path: vec![key],
        start,
        value: place(property.value),
    }
}

/// Indentation unit, taken from the first member that starts a line.
fn unit(page: &Page<'_>, root: &Place) -> Option<String> {
    let braces = root.braces.as_ref()?;
    for entry in &braces.entries {
        if page.begins_line(entry.start) {
            let outer = page.indent(root.range.start);
            let unit = page.indent(entry.start).strip_prefix(outer)?;
            return (!unit.is_empty()).then(|| unit.to_owned());
        }
        if let Some(unit) = unit(page, &entry.value) {
            return Some(unit);
        }
    }
    None
}
