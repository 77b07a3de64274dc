//! The handler of requests from servers: elicitation, sampling, roots.
//!
//! Defines the trait that an embedder implements. It serves both eras: requests of the server in the stateful one,
//! `input_required` results in the stateless one. By default every request is declined; no answer is ever made up.

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::types::wire::List;
use switchboard_protocol::{ErrorCode, ErrorObject};

use crate::names::ServerName;

mod limited;

pub use limited::QuestionLimits;
pub(crate) use limited::{Limited, too_many};

/// Answers requests from servers. A dropped future means that the server cancelled the request.
pub trait ClientHandler: Send + Sync + 'static {
    /// The capabilities declared to servers. Declare only those that are implemented.
    fn capabilities(&self) -> ClientCapabilities<'static> {
        ClientCapabilities::default()
    }

    /// Asks the user, with a form or a URL to visit.
    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        let _ = (server, params);
        ready(Ok(ElicitResult::new(ElicitAction::Decline))).boxed()
    }

    /// Samples from the model.
    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        let _ = (server, params);
        ready(Err(declined(
            "this client's model is not available to servers",
        )))
        .boxed()
    }

    /// Lists the folders that the user works in.
    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let _ = server;
        ready(Ok(ListRootsResult::new(List::default()))).boxed()
    }

    /// Answers a request whose method is not part of the specification.
    #[doc(hidden)]
    fn other<'a>(
        &'a self,
        server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        let _ = (server, method, params);
        ready(Err(ErrorObject::new(
            ErrorCode::METHOD_NOT_FOUND,
            "method not found",
        )))
        .boxed()
    }

    /// Called for a notification that belongs to a request of this client: a log message, or a method that is not part
    /// of the specification. Must be short and never block.
    #[doc(hidden)]
    fn notified(&self, server: &ServerName, method: &str, params: Option<&RawValue>) {
        let _ = (server, method, params);
    }

    /// Called when a server exceeds its rate limit, once until it has been quiet for a while. Its requests are refused
    /// until then.
    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        let _ = limits;
        tracing::warn!(%server, "rate limit exceeded; refusing requests from the server");
    }
}

/// A handler that declines everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeclineAll;

impl ClientHandler for DeclineAll {}

/// The error for a request that the user or a policy declined.
pub fn declined(message: &'static str) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode(-1), message)
}
