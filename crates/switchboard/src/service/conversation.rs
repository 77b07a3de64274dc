//! One client session of a service: frames in, frames out.
//!
//! Owns the running requests, their cancellation and the result of the handshake. `dispatch` handles the methods; the
//! transport carries the frames.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use serde_json::value::RawValue;
use switchboard_protocol::serve::Opened;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::types::meta::ResultMeta;
use switchboard_protocol::types::method::{Cancelled, Notification};
use switchboard_protocol::types::{self, RawObject};
use switchboard_protocol::{
    ErrorCode, ErrorObject, Limits, Method, ParseError, ParseErrorKind, RequestId, Revision, encode,
};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::asked::Asked;
use super::changes::{Change, Listener};
use super::frame::{Classified, ClientFrame, ClientMessage, ClientRequest, MethodName};
use super::sink::{Answered, BatchSink};
use super::subscriptions::Subscriptions;
use super::{Cancellation, Purpose, Service, Sink, dispatch};
use crate::json::SharedJson;

/// Maximum number of concurrent requests per client; a `subscriptions/listen` counts for as long as it is open.
pub const MAX_IN_FLIGHT: u32 = 1024;

/// One client session of a service, in either era. Dropping it cancels the running requests.
pub struct Conversation(Arc<Core>);

impl Conversation {
    /// Starts a session. Frames that belong to no request go to `sink`. Must be called within a tokio runtime, on which
    /// requests run that are not answered at once.
    pub fn new(service: Arc<dyn Service>, sink: Arc<dyn Sink>) -> Self {
        Self(Arc::new(Core {
            server_meta: OnceLock::new(),
            is_following: Once::new(),
            service,
            sink,
            runtime: Handle::current(),
            permits: Arc::new(Semaphore::new(MAX_IN_FLIGHT as usize)),
            asked: Asked::default(),
            state: Mutex::default(),
        }))
    }

    /// Parses and processes a frame whose size the transport has limited. Every request in it is started in order
    /// before this returns.
    pub fn receive(&self, frame: &Bytes) {
        let limits = Limits {
            max_bytes: usize::MAX,
            ..Limits::DEFAULT
        };
        self.0
            .receive(ClientFrame::parse(frame, &limits), &self.0.sink);
    }

    /// Processes a frame that the front end has parsed. The answer, and all other frames of the request, go to `sink`.
    pub fn receive_on(&self, frame: ClientFrame, sink: &Arc<dyn Sink>) {
        self.0.receive(frame, sink);
    }

    /// Cancels all requests and ignores further frames.
    pub fn close(&self) {
        self.0.close();
    }

    /// Completes when no request is running, after [`close`](Self::close).
    pub async fn ended(&self) {
        // Every running request holds one permit.
        let _ = self.0.permits.acquire_many(MAX_IN_FLIGHT).await;
    }

    /// Number of running requests.
    pub fn in_flight(&self) -> usize {
        (MAX_IN_FLIGHT as usize).saturating_sub(self.0.permits.available_permits())
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Conversation")
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

/// State shared by the requests of a session.
pub(super) struct Core {
    pub(super) service: Arc<dyn Service>,
    /// Destination of frames that belong to no request.
    sink: Arc<dyn Sink>,
    runtime: Handle,
    /// The `_meta` of results in the stateless era, from the identity that the service has when it is first needed.
    server_meta: OnceLock<RawObject<'static>>,
    /// Done once the session receives the changes of the service.
    is_following: Once,
    permits: Arc<Semaphore>,
    pub(super) asked: Asked,
    state: Mutex<SessionState>,
}

/// Mutable state of a session.
#[derive(Default)]
pub(super) struct SessionState {
    closed: bool,
    /// Result of `initialize` (stateful era).
    pub(super) settled: Option<Settled>,
    /// Index in [`LoggingLevel::VALUES`](types::logging::LoggingLevel::VALUES) set by `logging/setLevel`.
    pub(super) log_threshold: Option<usize>,
    pub(super) subscriptions: Subscriptions,
    running: HashMap<RequestId<'static>, Cancellation>,
}

/// Result of `initialize`.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) revision: Revision,
    pub(super) capabilities: Arc<ClientCapabilities<'static>>,
}

/// A request being served.
pub(super) struct Request {
    pub(super) core: Arc<Core>,
    /// Destination of the answer.
    pub(super) sink: Arc<dyn Sink>,
    pub(super) id: RequestId<'static>,
    pub(super) method: MethodName,
    pub(super) opened: Opened,
    pub(super) params: Option<SharedJson>,
    pub(super) cancellation: Cancellation,
}

impl Request {
    pub(super) fn params(&self) -> Option<&RawValue> {
        self.params.as_ref().map(SharedJson::raw)
    }
}

/// A running request; resolves to its answer, or `None` if it has none.
type Running = Pin<Box<dyn Future<Output = Option<EncodedReply>> + Send>>;

struct EncodedReply {
    frame: Bytes,
    answered: Answered,
}

impl EncodedReply {
    fn result(id: &RequestId<'_>, result: &str, answered: Answered) -> Self {
        let mut frame = Vec::with_capacity(result.len() + 48);
        let written = switchboard_protocol::trusted(result)
            .is_some_and(|result| encode::response(&mut frame, id, result).is_ok());
        if written {
            return Self {
                frame: frame.into(),
                answered,
            };
        }
        let error = ErrorObject::new(
            ErrorCode::INTERNAL_ERROR,
            "the result cannot be serialized as JSON",
        );
        Self::error(id, &error)
    }

