//! Every method as a type, with the types of its parameters and result.
//!
//! Other properties of a method are in the table of [`crate::method`], to which `METHOD` refers.
//!
//! The sender of a request knows its method, and thus the type of the result:
//!
//! ```
//! use switchboard_protocol::types::{Outcome, method::{CallTool, Request}};
//!
//! let raw = serde_json::from_str(r#"{"content":[{"type":"text","text":"18 °C"}]}"#)?;
//! let Outcome::Complete(result) = CallTool::decode_result(raw)? else { panic!("no answer") };
//! assert_eq!(result.content.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! And it encodes the request from the type of its parameters:
//!
//! ```
//! use switchboard_protocol::meta::MetaMembers;
//! use switchboard_protocol::types::{method::{CallTool, Request}, tool::CallToolRequestParams};
//!
//! let mut line = Vec::new();
//! let params = CallToolRequestParams::new("get_weather".into());
//! CallTool::encode_request(&mut line, &7.into(), &params, &MetaMembers::new())?;
//! assert_eq!(
//!     String::from_utf8(line)?,
//!     r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_weather"}}"#
//! );
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
use super::wire::{Decode, DecodeError, Encode, Reader, decode, encode};
use crate::encode::EncodeError;
use crate::id::RequestId;
use crate::limits::Limits;
use crate::meta::MetaMembers;
use crate::method::Method;
use crate::raw;

/// The method of a request.
pub trait Request {
    /// Its row in the method table.
    const METHOD: Method;
    /// Type of the parameters.
    type Params<'a>: Decode<'a> + Encode;
    /// Type of the complete result.
    type Result<'a>: ResultBody<'a> + Encode;

    /// Decodes the parameters. Absent ones, or `[]`, are treated as empty.
    fn decode_params(params: Option<&RawValue>) -> Result<Self::Params<'_>, DecodeError> {
        decode_params(params)
    }

    /// Appends the request to a buffer, with `members` merged into its `_meta`.
    fn encode_request(
        buffer: &mut Vec<u8>,
        id: &RequestId<'_>,
        params: &Self::Params<'_>,
        members: &MetaMembers,
    ) -> Result<(), EncodeError> {
        let params = to_raw(params)?;
        crate::encode::request_with_meta(buffer, id, Self::METHOD.name(), Some(&params), members)
    }

    /// Decodes the result of the request.
    fn decode_result(raw: &RawValue) -> Result<Outcome<'_, Self::Result<'_>>, DecodeError> {
        decode_result(raw)
    }

    /// Appends the response to a buffer.
    fn encode_response(
        buffer: &mut Vec<u8>,
        id: &RequestId<'_>,
        result: &Self::Result<'_>,
    ) -> Result<(), EncodeError> {
        crate::encode::response(buffer, id, &*to_raw(result)?)
    }
}

/// The method of a notification.
pub trait Notification {
    /// Its row in the method table.
    const METHOD: Method;
    /// Type of the parameters.
    type Params<'a>: Decode<'a> + Encode;

    /// Decodes the parameters. Absent ones, or `[]`, are treated as empty.
    fn decode_params(params: Option<&RawValue>) -> Result<Self::Params<'_>, DecodeError> {
        decode_params(params)
    }

    /// Appends the notification to a buffer.
    fn encode_notification(
        buffer: &mut Vec<u8>,
        params: &Self::Params<'_>,
    ) -> Result<(), EncodeError> {
        crate::encode::notification(buffer, Self::METHOD.name(), Some(&*to_raw(params)?))
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

        /// The requests whose result may be a request for input, according to the types.
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
    // Sent by the creator of a task. `tasks/result` returns the result of the task's own method; decode it as that.
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
    // 2025-11-25 and the extension have different names for the same notification.
    TaskStatusChanged = TaskStatus: Task;
    TaskChanged = TaskChanged: Task;
}

fn decode_params<'a, T: Decode<'a>>(params: Option<&'a RawValue>) -> Result<T, DecodeError> {
    let nothing = || T::decode(&mut Reader::over_valid("{}", &Limits::DEFAULT));
    match params {
        Some(params) if raw::says_nothing(params) => decode(params).or_else(|error| {
            // The error about the original value is more helpful than one about its replacement.
            nothing().map_err(|_| error)
        }),
        Some(params) => decode(params),
        None => nothing(),
    }
}

fn to_raw<T: Encode>(value: &T) -> Result<Box<RawValue>, EncodeError> {
    RawValue::from_string(encode(value)).map_err(EncodeError::Value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the table without types, each with its reason. There are none.
    const UNTYPED: &[(Method, &str)] = &[];

    #[test]
    fn rows_of_the_table_and_types_correspond() {
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
    fn types_and_table_agree_on_input_requests() {
        for (method, may_need_input) in MAY_NEED_INPUT {
            assert_eq!(method.may_require_input(), *may_need_input, "{method}");
        }
    }
}
