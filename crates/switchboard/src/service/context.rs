//! Context of a request being served: progress, log messages, requests to the client.
//!
//! Encodes each of these for the era of the request.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_protocol::meta::DeclaredMeta;
use switchboard_protocol::types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::input::{
    CreateMessageRequest, ElicitRequest, InputRequest, InputRequiredResult,
    InputResponseRequestParams, ListRootsRequest,
};
use switchboard_protocol::types::lifecycle::RequestParams;
use switchboard_protocol::types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use switchboard_protocol::types::method::{LoggingMessage, Notification, Progress};
use switchboard_protocol::types::notification::ProgressNotificationParams;
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::types::{self, DecodeError, IntoOwned, Number, Raw, RawObject};
use switchboard_protocol::{
    Era, ErrorCode, ErrorObject, Feature, Method, RequestId, Revision, encode, trusted,
};

use super::conversation::Request;
use super::dispatch::severity;
use super::{Cancellation, Failure, Purpose, invalid_params};

/// A request being served, as its service sees it.
pub struct RequestContext {
    request: Arc<Request>,
    revision: Revision,
    declared: OnceLock<Declared>,
}

/// The request's `_meta`, decoded on first use.
struct Declared {
    progress_token: Option<RequestId<'static>>,
    log_level: Option<LoggingLevel<'static>>,
}

impl RequestContext {
    pub(super) fn new(request: Arc<Request>, revision: Revision) -> Self {
        Self {
            request,
            revision,
            declared: OnceLock::new(),
        }
    }

    pub(super) fn request(&self) -> &Arc<Request> {
        &self.request
    }

    /// The revision of the request.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The request's cancellation flag, for blocking work and for tasks the service spawns.
    pub fn cancellation(&self) -> Cancellation {
        self.request.cancellation.clone()
    }

    /// The client's declared capabilities.
    pub fn client_capabilities(&self) -> ClientCapabilities<'static> {
        let declared = match self.revision.era() {
            Era::Stateful => {
                let state = self.request.core.state();
                let settled = state.settled.as_ref();
                return settled.map_or_else(ClientCapabilities::new, |settled| {
                    ClientCapabilities::clone(&settled.capabilities)
                });
            }
            Era::Stateless => DeclaredMeta::read(self.request.params()).client_capabilities,
        };
        declared
            .and_then(|raw| types::decode::<ClientCapabilities<'_>>(raw).ok())
            .map_or_else(ClientCapabilities::new, IntoOwned::into_owned)
    }

