//! Parses call arguments: JSON, `key=value`, `key:value` and `--key value` words, or JSON on standard input.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde_json::value::RawValue;
use switchboard::internal::call::arguments::coerce::coerce;
use switchboard_config::entry::keys::nearest;
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::signature::{Parameter, Signature};

/// Maximum size of JSON on standard input, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Most arguments that a hint names.
const MAX_NAMES: usize = 12;

/// Arguments as typed.
#[derive(Debug, Clone)]
pub(crate) enum TypedArguments {
    /// Validated later, against the tool's schema.
    Json(Box<RawValue>),
    /// Words, typed by the tool's schema.
    Words(Vec<String>),
}

impl TypedArguments {
    /// Parses the command line's words; reads standard input for `-`.
    pub(crate) fn read(words: &[String]) -> Result<Self, Failure> {
        match words {
            [word] if word == "-" => json(&standard_input()?, "standard input"),
            [word] if word.trim_start().starts_with(['{', '[']) => json(word, "the argument"),
            words => Ok(Self::Words(words.to_vec())),
        }
    }

    /// Converts the arguments for a tool with this schema.
    pub(crate) fn for_schema(self, schema: &RawValue) -> Result<Box<RawValue>, Failure> {
        let signature = Signature::of(schema);
        match self {
            Self::Json(json) => {
                check_names(&json, &signature)?;
                Ok(json)
            }
            Self::Words(words) => {
                let pairs = pairs(&words, &signature)?;
                let arguments = coerce(schema, &pairs).map_err(|error| {
                    Failure::usage(format!("invalid arguments: {error}")).hint(names(&signature))
                })?;
                serde_json::value::to_raw_value(&arguments)
                    .map_err(|error| Failure::failed("could not write JSON").because(error))
            }
        }
    }
}

/// Turns every word into `key=value`.
fn pairs(words: &[String], signature: &Signature) -> Result<Vec<String>, Failure> {
    let mut pairs = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
            pairs.push(pair(word, signature)?);
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let name = match signature.flag(name) {
            Some(parameter) if value.is_none() && is_switch(parameter, words.peek().copied()) => {
                pairs.push(format!("{}=true", parameter.name));
                continue;
            }
            Some(parameter) => parameter.name.as_str(),
            None if signature.is_open => name,
            None => return Err(unknown_flag(name, signature)),
        };
        let value = value.or_else(|| words.next()).ok_or_else(|| {
            let shown = visible(name);
            Failure::usage(format!("`--{shown}` has no value"))
                .hint(format!("use --{shown} VALUE or {shown}=VALUE"))
        })?;
        pairs.push(format!("{name}={value}"));
    }
    Ok(pairs)
}

/// Whether a flag takes no value: a boolean that is not followed by `true` or `false`.
fn is_switch(parameter: &Parameter, next: Option<&str>) -> bool {
    parameter.is_boolean && !next.is_some_and(|next| ["true", "false"].contains(&next))
}

/// A word as `key=value`. A colon separates the two if the text before it is an argument of the tool.
fn pair(word: &str, signature: &Signature) -> Result<String, Failure> {
    if let Some((key, value)) = word.split_once(':')
        && !key.contains('=')
        && let Some(parameter) = signature.get(key)
    {
        return Ok(format!("{}={value}", parameter.name));
    }
    if let Some((key, _)) = word.split_once('=') {
        check_name(key, signature, Strictness::Misspelled)?;
    }
    Ok(word.to_owned())
}

/// Which names that the schema does not have are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// Those that look like a misspelled one.
    Misspelled,
    /// Only those that the schema refuses.
    Refused,
}

/// Checks the names of a JSON object.
fn check_names(json: &RawValue, signature: &Signature) -> Result<(), Failure> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(json.get()).unwrap_or_default();
    members
        .keys()
        .try_for_each(|name| check_name(name, signature, Strictness::Refused))
}

