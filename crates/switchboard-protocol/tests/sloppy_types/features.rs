//! Lenient decoding by feature: result types, input, forms, handshakes, hints.

use switchboard_protocol::meta::MetaMembers;
use switchboard_protocol::text::JsonStr;
use switchboard_protocol::types::cache::{CacheHint, Cacheable};
use switchboard_protocol::types::capabilities::{ClientCapabilities, ServerCapabilities};
use switchboard_protocol::types::completion::CompleteResult;
use switchboard_protocol::types::content::{ContentBlock, Role};
use switchboard_protocol::types::elicitation::ElicitRequestParams;
use switchboard_protocol::types::elicitation_schema::PrimitiveSchema;
use switchboard_protocol::types::input::{InputRequest, InputRequiredResult, InputResponse};
use switchboard_protocol::types::lifecycle::{
    DiscoverResult, EmptyResult, InitializeResult, PaginatedRequestParams,
};
use switchboard_protocol::types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use switchboard_protocol::types::method::{
    CallTool, Initialized, ListTools, Notification, Request,
};
use switchboard_protocol::types::notification::NotificationParams;
use switchboard_protocol::types::prompt::GetPromptResult;
use switchboard_protocol::types::resource::ResourceContents;
use switchboard_protocol::types::sampling::CreateMessageRequestParams;
use switchboard_protocol::types::task::{CreatedTask, Task};
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, ListToolsResult};
use switchboard_protocol::types::{Outcome, Raw, ResultBody, decode, decode_result, encode};
use switchboard_protocol::{ErrorCode, ErrorObject};

use super::{check, check_fails, raw};

