//! Every method by name, with the types of its parameters and of its answer.
//!
//! Whoever sent a request knows its method, and so the type to decode the answer as:
//!
//! ```
//! use switchboard_protocol::types::{Outcome, method::{CallTool, Method}};
//!
//! let raw = serde_json::from_str(r#"{"content":[{"type":"text","text":"18 °C"}]}"#)?;
//! let Outcome::Complete(result) = CallTool::decode_result(raw)? else { panic!("no answer") };
//! assert_eq!(result.content.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde_json::value::RawValue;

use super::completion::{CompleteRequestParams, CompleteResult};
use super::elicitation::{
    ElicitRequestParams, ElicitResult, ElicitationCompleteNotificationParams,
};
use super::lifecycle::{
    DiscoverResult, EmptyResult, InitializeRequestParams, InitializeResult, PaginatedRequestParams,
    RequestParams,
};
use super::logging::{LoggingMessageNotificationParams, SetLevelRequestParams};
use super::notification::{
    CancelledNotificationParams, NotificationParams, ProgressNotificationParams,
};
use super::prompt::{GetPromptRequestParams, GetPromptResult, ListPromptsResult};
use super::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams,
    ReadResourceResult, ResourceRequestParams, ResourceUpdatedNotificationParams,
};
use super::result::{Outcome, ResultBody, decode_result};
use super::roots::ListRootsResult;
use super::sampling::{CreateMessageRequestParams, CreateMessageResult};
use super::subscription::{
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
};
use super::task::{
    CancelTaskResult, ListTasksResult, Task, TaskRequestParams, UpdateTaskRequestParams,
};
use super::tool::{CallToolRequestParams, CallToolResult, ListToolsResult};
use super::wire::{Decode, DecodeError, Encode, decode};

/// A request's method.
pub trait Method {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it asks.
    type Params<'a>: Decode<'a> + Encode;
    /// What it answers when it is complete.
    type Result<'a>: ResultBody<'a> + Encode;

    /// Decodes what it asks.
    fn decode_params(raw: &RawValue) -> Result<Self::Params<'_>, DecodeError> {
        decode(raw)
    }

    /// Decodes what it answers.
    fn decode_result(raw: &RawValue) -> Result<Outcome<'_, Self::Result<'_>>, DecodeError> {
        decode_result(raw)
    }
}

/// A notification's method.
pub trait Notification {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it says.
    type Params<'a>: Decode<'a> + Encode;

    /// Decodes what it says.
    fn decode_params(raw: &RawValue) -> Result<Self::Params<'_>, DecodeError> {
        decode(raw)
    }
}

macro_rules! methods {
    ($($name:ident = $method:literal: $params:ident => $result:ident;)*) => {
        $(
            #[doc = concat!("`", $method, "`.")]
            #[derive(Debug, Clone, Copy)]
            pub enum $name {}

            impl Method for $name {
                const NAME: &'static str = $method;
                type Params<'a> = $params<'a>;
                type Result<'a> = $result<'a>;
            }
        )*

        /// The name of every request we know.
        pub const METHODS: &[&str] = &[$($method),*];
    };
}

macro_rules! notifications {
    ($($name:ident = $method:literal: $params:ident;)*) => {
        $(
            #[doc = concat!("`", $method, "`.")]
            #[derive(Debug, Clone, Copy)]
            pub enum $name {}

            impl Notification for $name {
                const NAME: &'static str = $method;
                type Params<'a> = $params<'a>;
            }
        )*

        /// The name of every notification we know.
        pub const NOTIFICATIONS: &[&str] = &[$($method),*];
    };
}

methods! {
    // Sent by clients.
    Initialize = "initialize": InitializeRequestParams => InitializeResult;
    Discover = "server/discover": RequestParams => DiscoverResult;
    Ping = "ping": RequestParams => EmptyResult;
    ListTools = "tools/list": PaginatedRequestParams => ListToolsResult;
    CallTool = "tools/call": CallToolRequestParams => CallToolResult;
    ListPrompts = "prompts/list": PaginatedRequestParams => ListPromptsResult;
    GetPrompt = "prompts/get": GetPromptRequestParams => GetPromptResult;
    ListResources = "resources/list": PaginatedRequestParams => ListResourcesResult;
    ListResourceTemplates = "resources/templates/list": PaginatedRequestParams => ListResourceTemplatesResult;
    ReadResource = "resources/read": ReadResourceRequestParams => ReadResourceResult;
    SubscribeResource = "resources/subscribe": ResourceRequestParams => EmptyResult;
    UnsubscribeResource = "resources/unsubscribe": ResourceRequestParams => EmptyResult;
    Listen = "subscriptions/listen": SubscriptionsListenRequestParams => SubscriptionsListenResult;
    Complete = "completion/complete": CompleteRequestParams => CompleteResult;
    SetLevel = "logging/setLevel": SetLevelRequestParams => EmptyResult;
    // Sent by servers, in the stateful era.
    CreateMessage = "sampling/createMessage": CreateMessageRequestParams => CreateMessageResult;
    Elicit = "elicitation/create": ElicitRequestParams => ElicitResult;
    ListRoots = "roots/list": RequestParams => ListRootsResult;
    // Sent by whoever began a task. `tasks/result` answers what the task's own method does; decode it as that.
    GetTask = "tasks/get": TaskRequestParams => Task;
    GetTaskResult = "tasks/result": TaskRequestParams => EmptyResult;
    UpdateTask = "tasks/update": UpdateTaskRequestParams => EmptyResult;
    CancelTask = "tasks/cancel": TaskRequestParams => CancelTaskResult;
    ListTasks = "tasks/list": PaginatedRequestParams => ListTasksResult;
}

notifications! {
    Initialized = "notifications/initialized": NotificationParams;
    Cancelled = "notifications/cancelled": CancelledNotificationParams;
    Progress = "notifications/progress": ProgressNotificationParams;
    LoggingMessage = "notifications/message": LoggingMessageNotificationParams;
    ToolListChanged = "notifications/tools/list_changed": NotificationParams;
    PromptListChanged = "notifications/prompts/list_changed": NotificationParams;
    ResourceListChanged = "notifications/resources/list_changed": NotificationParams;
    ResourceUpdated = "notifications/resources/updated": ResourceUpdatedNotificationParams;
    RootsListChanged = "notifications/roots/list_changed": NotificationParams;
    SubscriptionsAcknowledged =
        "notifications/subscriptions/acknowledged": SubscriptionsAcknowledgedNotificationParams;
    ElicitationComplete =
        "notifications/elicitation/complete": ElicitationCompleteNotificationParams;
    // 2025-11-25 and the extension name the same thing differently.
    TaskStatusChanged = "notifications/tasks/status": Task;
    TaskChanged = "notifications/tasks": Task;
}
