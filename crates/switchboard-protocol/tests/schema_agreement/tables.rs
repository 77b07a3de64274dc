//! Maps the types to the schemas, and lists every deliberate difference with its reason.

use switchboard_protocol::ErrorObject;
use switchboard_protocol::types::wire::{FieldInfo, Fields};
use switchboard_protocol::types::{
    cache::*, capabilities::*, completion::*, content::*, elicitation::*, elicitation_schema::*,
    error_data::*, icon::*, input::*, lifecycle::*, logging::*, meta::*, notification::*,
    prompt::*, resource::*, roots::*, sampling::*, subscription::*, task::*, tool::*,
};

/// The location of each type in the schemas: a definition, or a path of properties within one.
pub(super) const TYPES: &[(&str, &[FieldInfo])] = &[
    ("Annotated.annotations", Annotations::FIELDS),
    ("Annotations", Annotations::FIELDS),
    ("AudioContent", AudioContent::FIELDS),
    ("BlobResourceContents", BlobResourceContents::FIELDS),
    ("BooleanSchema", BooleanSchema::FIELDS),
    ("CallToolRequest.params", CallToolRequestParams::FIELDS),
    ("CallToolRequestParams", CallToolRequestParams::FIELDS),
    ("CallToolResult", CallToolResult::FIELDS),
    ("CancelTaskRequest.params", TaskRequestParams::FIELDS),
    ("CancelTaskResult", CancelTaskResult::FIELDS),
    (
        "CancelledNotification.params",
        CancelledNotificationParams::FIELDS,
    ),
    (
        "CancelledNotificationParams",
        CancelledNotificationParams::FIELDS,
    ),
    ("ClientCapabilities", ClientCapabilities::FIELDS),
    (
        "ClientCapabilities.elicitation",
        ElicitationCapability::FIELDS,
    ),
    ("ClientCapabilities.roots", RootsCapability::FIELDS),
    ("ClientCapabilities.sampling", SamplingCapability::FIELDS),
    ("ClientCapabilities.tasks", TasksCapability::FIELDS),
    ("CompleteRequest.params", CompleteRequestParams::FIELDS),
    (
        "CompleteRequest.params.argument",
        CompletionArgument::FIELDS,
    ),
    ("CompleteRequest.params.context", CompletionContext::FIELDS),
    ("CompleteRequestParams", CompleteRequestParams::FIELDS),
    ("CompleteRequestParams.argument", CompletionArgument::FIELDS),
    ("CompleteRequestParams.context", CompletionContext::FIELDS),
    ("CompleteResult", CompleteResult::FIELDS),
    ("CompleteResult.completion", Completion::FIELDS),
    (
        "CreateMessageRequest.params",
        CreateMessageRequestParams::FIELDS,
    ),
    (
        "CreateMessageRequestParams",
        CreateMessageRequestParams::FIELDS,
    ),
    ("CreateMessageResult", CreateMessageResult::FIELDS),
    ("CreateTaskResult", CreateTaskResult::FIELDS),
    ("DiscoverResult", DiscoverResult::FIELDS),
    ("ElicitRequest.params", ElicitRequestFormParams::FIELDS),
    (
        "ElicitRequest.params.requestedSchema",
        ElicitationSchema::FIELDS,
    ),
    ("ElicitRequestFormParams", ElicitRequestFormParams::FIELDS),
    (
        "ElicitRequestFormParams.requestedSchema",
        ElicitationSchema::FIELDS,
    ),
    ("ElicitRequestURLParams", ElicitRequestUrlParams::FIELDS),
    ("ElicitResult", ElicitResult::FIELDS),
    (
        "ElicitationCompleteNotification.params",
        ElicitationCompleteNotificationParams::FIELDS,
    ),
    ("EmbeddedResource", EmbeddedResource::FIELDS),
    ("EmbeddedResource.annotations", Annotations::FIELDS),
    ("EnumSchema", LegacyTitledEnumSchema::FIELDS),
    ("Error", ErrorObject::FIELDS),
    ("GetPromptRequest.params", GetPromptRequestParams::FIELDS),
    ("GetPromptRequestParams", GetPromptRequestParams::FIELDS),
    ("GetPromptResult", GetPromptResult::FIELDS),
    ("GetTaskPayloadRequest.params", TaskRequestParams::FIELDS),
    ("GetTaskPayloadResult", EmptyResult::FIELDS),
    ("GetTaskRequest.params", TaskRequestParams::FIELDS),
    ("GetTaskResult", Task::FIELDS),
    ("Icon", Icon::FIELDS),
    ("ImageContent", ImageContent::FIELDS),
    ("ImageContent.annotations", Annotations::FIELDS),
    ("Implementation", Implementation::FIELDS),
    ("InitializeRequest.params", InitializeRequestParams::FIELDS),
    ("InitializeRequestParams", InitializeRequestParams::FIELDS),
    ("InitializeResult", InitializeResult::FIELDS),
    ("InputRequiredResult", InputRequiredResult::FIELDS),
    (
        "InputResponseRequestParams",
        InputResponseRequestParams::FIELDS,
    ),
    ("InternalError", ErrorObject::FIELDS),
    ("InvalidParamsError", ErrorObject::FIELDS),
    ("InvalidRequestError", ErrorObject::FIELDS),
    ("LegacyTitledEnumSchema", LegacyTitledEnumSchema::FIELDS),
    ("ListPromptsResult", ListPromptsResult::FIELDS),
    (
        "ListResourceTemplatesResult",
        ListResourceTemplatesResult::FIELDS,
    ),
    ("ListResourcesResult", ListResourcesResult::FIELDS),
    ("ListRootsResult", ListRootsResult::FIELDS),
    ("ListTasksResult", ListTasksResult::FIELDS),
    ("ListToolsResult", ListToolsResult::FIELDS),
    (
        "LoggingMessageNotification.params",
        LoggingMessageNotificationParams::FIELDS,
    ),
    (
        "LoggingMessageNotificationParams",
        LoggingMessageNotificationParams::FIELDS,
    ),
    ("MethodNotFoundError", ErrorObject::FIELDS),
    (
        "MissingRequiredClientCapabilityError.error.data",
        MissingRequiredClientCapabilityData::FIELDS,
    ),
    ("ModelHint", ModelHint::FIELDS),
    ("ModelPreferences", ModelPreferences::FIELDS),
    ("NotificationMetaObject", NotificationMeta::FIELDS),
    ("NotificationParams", NotificationParams::FIELDS),
    ("NumberSchema", NumberSchema::FIELDS),
    ("PaginatedRequest.params", PaginatedRequestParams::FIELDS),
    ("PaginatedRequestParams", PaginatedRequestParams::FIELDS),
    ("ParseError", ErrorObject::FIELDS),
    (
        "ProgressNotification.params",
        ProgressNotificationParams::FIELDS,
    ),
    (
        "ProgressNotificationParams",
        ProgressNotificationParams::FIELDS,
    ),
    ("Prompt", Prompt::FIELDS),
    ("PromptArgument", PromptArgument::FIELDS),
    ("PromptMessage", PromptMessage::FIELDS),
    ("PromptReference", PromptReference::FIELDS),
    (
        "ReadResourceRequest.params",
        ReadResourceRequestParams::FIELDS,
    ),
    (
        "ReadResourceRequestParams",
        ReadResourceRequestParams::FIELDS,
    ),
    ("ReadResourceResult", ReadResourceResult::FIELDS),
    ("RelatedTaskMetadata", RelatedTaskMetadata::FIELDS),
    ("RequestMetaObject", RequestMeta::FIELDS),
    ("RequestParams", RequestParams::FIELDS),
    ("Resource", Resource::FIELDS),
    ("Resource.annotations", Annotations::FIELDS),
    ("ResourceLink", ResourceLink::FIELDS),
    ("ResourceReference", ResourceTemplateReference::FIELDS),
    ("ResourceRequestParams", ResourceRequestParams::FIELDS),
    ("ResourceTemplate", ResourceTemplate::FIELDS),
    ("ResourceTemplate.annotations", Annotations::FIELDS),
    (
        "ResourceTemplateReference",
        ResourceTemplateReference::FIELDS,
    ),
    (
        "ResourceUpdatedNotification.params",
        ResourceUpdatedNotificationParams::FIELDS,
    ),
    (
        "ResourceUpdatedNotificationParams",
        ResourceUpdatedNotificationParams::FIELDS,
    ),
    ("Result", EmptyResult::FIELDS),
    ("ResultMetaObject", ResultMeta::FIELDS),
    ("Root", Root::FIELDS),
    ("SamplingMessage", SamplingMessage::FIELDS),
    ("ServerCapabilities", ServerCapabilities::FIELDS),
    ("ServerCapabilities.prompts", ListCapability::FIELDS),
    ("ServerCapabilities.resources", ResourcesCapability::FIELDS),
    ("ServerCapabilities.tasks", TasksCapability::FIELDS),
    ("ServerCapabilities.tools", ListCapability::FIELDS),
    ("SetLevelRequest.params", SetLevelRequestParams::FIELDS),
    ("SetLevelRequestParams", SetLevelRequestParams::FIELDS),
    ("StringSchema", StringSchema::FIELDS),
    ("SubscribeRequest.params", ResourceRequestParams::FIELDS),
    ("SubscribeRequestParams", ResourceRequestParams::FIELDS),
    ("SubscriptionFilter", SubscriptionFilter::FIELDS),
    (
        "SubscriptionsAcknowledgedNotificationParams",
        SubscriptionsAcknowledgedNotificationParams::FIELDS,
    ),
    (
        "SubscriptionsListenRequestParams",
        SubscriptionsListenRequestParams::FIELDS,
    ),
    (
        "SubscriptionsListenResult",
        SubscriptionsListenResult::FIELDS,
    ),
    ("SubscriptionsListenResultMetaObject", ResultMeta::FIELDS),
    ("Task", Task::FIELDS),
    ("TaskMetadata", TaskMetadata::FIELDS),
    ("TaskStatusNotificationParams", Task::FIELDS),
    ("TextContent", TextContent::FIELDS),
    ("TextContent.annotations", Annotations::FIELDS),
    ("TextResourceContents", TextResourceContents::FIELDS),
    (
        "TitledMultiSelectEnumSchema",
        TitledMultiSelectEnumSchema::FIELDS,
    ),
    ("TitledMultiSelectEnumSchema.items", TitledItems::FIELDS),
    (
        "TitledSingleSelectEnumSchema",
        TitledSingleSelectEnumSchema::FIELDS,
    ),
    ("Tool", Tool::FIELDS),
    ("ToolAnnotations", ToolAnnotations::FIELDS),
    ("ToolChoice", ToolChoice::FIELDS),
    ("ToolExecution", ToolExecution::FIELDS),
    ("ToolResultContent", ToolResultContent::FIELDS),
    ("ToolUseContent", ToolUseContent::FIELDS),
    (
        "URLElicitationRequiredError.error.data",
        UrlElicitationRequiredData::FIELDS,
    ),
    ("UnsubscribeRequest.params", ResourceRequestParams::FIELDS),
    ("UnsubscribeRequestParams", ResourceRequestParams::FIELDS),
    (
        "UnsupportedProtocolVersionError.error.data",
        UnsupportedProtocolVersionData::FIELDS,
    ),
    (
        "UntitledMultiSelectEnumSchema",
        UntitledMultiSelectEnumSchema::FIELDS,
    ),
    ("UntitledMultiSelectEnumSchema.items", UntitledItems::FIELDS),
    (
        "UntitledSingleSelectEnumSchema",
        UntitledSingleSelectEnumSchema::FIELDS,
    ),
];

