//! A quick yes for arguments that are plainly right.
//!
//! Most tools take an object of a few strings, numbers and booleans. For such a schema the arguments are looked at as
//! they are written, member by member, and nothing is built. This may say yes only where the validator would; whatever
//! it is not sure of, a mistake included, is left to the validator, which also words the errors.

use serde_json::{Map, Value};
use switchboard_protocol::cursor::{Cursor, Malformed};

/// A schema of the simple kind.
#[derive(Debug)]
pub(super) struct PlainSchema {
    properties: Vec<Property>,
    /// One bit for each property that must be there.
    required: u64,
    /// Whether other members are welcome.
    open: bool,
}

#[derive(Debug)]
struct Property {
    name: String,
    /// What is plainly right for it; `None` where that is not easily told.
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    /// Anything, as long as it is not nested, which would have to be measured.
    Scalar,
}

/// The most properties: one bit each.
const MAX_PROPERTIES: usize = 64;

/// Integers of more digits are compared by value, which is not for here.
const MAX_DIGITS: usize = 15;

/// Keywords that say nothing about what is right.
const ANNOTATIONS: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

impl PlainSchema {
    /// The schema, if it is of the simple kind.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut properties = Vec::new();
        let mut names: &[Value] = &[];
        let mut open = true;
        for (keyword, value) in schema.as_object()? {
            match keyword.as_str() {
                "type" if value == "object" => {}
                "properties" => {
                    let listed = value.as_object()?;
                    properties.extend(listed.iter().map(|(name, schema)| Property {
                        name: name.clone(),
                        kind: schema.as_object().and_then(Kind::of),
                    }));
                }
                "required" => names = value.as_array()?,
                "additionalProperties" => open = value.as_bool()?,
                // Whatever the dialect, what is read here means the same in it.
                "$schema" => {}
                word if ANNOTATIONS.contains(&word) => {}
                _ => return None,
            }
        }
        if properties.len() > MAX_PROPERTIES {
            return None;
        }
        let mut required = 0;
        for name in names {
            let position = properties.iter().position(|known| name == &known.name)?;
            required |= 1 << position;
        }
        Some(Self {
            properties,
            required,
            open,
        })
    }

    /// Whether the arguments, which must be JSON, are plainly right.
    pub(super) fn plainly_fits(&self, arguments: &str) -> bool {
        self.look(arguments) == Ok(Some(()))
    }

    fn look(&self, arguments: &str) -> Result<Option<()>, Malformed> {
        let mut cursor = Cursor::new(arguments);
        let mut missing = self.required;
        cursor.enter(b'{')?;
        while let Some(key) = cursor.next_key()? {
            if key.has_escapes {
                return Ok(None);
            }
            let known = self.properties.iter();
            let position = known
                .into_iter()
                .position(|known| known.name == key.escaped);
            let kind = match position {
                Some(position) => {
                    missing &= !(1 << position);
                    self.properties.get(position).and_then(|known| known.kind)
                }
                None => self.open.then_some(Kind::Scalar),
            };
            let written = cursor.value()?;
            if !kind.is_some_and(|kind| kind.is_plainly(written)) {
                return Ok(None);
            }
        }
        Ok((missing == 0 && cursor.peek() == 0).then_some(()))
    }
}

impl Kind {
    fn of(schema: &Map<String, Value>) -> Option<Self> {
        let mut kind = None;
        for (keyword, value) in schema {
            match keyword.as_str() {
                "type" => {
                    kind = Some(match value.as_str()? {
                        "string" => Self::Text,
                        "number" => Self::Number,
                        "integer" => Self::Integer,
                        "boolean" => Self::Boolean,
                        _ => return None,
                    });
                }
                // Formats are not checked.
                "format" => {}
                word if ANNOTATIONS.contains(&word) => {}
                _ => return None,
            }
        }
        kind
    }