/// Refuses a name that the schema does not have, with the nearest one that it has.
fn check_name(key: &str, signature: &Signature, strictness: Strictness) -> Result<(), Failure> {
    let top = key.split('.').next().unwrap_or(key);
    let is_known = signature.get(key).is_some() || signature.get(top).is_some();
    if is_known || signature.is_open || signature.parameters.is_empty() || key.is_empty() {
        return Ok(());
    }
    let near = near(top, signature);
    let is_refused = match strictness {
        Strictness::Misspelled => signature.is_closed || near.is_some(),
        Strictness::Refused => signature.is_closed,
    };
    if !is_refused {
        return Ok(());
    }
    let failure = Failure::usage(format!("the tool has no argument `{}`", visible(key)));
    Err(match near {
        Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
        None => failure.hint(names(signature)),
    })
}

fn near<'s>(name: &str, signature: &'s Signature) -> Option<&'s str> {
    let known = signature.parameters.iter().map(|each| each.name.as_str());
    nearest(name, known)
}

fn unknown_flag(name: &str, signature: &Signature) -> Failure {
    let message = format!("neither `call` nor the tool has `--{}`", visible(name));
    let failure = Failure::usage(message);
    if let Some(near) = near(name, signature) {
        return failure.hint(format!("did you mean `--{}`?", visible(near)));
    }
    match nearest(
        name,
        [
            "timeout", "output", "dry_run", "command", "json", "quiet", "verbose",
        ],
    ) {
        Some(near) => failure.hint(format!("did you mean `--{}`?", near.replace('_', "-"))),
        None => failure.hint(names(signature)),
    }
}

/// A hint with the names of the arguments.
fn names(signature: &Signature) -> String {
    let all = &signature.parameters;
    if all.is_empty() {
        return "use key=value, or one JSON object".to_owned();
    }
    let mut names: Vec<String> = all
        .iter()
        .take(MAX_NAMES)
        .map(|each| visible(&each.name).into_owned())
        .collect();
    if all.len() > MAX_NAMES {
        names.push(format!("… {} more", all.len() - MAX_NAMES));
    }
    format!("use key=value with these arguments: {}", names.join(", "))
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
        let schema = r#"{"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "flag": {"type": "boolean"}}}"#;
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

    #[test]
    fn arguments_may_be_flags_or_have_a_colon() {
        check(&["--n", "5", "--s", "x"], Ok(r#"{"n":5,"s":"x"}"#));
        check(&["--n=5"], Ok(r#"{"n":5}"#));
        check(&["--n", "-5"], Ok(r#"{"n":-5}"#));
        check(&["s:http://a/b=c"], Ok(r#"{"s":"http://a/b=c"}"#));
        check(&["n:5", "--flag"], Ok(r#"{"flag":true,"n":5}"#));
        check(&["--flag", "false"], Ok(r#"{"flag":false}"#));
        check(&["--flag", "s=x"], Ok(r#"{"flag":true,"s":"x"}"#));
        check(&["--s"], Err("`--s` has no value"));
        check(
            &["--timout", "5"],
            Err("neither `call` nor the tool has `--timout`"),
        );
    }

    #[test]
    fn a_misspelled_argument_is_named_with_its_nearest() {
        let hint = |schema: &str, words: &[&str]| {
            let schema: &RawValue = serde_json::from_str(schema).unwrap();
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let arguments = TypedArguments::read(&words).unwrap().for_schema(schema);
            arguments.err().map(|failure| failure.hints.join(" "))
        };
        let open = r#"{"properties": {"timezone": {"type": "string"}}}"#;
        let closed =
            r#"{"properties": {"timezone": {"type": "string"}}, "additionalProperties": false}"#;
        let any =
            r#"{"properties": {"timezone": {"type": "string"}}, "additionalProperties": true}"#;
        let meant = Some("did you mean `timezone`?".to_owned());
        assert_eq!(hint(open, &["timezon=UTC"]), meant);
        assert_eq!(hint(closed, &[r#"{"timezon": "UTC"}"#]), meant);
        assert_eq!(
            hint(open, &["--timzone", "UTC"]),
            Some("did you mean `--timezone`?".to_owned())
        );
        assert_eq!(
            hint(open, &["--timout", "5"]),
            Some("did you mean `--timeout`?".to_owned())
        );
        // The schema does not refuse these, so they are sent.
        assert_eq!(hint(open, &[r#"{"timezon": "UTC"}"#]), None);
        assert_eq!(hint(open, &["other=x"]), None);
        assert_eq!(hint(any, &["timezon=UTC"]), None);
    }
}
