//! Property tests: round trips of arbitrary values, and arbitrary JSON decoded as every type.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_protocol::ErrorObject;
use switchboard_protocol::text::JsonStr;
use switchboard_protocol::types::wire::{Lint, OneOrMany};
use switchboard_protocol::types::{
    Decode, Encode, Extra, IntoOwned, List, Map, Number, Outcome, Raw, RawObject, capabilities::*,
    completion::*, content::*, decode, decode_result, defects, elicitation::*,
    elicitation_schema::*, encode, error_data::*, icon::*, input::*, lifecycle::*, logging::*,
    meta::*, notification::*, prompt::*, resource::*, roots::*, sampling::*, subscription::*,
    task::*, tool::*,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,12}",
        any::<String>(),
        Just("quote \" backslash \\ newline \n emoji 😀 nul \0".to_owned()),
    ]
}

fn cow() -> impl Strategy<Value = Cow<'static, str>> {
    text().prop_map(Cow::Owned)
}

fn json_str() -> impl Strategy<Value = JsonStr<'static>> {
    text().prop_map(JsonStr::from)
}

fn number() -> impl Strategy<Value = Number<'static>> {
    prop_oneof![
        any::<u64>().prop_map(Number::from),
        any::<i64>().prop_map(Number::from),
        (-1e6..1e6).prop_map(|float| Number::from_f64(float).expect("finite")),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((field_name(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Known field names, so that arbitrary objects get past the first field.
fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec![
            "name", "title", "description", "inputSchema", "annotations", "icons", "type", "text",
            "content", "tools", "resources", "prompts", "messages", "role", "uri", "_meta",
            "resultType", "inputRequests", "method", "params", "taskId", "status", "ttl", "src",
            "properties", "enum", "items", "mode", "requestedSchema", "message", "resource",
            "blob", "mimeType", "data", "capabilities", "protocolVersion", "completion", "values",
            "audience", "priority", "arguments", "structuredContent", "isError", "requestId",
        ]).prop_map(str::to_owned),
        1 => text(),
    ]
}

/// JSON that is likely to contain tag values.
fn plausible_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "text",
        "image",
        "resource",
        "resource_link",
        "tool_result",
        "string",
        "array",
        "number",
        "roots/list",
        "elicitation/create",
        "input_required",
        "complete",
        "task",
        "url",
        "form",
        "user",
        "working",
    ]);
    (
        json(),
        prop::sample::select(vec!["type", "method", "mode", "resultType", "role"]),
        word,
    )
        .prop_map(|(value, key, word)| match value {
            Value::Object(mut object) => {
                object.insert(key.to_owned(), Value::from(word));
                Value::Object(object)
            }
            other => other,
        })
}

fn raw() -> impl Strategy<Value = Raw<'static>> {
    json().prop_map(|value| Raw::from_serialize(&value).expect("JSON"))
}

fn raw_object() -> impl Strategy<Value = RawObject<'static>> {
    prop::collection::btree_map(text(), json(), 0..4).prop_map(|object| {
        let raw = Raw::from_serialize(&object).expect("JSON");
        RawObject::try_from(raw).expect("an object")
    })
}

fn extra() -> impl Strategy<Value = Extra<'static>> {
    prop::collection::vec(("x-[a-z]{1,6}", raw()), 0..3).prop_map(|fields| {
        let mut extra = Extra::new();
        for (name, value) in fields {
            extra.push(name, value);
        }
        extra
    })
}

fn annotations() -> impl Strategy<Value = Box<Annotations<'static>>> {
    let role = prop_oneof![
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Other("x".into()))
    ];
    (
        prop::option::of(number()),
        prop::option::of(cow()),
        prop::collection::vec(role, 0..3),
        extra(),
    )
        .prop_map(|(priority, last_modified, audience, extra)| {
            Box::new(Annotations {
                priority,
                last_modified,
                audience: audience.into(),
                extra,
            })
        })
}

