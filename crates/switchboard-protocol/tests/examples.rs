//! Decodes and encodes the specification's examples: no defects, and the same JSON.
//!
//! They are not part of the repository; without them the test is skipped. `HAND_WRITTEN` covers the same types, and
//! more, on any machine.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_protocol::ErrorObject;
use switchboard_protocol::types::method::{self, Notification, Request};
use switchboard_protocol::types::wire::Lint;
use switchboard_protocol::types::{
    Decode, Encode, IntoOwned, Map, Outcome, RawObject, ResultBody, capabilities::*, completion::*,
    content::*, decode, decode_result, defects, elicitation::*, elicitation_schema::*, encode,
    error_data::*, input::*, lifecycle::*, logging::*, notification::*, prompt::*, resource::*,
    roots::*, sampling::*, subscription::*, task::*, tool::*,
};
use switchboard_test::shared::protocol_data;

/// Decodes a value, checks that it has no defects, and encodes an owned copy.
type Check = fn(&RawValue) -> String;

/// `check::<Tool>` is not possible for a type with a lifetime, so each type gets its own function.
macro_rules! check {
    ($type:ident) => {
        |raw| {
            let value: $type<'_> = decode(raw).unwrap_or_else(|error| panic!("{error}"));
            rewrite(value)
        }
    };
}

fn rewrite<T: Encode + Lint + IntoOwned<Owned: Encode>>(value: T) -> String {
    assert_eq!(defects(&value), []);
    let text = encode(&value);
    assert_eq!(encode(&value.into_owned()), text);
    text
}

macro_rules! check_result {
    ($type:ident) => {
        |raw| match decode_result::<$type<'_>>(raw).unwrap_or_else(|error| panic!("{error}")) {
            Outcome::Complete(result) => rewrite(result),
            Outcome::InputRequired(result) => rewrite(result),
            Outcome::Task(CreatedTask::Flat(task)) => rewrite(*task),
            Outcome::Task(CreatedTask::Nested(result)) => rewrite(*result),
        }
    };
}

