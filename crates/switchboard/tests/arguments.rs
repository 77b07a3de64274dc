//! Tests of arguments: checking them against schemas of every quality, and building them from a command line.

#![expect(clippy::expect_used, reason = "tests stop on wrong data")]

use serde_json::{Map, Value, json, value::RawValue};
use switchboard::internal::call::arguments::coerce::{CoerceProblem, coerce};
use switchboard::internal::call::arguments::{ArgumentCheck, Checked};

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("JSON")
}

/// The result of a check: `fits`, the problems, or the reason it was not possible.
fn verdict(schema: &Value, arguments: &Value) -> String {
    let check = ArgumentCheck::compile(&raw(schema));
    match check.check(Some(&raw(arguments))) {
        Ok(Checked::Fit) => "fits".to_owned(),
        Ok(Checked::NotChecked(reason)) => format!("not checked: {reason}"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(schema: &Value, arguments: &Value, expected: &str) {
    assert_eq!(verdict(schema, arguments), expected);
}

#[test]
fn problems_name_their_place_and_say_what_to_change() {
    let schema = json!({
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "state": {"enum": ["open", "closed"]},
            "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
            "filters": {"type": "array", "maxItems": 3, "items": {
                "type": "object", "properties": {"since": {"type": ["string", "null"]}}, "required": ["since"]
            }},
            "mode": {"const": "fast"},
            "odd key": {"type": "boolean"},
        },
        "required": ["limit"],
        "additionalProperties": false
    });
    check(
        &schema,
        &json!({"limit": 5, "filters": [{"since": null}]}),
        "fits",
    );
    for (arguments, expected) in [
        (json!({}), "arguments.limit: is required and missing"),
        (
            json!({"limit": "5"}),
            "arguments.limit: expected an integer, got the string \"5\"",
        ),
        (
            json!({"limit": 0}),
            "arguments.limit: expected at least 1, got the number 0",
        ),
        (
            json!({"limit": 1, "lmit": 2}),
            "arguments.lmit: unknown argument",
        ),
        (
            json!({"limit": 1, "state": "new"}),
            "arguments.state: expected one of \"open\", \"closed\", got the string \"new\"",
        ),
        (
            json!({"limit": 1, "filters": [{"since": "a"}, {"since": "b"}, {"since": 5}]}),
            "arguments.filters[2].since: expected null or a string, got the number 5",
        ),
        (
            json!({"limit": 1, "filters": [{}]}),
            "arguments.filters[0].since: is required and missing",
        ),
        (
            json!({"limit": 1, "filters": [{"since": ""}, {"since": ""}, {"since": ""}, {"since": ""}]}),
            "arguments.filters: expected at most 3 items, got 4",
        ),
        (
            json!({"limit": 1, "mode": 1}),
            "arguments.mode: expected \"fast\", got the number 1",
        ),
        (
            json!({"limit": 1, "odd key": []}),
            "arguments[\"odd key\"]: expected a boolean, got an empty array",
        ),
        (
            json!({"limit": 1, "name": "X\u{1b}"}),
            "arguments.name: expected a string that matches ^[a-z]+$, got the string \"X\\u001b\"",
        ),
        (
            json!({"limit": {"a": 1, "b": 2}}),
            "arguments.limit: expected an integer, got an object with a, b",
        ),
    ] {
        check(&schema, &arguments, expected);
    }
    check(
        &schema,
        &json!([1]),
        "arguments: expected an object, got an array of length 1",
    );
    let many: Map<String, Value> = (0..20)
        .map(|index| (format!("x{index:02}"), json!(1)))
        .collect();
    let told = verdict(&schema, &Value::Object(many));
    assert!(told.ends_with("; and 13 more problems"), "{told}");
}

#[test]
fn alternatives_are_told_by_the_nearest_one() {
    let schema = json!({"type": "object", "properties": {
        "when": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "who": {"oneOf": [
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"type": "null"},
        ]},
    }});
    check(
        &schema,
        &json!({"when": true}),
        "arguments.when: expected a string or an integer, got the boolean true",
    );
    check(
        &schema,
        &json!({"who": {"id": "x"}}),
        "arguments.who: fits none of the 2 alternatives; for the nearest one: \
         arguments.who.id expected an integer, got the string \"x\"",
    );
}

#[test]
fn no_arguments_are_an_empty_object() {
    let check = ArgumentCheck::compile(&raw(&json!({"type": "object"})));
    assert_eq!(check.check(None), Ok(Checked::Fit));
    let check = ArgumentCheck::compile(&raw(&json!({"required": ["a"]})));
    assert!(check.check(None).is_err());
}

#[test]
fn older_drafts_are_honoured() {
    let draft4 = json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "type": "object",
        "properties": {"a": {"type": "number", "minimum": 5, "exclusiveMinimum": true}}
    });
    check(
        &draft4,
        &json!({"a": 5}),
        "arguments.a: expected more than 5, got the number 5",
    );
    let draft7 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#/definitions/t"}}, "definitions": {"t": {"type": "string"}}
    });
    check(
        &draft7,
        &json!({"a": 5}),
        "arguments.a: expected a string, got the number 5",
    );
    let default =
        json!({"properties": {"a": {"prefixItems": [{"type": "string"}], "items": false}}});
    assert!(verdict(&default, &json!({"a": ["x", 1]})).starts_with("arguments.a"));
}

