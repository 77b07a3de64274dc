//! One client of a gateway: its requests, forwarded to the servers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::value::RawValue;
use switchboard::internal::caller::{Caller, TASKS_EXTENSION};
use switchboard::service::{
    Changes, Failure, Features, Reply, RequestContext, Service, invalid_params, text_result,
};
use switchboard::{CallRequest, Host, ProgressSink, ServerName, SharedJson};
use switchboard_protocol::meta::DeclaredMeta;
use switchboard_protocol::types::capabilities::{ClientCapabilities, ServerCapabilities};
use switchboard_protocol::types::completion::CompletionReference;
use switchboard_protocol::types::input::{InputRequiredResult, InputResponses};
use switchboard_protocol::types::lifecycle::{Implementation, InitializeRequestParams};
use switchboard_protocol::types::method::{
    CallTool, Complete, GetPrompt, ReadResource, Request as _,
};
use switchboard_protocol::types::result::{ResultType, declared_type};
use switchboard_protocol::types::{self, IntoOwned as _};
use switchboard_protocol::{Era, Method};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::budget::ClientBudget;
use super::metrics::CountedClient;
use super::pass::{
    call_failed, content_failed, finish, finish_cacheable, finish_shared, passed_meta, with_input,
};
use super::relay::Relay;
use super::seal::{NodeId, RequestDigest, State};
use super::search_tools::{self, SearchCall};
use super::waiting::{CallOfServer, Forwarded, MAX_QUESTIONS, RunningCall, Step};
use super::{Core, View, internal};
use crate::handler::{Client, ClientKind};

/// How long the first list of a client waits for servers that are still starting. What comes later is announced.
const STARTUP_PATIENCE: Duration = Duration::from_secs(10);
/// Set in the numbers that several requests share.
const SHARED_OWNER: u64 = 1 << 63;
/// The service of one client.
pub(super) struct GatewaySession {
    pub(super) core: Arc<Core>,
    /// What the client gets.
    pub(super) view: Arc<View>,
    number: u64,
    /// Number under which it has connections of its own.
    owner: u64,
    /// Who the client is. State that leaves for it is not valid for another one.
    pub(super) principal: Arc<str>,
    /// The capabilities of its handshake (stateful era).
    capabilities: OnceLock<Arc<ClientCapabilities<'static>>>,
    /// Counted while it is connected.
    _counted: CountedClient,
    /// The name of its handshake (stateful era).
    name: OnceLock<String>,
    /// Whether it was last offered the search tools in place of the definitions.
    searches: AtomicBool,
    /// The resources it has subscribed to, with the number of subscriptions.
    subscribed: Mutex<HashMap<String, usize>>,
}

/// A repeated request with the client's input (stateless era).
pub(super) struct Repeated<'a> {
    responses: &'a InputResponses<'a>,
    state: Option<Cow<'a, str>>,
}

impl GatewaySession {
    pub(super) fn new(core: Arc<Core>, view: Arc<View>, client: &Client, number: u64) -> Self {
        Self {
            _counted: core.metrics.client(),
            core,
            view,
            number,
            owner: owner(client, number),
            principal: client.principal.to_string().into(),
            capabilities: OnceLock::new(),
            name: OnceLock::new(),
            searches: AtomicBool::new(false),
            subscribed: Mutex::default(),
        }
    }

    pub(super) fn host(&self) -> &Host {
        &self.view.offers.host
    }

    async fn start(&self) {
        self.view.offers.host.start_all().await;
        self.core.has_started.store(true, Ordering::Relaxed);
    }

    /// Starts the servers if no client has done so. A server that is added later starts when one of its tools is called.
    async fn start_once(&self) {
        if !self.core.has_started.load(Ordering::Relaxed) {
            self.start().await;
        }
    }

    /// Waits until servers are up, for a while.
    async fn started(&self) {
        self.start().await;
        let host = &self.view.offers.host;
        let _ = timeout(STARTUP_PATIENCE, host.started()).await;
    }

