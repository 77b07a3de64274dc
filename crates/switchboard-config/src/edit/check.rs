//! Checks of an edit: preconditions before it, and verification of the result.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::hcl::NAMED_BLOCKS;
use super::{Edit, EditErrorKind};
use crate::format::{self, Format};
use crate::scope::Scope;
use crate::source::SourceFile;
use crate::tree::{Member, Node, Value};

/// Maximum combined depth of a path and a value. The parsers allow 64 or more.
const MAXIMUM_DEPTH: usize = 60;

/// Rejects values and keys that the format cannot represent.
pub(super) fn representable(format: Format, edit: &Edit<'_>) -> Result<(), EditErrorKind> {
    let path = edit.path();
    if path.is_empty() {
        let message = "the file as a whole is not a key".to_owned();
        return Err(EditErrorKind::Unrepresentable(message));
    }
    for key in path {
        text_representable(format, key)?;
    }
    edit.value().map_or(Ok(()), |value| {
        value_representable(format, value, path.len())
    })
}

/// Parses the file, or returns its first syntax error.
pub(super) fn read(file: &Arc<SourceFile>, format: Format) -> Result<Node<'_>, EditErrorKind> {
    let mut diagnostics = Vec::new();
    let tree = format::parse(file, format, &mut diagnostics);
    // HCL reports unsupported expressions as syntax errors; they do not affect positions.
    let tolerated = format == Format::Hcl && tree.is_some();
    let error = diagnostics
        .iter()
        .find(|diagnostic| diagnostic.code == "syntax" && !tolerated);
    match (tree, error) {
        (Some(tree), None) => Ok(by_name(tree, format)),
        (_, error) => Err(EditErrorKind::Syntax {
            position: error.map_or_else(
                || file.position(0),
                |error| match &error.place {
                    crate::diagnostic::Place::At(origin) => origin.position(),
                    _ => file.position(0),
                },
            ),
            message: error.map_or_else(String::new, |error| error.message.clone()),
        }),
    }
}

/// Whether a piece of text already has the value.
pub(super) fn reads_as(text: &str, format: Format, value: &Node<'_>) -> bool {
    let text = match format {
        Format::Json => text.to_owned(),
        Format::Toml | Format::Hcl | Format::Yaml => format!("value = {text}\n"),
    };
    let file = SourceFile::new("", Scope::Dynamic, text);
    let Ok(tree) = read(&file, format) else {
        return false;
    };
    match format {
        Format::Json => same(&tree, value),
        _ => tree.get("value").is_some_and(|found| same(found, value)),
    }
}

/// Checks that the new text parses, has the value at the path, and is unchanged elsewhere.
pub(super) fn verify(
    before: &Node<'_>,
    text: &str,
    format: Format,
    edit: &Edit<'_>,
) -> Result<(), EditErrorKind> {
    let file = SourceFile::new("", Scope::Dynamic, text);
    let after = read(&file, format).map_err(|_| EditErrorKind::NotClean)?;
    let found = after.at(edit.path());
    let as_asked = match (edit.value(), found) {
        (Some(value), Some(found)) => same(found, value),
        (None, None) => true,
        _ => false,
    };
    if as_asked && same_besides(Some(before), Some(&after), edit.path()) {
        Ok(())
    } else {
        Err(EditErrorKind::NotClean)
    }
}

/// Whether two values are equal, ignoring positions and the order of members.
pub(crate) fn same(left: &Node<'_>, right: &Node<'_>) -> bool {
    match (&left.value, &right.value) {
        (Value::Table(left), Value::Table(right)) => same_members(left, right, None),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        // HCL writes a list of one table as a single block, and reads that back as a table.
        (Value::Array(elements), Value::Table(_)) => {
            matches!(elements.as_slice(), [element] if same(element, right))
        }
        (Value::Table(_), Value::Array(elements)) => {
            matches!(elements.as_slice(), [element] if same(left, element))
        }
        (Value::Float(left), Value::Float(right)) => {
            left.total_cmp(right).is_eq() || (left.is_nan() && right.is_nan())
        }
        // Some formats have only one kind of number, so `1` equals `1.0`.
        (Value::Integer(integer), Value::Float(float))
        | (Value::Float(float), Value::Integer(integer)) => {
            #[expect(clippy::cast_precision_loss, reason = "both sides were read as floats")]
            let integer = *integer as f64;
            (integer - float).abs() == 0.0
        }
        (left, right) => left == right,
    }
}