    fn error(id: &RequestId<'_>, error: &ErrorObject<'_>) -> Self {
        Self {
            frame: error_frame(Some(id), error),
            answered: Answered::Error(error.code),
        }
    }

    fn send(self, sink: &Arc<dyn Sink>) {
        sink.send(self.frame, Purpose::Answer(self.answered));
    }
}

impl Core {
    pub(super) fn server_meta(&self) -> &RawObject<'static> {
        self.server_meta.get_or_init(|| server_meta(&*self.service))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        // No code panics while it holds the lock, and every update leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives the changes of the service from now on. A session that never listens to them does not register.
    pub(super) fn follow_changes(self: &Arc<Self>) {
        self.is_following.call_once(|| {
            if let Some(changes) = self.service.changes() {
                let listener: Arc<dyn Listener> = Arc::clone(self) as _;
                changes.add(Arc::downgrade(&listener));
            }
        });
    }

    fn receive(self: &Arc<Self>, frame: ClientFrame, sink: &Arc<dyn Sink>) {
        let batch = frame
            .is_array()
            .then(|| Arc::new(BatchSink::new(sink)) as Arc<dyn Sink>);
        let sink = batch.as_ref().unwrap_or(sink);
        let classified = frame.classified();
        for message in frame.into_messages() {
            match message {
                Ok(message) => self.take(message, classified, sink),
                Err(error) => self.refuse(&error, sink),
            }
        }
    }

    /// Rejects an unreadable message. If it answers a request of ours, that request fails with it.
    fn refuse(&self, error: &ParseError, sink: &Arc<dyn Sink>) {
        if let Some(id) = error.id.as_ref().filter(|_| !error.has_method) {
            let unreadable = ErrorObject::new(ErrorCode::INVALID_REQUEST, error.to_string());
            if self.asked.answered(id, Err(unreadable)) {
                return;
            }
        }
        refuse_unreadable(error, sink);
    }

    fn take(
        self: &Arc<Self>,
        message: ClientMessage,
        classified: Classified,
        sink: &Arc<dyn Sink>,
    ) {
        match message {
            ClientMessage::Request(request) => {
                let id = request.id.clone();
                if let Err(error) = self.begin(request, classified, sink) {
                    EncodedReply::error(&id, &error).send(sink);
                }
            }
            ClientMessage::Notification { method, params } => {
                if method.is(Method::Cancelled) {
                    self.cancel(params.as_ref().map(SharedJson::raw));
                } else if method.is(Method::RootsListChanged) {
                    self.service.roots_changed();
                } else if let MethodName::Unknown(name) = &method {
                    let params = params.as_ref().map(SharedJson::raw);
                    self.service.notified(name, params);
                }
            }
            ClientMessage::Response { id, result } => {
                self.asked.answered(&id, Ok(result.raw().to_owned()));
            }
            ClientMessage::Error {
                id: Some(id),
                error,
            } => {
                self.asked.answered(&id, Err(error));
            }
            ClientMessage::Error { id: None, error } => {
                tracing::debug!(%error, "the client reports an error without a request id");
            }
            ClientMessage::OtherVersion { id: Some(id) } => {
                EncodedReply::error(&id, &ClientMessage::other_version()).send(sink);
            }
            ClientMessage::OtherVersion { id: None } => {
                tracing::debug!("ignoring a message that is not JSON-RPC 2.0");
            }
        }
    }

