//! The manager: the single owner of the states of all servers.
//!
//! Owns the map from names to states and publishes snapshots of it. Commands and reports come in, states and events go
//! out; [`Manager::set_state`] is the only place that writes a state. A state's variant owns that state's task, so
//! leaving the state stops the task. Reports of an earlier connection are dropped by their generation. Calls never pass
//! through here.

pub(crate) mod backoff;
pub(crate) mod connection;
mod idle;
mod install;
pub(crate) mod lists;
pub(crate) mod login;
mod names;
mod outcome;
mod reconcile;
mod startup;
mod summary;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_config::entry::Sharing;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::catalog::impersonation::KnownServers;
use crate::catalog::{ServerTools, ToolRules};
use crate::desired::{Desired, ServerChange, WithheldServer};
use crate::events::{Event, Events};
use crate::handler::ClientHandler;
use crate::logs::LogRing;
use crate::memory::Memory;
use crate::names::{Generation, ServerName};
use crate::options::HostSettings;
use crate::peer::{ListKind, OpenOptions, Peer};
use crate::sandbox;
use crate::sharing::{ClientConnections, ClientSettings, SharedConnections};
use crate::spec::ServerSpec;
use crate::status::{Failure, ServerState};
use connection::{Connection, Established, Signals, observer_of};
use idle::IdleOffer;
use lists::Lists;

pub(crate) use view::{Live, View};

/// Report of a connection's task.
#[derive(Debug)]
pub(crate) enum Report {
    Begun,
    Established(Box<Established>),
    Failed(Box<Failure>),
    /// It was connected and the connection was lost.
    Lost(Failure),
    /// It was stopped after its idle timeout.
    Unused,
    /// Its tools were listed again, or their rules were applied again.
    Tools {
        tools: Arc<ServerTools>,
        /// Notified once the catalog has the tools.
        waiting: Vec<oneshot::Sender<()>>,
    },
    /// Another of its lists has changed.
    ListChanged(ListKind),
    /// It answered a probe, after this time.
    Probed(Duration),
    /// Its package runner has started or finished an installation.
    Installing(bool),
}

/// Request of the host to the manager. A reply means that the change is applied, not that servers have settled.
#[derive(Debug)]
pub(crate) enum Command {
    /// Sets the complete list of servers.
    Reconcile(Desired, oneshot::Sender<Vec<ServerChange>>),
    /// Starts these servers, or all, unless already started.
    Start(Option<Vec<ServerName>>, oneshot::Sender<()>),
    /// Adds a server, replacing one of the same name.
    Add(Box<ServerSpec>, oneshot::Sender<()>),
    Remove(ServerName, oneshot::Sender<bool>),
    SetEnabled(ServerName, bool, oneshot::Sender<bool>),
    /// Reconnects a server, whatever its state.
    Restart(ServerName, oneshot::Sender<bool>),
    /// Connects a server that waits for its first or next use.
    Connect(ServerName, oneshot::Sender<()>),
    /// Lists a server's tools again, unless they were listed just before.
    Refresh(ServerName),
    /// Lists a connected server's tools at once. The reply means that the catalog has them.
    ListTools(ServerName, oneshot::Sender<()>),
    /// Reports a problem that a call had with this connection.
    Trouble(ServerName, Generation, Trouble),
    ProbeAll,
    /// Subscribes to a resource (`true`) or unsubscribes (`false`).
    Subscribe(ServerName, String, bool, oneshot::Sender<bool>),
    Shutdown(oneshot::Sender<()>),
    /// Exits without waiting for the servers to end.
    Leave(oneshot::Sender<()>),
    /// Stops retrying servers that have failed.
    GiveUp(oneshot::Sender<()>),
}

/// Problem that a call had with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server may be gone.
    Suspect,
    SessionExpired,
    Unauthorized,
}

pub(crate) struct Resources {
    pub(crate) settings: Arc<HostSettings>,
    pub(crate) memory: Memory,
    pub(crate) handler: Arc<dyn ClientHandler>,
    pub(crate) events: Events,
    /// Connections shared with other hosts; `None`: the host has one client.
    pub(crate) shared: Option<SharedConnections>,
}

pub(crate) struct Manager {
    resources: Resources,
    servers: BTreeMap<ServerName, Managed>,
    /// Servers that are configured but not started, and since when.
    withheld: BTreeMap<ServerName, (WithheldServer, SystemTime)>,
    /// Names of removed servers, for the error of a call to one.
    removed: BTreeSet<ServerName>,
    /// Names of the enabled servers, for name conflicts.
    names: KnownServers,
    local_pool: Arc<Semaphore>,
    remote_pool: Arc<Semaphore>,
    view: watch::Sender<Arc<View>>,
    commands: mpsc::Receiver<Command>,
    reports: mpsc::Receiver<(ServerName, Generation, Report)>,
    report_to: mpsc::Sender<(ServerName, Generation, Report)>,
    /// Connections being closed in order.
    closing: JoinSet<()>,
    /// Servers that startup still waits for; `None` once it is complete.
    starting: Option<BTreeSet<ServerName>>,
}