fn block() -> impl Strategy<Value = ContentBlock<'static>> {
    let text = (json_str(), prop::option::of(annotations()), extra()).prop_map(
        |(text, annotations, extra)| {
            ContentBlock::from(TextContent {
                annotations,
                extra,
                ..TextContent::new(text)
            })
        },
    );
    let image =
        (json_str(), cow(), prop::option::of(raw_object())).prop_map(|(data, mime_type, meta)| {
            ContentBlock::from(ImageContent {
                meta,
                ..ImageContent::new(data, mime_type)
            })
        });
    let embedded = (cow(), json_str(), any::<bool>()).prop_map(|(uri, data, is_text)| {
        let contents = if is_text {
            ResourceContents::Text(TextResourceContents::new(uri, data))
        } else {
            ResourceContents::Blob(BlobResourceContents::new(uri, data))
        };
        ContentBlock::from(EmbeddedResource::new(contents))
    });
    let link = (cow(), cow(), prop::option::of(number())).prop_map(|(uri, name, size)| {
        ContentBlock::from(Box::new(ResourceLink {
            size,
            ..ResourceLink::new(uri, name)
        }))
    });
    let tool_use = (cow(), cow(), raw_object())
        .prop_map(|(id, name, input)| ToolUseContent::new(id, name, input).into());
    let leaf = prop_oneof![text, image, embedded, link, tool_use];
    leaf.prop_recursive(2, 8, 3, |inner| {
        (cow(), prop::collection::vec(inner, 0..3)).prop_map(|(id, content)| {
            ContentBlock::from(ToolResultContent {
                content: content.into(),
                ..ToolResultContent::new(id)
            })
        })
    })
}

fn tool() -> impl Strategy<Value = Tool<'static>> {
    let icon = (cow(), prop::collection::vec(cow(), 0..2)).prop_map(|(src, sizes)| Icon {
        sizes: sizes.into(),
        ..Icon::new(src)
    });
    let hints = (
        prop::option::of(any::<bool>()),
        prop::option::of(cow()),
        extra(),
    )
        .prop_map(|(read_only_hint, title, extra)| {
            Box::new(ToolAnnotations {
                read_only_hint,
                title,
                extra,
                ..ToolAnnotations::new()
            })
        });
    (
        cow(),
        prop::option::of(cow()),
        prop::option::of(raw_object()),
        prop::option::of(hints),
        prop::collection::vec(icon, 0..3),
        extra(),
    )
        .prop_map(
            |(name, title, input_schema, annotations, icons, extra)| Tool {
                title,
                input_schema,
                annotations,
                icons: icons.into(),
                extra,
                ..Tool::new(name)
            },
        )
}

fn sampling() -> impl Strategy<Value = CreateMessageRequestParams<'static>> {
    let content = prop_oneof![
        block().prop_map(OneOrMany::One),
        prop::collection::vec(block(), 0..3).prop_map(|blocks| OneOrMany::Many(blocks.into())),
    ];
    let message = content.prop_map(|content| SamplingMessage::new(Role::User, content));
    (
        prop::collection::vec(message, 0..3),
        number(),
        prop::collection::vec(tool(), 0..2),
        prop::collection::vec(cow(), 0..2),
    )
        .prop_map(
            |(messages, max_tokens, tools, stop)| CreateMessageRequestParams {
                tools: tools.into(),
                stop_sequences: stop.into(),
                ..CreateMessageRequestParams::new(List::from(messages), max_tokens)
            },
        )
}

/// Encodes and decodes a value; asserts that it is unchanged and has no defects.
macro_rules! survives {
    ($type:ident, $value:expr) => {{
        let value: $type<'static> = $value;
        let text = encode(&value);
        let raw: &RawValue = serde_json::from_str(&text).expect("valid JSON");
        let read: $type<'_> = decode(raw).expect("decodes");
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(defects(&read), vec![]);
        prop_assert_eq!(encode(&read.into_owned()), text);
    }};
}

