//! The one owner of all servers' states.
//!
//! Owns the map from names to states and the snapshot everybody else reads. Commands and reports come in, states and
//! events go out; [`Manager::set_state`] is the only place that writes a state. A state's variant owns that state's
//! task, so leaving a state ends it. What a task of an earlier connection reports is dropped by its generation.
//! Calls never pass through here.

pub(crate) mod backoff;
pub(crate) mod connection;
mod idle;
mod install;
pub(crate) mod lists;
pub(crate) mod login;
mod names;
mod startup;
mod summary;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::catalog::impersonation::KnownServers;
use crate::catalog::{ServerTools, ToolRules};
use crate::events::{Event, Events};
use crate::handler::ClientHandler;
use crate::logs::LogRing;
use crate::memory::Memory;
use crate::names::{Generation, ServerName};
use crate::options::HostSettings;
use crate::peer::{ListKind, Peer};
use crate::sandbox;
use crate::spec::ServerSpec;
use crate::status::{Cause, Failure, State};
use connection::{Connection, Established, Signals};
use idle::Kept;
use lists::Lists;
use summary::is_eager;

pub(crate) use view::{Live, View};

/// What a connection's task reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// It has left the queue.
    Begun,
    /// It is connected.
    Established(Box<Established>),
    /// It could not be connected.
    Failed(Box<Failure>),
    /// It was connected and is no longer.
    Lost(Failure),
    /// Nobody has used it for so long that it was ended.
    Unused,
    /// Its tools have been listed again.
    Tools(Arc<ServerTools>),
    /// One of its other lists has changed.
    ListChanged(ListKind),
    /// It answered a probe.
    Probed(Duration),
    /// Its package runner is installing it, or no longer is.
    Installing(bool),
}

/// What the host asks of the manager. A reply means that the change has been made, not that servers have settled.
#[derive(Debug)]
pub(crate) enum Command {
    /// These servers, and no others.
    Apply(Vec<ServerSpec>, oneshot::Sender<()>),
    /// This server too, in place of one of the same name.
    Add(Box<ServerSpec>, oneshot::Sender<()>),
    /// Not this server any longer.
    Remove(ServerName, oneshot::Sender<bool>),
    /// This server on or off.
    SetEnabled(ServerName, bool, oneshot::Sender<bool>),
    /// This server anew, whatever its state.
    Restart(ServerName, oneshot::Sender<bool>),
    /// This server, if it waits to be used.
    Connect(ServerName, oneshot::Sender<()>),
    /// This server's tools are to be listed again.
    Refresh(ServerName),
    /// A call has met with trouble on this connection.
    Trouble(ServerName, Generation, Trouble),
    /// Every connection is to be probed.
    ProbeAll,
    /// A resource is to be watched, or not any longer.
    Subscribe(ServerName, String, bool, oneshot::Sender<bool>),
    /// The end.
    Shutdown(oneshot::Sender<()>),
    /// The end of a program that does not wait for its servers.
    Leave(oneshot::Sender<()>),
    /// No more attempts to connect what has failed before.
    GiveUp(oneshot::Sender<()>),
}

/// What a call has met with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server may be gone.
    Suspect,
    /// The session is gone.
    SessionExpired,
    /// The server requires a login.
    Unauthorized,
}

/// What the manager works with.
pub(crate) struct Resources {
    pub(crate) settings: Arc<HostSettings>,
    pub(crate) memory: Memory,
    pub(crate) handler: Arc<dyn ClientHandler>,
    pub(crate) events: Events,
}

pub(crate) struct Manager {
    resources: Resources,
    servers: BTreeMap<ServerName, Managed>,
    /// The names of the servers that are switched on and may be used.
    names: KnownServers,
    local_pool: Arc<Semaphore>,
    remote_pool: Arc<Semaphore>,
    view: watch::Sender<Arc<View>>,
    commands: mpsc::Receiver<Command>,
    reports: mpsc::Receiver<(ServerName, Generation, Report)>,
    report_to: mpsc::Sender<(ServerName, Generation, Report)>,
    /// Connections that are being ended in order.
    closing: JoinSet<()>,
    /// Servers that the start-up still waits for; `None` once it is over.
    starting: Option<BTreeSet<ServerName>>,
}

