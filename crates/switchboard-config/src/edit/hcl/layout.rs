//! Positions of blocks, attributes and objects in an HCL file.

use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{self, BlockLabel, Structure};

use crate::edit::braces::{Braces, Entry, Place};
use crate::format::{protect_templates, restore_templates};

/// Contents of a block, or of the file.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Offset after the opening brace.
    pub(super) open: usize,
    /// Offset of the closing brace.
    pub(super) close: usize,
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone)]
pub(super) enum Item {
    Attribute(Entry),
    Block(Block),
}

#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    /// Value of the `name` attribute, which names a server without a label.
    pub(super) given_name: Option<String>,
    pub(super) body: Body,
}

impl Body {
    /// Parses a text that is known to be valid HCL.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let body: structure::Body = protect_templates(text).parse().ok()?;
        Some(Self {
            open: 0,
            close: text.len(),
            items: items(&body, text),
        })
    }

    pub(super) fn attribute(&self, key: &str) -> Option<&Entry> {
        self.attributes().find(|entry| entry.path == [key])
    }

    pub(super) fn attributes(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.items.iter().filter_map(|item| match item {
            Item::Attribute(entry) => Some(entry),
            Item::Block(_) => None,
        })
    }

    pub(super) fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.items.iter().filter_map(|item| match item {
            Item::Attribute(_) => None,
            Item::Block(block) => Some(block),
        })
    }

    pub(super) fn blocks_named<'b>(&'b self, name: &str) -> Vec<&'b Block> {
        self.blocks().filter(|block| block.name == name).collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.items.iter().any(|item| item.key() == key)
    }
}

impl Item {
    pub(super) fn key(&self) -> &str {
        match self {
            Item::Attribute(entry) => entry.path.first().map_or("", String::as_str),
            Item::Block(block) => &block.name,
        }
    }

    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Item::Attribute(entry) => entry.start..entry.value.range.end,
            Item::Block(block) => block.range.clone(),
        }
    }
}

fn items(body: &structure::Body, text: &str) -> Vec<Item> {
    body.iter()
        .map(|structure| match structure {
            Structure::Attribute(attribute) => Item::Attribute(Entry {
                path: vec![attribute.key.to_string()],
                start: attribute.key.span().unwrap_or_default().start,
                value: place(&attribute.value, text),
            }),
            Structure::Block(block) => Item::Block(self::block(block, text)),
        })
        .collect()
}

fn block(block: &structure::Block, text: &str) -> Block {
    let range = block.span().unwrap_or_default();
    let mut head = block.ident.span().unwrap_or_default().end;
    let mut labels = Vec::new();
    for label in &block.labels {
        let span = match label {
            BlockLabel::Ident(label) => label.span(),
            BlockLabel::String(label) => label.span(),
        };
        head = span.map_or(head, |span| span.end);
        labels.push(restore_templates(label.as_str()));
    }
    Block {
        name: block.ident.to_string(),
        labels,
        given_name: given_name(&block.body),
        body: Body {
            open: after_brace(text, head),
            close: range.end.saturating_sub(1),
            items: items(&block.body, text),
        },
        range,
    }
}

fn given_name(body: &structure::Body) -> Option<String> {
    match &body.get_attribute("name")?.value {
        Expression::String(name) => Some(restore_templates(name.as_str())),
        _ => None,
    }
}

/// Offset after the opening brace of a block whose name and labels end at `head`.
fn after_brace(text: &str, head: usize) -> usize {
    let rest = text.get(head..).unwrap_or_default();
    let mut at = 0;
    while let Some(left) = rest.get(at..) {
        if left.starts_with("/*") {
            at += left.find("*/").map_or(left.len(), |end| end + 2);
        } else if left.starts_with('{') || left.is_empty() {
            break;
        } else {
            at += left.chars().next().map_or(1, char::len_utf8);
        }
    }
    head + at + 1
}

fn place(expression: &Expression, text: &str) -> Place {
    let range = expression.span().unwrap_or_default();
    let braces = match expression {
        Expression::Object(object) => Some(Braces {
            open: range.start + 1,
            close: range.end.saturating_sub(1),
            entries: object
                .iter()
                .map(|(key, value)| entry(key, value.expr(), text))
                .collect(),
        }),
        _ => None,
    };
    Place { range, braces }
}

fn entry(key: &ObjectKey, value: &Expression, text: &str) -> Entry {
    let (name, span) = match key {
        ObjectKey::Expression(Expression::String(name)) => {
            (restore_templates(name.as_str()), name.span())
        }
        ObjectKey::Ident(name) | ObjectKey::Expression(Expression::Variable(name)) => {
            (name.to_string(), name.span())
        }
        ObjectKey::Expression(other) => {
            let span = other.span().unwrap_or_default();
            let name = text.get(span.clone()).unwrap_or_default().to_owned();
            (name, Some(span))
        }
    };
    Entry {
        path: vec![name],
        start: span.unwrap_or_default().start,
        value: place(value, text),
    }
}
