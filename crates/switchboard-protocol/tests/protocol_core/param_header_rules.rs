//! `x-mcp-header`: validity of annotations, mirroring, checking.

use switchboard_protocol::{
    headers::{HeaderMismatch, Mismatch, ReceivedHeaders, ValueError},
    param_headers::{AnnotationProblem, MirrorProblem, ParamHeaders},
};

use crate::raw;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "shard": {"type": "integer", "x-mcp-header": "Shard"},
        "dry": {"type": ["boolean", "null"], "x-mcp-header": "Dry-Run"},
        "query": {"type": "string"},
        "tenant": {
            "type": "object",
            "properties": {"zone": {"properties": {"name": {"type": "string", "x-mcp-header": "Zone"}}}}
        }
    }
}"#;

fn sent(arguments: Option<&str>) -> Result<Vec<String>, (String, MirrorProblem)> {
    let headers = ParamHeaders::from_schema(raw(SCHEMA)).unwrap();
    headers
        .headers(arguments.map(raw))
        .map(|headers| {
            headers
                .into_iter()
                .map(|header| format!("{}: {}", header.name, header.value))
                .collect()
        })
        .map_err(|error| (error.header, error.problem))
}

#[test]
fn arguments_are_mirrored_by_their_exact_path() {
    for (arguments, expected) in [
        (
            r#"{"region":"us-west1","query":"q"}"#,
            &["Mcp-Param-Region: us-west1"][..],
        ),
        (r#"{"shard":42}"#, &["Mcp-Param-Shard: 42"]),
        (r#"{"shard":-7}"#, &["Mcp-Param-Shard: -7"]),
        (r#"{"shard":42.0}"#, &["Mcp-Param-Shard: 42"]),
        (r#"{"shard":4.2e1}"#, &["Mcp-Param-Shard: 42"]),
        (
            r#"{"shard":9007199254740991}"#,
            &["Mcp-Param-Shard: 9007199254740991"],
        ),
        (r#"{"dry":true}"#, &["Mcp-Param-Dry-Run: true"]),
        (r#"{"dry":false}"#, &["Mcp-Param-Dry-Run: false"]),
        (r#"{"dry":null,"region":null}"#, &[]),
        ("{}", &[]),
        (r#"{"region":""}"#, &["Mcp-Param-Region: "]),
        (r#"{"region":" x"}"#, &["Mcp-Param-Region: =?base64?IHg=?="]),
        (
            r#"{"region":"\u00e9\n"}"#,
            &["Mcp-Param-Region: =?base64?w6kK?="],
        ),
        (
            r#"{"tenant":{"zone":{"name":"z"}}}"#,
            &["Mcp-Param-Zone: z"],
        ),
        (r#"{"tenant":{"zone":{"other":"z"}}}"#, &[]),
        (r#"{"tenant":{"zone":[{"name":"z"}]}}"#, &[]),
        (r#"{"tenant":"flat"}"#, &[]),
        (r#"{"other":{"region":"x"}}"#, &[]),
        (
            r#"{"region":"first","region":"last"}"#,
            &["Mcp-Param-Region: last"],
        ),
        (r#"{"r\u0065gion":"x"}"#, &["Mcp-Param-Region: x"]),
        (
            r#"{"shard":1,"region":"r","dry":true,"tenant":{"zone":{"name":"z"}}}"#,
            &[
                "Mcp-Param-Dry-Run: true",
                "Mcp-Param-Region: r",
                "Mcp-Param-Shard: 1",
                "Mcp-Param-Zone: z",
            ],
        ),
        ("[]", &[]),
        ("7", &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        assert_eq!(sent(Some(arguments)), Ok(expected), "{arguments}");
    }
    assert_eq!(sent(None), Ok(Vec::new()));
}

#[test]
fn arguments_that_cannot_be_mirrored_are_reported() {
    for (arguments, header, problem) in [
        (
            r#"{"shard":1.5}"#,
            "Mcp-Param-Shard",
            MirrorProblem::NotPrimitive,
        ),
        (
            r#"{"shard":9007199254740992}"#,
            "Mcp-Param-Shard",
            MirrorProblem::UnsafeInteger,
        ),
        (
            r#"{"shard":-9007199254740992}"#,
            "Mcp-Param-Shard",
            MirrorProblem::UnsafeInteger,
        ),
        (
            r#"{"shard":1e400}"#,
            "Mcp-Param-Shard",
            MirrorProblem::UnsafeInteger,
        ),
        (
            r#"{"region":["a"]}"#,
            "Mcp-Param-Region",
            MirrorProblem::NotPrimitive,
        ),
        (
            r#"{"region":{"a":1}}"#,
            "Mcp-Param-Region",
            MirrorProblem::NotPrimitive,
        ),
        (
            r#"{"region":"\ud800"}"#,
            "Mcp-Param-Region",
            MirrorProblem::NotText,
        ),
    ] {
        assert_eq!(
            sent(Some(arguments)),
            Err((header.to_owned(), problem)),
            "{arguments}"
        );
    }
}

/// Whether anything is mirrored, or the problem and its path.
fn read(schema: &str) -> Result<bool, (String, AnnotationProblem)> {
    ParamHeaders::from_schema(raw(schema))
        .map(|headers| !headers.is_empty())
        .map_err(|error| (error.path, error.problem))
}

#[test]
fn schemas_without_annotations_mirror_nothing() {
    for schema in [
        "{}",
        "true",
        "null",
        "[]",
        r#"{"properties":null}"#,
        r#"{"properties":{"a":true}}"#,
        // Names and data that only look like annotations.
        r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#,
        r#"{"$defs":{"x-mcp-header":{"type":"string"}}}"#,
        r#"{"properties":{"a":{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":1}]}}}"#,
        r#"{"description":"x-mcp-header","const":{"x-mcp-header":""}}"#,
    ] {
        assert_eq!(read(schema), Ok(false), "{schema}");
    }
}

#[test]
fn valid_annotations_are_found() {
    for schema in [
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"integer","x-mcp-header":"A!#$%&'*+-.^_`|~9"}}}"#,
        r#"{"properties":{"a":{"type":["integer","null"],"x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-h\u0065ader":"A"}}}"#,
        r#"{"properties":{"properties":{"properties":{"items":{"type":"string","x-mcp-header":"A"}}}}}"#,
    ] {
        assert_eq!(read(schema), Ok(true), "{schema}");
    }
}

#[test]
fn invalid_annotations_are_reported_with_path_and_reason() {
    use AnnotationProblem::{Duplicate, Empty, NotAString, NotAToken, NotPrimitive, NotReachable};
    let on = |annotated: &str| format!(r#"{{"properties":{{"a":{annotated}}}}}"#);
    for (schema, path, problem) in [
        (on(r#"{"type":"string","x-mcp-header":""}"#), "/properties/a", Empty),
        (on(r#"{"type":"string","x-mcp-header":7}"#), "/properties/a", NotAString),
        (on(r#"{"type":"string","x-mcp-header":null}"#), "/properties/a", NotAString),
        (on(r#"{"type":"string","x-mcp-header":"a b"}"#), "/properties/a", NotAToken("a b".into())),
        (on(r#"{"type":"string","x-mcp-header":"a:b"}"#), "/properties/a", NotAToken("a:b".into())),
        (on(r#"{"type":"string","x-mcp-header":"a\r\nb"}"#), "/properties/a", NotAToken("a\r\nb".into())),
        (on(r#"{"type":"string","x-mcp-header":"é"}"#), "/properties/a", NotAToken("é".into())),
        (on(r#"{"type":"number","x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (on(r#"{"type":"object","x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (on(r#"{"type":"array","x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (on(r#"{"type":["string","number"],"x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (on(r#"{"type":["null"],"x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (on(r#"{"type":[],"x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (on(r#"{"x-mcp-header":"A"}"#), "/properties/a", NotPrimitive),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"Key"},"b":{"type":"string","x-mcp-header":"KEY"}}}"#.into(),
            "/properties/b",
            Duplicate("KEY".into()),
        ),
        (r#"{"type":"object","x-mcp-header":"A"}"#.into(), "", NotReachable),
        (
            on(r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#),
            "/properties/a/items",
            NotReachable,
        ),
        (
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#.into(),
            "/anyOf/properties/a",
            NotReachable,
        ),
        (
            r#"{"allOf":[{"x-mcp-header":"A"}]}"#.into(),
            "/allOf",
            NotReachable,
        ),
        (
            r#"{"if":{"properties":{"a":{"x-mcp-header":"A"}}}}"#.into(),
            "/if/properties/a",
            NotReachable,
        ),
        (
            r##"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/d"}}}"##.into(),
            "/$defs/d",
            NotReachable,
        ),
        (
            r#"{"patternProperties":{"a/b~":{"type":"string","x-mcp-header":"A"}}}"#.into(),
            "/patternProperties/a~1b~0",
            NotReachable,
        ),
        (
            on(r#"{"properties":{"b":{"not":{"x-mcp-header":"A"}}}}"#),
            "/properties/a/properties/b/not",
            NotReachable,
        ),
        (
            r#"{"additionalProperties":{"type":"string","x-mcp-header":"A"}}"#.into(),
            "/additionalProperties",
            NotReachable,
        ),
    ] {
        assert_eq!(read(&schema), Err((path.to_owned(), problem)), "{schema}");
    }
}

#[test]
fn a_schema_too_deep_to_read_is_refused() {
    let deep = format!(
        "{}{}{}",
        r#"{"properties":{"a":"#.repeat(200),
        r#"{"x-mcp-header":"A"}"#,
        "}}".repeat(200)
    );
    assert_eq!(
        read(&deep),
        Err((String::new(), AnnotationProblem::UnreadableSchema))
    );
}

fn checked(received: &[(&str, &str)], arguments: &str) -> Result<(), HeaderMismatch> {
    let received: ReceivedHeaders<'_> = received
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    ParamHeaders::from_schema(raw(SCHEMA))
        .unwrap()
        .check(&received, Some(raw(arguments)))
}

#[test]
fn agreeing_headers_pass() {
    for (received, arguments) in [
        (&[("mcp-param-region", "r")][..], r#"{"region":"r"}"#),
        (
            &[("Mcp-Param-Region", "=?base64?cg==?=")],
            r#"{"region":"r"}"#,
        ),
        (&[("Mcp-Param-Shard", "42")], r#"{"shard":42.0}"#),
        (&[("Mcp-Param-Shard", "42.0")], r#"{"shard":42}"#),
        (&[("Mcp-Param-Dry-Run", "true")], r#"{"dry":true}"#),
        (
            &[("Mcp-Param-Zone", "z")],
            r#"{"tenant":{"zone":{"name":"z"}}}"#,
        ),
        (&[("Mcp-Param-Unknown", "x")], "{}"),
        (&[], r#"{"region":null}"#),
        (&[], "{}"),
        (&[], r#"{"region":["invalid by the schema"]}"#),
    ] {
        assert_eq!(
            checked(received, arguments),
            Ok(()),
            "{received:?} {arguments}"
        );
    }
}

#[test]
fn disagreeing_headers_are_named() {
    let differs = |header: &str, body: &str| Mismatch::Differs {
        header: header.to_owned(),
        body: body.to_owned(),
    };
    for (received, arguments, header, mismatch) in [
        (
            &[][..],
            r#"{"region":"r"}"#,
            "Mcp-Param-Region",
            Mismatch::Missing { body: "r".into() },
        ),
        (
            &[("Mcp-Param-Region", "x")],
            r#"{"region":"r"}"#,
            "Mcp-Param-Region",
            differs("x", "r"),
        ),
        (
            &[("Mcp-Param-Region", "R")],
            r#"{"region":"r"}"#,
            "Mcp-Param-Region",
            differs("R", "r"),
        ),
        (
            &[("Mcp-Param-Shard", "43")],
            r#"{"shard":42}"#,
            "Mcp-Param-Shard",
            differs("43", "42"),
        ),
        (
            &[("Mcp-Param-Shard", "0x2a")],
            r#"{"shard":42}"#,
            "Mcp-Param-Shard",
            differs("0x2a", "42"),
        ),
        (
            &[("Mcp-Param-Dry-Run", "True")],
            r#"{"dry":true}"#,
            "Mcp-Param-Dry-Run",
            differs("True", "true"),
        ),
        (
            &[("Mcp-Param-Region", "1.0")],
            r#"{"region":"1"}"#,
            "Mcp-Param-Region",
            differs("1.0", "1"),
        ),
        (
            &[("Mcp-Param-Region", "r")],
            r#"{"region":null}"#,
            "Mcp-Param-Region",
            Mismatch::Unexpected { header: "r".into() },
        ),
        (
            &[("Mcp-Param-Region", "r")],
            "{}",
            "Mcp-Param-Region",
            Mismatch::Unexpected { header: "r".into() },
        ),
        (
            &[("Mcp-Param-Region", "r"), ("mcp-param-region", "r")],
            r#"{"region":"r"}"#,
            "Mcp-Param-Region",
            Mismatch::Repeated,
        ),
        (
            &[("Mcp-Param-Region", "=?base64?*?=")],
            r#"{"region":"r"}"#,
            "Mcp-Param-Region",
            Mismatch::Unreadable(ValueError::Base64),
        ),
    ] {
        let error = checked(received, arguments).unwrap_err();
        assert_eq!(
            (error.header.as_str(), error.mismatch),
            (header, mismatch),
            "{received:?} {arguments}"
        );
    }
}
