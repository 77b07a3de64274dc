//! The [`Gate`] trait: permission checks and hooks of the call pipeline.
//!
//! Every call of every front end passes the gate before it is sent and again with its result; a permitted call is also
//! reported when it ends, for any reason. The implementation is injected; the default permits everything. Most
//! decisions need no waiting, so a gate returns a future only if it must.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{CallError, CallOutcome, CallTarget};
use crate::audit::What;
use crate::json::SharedJson;
use crate::names::CallId;
use crate::permissions::SecretPlaces;
use crate::profile::Profile;

/// Permits calls and observes their results.
pub trait Gate: Send + Sync + 'static {
    /// Decides on a call before it is sent.
    fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> Check<'a, Verdict> {
        let _ = call;
        Check::Now(Verdict::Pass(Permit::default()))
    }

    /// Inspects the result and may replace it.
    fn after<'a>(&'a self, call: &'a PendingCall<'a>, result: &'a SharedJson) -> Check<'a, Sight> {
        let _ = (call, result);
        Check::Now(Sight::Keep)
    }

    /// Called when a permitted call ends. Must not block: the caller waits for it.
    fn ended(&self, call: &EndedCall<'_>) {
        let _ = call;
    }

    /// Records other events in the audit log: calls that failed before a decision, logins. Must not block.
    #[doc(hidden)]
    fn note(&self, what: What) {
        let _ = what;
    }

    /// Paths with secrets, which local search tools skip.
    fn secrets(&self) -> Arc<SecretPlaces> {
        Arc::default()
    }

    /// Whether the gate permits everything, so that calls can skip it.
    fn is_open(&self) -> bool {
        false
    }
}

/// A value that is available now or later.
pub enum Check<'a, T> {
    /// The value is available immediately.
    Now(T),
    /// The value has to be waited for.
    Later(BoxFuture<'a, T>),
}

impl<T> Check<'_, T> {
    /// Returns the value, waiting if necessary.
    pub async fn answer(self) -> T {
        match self {
            Self::Now(answer) => answer,
            Self::Later(answer) => answer.await,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Check<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => formatter.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => formatter.write_str("Later"),
        }
    }
}

/// A prepared call: resolved and with validated arguments.
#[derive(Debug, Clone, Copy)]
pub struct PendingCall<'a> {
    /// Call id, unique in the process.
    pub id: CallId,
    /// Tool that the name resolved to.
    pub tool: CallTarget<'a>,
    /// Arguments, valid for the tool's schema.
    pub arguments: Option<&'a RawValue>,
    /// Session that makes the call, if the request names one.
    pub session: Option<&'a str>,
    /// Profile of the client that the call is made for.
    #[doc(hidden)]
    pub profile: Option<&'a Profile>,
    /// Client for which the call is made, such as `token:ci`; `None` if this process makes it for itself.
    #[doc(hidden)]
    pub client: Option<&'a Arc<str>>,
}

/// A permitted call that has ended.
#[derive(Debug)]
pub struct EndedCall<'a> {
    /// The call with the arguments sent.
    pub call: PendingCall<'a>,
    /// Permit from [`Gate::before`].
    pub permit: &'a Permit,
    /// Time since the call was permitted.
    pub elapsed: Duration,
    /// Result or error; `None` if the call was cancelled.
    pub outcome: Option<&'a Result<CallOutcome, CallError>>,
}

/// Decision on a call.
#[derive(Debug)]
pub enum Verdict {
    /// Send the call.
    Pass(Permit),
    /// Send the call with these arguments instead.
    Change(Box<RawValue>, Permit),
    /// Do not send the call.
    Deny {
        /// Reason for the model and the user.
        reason: String,
    },
}

/// Decision on a result.
#[derive(Debug)]
pub enum Sight {
    /// Return the result unchanged.
    Keep,
    /// Return this result instead.
    Replace(SharedJson),
    /// Return an error instead of the result.
    Withhold {
        /// Reason for the model and the user.
        reason: String,
    },
}

/// Data that a gate carries from its decision to the end of the call.
#[derive(Clone, Default)]
pub struct Permit(Option<Arc<dyn Any + Send + Sync>>);

impl Permit {
    /// Creates a permit that carries `grounds`.
    pub fn on(grounds: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(grounds))
    }

    /// Borrows the data if it has this type.
    pub fn grounds<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Clones the handle to the data if it has this type.
    pub fn shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Permit")
    }
}

/// Gate that permits every call.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Gate for AllowAll {
    fn is_open(&self) -> bool {
        true
    }
}

/// Reports the end of a call to the gate. If dropped earlier, reports the call as cancelled.
pub(super) struct Witness<'a> {
    gate: &'a dyn Gate,
    call: PendingCall<'a>,
    permit: Permit,
    started: Instant,
    reported: bool,
}

impl<'a> Witness<'a> {
    pub(super) fn new(
        gate: &'a dyn Gate,
        call: PendingCall<'a>,
        permit: Permit,
        started: Instant,
    ) -> Self {
        Self {
            gate,
            call,
            permit,
            started,
            reported: false,
        }
    }

    pub(super) fn end(mut self, outcome: &Result<CallOutcome, CallError>, elapsed: Duration) {
        self.reported = true;
        self.report(Some(outcome), elapsed);
    }

    fn report(&self, outcome: Option<&Result<CallOutcome, CallError>>, elapsed: Duration) {
        self.gate.ended(&EndedCall {
            call: self.call,
            permit: &self.permit,
            elapsed,
            outcome,
        });
    }
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if !self.reported {
            self.report(None, self.started.elapsed());
        }
    }
}