/// One server.
struct Managed {
    spec: Arc<ServerSpec>,
    /// Enabled or disabled at run time, until the configuration changes it.
    switched: Option<bool>,
    state: ConnectionState,
    since: SystemTime,
    generation: Generation,
    /// Failed attempts since the connection last proved stable.
    attempts: u32,
    /// Whether it was connected since its last explicit start: then any failure is retried.
    was_connected: bool,
    /// Whether its package runner is installing.
    is_installing: bool,
    restarts: u32,
    failure: Option<Box<Failure>>,
    /// Whether a login will clear the stored `needs_auth` flag.
    expects_login: bool,
    /// Whether it required a login and has not been connected since.
    wants_login: bool,
    logs: Arc<LogRing>,
    subscriptions: watch::Sender<Vec<String>>,
    /// Tool rules, passed to the open connection, which does not depend on them.
    rules: watch::Sender<ToolRules>,
    /// Sandbox state reported to the server, passed on likewise.
    sandbox: watch::Sender<sandbox::SandboxState>,
    /// Connections of single clients; `None` until the first connection, or if the host has one client.
    clients: Option<Arc<ClientConnections>>,
    /// Idle timeout, passed on likewise.
    idle_shutdown: watch::Sender<Option<Duration>>,
}

/// A state with everything that lives only as long as it does.
enum ConnectionState {
    Held,
    /// Waits for its first use.
    Lazy,
    /// Stopped after its idle timeout; waits for its next use.
    Resting(IdleOffer),
    Pending {
        _task: Task,
        /// Its offer meanwhile, if it was idle before.
        kept: Option<IdleOffer>,
    },
    Connected(Box<ConnectedState>),
    Failed,
    /// Offers only the `authenticate` tool.
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

/// A task that is aborted when its state ends.
struct Task {
    handle: AbortHandle,
    signals: Arc<Signals>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

enum Turn {
    Command(Option<Command>),
    Report(ServerName, Generation, Report),
    Tick,
}

/// How long notifying servers may take when the program exits.
const LEAVING: Duration = Duration::from_millis(30);
/// Interval for comparing the clocks and for detecting logins.
const TICK: Duration = Duration::from_secs(5);
/// Clock drift above which the machine counts as having been suspended.
const SLEPT: Duration = Duration::from_secs(10);

impl Manager {
    /// Creates a manager and its handles. Nothing happens until [`run`](Self::run) is polled.
    pub(crate) fn new(
        resources: Resources,
        desired: Desired,
    ) -> (Self, mpsc::Sender<Command>, watch::Receiver<Arc<View>>) {
        let (command_sender, commands) = mpsc::channel(64);
        let (report_to, reports) = mpsc::channel(256);
        let (view, view_receiver) = watch::channel(Arc::default());
        let settings = &resources.settings;
        let mut manager = Self {
            local_pool: Arc::new(Semaphore::new(settings.local_connections.max(1))),
            remote_pool: Arc::new(Semaphore::new(settings.remote_connections.max(1))),
            resources,
            servers: BTreeMap::new(),
            withheld: BTreeMap::new(),
            removed: BTreeSet::new(),
            names: KnownServers::default(),
            view,
            commands,
            reports,
            report_to,
            closing: JoinSet::new(),
            starting: None,
        };
        manager.hold(desired);
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
                            "the machine was suspended; probing every connection"
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
            Command::Reconcile(desired, done) => {
                let _ = done.send(self.reconcile(desired).await);
            }
            Command::Start(names, done) => {
                self.start(names.as_deref()).await;
                let _ = done.send(());
            }
            Command::Add(spec, done) => {
                self.removed.remove(&spec.name);
                self.withheld.remove(&spec.name);
                self.put(*spec).await;
                self.publish();
                let _ = done.send(());
            }
            Command::Remove(name, done) => {
                let existed = self.remove(&name);
                let was_withheld = self.withheld.remove(&name).is_some();
                if existed || was_withheld {
                    self.removed.insert(name.clone());
                }
                self.admit_refused().await;
                self.publish();
                self.check_startup();
                if existed || was_withheld {
                    let server = name;
                    self.resources.events.send(Event::Removed { server });
                }
                let _ = done.send(existed || was_withheld);
            }
            Command::SetEnabled(name, enabled, done) => {
                let _ = done.send(self.set_enabled(&name, enabled).await);
            }
            Command::Restart(name, done) => {
                let managed = self.servers.get(&name);
                let exists = managed.is_some();
                // A disabled server stays disabled until it is enabled.
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
            Command::ListTools(name, done) => {
                let managed = self.servers.get(&name).map(|managed| &managed.state);
                if let Some(ConnectionState::Connected(connected)) = managed {
                    connected.signals.list_tools(done);
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

    /// Reconnects after a lost connection, with the backoff for the attempt.
    fn connect_again(&mut self, name: &ServerName, attempt: u32) {
        let backoff = &self.resources.settings.backoff;
        let delay = backoff.before_attempt(attempt.saturating_sub(1));
        self.connect(name, attempt, delay);
    }

    /// Starts connecting, after `attempt` failures in a row. Zero means an explicit request.
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
        if let ConnectionState::Connected(connected) = &managed.state {
            // The new connection must not be the same one.
            connected.peer.give_up();
        }
        if self.resources.shared.is_some() && managed.clients.is_none() {
            managed.clients = Some(Arc::new(client_connections(managed, &self.resources)));
        }
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
            shared: self.resources.shared.clone(),
            clients: managed.clients.clone(),
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

    /// The only place that changes a state.
    fn set_state(
        &mut self,
        name: &ServerName,
        state: ConnectionState,
        failure: Option<Box<Failure>>,
    ) {
        let Some(managed) = self.servers.get_mut(name) else {
            return;
        };
        let before = managed.server_state();
        let old = std::mem::replace(&mut managed.state, state);
        managed.failure = failure;
        managed.since = SystemTime::now();
        let now = managed.server_state();
        tracing::debug!(server = %name, before = before.word(), now = now.word(), "a server has changed its state");
        // The first connection attempt of a server is not reported; its outcome is.
        let is_start = matches!(old, ConnectionState::Held) && !now.is_settled();
        let is_news = !is_start && discriminant(&before) != discriminant(&now);
        self.end(old);
        self.publish();
        let server = name.clone();
        if is_news {
            self.resources.events.send(Event::StateChanged {
                server: server.clone(),
                state: now.clone(),
            });
        }
        if matches!(now, ServerState::NeedsAuth { .. }) {
            self.resources.events.send(Event::AuthNeeded {
                server: server.clone(),
            });
        }
        self.note_login(name, &now);
        if self.starting.is_some() {
            self.resources
                .events
                .send(Event::StartupUpdate { server, state: now });
        }
        self.check_startup();
    }

    /// Ends what a state owned. A connection is closed in order, in the background.
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
                clients: managed.clients.clone(),
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
        let mut view = View::new(
            statuses,
            live.collect(),
            offers.collect(),
            logs.collect(),
            &self.names,
            &previous,
        );
        let withheld = self.withheld.values();
        view.add_withheld(withheld.map(|(server, since)| summary::withheld(server, *since)));
        let specs = self.servers.values();
        view.specs = specs.map(|managed| Arc::clone(&managed.spec)).collect();
        view.removed.clone_from(&self.removed);
        self.view.send_replace(Arc::new(view));
    }

    /// Notifies every server that the program exits; the supervisor does the rest.
    async fn leave(mut self) {
        let mut leaving = JoinSet::new();
        for (_, managed) in std::mem::take(&mut self.servers) {
            if let ConnectionState::Connected(connected) = managed.state {
                let peer = connected.peer.clone();
                drop(connected);
                leaving.spawn(async move { peer.leave(LEAVING).await });
            }
        }
        self.withheld.clear();
        self.publish();
        while leaving.join_next().await.is_some() {}
    }

    async fn shut_down(mut self) {
        for (_, managed) in std::mem::take(&mut self.servers) {
            self.end(managed.state);
        }
        self.withheld.clear();
        self.publish();
        while self.closing.join_next().await.is_some() {}
    }
}

/// The connections of single clients of a server.
fn client_connections(managed: &Managed, resources: &Resources) -> ClientConnections {
    let spec = Arc::clone(&managed.spec);
    let settings = &resources.settings;
    let is_bound = spec.sharing == Sharing::Never;
    let settings = ClientSettings {
        options: OpenOptions {
            limits: settings.limits,
            ..settings.open.clone()
        },
        observer: Arc::new(observer_of(
            &spec,
            resources.events.clone(),
            Arc::clone(&managed.logs),
        )),
        handler: Arc::clone(&resources.handler),
        idle: spec.idle_shutdown.or(settings.idle_shutdown),
        spec,
    };
    ClientConnections::new(settings, is_bound)
}
