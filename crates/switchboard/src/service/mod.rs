//! Serving MCP from a Rust value.
//!
//! [`Service`] is all that a server has to implement; [`Conversation`] turns JSON-RPC bytes into calls of it and its
//! answers into bytes again, in both eras of the protocol. Who carries the bytes is somebody else's business: the
//! in-process transport, standard input and output, an HTTP endpoint. So nothing in
//! here opens a socket, reads a clock or knows what a connection is.
//!
//! | where | what |
//! |---|---|
//! | this file | the trait, what it may answer, and shorthands for answers |
//! | `frame` | what a client sent, parsed once |
//! | `conversation` | one client: frames in, frames out, what is running, what was cancelled |
//! | `dispatch` | one request: how it opens, which method of the service it is, what its era adds to the answer |
//! | `context` | what a service can do while it answers: progress, log messages, questions to the client |
//! | `asked`, `subscriptions`, `changes` | questions under way; who wants to hear of what; how changes reach them |
//! | `sink` | where frames go, and what each is for |
//! | `cancellation` | the flag that says nobody waits any longer |
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

use futures_util::future::BoxFuture;
use serde_json::Value;
use switchboard_protocol::types::completion::{CompleteRequestParams, Completion};
use switchboard_protocol::types::content::{ContentBlock, TextContent};
use switchboard_protocol::types::input::InputRequiredResult;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::prompt::{GetPromptRequestParams, GetPromptResult, Prompt};
use switchboard_protocol::types::resource::{
    ListResourcesResult, ReadResourceRequestParams, ReadResourceResult, ResourceTemplate,
};
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{Raw, RawObject};
use switchboard_protocol::{ErrorCode, ErrorObject};

pub use cancellation::Cancellation;
pub use changes::Changes;
pub use context::RequestContext;
pub(crate) use conversation::Conversation;
pub(crate) use sink::{Purpose, Sink};

/// What a method of a [`Service`] answers, once it is done.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// A Rust value that serves MCP. Only who it is and what it has must be said; everything else has a default.
///
/// Requests run concurrently. A future that is cancelled is dropped at its next `await`, so what must not stop half
/// way belongs in a task of its own. Until its first `await` a future runs on the client's own task: what computes
/// or blocks for long belongs into `tokio::task::spawn_blocking`, with the context's [`Cancellation`] beside it. A
/// panic fails its own request and nothing else.
pub trait Service: Send + Sync + 'static {
    /// Its name and version. Asked once for each client.
    fn identity(&self) -> Implementation<'static>;

    /// What it has. Methods of anything else are refused before they get here.
    fn features(&self) -> Features;

    /// How to use it, for the model.
    fn instructions(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// Where it announces that something changed. Without one, its lists and resources are taken to stay as they are.
    fn changes(&self) -> Option<&Changes> {
        None
    }

    /// Its tools.
    fn tools(&self) -> Vec<Tool<'static>> {
        Vec::new()
    }

    /// One of its tools. Worth writing where there are many, or where making the list is dear.
    fn tool(&self, name: &str) -> Option<Tool<'static>> {
        self.tools().into_iter().find(|tool| tool.name == *name)
    }

    /// Runs a tool. A tool that fails answers with `is_error`, for the model to read; a [`Failure`] says that the
    /// request itself was wrong.
    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        refuse(unknown_tool(&call.name))
    }

    /// One page of its resources, the first without a cursor. Unlike tools and prompts, these are data: there may be
    /// many, and listing them may take a while.
    fn resources<'a>(
        &'a self,
        _cursor: Option<&'a str>,
        _context: &'a RequestContext,
    ) -> Reply<'a, ListResourcesResult<'static>> {
        Box::pin(async { Ok(ListResourcesResult::new(Vec::new().into())) })
    }

    /// Its patterns for the URIs of resources.
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

    /// Proposes values for an argument of a prompt or a template. Only the first hundred are sent.
    fn complete<'a>(
        &'a self,
        _typed: CompleteRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, Completion<'static>> {
        Box::pin(async { Ok(Completion::new(Vec::new().into())) })
    }
}

/// What a service has. That its lists change, and that resources can be subscribed to, follows from
/// [`Service::changes`].
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
    /// Nothing at all, to start from.
    pub const NONE: Self = Self {
        tools: false,
        prompts: false,
        resources: false,
        completions: false,
        logging: false,
    };
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It failed.
    #[error("{0}")]
    Error(ErrorObject<'static>),
    /// The client has to answer something and then ask again (stateless era). [`RequestContext::ask`] makes these.
    #[error("the client has to answer a question first")]
    InputRequired(Box<InputRequiredResult<'static>>),
}

impl From<ErrorObject<'static>> for Failure {
    fn from(error: ErrorObject<'static>) -> Self {
        Self::Error(error)
    }
}

/// The definition of a tool, with the JSON Schema of its arguments.
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

/// A JSON Schema as definitions carry it. Anything but an object is the schema of an empty object.
pub(crate) fn schema(schema: &Value) -> RawObject<'static> {
    let raw = Raw::from_serialize(schema).ok();
    raw.and_then(|raw| raw.try_into().ok()).unwrap_or_default()
}

/// A tool's answer of one text.
pub fn text_result(text: impl Into<String>) -> CallToolResult<'static> {
    let mut result = CallToolResult::new();
    result.content = vec![text_block(text)].into();
    result
}

/// A tool's answer that says why it failed, for the model to act on.
pub fn error_result(reason: impl Into<String>) -> CallToolResult<'static> {
    let mut result = text_result(reason);
    result.is_error = Some(true);
    result
}

/// A block of text.
pub fn text_block(text: impl Into<String>) -> ContentBlock<'static> {
    TextContent::new(text.into().into()).into()
}

/// The answer to a call of a tool that is not there.
pub fn unknown_tool(name: &str) -> Failure {
    invalid_params(format!("unknown tool: {name}"))
}

/// The answer to a request for a prompt that is not there.
pub fn unknown_prompt(name: &str) -> Failure {
    invalid_params(format!("unknown prompt: {name}"))
}

/// The answer to parameters that do not fit.
pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Failure {
    ErrorObject::new(ErrorCode::INVALID_PARAMS, message).into()
}

fn refuse<'a, T: Send + 'a>(failure: Failure) -> Reply<'a, T> {
    Box::pin(std::future::ready(Err(failure)))
}
