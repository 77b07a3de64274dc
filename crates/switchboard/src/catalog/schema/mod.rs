//! Repairs input schemas that model providers reject.
//!
//! One invalid schema makes a provider reject the whole request, so each schema is checked when it is listed.
//! [`examine`] scans a clean schema in place, without building values. A doubtful one is parsed and repaired or, if a
//! repair would change the meaning of the tool, refused with a reason. **A repair only ever relaxes the model's view**:
//! arguments are still validated against the original schema, whose errors cover what was relaxed. [`lint`] lists the
//! findings for users.
//!
//! Providers reject: a root that is not an object schema, combinators at the root, property names outside
//! `^[a-zA-Z0-9_.-]{1,64}$`, dangling references, arrays without `items`, and anything that is not valid JSON Schema
//! 2020-12.

mod combine;
mod repair;
mod scan;
mod vocabulary;

use std::fmt;

use serde_json::value::RawValue;
use switchboard_config::text::visible;
use switchboard_protocol::cursor::{Cursor, Malformed};

use crate::json::SharedJson;
pub(super) use scan::ScanResult;

/// Schema of a tool without arguments or without a schema.
pub(crate) const EMPTY: &str = r#"{"type":"object","properties":{}}"#;

/// Maximum size of a schema for a model, in bytes; about a hundred thousand tokens.
pub(crate) const MAX_BYTES: usize = 256 * 1024;

/// Maximum nesting of schemas. Deeper schemas are emptied in the model's view.
pub(crate) const MAX_DEPTH: usize = 48;

/// Result of [`examine`].
#[derive(Debug, Clone)]
pub enum Examined {
    /// Providers accept it unchanged.
    Fine,
    /// Providers accept this relaxed form.
    Repaired(Repaired),
    /// Providers would reject it, and a repair would change its meaning.
    Refused(SchemaFinding),
}

/// A schema in a form that providers accept.
#[derive(Debug, Clone)]
pub struct Repaired {
    /// Relaxed schema for the model.
    pub schema: SharedJson,
    /// Problems that were repaired.
    pub findings: Vec<SchemaFinding>,
}

/// A problem in a schema that a provider would reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFinding {
    /// JSON pointer to the problem.
    pub path: String,
    /// Kind of the problem.
    pub problem: SchemaProblem,
    /// Whether it was repaired, or the tool set aside.
    pub remedy: Remedy,
}

impl fmt::Display for SchemaFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        write!(
            formatter,
            "input schema at {}: {}",
            visible(path),
            self.problem
        )
    }
}

/// Action taken on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The model gets a repaired schema.
    Repaired,
    /// The tool is set aside.
    SetAside,
}

/// Kinds of schema problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// Not an object or boolean: `null`, an array, a string …
    #[error("expected a schema, found {0}")]
    NoSchema(&'static str),
    /// The schema `false`, which rejects every call.
    #[error("it accepts no arguments at all")]
    AcceptsNothing,
    /// The root lacks `"type": "object"`.
    #[error("the root must have \"type\": \"object\"")]
    RootType,
    /// The root has another type than object.
    #[error("the arguments have type {0}, but only objects can be sent")]
    NotAnObject(String),
    /// `anyOf`, `oneOf` or `allOf` at the root.
    #[error("{0} is not accepted at the root")]
    RootCombinator(&'static str),
    /// A keyword with a value of the wrong type.
    #[error("{keyword} must be {expected}")]
    Keyword {
        /// Name of the keyword.
        keyword: String,
        /// The expected value in words, such as "a number".
        expected: &'static str,
    },
    /// A type that JSON Schema does not define.
    #[error("unknown type {0}")]
    UnknownType(String),
    /// A reference to another document.
    #[error("the reference \"{}\" points outside the schema", visible(.0))]
    RemoteReference(String),
    /// A reference without a target.
    #[error("the reference \"{}\" has no target", visible(.0))]
    DanglingReference(String),
    /// A property name that providers reject.
    #[error("the property name \"{}\" is not accepted by model providers", visible(.name))]
    PropertyName {
        /// Name, truncated.
        name: String,
        /// Whether the property is required.
        required: bool,
    },
    /// An array schema without `items`.
    #[error("an array needs items")]
    ArrayWithoutItems,
    /// Control or invisible characters in texts.
    #[error("texts with control or invisible characters")]
    HiddenCharacters,
    /// Schemas nested too deeply.
    #[error("nested deeper than {MAX_DEPTH} schemas")]
    TooDeep,
    /// Exceeds the size limit.
    #[error("larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// Not valid JSON.
    #[error("it cannot be read")]
    Unreadable,
}

/// Checks a schema and repairs it if a provider would reject it.
pub fn examine(schema: &RawValue) -> Examined {
    let mut cursor = Cursor::new(schema.get());
    match scan(&mut cursor) {
        Ok(ScanResult::Clean | ScanResult::Mirrored) => Examined::Fine,
        Ok(ScanResult::Doubtful) | Err(Malformed) => repair::repair(schema.get()),
    }
}

/// Returns all problems that a provider would reject, repaired or not.
pub fn lint(schema: &RawValue) -> Vec<SchemaFinding> {
    match examine(schema) {
        Examined::Fine => Vec::new(),
        Examined::Repaired(repaired) => repaired.findings,
        Examined::Refused(_) => repair::findings(schema.get()),
    }
}

/// Scans the schema at the cursor and moves past it.
pub(super) fn scan(cursor: &mut Cursor<'_>) -> Result<ScanResult, Malformed> {
    scan::scan(cursor)
}

/// Repairs a schema that the scan found doubtful.
pub(super) fn repair_doubtful(schema: &str) -> Examined {
    repair::repair(schema)
}

/// Whether providers accept a property of that name.
fn is_property_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn any_schema() -> impl Strategy<Value = Value> {
        let keyword = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "required",
            "enum",
            "anyOf",
            "description",
            "minimum",
            "minLength",
            "additionalProperties",
            "$ref",
            "const",
            "default",
            "examples",
            "uniqueItems",
            "not",
            "x-other",
        ]);
        let leaf = prop::sample::select(vec![
            json!("object"),
            json!("array"),
            json!("string"),
            json!("text\u{202e}"),
            json!("#"),
            json!(1),
            json!(-1),
            json!(1.5),
            json!(true),
            json!(null),
            json!([]),
            json!(["a"]),
            json!({}),
            json!(["string", "null"]),
            json!([{}]),
            json!({"type": "object"}),
            json!({"a": {"type": "string"}}),
            json!({"a b": {}}),
        ]);
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop::collection::btree_map(keyword.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|members| json!(members))
        })
    }

    proptest! {
        #[test]
        fn what_the_scan_lets_pass_needs_no_mending(mut schema in any_schema()) {
            if let Value::Object(root) = &mut schema {
                root.insert("type".to_owned(), json!("object"));
            }
            let text = schema.to_string();
            let mut cursor = Cursor::new(&text);
            let verdict = scan(&mut cursor);
            prop_assert_eq!(cursor.position(), text.len());
            if verdict == Ok(ScanResult::Clean) || verdict == Ok(ScanResult::Mirrored) {
                prop_assert!(matches!(repair::repair(&text), Examined::Fine), "{text}");
            }
        }
    }
}
