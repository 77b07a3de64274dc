//! Where permission and hooks stand in the call pipeline.
//!
//! Owns the trait. Every call of every front end passes it once before it is sent, once with its result, and is told
//! of once more when it has ended, however that came about. What decides is put in from outside, and the default lets
//! everything pass. Nearly every call is decided at once, so a gate answers without a future unless there is something
//! to wait for.

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

/// Permits calls and sees them pass.
pub trait Gate: Send + Sync + 'static {
    /// Decides about a call that is about to be sent.
    fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> Check<'a, Verdict> {
        let _ = call;
        Check::Now(Verdict::Pass(Permit::default()))
    }

    /// Sees the result, and may put another in its place.
    fn after<'a>(&'a self, call: &'a PendingCall<'a>, result: &'a SharedJson) -> Check<'a, Sight> {
        let _ = (call, result);
        Check::Now(Sight::Keep)
    }

    /// Hears of the end of a call that was let pass. It must be short: the caller waits for it.
    fn ended(&self, call: &EndedCall<'_>) {
        let _ = call;
    }

    /// Hears of what else is to be written down: a call that came to nothing before it was decided about, a login. It
    /// must be short.
    #[doc(hidden)]
    fn note(&self, what: What) {
        let _ = what;
    }

    /// Places with secrets, which local tools that search files pass over.
    fn secrets(&self) -> Arc<SecretPlaces> {
        Arc::default()
    }

    /// Whether what this server says of its own tools is believed.
    fn trusts(&self, server: &str) -> bool {
        let _ = server;
        false
    }

    /// Whether there is nothing to ask, so that a call need not.
    fn is_open(&self) -> bool {
        false
    }
}

/// An answer, or the promise of one.
pub enum Check<'a, T> {
    /// The answer.
    Now(T),
    /// The answer has to be waited for.
    Later(BoxFuture<'a, T>),
}

impl<T> Check<'_, T> {
    /// The answer, waited for where it has to be.
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

/// A call that has been prepared.
#[derive(Debug, Clone, Copy)]
pub struct PendingCall<'a> {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: CallTarget<'a>,
    /// The arguments, valid for the tool's schema.
    pub arguments: Option<&'a RawValue>,
    /// The session that makes the call, where the request says so.
    pub session: Option<&'a str>,
}

/// A call that was let pass and has ended.
#[derive(Debug)]
pub struct EndedCall<'a> {
    /// The call, with the arguments that were sent.
    pub call: PendingCall<'a>,
    /// What it was let pass with.
    pub permit: &'a Permit,
    /// How long it took.
    pub elapsed: Duration,
    /// What came of it; `None` if it was called off.
    pub outcome: Option<&'a Result<CallOutcome, CallError>>,
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Verdict {
    /// It is sent.
    Pass(Permit),
    /// It is sent with these arguments.
    Change(Box<RawValue>, Permit),
    /// It is not sent.
    Deny {
        /// Why, for the model and for people.
        reason: String,
    },
}

/// What becomes of a result.
#[derive(Debug)]
pub enum Sight {
    /// The caller gets it.
    Keep,
    /// The caller gets this one.
    Replace(SharedJson),
    /// The caller gets none.
    Withhold {
        /// Why, for the model and for people.
        reason: String,
    },
}

/// What a gate wants to remember of its decision until the call has ended.
#[derive(Clone, Default)]
pub struct Permit(Option<Arc<dyn Any + Send + Sync>>);

impl Permit {
    /// A permit on these grounds.
    pub fn on(grounds: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(grounds))
    }

    /// The grounds, if they are of that type.
    pub fn grounds<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// The grounds to keep, if they are of that type.
    pub fn shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Permit")
    }
}

/// Lets everything pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Gate for AllowAll {
    fn is_open(&self) -> bool {
        true
    }
}

/// Tells a gate of a call's end. Dropped before it, the call was called off.
pub(super) struct Witness<'a> {
    gate: &'a dyn Gate,
    call: PendingCall<'a>,
    permit: Permit,
    started: Instant,
    told: bool,
}

impl<'a> Witness<'a> {
    /// Watches a call that was let pass.
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
            told: false,
        }
    }

    /// The call has ended.
    pub(super) fn end(mut self, outcome: &Result<CallOutcome, CallError>, elapsed: Duration) {
        self.told = true;
        self.tell(Some(outcome), elapsed);
    }

    fn tell(&self, outcome: Option<&Result<CallOutcome, CallError>>, elapsed: Duration) {
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
        if !self.told {
            self.tell(None, self.started.elapsed());
        }
    }
}