/// One server.
struct Managed {
    spec: Arc<ServerSpec>,
    /// Whether it was switched on or off at run time, until its configuration says otherwise.
    switched: Option<bool>,
    state: ConnectionState,
    since: SystemTime,
    generation: Generation,
    /// Attempts that have failed since the connection was last proven.
    attempts: u32,
    /// Whether it has been connected since it was last started by somebody: then it is tried again whatever the reason.
    was_connected: bool,
    /// Whether its package runner is at work.
    is_installing: bool,
    restarts: u32,
    failure: Option<Box<Failure>>,
    /// Whether a login will show in what is remembered.
    expects_login: bool,
    /// Whether it wanted a login and has not been connected since.
    wants_login: bool,
    logs: Arc<LogRing>,
    subscriptions: watch::Sender<Vec<String>>,
    /// Which tools are wanted, for the connection there is: it does not depend on them.
    rules: watch::Sender<ToolRules>,
    /// What it is told of its sandbox, likewise.
    sandbox: watch::Sender<sandbox::State>,
    /// How long it may rest, likewise.
    idle_shutdown: watch::Sender<Option<Duration>>,
}

/// A state with all that lives only as long as it does.
enum ConnectionState {
    /// Waits for its first use.
    Lazy,
    /// Was ended because nobody used it, and waits for its next use.
    Resting(Kept),
    /// Is being connected.
    Pending {
        _task: Task,
        /// What it offers meanwhile, if it rested.
        kept: Option<Kept>,
    },
    Connected(Box<ConnectedState>),
    Failed,
    /// Offers nothing but the way to log in.
    NeedsAuth(Arc<ServerTools>),
    Disabled,
}

struct ConnectedState {
    peer: Peer,
    lists: Arc<Lists>,
    tools: Arc<ServerTools>,
    signals: Arc<Signals>,
    since: Instant,
    startup: Duration,
    latency: Duration,
    _task: Task,
}

/// A task that ends with its state.
struct Task {
    handle: AbortHandle,
    signals: Arc<Signals>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// What to do next. Everything the manager waits for is one of these.
enum Turn {
    Command(Option<Command>),
    Report(ServerName, Generation, Report),
    Tick,
}

/// How long telling servers that a program ends may take.
const LEAVING: Duration = Duration::from_millis(30);
/// How often the clocks are compared, and logins looked for.
const TICK: Duration = Duration::from_secs(5);
/// How far they may drift apart before the machine counts as having slept.
const SLEPT: Duration = Duration::from_secs(10);

impl Manager {
    /// A manager and its handles. It works while [`run`](Self::run) does.
    pub(crate) fn new(
        resources: Resources,
    ) -> (Self, mpsc::Sender<Command>, watch::Receiver<Arc<View>>) {
        let (command_sender, commands) = mpsc::channel(64);
        let (report_to, reports) = mpsc::channel(256);
        let (view, view_receiver) = watch::channel(Arc::default());
        let settings = &resources.settings;
        let manager = Self {
            local_pool: Arc::new(Semaphore::new(settings.local_connections.max(1))),
            remote_pool: Arc::new(Semaphore::new(settings.remote_connections.max(1))),
            resources,
            servers: BTreeMap::new(),
            names: KnownServers::default(),
            view,
            commands,
            reports,
            report_to,
            closing: JoinSet::new(),
            starting: None,
        };
        (manager, command_sender, view_receiver)
    }

