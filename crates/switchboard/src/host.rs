//! The host: what an agent, a program or a gateway holds to use MCP servers.
//!
//! Owns the handle. It is cheap to clone; when the last clone is gone, every connection is ended. Reading goes to the
//! manager's snapshot, changing to its queue, calls straight to the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::to_raw_value;
use switchboard_store::StoreError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::alarm::AbortOnDrop;
use crate::audit::What;
use crate::call::{CallOutcome, CallRequest, UnderWay};
use crate::catalog::{
    Catalog, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::connectors::Connectors;
use crate::desired::{Desired, ServerChange, ServerSource};
use crate::error::Error;
use crate::events::{Event, Events, LogLine};
use crate::handler::{ClientHandler, Limited};
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

/// Manages servers and offers what they have.
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
    /// How servers that are described in code are made, once there is one.
    connectors: OnceLock<Connectors>,
    /// The task that gives their signs of life.
    _signs: AbortOnDrop,
}

/// Why a server cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// There is none of that name.
    #[error("there is no server \"{0}\"")]
    Unknown(ServerName),
    /// It is switched off.
    #[error("the server \"{0}\" is disabled")]
    Disabled(ServerName),
    /// It requires a login.
    #[error("the server \"{0}\" requires a login")]
    NeedsAuth(ServerName),
    /// It could not be connected.
    #[error("the server \"{server}\" has failed: {}", failure.reason())]
    Failed {
        /// The server.
        server: ServerName,
        /// Why.
        failure: Box<Failure>,
    },
    /// It is still being connected.
    #[error("the server \"{0}\" is still being connected")]
    Pending(ServerName),
    /// Its configuration keeps it from being started.
    #[error("the server \"{server}\" is {}: {}", state.word(), state.reason().unwrap_or_default())]
    Withheld {
        /// The server.
        server: ServerName,
        /// Its state, with the reason.
        state: Box<ServerState>,
    },
    /// It was removed while the host ran.
    #[error("the server \"{0}\" was removed")]
    Removed(ServerName),
    /// The host is shutting down.
    #[error("the host is shutting down")]
    ShuttingDown,
}

/// How long whoever needs a lost server waits for it to be connected anew.
pub(crate) const RECONNECT_PATIENCE: Duration = Duration::from_secs(15);

impl Host {
    /// A host without servers that allows every call and declines what servers ask of it. It works in the runtime it
    /// was made in.
    pub fn new() -> Self {
        Self::with_options(HostOptions::default())
    }

    /// A host with the servers of its options, none of them started. It works in the runtime it was made in.
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

    /// Makes the servers exactly these and starts them. Those that have not changed are not touched; nothing is waited
    /// for.
    #[doc(hidden)]
    pub async fn apply(&self, specs: Vec<ServerSpec>) {
        self.reconcile(specs.into()).await;
    }

    /// Makes the servers those of a desired state, starts them, and returns what has changed. Servers that have not
    /// changed are not touched; nothing is waited for. A server that is not in there is gone when this returns.
    #[doc(hidden)]
    pub async fn reconcile(&self, desired: Desired) -> Vec<ServerChange> {
        self.command(|done| Command::Reconcile(desired, done))
            .await
            .unwrap_or_default()
    }

    /// Keeps the servers what a source says, until the source ends or the future is dropped. Servers of this host go on
    /// while the source prepares its next state.
    #[doc(hidden)]
    pub async fn follow(&self, mut source: impl ServerSource) {
        while let Some(desired) = source.next().await {
            let changes = self.reconcile(desired).await;
            source.applied(&changes);
        }
    }

    /// Starts these servers, those that have been started aside; nothing is waited for.
    pub async fn start(&self, names: &[ServerName]) {
        let names = names.to_vec();
        self.command(|done| Command::Start(Some(names), done)).await;
    }

    /// Starts every server that has not been started; nothing is waited for.
    pub async fn start_all(&self) {
        self.command(|done| Command::Start(None, done)).await;
    }