    /// Starts a request. If it completes at once, no task is spawned.
    fn begin(
        self: &Arc<Self>,
        request: ClientRequest,
        classified: Classified,
        sink: &Arc<dyn Sink>,
    ) -> Result<(), ErrorObject<'static>> {
        let open = |request: &ClientRequest| {
            let settled = || Some(self.state().settled.as_ref()?.revision);
            classified.open(settled, request.method.as_str(), request.params())
        };
        {
            let state = self.state();
            if state.closed {
                return Ok(());
            }
            if state.running.contains_key(&request.id) {
                return Err(ErrorObject::new(
                    ErrorCode::INVALID_REQUEST,
                    "a request with this id is still running",
                ));
            }
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Err(ErrorObject::new(
                ErrorCode::INTERNAL_ERROR,
                format!("{MAX_IN_FLIGHT} requests are running already; wait until some are done"),
            ));
        };
        let opened = open(&request)?;
        let request = Arc::new(Request {
            core: Arc::clone(self),
            sink: Arc::clone(sink),
            id: request.id,
            method: request.method,
            opened,
            params: request.params,
            cancellation: Cancellation::default(),
        });
        let mut running: Running = Box::pin(run(Arc::clone(&request)));
        // Most requests complete on the first poll, and spawning a task costs more than everything else. A no-op waker
        // is enough: if the request is pending, the task polls it again first.
        match running
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Some(answer)) => answer.send(sink),
            Poll::Ready(None) => {}
            Poll::Pending => self.go_on(&request, running, permit),
        }
        Ok(())
    }

    /// Runs a pending request as a task.
    fn go_on(
        self: &Arc<Self>,
        request: &Arc<Request>,
        running: Running,
        permit: OwnedSemaphorePermit,
    ) {
        {
            let mut state = self.state();
            if state.closed {
                return;
            }
            state
                .running
                .insert(request.id.clone(), request.cancellation.clone());
        }
        let request = Arc::clone(request);
        self.runtime.spawn(async move {
            let cancelled = std::pin::pin!(request.cancellation.cancelled());
            // `select` drops the other future, so a cancelled request ends here.
            let answer = match select(running, cancelled).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => None,
            };
            if request.core.finish(&request)
                && let Some(answer) = answer
            {
                answer.send(&request.sink);
            }
            drop(permit);
        });
    }

    /// Removes a request from the running ones; `false` if it was cancelled and so has no answer.
    fn finish(&self, request: &Request) -> bool {
        let mut state = self.state();
        let listed = state.running.get(&request.id);
        // The client may have reused the id of a cancelled request.
        let is_ours = listed.is_some_and(|listed| listed.is_same(&request.cancellation));
        if is_ours {
            state.running.remove(&request.id);
        }
        is_ours
    }

    fn cancel(&self, params: Option<&RawValue>) {
        let Ok(params) = Cancelled::decode_params(params) else {
            return;
        };
        let running = params
            .request_id
            .and_then(|id| self.state().running.remove(&id.into_owned()));
        if let Some(cancellation) = running {
            cancellation.cancel();
        }
    }

    fn close(&self) {
        let running = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.running)
        };
        for cancellation in running.into_values() {
            cancellation.cancel();
        }
    }
}

impl Listener for Core {
    fn changed(&self, change: &Change) {
        if *change == Change::Tools && !self.service.announces_tools() {
            return;
        }
        let notifications = {
            let mut state = self.state();
            if state.closed {
                return;
            }
            let threshold = state.log_threshold;
            if let Change::Log { severity, .. } = change
                && threshold.is_some_and(|threshold| *severity < threshold)
            {
                return;
            }
            let stateful = state.settled.is_some().then_some(&self.sink);
            state.subscriptions.told(change, stateful)
        };
        let purpose = match change {
            Change::Log { .. } => Purpose::Report,
            _ => Purpose::Change,
        };
        for (sink, frame) in notifications {
            sink.send(frame, purpose);
        }
    }
}

/// Answers a request; a panic of the service becomes an error.
async fn run(request: Arc<Request>) -> Option<EncodedReply> {
    let answer = AssertUnwindSafe(dispatch::answer(&request))
        .catch_unwind()
        .await;
    match answer {
        Ok(Ok(Some(result))) => {
            let answered = match request.opened {
                Opened::Handshake(revision) => Answered::Handshake(revision),
                Opened::Stateful(_) | Opened::Stateless(_) => Answered::Result,
            };
            Some(EncodedReply::result(&request.id, result.as_str(), answered))
        }
        Ok(Ok(None)) => None,
        Ok(Err(error)) => Some(EncodedReply::error(&request.id, &error)),
        Err(_) => {
            tracing::error!(method = request.method.as_str(), "the service panicked");
            let error =
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, "the server failed unexpectedly");
            Some(EncodedReply::error(&request.id, &error))
        }
    }
}

fn error_frame(id: Option<&RequestId<'_>>, error: &ErrorObject<'_>) -> Bytes {
    let mut frame = Vec::new();
    // Serializing an error object cannot fail.
    let _ = encode::error(&mut frame, id, error);
    frame.into()
}

/// Sends an error for an unreadable message, unless it was a response or empty.
fn refuse_unreadable(error: &ParseError, sink: &Arc<dyn Sink>) {
    let code = match error.kind {
        ParseErrorKind::Empty => return,
        ParseErrorKind::NotJson { .. } | ParseErrorKind::NotUtf8 { .. } => ErrorCode::PARSE_ERROR,
        _ => ErrorCode::INVALID_REQUEST,
    };
    let object = ErrorObject::new(code, error.to_string());
    sink.send(
        error_frame(error.id.as_ref(), &object),
        Purpose::Answer(Answered::Error(code)),
    );
}

fn server_meta(service: &dyn Service) -> RawObject<'static> {
    let mut meta = ResultMeta::new();
    meta.server_info = Some(service.identity());
    types::Raw::from_serialize(&meta)
        .ok()
        .and_then(|raw| raw.try_into().ok())
        .unwrap_or_default()
}
