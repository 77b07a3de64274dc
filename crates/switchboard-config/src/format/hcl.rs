//! Parses HCL with `hcl-edit`, without evaluation: literals, `env("VAR")`, and our own `${…}` in strings.
//!
//! HCL parses `${…}` in a string as a template, in which `${VAR:-default}` is a syntax error. Here `${…}` has the same
//! meaning in every format, so it is replaced by a placeholder of the same byte length (offsets stay valid) before
//! parsing, and restored afterwards.

use std::borrow::Cow;

use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, FuncCall, ObjectKey, UnaryOperator};
use hcl_edit::structure::{Block, Body, Structure};

use super::hcl_subset::first_operator;
use super::{Seen, Sink};
use crate::tree::{Member, Node, Span, Value};

/// Placeholder for `${`: a C1 control character, also two bytes long.
const DOLLAR: &str = "\u{91}";
/// Placeholder for `%{`.
const PERCENT: &str = "\u{92}";

const SUPPORTED: &str = "use a literal, a list, an object, env(\"VAR\") or \"${VAR}\"";

pub(super) fn parse<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    if let Some(at) =
        text.find([DOLLAR, PERCENT].map(|mark| mark.chars().next().unwrap_or_default()))
    {
        sink.syntax(
            Span::new(at, at + 2),
            "control character U+0091 or U+0092",
            "remove the character",
        );
        return None;
    }
    let text = protect_templates(text);
    if let Some(at) = first_operator(&text) {
        sink.syntax(
            Span::new(at, at + 1),
            "expressions are not evaluated here",
            SUPPORTED,
        );
        return None;
    }
    match text.parse::<Body>() {
        Ok(body) => {
            let span = Span::new(0, text.len());
            Some(Node {
                span,
                value: Value::Table(members(&body, sink)),
            })
        }
        Err(error) => {
            let at = error.location().offset();
            let hint = "correct the HCL here; nothing of this file is used until then";
            sink.syntax(Span::new(at, at), error.message().trim(), hint);
            None
        }
    }
}

/// Hides `${` and `%{` from the HCL parser.
pub(crate) fn protect_templates(text: &str) -> Cow<'_, str> {
    if !text.contains("${") && !text.contains("%{") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("${", DOLLAR).replace("%{", PERCENT))
}

pub(crate) fn restore_templates(text: &str) -> String {
    text.replace(DOLLAR, "${").replace(PERCENT, "%{")
}

fn members<'a>(body: &Body, sink: &mut Sink<'_, '_>) -> Vec<Member<'a>> {
    let mut members = Vec::new();
    let mut seen = Seen::default();
    for structure in body {
        match structure {
            Structure::Attribute(attribute) => {
                let key_span = span(attribute.key.span());
                let key = Cow::Owned(attribute.key.to_string());
                if let Some(value) = node(&attribute.value, sink) {
                    sink.push_unique(
                        &mut members,
                        &mut seen,
                        Member {
                            key,
                            key_span,
                            value,
                        },
                    );
                }
            }
            Structure::Block(block) => add_block(&mut members, &mut seen, block, sink),
        }
    }
    members
}

/// A labelled block becomes a table member; several unlabelled blocks of one name become a list.
fn add_block(
    members: &mut Vec<Member<'_>>,
    seen: &mut Seen,
    block: &Block,
    sink: &mut Sink<'_, '_>,
) {
    let key_span = span(block.ident.span());
    let key = restore_templates(block.ident.as_str());
    let table = Node {
        span: span(block.span()),
        value: Value::Table(self::members(&block.body, sink)),
    };
    if block.labels.len() > 1 {
        sink.syntax(
            key_span,
            format!("block `{key}` has more than one label"),
            "give it one label, the name",
        );
        return;
    }
    let label = block.labels.first().map(|label| {
        let label_span = match label {
            hcl_edit::structure::BlockLabel::Ident(ident) => span(ident.span()),
            hcl_edit::structure::BlockLabel::String(text) => span(text.span()),
        };
        (restore_templates(label.as_str()), label_span)
    });
    let existing = members.iter_mut().find(|member| member.key == key);
    match (existing, label) {
        (None, None) => sink.push_unique(
            members,
            seen,
            Member {
                key: Cow::Owned(key),
                key_span,
                value: table,
            },
        ),
        (None, Some((name, name_span))) => {
            let inner = Member {
                key: Cow::Owned(name),
                key_span: name_span,
                value: table,
            };
            let value = Node {
                span: key_span,
                value: Value::Table(vec![inner]),
            };
            sink.push_unique(
                members,
                seen,
                Member {
                    key: Cow::Owned(key),
                    key_span,
                    value,
                },
            );
        }
        (Some(member), Some((name, name_span))) if is_table_of_tables(&member.value) => {
            let Value::Table(inner) = &mut member.value.value else {
                return;
            };
            // There may be thousands of blocks of one name, so duplicates are detected later: members stay in order,
            // and the first one wins.
            inner.push(Member {
                key: Cow::Owned(name),
                key_span: name_span,
                value: table,
            });
        }
        (Some(member), label) => {
            let table = match label {
                Some((name, name_span)) => with_name(table, name, name_span),
                None => table,
            };
            into_list(&mut member.value).push(table);
        }
    }
}