/// The string sets, and their location in the schemas.
pub(super) const ENUMS: &[(&str, &[&str])] = &[
    ("CacheableResult.cacheScope", CacheScope::VALUES),
    (
        "CreateMessageRequest.params.includeContext",
        IncludeContext::VALUES,
    ),
    (
        "CreateMessageRequestParams.includeContext",
        IncludeContext::VALUES,
    ),
    ("ElicitResult.action", ElicitAction::VALUES),
    ("Icon.theme", IconTheme::VALUES),
    ("LoggingLevel", LoggingLevel::VALUES),
    ("NumberSchema.type", NumberKind::VALUES),
    ("Role", Role::VALUES),
    ("StringSchema.format", StringFormat::VALUES),
    ("TaskStatus", TaskStatus::VALUES),
    ("ToolChoice.mode", ToolChoiceMode::VALUES),
    ("ToolExecution.taskSupport", TaskSupport::VALUES),
];

/// Definitions without a type, and why.
pub(super) const NOT_TYPES: &[(&str, &str)] = &[
    (
        "Annotated",
        "a base; its one field is in the types that have it",
    ),
    (
        "BaseMetadata",
        "a base; its fields are in the types that have them",
    ),
    (
        "CacheableResult",
        "a base; its fields are in the types that have them",
    ),
    (
        "ClientNotification",
        "a union; `types::method::NOTIFICATIONS` has its members",
    ),
    (
        "ClientRequest",
        "a union; `types::method::REQUESTS` has its members",
    ),
    ("ClientResult", "a union; results are decoded by method"),
    ("ContentBlock", "a union; `ContentBlock` has its members"),
    ("Cursor", "a string"),
    (
        "ElicitRequestParams",
        "a union; `ElicitRequestParams` has its members",
    ),
    ("EmptyResult", "another name of `Result`"),
    (
        "HeaderMismatchError",
        "a message whose error carries no data",
    ),
    ("Icons", "a base; its field is in the types that have it"),
    ("InputRequest", "a union; `InputRequest` has its members"),
    ("InputRequests", "a map of `InputRequest`"),
    (
        "InputResponse",
        "a union; `InputResponse` has its members, the request tells which",
    ),
    ("InputResponses", "a map of answers"),
    ("JSONArray", "any JSON"),
    ("JSONObject", "any JSON"),
    ("JSONRPCBatchRequest", "the message layer's"),
    ("JSONRPCBatchResponse", "the message layer's"),
    ("JSONRPCError", "the message layer's"),
    ("JSONRPCErrorResponse", "the message layer's"),
    ("JSONRPCMessage", "the message layer's"),
    ("JSONRPCNotification", "the message layer's"),
    ("JSONRPCRequest", "the message layer's"),
    ("JSONRPCResponse", "the message layer's"),
    ("JSONRPCResultResponse", "the message layer's"),
    ("JSONValue", "any JSON"),
    ("MetaObject", "any JSON object"),
    (
        "MissingRequiredClientCapabilityError",
        "a message; its data is a type",
    ),
    (
        "MultiSelectEnumSchema",
        "a union; `PrimitiveSchema` has its members",
    ),
    ("Notification", "the message layer's"),
    ("PaginatedRequest", "a base; its params are a type"),
    (
        "PaginatedResult",
        "a base; its fields are in the types that have them",
    ),
    (
        "PrimitiveSchemaDefinition",
        "a union; `PrimitiveSchema` has its members",
    ),
    (
        "ProgressToken",
        "a string or a number: `RequestId`, which is no struct",
    ),
    ("Request", "the message layer's"),
    ("RequestId", "the message layer's `RequestId`"),
    (
        "ResourceContents",
        "a base; its fields are in the two types that have them",
    ),
    (
        "ResultType",
        "an open string; `ResultType` has the known ones",
    ),
    (
        "SamplingMessageContentBlock",
        "a union; `ContentBlock` has its members",
    ),
    (
        "ServerNotification",
        "a union; `types::method::NOTIFICATIONS` has its members",
    ),
    (
        "ServerRequest",
        "a union; `types::method::REQUESTS` has its members",
    ),
    ("ServerResult", "a union; results are decoded by method"),
    (
        "SingleSelectEnumSchema",
        "a union; `PrimitiveSchema` has its members",
    ),
    (
        "TaskAugmentedRequestParams",
        "a base; its fields are in the types that have them",
    ),
    (
        "URLElicitationRequiredError",
        "a message; its data is a type",
    ),
    (
        "UnsupportedProtocolVersionError",
        "a message; its data is a type",
    ),
];

