//! Parses TOML with the spanned parser of the `toml` crate.

use std::borrow::Cow;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::Sink;
use crate::tree::{Member, Node, Span, Value};

pub(super) fn parse<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Node<'a> {
    // Error recovery keeps the other lines, so a typo costs one key, not the whole file.
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        sink.syntax(
            Span::new(span.start, span.end),
            first_line(error.message()),
            "correct the TOML on this line",
        );
    }
    let span = span_of(&table);
    Node {
        span,
        value: Value::Table(members(table.into_inner())),
    }
}

fn members(table: DeTable<'_>) -> Vec<Member<'_>> {
    let mut members: Vec<_> = table
        .into_iter()
        .map(|(key, value)| Member {
            key_span: span_of(&key),
            key: key.into_inner(),
            value: node(value),
        })
        .collect();
    // The parser sorts keys; restore the file order.
    members.sort_by_key(|member| member.key_span.start);
    members
}

fn node(value: Spanned<DeValue<'_>>) -> Node<'_> {
    let span = span_of(&value);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(value) => Value::Integer(value),
            Err(_) => Value::Float(digits.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(digits) => Value::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Datetime(when) => Value::String(Cow::Owned(when.to_string())),
        DeValue::Array(elements) => elements.into_iter().map(node).collect(),
        DeValue::Table(table) => Value::Table(members(table)),
    };
    Node { span, value }
}

fn span_of<T>(spanned: &Spanned<T>) -> Span {
    let span = spanned.span();
    Span::new(span.start, span.end)
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message)
}
