//! One connection to a server: requests and their responses, in either era.
//!
//! Owns the connection over one link, from the handshake to the end. A [`Peer`] is cheap to clone; dropping the last
//! clone closes it. Reconnecting, server states and lists belong to the manager.

mod error;
mod inbound;
mod input;
mod open;
mod pages;
mod pending;
mod tasks;
mod usage;
mod visit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{Either, select};
use serde_json::value::RawValue;
use switchboard_protocol::encode::ToolCall;
use switchboard_protocol::headers::{self, Header};
use switchboard_protocol::meta::MetaMembers;
use switchboard_protocol::types::result::{ResultType, declared_type};
use switchboard_protocol::types::wire::{self, Encode};
use switchboard_protocol::{Era, Method, RequestId, Revision, encode};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::alarm::AbortOnDrop;
use crate::caller::Caller;
use crate::handler::ClientHandler;
use crate::json::SharedJson;
use crate::names::ServerName;
use crate::sharing::Tenancy;
use crate::transport::{Abandoned, Closed, Link, Outgoing, OutgoingKind};
use inbound::Receiver;
use input::Answering;
use pending::{Overdue, Patience, Reply};
use usage::Usage;

pub use error::RequestError;
pub use inbound::{ListKind, Notice, Observer};
pub(crate) use open::{OpenError, OpenErrorKind, ServerFacts};
pub use open::{OpenOptions, OpenStep, open};
pub use pages::{PageLimits, Pages};
pub use pending::{Progress, ProgressSink};
pub(crate) use pending::{ProgressListener, ProgressRoute};

/// An open connection to a server.
#[derive(Clone)]
pub struct Peer(Arc<Shared>, Option<Arc<Tenancy>>);

/// A connection that may have ended.
#[derive(Clone)]
pub(crate) struct WeakPeer(Weak<Shared>);

impl WeakPeer {
    pub(crate) fn upgrade(&self) -> Option<Peer> {
        self.0.upgrade().map(|shared| Peer(shared, None))
    }
}

struct Shared {
    server: ServerName,
    link: Arc<dyn Link>,
    receiver: Arc<Receiver>,
    facts: ServerFacts,
    handler: Arc<dyn ClientHandler>,
    /// The `_meta` members of every request.
    meta: MetaMembers,
    /// The task that answers server requests and enforces deadlines.
    attending: AbortOnDrop,
    /// Requests that the server is processing, subscriptions excluded.
    working: AtomicUsize,
    /// Requests made by callers, as opposed to health checks and refreshes.
    usage: Usage,
    /// Cancellation notices being sent.
    cancelling: Arc<watch::Sender<Cancelling>>,
}

/// Cancellation notices being sent to the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelling {
    under_way: usize,
    /// Error of the last notice that could not be sent.
    failed: Option<String>,
}

/// Deadlines of a request, and the route of its progress.
#[derive(Clone)]
pub struct RequestOptions {
    /// Longest time without an answer or progress.
    pub idle: Duration,
    /// Longest time in all.
    pub total: Duration,
    /// Route of its progress. Without one, and for anything but tool calls, the server is not asked for progress.
    pub progress: Option<ProgressRoute>,
    /// Headers besides the standard ones: mirrored parameters.
    pub headers: Vec<Header>,
    /// Whether the request asks to run as a task, which revision 2025-11-25 requires to be explicit.
    pub as_task: bool,
    /// The client that makes the request, if the host serves several.
    pub caller: Option<Arc<Caller>>,
}

impl RequestOptions {
    /// Options for a request that must be answered within `deadline`.
    pub fn within(deadline: Duration) -> Self {
        Self {
            idle: deadline,
            total: deadline,
            progress: None,
            headers: Vec::new(),
            as_task: false,
            caller: None,
        }
    }
}

impl std::fmt::Debug for RequestOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RequestOptions")
            .field("idle", &self.idle)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

/// How long sending a cancellation may take before the link is closed.
const CANCEL_PATIENCE: Duration = Duration::from_secs(1);
/// HTTP status of a server that is alive and rate-limits its clients.
const TOO_MANY_REQUESTS: u16 = 429;
/// Rounds of input a server may request before the request fails.
const MAX_ROUNDS: usize = 16;

