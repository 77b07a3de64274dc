//! Passes what servers ask on to the client whose request it belongs to.
//!
//! [`GatewayQuestions`] is the handler of the gateway's host and the approver of its permission gate. The host tells it
//! whose request a question belongs to; the [`Relay`] of that request asks the client. A question that belongs to no
//! request, or to one of several clients, is declined, because an answer of the wrong client would be worse than none.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard::internal::caller::{AskedBy, asked_by};
use switchboard::permissions::{Approver, PromptAnswer, Question};
use switchboard::service::{Failure, RequestContext};
use switchboard::{ClientHandler, ProgressSink, ServerName};
use switchboard_protocol::types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::input::{
    CreateMessageRequest, ElicitRequest, InputRequest, ListRootsRequest,
};
use switchboard_protocol::types::logging::LoggingMessageNotificationParams;
use switchboard_protocol::types::method::{LoggingMessage, Notification as _};
use switchboard_protocol::types::roots::{ListRootsResult, Root};
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::types::{self, DecodeError, IntoOwned as _, Raw, RawObject};
use switchboard_protocol::{ErrorCode, ErrorObject, Method};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use url::Url;

use crate::agent::questions::{approval, read};

/// Time for a client to answer a permission prompt; after that the answer is no.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

tokio::task_local! {
    /// The relay of the call that is made in this task.
    static RELAY: Arc<Relay>;
}

/// Asks the clients of a gateway. Cheap to clone; clones share their state.
///
/// Use it as the handler of the gateway's host and as the approver of its permission gate, and pass it to
/// [`Gateway`](super::Gateway).
#[derive(Clone, Default)]
pub struct GatewayQuestions(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// What servers are told; `None`: all that a client may have.
    capabilities: Mutex<Option<ClientCapabilities<'static>>>,
    /// The folder reported as root to servers that ask outside of a request.
    folder: Option<Arc<Path>>,
}

impl GatewayQuestions {
    /// Reports this folder to servers as their root, unless the client has roots of its own.
    pub fn about(folder: &Path) -> Self {
        Self(Arc::new(Shared {
            capabilities: Mutex::default(),
            folder: Some(folder.into()),
        }))
    }

    /// Declares the capabilities of the only client to servers that are connected from now on.
    pub(super) fn mirror(&self, client: &ClientCapabilities<'static>) {
        let mut place = self
            .0
            .capabilities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(client.clone());
    }
}

impl ClientHandler for GatewayQuestions {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let mirrored = self
            .0
            .capabilities
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut capabilities = mirrored.clone().unwrap_or_else(|| {
            let mut all = ClientCapabilities::new();
            all.elicitation = Some(both_modes());
            let mut sampling = SamplingCapability::new();
            sampling.context = Some(Raw::from(RawObject::default()));
            sampling.tools = Some(Raw::from(RawObject::default()));
            all.sampling = Some(sampling);
            all.roots = Some(RootsCapability::new());
            all
        });
        drop(mirrored);
        if capabilities.roots.is_none() && self.0.folder.is_some() {
            capabilities.roots = Some(RootsCapability::new());
        }
        capabilities
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        match asked_by() {
            AskedBy::Client(caller) => {
                let (server, params) = (server.clone(), params.into_owned());
                async move { caller.handler.elicit(&server, params).await }.boxed()
            }
            unclear => ready(Err(undeliverable(server, &unclear))).boxed(),
        }
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        match asked_by() {
            AskedBy::Client(caller) => {
                let (server, params) = (server.clone(), params.into_owned());
                async move { caller.handler.create_message(&server, params).await }.boxed()
            }
            unclear => ready(Err(undeliverable(server, &unclear))).boxed(),
        }
    }

    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        if let AskedBy::Client(caller) = asked_by()
            && caller.handler.capabilities().offers_roots()
        {
            let server = server.clone();
            return async move { caller.handler.list_roots(&server).await }.boxed();
        }
        let uri = self.0.folder.as_deref();
        let uri = uri.and_then(|folder| Url::from_directory_path(folder).ok());
        let roots = uri.map(|uri| Root::new(String::from(uri).into()));
        ready(Ok(ListRootsResult::new(roots.into_iter().collect()))).boxed()
    }

    fn other<'a>(
        &'a self,
        server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        match asked_by() {
            AskedBy::Client(caller) => {
                async move { caller.handler.other(server, method, params).await }.boxed()
            }
            unclear => ready(Err(undeliverable(server, &unclear))).boxed(),
        }
    }
}

