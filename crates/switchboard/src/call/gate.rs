//! Where permission and hooks stand in the call pipeline.
//!
//! Owns the trait. Every call of every front end passes it once before it is sent and once after; what decides is put
//! in from outside, and the default lets everything pass.

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;

use crate::catalog::CatalogTool;
use crate::json::SharedJson;
use crate::names::CallId;

/// Permits calls and sees them pass.
pub trait Gate: Send + Sync + 'static {
    /// Decides about a call that is about to be sent.
    fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> BoxFuture<'a, Verdict> {
        let _ = call;
        ready(Verdict::Pass).boxed()
    }

    /// Sees the result, and may put another in its place.
    fn after<'a>(
        &'a self,
        call: &'a PendingCall<'a>,
        result: SharedJson,
    ) -> BoxFuture<'a, Result<SharedJson, String>> {
        let _ = call;
        ready(Ok(result)).boxed()
    }

    /// Whether there is nothing to ask, so that a call need not.
    fn is_open(&self) -> bool {
        false
    }
}

/// A call that has been prepared.
#[derive(Debug)]
pub struct PendingCall<'a> {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: &'a CatalogTool,
    /// The arguments, valid for the tool's schema.
    pub arguments: Option<&'a RawValue>,
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Verdict {
    /// It is sent.
    Pass,
    /// It is sent with these arguments.
    Change(Box<RawValue>),
    /// It is not sent.
    Deny {
        /// Why, for the model and for people.
        reason: String,
    },
}

/// Lets everything pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Gate for AllowAll {
    fn is_open(&self) -> bool {
        true
    }
}