    fn is_plainly(self, written: &str) -> bool {
        let digits = written.strip_prefix('-').unwrap_or(written).as_bytes();
        match self {
            // An escape may spell half a character, which not every parser takes for text.
            Self::Text => written.starts_with('"') && !written.contains('\\'),
            Self::Scalar => !written.starts_with(['{', '[']) && !written.contains('\\'),
            Self::Boolean => matches!(written, "true" | "false"),
            Self::Number | Self::Integer => {
                digits.len() <= MAX_DIGITS && digits.iter().all(u8::is_ascii_digit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, fits: &[&str], unsure: &[&str]) {
        let plain = PlainSchema::of(schema).expect("a simple schema");
        for arguments in fits {
            assert!(plain.plainly_fits(arguments), "{arguments}");
        }
        for arguments in unsure {
            assert!(!plain.plainly_fits(arguments), "{arguments}");
        }
    }

    #[test]
    fn what_is_plainly_right_needs_no_validator() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "where", "format": "uri"},
                "depth": {"type": "integer", "default": 1},
                "ratio": {"type": "number"},
                "all": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "short": {"type": "string", "maxLength": 2},
            },
            "required": ["path"],
        });
        check(
            &schema,
            &[
                r#"{"path":"x"}"#,
                r#" { "all" : true , "path" : "x", "depth":-3, "ratio": 7, "other": null } "#,
            ],
            &[
                r"{}",
                r#"{"path":1}"#,
                r#"{"path":"a\n"}"#,
                r#"{"path":"x","depth":1.0}"#,
                r#"{"path":"x","depth":1234567890123456}"#,
                r#"{"path":"x","all":"true"}"#,
                r#"{"path":"x","tags":["a"]}"#,
                r#"{"path":"x","short":"a"}"#,
                r#"{"path":"x","other":{}}"#,
                r#"{"p\u0061th":"x"}"#,
            ],
        );
        let closed = json!({"type": "object", "additionalProperties": false});
        check(&closed, &["{}"], &[r#"{"a":1}"#]);
    }

    #[test]
    fn any_other_keyword_is_for_the_validator() {
        for schema in [
            json!({"type": "object", "minProperties": 1}),
            json!({"type": ["object", "null"]}),
            json!({"type": "object", "anyOf": []}),
            json!({"$ref": "#/$defs/a"}),
            json!({"type": "object", "required": ["not described"]}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!(true),
        ] {
            assert!(PlainSchema::of(&schema).is_none(), "{schema}");
        }
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let types = prop::sample::select(vec!["string", "number", "integer", "boolean", "array"]);
        let property = (types, any::<bool>()).prop_map(|(kind, odd)| {
            let mut schema = json!({"type": kind, "title": "t"});
            if odd {
                schema["minLength"] = json!(2);
            }
            schema
        });
        let properties = prop::collection::btree_map("[abc]", property, 0..4);
        (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, all, open)| {
            let names: Vec<_> = properties.keys().filter(|_| all).cloned().collect();
            json!({
                "type": "object",
                "properties": properties,
                "required": names,
                "additionalProperties": open,
            })
        })
    }

    fn arguments() -> impl Strategy<Value = String> {
        let value = prop::sample::select(vec![
            "1",
            "-2",
            "0",
            "1.0",
            "1e2",
            "true",
            "false",
            "null",
            "\"\"",
            "\"text\"",
            "\"\\n\"",
            "[]",
            "{}",
            "[1]",
            "12345678901234567890",
        ]);
        prop::collection::vec(("[abcd]", value), 0..5).prop_map(|members| {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("\"{name}\": {value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        })
    }

    proptest! {
        #[test]
        fn a_yes_is_a_yes_of_the_validator(schema in schemas(), arguments in arguments()) {
            let plain = PlainSchema::of(&schema).expect("a simple schema");
            if plain.plainly_fits(&arguments) {
                let value: Value = serde_json::from_str(&arguments).unwrap();
                prop_assert!(jsonschema::is_valid(&schema, &value), "{} {}", schema, arguments);
            }
        }
    }
}
