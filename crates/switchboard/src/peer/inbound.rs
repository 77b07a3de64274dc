//! What arrives from a server, sorted: answers to their waiters, questions to the client, news to the observer.
//!
//! Owns the receiving end of a link. It runs on the task that reads, so everything here is short and nothing waits.
//! One odd message costs that message: an answer that cannot be read fails its own request, anything else is noted
//! and skipped.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
use switchboard_protocol::{Limits, Message, Method, RequestId, parse, salvage};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::pending::{Pending, Progress, Reply};
use super::visit::Visits;
use crate::json::SharedJson;
use crate::transport::{Closed, Inbound, RequestFailure};

/// Hears of what a server says unasked. Calls come from the task that reads: they must be short and never block.
pub trait Observer: Send + Sync + 'static {
    /// The server says something.
    fn notice(&self, notice: Notice<'_>);

    /// The link has ended.
    fn closed(&self, closed: &Closed);
}

/// What a server says unasked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// One of its lists has changed.
    ListChanged(ListKind),
    /// A resource has changed.
    ResourceUpdated(&'a str),
    /// A log message.
    Log(LoggingMessageNotificationParams<'a>),
    /// A line for people, from its stderr.
    Diagnostic(&'a str),
    /// Something that is no message where one was expected.
    Noise(&'a str),
    /// A question that sent the user to a page is settled.
    ElicitationComplete(&'a str),
    /// A task has changed.
    TaskChanged(&'a Task<'a>),
    /// The server will tell of what it was asked to.
    SubscriptionAcknowledged,
}

/// The lists a server can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// Its resource templates; they change with the resources.
    Templates,
}

impl ListKind {
    /// The method that lists them.
    pub const fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Prompts => Method::PromptsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourceTemplatesList,
        }
    }
}

/// What a server asks, or takes back.
#[derive(Debug)]
pub(super) enum Question {
    Asked {
        id: RequestId<'static>,
        method: String,
        params: Option<SharedJson>,
    },
    TakenBack(RequestId<'static>),
}

/// The receiving end of one link.
pub(super) struct Receiver {
    pub(super) pending: Pending,
    pub(super) closed: watch::Sender<Option<Closed>>,
    /// How many questions of the server are being answered: while a person thinks, a call is not idle.
    pub(super) answering: AtomicUsize,
    /// Microseconds that answering has taken.
    pub(super) answered: AtomicU64,
    /// Pages that the user was sent to.
    pub(super) visits: Visits,
    limits: Limits,
    observer: Arc<dyn Observer>,
    questions: mpsc::Sender<Question>,
    /// Questions that there was no room for: they are refused as soon as the task that answers runs.
    overflow: Mutex<Vec<RequestId<'static>>>,
    opened: Instant,
    /// Milliseconds after `opened` when something was last heard.
    heard: AtomicU64,
}

/// Questions that may wait for their turn. What a server asks beyond that is refused, and beyond this many not even that.
const MAX_QUESTIONS: usize = 256;
const MAX_REFUSED: usize = 16 * 1024;
/// How much of something unreadable is shown.
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
            heard: AtomicU64::new(0),
        };
        (Arc::new(inbound), receiver)
    }

    /// When something was last heard from the server.
    pub(super) fn heard(&self) -> Instant {
        let milliseconds = self.heard.load(Ordering::Relaxed);
        self.opened + std::time::Duration::from_millis(milliseconds)
    }

    /// Tells requests that they are overdue, for as long as it is awaited.
    pub(super) async fn watch_deadlines(&self) {
        let is_asking = || self.answering.load(Ordering::Relaxed) > 0;
        self.pending.watch(is_asking).await;
    }

    fn message(&self, frame: &Bytes, message: Message<'_>) {
        match message {
            Message::Response { id, result } => {
                let reply = Reply::Result(SharedJson::part_of(frame, result));
                self.settle(id.as_u64_lenient(), reply);
            }
            Message::Error { id, error } => {
                // An error that does not say whose it is can only be meant for the one request there is.
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
                };
                if let Err(error) = self.questions.try_send(question)
                    && let Question::Asked { id, .. } = error.into_inner()
                {
                    self.refuse(id);
                }
            }
            Message::Notification { method, params } => self.notification(&method, params),
        }
    }

    /// Keeps a question that there is no room for, to be refused.
    fn refuse(&self, id: RequestId<'static>) {
        let mut overflow = self.overflow.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = overflow.is_empty();
        if overflow.len() < MAX_REFUSED {
            overflow.push(id);
        }
        drop(overflow);
        if is_first {
            self.noise("the server asks more questions at once than are answered");
        }
    }

    /// Questions that are to be refused.
    pub(super) fn take_overflow(&self) -> Vec<RequestId<'static>> {
        std::mem::take(&mut self.overflow.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn settle(&self, id: Option<u64>, reply: Reply) {
        let settled = id.is_some_and(|id| self.pending.settle(id, reply));
        if !settled {
            // A late answer to a request that was given up looks the same, so this is no fault.
            tracing::debug!(id, "an answer that nobody waits for");
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
            _ => return tracing::debug!(method, "a notification that means nothing here"),
        };
        self.observer.notice(notice);
    }

    fn progress(&self, params: Option<&RawValue>) {
        let Ok(params) = ProgressMethod::decode_params(params) else {
            return self.noise("a progress notification that cannot be read");
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

    /// The server no longer wants an answer to its question, or ends a subscription of ours.
    fn taken_back(&self, params: Option<&RawValue>) {
        let Ok(Some(id)) = Cancelled::decode_params(params).map(|params| params.request_id) else {
            return;
        };
        if let Some(own) = id.as_u64_lenient() {
            // Only a subscription may be ended like this; for anything else it is as good as an answer.
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

    /// A frame that cannot be read fails the request it seems to answer.
    fn unreadable(&self, frame: &[u8], why: &str) {
        let salvaged = salvage(frame);
        let id = salvaged.id.filter(|_| !salvaged.has_method);
        let waits = id.and_then(|id| id.as_u64_lenient());
        if !waits.is_some_and(|id| self.pending.settle(id, Reply::Unreadable(why.to_owned()))) {
            let shown = frame.get(..NOISE_SHOWN).unwrap_or(frame);
            self.noise(String::from_utf8_lossy(shown).trim_end());
        }
    }
}

impl Inbound for Receiver {
    fn frame(&self, frame: Bytes) {
        let elapsed = self.opened.elapsed().as_millis();
        self.heard.store(
            u64::try_from(elapsed).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
        match parse(&frame, &self.limits) {
            Ok(incoming) => {
                for received in incoming.into_messages() {
                    match received {
                        Ok(received) => self.message(&frame, received.message),
                        Err(error) => self.noise(&format!("a message in a batch: {error}")),
                    }
                }
            }
            Err(error) => self.unreadable(&frame, &error.to_string()),
        }
    }

    fn oversized(&self, start: &[u8], limit: usize) {
        let id = salvage(start).id.and_then(|id| id.as_u64_lenient());
        let failure = Reply::Failed(RequestFailure::TooLarge { limit });
        if !id.is_some_and(|id| self.pending.settle(id, failure)) {
            self.noise(&format!("a message larger than {limit} bytes was skipped"));
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