#[test]
fn a_schema_that_cannot_be_used_is_not_the_callers_fault() {
    let anything = json!({"a": {"b": [1, 2]}});
    for (schema, expected) in [
        (
            json!({"type": "banana"}),
            "not checked: the schema is not valid: ",
        ),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "not checked: the schema is not valid: ",
        ),
        (
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
            "not checked: the schema has the reference \"http://127.0.0.1:1/schema.json\", which is not followed",
        ),
        (
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "not checked: the schema has the reference \"file:///etc/passwd\", which is not followed",
        ),
        (
            json!({"properties": {"a": {"$ref": "other.json#/x"}}}),
            "not checked: the schema has the reference \"other.json#/x\", which is not followed",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/none"}}}),
            "not checked: the schema has the reference \"#/$defs/none\", which is not followed",
        ),
        (
            json!({"properties": {"a": {"$id": "http://x/", "$ref": "y"}}}),
            "not checked: the schema has the reference ",
        ),
        (
            json!({"$dynamicRef": "#x"}),
            "not checked: the schema has the reference ",
        ),
        (
            json!({"$schema": "http://127.0.0.1:1/meta", "type": "object"}),
            "not checked: the schema is not valid: ",
        ),
        (
            json!({"description": "x".repeat(600 * 1024)}),
            "not checked: the schema is larger than 524288 bytes",
        ),
    ] {
        let told = verdict(&schema, &anything);
        assert!(told.starts_with(expected), "{told}");
    }
    // A property may have the name of a keyword.
    check(
        &json!({"properties": {"$ref": {"type": "string"}}}),
        &json!({"$ref": "x"}),
        "fits",
    );
}

/// A chain of `levels` definitions, each referring to the next by `link`.
fn chain(levels: usize, link: impl Fn(String) -> Value, last: &Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = format!("#/$defs/d{}", level + 1);
        definitions.insert(format!("d{level}"), link(next));
    }
    definitions.insert(format!("d{levels}"), last.clone());
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn hostile_schemas_cost_neither_time_nor_stack() {
    let costly = "not checked: a check against the schema could take too long";
    check(&json!({"$ref": "#"}), &json!({}), costly);
    check(
        &json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        &json!({}),
        costly,
    );
    let doubled = |next: String| json!({"allOf": [{"$ref": next}, {"$ref": next}]});
    check(&chain(40, doubled, &json!({})), &json!({}), costly);
    check(
        &chain(5, doubled, &json!({"required": ["a"]})),
        &json!({"a": 1}),
        "fits",
    );
    check(
        &chain(400, |next| json!({"$ref": next}), &json!({})),
        &json!({}),
        costly,
    );
    check(
        &chain(
            5_000,
            |next| json!({"properties": {"a": {"$ref": next}}}),
            &json!({}),
        ),
        &json!({}),
        costly,
    );

    // Two ways to each part: cheap on flat arguments, exponential on deep ones.
    let both = |next: &str| {
        json!({"properties": {"a": {"$ref": next}}, "patternProperties": {"^a": {"$ref": next}},
            "allOf": [{"properties": {"a": {"$ref": next}}}]})
    };
    let recursive = both("#");
    check(&recursive, &json!({"a": {"a": {}}}), "fits");
    let deep = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
    let too_deep =
        "not checked: the arguments are nested too deep to be checked against the schema";
    check(&recursive, &deep, too_deep);

    // Many properties that refer to one definition are cheap at each level.
    let wide = chain(
        60,
        |next| json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}, "c": {"$ref": next}}}),
        &json!({"type": "string"}),
    );
    let told = verdict(&wide, &deep);
    assert!(
        told.ends_with(".a.a: expected a string, got an empty object"),
        "{told}"
    );

    // The longest accepted chains fit the stack of a worker thread.
    check(
        &chain(
            250,
            |next| json!({"$ref": next}),
            &json!({"required": ["a"]}),
        ),
        &json!({"a": 1}),
        "fits",
    );
    let parts = chain(
        450,
        |next| json!({"properties": {"a": {"$ref": next}}}),
        &json!({}),
    );
    check(&parts, &deep, "fits");
}

