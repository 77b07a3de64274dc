//! Arguments as they are typed: JSON, `key=value` pairs, or JSON on standard input.

use std::io::Read as _;

use serde_json::value::RawValue;
use switchboard::call::arguments::coerce::coerce;

use crate::error::Failure;

/// No arguments are larger than this.
const LARGEST: u64 = 64 * 1024 * 1024;

/// What was given.
#[derive(Debug, Clone)]
pub(super) enum Given {
    /// JSON. Whether it fits the tool is checked with the tool.
    Json(Box<RawValue>),
    /// Pairs, whose types are the schema's to say.
    Pairs(Vec<String>),
}

impl Given {
    /// Takes the words of the command line apart, and reads standard input where they say so.
    pub(super) fn read(words: &[String]) -> Result<Self, Failure> {
        match words {
            [word] if word == "-" => json(&standard_input()?, "standard input"),
            [word] if word.trim_start().starts_with(['{', '[']) => json(word, "the argument"),
            pairs => Ok(Self::Pairs(pairs.to_vec())),
        }
    }

    /// The arguments for a tool with this schema.
    pub(super) fn for_schema(self, schema: &RawValue) -> Result<Box<RawValue>, Failure> {
        match self {
            Self::Json(json) => Ok(json),
            Self::Pairs(pairs) => {
                let arguments = coerce(schema, &pairs).map_err(|error| {
                    Failure::usage(format!("the arguments cannot be used: {error}"))
                        .hint("give key=value pairs, or one JSON object")
                })?;
                serde_json::value::to_raw_value(&arguments)
                    .map_err(|error| Failure::failed("could not write JSON").because(error))
            }
        }
    }
}

fn json(text: &str, place: &str) -> Result<Given, Failure> {
    let value: Box<RawValue> = serde_json::from_str(text.trim()).map_err(|error| {
        Failure::usage(format!("{place} is not JSON"))
            .because(error)
            .hint("give one JSON object, or key=value pairs")
    })?;
    Ok(Given::Json(value))
}

fn standard_input() -> Result<String, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::usage("could not read standard input").because(error);
    let mut text = String::new();
    let mut limited = std::io::stdin().lock().take(LARGEST + 1);
    limited.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LARGEST {
        return Err(Failure::usage(format!(
            "standard input has more than {LARGEST} bytes"
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
        let given = Given::read(&words).and_then(|given| given.for_schema(schema));
        match (given, expected) {
            (Ok(given), expected) => assert_eq!(Ok(given.get()), expected, "{words:?}"),
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
        check(
            &["n"],
            Err("the arguments cannot be used: n: expected key=value"),
        );
    }
}