/// Which part of an example is the value, and its type.
enum Kind {
    Value(Check),
    Message(&'static str, Check),
}

use Kind::{Message, Value as Whole};

fn kind(folder: &str) -> Option<Kind> {
    Some(match folder {
        "AudioContent" => Whole(check!(AudioContent)),
        "BlobResourceContents" => Whole(check!(BlobResourceContents)),
        "BooleanSchema" => Whole(check!(BooleanSchema)),
        "CallToolRequest" => Message("params", check!(CallToolRequestParams)),
        "CallToolRequestParams" => Whole(check!(CallToolRequestParams)),
        "CallToolResult" => Whole(check_result!(CallToolResult)),
        "CallToolResultResponse" => Message("result", check_result!(CallToolResult)),
        "CancelledNotification" => Message("params", check!(CancelledNotificationParams)),
        "CancelledNotificationParams" => Whole(check!(CancelledNotificationParams)),
        "ClientCapabilities" => Whole(check!(ClientCapabilities)),
        "CompleteRequest" => Message("params", check!(CompleteRequestParams)),
        "CompleteRequestParams" => Whole(check!(CompleteRequestParams)),
        "CompleteResult" => Whole(check_result!(CompleteResult)),
        "CompleteResultResponse" => Message("result", check_result!(CompleteResult)),
        "CreateMessageRequest" => Whole(check!(CreateMessageRequest)),
        "CreateMessageRequestParams" => Whole(check!(CreateMessageRequestParams)),
        "CreateMessageResult" => Whole(check_result!(CreateMessageResult)),
        "DiscoverRequest" => Message("params", check!(RequestParams)),
        "DiscoverResult" => Whole(check_result!(DiscoverResult)),
        "DiscoverResultResponse" => Message("result", check_result!(DiscoverResult)),
        "ElicitRequest" => Whole(check!(ElicitRequest)),
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => Whole(check!(ElicitRequestParams)),
        "ElicitResult" => Whole(check_result!(ElicitResult)),
        "EmbeddedResource" => Whole(check!(EmbeddedResource)),
        "GetPromptRequest" => Message("params", check!(GetPromptRequestParams)),
        "GetPromptRequestParams" => Whole(check!(GetPromptRequestParams)),
        "GetPromptResult" => Whole(check_result!(GetPromptResult)),
        "GetPromptResultResponse" => Message("result", check_result!(GetPromptResult)),
        "HeaderMismatchError" => Message("error", check!(ErrorObject)),
        "ImageContent" => Whole(check!(ImageContent)),
        "InputRequests" => Whole(check!(InputRequests)),
        "InputRequiredResult" => Whole(check_result!(CallToolResult)),
        "InputResponses" => Whole(check!(InputResponses)),
        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => {
            Whole(check!(ErrorObject))
        }
        "ListPromptsRequest"
        | "ListResourceTemplatesRequest"
        | "ListResourcesRequest"
        | "ListToolsRequest" => Message("params", check!(PaginatedRequestParams)),
        "ListPromptsResult" => Whole(check_result!(ListPromptsResult)),
        "ListPromptsResultResponse" => Message("result", check_result!(ListPromptsResult)),
        "ListResourceTemplatesResult" => Whole(check_result!(ListResourceTemplatesResult)),
        "ListResourceTemplatesResultResponse" => {
            Message("result", check_result!(ListResourceTemplatesResult))
        }
        "ListResourcesResult" => Whole(check_result!(ListResourcesResult)),
        "ListResourcesResultResponse" => Message("result", check_result!(ListResourcesResult)),
        "ListRootsRequest" => Whole(check!(ListRootsRequest)),
        "ListRootsResult" => Whole(check_result!(ListRootsResult)),
        "ListToolsResult" => Whole(check_result!(ListToolsResult)),
        "ListToolsResultResponse" => Message("result", check_result!(ListToolsResult)),
        "LoggingMessageNotification" => Message("params", check!(LoggingMessageNotificationParams)),
        "LoggingMessageNotificationParams" => Whole(check!(LoggingMessageNotificationParams)),
        "MissingRequiredClientCapabilityError" => {
            Message("error/data", check!(MissingRequiredClientCapabilityData))
        }
        "ModelPreferences" => Whole(check!(ModelPreferences)),
        "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => Whole(check!(PrimitiveSchema)),
        "PaginatedRequestParams" => Whole(check!(PaginatedRequestParams)),
        "ProgressNotification" => Message("params", check!(ProgressNotificationParams)),
        "ProgressNotificationParams" => Whole(check!(ProgressNotificationParams)),
        "PromptListChangedNotification"
        | "ResourceListChangedNotification"
        | "ToolListChangedNotification" => Message("params", check!(NotificationParams)),
        "ReadResourceRequest" => Message("params", check!(ReadResourceRequestParams)),
        "ReadResourceResult" => Whole(check_result!(ReadResourceResult)),
        "ReadResourceResultResponse" => Message("result", check_result!(ReadResourceResult)),
        "Resource" => Whole(check!(Resource)),
        "ResourceLink" => Whole(check!(ResourceLink)),
        "ResourceUpdatedNotification" => {
            Message("params", check!(ResourceUpdatedNotificationParams))
        }
        "ResourceUpdatedNotificationParams" => Whole(check!(ResourceUpdatedNotificationParams)),
        "Root" => Whole(check!(Root)),
        "SamplingMessage" => Whole(check!(SamplingMessage)),
        "ServerCapabilities" => Whole(check!(ServerCapabilities)),
        "SubscriptionsAcknowledgedNotification" => Message(
            "params",
            check!(SubscriptionsAcknowledgedNotificationParams),
        ),
        "SubscriptionsListenRequest" => Message("params", check!(SubscriptionsListenRequestParams)),
        "SubscriptionsListenResult" => Whole(check_result!(SubscriptionsListenResult)),
        "SubscriptionsListenResultResponse" => {
            Message("result", check_result!(SubscriptionsListenResult))
        }
        "TextContent" => Whole(check!(TextContent)),
        "TextResourceContents" => Whole(check!(TextResourceContents)),
        "Tool" => Whole(check!(Tool)),
        "ToolResultContent" => Whole(check!(ToolResultContent)),
        "ToolUseContent" => Whole(check!(ToolUseContent)),
        "UnsupportedProtocolVersionError" => {
            Message("error/data", check!(UnsupportedProtocolVersionData))
        }
        // Not in the specification's examples.
        "Task" => Whole(check_result!(Task)),
        "CreateTaskResult" => Whole(check_result!(CallToolResult)),
        "CancelTaskResult" => Whole(check_result!(CancelTaskResult)),
        "ListTasksResult" => Whole(check_result!(ListTasksResult)),
        "InitializeRequestParams" => Whole(check!(InitializeRequestParams)),
        "InitializeResult" => Whole(check_result!(InitializeResult)),
        "LegacyTitledEnumSchema" => Whole(check!(PrimitiveSchema)),
        "UpdateTaskRequestParams" => Whole(check!(UpdateTaskRequestParams)),
        "UrlElicitationRequiredData" => Whole(check!(UrlElicitationRequiredData)),
        _ => return None,
    })
}

#[track_caller]
fn check_example(name: &str, folder: &str, text: &str) {
    let kind = kind(folder).unwrap_or_else(|| panic!("{name}: no type for {folder}"));
    let (part, check) = match kind {
        Whole(check) => (text.to_owned(), check),
        Message(path, check) => {
            let part = path.split('/').try_fold(text.to_owned(), |text, field| {
                let object: RawObject<'_> = serde_json::from_str(&text).ok()?;
                object.field(field).map(|raw| raw.get().to_owned())
            });
            // A notification may lack parameters, which then count as empty.
            (part.unwrap_or_else(|| "{}".to_owned()), check)
        }
    };
    let raw: &RawValue = serde_json::from_str(&part).expect("valid JSON");
    let written = check(raw);
    let ours: Value = serde_json::from_str(&written).expect("valid JSON");
    let theirs: Value = serde_json::from_str(&part).expect("valid JSON");
    assert_eq!(ours, theirs, "{name}");
}

#[test]
fn the_specifications_examples_round_trip() {
    let Some(folder) = protocol_data("2026-07-28") else {
        return;
    };
    let mut count = 0;
    for entry in fs::read_dir(folder.join("examples")).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        for file in fs::read_dir(entry.path()).expect("a folder") {
            let path = file.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a file");
            check_example(&path.display().to_string(), &name, &text);
            count += 1;
        }
    }
    assert!(count >= 129, "only {count} examples");
}