proptest! {
    #[test]
    fn tools_survive(tool in tool()) {
        survives!(Tool, tool);
    }

    #[test]
    fn tool_lists_survive(tools in prop::collection::vec(tool(), 0..4), cursor in prop::option::of(cow()), ttl_ms in prop::option::of(number())) {
        survives!(ListToolsResult, ListToolsResult {
            next_cursor: cursor,
            ttl_ms,
            ..ListToolsResult::new(tools.into())
        });
    }

    #[test]
    fn call_results_survive(blocks in prop::collection::vec(block(), 0..4), structured in prop::option::of(raw()), is_error in prop::option::of(any::<bool>()), extra in extra()) {
        survives!(CallToolResult, CallToolResult {
            content: blocks.into(),
            structured_content: structured,
            is_error,
            extra,
            ..CallToolResult::new()
        });
    }

    #[test]
    fn sampling_survives(params in sampling()) {
        survives!(CreateMessageRequestParams, params);
    }

    #[test]
    fn input_requests_survive(keys in prop::collection::btree_set(text(), 0..3), params in sampling(), state in prop::option::of(json_str())) {
        let request = InputRequest::from(CreateMessageRequest::new(Box::new(params)));
        let input_requests: Map<'static, InputRequest<'static>> =
            keys.into_iter().map(|key| (key, request.clone())).collect();
        survives!(InputRequiredResult, InputRequiredResult {
            input_requests,
            request_state: state,
            ..InputRequiredResult::new()
        });
    }

    #[test]
    fn strings_survive(text in text()) {
        let ours = JsonStr::from(text.as_str());
        let written = encode(&ours);
        prop_assert_eq!(serde_json::from_str::<String>(&written).expect("valid JSON"), text.clone());
        let theirs = serde_json::to_string(&text).expect("JSON");
        let read: JsonStr<'_> = serde_json::from_str(&theirs).expect("a string");
        prop_assert_eq!(read.decode(), text.as_str());
        prop_assert_eq!(read, ours);
    }

    #[test]
    fn serde_reads_and_writes_the_same(tool in tool()) {
        let text = encode(&tool);
        prop_assert_eq!(&serde_json::to_string(&tool).expect("JSON"), &text);
        let value = serde_json::to_value(&tool).expect("JSON");
        prop_assert_eq!(value, serde_json::from_str::<Value>(&text).expect("JSON"));
        let read: Tool<'_> = serde_json::from_slice(text.as_bytes()).expect("a tool");
        prop_assert_eq!(read, tool);
    }

    /// Anything that decodes is equivalent after encoding.
    #[test]
    fn any_json_is_rejected_or_preserved(value in plausible_json(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).expect("JSON")
        } else {
            value.to_string()
        };
        for (name, reread) in EVERY_TYPE {
            let raw: &RawValue = serde_json::from_str(&text).expect("valid JSON");
            if let Some(written) = reread(raw) {
                let written: Value = serde_json::from_str(&written).expect("valid JSON");
                prop_assert_eq!(&written, &value, "{}", name);
            }
        }
    }

    /// An error decodes from anything, and round-trips.
    #[test]
    fn any_json_is_an_error_object(value in plausible_json(), code in plausible_json(), message in plausible_json()) {
        for text in [value.to_string(), serde_json::json!({ "code": code, "message": message, "data": value }).to_string()] {
            let raw: &RawValue = serde_json::from_str(&text).expect("valid JSON");
            let error: ErrorObject<'_> = decode(raw).expect("an error");
            let written = encode(&error);
            let again: ErrorObject<'_> = serde_json::from_str(&written).expect("an error");
            prop_assert_eq!(again, error);
        }
    }

    /// A valid list loses only its invalid entries.
    #[test]
    fn any_list_keeps_every_entry(entries in prop::collection::vec(plausible_json(), 0..6)) {
        let text = serde_json::json!({ "tools": entries }).to_string();
        let raw: &RawValue = serde_json::from_str(&text).expect("valid JSON");
        let list: ListToolsResult<'_> = decode(raw).expect("a list");
        prop_assert_eq!(list.tools.len() + list.tools.set_aside.len(), entries.len());
        for entry in &list.tools.set_aside {
            let stored: Value = entry.raw.deserialize().expect("valid JSON");
            prop_assert_eq!(&stored, &entries[entry.index]);
        }
    }
}

