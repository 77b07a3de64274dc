//! JSON Schema keywords and types, and helpers for schemas as JSON values.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::super::text;
use super::SchemaProblem;

const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

/// Keywords whose value is an object of schemas.
pub(super) const MAPS: [&str; 4] = [
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
];

/// Keywords whose value is a list of schemas.
pub(super) const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Keywords whose value is a schema.
pub(super) const SINGLES: [&str; 10] = [
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
];

/// Maps a type name to its JSON Schema type; accepts the spellings of programming languages.
pub(super) fn alias(name: &str) -> Option<&'static str> {
    if let Some(exact) = TYPES.iter().find(|known| **known == name) {
        return Some(exact);
    }
    match name.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" => Some("string"),
        "integer" | "int" | "long" => Some("integer"),
        "number" | "float" | "double" | "decimal" => Some("number"),
        "boolean" | "bool" => Some("boolean"),
        "object" | "dict" | "map" => Some("object"),
        "array" | "list" => Some("array"),
        "null" | "none" => Some("null"),
        _ => None,
    }
}

pub(super) fn is_count(value: &Value) -> bool {
    value.as_u64().is_some()
        || value
            .as_f64()
            .is_some_and(|value| value >= 0.0 && value.fract() == 0.0)
}

/// Sanitizes all texts in a value; returns whether any changed. The parser bounds the recursion.
pub(super) fn neutralise(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match text::neutralise(text) {
            Cow::Owned(sanitized) if sanitized != *text => {
                *text = sanitized;
                true
            }
            _ => false,
        },
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |changed, item| neutralise(item) | changed),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |changed, member| neutralise(member) | changed),
        _ => false,
    }
}

pub(super) fn holds_schemas(keyword: &str) -> bool {
    MAPS.contains(&keyword)
        || LISTS.contains(&keyword)
        || SINGLES.contains(&keyword)
        || matches!(
            keyword,
            "properties" | "items" | "required" | "$ref" | "$dynamicRef"
        )
}

/// Whether any name contains invisible characters. Names cannot be changed without changing their meaning.
pub(super) fn has_hidden_names(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| !text::is_plain(name) || has_hidden_names(value)),
        Value::Array(items) => items.iter().any(has_hidden_names),
        _ => false,
    }
}

pub(super) fn anchors(value: &Value) -> HashSet<String> {
    fn collect(value: &Value, anchors: &mut HashSet<String>) {
        match value {
            Value::Object(members) => {
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    anchors.extend(
                        members
                            .get(keyword)
                            .and_then(Value::as_str)
                            .map(str::to_owned),
                    );
                }
                members.values().for_each(|member| collect(member, anchors));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, anchors)),
            _ => {}
        }
    }
    let mut found = HashSet::new();
    collect(value, &mut found);
    found
}

pub(super) fn wrong(keyword: &str, expected: &'static str) -> SchemaProblem {
    SchemaProblem::Keyword {
        keyword: excerpt(keyword),
        expected,
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}