#[test]
fn patterns_run_in_bounded_time() {
    let text = format!("{}!", "a".repeat(50_000));
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    assert!(verdict(&schema, &json!({"a": text})).starts_with("arguments.a"));
    // Look-around needs backtracking; beyond the limit the value is accepted.
    let looking = json!({"properties": {"a": {"pattern": "^(?!b)(a+)+$"}}});
    check(&looking, &json!({"a": "aaa"}), "fits");
    assert!(verdict(&looking, &json!({"a": "b"})).starts_with("arguments.a"));
    let backtracking = json!({"properties": {"a": {"pattern": "^(?:a+(?=a*!?))+\\1?$(?<!b)x"}}});
    assert!(!verdict(&backtracking, &json!({"a": text})).is_empty());
    let large = json!({"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}});
    assert!(verdict(&large, &json!({"a": ""})).starts_with("not checked: the schema is not valid"));
}

#[track_caller]
fn check_coerced(pairs: &[&str], expected: &Value) {
    assert_eq!(
        coerce(&raw(&command_line_schema()), pairs).as_ref(),
        Ok(expected)
    );
}

#[track_caller]
fn check_not_coerced(pairs: &[&str], expected: &str) {
    let error = coerce(&raw(&command_line_schema()), pairs).expect_err("an error");
    assert_eq!(error.to_string(), expected);
}

fn command_line_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "text": {"type": "string"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "labels": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "level": {"enum": [1, 2, "high"]},
            "filter": {"$ref": "#/$defs/filter"},
            "a.b": {"type": "string"},
            "free": {},
            "object": {"type": "object"},
        },
        "$defs": {"filter": {"type": "object", "properties": {
            "since": {"type": "string"}, "depth": {"type": "integer"},
            "inner": {"type": "object", "properties": {"x": {"type": "boolean"}}}
        }}}
    })
}

#[test]
fn values_of_a_command_line_follow_the_schema() {
    check_coerced(&[], &json!({}));
    check_coerced(
        &[
            "limit=5",
            "ratio=1.5",
            "flag=true",
            "text=5",
            "maybe=null",
            "free=[1]",
            "other=x y",
            "more=7",
        ],
        &json!({"limit": 5, "ratio": 1.5, "flag": true, "text": "5", "maybe": null, "free": [1],
            "other": "x y", "more": 7}),
    );
    check_coerced(
        &["text=a=b", "text2="],
        &json!({"text": "a=b", "text2": ""}),
    );
    check_coerced(
        &["text=true", "free=true"],
        &json!({"text": "true", "free": true}),
    );
    check_coerced(
        &["labels=bug", "labels=5", "numbers=1", "numbers=[2,3]"],
        &json!({"labels": ["bug", "5"], "numbers": [1, 2, 3]}),
    );
    check_coerced(&["labels=[\"a\",\"b\"]"], &json!({"labels": ["a", "b"]}));
    check_coerced(&["level=2"], &json!({"level": 2}));
    check_coerced(&["level=high"], &json!({"level": "high"}));
    check_coerced(
        &[
            "filter.since=2024",
            "filter.depth=2",
            "filter.inner.x=false",
            "a.b=1",
            "new.deep=1",
        ],
        &json!({"filter": {"since": "2024", "depth": 2, "inner": {"x": false}}, "a.b": "1", "new": {"deep": 1}}),
    );
    check_coerced(
        &["object={\"a\":1}", "object.b=2"],
        &json!({"object": {"a": 1, "b": 2}}),
    );
}

#[test]
fn pairs_that_make_no_sense_are_told() {
    check_not_coerced(&["limit"], "limit: expected key=value");
    check_not_coerced(&["=5"], "=5: a key is empty");
    check_not_coerced(&["a..c=5"], "a..c=5: a key is empty");
    check_not_coerced(&["limit=five"], "limit=five: expected a whole number");
    check_not_coerced(&["limit=1.5"], "limit=1.5: expected a whole number");
    check_not_coerced(&["flag=yes"], "flag=yes: expected true or false");
    check_not_coerced(&["object=x"], "object=x: expected a JSON object");
    check_not_coerced(&["numbers=x"], "numbers=x: expected a whole number");
    check_not_coerced(
        &["limit=1", "limit=2"],
        "limit=2: limit is given twice, but is not a list",
    );
    check_not_coerced(&["text=a", "text.b=2"], "text.b=2: text is not an object");
    let deep = vec!["x"; 100_000].join(".");
    let error = coerce(&raw(&json!({})), &[format!("{deep}=1")]).expect_err("too deep");
    assert_eq!(error.problem, CoerceProblem::TooDeep);
}