    pub(crate) async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut clocks = (Instant::now(), SystemTime::now());
        loop {
            let turn = tokio::select! {
                command = self.commands.recv() => Turn::Command(command),
                Some((server, generation, report)) = self.reports.recv() => Turn::Report(server, generation, report),
                _ = ticks.tick() => Turn::Tick,
                Some(_) = self.closing.join_next(), if !self.closing.is_empty() => continue,
            };
            match turn {
                Turn::Command(None) => return self.shut_down().await,
                Turn::Command(Some(Command::Shutdown(done))) => {
                    self.shut_down().await;
                    let _ = done.send(());
                    return;
                }
                Turn::Command(Some(Command::Leave(done))) => {
                    self.leave().await;
                    let _ = done.send(());
                    return;
                }
                Turn::Command(Some(command)) => self.command(command).await,
                Turn::Report(server, generation, report) => {
                    self.report(&server, generation, report).await;
                }
                Turn::Tick => {
                    let now = (Instant::now(), SystemTime::now());
                    let lived = now.0.duration_since(clocks.0);
                    let passed = now.1.duration_since(clocks.1).unwrap_or_default();
                    clocks = now;
                    if passed > lived + SLEPT {
                        tracing::info!(
                            ?passed,
                            "the machine has slept; every connection is probed"
                        );
                        self.wake();
                    }
                    self.look_for_logins().await;
                }
            }
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Apply(specs, done) => {
                self.apply(specs).await;
                let _ = done.send(());
            }
            Command::Add(spec, done) => {
                self.put(*spec).await;
                self.publish();
                let _ = done.send(());
            }
            Command::Remove(name, done) => {
                let existed = self.remove(&name);
                self.admit_refused().await;
                self.publish();
                self.check_startup();
                let _ = done.send(existed);
            }
            Command::SetEnabled(name, enabled, done) => {
                let _ = done.send(self.set_enabled(&name, enabled).await);
            }
            Command::Restart(name, done) => {
                let managed = self.servers.get(&name);
                let exists = managed.is_some();
                // What is switched off stays off until it is switched on.
                if managed.is_some_and(Managed::is_enabled) {
                    self.forget_needs_auth(&name).await;
                    self.forget_revision(&name).await;
                    self.connect(&name, 0, Duration::ZERO);
                }
                let _ = done.send(exists);
            }
            Command::Connect(name, done) => {
                self.use_begins(&name);
                let _ = done.send(());
            }
            Command::Trouble(name, generation, trouble) => {
                self.trouble(&name, generation, trouble).await;
            }
            Command::Refresh(name) => {
                let managed = self.servers.get(&name).map(|managed| &managed.state);
                if let Some(ConnectionState::Connected(connected)) = managed {
                    connected.signals.refresh(ListKind::Tools);
                }
            }
            Command::ProbeAll => self.wake(),
            Command::Subscribe(name, uri, wanted, done) => {
                let known = self.servers.get(&name).map(|managed| {
                    managed.subscriptions.send_modify(|uris| {
                        uris.retain(|known| *known != uri);
                        if wanted {
                            uris.push(uri);
                        }
                    });
                });
                let rests = |managed: &Managed| managed.state.kept().is_some();
                if wanted && self.servers.get(&name).is_some_and(rests) {
                    self.use_begins(&name);
                }
                let _ = done.send(known.is_some());
            }
            Command::GiveUp(done) => {
                self.give_up();
                let _ = done.send(());
            }
            Command::Shutdown(done) | Command::Leave(done) => drop(done),
        }
    }

    /// Makes the servers what they are wanted to be, touching only those that differ.
    async fn apply(&mut self, specs: Vec<ServerSpec>) {
        let wanted: BTreeSet<ServerName> = specs.iter().map(|spec| spec.name.clone()).collect();
        let gone: Vec<ServerName> = self
            .servers
            .keys()
            .filter(|name| !wanted.contains(*name))
            .cloned()
            .collect();
        for name in &gone {
            self.remove(name);
        }
        if self.starting.is_none() && self.servers.is_empty() {
            self.starting = Some(
                specs
                    .iter()
                    .filter(|spec| spec.enabled && is_eager(spec))
                    .map(|spec| spec.name.clone())
                    .collect(),
            );
        }
        for spec in specs {
            self.put(spec).await;
        }
        self.admit_refused().await;
        self.publish();
        self.check_startup();
    }

