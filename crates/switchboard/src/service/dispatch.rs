//! Dispatches one request: opening, method of the service, additions of the era to the result.
//!
//! Owns the rules for serving both eras that `switchboard_protocol::serve` does not cover.

use std::sync::Arc;

use switchboard_protocol::method::Sender;
use switchboard_protocol::serve::Opened;
use switchboard_protocol::types::cache::CacheScope;
use switchboard_protocol::types::capabilities::{
    ListCapability, ResourcesCapability, ServerCapabilities,
};
use switchboard_protocol::types::completion::{CompleteResult, Completion};
use switchboard_protocol::types::input::InputRequiredResult;
use switchboard_protocol::types::lifecycle::{DiscoverResult, EmptyResult, InitializeResult};
use switchboard_protocol::types::logging::LoggingLevel;
use switchboard_protocol::types::method::{
    CallTool, Complete, GetPrompt, Initialize, ListResources, Listen, Notification, ReadResource,
    Request as _, SetLevel, SubscribeResource, SubscriptionsAcknowledged, UnsubscribeResource,
};
use switchboard_protocol::types::prompt::{GetPromptResult, ListPromptsResult};
use switchboard_protocol::types::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
};
use switchboard_protocol::types::subscription::{
    SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
};
use switchboard_protocol::types::tool::{CallToolResult, ListToolsResult};
use switchboard_protocol::types::{
    self, DecodeError, Encode, IntoOwned, Raw, RawObject, ResultType,
};
use switchboard_protocol::{Era, ErrorCode, ErrorObject, Method, Revision, meta};

use super::conversation::{Request, Settled};
use super::frame::MethodName;
use super::subscriptions::{MAX_URIS, subscription_meta};
use super::{Failure, Purpose, RequestContext, Service};
use crate::json::SharedJson;

/// Cache lifetime of lists whose changes are announced, in milliseconds.
const LIST_LIFETIME: u64 = 300_000;

/// Maximum number of values in a completion.
const MAX_PROPOSALS: usize = 100;

pub(super) fn method_not_found(method: &str) -> ErrorObject<'static> {
    ErrorObject::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("method not found: {method}"),
    )
}

/// Returns the encoded result of a request; `None` if there is nothing to answer.
pub(super) async fn answer(
    request: &Arc<Request>,
) -> Result<Option<SharedJson>, ErrorObject<'static>> {
    let revision = match request.opened {
        Opened::Handshake(revision) => {
            let result = initialize(request, revision).await?;
            return Ok(Some(SharedJson::trusted(result)));
        }
        // Only a ping opens without a revision.
        Opened::Stateful(revision) => revision.unwrap_or(Revision::LATEST_STATEFUL),
        Opened::Stateless(revision) => revision,
    };
    let service = &*request.core.service;
    let context = Arc::new(RequestContext::new(Arc::clone(request), revision));
    let params = request.params();
    let result = match &request.method {
        MethodName::Known(method) if is_served(*method, revision, service) => {
            match service.forward(*method, params, &context) {
                Some(answering) => answering.await.map(Some),
                None => call(service, *method, &context)
                    .await
                    .map(|result| result.map(SharedJson::trusted)),
            }
        }
        other => {
            // Methods of the other era, and those that only servers send, are never passed on.
            let may_pass = match other {
                MethodName::Known(method) => {
                    method.exists_in(revision) && method.sender() != Sender::Server
                }
                MethodName::Unknown(_) => true,
            };
            let answering = service.forward_other(other.as_str(), params, &context);
            let answering = answering.filter(|_| may_pass);
            let answering = answering.ok_or_else(|| method_not_found(other.as_str()))?;
            answering.await.map(Some)
        }
    };
    match result {
        Ok(result) => Ok(result),
        Err(Failure::Error(error)) => Err(error),
        Err(Failure::InputRequired(result)) => {
            let result = input_required(&context, *result)?;
            Ok(Some(SharedJson::trusted(result)))
        }
    }
}

