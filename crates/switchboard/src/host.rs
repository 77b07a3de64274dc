//! The host: the handle through which an agent, a program or a gateway uses MCP servers.
//!
//! Cheap to clone; dropping the last clone closes every connection. Reads come from the manager's snapshot, changes go
//! through its queue, and calls go straight to the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::value::to_raw_value;
use switchboard_protocol::types::capabilities::ServerCapabilities;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_store::StoreError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::alarm::AbortOnDrop;
use crate::audit::What;
use crate::auth::interactive::logins::LoginOutcome;
use crate::call::{CallOutcome, CallRequest, UnderWay};
use crate::catalog::{
    Catalog, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::connectors::Connectors;
use crate::desired::{Desired, ServerChange, ServerSource};
use crate::error::Error;
use crate::events::{Event, Events, LogLine};
use crate::handler::{ClientHandler, Limited};
use crate::load::LoadStatus;
use crate::manager::{Command, Live, Manager, Resources, View};
use crate::memory::Memory;
use crate::names::{CallId, Generation, ServerName};
use crate::options::HostOptions;
use crate::pins::review::{Review, Subject};
use crate::remembered::{self, Outline};
use crate::search::{Hit, LiveIndex};
use crate::server::Server;
use crate::spec::ServerSpec;
use crate::status::{Failure, ServerState, ServerStatus, StartsOn};

/// Manages MCP servers and exposes their tools.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    options: HostOptions,
    commands: mpsc::Sender<Command>,
    view: watch::Receiver<Arc<View>>,
    events: Events,
    memory: Memory,
    calls: AtomicU64,
    under_way: UnderWay,
    search: LiveIndex,
    /// Builds servers described in code, if the options have no connectors; initialized by the first `Host::add`.
    connectors: OnceLock<Connectors>,
    /// The task that emits progress events for long calls.
    _signs: AbortOnDrop,
}

/// The reason a server cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No server has that name.
    #[error("no server named \"{0}\"")]
    Unknown(ServerName),
    /// The server is disabled.
    #[error("the server \"{0}\" is disabled")]
    Disabled(ServerName),
    /// The server requires a login.
    #[error("the server \"{0}\" requires a login")]
    NeedsAuth(ServerName),
    /// The connection failed.
    #[error("the server \"{server}\" has failed: {}", failure.reason())]
    Failed {
        /// The server.
        server: ServerName,
        /// The failure.
        failure: Box<Failure>,
    },
    /// The connection is still being opened.
    #[error("the server \"{0}\" is still being connected")]
    Pending(ServerName),
    /// Its configuration prevents it from starting.
    #[error("the server \"{server}\" is {}: {}", state.word(), state.reason().unwrap_or_default())]
    Withheld {
        /// The server.
        server: ServerName,
        /// Its state, with the reason.
        state: Box<ServerState>,
    },
    /// The server was removed while the host was running.
    #[error("the server \"{0}\" was removed")]
    Removed(ServerName),
    /// The host is shutting down.
    #[error("the host is shutting down")]
    ShuttingDown,
}

/// A login that waits for the user; see [`Host::login`].
#[derive(Debug)]
pub struct PendingLogin {
    /// The address that the user has to open in a browser.
    pub url: String,
    outcome: LoginOutcome,
    server: ServerName,
    /// When the server entered the state that it had when the login began.
    since: SystemTime,
    view: watch::Receiver<Arc<View>>,
}

impl PendingLogin {
    /// Waits until the user has logged in and the server is being reconnected, so that a call waits for the connection.
    /// Dropping the future does not cancel the login.
    ///
    /// # Errors
    ///
    /// If the login fails or is not completed in time.
    pub async fn wait(mut self) -> Result<(), Error> {
        self.outcome.wait().await.map_err(Error::login)?;
        let is_reconnected = |status: &ServerStatus| {
            status.since != self.since || !matches!(status.state, ServerState::NeedsAuth { .. })
        };
        // Fails if the host is gone, and the login is stored all the same.
        let _ = self
            .view
            .wait_for(|view| view.status(&self.server).is_none_or(is_reconnected))
            .await;
        Ok(())
    }
}

/// How long a caller waits for a lost server to reconnect.
pub(crate) const RECONNECT_PATIENCE: Duration = Duration::from_secs(15);

