//! Turns validation errors into messages that tell a model what to change.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::LocationSegment,
};
use serde_json::Value;
use switchboard_config::text::visible;

/// First segment of every path.
pub(crate) const ROOT: &str = "arguments";

/// Maximum length of an excerpt from a value or a schema, in characters.
const MAX_EXCERPT: usize = 80;

/// Maximum number of alternatives in a message.
const MAX_OPTIONS: usize = 12;

/// Returns pairs of path and message; one validation error can yield several.
pub(crate) fn tell(error: &ValidationError<'_>) -> Vec<(String, String)> {
    let at = path(error);
    let got = describe(error.instance());
    let message = match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            return vec![(joined(&at, name), "is required and missing".to_owned())];
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            return unexpected
                .iter()
                .map(|name| (joined(&at, name), "unknown argument".to_owned()))
                .collect();
        }
        Kind::Type { kind } => format!("expected {}, got {got}", types(kind)),
        Kind::Enum { options } => format!("expected one of {}, got {got}", alternatives(options)),
        Kind::Constant { expected_value } => {
            format!("expected {}, got {got}", json(expected_value))
        }
        Kind::Minimum { limit } => format!("expected at least {limit}, got {got}"),
        Kind::Maximum { limit } => format!("expected at most {limit}, got {got}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}, got {got}"),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}, got {got}"),
        Kind::MultipleOf { multiple_of } => {
            format!("expected a multiple of {multiple_of}, got {got}")
        }
        Kind::MinLength { limit } => format!("expected at least {limit} characters, got {got}"),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters, got {got}"),
        Kind::MinItems { limit } => {
            format!("expected at least {limit} items, got {}", count(error))
        }
        Kind::MaxItems { limit } => format!("expected at most {limit} items, got {}", count(error)),
        Kind::AdditionalItems { limit } => {
            format!("expected at most {limit} items, got {}", count(error))
        }
        Kind::MinProperties { limit } => {
            format!("expected at least {limit} properties, got {}", count(error))
        }
        Kind::MaxProperties { limit } => {
            format!("expected at most {limit} properties, got {}", count(error))
        }
        Kind::Pattern { pattern } => {
            format!(
                "expected a string that matches {}, got {got}",
                excerpt(pattern)
            )
        }
        Kind::Format { format } => {
            format!(
                "expected a string in the format {}, got {got}",
                excerpt(format)
            )
        }
        Kind::UniqueItems => "expected items that are all different".to_owned(),
        Kind::Contains => "no item matches the required schema".to_owned(),
        Kind::FalseSchema => "no value is allowed here".to_owned(),
        Kind::Not { .. } => format!("this value is not allowed: {got}"),
        Kind::PropertyNames { error } => format!(
            "a property name is not allowed: {}",
            shortened(&error.to_string())
        ),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            return alternatives_failed(&at, &got, context);
        }
        Kind::OneOfMultipleValid { .. } => {
            "fits more than one alternative and must fit exactly one".to_owned()
        }
        _ => shortened(&error.to_string()),
    };
    vec![(at, message)]
}

/// Describes a value: its type, and the value itself if short.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) => format!("the number {}", excerpt(&number.to_string())),
        Value::String(text) => format!(
            "the string {}",
            excerpt(&Value::from(text.as_str()).to_string())
        ),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(items) => format!("an array of length {}", items.len()),
        Value::Object(members) if members.is_empty() => "an empty object".to_owned(),
        Value::Object(members) => {
            let names: Vec<&str> = members.keys().take(4).map(String::as_str).collect();
            format!("an object with {}", excerpt(&names.join(", ")))
        }
    }
}

/// Truncates and sanitizes a message.
pub(crate) fn shortened(message: &str) -> String {
    let short: String = message.chars().take(300).collect();
    visible(&short).into_owned()
}

/// Describes a failed `anyOf` or `oneOf`: the expected types, or what the nearest alternative lacks.
fn alternatives_failed(
    at: &str,
    got: &str,
    context: &[Vec<ValidationError<'static>>],
) -> Vec<(String, String)> {
    let expected: Option<Vec<String>> = context
        .iter()
        .map(|errors| match errors.as_slice() {
            [error] if error.instance_path().is_empty() || path(error) == at => {
                match error.kind() {
                    Kind::Type { kind } => Some(types(kind)),
                    Kind::Constant { expected_value } => Some(json(expected_value)),
                    Kind::Enum { options } => Some(format!("one of {}", alternatives(options))),
                    _ => None,
                }
            }
            _ => None,
        })
        .collect();
    if let Some(expected) = expected.filter(|expected| !expected.is_empty()) {
        return vec![(
            at.to_owned(),
            format!("expected {}, got {got}", expected.join(" or ")),
        )];
    }
    // An alternative of another type is not the intended one.
    let is_type_at_root = |error: &ValidationError<'_>| {
        matches!(error.kind(), Kind::Type { .. }) && path(error) == at
    };
    let nearest = context
        .iter()
        .filter(|errors| !errors.iter().any(is_type_at_root))
        .min_by_key(|errors| errors.len());
    let reasons: Vec<String> = nearest
        .into_iter()
        .flatten()
        .take(3)
        .flat_map(tell_plainly)
        .collect();
    let mut message = format!("fits none of the {} alternatives", context.len());
    if !reasons.is_empty() {
        message.push_str("; for the nearest one: ");
        message.push_str(&reasons.join(", "));
    }
    vec![(at.to_owned(), message)]
}

/// As [`tell`], without descending into nested alternatives.
fn tell_plainly(error: &ValidationError<'_>) -> Vec<String> {
    match error.kind() {
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            vec![format!("{} fits no alternative", path(error))]
        }
        _ => tell(error)
            .into_iter()
            .map(|(path, message)| format!("{path} {message}"))
            .collect(),
    }
}

fn path(error: &ValidationError<'_>) -> String {
    error
        .instance_path()
        .segments()
        .fold(ROOT.to_owned(), |path, segment| match segment {
            LocationSegment::Property(name) => joined(&path, &name),
            LocationSegment::Index(index) => format!("{path}[{index}]"),
        })
}

fn joined(path: &str, name: &str) -> String {
    let is_word = !name.is_empty()
        && name.len() <= MAX_EXCERPT
        && name
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '$'));
    if is_word {
        format!("{path}.{name}")
    } else {
        format!("{path}[{}]", excerpt(&Value::from(name).to_string()))
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(name) => with_article(&name.to_string()),
        TypeKind::Multiple(names) => {
            let names: Vec<String> = names
                .iter()
                .map(|name| with_article(&name.to_string()))
                .collect();
            names.join(" or ")
        }
    }
}

fn with_article(name: &str) -> String {
    match name {
        "string" => "a string".to_owned(),
        "array" => "an array".to_owned(),
        "object" | "integer" => format!("an {name}"),
        "null" => name.to_owned(),
        _ => format!("a {name}"),
    }
}

fn alternatives(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut listed: Vec<String> = options.iter().take(MAX_OPTIONS).map(json).collect();
    if options.len() > MAX_OPTIONS {
        listed.push(format!("… ({} in all)", options.len()));
    }
    listed.join(", ")
}

fn count(error: &ValidationError<'_>) -> usize {
    match error.instance().as_ref() {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

fn json(value: &Value) -> String {
    excerpt(&value.to_string())
}

fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    visible(&short).into_owned()
}