/// Calls the service method for the request.
async fn call(
    service: &dyn Service,
    method: Method,
    context: &RequestContext,
) -> Result<Option<String>, Failure> {
    let request = context.request();
    let params = request.params();
    let result = match method {
        Method::Discover => {
            let client = context.client_capabilities();
            if let Some(greeting) = service.greet(&client, None) {
                greeting.await;
            }
            context.finish(discover(service))
        }
        Method::ToolsList => context.finish(ListToolsResult::new(service.tools().into())),
        Method::ToolsCall => {
            let call = CallTool::decode_params(params)?;
            let mut result = service.call_tool(call, context).await?;
            if !result.content.is_present() {
                // `content` is required by every revision, even if the result is only structured.
                result.content = Vec::new().into();
            }
            context.finish(result)
        }
        Method::PromptsList => context.finish(ListPromptsResult::new(service.prompts().into())),
        Method::PromptsGet => {
            let get = GetPrompt::decode_params(params)?;
            context.finish(service.get_prompt(get, context).await?)
        }
        Method::ResourcesList => {
            let page = ListResources::decode_params(params)?;
            context.finish(service.resources(page.cursor.as_deref(), context).await?)
        }
        Method::ResourceTemplatesList => context.finish(ListResourceTemplatesResult::new(
            service.resource_templates().into(),
        )),
        Method::ResourcesRead => {
            let read = ReadResource::decode_params(params)?;
            context.finish(service.read_resource(read, context).await?)
        }
        Method::Complete => {
            let typed = Complete::decode_params(params)?;
            let completion = service.complete(typed, context).await?;
            context.finish(CompleteResult::new(within_limit(completion)))
        }
        Method::ResourcesSubscribe => {
            let wanted = SubscribeResource::decode_params(params)?;
            let subscribed = request.core.state().subscriptions.subscribe(&wanted.uri);
            if subscribed {
                service.subscribed(&[&wanted.uri], true);
            }
            if !subscribed {
                return Err(super::invalid_params(format!(
                    "more than {MAX_URIS} resources are subscribed to; unsubscribe from some"
                )));
            }
            context.finish(EmptyResult::new())
        }
        Method::ResourcesUnsubscribe => {
            let unwanted = UnsubscribeResource::decode_params(params)?;
            request
                .core
                .state()
                .subscriptions
                .unsubscribe(&unwanted.uri);
            service.subscribed(&[&unwanted.uri], false);
            context.finish(EmptyResult::new())
        }
        Method::SetLogLevel => {
            let wanted = SetLevel::decode_params(params)?;
            let threshold = severity(&wanted.level).ok_or_else(|| {
                super::invalid_params(format!("unknown log level: {}", wanted.level.as_str()))
            })?;
            request.core.state().log_threshold = Some(threshold);
            context.finish(EmptyResult::new())
        }
        Method::SubscriptionsListen => {
            let wanted = Listen::decode_params(params)?;
            return listen(service, request, wanted.notifications).await;
        }
        // `is_served` lets nothing else through but a ping.
        _ => context.finish(EmptyResult::new()),
    };
    Ok(Some(result))
}

/// Whether the revision has the method, clients may send it, and the service has the feature.
fn is_served(method: Method, revision: Revision, service: &dyn Service) -> bool {
    if !method.exists_in(revision) || method.sender() == Sender::Server || method.is_notification()
    {
        return false;
    }
    match method {
        Method::Ping | Method::Discover | Method::SubscriptionsListen => true,
        Method::ToolsList | Method::ToolsCall => service.features().tools,
        Method::PromptsList | Method::PromptsGet => service.features().prompts,
        Method::ResourcesList | Method::ResourceTemplatesList | Method::ResourcesRead => {
            service.features().resources
        }
        Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
            service.features().resources && service.changes().is_some()
        }
        Method::Complete => service.features().completions,
        Method::SetLogLevel => service.features().logging,
        _ => false,
    }
}

