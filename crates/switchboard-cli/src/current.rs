//! Follows the configuration files while the program runs.
//!
//! Holds the latest configuration read and passes it to the host, which owns the servers: it reconciles them and leaves
//! unchanged ones running.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::rc::Rc;

use switchboard::ServerName;
use switchboard::internal::desired::{Desired, ServerChange, ServerSource};
use switchboard::internal::watch::{FileWatcher, on_thread};
use switchboard::status::ServerState;
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::text::visible;
use switchboard_server::gateway::Gateway;

use crate::error::Failure;
use crate::servers::Servers;
use crate::session::{self, CommandHost};
use crate::startup;

/// Diagnostic codes of a file that could not be parsed at all.
const UNPARSABLE: [&str; 2] = ["syntax", "unreadable"];

#[derive(Default)]
pub(crate) struct Current {
    /// `None` until a reload: the session's initial configuration is current.
    newest: RefCell<Option<Rc<Servers>>>,
    /// Sequence numbers of the last read started and the last one adopted.
    started_reads: Cell<u64>,
    adopted: Cell<u64>,
    /// The gateway whose profiles follow the files.
    gateway: Option<Gateway>,
}

/// One read of the files.
struct Reading {
    number: u64,
    servers: Servers,
}

impl Current {
    /// The configuration of a gateway, which serves its profiles from now on.
    pub(crate) fn of_gateway(gateway: &Gateway, session: &CommandHost<'_>) -> Self {
        gateway.set_profiles(&session.servers.config, &session.context.folders());
        Self {
            gateway: Some(gateway.clone()),
            ..Self::default()
        }
    }

    /// The last configuration adopted since the session started, if any.
    pub(crate) fn newest(&self) -> Option<Rc<Servers>> {
        self.newest.borrow().clone()
    }

    /// Reloads the configuration, reconciles the host's servers, and waits for the new ones.
    pub(crate) async fn reload(&self, session: &CommandHost<'_>) -> Result<(), Failure> {
        let context = session.context.clone();
        let (number, servers) = self.read(move || Servers::load(&context, None)).await?;
        let reading = Reading {
            number,
            servers: servers?,
        };
        let running = started(session);
        if let Some((desired, _)) = self.adopt(reading, session) {
            session.host.reconcile(desired).await;
        }
        let mut starting = started(session);
        starting.retain(|name| !running.contains(name));
        startup::follow(&session.host, &starting, &session.context.printer).await;
        for status in starting.iter().filter_map(|name| session.host.status(name)) {
            session.report_start(&status);
        }
        Ok(())
    }

    /// Makes the host follow the files, without waiting for servers. Never returns. `notify` gets one line per change.
    pub(crate) async fn follow_files(
        &self,
        session: &CommandHost<'_>,
        notify: impl FnMut(String),
    ) -> Infallible {
        match FileWatcher::new(files(session)) {
            Ok(watcher) => {
                let source = ConfigurationFiles {
                    current: self,
                    session,
                    watcher,
                    notify,
                    has_new_rules: false,
                };
                session.host.follow(source).await;
            }
            Err(error) => session.context.printer.detail(error.to_string()),
        }
        pending().await
    }

    /// Reads on a thread, since file access can block and `cloud_url` takes seconds. Returns the sequence number with
    /// the result.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(u64, T), Failure> {
        let number = self.started_reads.get() + 1;
        self.started_reads.set(number);
        Ok((number, blocking(read).await?))
    }

    /// Makes a read the current one and updates the permission rules. `None` if a later read was adopted first. The
    /// flag is whether the rules changed.
    fn adopt(&self, reading: Reading, session: &CommandHost<'_>) -> Option<(Desired, bool)> {
        if reading.number < self.adopted.get() {
            return None;
        }
        self.adopted.set(reading.number);
        let servers = reading.servers;
        let before = self.newest();
        let before = before.as_deref().unwrap_or(session.servers);
        let has_new_rules = before.config.rules != servers.config.rules;
        let engine = session::engine(&servers, session.context, session.policy);
        session.gate.set_engine(engine);
        if let Some(gateway) = &self.gateway {
            gateway.set_profiles(&servers.config, &session.context.folders());
        }
        let desired = servers.desired(session.context, &session.audit);
        *self.newest.borrow_mut() = Some(Rc::new(servers));
        Some((desired, has_new_rules))
    }

    /// Returns the error of a file that was valid before and can no longer be parsed.
    fn newly_broken<'s>(
        &self,
        now: &'s Servers,
        session: &CommandHost<'_>,
    ) -> Option<&'s Diagnostic> {
        let newest = self.newest();
        let before = newest.as_deref().unwrap_or(session.servers);
        let was_broken = |finding: &Diagnostic| {
            let mut before = broken(before);
            before.any(|before| before.place.file() == finding.place.file())
        };
        broken(now).find(|finding| !was_broken(finding))
    }
}