    /// Takes in a server, or what has changed about it.
    async fn put(&mut self, spec: ServerSpec) {
        let name = spec.name.clone();
        let spec = Arc::new(spec);
        if let Some(managed) = self.servers.get_mut(&name) {
            let was_enabled = managed.is_enabled();
            if managed.spec.enabled != spec.enabled {
                managed.switched = None;
            }
            let same_link = managed.spec.key == spec.key;
            managed.spec = Arc::clone(&spec);
            // The link does not depend on the rest; which tools are offered may.
            let new_rules = managed.rules.send_if_modified(|rules| {
                let differ = *rules != spec.rules;
                rules.clone_from(&spec.rules);
                differ
            });
            managed.idle_shutdown.send_if_modified(|limit| {
                let differ = *limit != spec.idle_shutdown;
                *limit = spec.idle_shutdown;
                differ
            });
            managed.sandbox.send_if_modified(|sandbox| {
                let differ = *sandbox != spec.sandbox;
                sandbox.clone_from(&spec.sandbox);
                differ
            });
            // What it offers by other rules, or was, is for a connection to say.
            let is_outdated = (new_rules || !same_link) && managed.state.forget_kept();
            if same_link && managed.is_enabled() == was_enabled && !is_outdated {
                return;
            }
        } else {
            let managed = Managed {
                spec: Arc::clone(&spec),
                state: ConnectionState::Lazy,
                since: SystemTime::now(),
                generation: Generation::default(),
                attempts: 0,
                was_connected: false,
                is_installing: false,
                restarts: 0,
                failure: None,
                logs: Arc::default(),
                subscriptions: watch::Sender::new(Vec::new()),
                rules: watch::Sender::new(spec.rules.clone()),
                sandbox: watch::Sender::new(spec.sandbox.clone()),
                idle_shutdown: watch::Sender::new(spec.idle_shutdown),
                switched: None,
                expects_login: false,
                wants_login: false,
            };
            self.servers.insert(name.clone(), managed);
        }
        self.begin(&name).await;
    }

    /// Brings a server into the state that it begins in.
    async fn begin(&mut self, name: &ServerName) {
        let Some(managed) = self.servers.get(name) else {
            return;
        };
        let spec = Arc::clone(&managed.spec);
        if !managed.is_enabled() {
            self.names.remove(name);
            self.set_state(name, ConnectionState::Disabled, None);
        } else if !self.admit(name) {
            // The state says why.
        } else if self.resources.memory.needs_auth(spec.key).await == Some(true) {
            self.set_state(name, ConnectionState::needs_auth(name), None);
            self.expect_login(name, true);
        } else if is_eager(&spec) {
            self.connect(name, 0, Duration::ZERO);
        } else {
            self.set_state(name, ConnectionState::Lazy, None);
        }
    }

    fn remove(&mut self, name: &ServerName) -> bool {
        let Some(managed) = self.servers.remove(name) else {
            return false;
        };
        self.names.remove(name);
        self.end(managed.state);
        if let Some(starting) = &mut self.starting {
            starting.remove(name);
        }
        self.resources.events.send(Event::CatalogChanged {
            server: name.clone(),
            list: ListKind::Tools,
        });
        true
    }

    async fn set_enabled(&mut self, name: &ServerName, enabled: bool) -> bool {
        let Some(managed) = self.servers.get_mut(name) else {
            return false;
        };
        let was_enabled = managed.is_enabled();
        managed.switched = Some(enabled);
        if was_enabled != enabled {
            self.begin(name).await;
            self.admit_refused().await;
        }
        true
    }