/// Permission prompts are forwarded to the client that makes the call. What a client allows for its session is allowed for
/// its own calls only.
impl Approver for GatewayQuestions {
    fn client(&self) -> Option<u64> {
        RELAY.try_with(|relay| relay.client).ok()
    }

    fn is_there(&self) -> bool {
        RELAY
            .try_with(|relay| relay.capabilities.offers_elicitation())
            .unwrap_or(false)
    }

    fn asks_one_at_a_time(&self) -> bool {
        // Clients are asked in parallel: one that does not answer must not block the others.
        false
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer> {
        async move {
            let Ok(relay) = RELAY.try_with(Arc::clone) else {
                return PromptAnswer::No;
            };
            let params = match approval(&question) {
                Ok(params) => params,
                Err(reason) => return PromptAnswer::Unshown(reason),
            };
            let asked = relay.ask(ElicitRequest::new(Box::new(params)).into());
            let answer = timeout(PATIENCE, asked).await;
            let Ok(Ok(answer)) = answer else {
                return PromptAnswer::No;
            };
            answer
                .decode::<ElicitResult<'_>>()
                .map_or(PromptAnswer::No, |result| read(&result, question.offers))
        }
        .boxed()
    }
}

impl std::fmt::Debug for GatewayQuestions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GatewayQuestions")
            .finish_non_exhaustive()
    }
}

/// A question for a client that has to repeat its request to answer it.
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) question: InputRequest<'static>,
    pub(super) answer: oneshot::Sender<RawObject<'static>>,
}

/// Asks the client of one request, and passes notifications of the request on.
pub(super) struct Relay {
    /// Number of the client.
    client: u64,
    /// The request on whose stream the client gets messages; `None` while the client has not repeated a request that
    /// ended with a question.
    context: Mutex<Option<Arc<RequestContext>>>,
    /// Whether the client sees several servers as one.
    is_merged: bool,
    capabilities: Arc<ClientCapabilities<'static>>,
    /// Where questions go that the client answers by repeating its request (stateless era).
    repeated: Option<mpsc::Sender<Asked>>,
    asked: AtomicU64,
}

impl Relay {
    pub(super) fn new(
        client: u64,
        context: &Arc<RequestContext>,
        is_merged: bool,
        capabilities: Arc<ClientCapabilities<'static>>,
        repeated: Option<mpsc::Sender<Asked>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            context: Mutex::new(Some(Arc::clone(context))),
            is_merged,
            capabilities,
            repeated,
            asked: AtomicU64::new(0),
        })
    }

    /// Sends further messages on the stream of another request; `None`: to nowhere.
    pub(super) fn follow(&self, context: Option<&Arc<RequestContext>>) {
        *self.context.lock().unwrap_or_else(PoisonError::into_inner) = context.map(Arc::clone);
    }

    fn context(&self) -> Option<Arc<RequestContext>> {
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        context.as_ref().map(Arc::clone)
    }

    /// Reports the progress of the request to its client.
    pub(super) fn progress(self: &Arc<Self>) -> ProgressSink {
        let relay = Arc::downgrade(self);
        Arc::new(move |progress| {
            if let Some(context) = relay.upgrade().and_then(|relay| relay.context()) {
                context.progress(
                    progress.progress,
                    progress.total,
                    progress.message.as_deref(),
                );
            }
        })
    }

    /// Runs a call whose permission prompts go to this client.
    pub(super) async fn scope<F: Future>(self: Arc<Self>, call: F) -> F::Output {
        RELAY.scope(self, call).await
    }

    async fn ask(
        &self,
        question: InputRequest<'static>,
    ) -> Result<RawObject<'static>, ErrorObject<'static>> {
        self.check(&question)?;
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let key = format!("question-{number}");
        let gone = || internal("the client did not answer");
        let Some(repeated) = &self.repeated else {
            let context = self.context().ok_or_else(gone)?;
            return context
                .ask(&key, question)
                .await
                .map_err(|failure| match failure {
                    Failure::Error(error) => error,
                    other => internal(&other.to_string()),
                });
        };
        let (answer, answered) = oneshot::channel();
        let asked = Asked {
            key,
            question,
            answer,
        };
        repeated.send(asked).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }

    /// Fails like a client that lacks the capability.
    fn check(&self, question: &InputRequest<'_>) -> Result<(), ErrorObject<'static>> {
        let offered = match question {
            InputRequest::Elicit(request) => {
                let offered = self.capabilities.elicitation.as_ref();
                match &*request.params {
                    ElicitRequestParams::Url(_) => {
                        offered.is_some_and(|offered| offered.url.is_some())
                    }
                    _ => {
                        self.capabilities.offers_elicitation()
                            && offered.is_none_or(ElicitationCapability::allows_form)
                    }
                }
            }
            InputRequest::CreateMessage(request) => {
                let sampling = self.capabilities.sampling.as_ref();
                let has_tools = sampling.is_some_and(|sampling| sampling.tools.is_some());
                let needs_tools = request.params.tools.is_present();
                self.capabilities.offers_sampling() && (has_tools || !needs_tools)
            }
            InputRequest::ListRoots(_) => self.capabilities.offers_roots(),
            InputRequest::Unknown(_) => true,
        };
        if offered {
            return Ok(());
        }
        Err(ErrorObject::new(
            ErrorCode::METHOD_NOT_FOUND,
            "the client does not support this request",
        ))
    }
}

