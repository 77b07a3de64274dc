use serde_json::json;
use switchboard_protocol::types::decode;

use super::*;

fn field(schema: &Value, required: bool) -> Option<Field> {
    let raw = serde_json::value::to_raw_value(schema).unwrap();
    let schema: PrimitiveSchema<'_> = decode(&raw).unwrap();
    Field::of("field", &schema, required)
}

/// Asserts the result of typing this into a field with that schema.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a table of cases reads better"
)]
fn check(schema: Value, typed: &str, expected: Result<Value, &str>) {
    let read = field(&schema, true).unwrap().read(typed);
    let read = read.as_ref().map(|value| value.clone().unwrap());
    assert_eq!(read.map_err(String::as_str), expected, "{schema} {typed}");
}

#[test]
fn typed_text_is_parsed_by_the_schema() {
    let text = |more: Value| {
        let mut schema = json!({"type": "string"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema
    };
    check(text(json!({})), " a b ", Ok(json!(" a b ")));
    check(text(json!({})), "", Err("this field is required"));
    check(text(json!({"default": "d"})), "", Ok(json!("d")));
    let three = json!({"minLength": 3, "maxLength": 3});
    check(text(three.clone()), "äöü", Ok(json!("äöü")));
    check(text(three), "ab", Err("expected 3 characters, got 2"));
    check(
        text(json!({"maxLength": 2})),
        "abc",
        Err("expected at most 2 characters, got 3"),
    );
    let email = "this must be an e-mail address";
    for (typed, good) in [
        ("a@b.example", true),
        ("a@", false),
        ("a b@c", false),
        ("@b", false),
    ] {
        let expected = if good { Ok(json!(typed)) } else { Err(email) };
        check(text(json!({"format": "email"})), typed, expected);
    }
    let date = "this must be a date such as 2026-11-16";
    check(
        text(json!({"format": "date"})),
        " 2024-02-29 ",
        Ok(json!("2024-02-29")),
    );
    check(text(json!({"format": "date"})), "2023-02-29", Err(date));
    check(
        text(json!({"format": "date"})),
        "2023-02-28T00:00:00",
        Err(date),
    );
    let timestamp = "this must be a timestamp such as 2026-11-16T09:30:00Z";
    for (typed, good) in [
        ("2026-11-16T09:30:00Z", true),
        ("2026-11-16T09:30:00.5+02:00", true),
        ("2026-11-16T09:30:00", false),
        ("2026-11-16T09:30Z", false),
        ("2026-11-16T09:30:00+99:00", false),
        ("Z", false),
    ] {
        let expected = if good {
            Ok(json!(typed))
        } else {
            Err(timestamp)
        };
        check(text(json!({"format": "date-time"})), typed, expected);
    }
    check(
        text(json!({"format": "uri"})),
        "https://a.example/x",
        Ok(json!("https://a.example/x")),
    );
    check(
        text(json!({"format": "uri"})),
        "nothing",
        Err("this must be a URL such as https://…"),
    );

    let number = json!({"type": "number", "minimum": 0, "maximum": 10});
    check(number.clone(), "2.5", Ok(json!(2.5)));
    check(number.clone(), "+7", Ok(json!(7.0)));
    check(number.clone(), "NaN", Err("this is not a number"));
    check(number.clone(), "-1", Err("this must be at least 0"));
    check(number, "10.5", Err("this must be at most 10"));
    check(
        json!({"type": "integer"}),
        "12345678901234567890",
        Ok(json!(12_345_678_901_234_567_890_u64)),
    );
    check(
        json!({"type": "integer"}),
        "1.5",
        Err("this must be a whole number"),
    );
    check(json!({"type": "integer", "default": 5}), "", Ok(json!(5)));

    check(json!({"type": "boolean"}), "Yes", Ok(json!(true)));
    check(
        json!({"type": "boolean"}),
        "maybe",
        Err("this must be y or n"),
    );
    check(
        json!({"type": "boolean", "default": false}),
        "",
        Ok(json!(false)),
    );

    let one = json!({"type": "string", "enum": ["red", "green", "2"]});
    check(one.clone(), "1", Ok(json!("red")));
    check(one.clone(), "2", Ok(json!("2")));
    check(one.clone(), "GREEN", Ok(json!("green")));
    check(one.clone(), "4", Err("no such choice: \"4\""));
    check(one, "0", Err("no such choice: \"0\""));
    let titled = json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]});
    check(titled, "Red", Ok(json!("r")));
    let legacy = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red"]});
    check(legacy.clone(), "red", Ok(json!("r")));
    check(legacy, "g", Ok(json!("g")));
    let bad_default = json!({"type": "string", "enum": ["a"], "default": "x"});
    check(bad_default, "", Err("this field is required"));

    let many = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2});
    check(many.clone(), "1, b, a", Ok(json!(["a", "b"])));
    check(many.clone(), "a,b,c", Err("choose 1 to 2 values"));
    check(many, "", Err("this field is required"));
    let any = json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A one"}]}});
    check(any.clone(), "A one", Ok(json!(["a"])));
    check(any, "", Ok(json!([])));
}

#[test]
fn optional_fields_may_be_omitted() {
    for schema in [
        json!({"type": "string"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "string", "enum": ["a"]}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    ] {
        assert_eq!(
            field(&schema, false).unwrap().read(" "),
            Ok(None),
            "{schema}"
        );
    }
}

#[test]
fn unknown_types_are_rejected() {
    assert_eq!(field(&json!({"type": "object"}), false), None);
    assert_eq!(
        field(
            &json!({"type": "array", "items": {"type": "number"}}),
            false
        ),
        None
    );
}
