//! Resources, prompts and completion: the read-only requests to a server.
//!
//! Reading has no effects, so a lost request is retried once after a reconnect.

use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard_protocol::types::completion::CompleteRequestParams;
use switchboard_protocol::types::method::{GetPrompt, Request as _};
use switchboard_protocol::types::prompt::GetPromptRequestParams;
use switchboard_protocol::types::resource::ReadResourceRequestParams;
use switchboard_protocol::types::wire;
use switchboard_protocol::{ErrorCode, ErrorObject, Method};
use tokio::sync::oneshot;

use crate::caller::Caller;
use crate::catalog::{SetAside, SetAsideReason};
use crate::host::{Host, RECONNECT_PATIENCE, ServerError};
use crate::json::SharedJson;
use crate::manager::{Command, Live, Trouble};
use crate::names::ServerName;
use crate::peer::{
    ListKind, Pages, Progress, ProgressListener, ProgressRoute, ProgressSink, RequestError,
    RequestOptions,
};
use crate::pins::ContentKind;
use crate::spec::ConnectionKey;

/// The reason a read failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The server cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server did not answer the request.
    #[error("the server \"{server}\" did not answer {method}: {error}")]
    Request {
        /// The server.
        server: ServerName,
        /// The requested method.
        method: Method,
        /// The error.
        error: RequestError,
    },
    /// The profile of the client does not include the server.
    #[error("server \"{server}\" is not in the profile \"{profile}\"")]
    #[doc(hidden)]
    Profile {
        /// The server.
        server: ServerName,
        /// The profile of the client.
        profile: String,
    },
    /// It differs from its pin, or cannot be compared with it.
    #[error("server \"{server}\": {aside}")]
    SetAside {
        /// The server.
        server: ServerName,
        /// The withheld item and the reason.
        aside: Box<SetAside>,
    },
}

/// A request that is made for a client.
struct PassedOn {
    caller: Arc<Caller>,
    progress: Option<ProgressSink>,
}

impl PassedOn {
    fn options(&self, live: &Live) -> RequestOptions {
        let mut options = RequestOptions::within(live.spec.tool_timeout);
        options.caller = Some(Arc::clone(&self.caller));
        options.progress = self.progress.clone().map(|sink| ProgressRoute {
            listener: Arc::new(PassedProgress(sink)),
            number: 0,
        });
        options
    }
}

/// Passes the progress of one request on.
struct PassedProgress(ProgressSink);

impl ProgressListener for PassedProgress {
    fn progress(&self, _number: u64, progress: Progress) {
        (self.0)(progress);
    }
}

impl Host {
    /// Returns one of a server's lists, cached while it is fresh. Prompts and templates that differ from their pins are
    /// omitted: [`Pages::withheld`] lists them with the reason.
    pub async fn list(
        &self,
        server: &ServerName,
        kind: ListKind,
    ) -> Result<Arc<Pages>, ContentError> {
        let deadline = self.options().settings.list_timeout;
        let live = self.connected(server).await?;
        let error = match live.lists.get(kind, deadline).await {
            Ok(pages) => return Ok(self.compared(&live, kind, pages).await),
            Err(error) => error,
        };
        let again = match self.back_after(&live, server, &error).await {
            Some(live) => match live.lists.get(kind, deadline).await {
                Ok(pages) => return Ok(self.compared(&live, kind, pages).await),
                Err(error) => error,
            },
            None => error,
        };
        Err(ContentError::Request {
            server: server.clone(),
            method: kind.method(),
            error: again.redacted(&live.spec.redactor),
        })
    }

    /// Applies the pins to a list.
    async fn compared(&self, live: &Live, kind: ListKind, pages: Arc<Pages>) -> Arc<Pages> {
        match ContentKind::of(kind) {
            Some(kind) if live.spec.rules.pins() => {
                let memory = self.memory();
                // Another process may have approved changes since, so look up the revision each time.
                let revision = memory.content_revision(live.spec.identity, kind).await;
                if let Some(known) = live.lists.compared(kind, &pages, revision) {
                    return known;
                }
                let policy = self.options().settings.pins;
                let admitted = memory.admit(&live.spec, kind, &pages, policy).await;
                let (admitted, revision) = (Arc::new(admitted.0), admitted.1);
                live.lists.set_compared(kind, &pages, revision, &admitted);
                admitted
            }
            None if kind == ListKind::Resources => {
                self.memory()
                    .remember_resources(live.spec.key, &pages)
                    .await;
                pages
            }
            _ => pages,
        }
    }