async fn initialize(request: &Request, revision: Revision) -> Result<String, ErrorObject<'static>> {
    let hello = Initialize::decode_params(request.params()).map_err(|error| misfit(&error))?;
    let greeting = request
        .core
        .service
        .greet(&hello.capabilities, Some(&hello));
    if let Some(greeting) = greeting {
        greeting.await;
    }
    request.core.follow_changes();
    request.core.state().settled = Some(Settled {
        revision,
        capabilities: Arc::new(hello.capabilities.into_owned()),
    });
    let service = &*request.core.service;
    let mut result = InitializeResult::new(revision.as_str().into());
    result.capabilities = Some(capabilities(service, Era::Stateful));
    result.server_info = Some(service.identity());
    result.instructions = service.instructions().map(Into::into);
    Ok(types::encode(&result))
}

fn discover(service: &dyn Service) -> DiscoverResult<'static> {
    let versions = Revision::ALL.map(|revision| revision.as_str().into());
    let mut result = DiscoverResult::new(Vec::from(versions).into());
    result.capabilities = Some(capabilities(service, Era::Stateless));
    result.instructions = service.instructions().map(Into::into);
    result
}

fn capabilities(service: &dyn Service, era: Era) -> ServerCapabilities<'static> {
    if let Some(capabilities) = service.capabilities(era) {
        return capabilities;
    }
    let features = service.features();
    let changes = service.changes().is_some().then_some(true);
    let list = || ListCapability {
        list_changed: changes,
        ..ListCapability::new()
    };
    let on = || Raw::from(RawObject::default());
    let mut capabilities = ServerCapabilities::new();
    capabilities.tools = features.tools.then(list);
    capabilities.prompts = features.prompts.then(list);
    capabilities.resources = features.resources.then(|| ResourcesCapability {
        subscribe: changes,
        list_changed: changes,
        ..ResourcesCapability::new()
    });
    capabilities.completions = features.completions.then(on);
    capabilities.logging = features.logging.then(on);
    capabilities
}

/// Acknowledges a subscription and holds it open until it is cancelled.
async fn listen(
    service: &dyn Service,
    request: &Request,
    mut wanted: SubscriptionFilter<'_>,
) -> Result<Option<String>, Failure> {
    let features = service.features();
    let changes = service.changes().is_some();
    let honour = |wanted: &mut Option<bool>, offered: bool| {
        *wanted = wanted.filter(|_| offered && changes);
    };
    honour(&mut wanted.tools_list_changed, features.tools);
    honour(&mut wanted.prompts_list_changed, features.prompts);
    honour(&mut wanted.resources_list_changed, features.resources);
    if !features.resources || !changes {
        wanted.resource_subscriptions.clear();
    }
    let mut listening = Listening {
        request,
        uris: Vec::new(),
    };
    request.core.follow_changes();
    let honoured = request.core.state().subscriptions.listen(
        request.id.clone(),
        &wanted,
        Arc::clone(&request.sink),
    );
    drop(wanted);
    let uris = honoured.resource_subscriptions.iter();
    listening.uris = uris.map(ToString::to_string).collect();
    listening.tell(true);
    let mut params = SubscriptionsAcknowledgedNotificationParams::new(honoured);
    params.meta = Some(subscription_meta(&request.id));
    let mut frame = Vec::new();
    SubscriptionsAcknowledged::encode_notification(&mut frame, &params)
        .map_err(|_| ErrorObject::new(ErrorCode::INTERNAL_ERROR, "cannot acknowledge"))?;
    drop(params);
    request.sink.send(frame.into(), Purpose::Message);
    let held = request.core.state().subscriptions.acknowledged(&request.id);
    for (sink, frame) in held {
        sink.send(frame, Purpose::Change);
    }
    std::future::pending::<()>().await;
    drop(listening);
    Ok(None)
}

/// Removes a subscription when it is cancelled.
struct Listening<'r> {
    request: &'r Request,
    /// The resources that it subscribes to.
    uris: Vec<String>,
}

impl Listening<'_> {
    fn tell(&self, is_wanted: bool) {
        if !self.uris.is_empty() {
            let uris: Vec<&str> = self.uris.iter().map(String::as_str).collect();
            self.request.core.service.subscribed(&uris, is_wanted);
        }
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let Request { core, id, .. } = self.request;
        core.state().subscriptions.end(id);
        self.tell(false);
    }
}