    /// Reports progress if the client asked for it. Values must increase.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.declared().progress_token.clone() else {
            return;
        };
        let Some(progress) = Number::from_f64(progress) else {
            return;
        };
        let mut params = ProgressNotificationParams::new(token, progress);
        params.total = total.and_then(Number::from_f64);
        params.message = message
            .filter(|_| self.revision.has(Feature::ProgressMessage))
            .map(Into::into);
        self.notify::<Progress>(&params);
    }

    /// Whether the client asked for progress.
    #[doc(hidden)]
    pub fn wants_progress(&self) -> bool {
        self.declared().progress_token.is_some()
    }

    /// Sends a log message if the client wants messages of that level. Requires
    /// [`Features::logging`](super::Features::logging).
    pub fn log<T: Serialize + ?Sized>(
        &self,
        level: LoggingLevel<'_>,
        logger: Option<&str>,
        data: &T,
    ) {
        if !self.request.core.service.features().logging || !self.wants_log(&level) {
            return;
        }
        let Ok(data) = Raw::from_serialize(&data) else {
            return;
        };
        let mut params = LoggingMessageNotificationParams::new(level, data);
        params.logger = logger.map(Into::into);
        self.notify::<LoggingMessage>(&params);
    }

    /// Asks the user, by a form or a page to visit. See [`ask`](Self::ask).
    pub async fn elicit(
        &self,
        key: &str,
        params: ElicitRequestParams<'static>,
    ) -> Result<ElicitResult<'static>, Failure> {
        let question = ElicitRequest::new(Box::new(params));
        let answer = self.ask(key, question.into()).await?;
        let answer = answer
            .decode::<ElicitResult<'_>>()
            .map_err(|error| unfit(&error))?;
        Ok(answer.into_owned())
    }

    /// Requests a completion from the client's model. See [`ask`](Self::ask).
    pub async fn sample(
        &self,
        key: &str,
        params: CreateMessageRequestParams<'static>,
    ) -> Result<CreateMessageResult<'static>, Failure> {
        let question = CreateMessageRequest::new(Box::new(params));
        let answer = self.ask(key, question.into()).await?;
        let answer = answer
            .decode::<CreateMessageResult<'_>>()
            .map_err(|error| unfit(&error))?;
        Ok(answer.into_owned())
    }

    /// Requests the client's root folders. See [`ask`](Self::ask).
    pub async fn roots(&self, key: &str) -> Result<ListRootsResult<'static>, Failure> {
        let answer = self.ask(key, ListRootsRequest::new().into()).await?;
        let answer = answer
            .decode::<ListRootsResult<'_>>()
            .map_err(|error| unfit(&error))?;
        Ok(answer.into_owned())
    }

    /// Sends a request to the client and returns the undecoded response.
    ///
    /// In the stateless era a server cannot send requests while it answers: this returns a [`Failure`] that ends the
    /// method, which is called again from the beginning once the client has answered. This then returns the answer,
    /// found by `key`. A service therefore passes the failure on with `?`, has no side effects before a request that
    /// must not happen twice, and uses a different key for each request.
    ///
    /// # Errors
    /// The client does not support the request, it answered with an error, or it has to answer first.
    pub async fn ask(
        &self,
        key: &str,
        question: InputRequest<'static>,
    ) -> Result<RawObject<'static>, Failure> {
        self.check_capability(&question)?;
        match self.revision.era() {
            Era::Stateful => self.ask_now(&question).await,
            Era::Stateless => self.ask_first(key, question),
        }
    }

    /// Sends a request of any method to the client and returns the response as it is (stateful era).
    #[doc(hidden)]
    pub async fn ask_other(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, ErrorObject<'static>> {
        if self.revision.era() == Era::Stateless {
            return Err(ErrorObject::new(
                ErrorCode::METHOD_NOT_FOUND,
                "the client does not support this request",
            ));
        }
        let Request { core, sink, .. } = &*self.request;
        core.asked.ask(sink, method, params).await
    }

    /// Sends a notification on the stream of this request. A log message is sent only if the client wants its level.
    #[doc(hidden)]
    pub fn pass(&self, method: &str, params: Option<&RawValue>) {
        if method == Method::LogMessage.name() {
            let message = LoggingMessage::decode_params(params);
            if !message.is_ok_and(|message| self.wants_log(&message.level)) {
                return;
            }
        }
        let mut frame = Vec::new();
        if encode::notification(&mut frame, method, params).is_ok() {
            self.request.sink.send(frame.into(), Purpose::Report);
        }
    }

    /// The error for reading a resource that does not exist, with the code of the request's revision.
    pub fn resource_not_found(&self, uri: &str) -> Failure {
        #[derive(Serialize)]
        struct Data<'d> {
            uri: &'d str,
        }
        let code = match self.revision.era() {
            Era::Stateful => ErrorCode::RESOURCE_NOT_FOUND,
            Era::Stateless => ErrorCode::INVALID_PARAMS,
        };
        ErrorObject::new(code, "resource not found")
            .with_data(&Data { uri })
            .into()
    }
}

/// The request is over: work that still runs for it may stop.
impl Drop for RequestContext {
    fn drop(&mut self) {
        self.request.cancellation.cancel();
    }
}