impl Host {
    /// Creates a host without servers that allows every call and declines every request from a server. Must be called
    /// within a Tokio runtime, which then runs the host's tasks.
    pub fn new() -> Self {
        Self::with_options(HostOptions::default())
    }

    /// Creates a host with the servers of its options, none of them started. Must be called within a Tokio runtime,
    /// which then runs the host's tasks.
    pub fn with_options(mut options: HostOptions) -> Self {
        let events = Events::new();
        let memory = Memory::new(Arc::clone(&options.store));
        let resources = Resources {
            settings: Arc::new(options.settings.clone()),
            memory: memory.clone(),
            handler: Arc::new(Limited::new(
                Arc::clone(&options.handler),
                options.settings.questions,
            )),
            events: events.clone(),
            shared: options.shared.clone(),
        };
        let desired = std::mem::take(&mut options.desired);
        let (manager, commands, view) = Manager::new(resources, desired);
        tokio::spawn(manager.run());
        let under_way = UnderWay::new(options.settings.progress_interval, events.clone());
        let signs = tokio::spawn({
            let under_way = under_way.clone();
            async move { under_way.give_signs().await }
        });
        Self(Arc::new(Inner {
            options,
            commands,
            view,
            events,
            memory,
            calls: AtomicU64::new(0),
            under_way,
            search: LiveIndex::default(),
            connectors: OnceLock::new(),
            _signs: AbortOnDrop::new(&signs),
        }))
    }

    /// Replaces the servers with these and starts them, without waiting. Unchanged servers are not touched.
    #[doc(hidden)]
    pub async fn apply(&self, specs: Vec<ServerSpec>) {
        self.reconcile(specs.into()).await;
    }

    /// Replaces the servers with those of a desired state, starts them without waiting, and returns the changes.
    /// Unchanged servers are not touched. Servers missing from the desired state are gone when this returns.
    #[doc(hidden)]
    pub async fn reconcile(&self, desired: Desired) -> Vec<ServerChange> {
        self.command(|done| Command::Reconcile(desired, done))
            .await
            .unwrap_or_default()
    }

    /// Applies every state that a source yields, until the source ends or the future is dropped. Servers keep running
    /// while the source prepares its next state.
    #[doc(hidden)]
    pub async fn follow(&self, mut source: impl ServerSource) {
        while let Some(desired) = source.next().await {
            let changes = self.reconcile(desired).await;
            source.applied(&changes);
        }
    }

    /// Starts these servers unless already started, without waiting.
    pub async fn start(&self, names: &[ServerName]) {
        let names = names.to_vec();
        self.command(|done| Command::Start(Some(names), done)).await;
    }

    /// Starts every server not yet started, without waiting.
    pub async fn start_all(&self) {
        self.command(|done| Command::Start(None, done)).await;
    }

    /// Adds a server, waits until it is connected, and returns the number of its tools.
    ///
    /// # Errors
    ///
    /// If the description is invalid, or the server cannot be connected.
    pub async fn add(&self, server: Server) -> Result<usize, Error> {
        let connectors = match &self.0.options.connectors {
            Some(connectors) => connectors,
            None => self.0.connectors.get_or_init(Connectors::of_this_process),
        };
        let login = server.login_target(connectors)?;
        let spec = server.into_spec(connectors)?;
        if let (Some(logins), Some(login)) = (&self.0.options.logins, login) {
            logins.add(spec.name.clone(), login);
        }
        Ok(self.add_server(spec).await?)
    }

    /// Calls a tool: by its exposed name, `server/tool` or `server.tool`, with an object as its arguments. Dropping the
    /// future cancels the call. [`request`](Self::request) has deadlines and progress.
    ///
    /// # Errors
    ///
    /// If there is no result. A failed tool does return a result: see [`CallOutcome::is_error`].
    pub async fn call(
        &self,
        tool: impl Into<String>,
        arguments: impl Serialize,
    ) -> Result<CallOutcome, Error> {
        let arguments = to_raw_value(&arguments).map_err(Error::arguments)?;
        let request = CallRequest {
            tool: tool.into(),
            arguments: Some(arguments).filter(|arguments| arguments.get() != "null"),
            ..CallRequest::default()
        };
        Ok(self.request(request).await?)
    }

