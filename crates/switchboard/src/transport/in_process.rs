//! In-process transport: connects to a [`Service`] of this program.
//!
//! Passes messages between [`Link`] and [`Conversation`] without a socket, pipe or thread. The sender's task processes
//! its message, and requests that complete at once are answered there. Only requests that have to wait become tasks.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use switchboard_config::entry::Transport;
use switchboard_protocol::Revision;
use tokio::runtime::Handle;

use super::{
    Abandoned, Closed, Connector, Inbound, Link, Outgoing, Sending, TransportError,
    TransportErrorKind, sending, sent,
};
use crate::service::{Conversation, Service, Sink};

/// How long closing waits for cancelled requests that do not stop because they block.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// Connector for a service of this program. All links share the service.
#[derive(Clone)]
pub struct InProcessConnector {
    service: Arc<dyn Service>,
}

impl InProcessConnector {
    /// A connector for this service.
    pub fn new(service: Arc<dyn Service>) -> Self {
        Self { service }
    }
}

impl fmt::Debug for InProcessConnector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InProcessConnector")
            .field("service", &self.service.identity().name)
            .finish()
    }
}

impl Connector for InProcessConnector {
    fn transport(&self) -> Transport {
        Transport::Sdk
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            let gate = Arc::new(Gate {
                inbound,
                passing: AtomicUsize::new(0),
            });
            let sink = Arc::clone(&gate) as Arc<dyn Sink>;
            let shared = Arc::new(Shared {
                conversation: Conversation::new(Arc::clone(&self.service), sink),
                gate,
                runtime: Handle::current(),
                intake: Mutex::default(),
            });
            Ok(Arc::new(InProcessLink(shared)) as Arc<dyn Link>)
        })
    }
}

struct InProcessLink(Arc<Shared>);

impl Link for InProcessLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        if self.0.gate.is_closing() {
            let error = TransportError::new(TransportErrorKind::Closed, "the link is closed");
            return sent(Err(error));
        }
        self.0.lock().waiting.push_back(message.payload.into());
        sending(Handover(Some(Arc::clone(&self.0))))
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn abandon(&self, _request: u64) -> Abandoned {
        Abandoned::NotTold
    }

    fn opened(&self, _revision: Revision) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.0.close();
            let ended = self.0.conversation.ended();
            if tokio::time::timeout(CLOSE_DEADLINE, ended).await.is_err() {
                tracing::warn!("a cancelled request is still running: its service blocks");
            }
        })
    }
}

impl Drop for InProcessLink {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// State shared by the link and its pending messages.
struct Shared {
    conversation: Conversation,
    gate: Arc<Gate>,
    runtime: Handle,
    intake: Mutex<Intake>,
}

/// Messages sent but not yet processed.
///
/// The queue is unbounded, but holds only messages that their senders are about to process themselves.
#[derive(Default)]
struct Intake {
    waiting: VecDeque<Bytes>,
    /// Whether a task is processing messages. Only one does at a time, which preserves their order.
    busy: bool,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Intake> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes queued messages, unless another task already does.
    fn take_in(&self) {
        let mut intake = self.lock();
        if std::mem::replace(&mut intake.busy, true) {
            return;
        }
        let _done = Done(self);
        while let Some(frame) = intake.waiting.pop_front() {
            drop(intake);
            self.conversation.receive(&frame);
            intake = self.lock();
        }
        // Under the same lock as the last check of the queue, so that no message is left behind.
        intake.busy = false;
    }

    fn close(&self) {
        self.gate.close();
        self.conversation.close();
    }
}

/// Clears `busy` if the receiver of a frame panicked.
struct Done<'s>(&'s Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().busy = false;
        }
    }
}

/// A sent message. It is processed when the sender awaits it, not within [`Link::send`]: answers may arrive at once,
/// and the sender may hold a lock that their receiver needs.
struct Handover(Option<Arc<Shared>>);

impl Future for Handover {
    type Output = Result<(), TransportError>;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(shared) = self.0.take() {
            shared.take_in();
        }
        Poll::Ready(Ok(()))
    }
}

/// A message is processed even if the sender drops the future.
impl Drop for Handover {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            let runtime = shared.runtime.clone();
            runtime.spawn(async move { shared.take_in() });
        }
    }
}

/// Passes frames to the [`Inbound`] until the link is closed; then reports that once, and nothing after it.
struct Gate {
    inbound: Arc<dyn Inbound>,
    /// Number of frames being passed, in units of [`ONE`](Self::ONE), with the flags [`CLOSING`](Self::CLOSING) and
    /// [`TOLD`](Self::TOLD) in the low bits. Not a lock, because a receiver may close the link.
    passing: AtomicUsize,
}

impl Gate {
    const CLOSING: usize = 1;
    const TOLD: usize = 2;
    const ONE: usize = 4;

    fn is_closing(&self) -> bool {
        self.passing.load(Ordering::Acquire) & Self::CLOSING != 0
    }

    fn close(&self) {
        self.passing.fetch_or(Self::CLOSING, Ordering::AcqRel);
        self.tell_if_last();
    }

    /// Reports the end once the gate is closed and no frame is being passed; only one caller succeeds.
    fn tell_if_last(&self) {
        let exchanged = self.passing.compare_exchange(
            Self::CLOSING,
            Self::CLOSING | Self::TOLD,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if exchanged.is_ok() {
            self.inbound.closed(Closed::ByUs);
        }
    }
}

impl Sink for Gate {
    fn frame(&self, frame: Bytes) {
        let before = self.passing.fetch_add(Self::ONE, Ordering::AcqRel);
        if before & Self::CLOSING == 0 {
            self.inbound.frame(frame);
        }
        self.passing.fetch_sub(Self::ONE, Ordering::AcqRel);
        self.tell_if_last();
    }
}
