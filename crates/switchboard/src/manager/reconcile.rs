//! Reconciles the managed servers with the desired ones: adds, updates and removes.
//!
//! A server whose entry has not changed is not touched. A removed one leaves only its name, for the error of calls to
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use super::summary::is_eager;
use super::{ConnectionState, Managed, Manager};
use crate::desired::{ChangeKind, Desired, ServerChange, WithheldServer};
use crate::events::Event;
use crate::names::{Generation, ServerName};
use crate::peer::ListKind;
use crate::spec::ServerSpec;
use crate::status::{DisabledBy, ServerState};

impl Manager {
    /// Adds the initial servers of the host without starting them.
    pub(super) fn hold(&mut self, desired: Desired) {
        for spec in desired.servers {
            let mut managed = Managed::new(Arc::new(spec), self.resources.settings.idle_shutdown);
            if !managed.is_enabled() {
                managed.state = ConnectionState::Disabled;
            }
            self.servers.insert(managed.spec.name.clone(), managed);
        }
        self.withhold(desired.withheld);
        self.publish();
    }

    /// Applies the desired servers, touching only those that differ, and starts those not started yet. Returns the
    /// changes.
    pub(super) async fn reconcile(&mut self, desired: Desired) -> Vec<ServerChange> {
        let changes = self.changes(&desired);
        let wanted: BTreeSet<&ServerName> = desired.servers.iter().map(|spec| &spec.name).collect();
        let withheld: BTreeSet<&ServerName> =
            desired.withheld.iter().map(|server| &server.name).collect();
        let known = self.servers.keys().chain(self.withheld.keys());
        let gone: Vec<ServerName> = known
            .filter(|name| !wanted.contains(*name))
            .cloned()
            .collect();
        let mut removed = Vec::new();
        for name in gone {
            self.remove(&name);
            if !withheld.contains(&name) {
                removed.push(name);
            }
        }
        for name in wanted.into_iter().chain(withheld) {
            self.removed.remove(name);
        }
        let new_states = self.withhold(desired.withheld);
        self.removed.extend(removed.iter().cloned());
        self.begin_startup(desired.servers.iter());
        for spec in desired.servers {
            self.put(spec).await;
        }
        self.admit_refused().await;
        self.publish();
        for server in removed {
            self.resources.events.send(Event::Removed { server });
        }
        for (server, state) in new_states {
            self.resources
                .events
                .send(Event::StateChanged { server, state });
        }
        self.check_startup();
        changes
    }

    /// Starts these servers, or all of them. Started ones are left alone.
    pub(super) async fn start(&mut self, names: Option<&[ServerName]>) {
        let is_meant = |managed: &&Managed| {
            matches!(managed.state, ConnectionState::Held)
                && names.is_none_or(|names| names.contains(&managed.spec.name))
        };
        let held = self.servers.values().filter(is_meant);
        let held: Vec<Arc<ServerSpec>> = held.map(|managed| Arc::clone(&managed.spec)).collect();
        self.begin_startup(held.iter().map(|spec| &**spec));
        for spec in held {
            self.begin(&spec.name).await;
        }
        self.publish();
        self.check_startup();
    }

