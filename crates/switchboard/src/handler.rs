//! What servers may ask of the client: its user, its model, its folders.
//!
//! Owns the trait an embedder implements. Both eras end here: a request of the server in the stateful one, an
//! `input_required` answer in the stateless one. Without an implementation everything is declined politely; no
//! answer is ever invented.

use futures_util::future::{BoxFuture, FutureExt as _, ready};
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

/// Answers what servers ask. Dropping a future means that the server no longer wants to know.
pub trait ClientHandler: Send + Sync + 'static {
    /// What servers are told they may ask. Declare only what is really answered.
    fn capabilities(&self) -> ClientCapabilities<'static> {
        ClientCapabilities::default()
    }

    /// Asks the user, by a form or by a page to visit.
    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        let _ = (server, params);
        ready(Ok(ElicitResult::new(ElicitAction::Decline))).boxed()
    }

    /// Asks the model.
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

    /// Tells the folders the user works in.
    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let _ = server;
        ready(Ok(ListRootsResult::new(List::default()))).boxed()
    }

    /// Hears that a server asks more than it may, once until it has been quiet for a while. Its questions are refused
    /// meanwhile.
    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        let _ = limits;
        tracing::warn!(%server, "the server asks too much, and is refused");
    }
}

/// A handler that declines everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeclineAll;

impl ClientHandler for DeclineAll {}

/// The error for a question that the user or a policy said no to.
pub fn declined(message: &'static str) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode(-1), message)
}