type Reread = fn(&RawValue) -> Option<String>;

fn reread<'a, T: Decode<'a> + Encode + Lint + IntoOwned<Owned: Encode>>(
    raw: &'a RawValue,
) -> Option<String> {
    let value: T = decode(raw).ok()?;
    // Reporting defects must not fail either.
    let _ = defects(&value);
    let text = encode(&value);
    assert_eq!(encode(&value.into_owned()), text);
    Some(text)
}

macro_rules! every {
    ($($type:ident),* $(,)?) => {
        &[
            $((stringify!($type), |raw| reread::<$type<'_>>(raw)),)*
            // `null` and `[]` are decoded as an empty object, and encoded as one.
            ("result of tools/call", |raw| match decode_result::<CallToolResult<'_>>(raw).ok()? {
                Outcome::Complete(_) if matches!(raw.get(), "null" | "[]") => None,
                Outcome::Complete(result) => Some(encode(&result)),
                Outcome::InputRequired(result) => Some(encode(&result)),
                Outcome::Task(CreatedTask::Flat(task)) => Some(encode(&task)),
                Outcome::Task(CreatedTask::Nested(result)) => Some(encode(&result)),
            }),
        ]
    };
}

const EVERY_TYPE: &[(&str, Reread)] = every![
    Annotations,
    AudioContent,
    BlobResourceContents,
    BooleanSchema,
    CallToolRequestParams,
    CallToolResult,
    CancelTaskResult,
    CancelledNotificationParams,
    ClientCapabilities,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    CompletionReference,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateTaskResult,
    DiscoverResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestUrlParams,
    ElicitResult,
    ElicitationCapability,
    ElicitationCompleteNotificationParams,
    ElicitationSchema,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    Icon,
    ImageContent,
    Implementation,
    InitializeRequestParams,
    InitializeResult,
    InputRequest,
    InputRequiredResult,
    InputResponseRequestParams,
    LegacyTitledEnumSchema,
    ListCapability,
    ListPromptsResult,
    ListResourceTemplatesResult,
    ListResourcesResult,
    ListRootsRequest,
    ListRootsResult,
    ListTasksResult,
    ListToolsResult,
    LoggingMessageNotificationParams,
    MissingRequiredClientCapabilityData,
    ModelHint,
    ModelPreferences,
    NotificationMeta,
    NotificationParams,
    NumberSchema,
    PaginatedRequestParams,
    PrimitiveSchema,
    ProgressNotificationParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    RelatedTaskMetadata,
    RequestMeta,
    RequestParams,
    Resource,
    ResourceContents,
    ResourceLink,
    ResourceRequestParams,
    ResourceTemplate,
    ResourceTemplateReference,
    ResourceUpdatedNotificationParams,
    ResourcesCapability,
    ResultMeta,
    Root,
    RootsCapability,
    SamplingCapability,
    SamplingMessage,
    ServerCapabilities,
    SetLevelRequestParams,
    StringSchema,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    Task,
    TaskMetadata,
    TaskRequestParams,
    TasksCapability,
    TextContent,
    TextResourceContents,
    TitledItems,
    TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema,
    TitledValue,
    Tool,
    ToolAnnotations,
    ToolChoice,
    ToolExecution,
    ToolResultContent,
    ToolUseContent,
    UnsupportedProtocolVersionData,
    UntitledItems,
    UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
    UpdateTaskRequestParams,
    UrlElicitationRequiredData,
];