impl Peer {
    /// Identity and capabilities that the server reported.
    pub fn facts(&self) -> &ServerFacts {
        &self.0.facts
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &ServerName {
        &self.0.server
    }

    /// The negotiated protocol revision.
    pub fn revision(&self) -> Revision {
        self.0.facts.revision
    }

    /// Id of the server process; `None` if the transport has none.
    pub fn process(&self) -> Option<u32> {
        self.0.link.process()
    }

    /// Number of requests that await their response.
    pub fn in_flight(&self) -> usize {
        self.0.receiver.pending.len()
    }

    /// Total time spent answering server requests since the connection was opened.
    pub(crate) fn answered(&self) -> Duration {
        Duration::from_micros(self.0.receiver.answered.load(Ordering::Relaxed))
    }

    /// Whether the server is processing a request, subscriptions excluded.
    pub fn is_busy(&self) -> bool {
        self.0.working.load(Ordering::Relaxed) > 0
    }

    /// Time of the last message from the server.
    pub fn heard(&self) -> Instant {
        self.0.receiver.heard()
    }

    /// Sends a request and follows it to its final result, through rounds of input and tasks.
    ///
    /// Dropping the future cancels the request and notifies the server.
    pub async fn request(
        &self,
        method: Method,
        params: Option<&RawValue>,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let _upkeep = self.0.usage.upkeep(method);
        let first = self.0.exchange(method, params, options).await?;
        self.follow(method, params, first, options).await
    }

    /// Calls a tool and waits for the first response, which may be an input request or a task.
    pub(crate) fn call<'a>(
        &'a self,
        call: ToolCall<'a>,
        options: &'a RequestOptions,
    ) -> impl Future<Output = Result<SharedJson, RequestError>> + 'a {
        let method = Verb::from(Method::ToolsCall);
        self.0.send(method, Params::Call(call), options)
    }

    /// Sends a request and waits for the first response, which may be an input request or a task.
    pub(crate) async fn first_answer(
        &self,
        method: Method,
        params: &RawValue,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        self.0.exchange(method, Some(params), options).await
    }

    /// Follows the first response of a request to its final result.
    pub(crate) async fn follow(
        &self,
        method: Method,
        params: Option<&RawValue>,
        first: SharedJson,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let Some(unfinished) = self.0.unfinished(method, &first, options) else {
            return Ok(first);
        };
        let is_passed_on = options
            .caller
            .as_ref()
            .is_some_and(|caller| match unfinished {
                ResultType::InputRequired => caller.takes_unfinished,
                ResultType::Task => caller.takes_task(self.revision().era()),
                _ => false,
            });
        if is_passed_on {
            return Ok(first);
        }
        let _followed = self.0.usage.follow();
        match unfinished {
            // Rare, and large futures: boxed so that every other request stays small.
            ResultType::Task => Box::pin(self.0.follow_task(&first, options)).await,
            _ => Box::pin(self.0.give_input(method, params, first, options)).await,
        }
    }

    /// Sends a request whose method may not be part of the specification, and returns its response as it is.
    pub(crate) async fn request_by_name(
        &self,
        method: &str,
        params: Option<&RawValue>,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let named = Verb {
            known: Method::from_name(method),
            name: method,
        };
        self.0.send(named, Params::Any(params), options).await
    }

    /// As [`request`](Self::request), with typed parameters.
    pub async fn ask<P: Encode>(
        &self,
        method: Method,
        params: &P,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let params = to_raw(params)?;
        self.request(method, Some(&params), options).await
    }

    /// Sends a notification.
    pub async fn notify(
        &self,
        method: Method,
        params: Option<&RawValue>,
    ) -> Result<(), RequestError> {
        self.notify_by_name(method.name(), params).await
    }

    /// Sends a notification whose method is not part of the specification.
    pub(crate) async fn notify_by_name(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), RequestError> {
        let message = self.0.notification(method, params)?;
        self.0
            .link
            .send(message)
            .await
            .map_err(RequestError::NotSent)
    }

    /// Checks that the server responds, with `ping` or `server/discover`, depending on the era.
    pub async fn probe(&self, deadline: Duration) -> Result<(), RequestError> {
        let method = match self.revision().era() {
            Era::Stateful => Method::Ping,
            Era::Stateless => Method::Discover,
        };
        self.answers(method, deadline).await
    }

    /// Checks that the server responds by listing something it offers, for servers that do not answer `ping`.
    pub(crate) async fn probe_by_list(&self, deadline: Duration) -> Result<(), RequestError> {
        let method = match &self.0.facts.capabilities {
            Some(said) if !said.offers_tools() && said.offers_resources() => Method::ResourcesList,
            Some(said) if !said.offers_tools() && said.offers_prompts() => Method::PromptsList,
            _ => Method::ToolsList,
        };
        self.answers(method, deadline).await
    }

    /// Succeeds on any response, errors included.
    async fn answers(&self, method: Method, deadline: Duration) -> Result<(), RequestError> {
        // Always counted as upkeep, whatever the method.
        let _upkeep = self.0.usage.upkeep(Method::Ping);
        let options = RequestOptions::within(deadline);
        match self.0.exchange(method, None, &options).await {
            Ok(_) | Err(RequestError::Rejected(_) | RequestError::Malformed(_)) => Ok(()),
            Err(RequestError::Refused(refusal)) if refusal.status == TOO_MANY_REQUESTS => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until the link has ended.
    pub async fn closed(&self) -> Closed {
        let mut closed = self.0.receiver.closed.subscribe();
        match closed.wait_for(Option::is_some).await {
            Ok(closed) => closed.clone().unwrap_or(Closed::ByUs),
            Err(_) => Closed::ByUs,
        }
    }

    pub(crate) fn downgrade(&self) -> WeakPeer {
        WeakPeer(Arc::downgrade(&self.0))
    }

    /// The same connection, as used by one of several hosts.
    pub(crate) fn with_tenancy(mut self, tenancy: Arc<Tenancy>) -> Self {
        self.1 = Some(tenancy);
        self
    }

    /// Whether the link has not ended and accepts requests.
    pub(crate) fn is_open(&self) -> bool {
        self.0.receiver.closed.borrow().is_none() && !self.0.receiver.pending.is_closed()
    }

    /// Whether other hosts use the connection.
    pub(crate) fn is_shared(&self) -> bool {
        self.1.as_ref().is_some_and(|tenancy| tenancy.is_shared())
    }

    /// Makes the next host open another connection.
    pub(crate) fn give_up(&self) {
        if let Some(tenancy) = &self.1 {
            tenancy.give_up();
        }
    }

    /// Leaves a connection that other hosts use; `false` if there are none.
    fn is_left_to_others(&self) -> bool {
        self.1.as_ref().is_some_and(|tenancy| !tenancy.leave())
    }

    /// Closes the connection in order and waits until it has ended. Other hosts keep it.
    pub async fn close(&self) {
        if self.is_left_to_others() {
            return;
        }
        self.0.attending.abort();
        let _ = self.cancellations_told(CANCEL_PATIENCE).await;
        self.0.link.close().await;
        self.is_closed();
    }

    /// Sends pending cancellations, then closes the connection and returns as soon as the server is notified, or after
    /// `within`. A supervisor, if there is one, does the rest.
    pub(crate) async fn leave(&self, within: Duration) {
        if self.is_left_to_others() {
            return;
        }
        self.0.attending.abort();
        let _ = self.cancellations_told(CANCEL_PATIENCE).await;
        let _ = timeout(within, self.0.link.leave()).await;
        self.is_closed();
    }

    /// Waits until every cancellation notice has been sent; returns the reason if one was not.
    pub(crate) async fn cancellations_told(&self, within: Duration) -> Result<(), String> {
        let mut cancelling = self.0.cancelling.subscribe();
        let sent = cancelling.wait_for(|cancelling| cancelling.under_way == 0);
        match timeout(within, sent).await {
            // The sender is in `self`, so this does not fail.
            Ok(sent) => match sent.ok().and_then(|sent| sent.failed.clone()) {
                Some(reason) => Err(reason),
                None => Ok(()),
            },
            Err(_) => Err(format!("no answer within {} s", within.as_secs_f64())),
        }
    }

    fn is_closed(&self) {
        self.0.receiver.pending.close(&Closed::ByUs);
        self.0
            .receiver
            .closed
            .send_if_modified(|closed| closed.is_none() && closed.replace(Closed::ByUs).is_none());
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Peer")
            .field("server", &self.0.server)
            .field("revision", &self.revision().as_str())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Sends one request and returns its first response, which may be an input request or a task.
    fn exchange<'a>(
        &'a self,
        method: Method,
        params: Option<&'a RawValue>,
        options: &'a RequestOptions,
    ) -> impl Future<Output = Result<SharedJson, RequestError>> + 'a {
        self.send(method.into(), Params::Any(params), options)
    }

    async fn send(
        &self,
        method: Verb<'_>,
        params: Params<'_>,
        options: &RequestOptions,
    ) -> Result<SharedJson, RequestError> {
        let patience = Patience {
            idle: options.idle,
            total: options.total,
        };
        let (id, mut answer) = self
            .receiver
            .pending
            .enter(
                Some(patience),
                options.progress.clone(),
                options.caller.clone(),
            )
            .map_err(|closed| not_sent(&closed))?;
        let message = self
            .encode_request(id, method.name, params, options)
            .inspect_err(|_| {
                // Not sent, so there is nothing to cancel.
                self.receiver.pending.forget(id);
            })?;
        let _in_flight = InFlight::begin(self, id, method.known);
        let reply = match self.link.send(message) {
            Either::Left(sent) => {
                sent.into_inner().map_err(RequestError::NotSent)?;
                answer.await
            }
            // The server does not read; the deadlines apply meanwhile.
            Either::Right(sending) => match select(sending, &mut answer).await {
                Either::Left((sent, _)) => {
                    sent.map_err(RequestError::NotSent)?;
                    answer.await
                }
                Either::Right((reply, _)) => reply,
            },
        };
        settled(reply, options)
    }

    fn encode_request(
        &self,
        id: u64,
        method: &str,
        params: Params<'_>,
        options: &RequestOptions,
    ) -> Result<Outgoing, RequestError> {
        // Room for the envelope, the common `_meta` members and the transport's line end.
        let mut payload = Vec::with_capacity(512 + params.size());
        let request = RequestId::from(id);
        let caller = options.caller.as_deref();
        let own = caller.and_then(|caller| caller.members(&self.meta, self.facts.revision.era()));
        let members = own.as_ref().unwrap_or(&self.meta);
        let members = if options.progress.is_some() {
            members.with_progress(id)
        } else {
            members.into()
        };
        match params {
            Params::Any(params) => {
                encode::request_with_meta(&mut payload, &request, method, params, members)
                    .map_err(unwritable)?;
            }
            Params::Call(call) => encode::tool_call(&mut payload, &request, &call, members),
        }
        let headers = match params {
            _ if !self.link.has_headers() => Vec::new(),
            Params::Any(params) => self.headers(method, params, &options.headers),
            Params::Call(call) => {
                let params = call.params();
                let params = switchboard_protocol::trusted(&params);
                self.headers(method, params, &options.headers)
            }
        };
        Ok(Outgoing {
            payload,
            kind: OutgoingKind::Request(id),
            era: self.facts.revision.era(),
            headers,
        })
    }

    fn notification(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Outgoing, RequestError> {
        let mut payload = Vec::with_capacity(128);
        encode::notification(&mut payload, method, params).map_err(unwritable)?;
        Ok(Outgoing {
            payload,
            kind: OutgoingKind::Notification,
            era: self.facts.revision.era(),
            headers: self.headers(method, params, &[]),
        })
    }

    /// The headers of a message; empty if the transport has no headers.
    fn headers(&self, method: &str, params: Option<&RawValue>, mirrored: &[Header]) -> Vec<Header> {
        if !self.link.has_headers() {
            return Vec::new();
        }
        let mut headers = headers::standard(self.facts.revision, method, params, None);
        headers.extend_from_slice(mirrored);
        headers
    }

    /// The type of a result that is not final; `None` for a final one.
    fn unfinished(
        &self,
        method: Method,
        result: &SharedJson,
        options: &RequestOptions,
    ) -> Option<ResultType<'static>> {
        // In the stateful era a result is final, or a task if the request asked for one.
        if self.facts.revision.era() == Era::Stateful {
            return options.as_task.then_some(ResultType::Task);
        }
        // Most methods have one kind of result, and decoding a long list only to check it would be wasteful.
        if !method.may_require_input() && method != Method::ToolsCall {
            return None;
        }
        match declared_type(result.raw()) {
            Some(ResultType::InputRequired) if method.may_require_input() => {
                Some(ResultType::InputRequired)
            }
            Some(ResultType::Task) if method == Method::ToolsCall => Some(ResultType::Task),
            _ => None,
        }
    }
}