    /// Adds a server, waits until it is connected, and returns the number of its tools.
    #[doc(hidden)]
    pub async fn add_server(&self, spec: ServerSpec) -> Result<usize, ServerError> {
        let name = spec.name.clone();
        self.command(|done| Command::Add(Box::new(spec), done))
            .await;
        let live = self.connected(&name).await?;
        Ok(live.tools.tools().len())
    }

    /// Removes a server. Returns `false` if no server has that name.
    pub async fn remove_server(&self, name: &ServerName) -> bool {
        self.command(|done| Command::Remove(name.clone(), done))
            .await
            .unwrap_or_default()
    }

    /// Enables or disables a server for the lifetime of this host. Returns `false` if no server has that name.
    pub async fn set_enabled(&self, name: &ServerName, enabled: bool) -> bool {
        self.command(|done| Command::SetEnabled(name.clone(), enabled, done))
            .await
            .unwrap_or_default()
    }

    /// Reconnects a server in any state. Returns `false` if no server has that name.
    pub async fn restart(&self, name: &ServerName) -> bool {
        self.command(|done| Command::Restart(name.clone(), done))
            .await
            .unwrap_or_default()
    }

    /// Starts a login to a server that supports it, or joins the one that is pending. Returns the address that the user
    /// has to open. When the login succeeds, the server is reconnected.
    ///
    /// # Errors
    ///
    /// If the server is unknown or needs no login, or if the login cannot be started.
    pub async fn login(&self, name: &ServerName) -> Result<PendingLogin, Error> {
        let Some(status) = self.status(name) else {
            return Err(ServerError::Unknown(name.clone()).into());
        };
        let started = match &self.0.options.logins {
            Some(logins) => logins.begin(name).await.map_err(Error::login)?,
            None => None,
        };
        let started = started.ok_or_else(|| Error::no_login(name))?;
        self.0.options.gate.note(What::Login {
            server: name.clone(),
            event: "begin",
            succeeded: true,
        });
        if started.is_new {
            self.restart_after(name, started.outcome.clone());
        }
        Ok(PendingLogin {
            url: started.url.into(),
            outcome: started.outcome,
            server: name.clone(),
            since: status.since,
            view: self.0.view.clone(),
        })
    }

    /// Probes every connection now, for example after the machine was suspended.
    #[doc(hidden)]
    pub async fn probe_all(&self) {
        let _ = self.0.commands.send(Command::ProbeAll).await;
    }

    /// Waits until a server is connected, and returns the number of its tools.
    ///
    /// # Errors
    ///
    /// If the server is unknown or cannot be connected.
    pub async fn connect(&self, name: &ServerName) -> Result<usize, Error> {
        let live = self.connected(name).await?;
        Ok(live.tools.tools().len())
    }