    /// Reads a resource. Returns the `ReadResourceResult` as the server sent it.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<SharedJson, ContentError> {
        let params = ReadResourceRequestParams::new(uri.into());
        self.read(server, Method::ResourcesRead, wire::encode(&params), None)
            .await
    }

    /// Gets a prompt with arguments. Returns the `GetPromptResult` as the server sent it.
    pub async fn get_prompt(
        &self,
        server: &ServerName,
        params: &GetPromptRequestParams<'_>,
    ) -> Result<SharedJson, ContentError> {
        self.check_prompt(server, &params.name).await?;
        self.read(server, Method::PromptsGet, wire::encode(params), None)
            .await
    }

    /// Fails for a prompt that differs from its pin.
    async fn check_prompt(&self, server: &ServerName, name: &str) -> Result<(), ContentError> {
        if !self.connected(server).await?.spec.rules.pins() {
            return Ok(());
        }
        // The list is cached while it is fresh, so this costs one request at most.
        let listed = self.list(server, ListKind::Prompts).await?;
        let mut withheld = listed.withheld.iter();
        let is_meant = |aside: &&SetAside| {
            aside.name.as_deref() == Some(name) && aside.reason != SetAsideReason::Duplicate
        };
        match withheld.find(is_meant) {
            Some(aside) => Err(ContentError::SetAside {
                server: server.clone(),
                aside: Box::new(aside.clone()),
            }),
            None => Ok(()),
        }
    }

    /// Passes a request of a client on to a server: `resources/read`, `prompts/get` or `completion/complete`, with the
    /// params as the server expects them. Returns the result as the server sent it.
    #[doc(hidden)]
    pub async fn forward(
        &self,
        server: &ServerName,
        method: Method,
        params: String,
        caller: Arc<Caller>,
        progress: Option<ProgressSink>,
    ) -> Result<SharedJson, ContentError> {
        if let Some(profile) = &caller.profile
            && !profile.has_server(server.as_str())
        {
            return Err(ContentError::Profile {
                server: server.clone(),
                profile: profile.name().to_owned(),
            });
        }
        if method == Method::PromptsGet {
            let name = GetPrompt::decode_params(switchboard_protocol::trusted(&params))
                .map(|params| params.name.into_owned());
            self.check_prompt(server, &name.unwrap_or_default()).await?;
        }
        let passed = PassedOn { caller, progress };
        self.read(server, method, params, Some(passed)).await
    }

    /// Passes a request of a client on to a server, whatever its method is: a method of an extension, or of tasks. It is
    /// sent once, and its result is returned as the server sent it.
    #[doc(hidden)]
    pub async fn forward_other(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawValue>,
        caller: Arc<Caller>,
        progress: Option<ProgressSink>,
    ) -> Result<SharedJson, ErrorObject<'static>> {
        let failed = |message: String| ErrorObject::new(ErrorCode::INTERNAL_ERROR, message);
        let live = self.connected(server).await;
        let live = live.map_err(|error| failed(error.to_string()))?;
        let passed = PassedOn { caller, progress };
        let mut options = passed.options(&live);
        options.total = live.spec.tool_max;
        let answered = match live.peer_for(Some(&passed.caller)).await {
            Ok(peer) => peer.request_by_name(method, params, &options).await,
            Err(error) => Err(error),
        };
        answered.map_err(|error| {
            let error = error.redacted(&live.spec.redactor);
            error.rpc_error().unwrap_or_else(|| {
                failed(format!(
                    "server \"{server}\" did not answer {method}: {error}"
                ))
            })
        })
    }

    /// Passes a notification of a client on to a server that is connected.
    #[doc(hidden)]
    pub async fn forward_notification(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let view = self.view();
        let Some(live) = view.live.get(server) else {
            return;
        };
        let known = Method::from_name(method);
        if known.is_some_and(|known| !known.exists_in(live.peer.revision())) {
            return;
        }
        if let Err(error) = live.peer.notify_by_name(method, params).await {
            tracing::debug!(%server, method, %error, "a notification was not passed on");
        }
    }

    /// Passes a request on as it is, for a client that applies permissions, pins and deadlines itself.
    #[doc(hidden)]
    pub async fn pass(
        &self,
        server: &ServerName,
        method: Method,
        params: String,
        caller: Arc<Caller>,
        progress: ProgressSink,
    ) -> Result<SharedJson, ContentError> {
        let failed = |error| ContentError::Request {
            server: server.clone(),
            method,
            error,
        };
        let params = RawValue::from_string(params)
            .map_err(|error| failed(RequestError::Unwritable(error.to_string())))?;
        let live = self.connected(server).await?;
        let passed_on = PassedOn {
            caller,
            progress: Some(progress),
        };
        let peer = live.peer_for(Some(&passed_on.caller)).await;
        let peer = peer.map_err(failed)?;
        let mut options = passed_on.options(&live);
        (options.idle, options.total) = (live.spec.tool_max, live.spec.tool_max);
        let passed = peer.request(method, Some(&params), &options).await;
        passed.map_err(|error| failed(error.redacted(&live.spec.redactor)))
    }

    /// The key of a server's connection settings; `None` if the server cannot be started.
    #[doc(hidden)]
    pub fn connection_key(&self, server: &ServerName) -> Option<ConnectionKey> {
        let view = self.view();
        let mut specs = view.specs.iter();
        specs.find(|spec| spec.name == *server).map(|spec| spec.key)
    }

    /// Ends the connections of a client that has ended.
    #[doc(hidden)]
    pub fn end_client(&self, owner: u64) {
        let view = self.view();
        let clients = view.live.values().filter_map(|live| live.clients.as_ref());
        clients.for_each(|clients| clients.end(owner));
    }

    /// Requests completions of an argument. Returns the `CompleteResult` as the server sent it.
    pub async fn complete(
        &self,
        server: &ServerName,
        params: &CompleteRequestParams<'_>,
    ) -> Result<SharedJson, ContentError> {
        self.read(server, Method::Complete, wire::encode(params), None)
            .await
    }

    /// Subscribes to changes of a resource, across reconnects. Returns `false` if no server has that name.
    ///
    /// Changes are emitted as [`Event::ResourceUpdated`](crate::events::Event::ResourceUpdated).
    pub async fn subscribe(&self, server: &ServerName, uri: &str) -> bool {
        self.set_subscribed(server, uri, true).await
    }

    /// Cancels a subscription. Returns `false` if no server has that name.
    pub async fn unsubscribe(&self, server: &ServerName, uri: &str) -> bool {
        self.set_subscribed(server, uri, false).await
    }

    async fn set_subscribed(&self, server: &ServerName, uri: &str, wanted: bool) -> bool {
        let (done, reply) = oneshot::channel();
        self.tell(Command::Subscribe(
            server.clone(),
            uri.to_owned(),
            wanted,
            done,
        ))
        .await;
        reply.await.unwrap_or_default()
    }

    async fn read(
        &self,
        server: &ServerName,
        method: Method,
        params: String,
        passed: Option<PassedOn>,
    ) -> Result<SharedJson, ContentError> {
        let failed = |error| ContentError::Request {
            server: server.clone(),
            method,
            error,
        };
        let params = RawValue::from_string(params)
            .map_err(|error| failed(RequestError::Unwritable(error.to_string())))?;
        let live = self.connected(server).await?;
        let once = async |live: &Live| {
            let load = &live.spec.load;
            let slot = match load.try_enter() {
                Some(slot) => slot,
                None => load.enter(live.spec.tool_timeout).await?,
            };
            let options = match &passed {
                Some(passed) => passed.options(live),
                None => RequestOptions::within(live.spec.tool_timeout),
            };
            let caller = passed.as_ref().map(|passed| &passed.caller);
            let peer = live.peer_for(caller).await?;
            let outcome = peer.request(method, Some(&params), &options).await;
            slot.end(&outcome);
            outcome
        };
        let error = match once(&live).await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let again = match self.back_after(&live, server, &error).await {
            Some(live) => once(&live).await,
            None => Err(error),
        };
        again.map_err(|error| failed(error.redacted(&live.spec.redactor)))
    }

    /// Waits for a new connection after this error, if one can be expected.
    async fn back_after(
        &self,
        live: &Live,
        server: &ServerName,
        error: &RequestError,
    ) -> Option<Live> {
        let trouble = if error.wants_authorization() {
            Trouble::Unauthorized
        } else if error.session_expired() {
            Trouble::SessionExpired
        } else if error.never_sent() || matches!(error, RequestError::Lost(_)) {
            Trouble::Suspect
        } else {
            return None;
        };
        self.tell(Command::Trouble(server.clone(), live.generation, trouble))
            .await;
        if trouble == Trouble::Unauthorized {
            return None;
        }
        self.connected_after(server, live.generation, RECONNECT_PATIENCE)
            .await
    }
}
