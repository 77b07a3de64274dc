//! Lenient decoding of types: a defect affects only the part that has it, and is reported afterwards.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod features;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_protocol::Limits;
use switchboard_protocol::types::content::ContentBlock;
use switchboard_protocol::types::notification::CancelledNotificationParams;
use switchboard_protocol::types::prompt::ListPromptsResult;
use switchboard_protocol::types::resource::{ListResourcesResult, ReadResourceResult};
use switchboard_protocol::types::tool::{CallToolResult, ListToolsResult, Tool};
use switchboard_protocol::types::wire::Lint;
use switchboard_protocol::types::{
    Decode, DecodeErrorKind, Encode, IntoOwned, Number, decode, decode_within, defects, encode,
};

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).expect("valid JSON")
}

/// Decodes `text`, checks its defects, and checks that it encodes to an equivalent.
#[track_caller]
fn check<'a, T: Decode<'a> + Encode + Lint>(text: &'a str, expected: &[&str]) -> T {
    let value: T = decode(raw(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    let found: Vec<String> = defects(&value).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{text}");
    let written: Value = serde_json::from_str(&encode(&value)).expect("valid JSON");
    assert_eq!(
        written,
        serde_json::from_str::<Value>(text).expect("valid JSON"),
        "{text}"
    );
    value
}

/// Checks that decoding `text` fails with this message.
#[track_caller]
fn check_fails<'a, T: Decode<'a> + std::fmt::Debug>(text: &'a str, message: &str) {
    let error = decode::<T>(raw(text)).expect_err(text);
    assert_eq!(error.to_string(), message, "{text}");
}

#[test]
fn optional_fields_of_the_wrong_type_count_as_absent() {
    let tool: Tool<'_> = check(
        r#"{"name":"a","title":5,"description":null,"inputSchema":null,"annotations":"yes","icons":7,"execution":[],"_meta":1,"outputSchema":true}"#,
        &[
            "title: expected a string, found a number",
            "description: expected a string, found null",
            "inputSchema: expected an object, found null",
            "outputSchema: expected an object, found a boolean",
            "annotations: expected an object, found a string",
            "execution: expected an object, found an array",
            "_meta: expected an object, found a number",
            "icons: expected an array, found a number",
        ],
    );
    assert_eq!(tool.title, None);
    assert_eq!(tool.input_schema, None);
    assert_eq!(tool.extra.len(), 8);
    assert_eq!(tool.extra.get("title").expect("kept").get(), "5");
}

#[test]
fn an_invalid_tool_does_not_affect_the_others() {
    let list: ListToolsResult<'_> = check(
        r#"{"tools":[{"name":"first"},{"title":"nameless"},{"name":7,"inputSchema":{}},"what",null,{"name":"last","annotations":{"readOnlyHint":"true"}}],"nextCursor":null}"#,
        &[
            "nextCursor: expected a string, found null",
            "tools[1]: missing field `name`",
            "tools[2]: name: expected a string, found a number",
            "tools[3]: expected an object, found a string",
            "tools[4]: expected an object, found null",
            "tools[5].annotations.readOnlyHint: expected a boolean, found a string",
        ],
    );
    let names: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["first", "last"]);
    assert_eq!(list.tools.set_aside[0].raw.get(), r#"{"title":"nameless"}"#);
}

#[test]
fn entries_set_aside_are_reported_by_name() {
    let list: ListResourcesResult<'_> = check(
        r#"{"resources":[{"uri":"file:///a"},{"name":"b"},{"uri":"c","name":"c","size":"big","mimeType":[]}]}"#,
        &[
            "resources[0] (file:///a): missing field `name`",
            "resources[1] (b): missing field `uri`",
            "resources[2].mimeType: expected a string, found an array",
            "resources[2].size: expected a number, found a string",
        ],
    );
    assert_eq!(list.resources.len(), 1);
}