    fn client_capabilities(&self, context: &RequestContext) -> Arc<ClientCapabilities<'static>> {
        match self.capabilities.get() {
            Some(capabilities) => Arc::clone(capabilities),
            None => Arc::new(context.client_capabilities()),
        }
    }

    /// What the client can take. `declared` is the name in its request (stateless era).
    fn budget(&self, declared: Option<&str>) -> ClientBudget {
        let profile = self.view.offers.profile();
        let of_profile = profile.and_then(|profile| profile.search_budget);
        match of_profile.or(self.core.options.search_budget) {
            Some(tokens) => ClientBudget::of_tokens(tokens),
            None => ClientBudget::of(self.name.get().map(String::as_str).or(declared)),
        }
    }

    /// Makes a request for this client, in a form that can wait for input in either era.
    ///
    /// `make` sends the request on behalf of a caller. `digest` identifies it when it is repeated; it is computed only
    /// for a request that requires input.
    pub(super) async fn request<F>(
        &self,
        context: &Arc<RequestContext>,
        params: Option<&RawValue>,
        digest: impl Fn() -> RequestDigest,
        repeated: Option<Repeated<'_>>,
        make: impl FnOnce(Caller, ProgressSink) -> F,
    ) -> Forwarded
    where
        F: Future<Output = CallOfServer> + Send + 'static,
    {
        let capabilities = self.client_capabilities(context);
        let is_merged = self.core.options.transparent.is_none();
        let is_stateless = context.revision().era() == Era::Stateless;
        let takes_tasks = is_stateless && capabilities.extensions.get(TASKS_EXTENSION).is_some();
        let relay =
            |questions| Relay::new(self.number, context, is_merged, capabilities, questions);
        let caller = |relay: &Arc<Relay>, input: Option<Box<RawValue>>| Caller {
            client: self.number,
            owner: self.owner,
            principal: Arc::clone(&self.principal),
            profile: self.view.offers.profile(),
            handler: Arc::clone(relay) as _,
            meta: passed_meta(params),
            input,
            takes_unfinished: is_stateless,
            takes_tasks,
            task: None,
        };
        if !is_stateless {
            let relay = relay(None);
            let sent = make(caller(&relay, None), relay.progress());
            return relay.scope(sent).await.map(|(_, result)| result);
        }
        let (mut running, mut given) = (None, None);
        if let Some(Repeated { responses, state }) = repeated {
            match self.opened(&digest, state.as_deref())? {
                Some((node, State::Waiting { call })) => {
                    let is_here = self
                        .core
                        .sealer
                        .as_ref()
                        .is_some_and(|sealer| sealer.node() == node);
                    let waiting = self.core.waiting.take(call).filter(|_| is_here);
                    let mut call = waiting.ok_or_else(|| {
                        invalid_params(
                            "the call no longer waits for input; call again without requestState",
                        )
                    })?;
                    call.relay.follow(Some(context));
                    call.answer(responses);
                    running = Some(call);
                }
                // Any node can continue: the server has nothing but this state.
                Some((_, State::Server { state, .. })) => {
                    given = input(responses, state.as_deref());
                }
                None => given = input(responses, None),
            }
        }
        let mut call = running.unwrap_or_else(|| {
            let (questions, asked) = mpsc::channel(MAX_QUESTIONS);
            let relay = relay(Some(questions));
            let sent = make(caller(&relay, given), relay.progress());
            RunningCall::begin(Arc::clone(&relay), relay.scope(sent), asked)
        });
        match call.step().await {
            Step::Done(done) => {
                let (server, result) = done?;
                if declared_type(result.raw()) != Some(ResultType::InputRequired) {
                    return Ok(result);
                }
                self.unfinished(&digest(), &server, &result)
            }
            Step::Asks(asked) => {
                let (key, question) = *asked;
                call.relay.follow(None);
                let waiting = self.core.waiting.keep(call);
                let number = waiting.ok_or_else(|| internal("too many calls wait for input"))?;
                let mut result = InputRequiredResult::new();
                result.input_requests.push(key, question);
                let state = State::Waiting { call: number };
                result.request_state = self.seal(&digest(), state).map(Into::into);
                Err(Failure::InputRequired(Box::new(result)))
            }
        }
    }

    fn seal(&self, digest: &RequestDigest, state: State) -> Option<String> {
        let sealer = self.core.sealer.as_ref()?;
        sealer.seal(&self.principal, digest, state)
    }

    /// Replaces the state of a result that requires input with a sealed one.
    fn unfinished(
        &self,
        digest: &RequestDigest,
        server: &ServerName,
        result: &SharedJson,
    ) -> Forwarded {
        let unfinished: Result<InputRequiredResult<'_>, _> = types::decode(result.raw());
        let Ok(mut unfinished) = unfinished else {
            return Err(internal("the server's request for input cannot be read"));
        };
        let state = State::Server {
            server: server.to_string(),
            state: unfinished
                .request_state
                .take()
                .map(|state| state.decode().into_owned()),
        };
        let sealed = self
            .seal(digest, state)
            .ok_or_else(|| internal("cannot seal the state of the request"))?;
        unfinished.request_state = Some(sealed.into());
        Ok(SharedJson::trusted(types::encode(&unfinished)))
    }

    /// The state that the client brings back; `None` if it brings none.
    fn opened(
        &self,
        digest: impl Fn() -> RequestDigest,
        state: Option<&str>,
    ) -> Result<Option<(NodeId, State)>, Failure> {
        let Some(state) = state else {
            return Ok(None);
        };
        let sealer = self.core.sealer.as_ref();
        let opened = sealer.and_then(|sealer| sealer.open(&self.principal, &digest(), state));
        let unfit = || {
            invalid_params(
                "the requestState is not valid for this client and request, or has expired",
            )
        };
        opened.ok_or_else(unfit).map(Some)
    }

    async fn call_tool(
        &self,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let call = CallTool::decode_params(params)?;
        let offers = &self.view.offers;
        let mut name = call.name.to_string();
        let mut arguments = call
            .arguments
            .as_ref()
            .and_then(|object| object.as_raw().to_raw_value().ok());
        if self.core.options.search.may_be_on(offers)
            && let Some(meant) = search_tools::handle(&call, offers)?
        {
            match meant {
                SearchCall::Text(text) => {
                    return Ok(finish(types::encode(&text_result(text)), context));
                }
                SearchCall::Call {
                    name: inner,
                    arguments: own,
                } => {
                    name = inner;
                    arguments = own;
                }
            }
        }
        self.start_once().await;
        let tool = offers.host_name(&name).into_owned();
        let digest = || RequestDigest::of("tools/call", &tool, arguments.as_deref());
        let repeated = repeated(
            &call.input_responses,
            call.request_state.as_ref().map(|state| state.decode()),
        );
        let (host, request_tool, request_arguments) =
            (offers.host.clone(), tool.clone(), arguments.clone());
        // Servers of the stateless era decide by themselves whether a call becomes a task.
        let task = call.task.as_ref().map(types::encode);
        let task = task.filter(|_| context.revision().era() == Era::Stateful);
        let task = task.and_then(|task| RawValue::from_string(task).ok());
        let core = Arc::clone(&self.core);
        let make = move |mut caller: Caller, progress: ProgressSink| async move {
            caller.task = task;
            let principal = Arc::clone(&caller.principal);
            let may_be_task = caller.takes_tasks || caller.task.is_some();
            let request = CallRequest {
                tool: request_tool,
                arguments: request_arguments,
                progress: Some(progress),
                caller: Some(Arc::new(caller)),
                ..CallRequest::default()
            };
            let started = Instant::now();
            let outcome = host.request(request).await;
            core.metrics.call(&outcome, started.elapsed());
            match outcome {
                Ok(outcome) => {
                    let server = outcome.tool.server.clone();
                    let server = server.unwrap_or_else(|| "".into());
                    let mut result = outcome.result;
                    if may_be_task {
                        result = core.created_task(&principal, &server, result);
                    }
                    Ok((server, result))
                }
                Err(error) => call_failed(&error).map(|result| ("".into(), result)),
            }
        };
        let result = self
            .request(context, params, digest, repeated, make)
            .await?;
        Ok(finish_shared(result, context))
    }

    async fn read_resource(
        &self,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let mut read = ReadResource::decode_params(params)?.into_owned();
        let exposed = read.uri.to_string();
        let (servers, uri) = self.view.offers.find_resource(&exposed).await;
        read.uri = uri.into();
        read.meta = None;
        let (responses, state) = (
            std::mem::take(&mut read.input_responses),
            read.request_state.take(),
        );
        let repeated = repeated(&responses, state.as_ref().map(|state| state.decode()));
        let digest = || RequestDigest::of("resources/read", &exposed, None);
        let missing = context.resource_not_found(&exposed);
        let host = self.view.offers.host.clone();
        let wants_progress = context.wants_progress();
        let make = move |caller: Caller, progress: ProgressSink| async move {
            let caller = Arc::new(caller);
            let progress = Some(progress).filter(|_| wants_progress);
            let mut last = missing;
            for server in servers {
                let params = with_input(types::encode(&read), caller.input.as_deref());
                let (caller, progress) = (Arc::clone(&caller), progress.clone());
                let method = Method::ResourcesRead;
                match host
                    .forward(&server, method, params, caller, progress)
                    .await
                {
                    Ok(result) => return Ok((server, result)),
                    Err(error) => last = content_failed(&error),
                }
            }
            Err(last)
        };
        let result = self
            .request(context, params, digest, repeated, make)
            .await?;
        Ok(finish_cacheable(result, context))
    }

    async fn get_prompt(
        &self,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let mut get = GetPrompt::decode_params(params)?.into_owned();
        let exposed = get.name.to_string();
        let found = self.view.offers.find_prompt(&exposed).await;
        let (server, name) =
            found.ok_or_else(|| invalid_params(format!("unknown prompt: {exposed}")))?;
        get.name = name.into();
        get.meta = None;
        let (responses, state) = (
            std::mem::take(&mut get.input_responses),
            get.request_state.take(),
        );
        let repeated = repeated(&responses, state.as_ref().map(|state| state.decode()));
        let digest = || RequestDigest::of("prompts/get", &exposed, None);
        let host = self.view.offers.host.clone();
        let wants_progress = context.wants_progress();
        let make = move |caller: Caller, progress: ProgressSink| async move {
            let params = with_input(types::encode(&get), caller.input.as_deref());
            let progress = Some(progress).filter(|_| wants_progress);
            let (method, caller) = (Method::PromptsGet, Arc::new(caller));
            let forwarded = host
                .forward(&server, method, params, caller, progress)
                .await;
            forwarded
                .map(|result| (server, result))
                .map_err(|error| content_failed(&error))
        };
        let result = self
            .request(context, params, digest, repeated, make)
            .await?;
        Ok(finish_shared(result, context))
    }

    async fn complete(
        &self,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let mut typed = Complete::decode_params(params)?.into_owned();
        typed.meta = None;
        let offers = &self.view.offers;
        let server = match &mut typed.reference {
            CompletionReference::Prompt(prompt) => {
                let found = offers.find_prompt(&prompt.name).await;
                found.map(|(server, name)| {
                    prompt.name = name.into();
                    server
                })
            }
            CompletionReference::Resource(resource) => {
                let (servers, uri) = offers.find_resource(&resource.uri).await;
                resource.uri = uri.into();
                servers.into_iter().next()
            }
            CompletionReference::Unknown(_) => None,
        };
        let server = server.ok_or_else(|| invalid_params("unknown prompt or resource template"))?;
        let host = offers.host.clone();
        let make = move |caller: Caller, _: ProgressSink| async move {
            let params = types::encode(&typed);
            let (method, caller) = (Method::Complete, Arc::new(caller));
            let forwarded = host.forward(&server, method, params, caller, None).await;
            forwarded
                .map(|result| (server, result))
                .map_err(|error| content_failed(&error))
        };
        let digest = || RequestDigest::of("completion/complete", "", None);
        let result = self.request(context, params, digest, None, make).await?;
        Ok(finish_shared(result, context))
    }

    async fn list(
        &self,
        method: Method,
        params: Option<&RawValue>,
        context: &RequestContext,
    ) -> Forwarded {
        self.started().await;
        let offers = &self.view.offers;
        let is_stateless = context.revision().era() == Era::Stateless;
        let (member, items, lifetime) = match method {
            Method::ToolsList => {
                let declared = DeclaredMeta::read(params).client_info;
                let declared = declared
                    .and_then(|info| types::decode::<Implementation<'_>>(info).ok())
                    .map(|info| info.name.into_owned());
                let budget = self.budget(declared.as_deref());
                let searches = self.core.options.search.is_on(offers, budget);
                self.searches.store(searches, Ordering::Relaxed);
                let items = if searches {
                    search_tools::definitions().into()
                } else {
                    offers.tools()
                };
                let lifetime = if is_stateless {
                    offers.tools_lifetime().await
                } else {
                    Duration::ZERO
                };
                ("tools", items, lifetime)
            }
            Method::PromptsList => {
                let list = offers.prompts().await;
                ("prompts", list.items.into(), list.lifetime)
            }
            Method::ResourcesList => {
                let list = offers.resources().await;
                ("resources", list.items.into(), list.lifetime)
            }
            _ => {
                let list = offers.templates().await;
                ("resourceTemplates", list.items.into(), list.lifetime)
            }
        };
        let mut text = format!("{{\"{member}\":{items}");
        if is_stateless {
            let lifetime = lifetime.as_millis();
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                ",\"resultType\":\"complete\",\"ttlMs\":{lifetime},\"cacheScope\":\"private\""
            );
        }
        text.push('}');
        Ok(SharedJson::trusted(text))
    }

    /// Changes the number of this client's subscriptions to a resource, and subscribes at its server if need be.
    fn subscribe(&self, uri: &str, is_wanted: bool) {
        {
            let mut subscribed = self
                .subscribed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let count = subscribed.entry(uri.to_owned()).or_default();
            let before = *count;
            *count = if is_wanted {
                before + 1
            } else {
                before.saturating_sub(1)
            };
            if *count == 0 {
                subscribed.remove(uri);
            }
            if is_wanted == (before > 0) {
                return;
            }
        }
        let (view, uri) = (Arc::clone(&self.view), uri.to_owned());
        tokio::spawn(async move {
            let (servers, own) = view.offers.find_resource(&uri).await;
            let host = &view.offers.host;
            if let Some(server) = servers.first() {
                if is_wanted {
                    host.subscribe(server, &own).await;
                } else {
                    host.unsubscribe(server, &own).await;
                }
            }
        });
    }
}