#[track_caller]
fn outcome<'a, T: ResultBody<'a>>(text: &'a str) -> Result<Outcome<'a, T>, String> {
    decode_result(raw(text)).map_err(|error| error.to_string())
}

#[test]
fn result_types_decide() {
    type Call<'a> = Outcome<'a, CallToolResult<'a>>;
    let call = |text: &'static str| -> Result<Call<'static>, String> { outcome(text) };
    assert!(matches!(
        call(r#"{"content":[]}"#),
        Ok(Outcome::Complete(_))
    ));
    assert!(matches!(
        call(r#"{"content":[],"resultType":"complete"}"#),
        Ok(Outcome::Complete(_))
    ));
    assert!(matches!(
        call(r#"{"content":[],"resultType":null}"#),
        Ok(Outcome::Complete(_))
    ));
    assert!(matches!(
        call(r#"{"resultType":"input_required","requestState":"s"}"#),
        Ok(Outcome::InputRequired(InputRequiredResult {
            request_state: Some(_),
            ..
        }))
    ));
    assert!(matches!(
        call(r#"{"resultType":"input\u005frequired","content":[]}"#),
        Ok(Outcome::InputRequired(_))
    ));
    assert!(matches!(
        call(r#"{"taskId":"1","status":"working","resultType":"task"}"#),
        Ok(Outcome::Task(CreatedTask::Flat(_)))
    ));
    assert!(matches!(
        call(r#"{"task":{"taskId":"1","status":"working"}}"#),
        Ok(Outcome::Task(CreatedTask::Nested(_)))
    ));
    assert!(matches!(
        call(r#"{"task":"a field of the tool's own","content":[]}"#),
        Ok(Outcome::Complete(_))
    ));
    assert_eq!(
        call(r#"{"content":[],"resultType":"maybe"}"#).unwrap_err(),
        r#"unknown `resultType` "maybe""#
    );
    assert_eq!(
        call(r#"{"resultType":5}"#).unwrap_err(),
        "unknown `resultType` 5"
    );
    assert_eq!(
        call(r#"{"resultType":"task"}"#).unwrap_err(),
        "missing field `taskId`"
    );
    assert_eq!(
        call("[1]").unwrap_err(),
        "expected an object, found an array"
    );
    assert_eq!(
        outcome::<ListToolsResult<'_>>(r#"{"resultType":"input_required"}"#).unwrap_err(),
        "this method may not answer with `resultType` `input_required`"
    );
    assert_eq!(
        outcome::<GetPromptResult<'_>>(r#"{"resultType":"task","taskId":"1","status":"working"}"#)
            .unwrap_err(),
        "this method may not answer with `resultType` `task`"
    );
}

/// A ping answered with `null`, and empty results of PHP servers.
#[test]
fn null_and_empty_arrays_are_empty_results() {
    for text in ["null", "[]", "[ ]", "{}"] {
        assert_eq!(
            outcome::<EmptyResult<'_>>(text),
            Ok(Outcome::Complete(EmptyResult::new())),
            "{text}"
        );
        assert_eq!(
            outcome::<CallToolResult<'_>>(text),
            Ok(Outcome::Complete(CallToolResult::new())),
            "{text}"
        );
    }
    // If content is required, the error names the original type.
    assert_eq!(
        outcome::<ListToolsResult<'_>>("null").unwrap_err(),
        "expected an object, found null"
    );
    assert_eq!(
        outcome::<EmptyResult<'_>>("\"pong\"").unwrap_err(),
        "expected an object, found a string"
    );
}

#[test]
fn absent_params_are_empty() {
    for params in [None, Some("{}"), Some("null"), Some("[]")] {
        assert_eq!(
            ListTools::decode_params(params.map(raw)),
            Ok(PaginatedRequestParams::new()),
            "{params:?}"
        );
        assert_eq!(
            Initialized::decode_params(params.map(raw)),
            Ok(NotificationParams::new()),
            "{params:?}"
        );
    }
    let fails = |params: Option<&'static str>| {
        CallTool::decode_params(params.map(raw))
            .expect_err("a name is needed")
            .to_string()
    };
    assert_eq!(fails(None), "missing field `name`");
    assert_eq!(fails(Some("[]")), "expected an object, found an array");
}

#[test]
fn typed_messages_are_encoded() {
    let mut members = MetaMembers::new();
    members.set("progressToken", &7).expect("JSON");
    let mut written = Vec::new();
    let params = CallToolRequestParams::new("get_weather".into());
    CallTool::encode_request(&mut written, &7.into(), &params, &members).expect("JSON");
    written.push(b'\n');
    let result = CallToolResult {
        content: vec![ContentBlock::text("18")].into(),
        ..CallToolResult::new()
    };
    CallTool::encode_response(&mut written, &7.into(), &result).expect("JSON");
    written.push(b'\n');
    Initialized::encode_notification(&mut written, &NotificationParams::new()).expect("JSON");
    assert_eq!(
        String::from_utf8(written).expect("text"),
        [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"get_weather"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"18"}]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#,
        ]
        .join("\n")
    );
}

#[test]
fn a_tools_own_task_member_is_not_a_protocol_task() {
    let text = r#"{"task":{"id":5,"title":"water the plants"},"structuredContent":{"ok":true}}"#;
    let Ok(Outcome::Complete(result)) = outcome::<CallToolResult<'_>>(text) else {
        panic!("an answer");
    };
    assert_eq!(
        result.extra.get("task").map(Raw::get),
        Some(r#"{"id":5,"title":"water the plants"}"#)
    );
}

#[test]
fn a_failure_is_recognised_in_any_type() {
    for (written, expected) in [
        ("true", true),
        ("\"true\"", true),
        ("\"True\"", true),
        ("1", true),
        ("false", false),
        ("\"false\"", false),
        ("0", false),
        ("null", false),
        ("\"\"", false),
    ] {
        let text = format!(r#"{{"content":[],"isError":{written}}}"#);
        let result: CallToolResult<'_> = decode(raw(&text)).expect("decodes");
        assert_eq!(result.is_error(), expected, "{text}");
    }
}

#[test]
fn contents_with_both_fields_use_the_non_empty_one() {
    let kind = |text: &str, blob: &str| {
        let text = format!(r#"{{"uri":"u","text":{text},"blob":{blob}}}"#);
        let contents: ResourceContents<'_> = check(&text, &[]);
        match contents {
            ResourceContents::Text(contents) => format!("text {}", contents.text.decode()),
            ResourceContents::Blob(contents) => format!("blob {}", contents.blob.decode()),
        }
    };
    let (empty, data, words) = ("\"\"", "\"AA==\"", "\"t\"");
    assert_eq!(kind(empty, data), "blob AA==");
    assert_eq!(kind(words, empty), "text t");
    assert_eq!(kind(empty, empty), "text ");
    assert_eq!(kind(words, data), "text t");
    assert_eq!(kind(empty, "null"), "text ");
    assert_eq!(kind("null", data), "blob AA==");
}

#[test]
fn an_invalid_input_request_does_not_affect_the_others() {
    let result: InputRequiredResult<'_> = check(
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create"},"c":{"method":"tea/make","params":{}},"d":5,"e":{"method":"elicitation/create","params":{"mode":"telepathy","message":"?"}}}}"#,
        &[
            "inputRequests[\"b\"] (b): missing field `params`",
            "inputRequests[\"d\"] (d): expected an object, found a number",
        ],
    );
    let known: Vec<&str> = result.input_requests.iter().map(|(key, _)| key).collect();
    assert_eq!(known, ["a", "c", "e"]);
    let request = result.input_requests.get("a").expect("there");
    let response = raw(r#"{"roots":[{"uri":"file:///x"}]}"#);
    let response = decode(response).expect("an object");
    assert!(matches!(
        request.decode_response(&response),
        Ok(InputResponse::ListRoots(_))
    ));
    assert!(matches!(
        result.input_requests.get("c"),
        Some(InputRequest::Unknown(_))
    ));
}

#[test]
fn forms_preserve_unknown_fields() {
    let params: ElicitRequestParams<'_> = check(
        r#"{"message":"m","requestedSchema":{"properties":{"a":{"type":"string","enum":["x"],"default":3},"b":{"type":"object"},"c":{"type":"array","items":{"type":"number"}},"d":"string","e":{"type":"string","oneOf":[{"const":"k"},{"title":"no value"}]}}}}"#,
        &[
            "requestedSchema.properties[\"d\"] (d): expected an object, found a string",
            "requestedSchema.properties[\"a\"].default: expected a string, found a number",
            "requestedSchema.properties[\"e\"].oneOf[1]: missing field `const`",
        ],
    );
    let ElicitRequestParams::Form(form) = params else {
        panic!("a form");
    };
    let properties = &form.requested_schema.properties;
    assert!(matches!(
        properties.get("a"),
        Some(PrimitiveSchema::UntitledSingleSelect(_))
    ));
    assert!(matches!(
        properties.get("b"),
        Some(PrimitiveSchema::Unknown(_))
    ));
    assert!(matches!(
        properties.get("c"),
        Some(PrimitiveSchema::Unknown(_))
    ));
}

#[test]
fn the_last_type_of_a_form_field_counts() {
    let text = r#"{"type":"integer","type":"integur"}"#;
    let field: PrimitiveSchema<'_> = decode(raw(text)).unwrap();
    assert!(matches!(field, PrimitiveSchema::Unknown(_)), "{field:?}");
    let text = r#"{"type":"integur","type":"integer"}"#;
    let field: PrimitiveSchema<'_> = decode(raw(text)).unwrap();
    let PrimitiveSchema::Number(number) = field else {
        panic!("{field:?}");
    };
    assert_eq!(encode(&number), r#"{"type":"integer"}"#);
}

#[test]
fn unknown_enum_values_are_preserved() {
    let message: LoggingMessageNotificationParams<'_> =
        check(r#"{"level":"warn","data":{"any":["thing"]}}"#, &[]);
    assert_eq!(message.level, LoggingLevel::Other("warn".into()));
    let prompt: GetPromptResult<'_> = check(
        r#"{"messages":[{"role":"system","content":{"type":"text","text":"t"}},{"role":"user","content":"bare"},{"role":"user"}],"description":""}"#,
        &[
            "messages[2]: missing field `content`",
            "messages[1].content: expected an object, found a string",
        ],
    );
    assert_eq!(
        prompt.messages[1].content.as_text().map(JsonStr::decode),
        Some("bare".into())
    );
    assert_eq!(prompt.messages[0].role, Role::Other("system".into()));
}

#[test]
fn handshakes_need_only_their_version() {
    let result: InitializeResult<'_> = check(
        r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":true,"logging":true,"resources":{"subscribe":1}},"serverInfo":{"name":"s","version":1}}"#,
        &[
            "capabilities.tools: expected an object, found a boolean",
            "capabilities.resources.subscribe: expected a boolean, found a number",
            "serverInfo.version: expected a string, found a number",
        ],
    );
    let capabilities = result.capabilities.expect("there");
    assert!(capabilities.logging.is_some());
    assert!(capabilities.tools.is_none() && capabilities.offers_tools());
    assert!(!capabilities.offers_prompts());
    check::<InitializeResult<'_>>(r#"{"protocolVersion":"2025-03-26"}"#, &[]);
    check_fails::<InitializeResult<'_>>(
        r#"{"protocolVersion":20250326}"#,
        "protocolVersion: expected a string, found a number",
    );
    let discovered: DiscoverResult<'_> = check(
        r#"{"supportedVersions":["2026-07-28",20251125],"capabilities":[],"ttlMs":-5}"#,
        &[
            "capabilities: expected an object, found an array",
            "supportedVersions[1]: expected a string, found a number",
        ],
    );
    assert_eq!(discovered.supported_versions.len(), 1);
}

/// PHP encodes an empty object as `[]`.
#[test]
fn a_capability_is_on_unless_it_says_no() {
    let capabilities: ServerCapabilities<'_> = check(
        r#"{"tools":[],"prompts":false,"resources":null}"#,
        &[
            "tools: expected an object, found an array",
            "prompts: expected an object, found a boolean",
            "resources: expected an object, found null",
        ],
    );
    assert_eq!(
        (
            capabilities.offers_tools(),
            capabilities.offers_prompts(),
            capabilities.offers_resources()
        ),
        (true, false, false)
    );
    let capabilities: ClientCapabilities<'_> = check(
        r#"{"elicitation":[],"roots":1}"#,
        &[
            "roots: expected an object, found a number",
            "elicitation: expected an object, found an array",
        ],
    );
    assert_eq!(
        (
            capabilities.offers_elicitation(),
            capabilities.offers_roots(),
            capabilities.offers_sampling()
        ),
        (true, true, false)
    );
}

#[test]
fn cache_hints_are_read_with_care() {
    let hint = |text: &'static str| {
        let list: ListToolsResult<'static> = decode(raw(text)).expect("decodes");
        list.cache_hint().map(
            |CacheHint {
                 time_to_live,
                 shared,
             }| (time_to_live.as_millis(), shared),
        )
    };
    assert_eq!(hint(r#"{"tools":[]}"#), None);
    assert_eq!(
        hint(r#"{"tools":[],"ttlMs":5000,"cacheScope":"public"}"#),
        Some((5000, true))
    );
    assert_eq!(
        hint(r#"{"tools":[],"ttlMs":5000.0,"cacheScope":"private"}"#),
        Some((5000, false))
    );
    assert_eq!(
        hint(r#"{"tools":[],"ttlMs":5000,"cacheScope":"everyone"}"#),
        Some((5000, false))
    );
    assert_eq!(hint(r#"{"tools":[],"ttlMs":-1}"#), Some((0, false)));
    assert_eq!(hint(r#"{"tools":[],"ttlMs":"soon"}"#), None);
}

#[test]
fn the_error_of_a_failed_task_is_decoded_in_any_type() {
    let failure = |error: &str| {
        let text = format!(r#"{{"taskId":"1","status":"failed","error":{error}}}"#);
        let task: Task<'_> = check(&text, &[]);
        task.failure().map(ErrorObject::into_owned)
    };
    assert_eq!(
        failure(r#"{"code":-32603,"message":"m","vendor":[1]}"#),
        Some(ErrorObject::new(ErrorCode::INTERNAL_ERROR, "m"))
    );
    assert_eq!(
        failure(r#""disk full""#),
        Some(ErrorObject::new(ErrorCode::UNSTATED, "disk full"))
    );
    assert_eq!(failure("null"), None);
}

#[test]
fn other_lists_are_lenient_too() {
    check::<CompleteResult<'_>>(
        r#"{"completion":{"values":["a",1,"b"],"total":"2"}}"#,
        &[
            "completion.total: expected a number, found a string",
            "completion.values[1]: expected a string, found a number",
        ],
    );
    check::<CreateMessageRequestParams<'_>>(
        r#"{"messages":[{"role":"user","content":[{"type":"text"},{"type":"text","text":"t"}]},{"role":"user","content":{"type":"text"}}],"maxTokens":10,"tools":[{}]}"#,
        &[
            "messages[1]: content: missing field `text`",
            "messages[0].content[0] (text): missing field `text`",
            "tools[0]: missing field `name`",
        ],
    );
    let task: Task<'_> = check(
        r#"{"taskId":"1","status":"resting","ttl":null,"pollInterval":250.0}"#,
        &[],
    );
    assert_eq!(task.poll_interval().map(|wait| wait.as_millis()), Some(250));
    assert!(!task.status.is_final());
    check::<ClientCapabilities<'_>>(
        r#"{"experimental":{"a":true,"b":null},"extensions":[]}"#,
        &["extensions: expected an object, found an array"],
    );
    check::<ServerCapabilities<'_>>(r#"{"telepathy":{"range":"far"}}"#, &[]);
}
