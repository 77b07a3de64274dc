//! Tests of repairing schemas that providers reject.

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::catalog::Remedy;
use switchboard::internal::catalog::schema::{Examined, examine, lint};

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}

#[track_caller]
fn check(schema: &Value, expected: &Value, findings: &[&str]) {
    let schema = raw(schema);
    let (repaired, told) = match examine(&schema) {
        Examined::Fine => (
            serde_json::from_str(schema.get()).expect("JSON"),
            Vec::new(),
        ),
        Examined::Repaired(repaired) => {
            let value: Value = serde_json::from_str(repaired.schema.as_str()).expect("JSON");
            (value, repaired.findings)
        }
        Examined::Refused(finding) => (Value::Null, vec![finding]),
    };
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(
        (&repaired, told.as_slice()),
        (
            expected,
            findings
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
                .as_slice()
        )
    );
    let again = raw(&repaired);
    if !repaired.is_null() {
        assert!(
            matches!(examine(&again), Examined::Fine),
            "repairing once is enough: {again}"
        );
    }
}

#[track_caller]
fn check_fine(schema: &Value) {
    check(schema, schema, &[]);
}

#[test]
fn what_providers_take_passes_untouched() {
    check_fine(&json!({"type": "object"}));
    check_fine(
        &json!({"type": "object", "properties": {}, "additionalProperties": false,
        "$schema": "http://json-schema.org/draft-07/schema#"}),
    );
    check_fine(
        &json!({"type": "object", "description": "größe ⚠\u{fe0f}\n\"x\"", "properties": {
        "a.b-c_d": {"type": ["string", "null"], "enum": ["x", null], "default": "x"},
        "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, true]}, "minItems": 1},
        "map": {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0.5}},
        "any": {}
    }, "required": ["list"]}),
    );
    check_fine(
        &json!({"type": "object", "properties": {"node": {"$ref": "#/$defs/node"}}, "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}}),
    );
    check_fine(
        &json!({"type": "object", "x-vendor": {"anything": [1]}, "if": {}, "then": {"required": ["a"]}}),
    );
}

#[test]
fn roots_become_object_schemas() {
    let empty = json!({"type": "object", "properties": {}});
    check(
        &json!(null),
        &empty,
        &["input schema at /: expected a schema, found null"],
    );
    check(
        &json!([]),
        &empty,
        &["input schema at /: expected a schema, found an array"],
    );
    check(
        &json!(true),
        &empty,
        &["input schema at /: the root must have \"type\": \"object\""],
    );
    check(
        &json!(false),
        &Value::Null,
        &["input schema at /: it accepts no arguments at all"],
    );
    for root in [
        json!({}),
        json!({"type": null}),
        json!({"type": ["object", "null"]}),
        json!({"type": "dict"}),
    ] {
        check(
            &root,
            &json!({"type": "object"}),
            &["input schema at /: the root must have \"type\": \"object\""],
        );
    }
    check(
        &json!({"type": "string"}),
        &Value::Null,
        &["input schema at /: the arguments have type \"string\", but only objects can be sent"],
    );
    check(
        &json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": {"type": "string"}}}}}),
        &json!({"type": "object", "properties": {"x": {"type": "string"}},
            "$defs": {"a": {"type": "object", "properties": {"x": {"type": "string"}}}}}),
        &["input schema at /: the root must have \"type\": \"object\""],
    );
    check(
        &json!({"type": "object", "$ref": "#"}),
        &json!({"type": "object"}),
        &["input schema at /: the reference \"#\" has no target"],
    );
}

#[test]
fn combinators_at_the_root_are_flattened() {
    check(
        &json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "oneOf": [
            {"properties": {"path": {"type": "string"}, "n": {"type": "string"}}, "required": ["path"]},
            {"properties": {"url": {"type": "string"}, "n": {"type": "integer"}}, "required": ["url"]},
        ]}),
        &json!({"type": "object", "required": ["id"],
            "description": "Give exactly one of these groups of arguments: (path) or (url).",
            "properties": {"id": {"type": "string"}, "path": {"type": "string"}, "url": {"type": "string"},
                "n": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}),
        &["input schema at /: oneOf is not accepted at the root"],
    );
    check(
        &json!({"type": "object", "anyOf": [{"properties": {"a": {}}}], "properties": {"b": {"$ref": "#/anyOf/0"}}}),
        &json!({"type": "object", "properties": {"a": {}, "b": {}}}),
        &[
            "input schema at /: anyOf is not accepted at the root",
            "input schema at /properties/b/$ref: the reference \"#/anyOf/0\" has no target",
        ],
    );
    check(
        &json!({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"y": {}}, "required": ["y"]}], "type": "object",
            "$defs": {"a": {"type": "object", "properties": {"x": {}}, "required": ["x"]}}}),
        &json!({"type": "object", "properties": {"x": {}, "y": {}}, "required": ["x", "y"],
            "$defs": {"a": {"type": "object", "properties": {"x": {}}, "required": ["x"]}}}),
        &["input schema at /: allOf is not accepted at the root"],
    );
}