/// Values of types and forms that the specification's examples lack.
const HAND_WRITTEN: &[(&str, &str)] = &[
    (
        "InitializeRequestParams",
        r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}}}},"experimental":{"x":{"on":true}}},"clientInfo":{"name":"c","version":"1","title":"C","description":"a client","websiteUrl":"https://example.com","icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48","any"],"theme":"dark"}]},"_meta":{"progressToken":1}}"#,
    ),
    (
        "InitializeResult",
        r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":false},"logging":{},"completions":{},"tasks":{"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}},"serverInfo":{"name":"s","version":"0.1"},"instructions":"Ask \"nicely\"."}"#,
    ),
    (
        "Tool",
        r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"$ref":"x"},"annotations":{"title":"A","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"execution":{"taskSupport":"optional"},"icons":[{"src":"data:image/png;base64,AA=="}],"_meta":{"a":1},"x-vendor":{"deep":[1,2.50,"é"]}}"#,
    ),
    (
        "CallToolRequestParams",
        r#"{"name":"t","arguments":{"a":1e2},"task":{"ttl":60000},"inputResponses":{"k":{"action":"decline"}},"requestState":"opaque\u0041","_meta":{}}"#,
    ),
    (
        "CallToolResult",
        r#"{"content":[{"type":"text","text":"a","annotations":{"audience":["user","assistant"],"priority":0.9,"lastModified":"2025-01-12T15:00:58Z"}},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"u","text":"t"}},{"type":"resource","resource":{"uri":"u","blob":"AA==","mimeType":"m","_meta":{}}},{"type":"resource_link","uri":"u","name":"n","size":12},{"type":"hologram","voxels":[1,2]}],"structuredContent":null,"isError":true}"#,
    ),
    (
        "CallToolResult",
        r#"{"structuredContent":[1,2,3],"resultType":"complete"}"#,
    ),
    (
        "CreateTaskResult",
        r#"{"task":{"taskId":"1","status":"working","createdAt":"a","lastUpdatedAt":"b","ttl":null,"pollInterval":500},"_meta":{}}"#,
    ),
    (
        "CreateTaskResult",
        r#"{"resultType":"task","taskId":"1","status":"working","createdAt":"a","lastUpdatedAt":"b","ttlMs":60000,"pollIntervalMs":500}"#,
    ),
    (
        "Task",
        r#"{"resultType":"complete","taskId":"1","status":"completed","createdAt":"a","lastUpdatedAt":"b","ttlMs":null,"result":{"content":[]}}"#,
    ),
    (
        "Task",
        r#"{"taskId":"1","status":"input_required","statusMessage":"waiting","inputRequests":{"k":{"method":"roots/list"}}}"#,
    ),
    (
        "Task",
        r#"{"taskId":"1","status":"failed","error":{"code":-32603,"message":"m"}}"#,
    ),
    ("CancelTaskResult", r#"{"resultType":"complete"}"#),
    (
        "CancelTaskResult",
        r#"{"taskId":"1","status":"cancelled","createdAt":"a","lastUpdatedAt":"b","ttl":5}"#,
    ),
    (
        "ListTasksResult",
        r#"{"tasks":[{"taskId":"1","status":"working"}],"nextCursor":"c"}"#,
    ),
    (
        "UpdateTaskRequestParams",
        r#"{"taskId":"1","inputResponses":{"k":{"roots":[]}}}"#,
    ),
    (
        "LegacyTitledEnumSchema",
        r#"{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"a"}"#,
    ),
    (
        "StringSchema",
        r#"{"type":"string","minLength":1,"maxLength":9,"format":"date-time","default":"x"}"#,
    ),
    (
        "NumberSchema",
        r#"{"type":"integer","minimum":-1,"maximum":1.5e3,"default":0}"#,
    ),
    (
        "UrlElicitationRequiredData",
        r#"{"elicitations":[{"mode":"url","message":"m","url":"u","elicitationId":"e"}]}"#,
    ),
    (
        "CancelledNotificationParams",
        r#"{"requestId":1.0,"reason":"r"}"#,
    ),
    ("CancelledNotificationParams", "{}"),
    (
        "ProgressNotificationParams",
        r#"{"progressToken":0,"progress":0.5,"total":1,"message":"half"}"#,
    ),
    (
        "SamplingMessage",
        r#"{"role":"assistant","content":[{"type":"tool_result","toolUseId":"i","content":[{"type":"text","text":"t"}],"structuredContent":{"a":1},"isError":false}],"_meta":{}}"#,
    ),
    (
        "CreateMessageRequestParams",
        r#"{"messages":[],"maxTokens":1,"modelPreferences":{"hints":[{"name":"n"}],"costPriority":0,"speedPriority":1,"intelligencePriority":0.5},"systemPrompt":"s","includeContext":"thisServer","temperature":0.1,"stopSequences":["a"],"metadata":{},"toolChoice":{"mode":"required"},"tools":[],"task":{}}"#,
    ),
    (
        "SubscriptionsListenRequest",
        r#"{"params":{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":true,"resourceSubscriptions":[],"taskIds":["1"]}}}"#,
    ),
    (
        "ElicitRequestFormParams",
        r#"{"message":"m","requestedSchema":{"$schema":"s","type":"object","properties":{"a":{"type":"quantum"}},"required":["a"]}}"#,
    ),
];

