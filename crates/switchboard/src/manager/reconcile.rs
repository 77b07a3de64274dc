//! From the desired servers to the managed ones: what is new, what differs, what is gone.
//!
//! A server whose entry has not changed is not touched. One that is gone leaves nothing but its name, for calls to it.

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
    /// Takes in the servers that the host begins with, without starting any.
    pub(super) fn hold(&mut self, desired: Desired) {
        for spec in desired.servers {
            let mut managed = Managed::new(Arc::new(spec));
            if !managed.is_enabled() {
                managed.state = ConnectionState::Disabled;
            }
            self.servers.insert(managed.spec.name.clone(), managed);
        }
        self.withhold(desired.withheld);
        self.publish();
    }

    /// Makes the servers the desired ones, touching only those that differ, and starts what has not been started. Returns
    /// what has changed.
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

    /// Starts these servers, or all of them. Those that have been started are left alone.
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

    /// Notes what start-up waits for, when the first servers are started.
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

    /// What a desired state changes about the servers, those first that go.
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

    /// Replaces the servers that are not started, and returns those whose state is another than before. One whose state is
    /// of the same kind keeps its time.
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

    /// Takes in a server, or what has changed about it, and starts it.
    pub(super) async fn put(&mut self, spec: ServerSpec) {
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
            let is_started = !matches!(managed.state, ConnectionState::Held);
            if is_started && same_link && managed.is_enabled() == was_enabled && !is_outdated {
                return;
            }
        } else {
            self.servers.insert(name.clone(), Managed::new(spec));
        }
        self.begin(&name).await;
    }

    /// Brings a server into the state that it begins in.
    pub(super) async fn begin(&mut self, name: &ServerName) {
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
    fn new(spec: Arc<ServerSpec>) -> Self {
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
            idle_shutdown: watch::Sender::new(spec.idle_shutdown),
            switched: None,
            expects_login: false,
            wants_login: false,
            spec,
        }
    }
}