    /// The status of every configured server, sorted by name.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.view().statuses.clone()
    }

    /// The status of one server.
    pub fn status(&self, name: &ServerName) -> Option<ServerStatus> {
        self.view().status(name).cloned()
    }

    /// A snapshot of what the connected servers offer.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.view().catalog)
    }

    /// Searches the tools of [`catalog`](Self::catalog), best match first. See
    /// [`Index::search`](crate::search::Index::search) for the query syntax.
    ///
    /// Updates the index first: free if no server has changed, about a millisecond for each one that has. Does not wait
    /// for servers that are still connecting.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.0.search.search(&self.catalog(), query, limit)
    }

    /// The most recent log lines of a server.
    pub fn logs(&self, name: &ServerName) -> Vec<LogLine> {
        let view = self.view();
        view.logs
            .get(name)
            .map_or_else(Vec::new, |logs| logs.lines())
    }

    /// The number of requests to a server that await a response; `None` if it is not connected.
    pub fn in_flight(&self, name: &ServerName) -> Option<usize> {
        let view = self.view();
        view.live.get(name).map(|live| live.peer.in_flight())
    }

    /// The requests to a server that run and wait, and the state of its circuit breaker; `None` if it cannot be started.
    #[doc(hidden)]
    pub fn load(&self, name: &ServerName) -> Option<LoadStatus> {
        let view = self.view();
        let spec = view.specs.iter().find(|spec| spec.name == *name);
        spec.map(|spec| spec.load.status())
    }

    /// Subscribes to events from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// Like [`events`](Self::events), without those of calls: for listeners that follow servers only, which a call then
    /// does not wake.
    #[doc(hidden)]
    pub fn server_events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe_to_servers()
    }

    /// Waits until every required server is connected, or until one of them fails.
    pub async fn ready(&self) -> Result<(), ServerError> {
        let mut view = self.0.view.clone();
        let mut outcome = Ok(());
        let reached = view
            .wait_for(|view| {
                let mut waiting = false;
                // Servers that their configuration prevents from starting are reported by their status.
                let is_startable =
                    |name: &ServerName| view.specs.iter().any(|spec| spec.name == *name);
                let required = |status: &&ServerStatus| {
                    status.required
                        && !matches!(status.state, ServerState::Idle)
                        && is_startable(&status.name)
                };
                for status in view.statuses.iter().filter(required) {
                    match unusable(status) {
                        None => {}
                        Some(ServerError::Pending(_)) => waiting = true,
                        Some(error) => {
                            outcome = Err(error);
                            return true;
                        }
                    }
                }
                !waiting
            })
            .await
            .is_ok();
        if reached {
            outcome
        } else {
            Err(ServerError::ShuttingDown)
        }
    }

    /// Waits until every server has settled, except those that wait for their first use.
    pub async fn settled(&self) {
        self.settled_or(|_| false).await;
    }

    /// Waits until every server has settled or has used up its deadline once and is being retried. Ignores servers that
    /// wait for their first use.
    pub async fn started(&self) {
        let mut view = self.0.view.clone();
        let _ = view
            .wait_for(|view| !view.statuses.iter().any(ServerStatus::is_coming_up))
            .await;
    }

    /// Waits until no package runner is installing a server.
    #[doc(hidden)]
    pub async fn installed(&self) {
        let mut view = self.0.view.clone();
        let _ = view
            .wait_for(|view| {
                let is_installing = |status: &ServerStatus| {
                    matches!(
                        status.state,
                        ServerState::Pending {
                            is_installing: true,
                            ..
                        }
                    )
                };
                !view.statuses.iter().any(is_installing)
            })
            .await;
    }

    /// Stops retrying servers that have failed before and marks them failed, for a program that exits before the next
    /// attempt.
    #[doc(hidden)]
    pub async fn give_up(&self) {
        self.command(Command::GiveUp).await;
    }

    /// Waits until every server has settled, or until `is_there` holds for the catalog.
    pub(crate) async fn settled_or(&self, is_there: impl Fn(&Catalog) -> bool) {
        let mut view = self.0.view.clone();
        let _ = view
            .wait_for(|view| {
                let mut statuses = view.statuses.iter();
                statuses.all(|status| status.state.is_settled()) || is_there(&view.catalog)
            })
            .await;
    }

    /// Connects every server configured to connect on first use. Idle servers are skipped: their tools are known.
    pub async fn connect_all(&self) {
        for status in self.statuses() {
            if waits_for_first_use(&status) {
                self.command(|done| Command::Connect(status.name, done))
                    .await;
            }
        }
    }

    /// The cached catalog of all servers that can be started. Connects to none of them.
    #[doc(hidden)]
    pub async fn remembered(&self) -> Catalog {
        let view = self.view();
        let enabled = view.specs.iter().filter(|spec| spec.enabled);
        let outlines: Vec<Outline> = enabled.map(|spec| Outline::from(&**spec)).collect();
        let mut lists = Vec::with_capacity(outlines.len());
        for outline in &outlines {
            lists.push(self.0.memory.catalog(outline).await);
        }
        remembered::catalog(&outlines, &lists)
    }

    /// Compares a connected server's tools and instructions with their pins; `None` if it is not connected.
    pub async fn pins(&self, name: &ServerName) -> Option<Review> {
        let outline = Outline::from(&*self.view().live.get(name)?.spec);
        let remembered = self.0.memory.catalog(&outline).await;
        Review::of(&outline, &remembered)
    }

    /// Approves changes of a server exactly as reviewed. Every host that shares the store offers them again within
    /// moments and emits [`Event::CatalogChanged`].
    pub async fn approve_pins(
        &self,
        review: &Review,
        subjects: &[Subject],
    ) -> Result<(), StoreError> {
        review.approve(&*self.0.options.store, subjects).await
    }

    /// Closes every connection gracefully and waits until all are closed.
    pub async fn shutdown(&self) {
        self.command(Command::Shutdown).await;
    }

    /// The handler of requests from servers.
    #[doc(hidden)]
    pub fn handler(&self) -> &Arc<dyn ClientHandler> {
        &self.0.options.handler
    }

    /// Waits until a server has been notified of every cancelled call, by a notification or by closing the call's
    /// stream, depending on the protocol revision. The error says why it was not.
    #[doc(hidden)]
    pub async fn cancellations_told(
        &self,
        server: &ServerName,
        within: Duration,
    ) -> Result<(), String> {
        let live = self.view().live.get(server).cloned();
        match live {
            Some(live) => live.peer.cancellations_told(within).await,
            None => Err("the connection is lost".to_owned()),
        }
    }

    /// Name and version that a connected server reported.
    #[doc(hidden)]
    pub fn identity(&self, name: &ServerName) -> Option<Implementation<'static>> {
        let view = self.view();
        view.live.get(name)?.peer.facts().implementation.clone()
    }

    /// The capabilities that a connected server declared.
    #[doc(hidden)]
    pub fn capabilities(&self, name: &ServerName) -> Option<ServerCapabilities<'static>> {
        let view = self.view();
        view.live.get(name)?.peer.facts().capabilities.clone()
    }

    /// The interval of progress events for long calls.
    #[doc(hidden)]
    pub fn progress_interval(&self) -> Duration {
        self.0.options.settings.progress_interval
    }

    /// Closes every connection and returns once all servers have been notified, within about ten milliseconds: for a
    /// program about to exit. Supervised servers shut down in the background, in the same steps and times as with
    /// [`shutdown`](Self::shutdown), enforced by the supervisor. Others are not waited for.
    #[doc(hidden)]
    pub async fn leave(&self) {
        self.command(Command::Leave).await;
    }

    pub(crate) fn options(&self) -> &HostOptions {
        &self.0.options
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    pub(crate) fn event_channel(&self) -> &Events {
        &self.0.events
    }

    /// Allocates the next call ID.
    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.0.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.0.view.borrow())
    }

    /// Reconnects a server after a login. Does not keep the host alive, and ends when the login is abandoned.
    pub(crate) fn restart_after(&self, server: &ServerName, login: LoginOutcome) {
        let commands = self.0.commands.downgrade();
        let gate = Arc::clone(&self.0.options.gate);
        let server = server.clone();
        tokio::spawn(async move {
            let succeeded = login.wait().await.is_ok();
            gate.note(What::Login {
                server: server.clone(),
                event: "login",
                succeeded,
            });
            drop(gate);
            if succeeded && let Some(commands) = commands.upgrade() {
                let (done, _) = oneshot::channel();
                let _ = commands.send(Command::Restart(server, done)).await;
            }
        });
    }

    pub(crate) async fn tell(&self, command: Command) {
        let _ = self.0.commands.send(command).await;
    }

    /// Waits for the connection of a server.
    pub(crate) async fn connected(&self, name: &ServerName) -> Result<Live, ServerError> {
        if let Some(live) = self.view().live.get(name) {
            return Ok(live.clone());
        }
        let mut view = self.0.view.clone();
        let view = loop {
            let view = view
                .wait_for(|view| {
                    view.status(name)
                        .is_none_or(|status| status.state.is_settled())
                })
                .await
                .map_err(|_| ServerError::ShuttingDown)?
                .clone();
            if !view.waits_for_use(name) {
                break view;
            }
            self.use_begins(name).await?;
        };
        match (view.live.get(name), view.status(name)) {
            (Some(live), _) => Ok(live.clone()),
            (None, Some(status)) => {
                Err(unusable(status).unwrap_or_else(|| ServerError::Pending(name.clone())))
            }
            (None, None) if view.removed.contains(name) => Err(ServerError::Removed(name.clone())),
            (None, None) => Err(ServerError::Unknown(name.clone())),
        }
    }

    /// Connects a server that waits for use. When this returns, the server no longer waits.
    async fn use_begins(&self, name: &ServerName) -> Result<(), ServerError> {
        let connecting = self.command(|done| Command::Connect(name.clone(), done));
        connecting.await.ok_or(ServerError::ShuttingDown)
    }

    pub(crate) fn under_way(&self) -> &UnderWay {
        &self.0.under_way
    }

    /// Waits up to `patience` for a connection newer than `generation`.
    pub(crate) async fn connected_after(
        &self,
        name: &ServerName,
        generation: Generation,
        patience: Duration,
    ) -> Option<Live> {
        let mut view = self.0.view.clone();
        let newer = async {
            loop {
                let view = view
                    .wait_for(|view| {
                        let is_newer = |live: &Live| live.generation > generation;
                        let live = view.live.get(name).is_some_and(is_newer);
                        let hopeless = view.status(name).is_none_or(|status| {
                            !matches!(
                                status.state,
                                ServerState::Pending { .. } | ServerState::Connected
                            )
                        });
                        live || hopeless || view.waits_for_use(name)
                    })
                    .await
                    .ok()?
                    .clone();
                if !view.waits_for_use(name) {
                    return Some(view);
                }
                // The server was stopped as idle just before this use.
                self.use_begins(name).await.ok()?;
            }
        };
        let view = timeout(patience, newer).await.ok()??;
        let live = view.live.get(name)?;
        (live.generation > generation).then(|| live.clone())
    }

    /// The server's connection, after its tools have been listed again.
    pub(crate) async fn refreshed(&self, name: &ServerName) -> Option<Live> {
        let before = self.view().live.get(name)?.clone();
        let mut view = self.0.view.clone();
        self.tell(Command::Refresh(name.clone())).await;
        let listed = view.wait_for(|view| {
            view.live
                .get(name)
                .is_none_or(|live| !Arc::ptr_eq(&live.tools, &before.tools))
        });
        let view = timeout(before.spec.tool_timeout, listed).await.ok()?.ok()?;
        view.live.get(name).cloned()
    }

    /// Lists the tools of a connected server at once, and returns when the catalog has them: for a program that has
    /// changed them itself. Change notifications of servers are rate limited, this is not. `false` if the server is not
    /// connected or cannot list.
    #[doc(hidden)]
    pub async fn list_tools_again(&self, name: &ServerName) -> bool {
        let listed = self.command(|done| Command::ListTools(name.clone(), done));
        listed.await.is_some()
    }

    async fn command<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (done, reply) = oneshot::channel();
        self.0.commands.send(make(done)).await.ok()?;
        reply.await.ok()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let statuses = self.statuses();
        let servers = statuses.iter().map(|status| (&status.name, status.word()));
        formatter.debug_map().entries(servers).finish()
    }
}

