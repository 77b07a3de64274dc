//! What the gateway passes on without knowing it: methods of extensions, and of tasks.
//!
//! In transparent mode the server is clear. With several servers, a request of an unknown method goes to the server whose
//! tool, prompt or resource it names; a task belongs to the server that created it.

use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard::internal::caller::{Caller, TASKS_EXTENSION};
use switchboard::service::{Failure, RequestContext, invalid_params};
use switchboard::{ProgressSink, ServerName, SharedJson};
use switchboard_protocol::types::capabilities::{
    ListCapability, ResourcesCapability, ServerCapabilities, TasksCapability,
};
use switchboard_protocol::types::input::InputResponseRequestParams;
use switchboard_protocol::types::task::TaskRequestParams;
use switchboard_protocol::types::{self, Raw, RawObject};
use switchboard_protocol::{Era, ErrorCode, ErrorObject};

use super::Core;
use super::offers::Offers;
use super::pass::{finish_shared, own_params, with_input};
use super::seal::RequestDigest;
use super::session::{GatewaySession, repeated};
use super::tasks::with_task_id;
use super::waiting::Forwarded;

impl GatewaySession {
    /// Passes on a request about a task to the server that created it.
    pub(super) async fn task_request(
        &self,
        method: &str,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let unknown = || invalid_params("unknown task");
        let wanted = params.ok_or_else(unknown)?;
        let wanted: TaskRequestParams<'_> = types::decode(wanted)?;
        let exposed = wanted.task_id.to_string();
        let found = self.core.find_task(&self.principal, &exposed);
        let found = found.filter(|(server, _)| self.view.offers.has_server(server));
        let (server, id) = found.ok_or_else(unknown)?;
        let own = params.and_then(|params| {
            RawValue::from_string(with_task_id(params.get(), &exposed, &id)).ok()
        });
        let answered = self
            .send_other(&server, method, own.as_deref(), context)
            .await?;
        let answered = with_task_id(answered.as_str(), &id, &exposed);
        Ok(finish_shared(SharedJson::trusted(answered), context))
    }

    /// Passes on a request whose method is not known here.
    pub(super) async fn pass_other(
        &self,
        method: &str,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let target = match &self.core.options.transparent {
            Some(server) => Some((server.clone(), None)),
            None => self.target(params).await,
        };
        let Some((server, renamed)) = target else {
            let message = format!("method not found: {method}");
            return Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message).into());
        };
        let params = renamed.as_deref().or(params);
        let result = self.send_other(&server, method, params, context).await?;
        Ok(finish_shared(result, context))
    }

    /// The server whose tool, prompt or resource the params name, and the params with its own name for that.
    async fn target(
        &self,
        params: Option<&RawValue>,
    ) -> Option<(ServerName, Option<Box<RawValue>>)> {
        #[derive(serde::Deserialize)]
        struct Named {
            name: Option<String>,
            uri: Option<String>,
        }
        let params = params?;
        let offers = &self.view.offers;
        let named: Named = serde_json::from_str(params.get()).ok()?;
        let (server, member, own) = if let Some(name) = named.name {
            let catalog = offers.host.catalog();
            let tool = catalog.find(&offers.host_name(&name)).ok();
            let tool = tool.filter(|tool| offers.has_tool(tool)).map(|tool| {
                let reference = tool.reference();
                (reference.server.clone(), reference.tool.to_string())
            });
            let found = match tool {
                Some(tool) => Some(tool),
                None => offers.find_prompt(&name).await,
            };
            let (server, own) = found?;
            (server, "name", own)
        } else {
            let uri = named.uri?;
            let (servers, own) = offers.find_resource(&uri).await;
            (servers.into_iter().next()?, "uri", own)
        };
        Some((server, super::pass::with_member(params, member, &own)))
    }

    async fn send_other(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawValue>,
        context: &Arc<RequestContext>,
    ) -> Forwarded {
        let given: InputResponseRequestParams<'_> = params
            .and_then(|params| types::decode(params).ok())
            .unwrap_or_default();
        // `tasks/update` has input of its own, which belongs to the server.
        let is_update = method == switchboard_protocol::Method::TasksUpdate.name();
        let state = given.request_state.as_ref().map(|state| state.decode());
        let repeated = repeated(&given.input_responses, state).filter(|_| !is_update);
        let own = if is_update {
            super::pass::without_meta(params)
        } else {
            own_params(params)
        };
        let raw = own.as_deref().and_then(switchboard_protocol::trusted);
        let digest = || RequestDigest::of(method, server.as_str(), raw);
        let host = self.view.offers.host.clone();
        let (server, method, sent) = (server.clone(), method.to_owned(), own.clone());
        let wants_progress = context.wants_progress();
        let make = move |caller: Caller, progress: ProgressSink| async move {
            let sent = match (sent, caller.input.as_deref()) {
                (None, None) => None,
                (sent, input) => Some(with_input(sent.unwrap_or_else(|| "{}".to_owned()), input)),
            };
            let sent = sent.as_deref().and_then(switchboard_protocol::trusted);
            let progress = Some(progress).filter(|_| wants_progress);
            let answered = host
                .forward_other(&server, &method, sent, Arc::new(caller), progress)
                .await;
            answered
                .map(|result| (server, result))
                .map_err(Failure::Error)
        };
        self.request(context, params, digest, repeated, make).await
    }
}