    /// Begins a connection that was lost anew, after the wait that belongs to the attempt.
    fn connect_again(&mut self, name: &ServerName, attempt: u32) {
        let backoff = &self.resources.settings.backoff;
        let delay = backoff.before_attempt(attempt.saturating_sub(1));
        self.connect(name, attempt, delay);
    }

    /// Begins a connection, after so many attempts that have failed in a row. With none, somebody wants it.
    fn connect(&mut self, name: &ServerName, attempt: u32, delay: Duration) {
        if !self.admit(name) {
            return;
        }
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        managed.generation = managed.generation.next();
        managed.attempts = attempt;
        managed.was_connected &= attempt > 0;
        managed.is_installing = false;
        let signals = Arc::new(Signals::default());
        let transport = managed.spec.connector.transport();
        let connection = Connection {
            spec: Arc::clone(&managed.spec),
            generation: managed.generation,
            delay,
            settings: Arc::clone(&self.resources.settings),
            pool: if transport.is_local() {
                Arc::clone(&self.local_pool)
            } else {
                Arc::clone(&self.remote_pool)
            },
            memory: self.resources.memory.clone(),
            handler: Arc::clone(&self.resources.handler),
            events: self.resources.events.clone(),
            logs: Arc::clone(&managed.logs),
            signals: Arc::clone(&signals),
            subscriptions: managed.subscriptions.subscribe(),
            rules: managed.rules.subscribe(),
            sandbox: managed.sandbox.subscribe(),
            idle_shutdown: managed.idle_shutdown.subscribe(),
            reports: self.report_to.clone(),
            pins_wait: AtomicBool::new(false),
            pins_told: Mutex::default(),
            unexamined: Mutex::default(),
        };
        let handle = tokio::spawn(connection.run()).abort_handle();
        let failure = managed.failure.clone();
        let state = ConnectionState::Pending {
            _task: Task { handle, signals },
            kept: managed.state.kept().cloned(),
        };
        self.set_state(name, state, failure);
    }