fn is_table_of_tables(node: &Node<'_>) -> bool {
    node.as_table().is_some_and(|members| {
        members
            .iter()
            .all(|member| member.value.as_table().is_some())
    })
}

/// Converts a value to a list, naming the elements after their labels.
fn into_list<'n, 'a>(node: &'n mut Node<'a>) -> &'n mut Vec<Node<'a>> {
    if !matches!(node.value, Value::Array(_)) {
        let elements = match std::mem::replace(&mut node.value, Value::Null) {
            Value::Table(members)
                if !members.is_empty() && members.iter().all(|m| m.value.as_table().is_some()) =>
            {
                members
                    .into_iter()
                    .map(|m| with_name(m.value, m.key.into_owned(), m.key_span))
                    .collect()
            }
            value => vec![Node {
                span: node.span,
                value,
            }],
        };
        node.value = Value::Array(elements);
    }
    match &mut node.value {
        Value::Array(elements) => elements,
        _ => unreachable!("made a list above"),
    }
}

fn with_name(mut table: Node<'_>, name: String, span: Span) -> Node<'_> {
    if let Value::Table(members) = &mut table.value {
        let value = Node {
            span,
            value: Value::String(Cow::Owned(name)),
        };
        members.insert(
            0,
            Member {
                key: Cow::Borrowed("name"),
                key_span: span,
                value,
            },
        );
    }
    table
}

fn node<'a>(expression: &Expression, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    let at = span(expression.span());
    let value = match expression {
        Expression::Null(_) => Value::Null,
        Expression::Bool(value) => Value::Bool(*value.value()),
        Expression::Number(number) => match number.value().as_i64() {
            Some(value) => Value::Integer(value),
            None => Value::Float(number.value().as_f64().unwrap_or(f64::NAN)),
        },
        Expression::String(text) => Value::String(Cow::Owned(restore_templates(text.as_str()))),
        Expression::HeredocTemplate(heredoc) => heredoc_text(heredoc).into(),
        Expression::Array(elements) => elements
            .iter()
            .filter_map(|element| node(element, sink))
            .collect(),
        Expression::Object(object) => {
            let mut members = Vec::with_capacity(object.len());
            let mut seen = Seen::default();
            for (key, value) in object {
                let Some((key, key_span)) = object_key(key, sink) else {
                    continue;
                };
                let Some(value) = node(value.expr(), sink) else {
                    continue;
                };
                sink.push_unique(
                    &mut members,
                    &mut seen,
                    Member {
                        key: Cow::Owned(key),
                        key_span,
                        value,
                    },
                );
            }
            Value::Table(members)
        }
        Expression::Parenthesis(inner) => return node(inner.inner(), sink),
        Expression::UnaryOp(operation) if *operation.operator.value() == UnaryOperator::Neg => {
            match node(&operation.expr, sink)?.value {
                Value::Integer(value) => Value::Integer(-value),
                Value::Float(value) => Value::Float(-value),
                _ => return unsupported(at, "this operation", sink),
            }
        }
        Expression::FuncCall(call) => match env_call(call) {
            Some(variable) => format!("${{env:{variable}}}").into(),
            None => {
                return unsupported(
                    at,
                    &format!(
                        "the function `{}` is not supported",
                        call.name.name.as_str()
                    ),
                    sink,
                );
            }
        },
        Expression::Variable(name) => {
            let message = format!("`{}` is not a value; text stands in quotes", name.as_str());
            return unsupported(at, &message, sink);
        }
        _ => return unsupported(at, "expressions are not evaluated here", sink),
    };
    Some(Node { span: at, value })
}

fn heredoc_text(heredoc: &hcl_edit::template::HeredocTemplate) -> String {
    restore_templates(&heredoc.template.to_string())
}

fn object_key(key: &ObjectKey, sink: &mut Sink<'_, '_>) -> Option<(String, Span)> {
    match key {
        ObjectKey::Ident(name) => Some((name.as_str().to_owned(), span(name.span()))),
        ObjectKey::Expression(Expression::String(text)) => {
            Some((restore_templates(text.as_str()), span(text.span())))
        }
        ObjectKey::Expression(Expression::Variable(name)) => {
            Some((name.as_str().to_owned(), span(name.span())))
        }
        ObjectKey::Expression(other) => {
            let at = span(other.span());
            sink.syntax(at, "a key must be a name or a quoted string", SUPPORTED);
            None
        }
    }
}

fn env_call(call: &FuncCall) -> Option<&str> {
    let is_env =
        call.name.namespace.is_empty() && call.name.name.as_str() == "env" && call.args.len() == 1;
    match call.args.get(0) {
        Some(Expression::String(variable)) if is_env => Some(variable.as_str()),
        _ => None,
    }
}

fn unsupported<'a>(at: Span, message: &str, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    sink.syntax(at, message, SUPPORTED);
    None
}

fn span(range: Option<std::ops::Range<usize>>) -> Span {
    range.map_or_else(Span::default, |range| Span::new(range.start, range.end))
}