impl std::fmt::Debug for RequestContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RequestContext")
            .field("method", &self.request.method)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl RequestContext {
    fn declared(&self) -> &Declared {
        self.declared.get_or_init(|| {
            let meta = DeclaredMeta::read(self.request.params());
            Declared {
                progress_token: meta
                    .progress_token
                    .and_then(RequestId::from_raw)
                    .map(RequestId::into_owned),
                log_level: meta
                    .log_level
                    .map(|level| LoggingLevel::from(level).into_owned()),
            }
        })
    }

    /// In the stateless era only requests that ask for log messages get them; in the stateful one all get `info` and
    /// above, unless the client has set another level.
    fn wants_log(&self, level: &LoggingLevel<'_>) -> bool {
        let threshold = match self.revision.era() {
            Era::Stateful => {
                let threshold = self.request.core.state().log_threshold;
                threshold.or_else(|| severity(&LoggingLevel::Info))
            }
            Era::Stateless => self.declared().log_level.as_ref().and_then(severity),
        };
        threshold.is_some_and(|threshold| severity(level) >= Some(threshold))
    }

    fn notify<N: Notification>(&self, params: &N::Params<'_>) {
        let mut frame = Vec::new();
        if N::encode_notification(&mut frame, params).is_ok() {
            self.request.sink.send(frame.into(), Purpose::Report);
        }
    }

    fn check_capability(&self, question: &InputRequest<'_>) -> Result<(), Failure> {
        let capabilities = self.client_capabilities();
        let mut needed = ClientCapabilities::new();
        let (offered, what) = match question {
            InputRequest::CreateMessage(_) => {
                needed.sampling = Some(SamplingCapability::new());
                (capabilities.offers_sampling(), "sampling")
            }
            InputRequest::ListRoots(_) => {
                needed.roots = Some(RootsCapability::new());
                (capabilities.offers_roots(), "roots")
            }
            InputRequest::Elicit(_) => {
                needed.elicitation = Some(ElicitationCapability::new());
                (capabilities.offers_elicitation(), "elicitation")
            }
            // The required capability is not known; the client decides.
            InputRequest::Unknown(_) => (true, ""),
        };
        if offered {
            return Ok(());
        }
        let message =
            format!("the server needs client input, but the client does not offer {what}");
        Err(ErrorObject::missing_client_capability(message, &needed).into())
    }

    /// Sends the question as a request of the server (stateful era).
    async fn ask_now(&self, question: &InputRequest<'_>) -> Result<RawObject<'static>, Failure> {
        let (method, params) = match question {
            InputRequest::CreateMessage(question) => (
                Method::SamplingCreateMessage,
                types::encode(&question.params),
            ),
            InputRequest::Elicit(question) => {
                (Method::ElicitationCreate, types::encode(&question.params))
            }
            InputRequest::ListRoots(question) => {
                let none = RequestParams::new();
                let params = question.params.as_ref().unwrap_or(&none);
                (Method::RootsList, types::encode(params))
            }
            InputRequest::Unknown(_) => {
                return Err(internal("cannot send an input request of an unknown kind"));
            }
        };
        if !method.exists_in(self.revision) {
            let revision = self.revision;
            return Err(internal(format!(
                "the server needs client input, but revision {revision} has no {method}"
            )));
        }
        let Request { core, sink, .. } = &*self.request;
        let params = trusted(&params);
        let answer = core.asked.ask(sink, method.name(), params).await?;
        RawObject::try_from(Raw::from(answer)).map_err(|error| unfit(&error))
    }

    /// Finds the answer among those sent with the request; without one, the request fails until the client has answered
    /// (stateless era).
    ///
    /// Answers to earlier questions come back as the request's state. It needs no signature, since it contains only
    /// what the client itself sent.
    fn ask_first(
        &self,
        key: &str,
        question: InputRequest<'static>,
    ) -> Result<RawObject<'static>, Failure> {
        let given = self
            .request
            .params()
            .and_then(|params| types::decode::<InputResponseRequestParams<'_>>(params).ok())
            .unwrap_or_default();
        let mut answers: BTreeMap<String, Box<RawValue>> = match &given.request_state {
            Some(state) => serde_json::from_str(&state.decode())
                .map_err(|_| invalid_params("the requestState was not issued by this server"))?,
            None => BTreeMap::new(),
        };
        for (key, answer) in given.input_responses.iter() {
            let answer = answer.as_raw().to_raw_value();
            answers.insert(
                key.to_owned(),
                answer.map_err(|_| internal("unreadable answer"))?,
            );
        }
        if let Some(answer) = answers.remove(key) {
            return RawObject::try_from(Raw::from(answer)).map_err(|error| unfit(&error));
        }
        let mut result = InputRequiredResult::new();
        result.input_requests.push(key.to_owned(), question);
        if !answers.is_empty() {
            result.request_state = serde_json::to_string(&answers).ok().map(Into::into);
        }
        Err(Failure::InputRequired(Box::new(result)))
    }
}

/// The client's answer does not match its type.
fn unfit(error: &DecodeError) -> Failure {
    internal(format!("invalid answer from the client: {error}"))
}

fn internal(message: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, message).into()
}