    async fn report(&mut self, name: &ServerName, generation: Generation, report: Report) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        if managed.generation != generation {
            return;
        }
        match report {
            Report::Begun => {}
            Report::Established(established) => self.established(name, *established).await,
            Report::Failed(failure) => self.failed(name, failure).await,
            Report::Lost(failure) => self.lost(name, failure),
            Report::Unused => self.rest(name),
            Report::Tools(tools) => {
                if let ConnectionState::Connected(connected) = &mut managed.state {
                    connected.tools = tools;
                    self.publish();
                    self.list_changed(name, ListKind::Tools);
                }
            }
            Report::ListChanged(kind) => self.list_changed(name, kind),
            Report::Installing(is_installing) => {
                managed.is_installing = is_installing;
                self.publish();
            }
            Report::Probed(latency) => {
                if let ConnectionState::Connected(connected) = &mut managed.state {
                    connected.latency = latency;
                    self.publish();
                }
            }
        }
    }

    async fn established(&mut self, name: &ServerName, established: Established) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        // The task goes on under the new state.
        let old = std::mem::replace(&mut managed.state, ConnectionState::Lazy);
        let ConnectionState::Pending { _task: task, .. } = old else {
            managed.state = old;
            return;
        };
        let state = ConnectionState::Connected(Box::new(ConnectedState {
            peer: established.peer,
            lists: established.lists,
            tools: established.tools,
            signals: Arc::clone(&task.signals),
            since: Instant::now(),
            startup: established.startup,
            latency: established.latency,
            _task: task,
        }));
        let key = managed.spec.key;
        managed.was_connected = true;
        self.set_state(name, state, None);
        self.list_changed(name, ListKind::Tools);
        self.resources.memory.forget_needs_auth(key).await;
    }

    async fn failed(&mut self, name: &ServerName, mut failure: Box<Failure>) {
        let Some(managed) = self.servers.get(name) else {
            return;
        };
        let destination = managed.spec.connector.destination();
        if failure.cause == Cause::Unauthorized && destination.rejects_token_on_401() {
            failure.cause = Cause::TokenRejected;
            "the server rejects the token of its entry".clone_into(&mut failure.message);
            self.set_state(name, ConnectionState::Failed, Some(failure));
            return;
        }
        if failure.cause == Cause::Unauthorized {
            let (key, duration) = (managed.spec.key, self.resources.settings.needs_auth_memory);
            self.set_state(name, ConnectionState::needs_auth(name), Some(failure));
            let memory = &self.resources.memory;
            let is_noted = memory.remember_needs_auth(key, duration).await;
            // What is forgotten at once says nothing about a login.
            self.expect_login(name, is_noted && duration > TICK);
            return;
        }
        // What was there before may come back; what never was must have a reason that may pass.
        let attempts = managed.attempts;
        let transport = managed.spec.connector.transport();
        let is_retried = managed.was_connected || failure.may_pass(transport);
        if is_retried && attempts < self.resources.settings.reconnect_attempts {
            self.note_failure(name, failure);
            self.connect_again(name, attempts + 1);
        } else {
            self.set_state(name, ConnectionState::Failed, Some(failure));
        }
    }

    fn lost(&mut self, name: &ServerName, failure: Failure) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        let proven = match &managed.state {
            ConnectionState::Connected(connected) => {
                connected.since.elapsed() >= self.resources.settings.backoff.proven()
            }
            _ => false,
        };
        let attempts = if proven { 0 } else { managed.attempts };
        managed.restarts += 1;
        let failure = Box::new(failure);
        if attempts < self.resources.settings.reconnect_attempts {
            self.note_failure(name, failure);
            self.connect_again(name, attempts + 1);
        } else {
            self.set_state(name, ConnectionState::Failed, Some(failure));
        }
    }

    async fn trouble(&mut self, name: &ServerName, generation: Generation, trouble: Trouble) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        let ConnectionState::Connected(connected) = &managed.state else {
            return;
        };
        if managed.generation != generation {
            return;
        }
        match trouble {
            Trouble::Suspect => connected.signals.probe(),
            Trouble::SessionExpired => {
                managed.restarts += 1;
                // The server is there and wants a new session: no need to wait, but to try again if that fails.
                self.connect(name, 1, Duration::ZERO);
            }
            Trouble::Unauthorized => {
                let failure = Failure {
                    step: None,
                    cause: Cause::Unauthorized,
                    message: "the server no longer accepts the credentials".to_owned(),
                    stderr: Vec::new(),
                };
                self.failed(name, Box::new(failure)).await;
            }
        }
    }

    fn give_up(&mut self) {
        let retried = |managed: &Managed| {
            matches!(managed.state, ConnectionState::Pending { .. }) && managed.failure.is_some()
        };
        let names: Vec<ServerName> = self
            .servers
            .iter()
            .filter(|(_, managed)| retried(managed))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            if let Some(managed) = self.servers.get_mut(&name) {
                // What the attempt that is ended here reports does not count any longer.
                managed.generation = managed.generation.next();
                let failure = managed.failure.clone();
                self.set_state(&name, ConnectionState::Failed, failure);
            }
        }
    }

    /// After sleep, every connection may be dead, and what failed for want of a network may work.
    fn wake(&mut self) {
        let mut again = Vec::new();
        for (name, managed) in &self.servers {
            match &managed.state {
                ConnectionState::Connected(connected) => connected.signals.probe(),
                ConnectionState::Failed => {
                    let cause = managed.failure.as_ref().map(|failure| failure.cause);
                    if matches!(
                        cause,
                        Some(Cause::Transport(_) | Cause::Lost | Cause::Unavailable)
                    ) && !managed.spec.connector.transport().is_local()
                    {
                        again.push(name.clone());
                    }
                }
                _ => {}
            }
        }
        for name in again {
            self.connect(&name, 0, Duration::ZERO);
        }
    }

    async fn forget_revision(&self, name: &ServerName) {
        if let Some(managed) = self.servers.get(name) {
            let memory = &self.resources.memory;
            memory.forget_revision(managed.spec.key).await;
        }
    }

    async fn forget_needs_auth(&self, name: &ServerName) {
        if let Some(managed) = self.servers.get(name) {
            self.resources
                .memory
                .forget_needs_auth(managed.spec.key)
                .await;
        }
    }

    fn note_failure(&mut self, name: &ServerName, failure: Box<Failure>) {
        if let Some(managed) = self.servers.get_mut(name) {
            tracing::debug!(server = %name, attempt = managed.attempts, reason = failure.message, "connecting it failed; it is tried again");
            managed.failure = Some(failure);
        }
    }

    /// The only place where a state changes.
    fn set_state(
        &mut self,
        name: &ServerName,
        state: ConnectionState,
        failure: Option<Box<Failure>>,
    ) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        let old = std::mem::replace(&mut managed.state, state);
        let (before, now) = (old.kind(), managed.state.kind());
        tracing::debug!(server = %name, before = before.word(), now = now.word(), "a server has changed its state");
        managed.failure.clone_from(&failure);
        managed.since = SystemTime::now();
        self.end(old);
        self.publish();
        let server = name.clone();
        if before != now {
            self.resources.events.send(Event::StateChanged {
                server: server.clone(),
                state: now,
                failure,
            });
        }
        if now == State::NeedsAuth {
            self.resources.events.send(Event::AuthNeeded {
                server: server.clone(),
            });
        }
        self.note_login(name, now);
        if self.starting.is_some() {
            self.resources
                .events
                .send(Event::StartupUpdate { server, state: now });
        }
        self.check_startup();
    }

    /// Ends what a state held; a connection in order, and without anybody waiting for it.
    fn end(&mut self, state: ConnectionState) {
        if let ConnectionState::Connected(connected) = state {
            let peer = connected.peer.clone();
            drop(connected);
            self.closing.spawn(async move { peer.close().await });
        }
    }

    fn list_changed(&self, name: &ServerName, list: ListKind) {
        self.resources.events.send(Event::CatalogChanged {
            server: name.clone(),
            list,
        });
    }

    fn publish(&self) {
        let statuses = self.servers.values().map(Managed::status).collect();
        let live = self.servers.iter().filter_map(|(name, managed)| {
            let ConnectionState::Connected(connected) = &managed.state else {
                return None;
            };
            let live = Live {
                peer: connected.peer.clone(),
                lists: Arc::clone(&connected.lists),
                tools: Arc::clone(&connected.tools),
                spec: Arc::clone(&managed.spec),
                generation: managed.generation,
            };
            Some((name.clone(), live))
        });
        let logs = self
            .servers
            .iter()
            .map(|(name, managed)| (name.clone(), Arc::clone(&managed.logs)));
        let previous = self.view.borrow().clone();
        let offers = self
            .servers
            .iter()
            .filter_map(|(name, managed)| managed.state.offer(name));
        let view = View::new(
            statuses,
            live.collect(),
            offers.collect(),
            logs.collect(),
            &self.names,
            &previous,
        );
        self.view.send_replace(Arc::new(view));
    }

    /// Tells every server that it is over, and leaves the rest to the supervisor.
    async fn leave(mut self) {
        let mut leaving = JoinSet::new();
        for (_, managed) in std::mem::take(&mut self.servers) {
            if let ConnectionState::Connected(connected) = managed.state {
                let peer = connected.peer.clone();
                drop(connected);
                leaving.spawn(async move { peer.leave(LEAVING).await });
            }
        }
        self.publish();
        while leaving.join_next().await.is_some() {}
    }

    async fn shut_down(mut self) {
        for (_, managed) in std::mem::take(&mut self.servers) {
            self.end(managed.state);
        }
        self.publish();
        while self.closing.join_next().await.is_some() {}
    }
}
