//! Serves MCP from a Rust value that implements [`Service`].
//!
//! [`Conversation`] decodes JSON-RPC bytes into calls of the service and encodes its answers, in both eras of the
//! protocol. Transports carry the bytes: the in-process transport, standard input and
//! output, an HTTP endpoint. Nothing in here opens a socket, reads a clock or depends on a connection.
//!
//! | where | what |
//! |---|---|
//! | this file | the trait, its result types, and helpers that build results |
//! | `frame` | a frame from a client, parsed once |
//! | `conversation` | one client session: frames in, frames out, running requests, cancellation |
//! | `dispatch` | one request: opening, method of the service, additions of the era to the result |
//! | `context` | progress, log messages and requests to the client while a request is served |
//! | `asked`, `subscriptions`, `changes` | pending requests to the client; subscriptions; change notifications |
//! | `sink` | destination and purpose of frames |
//! | `cancellation` | the cancellation flag of a request |
//!
//! A server with one tool:
//!
//! ```
//! use switchboard::service::{Features, Reply, RequestContext, Service, text_result, unknown_tool};
//! use switchboard_protocol::types::{
//!     lifecycle::Implementation,
//!     tool::{CallToolRequestParams, CallToolResult, Tool},
//! };
//!
//! struct Greeter;
//!
//! impl Service for Greeter {
//!     fn identity(&self) -> Implementation<'static> {
//!         Implementation::new("greeter".into())
//!     }
//!
//!     fn features(&self) -> Features {
//!         Features { tools: true, ..Features::NONE }
//!     }
//!
//!     fn tools(&self) -> Vec<Tool<'static>> {
//!         vec![Tool::new("greet".into())]
//!     }
//!
//!     fn call_tool<'a>(
//!         &'a self,
//!         call: CallToolRequestParams<'a>,
//!         _context: &'a RequestContext,
//!     ) -> Reply<'a, CallToolResult<'static>> {
//!         Box::pin(async move {
//!             match &*call.name {
//!                 "greet" => Ok(text_result("Good morning.")),
//!                 other => Err(unknown_tool(other)),
//!             }
//!         })
//!     }
//! }
//! ```

mod asked;
mod cancellation;
mod changes;
mod context;
pub(crate) mod conversation;
mod dispatch;
pub(crate) mod frame;
pub(crate) mod sink;
mod subscriptions;

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_protocol::types::capabilities::{ClientCapabilities, ServerCapabilities};
use switchboard_protocol::types::completion::{CompleteRequestParams, Completion};
use switchboard_protocol::types::content::{ContentBlock, TextContent};
use switchboard_protocol::types::input::InputRequiredResult;
use switchboard_protocol::types::lifecycle::{Implementation, InitializeRequestParams};
use switchboard_protocol::types::prompt::{GetPromptRequestParams, GetPromptResult, Prompt};
use switchboard_protocol::types::resource::{
    ListResourcesResult, ReadResourceRequestParams, ReadResourceResult, ResourceTemplate,
};
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{Raw, RawObject};
use switchboard_protocol::{Era, ErrorCode, ErrorObject, Method};

use crate::json::SharedJson;

pub use cancellation::Cancellation;
pub use changes::Changes;
pub use context::RequestContext;
pub(crate) use conversation::Conversation;
pub(crate) use sink::{Purpose, Sink};