/// The method of a request.
#[derive(Clone, Copy)]
struct Verb<'a> {
    /// `None` if it is not part of the specification.
    known: Option<Method>,
    name: &'a str,
}

impl From<Method> for Verb<'static> {
    fn from(method: Method) -> Self {
        Self {
            known: Some(method),
            name: method.name(),
        }
    }
}

#[derive(Clone, Copy)]
enum Params<'a> {
    Any(Option<&'a RawValue>),
    /// Params of a tool call, the most common request; serialized directly into the message.
    Call(ToolCall<'a>),
}

impl Params<'_> {
    /// Approximate size in bytes.
    fn size(&self) -> usize {
        let (name, json) = match self {
            Self::Any(params) => ("", *params),
            Self::Call(call) => (call.name, call.arguments),
        };
        name.len() + json.map_or(0, |json| json.get().len())
    }
}

/// A request that was sent. Dropping it before it is settled cancels it.
struct InFlight<'a> {
    shared: &'a Shared,
    id: u64,
    method: Option<Method>,
}

impl<'a> InFlight<'a> {
    fn begin(shared: &'a Shared, id: u64, method: Option<Method>) -> Self {
        if method != Some(Method::SubscriptionsListen) {
            shared.working.fetch_add(1, Ordering::Relaxed);
        }
        Self { shared, id, method }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Self { shared, id, method } = self;
        if *method != Some(Method::SubscriptionsListen) {
            shared.working.fetch_sub(1, Ordering::Relaxed);
        }
        if !shared.receiver.pending.forget(*id) {
            return;
        }
        let notified = shared.link.abandon(*id) == Abandoned::Told;
        // The specification forbids cancelling `initialize`.
        if notified || *method == Some(Method::Initialize) {
            return;
        }
        let params = format!(r#"{{"requestId":{id},"reason":"cancelled by the caller"}}"#);
        let params = switchboard_protocol::trusted(&params);
        let Ok(message) = shared.notification(Method::Cancelled.name(), params) else {
            return;
        };
        let link = Arc::clone(&shared.link);
        let cancelling = Arc::clone(&shared.cancelling);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            cancelling.send_modify(|cancelling| cancelling.under_way += 1);
            runtime.spawn(async move {
                let sent = link.send(message).await;
                cancelling.send_modify(|cancelling| {
                    cancelling.under_way -= 1;
                    cancelling.failed = sent.err().map(|error| error.to_string());
                });
            });
        }
    }
}