#[test]
fn odd_keywords_are_repaired() {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let at = "input schema at /properties/a";
    for (schema, repaired, finding) in [
        (
            json!(null),
            json!({}),
            format!("{at}: expected a schema, found null"),
        ),
        (
            json!("string"),
            json!({"type": "string"}),
            format!("{at}: expected a schema, found a string"),
        ),
        (
            json!({"type": "str"}),
            json!({"type": "string"}),
            format!("{at}/type: unknown type \"str\""),
        ),
        (
            json!({"type": "uuid"}),
            json!({}),
            format!("{at}/type: unknown type \"uuid\""),
        ),
        (
            json!({"type": []}),
            json!({}),
            format!("{at}/type: unknown type []"),
        ),
        (
            json!({"type": ["string", "any"]}),
            json!({"type": ["string"]}),
            format!("{at}/type: unknown type \"any\""),
        ),
        (
            json!({"type": "array"}),
            json!({"type": "array", "items": {}}),
            format!("{at}: an array needs items"),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
            format!("{at}/items: items must be one schema"),
        ),
        (
            json!({"required": true}),
            json!({}),
            format!("{at}/required: required must be an array of strings"),
        ),
        (
            json!({"required": ["x", "x", 5]}),
            json!({"required": ["x"]}),
            format!("{at}/required: required must be an array of unique strings"),
        ),
        (
            json!({"enum": []}),
            json!({}),
            format!("{at}/enum: enum must be a non-empty array"),
        ),
        (
            json!({"anyOf": []}),
            json!({}),
            format!("{at}/anyOf: anyOf must be a non-empty array of schemas"),
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": true}),
            json!({"minimum": 1}),
            format!("{at}/exclusiveMinimum: exclusiveMinimum must be a number"),
        ),
        (
            json!({"description": 5}),
            json!({}),
            format!("{at}/description: description must be a string"),
        ),
        (
            json!({"properties": []}),
            json!({"properties": {}}),
            format!("{at}/properties: properties must be an object"),
        ),
        (
            json!({"$ref": "https://example.com/x.json", "description": "d"}),
            json!({"description": "d"}),
            format!(
                "{at}/$ref: the reference \"https://example.com/x.json\" points outside the schema"
            ),
        ),
        (
            json!({"$ref": "#/$defs/none"}),
            json!({}),
            format!("{at}/$ref: the reference \"#/$defs/none\" has no target"),
        ),
        (
            json!({"description": "x\u{202e}y"}),
            json!({"description": "x\\u{202e}y"}),
            format!("{at}/description: texts with control or invisible characters"),
        ),
    ] {
        check(&property(schema), &property(repaired), &[&finding]);
    }
}

#[test]
fn names_that_providers_refuse_go_or_take_the_tool_with_them() {
    let long = "n".repeat(65);
    check(
        &json!({"type": "object", "properties": {"good": {}, "with space": {}, (long.clone()): {}}}),
        &json!({"type": "object", "properties": {"good": {}}}),
        &[
            &format!(
                "input schema at /properties: the property name \"{long}\" is not accepted by model providers"
            ),
            "input schema at /properties: the property name \"with space\" is not accepted by model providers",
        ],
    );
    check(
        &json!({"type": "object", "properties": {"größe": {}}, "required": ["größe"]}),
        &Value::Null,
        &[
            "input schema at /properties: the property name \"größe\" is not accepted by model providers",
        ],
    );
    check(
        &json!({"type": "object", "$defs": {"a\u{200b}": {}}}),
        &Value::Null,
        &["input schema at /: texts with control or invisible characters"],
    );
}

#[test]
fn what_is_too_deep_is_cut_and_what_is_too_large_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..55 {
        deep = json!({"properties": {"a": deep}});
    }
    deep["type"] = json!("object");
    let findings = lint(&raw(&deep));
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0]
            .to_string()
            .ends_with("nested deeper than 48 schemas")
    );
    assert_eq!(findings[0].remedy, Remedy::Repaired);
    let large = json!({"type": "object", "description": "x".repeat(300 * 1024)});
    check(
        &large,
        &Value::Null,
        &["input schema at /: larger than 262144 bytes"],
    );
    let unreadable =
        RawValue::from_string(format!("{}1{}", "[".repeat(500), "]".repeat(500))).expect("JSON");
    assert!(matches!(examine(&unreadable), Examined::Refused(_)));
}

/// Schemas of common kinds, with all kinds of errors.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(null)),
        Just(json!({"type": "string", "description": "d\u{200b}"})),
        Just(json!({"type": "int"})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"$ref": "http://x"})),
        Just(json!({"type": "array"})),
        Just(json!({"enum": [1, "a"], "required": 1})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-c ]{1,2}", inner.clone(), 0..4).prop_map(
                |properties| json!({"type": "object", "properties": properties, "required": ["a"]})
            ),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|parts| json!({"anyOf": parts})),
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|parts| json!({"allOf": parts, "type": "object"})),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|not| json!({"type": "object", "not": not, "$defs": {"x": not}})),
        ]
    })
}

proptest! {
    #[test]
    fn mending_ends_and_once_is_enough(schema in any_schema()) {
        match examine(&raw(&schema)) {
            Examined::Fine => prop_assert!(lint(&raw(&schema)).is_empty()),
            Examined::Repaired(repaired) => {
                prop_assert!(matches!(examine(repaired.schema.raw()), Examined::Fine), "{:?}", repaired.schema);
            }
            Examined::Refused(finding) => prop_assert!(lint(&raw(&schema)).contains(&finding)),
        }
    }
}