impl Core {
    /// Whether tasks keep their ids: there is one server and one client.
    pub(super) fn has_raw_tasks(&self) -> bool {
        self.options.single_client && self.options.transparent.is_some()
    }

    /// A result with the id under which the client knows the task that it creates.
    pub(super) fn created_task(
        &self,
        principal: &str,
        server: &ServerName,
        result: SharedJson,
    ) -> SharedJson {
        match &self.tasks {
            Some(tasks) if !self.has_raw_tasks() => tasks.created(principal, server, result),
            _ => result,
        }
    }

    fn find_task(&self, principal: &str, exposed: &str) -> Option<(ServerName, String)> {
        match (&self.options.transparent, &self.tasks) {
            (Some(server), _) if self.has_raw_tasks() => Some((server.clone(), exposed.to_owned())),
            (_, tasks) => tasks.as_ref()?.find(principal, exposed),
        }
    }

    /// Passes a notification of a client on to servers.
    pub(super) fn notify(
        self: &Arc<Self>,
        servers: Vec<ServerName>,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let Ok(permit) = Arc::clone(&self.notifying).try_acquire_owned() else {
            tracing::warn!(method, "too many notifications at once; one was dropped");
            return;
        };
        let core = Arc::clone(self);
        let (method, params) = (method.to_owned(), params.map(ToOwned::to_owned));
        tokio::spawn(async move {
            for server in servers {
                let host = &core.host;
                host.forward_notification(&server, &method, params.as_deref())
                    .await;
            }
            drop(permit);
        });
    }

    /// What is declared to clients of an era: what the only server declares, or what all servers declare together.
    pub(super) fn capabilities(
        &self,
        offers: &Offers,
        era: Era,
    ) -> Option<ServerCapabilities<'static>> {
        let host = &self.host;
        if let Some(server) = &self.options.transparent {
            let mut capabilities = host.capabilities(server)?;
            without_tasks_of_the_other_era(&mut capabilities, era);
            if let Some(tasks) = &mut capabilities.tasks
                && !self.has_raw_tasks()
            {
                // The server's list would contain tasks of other clients.
                tasks.list = None;
            }
            return Some(capabilities);
        }
        let on = || Raw::from(RawObject::default());
        let list = || ListCapability {
            list_changed: Some(true),
            ..ListCapability::new()
        };
        let mut merged = ServerCapabilities::new();
        merged.tools = Some(list());
        merged.prompts = Some(list());
        merged.resources = Some(ResourcesCapability {
            subscribe: Some(true),
            list_changed: Some(true),
            ..ResourcesCapability::new()
        });
        merged.completions = Some(on());
        merged.logging = Some(on());
        for server in offers.servers() {
            let Some(declared) = host.capabilities(&server) else {
                continue;
            };
            for (name, settings) in declared.extensions.iter() {
                if merged.extensions.get(name).is_none() {
                    merged.extensions.push(name.to_owned(), settings.clone());
                }
            }
            let tasks = declared.tasks.filter(|tasks| tasks.requests.is_some());
            if let Some(tasks) = tasks {
                let together = merged.tasks.get_or_insert_with(TasksCapability::new);
                together.cancel = together.cancel.take().or(tasks.cancel);
                together.requests = together.requests.take().or(tasks.requests);
            }
        }
        without_tasks_of_the_other_era(&mut merged, era);
        Some(merged)
    }
}

/// Tasks of servers of the other era are followed here, so clients do not hear of them.
fn without_tasks_of_the_other_era(capabilities: &mut ServerCapabilities<'static>, era: Era) {
    if era == Era::Stateless {
        capabilities.tasks = None;
        return;
    }
    if capabilities.extensions.get(TASKS_EXTENSION).is_some() {
        let others = capabilities.extensions.iter();
        let others = others.filter(|(name, _)| *name != TASKS_EXTENSION);
        capabilities.extensions = others
            .map(|(name, settings)| (name.to_owned(), settings.clone()))
            .collect();
    }
}