impl Service for GatewaySession {
    fn identity(&self) -> Implementation<'static> {
        let host = &self.view.offers.host;
        let own = || {
            let mut identity = Implementation::new("switchboard".into());
            identity.version = Some(env!("CARGO_PKG_VERSION").into());
            identity
        };
        match &self.core.options.transparent {
            Some(server) => host.identity(server).unwrap_or_else(own),
            None => own(),
        }
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            prompts: true,
            resources: true,
            completions: true,
            logging: true,
        }
    }

    fn capabilities(&self, era: Era) -> Option<ServerCapabilities<'static>> {
        self.core.capabilities(&self.view.offers, era)
    }

    fn instructions(&self) -> Option<Cow<'static, str>> {
        self.view.offers.instructions().map(Cow::Owned)
    }

    fn changes(&self) -> Option<&Changes> {
        Some(&self.view.changes)
    }

    fn announces_tools(&self) -> bool {
        // The search tools never change.
        let still = || {
            let search = self.core.options.search;
            search.is_on(&self.view.offers, self.budget(None))
        };
        !(self.searches.load(Ordering::Relaxed) && still())
    }

    fn greet(
        &self,
        client: &ClientCapabilities<'_>,
        hello: Option<&InitializeRequestParams<'_>>,
    ) -> Option<BoxFuture<'_, ()>> {
        let capabilities = client.clone().into_owned();
        if self.core.options.single_client {
            self.core.questions.mirror(&capabilities);
        }
        if let Some(hello) = hello {
            // Only the first handshake of a session counts.
            let _ = self.capabilities.set(Arc::new(capabilities));
            let _ = self.name.set(hello.client_info.name.to_string());
        }
        Some(
            async {
                self.start().await;
                if let Some(server) = &self.core.options.transparent {
                    // Without it, there is nothing to say about the server.
                    let _ = self.view.offers.host.connect(server).await;
                }
            }
            .boxed(),
        )
    }

    fn forward<'a>(
        &'a self,
        method: Method,
        params: Option<&'a RawValue>,
        context: &'a Arc<RequestContext>,
    ) -> Option<Reply<'a, SharedJson>> {
        let options = &self.core.options;
        if let (true, Some(server)) = (options.direct, &options.transparent)
            && is_passed(method)
        {
            return Some(Box::pin(
                self.forward_directly(server, method, params, context),
            ));
        }
        Some(match method {
            Method::ToolsCall => Box::pin(self.call_tool(params, context)),
            Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourceTemplatesList => Box::pin(self.list(method, params, context)),
            Method::ResourcesRead => Box::pin(self.read_resource(params, context)),
            Method::PromptsGet => Box::pin(self.get_prompt(params, context)),
            Method::Complete => Box::pin(self.complete(params, context)),
            _ => return None,
        })
    }

    fn forward_other<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
        context: &'a Arc<RequestContext>,
    ) -> Option<Reply<'a, SharedJson>> {
        match Method::from_name(method) {
            Some(
                Method::TasksGet | Method::TasksUpdate | Method::TasksCancel | Method::TasksResult,
            ) => Some(Box::pin(self.task_request(method, params, context))),
            Some(Method::TasksList) if self.core.has_raw_tasks() => {
                Some(Box::pin(self.pass_other(method, params, context)))
            }
            Some(_) => None,
            None => Some(Box::pin(self.pass_other(method, params, context))),
        }
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        // Only a server by itself is known to be meant.
        if let Some(server) = &self.core.options.transparent {
            self.core.notify(vec![server.clone()], method, params);
        }
    }

    fn roots_changed(&self) {
        // Servers that several clients use ask for the roots of the client while they work on its call.
        if self.core.options.single_client {
            let servers = self.view.offers.servers();
            let method = Method::RootsListChanged.name();
            self.core.notify(servers, method, None);
        }
    }

    fn subscribed(&self, uris: &[&str], is_wanted: bool) {
        for uri in uris {
            self.subscribe(uri, is_wanted);
        }
    }
}