/// The servers that have been started, connected or not.
fn started(session: &CommandHost<'_>) -> Vec<ServerName> {
    let statuses = session.host.statuses().into_iter();
    let is_started = |state: &ServerState| {
        let is_off = matches!(state, ServerState::Disabled { .. });
        !is_off && !state.is_not_started() && !state.is_withheld()
    };
    let started = statuses.filter(|status| is_started(&status.state));
    started.map(|status| status.name).collect()
}

/// The configuration files as a [`ServerSource`].
struct ConfigurationFiles<'s, T> {
    current: &'s Current,
    session: &'s CommandHost<'s>,
    watcher: FileWatcher,
    notify: T,
    has_new_rules: bool,
}

impl<T: FnMut(String)> ServerSource for ConfigurationFiles<'_, T> {
    async fn next(&mut self) -> Option<Desired> {
        loop {
            self.watcher.changed().await;
            let context = self.session.context.clone();
            let read = self.current.read(move || Servers::load_quietly(&context));
            let Ok((number, servers)) = read.await else {
                continue;
            };
            // An unfinished edit must not stop servers.
            if let Some(finding) = self.current.newly_broken(&servers, self.session) {
                let place = finding.place.to_string();
                let (place, message) = (visible(&place), visible(&finding.message));
                (self.notify)(format!(
                    "{place}: {message}; keeping the previous configuration"
                ));
                continue;
            }
            let reading = Reading { number, servers };
            if let Some((desired, has_new_rules)) = self.current.adopt(reading, self.session) {
                self.has_new_rules = has_new_rules;
                return Some(desired);
            }
        }
    }

    fn applied(&mut self, changes: &[ServerChange]) {
        let mut changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        if std::mem::take(&mut self.has_new_rules) {
            changes.push("permission rules".to_owned());
        }
        if !changes.is_empty() {
            let changes = changes.join(", ");
            (self.notify)(format!("configuration changed: {changes}"));
        }
    }
}

/// Every file that can affect servers, including missing ones.
fn files(session: &CommandHost<'_>) -> Vec<PathBuf> {
    let looked = session.servers.config.looked.iter();
    let mut files: Vec<PathBuf> = looked.map(|looked| looked.path.clone()).collect();
    files.push(session.context.trust_file());
    files
}

/// The errors of files that could not be parsed at all.
fn broken(servers: &Servers) -> impl Iterator<Item = &Diagnostic> {
    let findings = servers.config.diagnostics.iter();
    findings
        .filter(|finding| finding.severity == Severity::Error && UNPARSABLE.contains(&finding.code))
}

/// Runs blocking file work on a thread, so that the single-threaded runtime keeps serving calls.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = on_thread(work).await;
    done.map_err(|error| Failure::failed("could not read the configuration").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_goes_on_while_the_configuration_is_read() {
        let runtime = session::runtime().unwrap();
        let (let_go, held) = std::sync::mpsc::channel::<()>();
        let order = runtime.block_on(async {
            let reading = blocking(move || held.recv().is_ok());
            // The read finishes only if the runtime's thread runs this meanwhile.
            let calling = async { let_go.send(()) };
            tokio::join!(reading, calling)
        });
        assert!(order.0.unwrap() && order.1.is_ok());
    }
}