/// Applies a server's tool rules to its listed tools.
pub(crate) fn server_tools(
    server: &ServerName,
    rules: &ToolRules,
    catalog: &ServerCatalog,
    reach: Reach,
    provenance: Provenance,
) -> ServerTools {
    ServerTools::from_pages(
        server,
        &catalog.tools,
        rules,
        reach,
        provenance,
        ListLimits::default(),
    )
}

/// Whether a server connects on first use.
pub(crate) fn waits_for_first_use(status: &ServerStatus) -> bool {
    matches!(
        status.state,
        ServerState::Lazy {
            until: StartsOn::FirstUse
        }
    )
}

/// The reason a server cannot be used; `None` if it can.
fn unusable(status: &ServerStatus) -> Option<ServerError> {
    let name = status.name.clone();
    Some(match &status.state {
        ServerState::Connected => return None,
        ServerState::Disabled { .. } => ServerError::Disabled(name),
        ServerState::NeedsAuth { .. } => ServerError::NeedsAuth(name),
        ServerState::Failed { failure } => ServerError::Failed {
            server: name,
            failure: failure.clone(),
        },
        ServerState::Pending { .. } | ServerState::Lazy { .. } | ServerState::Idle => {
            ServerError::Pending(name)
        }
        state @ (ServerState::Refused(_) | ServerState::Hidden { .. }) => ServerError::Withheld {
            server: name,
            state: Box::new(state.clone()),
        },
    })
}