/// Subscriptions end with their client.
/// Whether requests with this method go to servers.
fn is_passed(method: Method) -> bool {
    matches!(
        method,
        Method::ToolsCall
            | Method::ToolsList
            | Method::PromptsList
            | Method::PromptsGet
            | Method::ResourcesList
            | Method::ResourceTemplatesList
            | Method::ResourcesRead
            | Method::Complete
    )
}

/// The number under which a client has connections of its own. Requests over HTTP that belong to no session share those
/// of their principal.
fn owner(client: &Client, number: u64) -> u64 {
    if client.kind != ClientKind::Request {
        return number;
    }
    let mut hasher = DefaultHasher::new();
    client.principal.hash(&mut hasher);
    hasher.finish() | SHARED_OWNER
}

impl Drop for GatewaySession {
    fn drop(&mut self) {
        if self.owner == self.number {
            self.view.offers.host.end_client(self.owner);
        }
        let subscribed = std::mem::take(
            &mut *self
                .subscribed
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if subscribed.is_empty() {
            return;
        }
        let view = Arc::clone(&self.view);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for uri in subscribed.into_keys() {
                    let (servers, own) = view.offers.find_resource(&uri).await;
                    if let Some(server) = servers.first() {
                        view.offers.host.unsubscribe(server, &own).await;
                    }
                }
            });
        }
    }
}

pub(super) fn repeated<'a>(
    responses: &'a InputResponses<'a>,
    state: Option<Cow<'a, str>>,
) -> Option<Repeated<'a>> {
    (responses.is_present() || state.is_some()).then_some(Repeated { responses, state })
}

/// The members that repeat a request at the server.
fn input(responses: &InputResponses<'_>, state: Option<&str>) -> Option<Box<RawValue>> {
    let mut text = String::from("{\"inputResponses\":");
    text.push_str(&types::encode(responses));
    if let Some(state) = state {
        text.push_str(",\"requestState\":");
        text.push_str(&serde_json::to_string(state).ok()?);
    }
    text.push('}');
    RawValue::from_string(text).ok()
}