#[test]
fn a_required_list_of_the_wrong_type_fails() {
    check_fails::<ListToolsResult<'_>>(
        r#"{"tools":{"add":{"description":"a map by name"}}}"#,
        "tools: expected an array, found an object",
    );
    check_fails::<ListToolsResult<'_>>(r#"{"tools":null}"#, "tools: expected an array, found null");
    check_fails::<ListToolsResult<'_>>("{}", "missing field `tools`");
    check_fails::<ListToolsResult<'_>>("[]", "expected an object, found an array");
    check_fails::<ListPromptsResult<'_>>(
        r#"{"prompts":1}"#,
        "prompts: expected an array, found a number",
    );
    check_fails::<ReadResourceResult<'_>>("{}", "missing field `contents`");
}

#[test]
fn limits_have_their_own_error() {
    let limits = Limits {
        max_items: 2,
        ..Limits::DEFAULT
    };
    let fails = |text: &str| {
        decode_within::<ListToolsResult<'_>>(raw(text), &limits)
            .expect_err("over the limit")
            .kind()
            .clone()
    };
    assert_eq!(
        fails(r#"{"tools":[1,2,3]}"#),
        DecodeErrorKind::TooManyItems { limit: 2 }
    );
    assert_eq!(
        fails(r#"{"tools":[],"a":1,"b":2,"c":3}"#),
        DecodeErrorKind::TooManyFields { limit: 2 }
    );
    let fine: ListToolsResult<'_> =
        decode_within(raw(r#"{"tools":[1,2],"a":1,"b":2}"#), &limits).expect("at the limit");
    assert_eq!(fine.tools.set_aside.len(), 2);
    // An invalid optional list does not affect the rest.
    let prompts: ListPromptsResult<'_> = decode_within(
        raw(r#"{"prompts":[{"name":"a","arguments":[1,2,3]}]}"#),
        &limits,
    )
    .expect("the list is short");
    assert!(prompts.prompts[0].extra.get("arguments").is_some());
}

#[test]
fn invalid_content_blocks_do_not_affect_the_others() {
    let result: CallToolResult<'_> = check(
        r#"{"content":[{"type":"text","text":"good"},{"type":"hologram","voxels":[1.50]},{"type":"text"},{"text":"no type"},{"type":7},{"type":"image","data":"AA=="},{"type":"resource","resource":{"uri":"u"}},{"type":"text","text":"also good"}]}"#,
        &[
            "content[2] (text): missing field `text`",
            "content[3]: missing field `type`",
            "content[4]: type: expected a string, found a number",
            "content[5] (image): missing field `mimeType`",
            "content[6] (resource): resource: missing field `text`",
        ],
    );
    assert_eq!(result.content.len(), 3);
    let ContentBlock::Unknown(unknown) = &result.content[1] else {
        panic!("a hologram is unknown");
    };
    assert_eq!(unknown.get(), r#"{"type":"hologram","voxels":[1.50]}"#);
}

#[test]
fn results_without_content_are_results() {
    let result: CallToolResult<'_> = check(r#"{"structuredContent":{"a":1}}"#, &[]);
    assert!(result.content.is_empty());
    check::<CallToolResult<'_>>("{}", &[]);
    check::<CallToolResult<'_>>(r#"{"content":[]}"#, &[]);
    check::<CallToolResult<'_>>(
        r#"{"content":"just text","isError":"false"}"#,
        &[
            "isError: expected a boolean, found a string",
            "content: expected an array, found a string",
            "content[0]: expected an object, found a string",
        ],
    );
    check::<CallToolResult<'_>>(r#"{"toolResult":"from 2024-10-07"}"#, &[]);
}

/// The model must see what a hand-written server returns from a tool.
#[test]
fn content_may_lack_its_array_or_block() {
    let texts = |text: &str, defects: &[&str]| -> Vec<String> {
        let result: CallToolResult<'_> = check(text, defects);
        let texts = result.content.iter().filter_map(ContentBlock::as_text);
        texts.map(|text| text.decode().into_owned()).collect()
    };
    assert_eq!(
        texts(
            r#"{"content":{"type":"text","text":"18 \u00b0C"}}"#,
            &["content: expected an array, found an object"]
        ),
        ["18 °C"]
    );
    assert_eq!(
        texts(
            r#"{"content":"plain"}"#,
            &[
                "content: expected an array, found a string",
                "content[0]: expected an object, found a string"
            ]
        ),
        ["plain"]
    );
    assert_eq!(
        texts(
            r#"{"content":["one",{"type":"text","text":"two"},3]}"#,
            &[
                "content[2]: expected an object, found a number",
                "content[0]: expected an object, found a string"
            ]
        ),
        ["one", "two"]
    );
    assert_eq!(
        texts(
            r#"{"content":{}}"#,
            &["content: expected an array, found an object"]
        ),
        [""; 0]
    );
    assert_eq!(
        texts(
            r#"{"content":{"temperature":18}}"#,
            &["content: expected an array, found an object"]
        ),
        [""; 0]
    );
    assert_eq!(
        texts(
            r#"{"content":null}"#,
            &["content: expected an array, found null"]
        ),
        [""; 0]
    );
}

#[test]
fn a_list_of_one_may_lack_its_brackets() {
    let list: ListToolsResult<'_> = check(
        r#"{"tools":{"name":"only","icons":{"src":"https://e.com/i.png","sizes":"48x48"}}}"#,
        &[
            "tools: expected an array, found an object",
            "tools[0].icons: expected an array, found an object",
            "tools[0].icons[0].sizes: expected an array, found a string",
        ],
    );
    assert_eq!(list.tools[0].icons[0].sizes.items, ["48x48"]);
    let owned = list.into_owned();
    // A list that has grown is encoded as an array.
    let mut grown = owned.clone();
    grown.tools.push(Tool::new("second".into()));
    assert!(encode(&grown).starts_with(r#"{"tools":[{"name":"only""#));
    assert_eq!(
        decode::<ListToolsResult<'_>>(raw(&encode(&owned))),
        Ok(owned.clone())
    );

    let read: ReadResourceResult<'_> = check(
        r#"{"contents":{"uri":"file:///a","text":"a"}}"#,
        &["contents: expected an array, found an object"],
    );
    assert_eq!(read.contents.len(), 1);
    // Lua does not distinguish empty lists from empty maps.
    let none: ListPromptsResult<'_> = check(
        r#"{"prompts":{ }}"#,
        &["prompts: expected an array, found an object"],
    );
    assert!(none.prompts.is_empty());
}

#[test]
fn the_last_value_of_a_repeated_field_counts() {
    let decode_tool = |text: &'static str| -> Tool<'static> { check(text, &[]) };
    assert_eq!(decode_tool(r#"{"name":"a","name":"b"}"#).name, "b");
    let corrected = decode_tool(r#"{"name":"a","title":5,"x":1,"title":"t"}"#);
    assert_eq!(corrected.title.as_deref(), Some("t"));
    assert_eq!(corrected.extra.len(), 1);
    let spoiled: Tool<'_> = check(
        r#"{"name":"a","title":"t","title":5}"#,
        &["title: expected a string, found a number"],
    );
    assert_eq!(spoiled.title, None);
    // The type of a block must not depend on the reader.
    check::<CallToolResult<'_>>(
        r#"{"content":[{"type":"text","text":"t","type":"image"}]}"#,
        &[r#"content[0] (image): expected `type` to be `text`, found "image""#],
    );
}

#[test]
fn escaped_names_are_recognised() {
    let tool: Tool<'_> = check(
        r#"{"n\u0061me":"\u0061","\u0074itle":"t","x\u0021":1}"#,
        &[],
    );
    assert_eq!((&*tool.name, tool.title.as_deref()), ("a", Some("t")));
    assert_eq!(
        encode(&tool),
        r#"{"name":"a","title":"t","x\u0021":1}"#,
        "unknown names as written"
    );
}

#[test]
fn texts_with_lone_surrogates_decode() {
    let text = r#"{"content":[{"type":"text","text":"cut \ud83d"}]}"#;
    let result: CallToolResult<'_> = decode(raw(text)).expect("decodes");
    let ContentBlock::Text(block) = &result.content[0] else {
        panic!("a text");
    };
    assert_eq!(block.text.decode(), "cut \u{fffd}");
    assert_eq!(encode(&result), text);
}

#[test]
fn large_text_is_borrowed() {
    let long = "x".repeat(1 << 20);
    for (block, is_plain) in [
        (format!(r#"{{"type":"text","text":"{long}"}}"#), true),
        (format!(r#"{{"text":"{long}","type":"text"}}"#), true),
        (
            format!(r#"{{"text":"{long}\n\"{long}","type":"text"}}"#),
            false,
        ),
    ] {
        let text = format!(r#"{{"content":[{block}]}}"#);
        let result: CallToolResult<'_> = decode(raw(&text)).expect("decodes");
        let ContentBlock::Text(block) = &result.content[0] else {
            panic!("a text");
        };
        let inside = text.as_bytes().as_ptr_range();
        assert!(
            inside.contains(&block.text.as_escaped().as_ptr()),
            "not a copy"
        );
        assert_eq!(block.text.is_borrowed(), is_plain);
    }
}

#[test]
fn numbers_are_preserved_verbatim() {
    let params: CancelledNotificationParams<'_> = check(r#"{"requestId":7.0}"#, &[]);
    assert_eq!(encode(&params), r#"{"requestId":7.0}"#);
    let number = |text: &'static str| -> Number<'static> { decode(raw(text)).expect("a number") };
    let table = [
        ("60000", Some(60_000), Some(60_000)),
        ("60000.0", Some(60_000), Some(60_000)),
        ("6e4", Some(60_000), Some(60_000)),
        ("-1", None, Some(-1)),
        ("-0.0", Some(0), Some(0)),
        ("1.5", None, None),
        ("1e400", None, None),
        ("18446744073709551615", Some(u64::MAX), None),
        ("99999999999999999999999999999999999999999", None, None),
    ];
    for (text, unsigned, signed) in table {
        assert_eq!(
            (number(text).as_u64(), number(text).as_i64()),
            (unsigned, signed),
            "{text}"
        );
    }
    assert_eq!(Number::from_f64(f64::NAN), None);
}

#[test]
fn hostile_nesting_is_set_aside() {
    let deep = |levels: usize| {
        let open = r#"{"type":"tool_result","toolUseId":"i","content":["#.repeat(levels);
        format!(r#"{{"content":[{open}{}]}}"#, "]}".repeat(levels))
    };
    let shallow = deep(3);
    assert_eq!(
        defects(&decode::<CallToolResult<'_>>(raw(&shallow)).expect("decodes")),
        []
    );
    let hostile = deep(100_000);
    let result: CallToolResult<'_> = decode(raw(&hostile)).expect("decodes");
    let found = defects(&result);
    assert_eq!(found.len(), 1);
    assert_eq!(
        *found[0].reason.kind(),
        DecodeErrorKind::TooDeep { limit: 8 }
    );
    assert_eq!(encode(&result), hostile);
    let schema = format!(
        r#"{{"name":"a","inputSchema":{}1{}}}"#,
        r#"{"a":"#.repeat(50_000),
        "}".repeat(50_000)
    );
    assert!(
        decode::<Tool<'_>>(raw(&schema))
            .expect("decodes")
            .input_schema
            .is_some()
    );
}

#[test]
fn whitespace_between_tokens_is_ignored() {
    let list: ListToolsResult<'_> = check(
        " {\n\t\"tools\" : [ { \"name\" : \"a\" , \"x\" : [ 1 , { } ] } , 5 ] , \"nextCursor\" : \"c\"\r\n} ",
        &["tools[1]: expected an object, found a number"],
    );
    assert_eq!(list.next_cursor.as_deref(), Some("c"));
    let owned = list.into_owned();
    assert_eq!(
        owned.tools[0].extra.get("x").expect("kept").get(),
        "[ 1 , { } ]"
    );
}

/// Ids in parameters compare like ids of messages: a server may cancel `1.0` after receiving `1`.
#[test]
fn ids_within_parameters_are_compared_by_meaning() {
    use switchboard_protocol::types::notification::CancelledNotificationParams;

    let cancelled = |text: &str| -> CancelledNotificationParams<'static> {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        decode::<CancelledNotificationParams<'_>>(&raw)
            .unwrap()
            .into_owned()
    };
    let one = cancelled(r#"{"requestId":1}"#);
    assert_eq!(one, cancelled(r#"{"requestId":1.0}"#));
    assert_ne!(one, cancelled(r#"{"requestId":"1"}"#));
    // Encoded verbatim.
    assert_eq!(
        encode(&cancelled(r#"{"requestId":1.0}"#)),
        r#"{"requestId":1.0}"#
    );
}
