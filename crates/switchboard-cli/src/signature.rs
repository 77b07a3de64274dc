//! Describes the arguments of a tool from its schema: types in words, choices, defaults, an example.

use std::fmt;
use switchboard_config::sort;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_config::words;

/// Most steps through references and combinations to find a type.
const MAX_STEPS: usize = 8;
/// Most choices that a type in words lists.
const MAX_CHOICES: usize = 8;

/// One argument of a tool. All texts are the server's own, unsanitized.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The type in words: `string`, `integer`, `array of string`, `"a" | "b"`.
    pub(crate) kind: String,
    pub(crate) is_required: bool,
    pub(crate) is_boolean: bool,
    pub(crate) default: Option<Value>,
    /// The values that the schema permits; empty: not limited.
    pub(crate) choices: Vec<String>,
    pub(crate) about: Option<String>,
    example: String,
}

/// The arguments that a tool accepts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Signature {
    /// Required arguments first, otherwise in the schema's order.
    pub(crate) parameters: Vec<Parameter>,
    /// Whether the schema permits no other arguments.
    pub(crate) is_closed: bool,
    /// Whether the schema says that other arguments are welcome.
    pub(crate) is_open: bool,
}

impl Signature {
    pub(crate) fn of(schema: &RawValue) -> Self {
        let root: Value = serde_json::from_str(schema.get()).unwrap_or_default();
        let required: Vec<&str> = root["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties: Outer = serde_json::from_str(schema.get()).unwrap_or_default();
        let parameter = |(name, schema): &(String, Value)| {
            let resolved = resolved(schema, &root);
            let text = |key: &str| {
                let text = schema[key].as_str().or_else(|| resolved[key].as_str());
                text.map(str::to_owned)
            };
            let kind = kind(schema, &root, 0);
            Parameter {
                name: name.clone(),
                is_required: required.contains(&name.as_str()),
                is_boolean: kind == "boolean",
                default: schema.get("default").cloned(),
                choices: choices(schema, &root, 0),
                about: text("description").or_else(|| text("title")),
                example: example(schema, &root, 0),
                kind,
            }
        };
        let mut parameters: Vec<Parameter> =
            properties.properties.0.iter().map(parameter).collect();
        sort::by_key(&mut parameters, |parameter| !parameter.is_required);
        let more = &root["additionalProperties"];
        Self {
            parameters,
            is_closed: more == false,
            is_open: *more == true || more.is_object() || root["patternProperties"].is_object(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|each| each.name == name)
    }

    /// The argument that a flag names: `--time-zone` is `time_zone` or `timeZone`.
    pub(crate) fn flag(&self, flag: &str) -> Option<&Parameter> {
        let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        self.get(flag).or_else(|| {
            let mut parameters = self.parameters.iter();
            parameters.find(|each| plain(&each.name) == plain(flag))
        })
    }

    /// `(timezone: string, limit?: integer)`.
    pub(crate) fn in_words(&self) -> String {
        let parameter = |each: &Parameter| {
            let mark = if each.is_required { "" } else { "?" };
            format!("{}{mark}: {}", each.name, each.kind)
        };
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        format!("({})", parameters.join(", "))
    }

    /// A command line that calls the tool with example values for its required arguments.
    pub(crate) fn example(&self, tool: &str) -> String {
        let required = self.parameters.iter().filter(|each| each.is_required);
        let pairs = required.map(|each| format!("{}={}", each.name, each.example));
        let start = ["switchboard", "call", tool].map(str::to_owned);
        words::join(start.into_iter().chain(pairs))
    }
}

/// The properties of a schema.
#[derive(Deserialize, Default)]
struct Outer {
    #[serde(default)]
    properties: InOrder,
}

/// The members of an object in the order of the text.
#[derive(Default)]
struct InOrder(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = InOrder;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(InOrder(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Follows local references.
fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..MAX_STEPS {
        let target = schema["$ref"]
            .as_str()
            .and_then(|path| path.strip_prefix('#'));
        match target.and_then(|path| root.pointer(path)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The alternatives of a combined schema, without `null`.
fn alternatives(schema: &Value) -> Vec<&Value> {
    let is_null = |each: &&Value| each["type"] == "null";
    let lists = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|key| schema[*key].as_array());
    lists.flatten().filter(|each| !is_null(each)).collect()
}

fn kind(schema: &Value, root: &Value, depth: usize) -> String {
    let schema = resolved(schema, root);
    if depth >= MAX_STEPS {
        return "any".to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema["enum"].as_array() {
        let mut shown: Vec<String> = values
            .iter()
            .take(MAX_CHOICES)
            .map(Value::to_string)
            .collect();
        if values.len() > MAX_CHOICES {
            shown.push(format!("… {} more", values.len() - MAX_CHOICES));
        }
        return shown.join(" | ");
    }
    let alternatives = alternatives(schema);
    if !alternatives.is_empty() {
        let mut kinds: Vec<String> = alternatives
            .iter()
            .map(|each| kind(each, root, depth + 1))
            .collect();
        kinds.dedup();
        return kinds.join(" | ");
    }
    let of_type = |name: &str| match name {
        "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items, root, depth + 1)),
            None => "array".to_owned(),
        },
        "integer" | "number" => match (&schema["minimum"], &schema["maximum"]) {
            (Value::Number(least), Value::Number(most)) => format!("{name} {least}–{most}"),
            (Value::Number(least), _) => format!("{name} ≥ {least}"),
            (_, Value::Number(most)) => format!("{name} ≤ {most}"),
            _ => name.to_owned(),
        },
        "string" => match schema["format"].as_str() {
            Some(format) => format!("string ({format})"),
            None => "string".to_owned(),
        },
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => of_type(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            let kinds: Vec<String> = names.filter(|name| *name != "null").map(of_type).collect();
            kinds.join(" | ")
        }
        _ if schema["properties"].is_object() => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

/// The values that a schema permits, as a command line has them.
fn choices(schema: &Value, root: &Value, depth: usize) -> Vec<String> {
    let schema = resolved(schema, root);
    if depth >= MAX_STEPS {
        return Vec::new();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(bare).collect();
    }
    if schema["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    if schema["type"] == "array" {
        return choices(&schema["items"], root, depth + 1);
    }
    let alternatives = alternatives(schema);
    let mut all = Vec::new();
    for each in alternatives {
        match each.get("const") {
            Some(value) => all.push(bare(value)),
            None => all.extend(choices(each, root, depth + 1)),
        }
    }
    all
}

/// A value as a command line has it: strings without quotes.
pub(crate) fn bare(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn example(schema: &Value, root: &Value, depth: usize) -> String {
    let resolved = resolved(schema, root);
    let stated = resolved["examples"].as_array().and_then(|all| all.first());
    let stated = stated
        .or_else(|| schema.get("default"))
        .or_else(|| resolved.get("const"))
        .or_else(|| resolved["enum"].as_array().and_then(|all| all.first()))
        .filter(|value| !value.is_null());
    if let Some(value) = stated {
        return bare(value);
    }
    if let (Some(first), true) = (alternatives(resolved).first(), depth < MAX_STEPS) {
        return example(first, root, depth + 1);
    }
    let name = match &resolved["type"] {
        Value::Array(names) => names.first().and_then(Value::as_str),
        name => name.as_str(),
    };
    match name {
        Some("integer" | "number") => {
            let least = &resolved["minimum"];
            if least.is_number() {
                least.to_string()
            } else {
                "1".to_owned()
            }
        }
        Some("boolean") => "true".to_owned(),
        Some("array") => "[]".to_owned(),
        Some("object") => "{}".to_owned(),
        _ => "TEXT".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(schema: &str) -> Signature {
        Signature::of(serde_json::from_str(schema).unwrap())
    }

    #[test]
    fn types_are_readable() {
        let check = |property: &str, expected: &str| {
            let schema = format!(
                r##"{{"$defs": {{"Unit": {{"enum": ["c", "f"]}}, "Loop": {{"$ref": "#/$defs/Loop"}}}}, "properties": {{"x": {property}}}}}"##
            );
            assert_eq!(
                signature(&schema).parameters[0].kind,
                expected,
                "{property}"
            );
        };
        check(r#"{"type": "string"}"#, "string");
        check(
            r#"{"type": "integer", "minimum": 1, "maximum": 9}"#,
            "integer 1–9",
        );
        check(
            r#"{"type": "array", "items": {"type": "number"}}"#,
            "array of number",
        );
        check(
            r#"{"anyOf": [{"type": "string"}, {"type": "null"}]}"#,
            "string",
        );
        check(r#"{"type": ["string", "null"]}"#, "string");
        check(r##"{"$ref": "#/$defs/Unit"}"##, r#""c" | "f""#);
        check(r##"{"$ref": "#/$defs/Loop"}"##, "any");
        check("{}", "any");
        check("true", "any");
    }

    #[test]
    fn a_signature_has_an_example() {
        let schema = r#"{"type": "object", "required": ["zone", "n"], "additionalProperties": false, "properties": {
            "deep": {"type": "boolean"}, "zone": {"type": "string", "examples": ["Europe/Berlin"]},
            "n": {"type": "integer", "minimum": 3}, "unit": {"enum": ["a b", "c"]}}}"#;
        let signature = signature(schema);
        assert!(signature.is_closed);
        assert_eq!(
            signature.example("t/x"),
            "switchboard call t/x zone=Europe/Berlin n=3"
        );
        assert_eq!(
            signature.in_words(),
            r#"(zone: string, n: integer ≥ 3, deep?: boolean, unit?: "a b" | "c")"#
        );
        assert_eq!(signature.get("unit").unwrap().choices, ["a b", "c"]);
        assert_eq!(signature.get("deep").unwrap().choices, ["true", "false"]);
    }

    #[test]
    fn a_flag_names_an_argument_in_any_spelling() {
        let signature = signature(r#"{"properties": {"timeZone": {}, "max_items": {}}}"#);
        assert_eq!(signature.flag("time-zone").unwrap().name, "timeZone");
        assert_eq!(signature.flag("max-items").unwrap().name, "max_items");
        assert!(signature.flag("other").is_none());
    }

    #[test]
    fn a_schema_that_is_not_one_has_no_arguments() {
        for schema in ["true", "[]", "null", r#"{"properties": [], "required": 5}"#] {
            assert_eq!(signature(schema).parameters, []);
        }
    }
}