fn input_required(
    context: &RequestContext,
    mut result: InputRequiredResult<'static>,
) -> Result<String, ErrorObject<'static>> {
    let may_ask = context.revision().era() == Era::Stateless
        && match &context.request().method {
            MethodName::Known(method) => method.may_require_input(),
            MethodName::Unknown(_) => true,
        };
    if !may_ask {
        return Err(ErrorObject::new(
            ErrorCode::INTERNAL_ERROR,
            "the protocol does not allow input requests for this method",
        ));
    }
    add_server_info(&mut result.meta, context.request().core.server_meta());
    Ok(types::encode(&result))
}

/// Index of a level, the least severe first; `None` for an unknown level.
pub(super) fn severity(level: &LoggingLevel<'_>) -> Option<usize> {
    LoggingLevel::VALUES
        .iter()
        .position(|known| *known == level.as_str())
}

fn within_limit(mut completion: Completion<'static>) -> Completion<'static> {
    let count = completion.values.len();
    if count > MAX_PROPOSALS {
        completion.values.truncate(MAX_PROPOSALS);
        completion
            .total
            .get_or_insert_with(|| (count as u64).into());
        completion.has_more = Some(true);
    }
    completion
}

/// Invalid parameters.
impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        misfit(&error).into()
    }
}

fn misfit(error: &DecodeError) -> ErrorObject<'static> {
    ErrorObject::new(
        ErrorCode::INVALID_PARAMS,
        format!("invalid params: {error}"),
    )
}

/// A result that the era of the request adds members to or removes them from.
trait Finish: Encode {
    /// Adds the members that the stateless era requires.
    fn finish_stateless(&mut self, server: &RawObject<'static>);

    /// Removes the members that the stateful era does not have.
    fn finish_stateful(&mut self);
}

impl RequestContext {
    fn finish<T: Finish>(&self, mut result: T) -> String {
        match self.revision().era() {
            Era::Stateless => result.finish_stateless(self.request().core.server_meta()),
            Era::Stateful => result.finish_stateful(),
        }
        types::encode(&result)
    }
}

macro_rules! finish {
    ($($name:ident $(cached for $lifetime:expr)?;)*) => {
        $(impl Finish for $name<'static> {
            fn finish_stateless(&mut self, server: &RawObject<'static>) {
                self.result_type = Some(ResultType::Complete);
                $(
                    self.ttl_ms.get_or_insert_with(|| u64::into($lifetime));
                    self.cache_scope.get_or_insert(CacheScope::Private);
                )?
                add_server_info(&mut self.meta, server);
            }

            fn finish_stateful(&mut self) {
                self.result_type = None;
                $(
                    // Mentions `$lifetime`, so that this repetition exists only for types with one.
                    let _: u64 = $lifetime;
                    self.ttl_ms = None;
                    self.cache_scope = None;
                )?
            }
        })*
    };
}

finish! {
    CallToolResult;
    CompleteResult;
    DiscoverResult cached for LIST_LIFETIME;
    EmptyResult;
    GetPromptResult;
    ListPromptsResult cached for LIST_LIFETIME;
    ListResourceTemplatesResult cached for LIST_LIFETIME;
    // Resources are data: unless the service sets a lifetime, they are stale at once.
    ListResourcesResult cached for 0;
    ListToolsResult cached for LIST_LIFETIME;
    ReadResourceResult cached for 0;
}

fn add_server_info(meta: &mut Option<RawObject<'static>>, server: &RawObject<'static>) {
    let Some(present) = meta else {
        *meta = Some(server.clone());
        return;
    };
    if present.field(meta::SERVER_INFO).is_some() {
        return;
    }
    let parts = (
        server.get().strip_suffix('}'),
        present.get().strip_prefix('{').map(str::trim_start),
    );
    let (Some(ours), Some(theirs)) = parts else {
        return;
    };
    let separator = if theirs == "}" { "" } else { "," };
    let joined = format!("{ours}{separator}{theirs}");
    if let Ok(joined) = Raw::parse(&joined)
        && let Ok(joined) = RawObject::try_from(joined.into_owned())
    {
        *present = joined;
    }
}
