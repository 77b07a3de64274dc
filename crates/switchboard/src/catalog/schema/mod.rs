//! Input schemas as model providers take them.
//!
//! Providers refuse a whole request over one bad schema, so each is looked at when it is listed. [`examine`] reads a
//! clean schema once, in place, and builds nothing. Only a doubtful one is parsed, and then repaired or, where repairing
//! would change what the tool is, refused with the reason; one tool is lost and never its neighbours.
//!
//! **Repairing only ever makes the model's view laxer.** Arguments are still checked against the schema as the server wrote
//! it, so what the view no longer says is said by the error. [`lint`] lists the findings for people.
//!
//! What providers refuse, from their documentation and error messages: a root that is no object schema, combinators at
//! the root, property names outside `^[a-zA-Z0-9_.-]{1,64}$`, references that lead nowhere, arrays without `items`, and
//! whatever is no valid JSON Schema 2020-12.

mod combine;
mod repair;
mod scan;
mod vocabulary;

use std::fmt;

use serde_json::value::RawValue;
use switchboard_config::text::visible;
use switchboard_protocol::cursor::{Cursor, Malformed};

use crate::json::SharedJson;
pub(super) use scan::Verdict;

/// The schema of a tool without arguments, or without a schema.
pub(crate) const EMPTY: &str = r#"{"type":"object","properties":{}}"#;

/// The largest schema that is offered to a model. It is a hundred thousand tokens.
pub(crate) const MAX_BYTES: usize = 256 * 1024;

/// Schemas within schemas. What lies deeper is not described to the model.
pub(crate) const MAX_DEPTH: usize = 48;

/// What is to become of a schema.
#[derive(Debug, Clone)]
pub enum Examined {
    /// It can be passed on as it is.
    Fine,
    /// It can be passed on in this form.
    Repaired(Repaired),
    /// It cannot be passed on.
    Refused(SchemaFinding),
}

/// A schema in a form that providers take.
#[derive(Debug, Clone)]
pub struct Repaired {
    /// The repaired schema.
    pub schema: SharedJson,
    /// What was repaired.
    pub findings: Vec<SchemaFinding>,
}

/// Something in a schema that a provider would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFinding {
    /// Where, as a JSON pointer.
    pub path: String,
    /// What is wrong.
    pub problem: SchemaProblem,
    /// What was done about it.
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

/// What was done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The model gets a repaired form.
    Repaired,
    /// The tool is set aside.
    SetAside,
}

/// What can be wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// The schema is `null`, a list, a text …
    #[error("expected a schema, found {0}")]
    NoSchema(&'static str),
    /// `false`: no call could be right.
    #[error("it accepts no arguments at all")]
    AcceptsNothing,
    /// The root does not say that it describes an object.
    #[error("the root must have \"type\": \"object\"")]
    RootType,
    /// The root describes something else than an object.
    #[error("the arguments are to be of type {0}, and only objects can be sent")]
    NotAnObject(String),
    /// `anyOf`, `oneOf`, `allOf` at the root.
    #[error("{0} is not accepted at the root")]
    RootCombinator(&'static str),
    /// A keyword whose value has the wrong form.
    #[error("{keyword} must be {expected}")]
    Keyword {
        /// The keyword.
        keyword: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A type that JSON Schema does not have.
    #[error("there is no type {0}")]
    UnknownType(String),
    /// A reference to another document.
    #[error("the reference \"{}\" leads out of the schema", visible(.0))]
    RemoteReference(String),
    /// A reference to nothing.
    #[error("the reference \"{}\" leads nowhere", visible(.0))]
    DanglingReference(String),
    /// A property's name that providers refuse.
    #[error("the property name \"{}\" is not accepted by model providers", visible(.name))]
    PropertyName {
        /// The name, cut short.
        name: String,
        /// Whether a call needs it.
        required: bool,
    },
    /// An array schema that does not say what is in it.
    #[error("an array needs items")]
    ArrayWithoutItems,
    /// Control or invisible characters in texts.
    #[error("texts with control or invisible characters")]
    HiddenCharacters,
    /// Schemas nested too deep.
    #[error("nested deeper than {MAX_DEPTH} schemas")]
    TooDeep,
    /// Too much of it.
    #[error("larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// It cannot be parsed.
    #[error("it cannot be read")]
    Unreadable,
}

/// Looks at a schema and repairs it where a provider would refuse it.
pub fn examine(schema: &RawValue) -> Examined {
    let mut cursor = Cursor::new(schema.get());
    match scan(&mut cursor) {
        Ok(Verdict::Clean | Verdict::Mirrored) => Examined::Fine,
        Ok(Verdict::Doubtful) | Err(Malformed) => repair::repair(schema.get()),
    }
}

/// Everything in a schema that a provider would refuse, repaired or not.
pub fn lint(schema: &RawValue) -> Vec<SchemaFinding> {
    match examine(schema) {
        Examined::Fine => Vec::new(),
        Examined::Repaired(repaired) => repaired.findings,
        Examined::Refused(_) => repair::findings(schema.get()),
    }
}

/// Reads the schema ahead and moves past it.
pub(super) fn scan(cursor: &mut Cursor<'_>) -> Result<Verdict, Malformed> {
    scan::scan(cursor)
}

/// Mends a schema that the scan found doubtful.
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
            if verdict == Ok(Verdict::Clean) || verdict == Ok(Verdict::Mirrored) {
                prop_assert!(matches!(repair::repair(&text), Examined::Fine), "{text}");
            }
        }
    }
}
