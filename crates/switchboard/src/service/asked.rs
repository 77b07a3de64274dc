//! Pending requests from the server to its client (stateful era).
//!
//! Owns their ids and waiters. A response without a waiter is dropped; a waiter that is dropped removes its entry and
//! cancels the request at the client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use switchboard_protocol::types::method::{Cancelled, Notification};
use switchboard_protocol::types::notification::CancelledNotificationParams;
use switchboard_protocol::{ErrorCode, ErrorObject, RequestId, encode};
use tokio::sync::oneshot;

use super::{Purpose, Sink};

type ClientReply = Result<Box<RawValue>, ErrorObject<'static>>;

#[derive(Debug, Default)]
pub(super) struct Asked {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<ClientReply>>>,
}

impl Asked {
    /// Sends a request to the client and waits for the response. Dropping the future cancels the request.
    pub(super) async fn ask(
        &self,
        sink: &Arc<dyn Sink>,
        method: &str,
        params: Option<&RawValue>,
    ) -> ClientReply {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(id, sender);
        let question = Question {
            asked: self,
            sink,
            id,
        };
        let mut frame = Vec::new();
        encode::request(&mut frame, &id.into(), method, params).map_err(|_| {
            ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                "the request cannot be serialized as JSON",
            )
        })?;
        sink.send(frame.into(), Purpose::Message);
        let answer = receiver.await.unwrap_or_else(|_| Err(gone()));
        drop(question);
        answer
    }

    /// Delivers a response to its waiter; `false` if there is none.
    pub(super) fn answered(&self, id: &RequestId<'_>, answer: ClientReply) -> bool {
        let waiting = id.as_u64_lenient().and_then(|id| self.lock().remove(&id));
        let is_waited_for = waiting.is_some();
        if let Some(waiting) = waiting {
            // The waiter may have been dropped by now.
            let _ = waiting.send(answer);
        }
        is_waited_for
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<ClientReply>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels the request when dropped without a response.
struct Question<'a> {
    asked: &'a Asked,
    sink: &'a Arc<dyn Sink>,
    id: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.asked.lock().remove(&self.id).is_none() {
            return;
        }
        let mut params = CancelledNotificationParams::new();
        params.request_id = Some(self.id.into());
        let mut frame = Vec::new();
        if Cancelled::encode_notification(&mut frame, &params).is_ok() {
            self.sink.send(frame.into(), Purpose::Message);
        }
    }
}

fn gone() -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the client is gone")
}