/// Objects in definitions that stay raw JSON, and why.
pub(super) const OPAQUE: &[(&str, &str)] = &[
    (
        "_meta",
        "most of it is custom; `meta` has the protocol's part",
    ),
    ("inputSchema", "a JSON Schema"),
    ("outputSchema", "a JSON Schema"),
    (
        "requests",
        "task support by family and method, asked for one path at a time",
    ),
];

/// Known fields that no core schema has in that place, and why.
pub(super) const EXTENSIONS: &[(&str, &str, &str)] = &[
    (
        "CreateTaskResult",
        "resultType",
        "servers between 2025-11-25 and the extension",
    ),
    (
        "ElicitationCompleteNotification.params",
        "_meta",
        "every notification may have it",
    ),
    (
        "InitializeResult",
        "resultType",
        "servers of both eras send it everywhere",
    ),
    (
        "NotificationMetaObject",
        "io.modelcontextprotocol/related-task",
        "prose of 2025-11-25",
    ),
    (
        "RequestMetaObject",
        "io.modelcontextprotocol/related-task",
        "prose of 2025-11-25",
    ),
    (
        "ResultMetaObject",
        "io.modelcontextprotocol/related-task",
        "prose of 2025-11-25",
    ),
    ("CancelTaskResult", "resultType", "tasks extension"),
    ("SubscriptionFilter", "taskIds", "tasks extension"),
    ("Task", "error", "tasks extension"),
    ("Task", "inputRequests", "tasks extension"),
    ("Task", "pollIntervalMs", "tasks extension"),
    ("Task", "result", "tasks extension"),
    ("Task", "resultType", "tasks extension"),
    ("Task", "ttlMs", "tasks extension"),
    (
        "CancelTaskRequest.params",
        "_meta",
        "every request may have it",
    ),
];

/// Fields that we require although some revision does not, and why.
pub(super) const STRICTER: &[(&str, &str, &str)] = &[];
