//! Parses JSON with comments and trailing commas, with `jsonc-parser`.

use jsonc_parser::ast;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions};

use super::{Seen, Sink, empty_table};
use crate::tree::{Member, Node, Span, Value};

/// Extensions allowed in our JSON files.
pub(crate) fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    }
}

pub(super) fn parse<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::Off,
        tokens: false,
    };
    match jsonc_parser::parse_to_ast(text, &collect, &options()) {
        Ok(result) => Some(
            result
                .value
                .map_or_else(|| empty_table(text), |value| node(value, sink)),
        ),
        Err(error) => {
            let message = lowercase_first(&error.kind().to_string());
            sink.syntax(
                span(error.range()),
                message,
                "correct the JSON here; nothing of this file is used until then",
            );
            None
        }
    }
}

fn node<'a>(value: ast::Value<'a>, sink: &mut Sink<'_, '_>) -> Node<'a> {
    let at = span(value.range());
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => number(literal.value),
        ast::Value::StringLit(literal) => Value::String(literal.value),
        ast::Value::Array(array) => array
            .elements
            .into_iter()
            .map(|element| node(element, sink))
            .collect(),
        ast::Value::Object(object) => {
            let mut members = Vec::with_capacity(object.properties.len());
            let mut seen = Seen::default();
            for property in object.properties {
                let key_span = span(property.name.range());
                let key = match property.name {
                    ast::ObjectPropName::String(name) => name.value,
                    ast::ObjectPropName::Word(word) => word.value.into(),
                };
                let member = Member {
                    key,
                    key_span,
                    value: node(property.value, sink),
                };
                sink.push_unique(&mut members, &mut seen, member);
            }
            Value::Table(members)
        }
    };
    Node { span: at, value }
}

fn number(digits: &str) -> Value<'static> {
    match digits.parse::<i64>() {
        Ok(value) => Value::Integer(value),
        Err(_) => Value::Float(digits.parse().unwrap_or(f64::NAN)),
    }
}

fn span(range: Range) -> Span {
    Span::new(range.start, range.end)
}

fn lowercase_first(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}