    /// Adds a server, waits until it is connected, and returns the number of its tools.
    ///
    /// # Errors
    ///
    /// If its description cannot be used, or if it cannot be connected.
    pub async fn add(&self, server: Server) -> Result<usize, Error> {
        let connectors = self.0.connectors.get_or_init(Connectors::of_this_process);
        let spec = server.into_spec(connectors)?;
        Ok(self.add_server(spec).await?)
    }

    /// Calls a tool: by its exposed name, `server/tool` or `server.tool`, with an object as its arguments. Dropping the
    /// future cancels the call. [`request`](Self::request) has deadlines and progress.
    ///
    /// # Errors
    ///
    /// If there is no result. A tool that failed has one: see [`CallOutcome::is_error`].
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

    /// Adds a server, waits until it is connected, and tells how many tools it has.
    #[doc(hidden)]
    pub async fn add_server(&self, spec: ServerSpec) -> Result<usize, ServerError> {
        let name = spec.name.clone();
        self.command(|done| Command::Add(Box::new(spec), done))
            .await;
        let live = self.connected(&name).await?;
        Ok(live.tools.tools().len())
    }

    /// Removes a server; `false` if there is none of that name.
    pub async fn remove_server(&self, name: &ServerName) -> bool {
        self.command(|done| Command::Remove(name.clone(), done))
            .await
            .unwrap_or_default()
    }

    /// Switches a server on or off for the life of this host; `false` if there is none of that name.
    pub async fn set_enabled(&self, name: &ServerName, enabled: bool) -> bool {
        self.command(|done| Command::SetEnabled(name.clone(), enabled, done))
            .await
            .unwrap_or_default()
    }

    /// Connects a server anew, whatever its state; `false` if there is none of that name.
    pub async fn restart(&self, name: &ServerName) -> bool {
        self.command(|done| Command::Restart(name.clone(), done))
            .await
            .unwrap_or_default()
    }

    /// Probes every connection at once, as after a sleep.
    #[doc(hidden)]
    pub async fn probe_all(&self) {
        let _ = self.0.commands.send(Command::ProbeAll).await;
    }

