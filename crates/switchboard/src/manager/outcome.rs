//! Handles the outcome of a connection (established, failed, lost, in trouble) and decides whether to retry.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Established;
use super::{ConnectedState, ConnectionState, Managed, Manager, Report, TICK, Trouble};
use crate::names::{Generation, ServerName};
use crate::peer::ListKind;
use crate::status::{Cause, Failure};

impl Manager {
    pub(super) async fn report(
        &mut self,
        name: &ServerName,
        generation: Generation,
        report: Report,
    ) {
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
            Report::Tools { tools, waiting } => {
                if let ConnectionState::Connected(connected) = &mut managed.state {
                    connected.tools = tools;
                    self.publish();
                    self.list_changed(name, ListKind::Tools);
                    for done in waiting {
                        let _ = done.send(());
                    }
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
        // The task continues under the new state.
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
        managed.spec.load.reset();
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
            // A flag that expires at once does not indicate a login.
            self.expect_login(name, is_noted && duration > TICK);
            return;
        }
        // A server that was connected before is always retried; another only if the failure may be temporary.
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

    pub(super) async fn trouble(
        &mut self,
        name: &ServerName,
        generation: Generation,
        trouble: Trouble,
    ) {
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
                // The server is alive and requires a new session: no backoff, but a failure is retried.
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

    pub(super) fn give_up(&mut self) {
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
                // Reports of the attempt that ends here are dropped.
                managed.generation = managed.generation.next();
                let failure = managed.failure.clone();
                self.set_state(&name, ConnectionState::Failed, failure);
            }
        }
    }

    /// After suspend, any connection may be dead, and servers that failed for lack of a network may work.
    pub(super) fn wake(&mut self) {
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

    pub(super) async fn forget_revision(&self, name: &ServerName) {
        if let Some(managed) = self.servers.get(name) {
            let memory = &self.resources.memory;
            memory.forget_revision(managed.spec.key).await;
        }
    }

    pub(super) async fn forget_needs_auth(&self, name: &ServerName) {
        if let Some(managed) = self.servers.get(name) {
            self.resources
                .memory
                .forget_needs_auth(managed.spec.key)
                .await;
        }
    }

    fn note_failure(&mut self, name: &ServerName, failure: Box<Failure>) {
        if let Some(managed) = self.servers.get_mut(name) {
            tracing::debug!(server = %name, attempt = managed.attempts, reason = failure.message, "connection failed; retrying");
            managed.failure = Some(failure);
        }
    }
}
