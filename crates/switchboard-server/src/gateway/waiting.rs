//! Calls that wait until a client of the stateless era has provided input.
//!
//! A server of the stateful era asks while it answers. A client of the stateless era can answer only by repeating its
//! request. So the call runs in a task of its own; when a question arrives, the request ends with it, and the call waits
//! here under a number until the client repeats the request. Dropping a call cancels it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use switchboard::SharedJson;
use switchboard::service::Failure;
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

/// A call in a task of its own.
pub(super) struct RunningCall {
    /// Where its notifications go.
    pub(super) relay: Arc<Relay>,
    task: JoinHandle<Forwarded>,
    questions: mpsc::Receiver<Asked>,
    /// Questions that the client has and has not answered.
    open: HashMap<String, oneshot::Sender<RawObject<'static>>>,
}

/// What a call came to.
pub(super) enum Step {
    Done(Forwarded),
    /// The client has to answer this question.
    Asks(Box<(String, InputRequest<'static>)>),
}

impl RunningCall {
    pub(super) fn begin(
        relay: Arc<Relay>,
        call: impl Future<Output = Forwarded> + Send + 'static,
        questions: mpsc::Receiver<Asked>,
    ) -> Self {
        Self {
            relay,
            task: tokio::spawn(call),
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
            done = &mut self.task => Step::Done(done.unwrap_or_else(|_| {
                let message = "the call failed unexpectedly; it may or may not have taken effect";
                Err(super::internal(message))
            })),
            Some(Asked { key, question, answer }) = self.questions.recv() => {
                self.open.insert(key.clone(), answer);
                Step::Asks(Box::new((key, question)))
            }
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.task.abort();
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
        calls.calls.insert(number, (call, expiry));
        Some(number)
    }

    /// Takes a call; `None` if it is no longer waiting.
    pub(super) fn take(&self, number: u64) -> Option<RunningCall> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.calls.remove(&number).map(|(call, _)| call)
    }
}