#[test]
fn hand_written_examples_round_trip() {
    for (folder, text) in HAND_WRITTEN {
        check_example(text, folder, text);
    }
}

#[test]
fn methods_decode_by_name() {
    fn result<M: Request>(text: &str) -> String
    where
        for<'a> M::Result<'a>: ResultBody<'a> + Encode,
    {
        let raw: &RawValue = serde_json::from_str(text).expect("valid JSON");
        match M::decode_result(raw).unwrap_or_else(|error| panic!("{error}")) {
            Outcome::Complete(result) => encode(&result),
            other => panic!("{}: not complete", encode_other(&other)),
        }
    }
    fn encode_other<T>(outcome: &Outcome<'_, T>) -> &'static str {
        match outcome {
            Outcome::Complete(_) => "complete",
            Outcome::InputRequired(_) => "input required",
            Outcome::Task(_) => "task",
        }
    }
    assert_eq!(method::CallTool::METHOD.name(), "tools/call");
    assert_eq!(
        result::<method::CallTool>(r#"{"content":[]}"#),
        r#"{"content":[]}"#
    );
    assert_eq!(result::<method::Ping>("{}"), "{}");
    assert_eq!(
        result::<method::GetTaskResult>(r#"{"content":[],"isError":true}"#),
        r#"{"content":[],"isError":true}"#,
        "the result of the task's own method is preserved"
    );
    let raw: &RawValue = serde_json::from_str(r#"{"taskId":"1","status":"failed"}"#).expect("JSON");
    let task = method::TaskChanged::decode_params(Some(raw)).expect("a task");
    assert!(task.status.is_final());
    let params: Map<'_, RawObject<'_>> = Map::decode_text(r#"{"a":{}}"#);
    assert!(params.get("a").is_some());
}

/// Decodes from text, for tests that use only the traits.
trait DecodeText<'a>: Decode<'a> {
    fn decode_text(text: &'a str) -> Self {
        decode(serde_json::from_str(text).expect("valid JSON")).expect("decodes")
    }
}

impl<'a, T: Decode<'a>> DecodeText<'a> for T {}