/// Converts a waiter's reply to a result.
fn settled(
    reply: Result<Reply, RecvError>,
    options: &RequestOptions,
) -> Result<SharedJson, RequestError> {
    match reply {
        Ok(Reply::Result(result)) => Ok(result),
        Ok(Reply::Error(error)) => Err(RequestError::Rejected(error)),
        Ok(Reply::Unreadable(why)) => Err(RequestError::Malformed(why)),
        Ok(Reply::TooDeep(why, frame)) => Err(RequestError::TooDeep { why, frame }),
        Ok(Reply::Overdue(Overdue::Idle)) => Err(RequestError::Idle(options.idle)),
        Ok(Reply::Overdue(Overdue::Total)) => Err(RequestError::Expired(options.total)),
        Ok(Reply::Failed(failure)) => Err(failure.into()),
        Ok(Reply::Closed(closed)) => Err((&closed).into()),
        Err(_) => Err(RequestError::Lost("the connection was dropped".to_owned())),
    }
}

fn not_sent(closed: &Closed) -> RequestError {
    use crate::transport::{TransportError, TransportErrorKind};
    RequestError::NotSent(TransportError::new(
        TransportErrorKind::Closed,
        closed.to_string(),
    ))
}

fn unwritable(error: impl std::fmt::Display) -> RequestError {
    RequestError::Unwritable(error.to_string())
}

fn to_raw<P: Encode>(params: &P) -> Result<Box<RawValue>, RequestError> {
    RawValue::from_string(wire::encode(params)).map_err(unwritable)
}