    /// Records the servers that startup waits for, when the first ones are started.
    fn begin_startup<'s>(&mut self, specs: impl Iterator<Item = &'s ServerSpec>) {
        let is_idle = |managed: &Managed| {
            matches!(
                managed.state,
                ConnectionState::Held | ConnectionState::Disabled
            )
        };
        if self.starting.is_none() && self.servers.values().all(is_idle) {
            let eager = specs.filter(|spec| spec.enabled && is_eager(spec));
            self.starting = Some(eager.map(|spec| spec.name.clone()).collect());
        }
    }

    /// The changes that a desired state makes, removals first.
    fn changes(&self, desired: &Desired) -> Vec<ServerChange> {
        let is_on = |spec: &&ServerSpec| spec.enabled;
        let now = |name: &ServerName| {
            let mut specs = desired.servers.iter().filter(is_on);
            specs.find(|spec| spec.name == *name)
        };
        let before = |name: &ServerName| {
            let managed = self.servers.get(name);
            managed.map(|managed| &*managed.spec).filter(is_on)
        };
        let change = |name: &ServerName, kind| ServerChange {
            server: name.clone(),
            kind,
        };
        let mut changes = Vec::new();
        for managed in self.servers.values() {
            let name = &managed.spec.name;
            if !managed.spec.enabled || now(name).is_some() {
                continue;
            }
            let mut withheld = desired.withheld.iter();
            let kind = match withheld.find(|server| server.name == *name) {
                Some(server) => ChangeKind::Withheld(server.state.clone()),
                None if desired.servers.iter().any(|spec| spec.name == *name) => {
                    ChangeKind::Withheld(ServerState::Disabled {
                        by: DisabledBy::Entry,
                    })
                }
                None => ChangeKind::Removed,
            };
            changes.push(change(name, kind));
        }
        for spec in desired.servers.iter().filter(is_on) {
            match before(&spec.name) {
                None => changes.push(change(&spec.name, ChangeKind::Added)),
                Some(known) if known.key != spec.key => {
                    changes.push(change(&spec.name, ChangeKind::Restarted));
                }
                Some(_) => {}
            }
        }
        changes
    }

    /// Replaces the servers that are not started, and returns those whose state changed. If only the details of a state
    /// changed, its time stays.
    fn withhold(&mut self, servers: Vec<WithheldServer>) -> Vec<(ServerName, ServerState)> {
        let before = std::mem::take(&mut self.withheld);
        let mut changed = Vec::new();
        for server in servers {
            let same = before
                .get(&server.name)
                .filter(|(known, _)| known.state.word() == server.state.word());
            if same.is_none() {
                changed.push((server.name.clone(), server.state.clone()));
            }
            let since = same.map_or_else(SystemTime::now, |(_, since)| *since);
            self.withheld.insert(server.name.clone(), (server, since));
        }
        changed
    }

    /// Adds or updates a server, and starts it.
    pub(super) async fn put(&mut self, mut spec: ServerSpec) {
        let name = spec.name.clone();
        // Running requests still count, unless their limits are new.
        if let Some(managed) = self.servers.get(&name)
            && managed.spec.load.limits() == spec.load.limits()
        {
            spec.load = Arc::clone(&managed.spec.load);
        }
        let spec = Arc::new(spec);
        let default_idle = self.resources.settings.idle_shutdown;
        if let Some(managed) = self.servers.get_mut(&name) {
            let was_enabled = managed.is_enabled();
            if managed.spec.enabled != spec.enabled {
                managed.switched = None;
            }
            let same_link = managed.spec.key == spec.key;
            if !same_link || managed.spec.sharing != spec.sharing {
                managed.clients = None;
            }
            managed.spec = Arc::clone(&spec);
            // The link does not depend on the rest, but the offered tools may.
            let new_rules = managed.rules.send_if_modified(|rules| {
                let differ = *rules != spec.rules;
                rules.clone_from(&spec.rules);
                differ
            });
            let idle_shutdown = spec.idle_shutdown.or(default_idle);
            managed.idle_shutdown.send_if_modified(|limit| {
                let differ = *limit != idle_shutdown;
                *limit = idle_shutdown;
                differ
            });
            managed.sandbox.send_if_modified(|sandbox| {
                let differ = *sandbox != spec.sandbox;
                sandbox.clone_from(&spec.sandbox);
                differ
            });
            // An offer made under other rules or another link is outdated until the server is connected again.
            let is_outdated = (new_rules || !same_link) && managed.state.forget_kept();
            let is_started = !matches!(managed.state, ConnectionState::Held);
            if is_started && same_link && managed.is_enabled() == was_enabled && !is_outdated {
                return;
            }
        } else {
            self.servers
                .insert(name.clone(), Managed::new(spec, default_idle));
        }
        self.begin(&name).await;
    }

    /// Sets the initial state of a server.
    pub(super) async fn begin(&mut self, name: &ServerName) {
        let Some(managed) = self.servers.get(name) else {
            return;
        };
        let spec = Arc::clone(&managed.spec);
        if !managed.is_enabled() {
            self.names.remove(name);
            self.set_state(name, ConnectionState::Disabled, None);
        } else if !self.admit(name) {
            // `admit` has set the state.
        } else if self.resources.memory.needs_auth(spec.key).await == Some(true) {
            self.set_state(name, ConnectionState::needs_auth(name), None);
            self.expect_login(name, true);
        } else if is_eager(&spec) {
            self.connect(name, 0, Duration::ZERO);
        } else {
            self.set_state(name, ConnectionState::Lazy, None);
        }
    }

    pub(super) fn remove(&mut self, name: &ServerName) -> bool {
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

    pub(super) async fn set_enabled(&mut self, name: &ServerName, enabled: bool) -> bool {
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
}

impl Managed {
    /// A server that has not been started.
    fn new(spec: Arc<ServerSpec>, default_idle: Option<Duration>) -> Self {
        Self {
            state: ConnectionState::Held,
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
            clients: None,
            idle_shutdown: watch::Sender::new(spec.idle_shutdown.or(default_idle)),
            switched: None,
            expects_login: false,
            wants_login: false,
            spec,
        }
    }
}
