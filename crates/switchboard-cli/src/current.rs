//! The configuration as it is now, which may differ from how it was when the program began.
//!
//! Owns the newest reading of the files, as the source that the host follows. The servers themselves are the host's: it
//! makes them what was read, and what did not change goes on undisturbed.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::rc::Rc;

use switchboard::desired::{Desired, ServerChange, ServerSource};
use switchboard::names::ServerName;
use switchboard::permissions::Policy;
use switchboard::status::ServerState;
use switchboard::watch::{FileWatcher, on_thread};
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::servers::Servers;
use crate::session::{self, Session};
use crate::startup;

/// What is wrong with a file that says nothing at all.
const SAYS_NOTHING: [&str; 2] = ["syntax", "unreadable"];

/// What the files say now.
#[derive(Default)]
pub(crate) struct Current {
    /// Nothing, as long as it is what they said in the beginning.
    newest: RefCell<Option<Rc<Servers>>>,
    /// How many readings have begun, and which of them is the newest.
    begun: Cell<u64>,
    adopted: Cell<u64>,
}

/// One reading of the files.
struct Reading {
    number: u64,
    servers: Servers,
}

impl Current {
    /// The last reading, if there has been one since the beginning.
    pub(crate) fn newest(&self) -> Option<Rc<Servers>> {
        self.newest.borrow().clone()
    }

    /// Reads the configuration anew, makes the host's servers what it says, and waits for those that are new.
    pub(crate) async fn reload(&self, session: &Session<'_>) -> Result<(), Failure> {
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
            session.tell(&status);
        }
        Ok(())
    }

    /// Has the host follow the files, without waiting for servers; never ends. `tell` hears in one line what came of it.
    pub(crate) async fn follow_files(
        &self,
        session: &Session<'_>,
        tell: impl FnMut(String),
    ) -> Infallible {
        match FileWatcher::new(files(session)) {
            Ok(watcher) => {
                let source = ConfigurationFiles {
                    current: self,
                    session,
                    watcher,
                    tell,
                    has_new_rules: false,
                };
                session.host.follow(source).await;
            }
            Err(error) => session.context.printer.detail(error.to_string()),
        }
        pending().await
    }

    /// Reads on a thread, since a file may be slow and `cloud_url` takes seconds. Returns which reading it was.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(u64, T), Failure> {
        let number = self.begun.get() + 1;
        self.begun.set(number);
        Ok((number, apart(read).await?))
    }

    /// Makes a reading the newest one, with the rules for its servers. `None` if a later one was faster. Tells whether the
    /// rules differ.
    fn adopt(&self, reading: Reading, session: &Session<'_>) -> Option<(Desired, bool)> {
        if reading.number < self.adopted.get() {
            return None;
        }
        self.adopted.set(reading.number);
        let servers = reading.servers;
        let before = self.newest();
        let before = before.as_deref().unwrap_or(session.servers);
        let has_new_rules = before.config.rules != servers.config.rules;
        let engine = session::engine(&servers, session.context, Policy::agent());
        session.gate.set_engine(engine);
        let desired = servers.desired(session.context, &session.audit);
        *self.newest.borrow_mut() = Some(Rc::new(servers));
        Some((desired, has_new_rules))
    }

    /// What is wrong with a file that said something the last time, and now says nothing.
    fn newly_broken<'s>(&self, now: &'s Servers, session: &Session<'_>) -> Option<&'s Diagnostic> {
        let newest = self.newest();
        let before = newest.as_deref().unwrap_or(session.servers);
        let was_broken = |finding: &Diagnostic| {
            let mut before = broken(before);
            before.any(|before| before.place.file() == finding.place.file())
        };
        broken(now).find(|finding| !was_broken(finding))
    }
}

/// The servers that have been started, whatever came of it.
fn started(session: &Session<'_>) -> Vec<ServerName> {
    let statuses = session.host.statuses().into_iter();
    let is_started = |state: &ServerState| {
        let is_off = matches!(state, ServerState::Disabled { .. });
        !is_off && !state.is_not_started() && !state.is_withheld()
    };
    let started = statuses.filter(|status| is_started(&status.state));
    started.map(|status| status.name).collect()
}

/// The files of the configuration as a source of servers.
struct ConfigurationFiles<'s, T> {
    current: &'s Current,
    session: &'s Session<'s>,
    watcher: FileWatcher,
    tell: T,
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
            // An unfinished edit ends no server.
            if let Some(finding) = self.current.newly_broken(&servers, self.session) {
                let place = finding.place.to_string();
                let (place, message) = (visible(&place), visible(&finding.message));
                (self.tell)(format!(
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
            (self.tell)(format!("the configuration has changed: {changes}"));
        }
    }
}

/// Every file that may say something about servers, whether it exists or not.
fn files(session: &Session<'_>) -> Vec<PathBuf> {
    let looked = session.servers.config.looked.iter();
    let mut files: Vec<PathBuf> = looked.map(|looked| looked.path.clone()).collect();
    files.push(session.context.trust_file());
    files
}

/// What is wrong with files that say nothing at all.
fn broken(servers: &Servers) -> impl Iterator<Item = &Diagnostic> {
    let findings = servers.config.diagnostics.iter();
    findings.filter(|finding| {
        finding.severity == Severity::Error && SAYS_NOTHING.contains(&finding.code)
    })
}

/// Runs what reads or writes files apart from the runtime, whose only thread goes on with calls and servers meanwhile.
pub(crate) async fn apart<T: Send + 'static>(
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
            let reading = apart(move || held.recv().is_ok());
            // Only work on the same thread lets the reading end.
            let calling = async { let_go.send(()) };
            tokio::join!(reading, calling)
        });
        assert!(order.0.unwrap() && order.1.is_ok());
    }
}
