//! Calls that wait until a client of the stateless era has provided input.
//!
//! A server of the stateful era asks while it answers. A client of the stateless era can answer only by repeating its
//! request. When a question arrives, the request ends with it; the call goes on in a task of its own and waits here under
//! a number until the client repeats the request. Dropping a call cancels it.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use switchboard::service::Failure;
use switchboard::{ServerName, SharedJson};
use switchboard_protocol::types::input::{InputRequest, InputResponses};
use switchboard_protocol::types::{IntoOwned as _, RawObject};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::sleep;

use super::relay::{Asked, Relay};

/// How long a call waits for its client.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// Maximum number of waiting calls.
const MAX_WAITING: usize = 1024;
/// Questions of one call that may be queued.
pub(super) const MAX_QUESTIONS: usize = 16;

/// The result of a forwarded request.
pub(super) type Forwarded = Result<SharedJson, Failure>;

/// The result of a call, and the server that returned it.
pub(super) type CallOfServer = Result<(ServerName, SharedJson), Failure>;

/// A call that may ask its client.
pub(super) struct RunningCall {
    /// Where its notifications go.
    pub(super) relay: Arc<Relay>,
    run: Run,
    questions: mpsc::Receiver<Asked>,
    /// Questions that the client has and has not answered.
    open: HashMap<String, oneshot::Sender<RawObject<'static>>>,
}

/// Where a call runs.
enum Run {
    /// Within the request, as long as it has asked nothing: most calls never need a task.
    Here(BoxFuture<'static, CallOfServer>),
    /// In a task that outlives the request.
    Task(JoinHandle<CallOfServer>),
}

/// What a call came to.
pub(super) enum Step {
    Done(CallOfServer),
    /// The client has to answer this question.
    Asks(Box<(String, InputRequest<'static>)>),
}

impl RunningCall {
    pub(super) fn begin(
        relay: Arc<Relay>,
        call: impl Future<Output = CallOfServer> + Send + 'static,
        questions: mpsc::Receiver<Asked>,
    ) -> Self {
        Self {
            relay,
            run: Run::Here(call.boxed()),
            questions,
            open: HashMap::new(),
        }
    }

    /// Passes answers on to those who asked.
    pub(super) fn answer(&mut self, responses: &InputResponses<'_>) {
        for (key, response) in responses.iter() {
            if let Some(asker) = self.open.remove(key) {
                // The asker may have given up.
                let _ = asker.send(response.clone().into_owned());
            }
        }
    }

    /// Runs until the call is done or asks. A question that was not answered is dropped, which fails it.
    pub(super) async fn step(&mut self) -> Step {
        self.open.clear();
        tokio::select! {
            done = self.run.done() => Step::Done(done),
            Some(Asked { key, question, answer }) = self.questions.recv() => {
                self.open.insert(key.clone(), answer);
                Step::Asks(Box::new((key, question)))
            }
        }
    }

    /// Lets the call go on without its request.
    fn detached(mut self) -> Self {
        self.run.detach();
        self
    }
}

impl Run {
    async fn done(&mut self) -> CallOfServer {
        match self {
            Self::Here(call) => call.await,
            Self::Task(task) => task.await.unwrap_or_else(|_| {
                let message = "the call failed unexpectedly; it may or may not have taken effect";
                Err(super::internal(message))
            }),
        }
    }

    fn detach(&mut self) {
        if let Self::Here(call) = self {
            let call = std::mem::replace(call, pending().boxed());
            *self = Self::Task(tokio::spawn(call));
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Run::Task(task) = &self.run {
            task.abort();
        }
    }
}

/// The waiting calls of a gateway.
#[derive(Clone, Default)]
pub(super) struct WaitingCalls(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    calls: HashMap<u64, (RunningCall, Expiry)>,
    last: u64,
}

/// Ends the expiry of a call that has been taken.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl WaitingCalls {
    /// Keeps a call for a while and returns its number; `None` if too many wait, and the call is cancelled.
    pub(super) fn keep(&self, call: RunningCall) -> Option<u64> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.calls.len() >= MAX_WAITING {
            return None;
        }
        calls.last += 1;
        let number = calls.last;
        let waiting = Arc::downgrade(&self.0);
        let expiry = tokio::spawn(async move {
            sleep(PATIENCE).await;
            if let Some(waiting) = waiting.upgrade() {
                let expired = waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .calls
                    .remove(&number);
                drop(expired);
            }
        });
        let expiry = Expiry(expiry.abort_handle());
        calls.calls.insert(number, (call.detached(), expiry));
        Some(number)
    }

    /// Takes a call; `None` if it is no longer waiting.
    pub(super) fn take(&self, number: u64) -> Option<RunningCall> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.calls.remove(&number).map(|(call, _)| call)
    }
}