impl ClientHandler for Relay {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        ClientCapabilities::clone(&self.capabilities)
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        let question = ElicitRequest::new(Box::new(params.into_owned()));
        async move {
            let answer = self.ask(question.into()).await?;
            let answer: ElicitResult<'_> = answer.decode().map_err(|error| unfit(&error))?;
            Ok(answer.into_owned())
        }
        .boxed()
    }

    fn create_message<'a>(
        &'a self,
        _server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        let question = CreateMessageRequest::new(Box::new(params.into_owned()));
        async move {
            let answer = self.ask(question.into()).await?;
            let answer: CreateMessageResult<'_> = answer.decode().map_err(|error| unfit(&error))?;
            Ok(answer.into_owned())
        }
        .boxed()
    }

    fn list_roots<'a>(
        &'a self,
        _server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        async move {
            let answer = self.ask(ListRootsRequest::new().into()).await?;
            let answer: ListRootsResult<'_> = answer.decode().map_err(|error| unfit(&error))?;
            Ok(answer.into_owned())
        }
        .boxed()
    }

    fn other<'a>(
        &'a self,
        _server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        async move {
            let context = self.context();
            let context = context.ok_or_else(|| internal("the client did not answer"))?;
            context.ask_other(method, params).await
        }
        .boxed()
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&RawValue>) {
        let Some(context) = self.context() else {
            return;
        };
        match Method::from_name(method) {
            Some(Method::LogMessage) if self.is_merged => {
                let message = LoggingMessage::decode_params(params);
                if let Ok(message) = message {
                    let message = types::encode(&named(server, message));
                    context.pass(method, switchboard_protocol::trusted(&message));
                }
            }
            // It has the id that the server knows.
            Some(Method::TaskStatus) => {}
            _ => context.pass(method, params),
        }
    }
}

/// A log message of one of several servers.
pub(super) fn named<'m>(
    server: &ServerName,
    mut message: LoggingMessageNotificationParams<'m>,
) -> LoggingMessageNotificationParams<'m> {
    message.logger = Some(match message.logger {
        Some(logger) => format!("{server}/{logger}").into(),
        None => server.to_string().into(),
    });
    message
}

fn both_modes() -> ElicitationCapability<'static> {
    let mut capability = ElicitationCapability::new();
    capability.form = Some(Raw::from(RawObject::default()));
    capability.url = Some(Raw::from(RawObject::default()));
    capability
}

fn undeliverable(server: &ServerName, asked: &AskedBy) -> ErrorObject<'static> {
    let reason = match asked {
        AskedBy::Unclear => {
            "several clients use this server at once, and it is not clear whose call this belongs to"
        }
        _ => "no client has a call running that this could belong to",
    };
    tracing::warn!(%server, reason, "a question of a server cannot be passed on");
    ErrorObject::new(ErrorCode(-1), reason)
}

fn unfit(error: &DecodeError) -> ErrorObject<'static> {
    internal(&format!("invalid answer from the client: {error}"))
}

fn internal(message: &str) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, message.to_owned())
}
