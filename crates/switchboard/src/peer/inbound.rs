//! Dispatches received messages: responses to their waiters, server requests to the handler, notifications to the
//! observer.
//!
//! The receiving end of a link. It runs on the reading task, so everything here is short and never blocks. A malformed
//! message affects only itself: an unreadable response fails its own request; anything else is logged and skipped.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::value::RawValue;
use switchboard_protocol::types::logging::LoggingMessageNotificationParams;
use switchboard_protocol::types::method::{
    Cancelled, ElicitationComplete, LoggingMessage, Notification as _, Progress as ProgressMethod,
    ResourceUpdated, TaskChanged,
};
use switchboard_protocol::types::task::Task;
use switchboard_protocol::types::wire::Number;
use switchboard_protocol::{
    Limits, Message, Method, ParseError, ParseErrorKind, Quirk, RequestId, parse, salvage,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::pending::{Pending, Progress, Reply};
use super::visit::Visits;
use crate::caller::{AskedBy, Caller};
use crate::json::SharedJson;
use crate::transport::{Closed, Inbound, RequestFailure};

/// Receives a server's unsolicited messages. Called from the reading task: must be short and never block.
pub trait Observer: Send + Sync + 'static {
    /// Called for each unsolicited message.
    fn notice(&self, notice: Notice<'_>);

    /// Called once when the link has ended.
    fn closed(&self, closed: &Closed);
}

/// An unsolicited message or event of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// `notifications/…/list_changed`.
    ListChanged(ListKind),
    /// The resource with this URI has changed.
    ResourceUpdated(&'a str),
    /// A log message.
    Log(LoggingMessageNotificationParams<'a>),
    /// A line of its stderr, without the line end.
    Diagnostic(&'a str),
    /// Input that is not a valid message; a description or an excerpt.
    Noise(&'a str),
    /// The URL elicitation with this id is complete.
    ElicitationComplete(&'a str),
    /// The status of a task has changed.
    TaskChanged(&'a Task<'a>),
    /// The server has confirmed a subscription.
    SubscriptionAcknowledged,
    /// The server process runs, with this process id.
    Started(u32),
    /// A notification that clients of a gateway may want: a log message (besides [`Notice::Log`]), the end of a URL
    /// elicitation, the status of a task, or a method that is not part of the specification.
    Passed {
        /// Method of the notification.
        method: &'a str,
        /// Its parameters.
        params: Option<&'a RawValue>,
        /// The client that it belongs to; `None` if it belongs to no request.
        caller: Option<&'a Arc<Caller>>,
    },
}

/// A list that a server can offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// Its resource templates; they change together with the resources.
    Templates,
}

impl ListKind {
    /// The method that returns the list.
    pub const fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourceTemplatesList,
        }
    }
}

/// A server's request to the client, or its cancellation.
#[derive(Debug)]
pub(super) enum Question {
    Asked {
        id: RequestId<'static>,
        method: String,
        params: Option<SharedJson>,
        /// Whose request it belongs to.
        by: AskedBy,
    },
    TakenBack(RequestId<'static>),
}

/// The receiving end of one link.
pub(super) struct Receiver {
    pub(super) pending: Pending,
    pub(super) closed: watch::Sender<Option<Closed>>,
    /// Server requests being answered now. While there are any, calls are not idle: a user may be deciding.
    pub(super) answering: AtomicUsize,
    /// Microseconds spent answering so far.
    pub(super) answered: AtomicU64,
    /// Pages that the user was sent to.
    pub(super) visits: Visits,
    pub(super) limits: Limits,
    observer: Arc<dyn Observer>,
    questions: mpsc::Sender<Question>,
    /// Server requests that exceeded the queue; they are refused when the answering task runs next.
    overflow: Mutex<Vec<RequestId<'static>>>,
    opened: Instant,
    told_of_version: AtomicBool,
    /// Milliseconds after `opened` at which the last message arrived.
    heard: AtomicU64,
}

/// Server requests that may be queued. Requests beyond that are refused, and dropped beyond `MAX_REFUSED`.
const MAX_QUESTIONS: usize = 256;
const MAX_REFUSED: usize = 16 * 1024;
/// Bytes of an unreadable frame included in the log.
const NOISE_SHOWN: usize = 512;

impl Receiver {
    pub(super) fn new(
        limits: Limits,
        observer: Arc<dyn Observer>,
    ) -> (Arc<Self>, mpsc::Receiver<Question>) {
        let (questions, receiver) = mpsc::channel(MAX_QUESTIONS);
        let inbound = Self {
            pending: Pending::default(),
            closed: watch::Sender::new(None),
            answering: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            overflow: Mutex::default(),
            visits: Visits::default(),
            limits,
            observer,
            questions,
            opened: Instant::now(),
            told_of_version: AtomicBool::new(false),
            heard: AtomicU64::new(0),
        };
        (Arc::new(inbound), receiver)
    }

    /// Time of the last message from the server.
    pub(super) fn heard(&self) -> Instant {
        let milliseconds = self.heard.load(Ordering::Relaxed);
        self.opened + std::time::Duration::from_millis(milliseconds)
    }

    /// Times out overdue requests for as long as it is polled.
    pub(super) async fn watch_deadlines(&self) {
        let is_asking = || self.answering.load(Ordering::Relaxed) > 0;
        self.pending.watch(is_asking).await;
    }

    fn message(&self, frame: &Bytes, message: Message<'_>, related: Option<u64>) {
        match message {
            Message::Response { id, result } => {
                let reply = Reply::Result(SharedJson::part_of(frame, result));
                self.settle(id.as_u64_lenient(), reply);
            }
            Message::Error { id, error } => {
                // An error without an id can only belong to the one pending request.
                let id = match id {
                    Some(id) => id.as_u64_lenient(),
                    None => self.pending.only(),
                };
                self.settle(id, Reply::Error(Box::new(error.into_owned())));
            }
            Message::Request { id, method, params } => {
                let question = Question::Asked {
                    id: id.into_owned(),
                    method: method.into_owned(),
                    params: params.map(|params| SharedJson::part_of(frame, params)),
                    by: self.pending.asked_by(related),
                };
                // On a connection that is being closed, server requests are ignored.
                if let Err(mpsc::error::TrySendError::Full(question)) =
                    self.questions.try_send(question)
                    && let Question::Asked { id, .. } = question
                {
                    self.refuse(id);
                }
            }
            Message::Notification { method, params } => {
                self.notification(&method, params);
                self.pass(&method, params, related);
            }
        }
    }

    /// Queues a request to be refused, because there is no room to answer it.
    fn refuse(&self, id: RequestId<'static>) {
        let mut overflow = self.overflow.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = overflow.is_empty();
        if overflow.len() < MAX_REFUSED {
            overflow.push(id);
        }
        drop(overflow);
        if is_first {
            self.noise("the server sends more requests than can be queued");
        }
    }

    /// Removes and returns the requests to be refused.
    pub(super) fn take_overflow(&self) -> Vec<RequestId<'static>> {
        std::mem::take(&mut self.overflow.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn settle(&self, id: Option<u64>, reply: Reply) {
        let settled = id.is_some_and(|id| self.pending.settle(id, reply));
        if !settled {
            // Not a fault: a late response to a cancelled request looks the same.
            tracing::debug!(id, "response with no pending request");
        }
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let notice = match Method::from_name(method) {
            Some(Method::Progress) => return self.progress(params),
            Some(Method::ToolsListChanged) => Notice::ListChanged(ListKind::Tools),
            Some(Method::PromptsListChanged) => Notice::ListChanged(ListKind::Prompts),
            Some(Method::ResourcesListChanged) => Notice::ListChanged(ListKind::Resources),
            Some(Method::SubscriptionsAcknowledged) => Notice::SubscriptionAcknowledged,
            Some(Method::ResourcesUpdated) => match ResourceUpdated::decode_params(params) {
                Ok(params) => return self.observer.notice(Notice::ResourceUpdated(&params.uri)),
                Err(error) => return self.noise(&format!("{method}: {error}")),
            },
            Some(Method::LogMessage) => match LoggingMessage::decode_params(params) {
                Ok(params) => Notice::Log(params),
                Err(error) => return self.noise(&format!("{method}: {error}")),
            },
            Some(Method::ElicitationComplete) => match ElicitationComplete::decode_params(params) {
                Ok(params) => {
                    self.visits.complete(&params.elicitation_id);
                    return self
                        .observer
                        .notice(Notice::ElicitationComplete(&params.elicitation_id));
                }
                Err(error) => return self.noise(&format!("{method}: {error}")),
            },
            Some(Method::TaskChanged | Method::TaskStatus) => {
                match TaskChanged::decode_params(params) {
                    Ok(task) => return self.observer.notice(Notice::TaskChanged(&task)),
                    Err(error) => return self.noise(&format!("{method}: {error}")),
                }
            }
            Some(Method::Cancelled) => return self.taken_back(params),
            _ => return tracing::debug!(method, "ignoring an unknown notification"),
        };
        self.observer.notice(notice);
    }

    /// Passes on what clients of a gateway may want. If it may belong to a request of any of several clients, it is
    /// withheld from all of them.
    fn pass(&self, method: &str, params: Option<&RawValue>, related: Option<u64>) {
        let is_passed = match Method::from_name(method) {
            Some(known) => matches!(
                known,
                Method::LogMessage | Method::ElicitationComplete | Method::TaskStatus
            ),
            None => true,
        };
        if !is_passed {
            return;
        }
        let by = self.pending.asked_by(related);
        let caller = match &by {
            AskedBy::Client(caller) => Some(caller),
            AskedBy::NoRequest => None,
            AskedBy::Unclear => {
                tracing::debug!(
                    method,
                    "a notification may belong to any of several clients"
                );
                return;
            }
        };
        self.observer.notice(Notice::Passed {
            method,
            params,
            caller,
        });
    }

    fn progress(&self, params: Option<&RawValue>) {
        let Ok(params) = ProgressMethod::decode_params(params) else {
            return self.noise("malformed progress notification");
        };
        let Some(id) = params.progress_token.as_u64_lenient() else {
            return;
        };
        self.pending.progressed(id, || Progress {
            progress: params.progress.as_f64(),
            total: params.total.as_ref().map(Number::as_f64),
            message: params.message.map(std::borrow::Cow::into_owned),
        });
    }

    /// The server cancels its request, or ends a subscription of ours.
    fn taken_back(&self, params: Option<&RawValue>) {
        let Ok(Some(id)) = Cancelled::decode_params(params).map(|params| params.request_id) else {
            return;
        };
        if let Some(own) = id.as_u64_lenient() {
            // Valid only for a subscription; any other request fails with it.
            let ended = Reply::Unreadable("the server has cancelled the request".to_owned());
            if self.pending.settle(own, ended) {
                return;
            }
        }
        let _ = self
            .questions
            .try_send(Question::TakenBack(id.into_owned()));
    }

    fn noise(&self, text: &str) {
        self.observer.notice(Notice::Noise(text));
    }

    /// A message that declares another JSON-RPC version is accepted by its shape; reported once.
    #[cold]
    fn other_version(&self) {
        if !self.told_of_version.swap(true, Ordering::Relaxed) {
            self.noise("the server's messages lack jsonrpc \"2.0\"; they are accepted anyway");
        }
    }

    /// Fails the request that an unreadable frame seems to answer.
    fn unreadable(&self, frame: &Bytes, error: &ParseError) {
        let salvaged = salvage(frame);
        let id = salvaged.id.filter(|_| !salvaged.has_method);
        let waits = id.and_then(|id| id.as_u64_lenient());
        let reply = match error.kind {
            ParseErrorKind::TooDeep { .. } => Reply::TooDeep(error.to_string(), frame.clone()),
            _ => Reply::Unreadable(error.to_string()),
        };
        if !waits.is_some_and(|id| self.pending.settle(id, reply)) {
            let excerpt = frame.get(..NOISE_SHOWN).unwrap_or(frame);
            self.noise(String::from_utf8_lossy(excerpt).trim_end());
        }
    }
}

impl Receiver {
    /// Dispatches a frame; `related` is the request on whose stream it arrived.
    fn receive(&self, frame: &Bytes, related: Option<u64>) {
        let elapsed = self.opened.elapsed().as_millis();
        self.heard.store(
            u64::try_from(elapsed).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
        match parse(frame, &self.limits) {
            Ok(incoming) => {
                for received in incoming.into_messages() {
                    match received {
                        Ok(received) => {
                            if received.quirks.contains(Quirk::OtherVersion) {
                                self.other_version();
                            }
                            self.message(frame, received.message, related);
                        }
                        Err(error) => self.noise(&format!("malformed message in a batch: {error}")),
                    }
                }
            }
            Err(error) => self.unreadable(frame, &error),
        }
    }
}

impl Inbound for Receiver {
    fn frame(&self, frame: Bytes) {
        self.receive(&frame, None);
    }

    fn related_frame(&self, frame: Bytes, request: u64) {
        self.receive(&frame, Some(request));
    }

    fn oversized(&self, start: &[u8], limit: usize) {
        let id = salvage(start).id.and_then(|id| id.as_u64_lenient());
        let failure = Reply::Failed(RequestFailure::TooLarge { limit });
        if !id.is_some_and(|id| self.pending.settle(id, failure)) {
            self.noise(&format!("skipped a message larger than {limit} bytes"));
        }
    }

    fn failed(&self, request: u64, failure: RequestFailure) {
        self.pending.settle(request, Reply::Failed(failure));
    }

    fn diagnostic(&self, line: &str) {
        self.observer.notice(Notice::Diagnostic(line));
    }

    fn closed(&self, closed: Closed) {
        self.pending.close(&closed);
        self.observer.closed(&closed);
        self.closed.send_replace(Some(closed));
    }
}
