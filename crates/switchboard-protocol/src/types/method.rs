//! Every method as a type, with the types of its parameters and of its answer.
//!
//! What else is fixed about a method stands in the table of [`crate::method`], which each type points to with
//! `METHOD`.
//!
//! Whoever sent a request knows its method, and so the type to decode the answer as:
//!
//! ```
//! use switchboard_protocol::types::{Outcome, method::{CallTool, Request}};
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
use crate::method::Method;

/// The method of a request.
pub trait Request {
    /// Its row in the table of methods.
    const METHOD: Method;
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

/// The method of a notification.
pub trait Notification {
    /// Its row in the table of methods.
    const METHOD: Method;
    /// What it says.
    type Params<'a>: Decode<'a> + Encode;

    /// Decodes what it says.
    fn decode_params(raw: &RawValue) -> Result<Self::Params<'_>, DecodeError> {
        decode(raw)
    }
}

macro_rules! requests {
    ($($name:ident = $method:ident: $params:ident => $result:ident;)*) => {
        $(
            #[doc = concat!("The types of [`Method::", stringify!($method), "`].")]
            #[derive(Debug, Clone, Copy)]
            pub enum $name {}

            impl Request for $name {
                const METHOD: Method = Method::$method;
                type Params<'a> = $params<'a>;
                type Result<'a> = $result<'a>;
            }
        )*

        /// Every request that has types.
        pub const REQUESTS: &[Method] = &[$(Method::$method),*];

        /// The requests whose answer may be a request for input, as the types have it.
        #[cfg(test)]
        const MAY_NEED_INPUT: &[(Method, bool)] =
            &[$((Method::$method, $result::MAY_NEED_INPUT)),*];
    };
}

macro_rules! notifications {
    ($($name:ident = $method:ident: $params:ident;)*) => {
        $(
            #[doc = concat!("The types of [`Method::", stringify!($method), "`].")]
            #[derive(Debug, Clone, Copy)]
            pub enum $name {}

            impl Notification for $name {
                const METHOD: Method = Method::$method;
                type Params<'a> = $params<'a>;
            }
        )*

        /// Every notification that has types.
        pub const NOTIFICATIONS: &[Method] = &[$(Method::$method),*];
    };
}

requests! {
    // Sent by clients.
    Initialize = Initialize: InitializeRequestParams => InitializeResult;
    Discover = Discover: RequestParams => DiscoverResult;
    Ping = Ping: RequestParams => EmptyResult;
    ListTools = ToolsList: PaginatedRequestParams => ListToolsResult;
    CallTool = ToolsCall: CallToolRequestParams => CallToolResult;
    ListPrompts = PromptsList: PaginatedRequestParams => ListPromptsResult;
    GetPrompt = PromptsGet: GetPromptRequestParams => GetPromptResult;
    ListResources = ResourcesList: PaginatedRequestParams => ListResourcesResult;
    ListResourceTemplates = ResourceTemplatesList: PaginatedRequestParams => ListResourceTemplatesResult;
    ReadResource = ResourcesRead: ReadResourceRequestParams => ReadResourceResult;
    SubscribeResource = ResourcesSubscribe: ResourceRequestParams => EmptyResult;
    UnsubscribeResource = ResourcesUnsubscribe: ResourceRequestParams => EmptyResult;
    Listen = SubscriptionsListen: SubscriptionsListenRequestParams => SubscriptionsListenResult;
    Complete = Complete: CompleteRequestParams => CompleteResult;
    SetLevel = SetLogLevel: SetLevelRequestParams => EmptyResult;
    // Sent by servers, in the stateful era.
    CreateMessage = SamplingCreateMessage: CreateMessageRequestParams => CreateMessageResult;
    Elicit = ElicitationCreate: ElicitRequestParams => ElicitResult;
    ListRoots = RootsList: RequestParams => ListRootsResult;
    // Sent by whoever began a task. `tasks/result` answers what the task's own method does; decode it as that.
    GetTask = TasksGet: TaskRequestParams => Task;
    GetTaskResult = TasksResult: TaskRequestParams => EmptyResult;
    UpdateTask = TasksUpdate: UpdateTaskRequestParams => EmptyResult;
    CancelTask = TasksCancel: TaskRequestParams => CancelTaskResult;
    ListTasks = TasksList: PaginatedRequestParams => ListTasksResult;
}

notifications! {
    Initialized = Initialized: NotificationParams;
    Cancelled = Cancelled: CancelledNotificationParams;
    Progress = Progress: ProgressNotificationParams;
    LoggingMessage = LogMessage: LoggingMessageNotificationParams;
    ToolListChanged = ToolsListChanged: NotificationParams;
    PromptListChanged = PromptsListChanged: NotificationParams;
    ResourceListChanged = ResourcesListChanged: NotificationParams;
    ResourceUpdated = ResourcesUpdated: ResourceUpdatedNotificationParams;
    RootsListChanged = RootsListChanged: NotificationParams;
    SubscriptionsAcknowledged = SubscriptionsAcknowledged: SubscriptionsAcknowledgedNotificationParams;
    ElicitationComplete = ElicitationComplete: ElicitationCompleteNotificationParams;
    // 2025-11-25 and the extension name the same thing differently.
    TaskStatusChanged = TaskStatus: Task;
    TaskChanged = TaskChanged: Task;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the table that have no types, each with its reason. There are none.
    const UNTYPED: &[(Method, &str)] = &[];

    #[test]
    fn every_row_of_the_table_has_types_and_every_type_a_row_of_its_own() {
        for method in Method::all() {
            let count = |list: &[Method]| list.iter().filter(|listed| **listed == method).count();
            let untyped = UNTYPED.iter().any(|(listed, _)| *listed == method);
            let expected = match (untyped, method.is_notification()) {
                (true, _) => (0, 0),
                (false, false) => (1, 0),
                (false, true) => (0, 1),
            };
            assert_eq!(
                (count(REQUESTS), count(NOTIFICATIONS)),
                expected,
                "{method}"
            );
        }
    }

    #[test]
    fn types_and_table_agree_on_who_may_ask_for_input() {
        for (method, may_need_input) in MAY_NEED_INPUT {
            assert_eq!(method.may_require_input(), *may_need_input, "{method}");
        }
    }
}