/// The differing middle parts of two lists.
pub(super) struct Aligned {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// Finds the common head and tail of two lists.
pub(super) fn align<L, R>(old: &[L], new: &[R], same: impl Fn(&L, &R) -> bool) -> Aligned {
    let head = old.iter().zip(new).take_while(|(l, r)| same(l, r)).count();
    let most = old.len().min(new.len()) - head;
    let ends = old.iter().rev().zip(new.iter().rev()).take(most);
    let tail = ends.take_while(|(l, r)| same(l, r)).count();
    Aligned {
        old: head..old.len() - tail,
        new: head..new.len() - tail,
    }
}

/// Whether two trees are equal except at a path. Otherwise empty tables on the path may be added or removed.
fn same_besides(before: Option<&Node<'_>>, after: Option<&Node<'_>>, path: &[&str]) -> bool {
    let Some((key, rest)) = path.split_first() else {
        return true;
    };
    let (Some(left), Some(right)) = (members(before), members(after)) else {
        return false;
    };
    same_members(left, right, Some(key))
        && same_besides(
            before.and_then(|node| node.get(key)),
            after.and_then(|node| node.get(key)),
            rest,
        )
}

/// Members of a table; empty if the node is absent; `None` if it cannot have members.
fn members<'n, 'a>(node: Option<&'n Node<'a>>) -> Option<&'n [Member<'a>]> {
    node.map_or(Some(&[]), Node::as_table)
}

fn same_members(left: &[Member<'_>], right: &[Member<'_>], except: Option<&str>) -> bool {
    let compared = |member: &&Member<'_>| Some(member.key.as_ref()) != except;
    let left: Vec<_> = left.iter().filter(compared).collect();
    let right: Vec<_> = right.iter().filter(compared).collect();
    if left.len() != right.len() {
        return false;
    }
    if left.iter().zip(&right).all(|(l, r)| l.key == r.key) {
        return left
            .iter()
            .zip(&right)
            .all(|(l, r)| same(&l.value, &r.value));
    }
    let right: HashMap<_, _> = right.iter().map(|r| (&r.key, &r.value)).collect();
    left.iter()
        .all(|l| right.get(&l.key).is_some_and(|value| same(&l.value, value)))
}

/// In HCL, moves servers named by a `name` attribute under their name, as if by a label.
fn by_name(mut tree: Node<'_>, format: Format) -> Node<'_> {
    if let (Format::Hcl, Value::Table(members)) = (format, &mut tree.value) {
        for member in members {
            if NAMED_BLOCKS.contains(&member.key.as_ref()) {
                let value = std::mem::replace(&mut member.value.value, Value::Null);
                member.value.value = servers_by_name(value);
            }
        }
    }
    tree
}

fn servers_by_name(value: Value<'_>) -> Value<'_> {
    let tables = match value {
        Value::Array(elements) if elements.iter().all(|element| element.as_table().is_some()) => {
            elements
        }
        Value::Table(members) => vec![Node::detached(Value::Table(members))],
        other => return other,
    };
    let mut servers = Vec::new();
    for table in tables {
        let Value::Table(mut members) = table.value else {
            continue;
        };
        let name = members
            .iter()
            .position(|member| member.key == "name" && member.value.as_str().is_some());
        match name.map(|index| members.remove(index)) {
            Some(name) => servers.push(Member {
                key: Cow::Owned(name.value.as_str().unwrap_or_default().to_owned()),
                key_span: name.key_span,
                value: Node {
                    span: table.span,
                    value: Value::Table(members),
                },
            }),
            None => servers.append(&mut members),
        }
    }
    Value::Table(servers)
}

fn value_representable(format: Format, node: &Node<'_>, depth: usize) -> Result<(), EditErrorKind> {
    let refuse = |message: &str| Err(EditErrorKind::Unrepresentable(message.to_owned()));
    if depth > MAXIMUM_DEPTH {
        return refuse("the value is nested too deep");
    }
    match &node.value {
        Value::Null if format == Format::Toml => refuse("TOML has no null"),
        Value::Float(value) if !value.is_finite() && format != Format::Toml => {
            refuse("only TOML can write infinity and not-a-number")
        }
        Value::String(text) => text_representable(format, text),
        Value::Array(elements) => elements
            .iter()
            .try_for_each(|element| value_representable(format, element, depth + 1)),
        Value::Table(members) => members.iter().try_for_each(|member| {
            text_representable(format, &member.key)?;
            value_representable(format, &member.value, depth + 1)
        }),
        Value::Null | Value::Bool(_) | Value::Integer(_) | Value::Float(_) => Ok(()),
    }
}

fn text_representable(format: Format, text: &str) -> Result<(), EditErrorKind> {
    // Placeholders for `${` and `%{` while HCL is parsed.
    if format == Format::Hcl && text.contains(['\u{91}', '\u{92}']) {
        let message = "HCL files cannot hold the control characters U+0091 and U+0092".to_owned();
        return Err(EditErrorKind::Unrepresentable(message));
    }
    Ok(())
}