    /// The status of every configured server, in the order of their names.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.view().statuses.clone()
    }

    /// The status of one server.
    pub fn status(&self, name: &ServerName) -> Option<ServerStatus> {
        self.view().status(name).cloned()
    }

    /// What the connected servers offer, at this moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.view().catalog)
    }

    /// The tools of [`catalog`](Self::catalog) that answer a question best, the best first. See
    /// [`Index::search`](crate::search::Index::search) for what a question may be.
    ///
    /// The index is brought up to date first: nothing to do if no server has changed, a millisecond or so for one that
    /// has. It does not wait for servers that are still being connected.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.0.search.search(&self.catalog(), query, limit)
    }

    /// The last lines a server said.
    pub fn logs(&self, name: &ServerName) -> Vec<LogLine> {
        let view = self.view();
        view.logs
            .get(name)
            .map_or_else(Vec::new, |logs| logs.lines())
    }

    /// How many requests to a server wait for their answers; `None` if it is not connected.
    pub fn in_flight(&self, name: &ServerName) -> Option<usize> {
        let view = self.view();
        view.live.get(name).map(|live| live.peer.in_flight())
    }

    /// What happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// Waits until every required server is connected, or one of them cannot be.
    pub async fn ready(&self) -> Result<(), ServerError> {
        let mut view = self.0.view.clone();
        let mut outcome = Ok(());
        let reached = view
            .wait_for(|view| {
                let mut waiting = false;
                // What its configuration keeps from being started is told with its status.
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

    /// Waits until every server has settled, those that wait for their first use aside.
    pub async fn settled(&self) {
        self.settled_or(|_| false).await;
    }

    /// Waits until every server has settled or is tried again after it has used up its whole deadline. Those that wait for
    /// their first use do not count.
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

    /// Ends the attempts to connect servers that have failed before: for a program that will not be there for the next one.
    /// They are failed from now on.
    #[doc(hidden)]
    pub async fn give_up(&self) {
        self.command(Command::GiveUp).await;
    }

    /// Waits until every server has settled, or the catalogue has what is wanted.
    pub(crate) async fn settled_or(&self, is_there: impl Fn(&Catalog) -> bool) {
        let mut view = self.0.view.clone();
        let _ = view
            .wait_for(|view| {
                let mut statuses = view.statuses.iter();
                statuses.all(|status| status.state.is_settled()) || is_there(&view.catalog)
            })
            .await;
    }

    /// Connects every server that waits for its first use by its own setting. An idle one is left alone: its tools are
    /// known.
    pub async fn connect_all(&self) {
        for status in self.statuses() {
            if waits_for_first_use(&status) {
                self.command(|done| Command::Connect(status.name, done))
                    .await;
            }
        }
    }

    /// What the servers that can be started offered when they were last connected, without connecting to any.
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

    /// How a connected server's tools and instructions stand against their pins; `None` if it is not connected.
    pub async fn pins(&self, name: &ServerName) -> Option<Review> {
        let outline = Outline::from(&*self.view().live.get(name)?.spec);
        let remembered = self.0.memory.catalog(&outline).await;
        Review::of(&outline, &remembered)
    }

    /// Approves what of a server has changed, as it was reviewed. Every host that shares the store offers it again
    /// within moments; the event is that its list of tools has changed.
    pub async fn approve_pins(
        &self,
        review: &Review,
        subjects: &[Subject],
    ) -> Result<(), StoreError> {
        review.approve(&*self.0.options.store, subjects).await
    }

    /// Ends every connection in order and waits until all of them have ended.
    pub async fn shutdown(&self) {
        self.command(Command::Shutdown).await;
    }

    /// Who answers what servers ask.
    #[doc(hidden)]
    pub fn handler(&self) -> &Arc<dyn ClientHandler> {
        &self.0.options.handler
    }

    /// Waits until a server has been told of every call to it that was cancelled: by a notification, or by the end of the
    /// call's stream where that is how it is told. The error says why it was not.
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

    /// How often a call that takes long shows that it is alive.
    #[doc(hidden)]
    pub fn progress_interval(&self) -> Duration {
        self.0.options.settings.progress_interval
    }

    /// Ends every connection and returns as soon as all servers have been told, within some ten milliseconds: for a program
    /// that is about to end. Servers under a supervisor end by themselves in the background, in the same steps and times as
    /// with [`shutdown`](Self::shutdown), and the supervisor makes sure of it. Those without one are waited for no longer.
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

    /// The number of the next call.
    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.0.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.0.view.borrow())
    }

    /// Connects a server anew when somebody has logged in to it. It keeps no host alive, and ends when that can no longer
    /// happen.
    pub(crate) fn restart_after(&self, server: &ServerName, login: oneshot::Receiver<()>) {
        let commands = self.0.commands.downgrade();
        let gate = Arc::clone(&self.0.options.gate);
        let server = server.clone();
        tokio::spawn(async move {
            let succeeded = login.await.is_ok();
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

    /// The connection of a server, once it has one.
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

    /// Has a server connected that waits to be used. When it returns, the server does not wait any longer.
    async fn use_begins(&self, name: &ServerName) -> Result<(), ServerError> {
        let connecting = self.command(|done| Command::Connect(name.clone(), done));
        connecting.await.ok_or(ServerError::ShuttingDown)
    }

    /// The calls under way.
    pub(crate) fn under_way(&self) -> &UnderWay {
        &self.0.under_way
    }

    /// A connection of the server that is newer than this one, if it comes in time.
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
                // It was ended just when it was wanted.
                self.use_begins(name).await.ok()?;
            }
        };
        let view = timeout(patience, newer).await.ok()??;
        let live = view.live.get(name)?;
        (live.generation > generation).then(|| live.clone())
    }

    /// The server's connection, once its tools have been listed again.
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

/// The tools of a server by its rules.
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

/// Whether a server is to be connected when it is first used.
pub(crate) fn waits_for_first_use(status: &ServerStatus) -> bool {
    matches!(
        status.state,
        ServerState::Lazy {
            until: StartsOn::FirstUse
        }
    )
}

/// Why a server cannot be used, unless it can.
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