/// The answer of a [`Service`] method.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// A Rust value that serves MCP. Only its identity and features are required; everything else has a default.
///
/// Requests run concurrently. A cancelled future is dropped at its next `await`, so work that must not stop half way
/// belongs in its own task. Until its first `await` a future runs on the client's task: work that computes or blocks
/// for long belongs in `tokio::task::spawn_blocking`, with the context's [`Cancellation`]. A panic fails only its own
/// request.
pub trait Service: Send + Sync + 'static {
    /// Name and version. Called once per client.
    fn identity(&self) -> Implementation<'static>;

    /// Supported features. Methods of other features are rejected before they reach the service.
    fn features(&self) -> Features;

    /// Usage instructions for the model.
    fn instructions(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// Announces changes. Without it, lists and resources are taken to be constant.
    fn changes(&self) -> Option<&Changes> {
        None
    }

    /// Its tools.
    fn tools(&self) -> Vec<Tool<'static>> {
        Vec::new()
    }

    /// One of its tools. Override it if there are many, or if building the list is expensive.
    fn tool(&self, name: &str) -> Option<Tool<'static>> {
        self.tools().into_iter().find(|tool| tool.name == *name)
    }

    /// Calls a tool. A tool that fails returns `is_error`, for the model to read; a [`Failure`] means that the request
    /// itself was invalid.
    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        refuse(unknown_tool(&call.name))
    }

    /// One page of its resources, the first without a cursor. Unlike tools and prompts, resources are data: there may
    /// be many, and listing them may take a while.
    fn resources<'a>(
        &'a self,
        _cursor: Option<&'a str>,
        _context: &'a RequestContext,
    ) -> Reply<'a, ListResourcesResult<'static>> {
        Box::pin(async { Ok(ListResourcesResult::new(Vec::new().into())) })
    }

    /// URI templates of its resources.
    fn resource_templates(&self) -> Vec<ResourceTemplate<'static>> {
        Vec::new()
    }

    /// Reads a resource.
    fn read_resource<'a>(
        &'a self,
        read: ReadResourceRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, ReadResourceResult<'static>> {
        refuse(context.resource_not_found(&read.uri))
    }

    /// Its prompts.
    fn prompts(&self) -> Vec<Prompt<'static>> {
        Vec::new()
    }

    /// Fills in a prompt.
    fn get_prompt<'a>(
        &'a self,
        get: GetPromptRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, GetPromptResult<'static>> {
        refuse(unknown_prompt(&get.name))
    }

    /// Whether a change of the tools concerns the client.
    #[doc(hidden)]
    fn announces_tools(&self) -> bool {
        true
    }

    /// Called before `initialize` or `server/discover` of a client with these capabilities is answered, which waits for
    /// the returned future. `hello` is what the client said in `initialize`.
    #[doc(hidden)]
    fn greet(
        &self,
        client: &ClientCapabilities<'_>,
        hello: Option<&InitializeRequestParams<'_>>,
    ) -> Option<BoxFuture<'_, ()>> {
        let _ = (client, hello);
        None
    }

    /// Capabilities to declare in this era, instead of those that follow from its features.
    #[doc(hidden)]
    fn capabilities(&self, era: Era) -> Option<ServerCapabilities<'static>> {
        let _ = era;
        None
    }

    /// Answers a request with a result that is sent as it is; `None`: by the other methods.
    #[doc(hidden)]
    fn forward<'a>(
        &'a self,
        method: Method,
        params: Option<&'a RawValue>,
        context: &'a Arc<RequestContext>,
    ) -> Option<Reply<'a, SharedJson>> {
        let _ = (method, params, context);
        None
    }

    /// Answers a request that is not served otherwise: a method of an extension, or of tasks. `None`: the method does
    /// not exist.
    #[doc(hidden)]
    fn forward_other<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
        context: &'a Arc<RequestContext>,
    ) -> Option<Reply<'a, SharedJson>> {
        let _ = (method, params, context);
        None
    }

    /// Called for a notification whose method is not part of the specification.
    #[doc(hidden)]
    fn notified(&self, method: &str, params: Option<&RawValue>) {
        let _ = (method, params);
    }

    /// Called when a client subscribes to resources, or no longer does.
    #[doc(hidden)]
    fn subscribed(&self, uris: &[&str], is_wanted: bool) {
        let _ = (uris, is_wanted);
    }

    /// Called when the roots of a client have changed.
    #[doc(hidden)]
    fn roots_changed(&self) {}

    /// Suggests values for an argument of a prompt or a template. Only the first hundred are sent.
    fn complete<'a>(
        &'a self,
        _typed: CompleteRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, Completion<'static>> {
        Box::pin(async { Ok(Completion::new(Vec::new().into())) })
    }
}

/// Features of a service. Whether lists change and resources can be subscribed to follows from [`Service::changes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Tools.
    pub tools: bool,
    /// Prompts.
    pub prompts: bool,
    /// Resources.
    pub resources: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Log messages.
    pub logging: bool,
}

impl Features {
    /// No features, as a base for struct update syntax.
    pub const NONE: Self = Self {
        tools: false,
        prompts: false,
        resources: false,
        completions: false,
        logging: false,
    };
}

/// Reason why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A JSON-RPC error.
    #[error("{0}")]
    Error(ErrorObject<'static>),
    /// The client must provide input and repeat the request (stateless era). Returned by [`RequestContext::ask`].
    #[error("the client must provide input first")]
    InputRequired(Box<InputRequiredResult<'static>>),
}

impl From<ErrorObject<'static>> for Failure {
    fn from(error: ErrorObject<'static>) -> Self {
        Self::Error(error)
    }
}

/// Builds a tool definition with the JSON Schema of its arguments.
pub fn tool_definition(
    name: impl Into<Cow<'static, str>>,
    description: impl Into<String>,
    input_schema: &Value,
) -> Tool<'static> {
    let mut tool = Tool::new(name.into());
    tool.description = Some(description.into().into());
    tool.input_schema = Some(schema(input_schema));
    tool
}

/// A JSON Schema as used in definitions. Anything but an object becomes the schema of an empty object.
pub(crate) fn schema(schema: &Value) -> RawObject<'static> {
    let raw = Raw::from_serialize(schema).ok();
    raw.and_then(|raw| raw.try_into().ok()).unwrap_or_default()
}

/// A tool result with one text block.
pub fn text_result(text: impl Into<String>) -> CallToolResult<'static> {
    let mut result = CallToolResult::new();
    result.content = vec![text_block(text)].into();
    result
}

/// A tool result with `is_error` and the reason, for the model to act on.
pub fn error_result(reason: impl Into<String>) -> CallToolResult<'static> {
    let mut result = text_result(reason);
    result.is_error = Some(true);
    result
}

/// A text content block.
pub fn text_block(text: impl Into<String>) -> ContentBlock<'static> {
    TextContent::new(text.into().into()).into()
}

/// The error for calling an unknown tool.
pub fn unknown_tool(name: &str) -> Failure {
    invalid_params(format!("unknown tool: {name}"))
}

/// The error for requesting an unknown prompt.
pub fn unknown_prompt(name: &str) -> Failure {
    invalid_params(format!("unknown prompt: {name}"))
}

/// The error for invalid parameters.
pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Failure {
    ErrorObject::new(ErrorCode::INVALID_PARAMS, message).into()
}

fn refuse<'a, T: Send + 'a>(failure: Failure) -> Reply<'a, T> {
    Box::pin(std::future::ready(Err(failure)))
}
