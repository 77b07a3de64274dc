//! Converts `key=value` pairs from a command line to arguments: `limit=5 labels=bug labels=urgent since.year=2024`.
//!
//! The schema decides the type: `limit=5` is a number if the schema wants a number, else the string "5". A repeated key
//! makes a list, dots address nested objects, and JSON is accepted for lists, objects and untyped values. The result is
//! validated against the schema later.

use serde_json::{Map, Value, value::RawValue};
use switchboard_config::text::visible;

/// Maximum number of references and combinators followed to find a type.
const MAX_HOPS: usize = 16;

/// Maximum number of parts in one key.
const MAX_KEYS: usize = 32;

/// A pair that cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", visible(.pair))]
#[non_exhaustive]
pub struct CoerceError {
    /// The pair as given, truncated.
    pub pair: String,
    /// Cause of the failure.
    pub problem: CoerceProblem,
}

/// Cause of a failed conversion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CoerceProblem {
    /// No `=` in the pair.
    #[error("expected key=value")]
    NoValue,
    /// Empty text before the `=` or between two dots.
    #[error("a key is empty")]
    EmptyKey,
    /// More parts than the limit.
    #[error("a key may have at most {MAX_KEYS} parts")]
    TooDeep,
    /// A repeated key that is not a list.
    #[error("{0} is given twice, but is not a list")]
    Twice(String),
    /// A dotted key whose parent is not an object.
    #[error("{0} is not an object")]
    NotAnObject(String),
    /// The value does not have the type in the schema.
    #[error("expected {0}")]
    Expected(&'static str),
}

/// Builds the arguments object from `key=value` pairs, with types from the schema.
pub fn coerce<P: AsRef<str>>(schema: &RawValue, pairs: &[P]) -> Result<Value, CoerceError> {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let document = Document(&schema);
    let mut arguments = Map::new();
    for pair in pairs {
        let pair = pair.as_ref();
        document
            .add(&mut arguments, pair)
            .map_err(|problem| CoerceError {
                pair: pair.chars().take(120).collect(),
                problem,
            })?;
    }
    Ok(Value::Object(arguments))
}

struct Document<'s>(&'s Value);

impl<'s> Document<'s> {
    fn add(&self, arguments: &mut Map<String, Value>, pair: &str) -> Result<(), CoerceProblem> {
        let (key, text) = pair.split_once('=').ok_or(CoerceProblem::NoValue)?;
        if key.is_empty() {
            return Err(CoerceProblem::EmptyKey);
        }
        // Property names may contain dots.
        let keys: Vec<&str> = if self.property(Some(self.0), key).is_some() {
            vec![key]
        } else {
            key.split('.').collect()
        };
        if keys.len() > MAX_KEYS {
            return Err(CoerceProblem::TooDeep);
        }
        let Some((last, parents)) = keys.split_last() else {
            return Err(CoerceProblem::EmptyKey);
        };
        let mut target = arguments;
        let mut schema = Some(self.0);
        for parent in parents {
            if parent.is_empty() {
                return Err(CoerceProblem::EmptyKey);
            }
            schema = self.property(schema, parent);
            let slot = target
                .entry((*parent).to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            target = slot
                .as_object_mut()
                .ok_or_else(|| CoerceProblem::NotAnObject((*parent).to_owned()))?;
        }
        if last.is_empty() {
            return Err(CoerceProblem::EmptyKey);
        }
        let schema = self.property(schema, last);
        let is_list = self.types(schema).contains(&"array");
        match target.get_mut(*last) {
            None => {
                let value = self.value(schema, text)?;
                target.insert((*last).to_owned(), value);
            }
            Some(Value::Array(items)) if is_list => match self.value(schema, text)? {
                Value::Array(more) => items.extend(more),
                other => items.push(other),
            },
            Some(_) => return Err(CoerceProblem::Twice((*last).to_owned())),
        }
        Ok(())
    }

    /// Returns the schema of a property; also searches alternatives.
    fn property(&self, schema: Option<&'s Value>, name: &str) -> Option<&'s Value> {
        self.alternatives(schema?)
            .into_iter()
            .find_map(|schema| schema.get("properties")?.get(name))
    }

    /// Returns the schema and all schemas that it references or combines.
    fn alternatives(&self, schema: &'s Value) -> Vec<&'s Value> {
        let mut found = vec![schema];
        let mut position = 0;
        while let Some(schema) = found.get(position).copied() {
            position += 1;
            if position > MAX_HOPS {
                break;
            }
            let reference = schema.get("$ref").and_then(Value::as_str);
            let target = reference.and_then(|target| self.0.pointer(target.strip_prefix('#')?));
            let combined = ["allOf", "anyOf", "oneOf"]
                .into_iter()
                .filter_map(|keyword| schema.get(keyword)?.as_array())
                .flatten();
            for more in target.into_iter().chain(combined) {
                if !found.iter().any(|known| std::ptr::eq(*known, more)) {
                    found.push(more);
                }
            }
        }
        found
    }

    fn types(&self, schema: Option<&'s Value>) -> Vec<&'s str> {
        let Some(schema) = schema else {
            return Vec::new();
        };
        let mut types = Vec::new();
        for schema in self.alternatives(schema) {
            match schema.get("type") {
                Some(Value::String(name)) => types.push(name.as_str()),
                Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
                _ => {}
            }
        }
        types
    }

    fn value(&self, schema: Option<&'s Value>, text: &str) -> Result<Value, CoerceProblem> {
        let parsed = || serde_json::from_str::<Value>(text).ok();
        let options = schema
            .and_then(|schema| schema.get("enum"))
            .and_then(Value::as_array);
        if let Some(options) = options {
            if options.iter().any(|option| option.as_str() == Some(text)) {
                return Ok(Value::from(text));
            }
            if let Some(value) = parsed().filter(|value| options.contains(value)) {
                return Ok(value);
            }
        }
        let types = self.types(schema);
        let mut expected = None;
        for name in &types {
            let value = match *name {
                "string" => return Ok(Value::from(text)),
                "integer" => parsed().filter(is_integer).ok_or("a whole number"),
                "number" => parsed().filter(Value::is_number).ok_or("a number"),
                "boolean" => parsed().filter(Value::is_boolean).ok_or("true or false"),
                "null" => parsed().filter(Value::is_null).ok_or("null"),
                "object" => parsed().filter(Value::is_object).ok_or("a JSON object"),
                "array" => match parsed().filter(Value::is_array) {
                    Some(list) => Ok(list),
                    // Another alternative may accept the string as it is.
                    None if types.contains(&"string") => continue,
                    None => {
                        let items = schema.and_then(|schema| {
                            self.alternatives(schema)
                                .into_iter()
                                .find_map(|schema| schema.get("items"))
                        });
                        return Ok(Value::Array(vec![self.value(items, text)?]));
                    }
                },
                _ => continue,
            };
            match value {
                Ok(value) => return Ok(value),
                Err(wanted) => expected = expected.or(Some(wanted)),
            }
        }
        match expected {
            Some(wanted) => Err(CoerceProblem::Expected(wanted)),
            None => Ok(parsed().unwrap_or_else(|| Value::from(text))),
        }
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|value| value.fract() == 0.0)
}
