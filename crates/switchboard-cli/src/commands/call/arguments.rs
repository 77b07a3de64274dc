//! Parses call arguments: JSON, `key=value` pairs, or JSON on standard input.

use std::io::Read as _;

use serde_json::value::RawValue;
use switchboard::internal::call::arguments::coerce::coerce;

use crate::error::Failure;

/// Maximum size of JSON on standard input, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Arguments as typed.
#[derive(Debug, Clone)]
pub(super) enum TypedArguments {
    /// Validated later, against the tool's schema.
    Json(Box<RawValue>),
    /// Pairs, typed by the tool's schema.
    Pairs(Vec<String>),
}

impl TypedArguments {
    /// Parses the command line's words; reads standard input for `-`.
    pub(super) fn read(words: &[String]) -> Result<Self, Failure> {
        match words {
            [word] if word == "-" => json(&standard_input()?, "standard input"),
            [word] if word.trim_start().starts_with(['{', '[']) => json(word, "the argument"),
            pairs => Ok(Self::Pairs(pairs.to_vec())),
        }
    }

    /// Converts the arguments for a tool with this schema.
    pub(super) fn for_schema(self, schema: &RawValue) -> Result<Box<RawValue>, Failure> {
        match self {
            Self::Json(json) => Ok(json),
            Self::Pairs(pairs) => {
                let arguments = coerce(schema, &pairs).map_err(|error| {
                    Failure::usage(format!("invalid arguments: {error}"))
                        .hint("pass key=value pairs, or one JSON object")
                })?;
                serde_json::value::to_raw_value(&arguments)
                    .map_err(|error| Failure::failed("could not write JSON").because(error))
            }
        }
    }
}

fn json(text: &str, place: &str) -> Result<TypedArguments, Failure> {
    let value: Box<RawValue> = serde_json::from_str(text.trim()).map_err(|error| {
        Failure::usage(format!("{place} is not JSON"))
            .because(error)
            .hint("pass one JSON object, or key=value pairs")
    })?;
    Ok(TypedArguments::Json(value))
}

fn standard_input() -> Result<String, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage("could not read standard input").because(error);
    let mut text = String::new();
    let mut limited = std::io::stdin().lock().take(MAX_BYTES + 1);
    limited.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!(
            "standard input exceeds {MAX_BYTES} bytes"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: Result<&str, &str>) {
        let schema = r#"{"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}"#;
        let schema: &RawValue = serde_json::from_str(schema).unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let arguments =
            TypedArguments::read(&words).and_then(|arguments| arguments.for_schema(schema));
        match (arguments, expected) {
            (Ok(arguments), expected) => assert_eq!(Ok(arguments.get()), expected, "{words:?}"),
            (Err(failure), expected) => {
                assert_eq!(Err(failure.message.as_str()), expected, "{words:?}");
            }
        }
    }

    #[test]
    fn arguments_may_be_json_or_pairs() {
        check(&[], Ok("{}"));
        check(&[r#"{"a": 1.0}"#], Ok(r#"{"a": 1.0}"#));
        check(&["n=5", "s=5"], Ok(r#"{"n":5,"s":"5"}"#));
        check(&["{nonsense"], Err("the argument is not JSON"));
        check(&["n"], Err("invalid arguments: n: expected key=value"));
    }
}
