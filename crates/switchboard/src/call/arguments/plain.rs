//! Fast path that accepts obviously valid arguments without the validator.
//!
//! Most tools take an object of a few strings, numbers and booleans. For such schemas the raw JSON is scanned member by
//! member, without building values. It accepts only what the validator would accept; anything else, errors included, is
//! left to the validator, which also produces the error messages.

use serde_json::{Map, Value};
use switchboard_protocol::cursor::{Cursor, Malformed};

/// A schema simple enough for the fast path.
#[derive(Debug)]
pub(super) struct PlainSchema {
    properties: Vec<Property>,
    /// Bit set of required properties.
    required: u64,
    /// Whether additional properties are allowed.
    open: bool,
}

#[derive(Debug)]
struct Property {
    name: String,
    /// Type that the fast path can verify; `None` leaves the property to the validator.
    kind: Option<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    /// Any value that is not nested; nested values need a depth check.
    Scalar,
}

/// One bit per property.
const MAX_PROPERTIES: usize = 64;

/// Integers with more digits need a comparison by value and are left to the validator.
const MAX_DIGITS: usize = 15;

/// Keywords without effect on validation.
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
    /// Returns the simple form of a schema, if it has one.
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
                // The keywords handled here mean the same in every dialect.
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

    /// Whether the arguments, which must be valid JSON, are certainly valid.
    pub(super) fn plainly_fits(&self, arguments: &str) -> bool {
        self.scan(arguments) == Ok(Some(()))
    }

    fn scan(&self, arguments: &str) -> Result<Option<()>, Malformed> {
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
                // `format` is not validated.
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
            // An escape can encode a lone surrogate, which some parsers reject.
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
    use switchboard_schema::{Checked, SchemaCheck};

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
                let check = SchemaCheck::compile(&schema).unwrap();
                prop_assert_eq!(check.check(&arguments), Ok(Checked::Fit), "{} {}", schema, arguments);
            }
        }
    }
}
