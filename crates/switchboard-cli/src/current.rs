//! The servers as they are configured now, which may differ from how they were when the program began.
//!
//! Owns the newest reading of the files. Whoever changed them, a command of a chat, another program or an editor, the
//! host's servers and the rules for them become what the files say, and what did not change goes on undisturbed.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::rc::Rc;

use switchboard::names::ServerName;
use switchboard::permissions::Policy;
use switchboard::spec::ServerSpec;
use switchboard::watch::FileWatcher;
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::servers::{HeldBack, Servers, unavailable};
use crate::session::{self, Session};
use crate::startup;

/// What is wrong with a file that says nothing at all.
const SAYS_NOTHING: [&str; 2] = ["syntax", "unreadable"];

/// What the files say now.
#[derive(Default)]
pub(crate) struct Current {
    /// Nothing, as long as it is what they said in the beginning.
    newest: RefCell<Option<Rc<Newest>>>,
}

/// A later reading.
pub(crate) struct Newest {
    servers: Servers,
    specs: Vec<ServerSpec>,
    held_back: Vec<HeldBack>,
}

impl Current {
    /// The last reading, if there has been one since the beginning.
    pub(crate) fn newest(&self) -> Option<Rc<Newest>> {
        self.newest.borrow().clone()
    }

    /// The servers that are not started, and why.
    pub(crate) fn held_back(&self, session: &Session<'_>) -> Vec<HeldBack> {
        match self.newest() {
            Some(newest) => newest.held_back.clone(),
            None => session.held_back.clone(),
        }
    }

    /// The servers that can be started.
    pub(crate) fn specs(&self, session: &Session<'_>) -> Vec<ServerSpec> {
        match self.newest() {
            Some(newest) => newest.specs.clone(),
            None => session.specs.clone(),
        }
    }

    /// Whether the files have an entry of that name, whatever its state.
    pub(crate) fn has_entry(&self, name: &str, session: &Session<'_>) -> bool {
        let newest = self.newest();
        servers(newest.as_deref(), session).has(name)
    }

    /// The names of all servers.
    pub(crate) fn names(&self, session: &Session<'_>) -> Vec<String> {
        let newest = self.newest();
        let configured = servers(newest.as_deref(), session).config.servers.iter();
        let mut names: Vec<String> = configured.map(|server| server.name.clone()).collect();
        let running = session.host.statuses();
        names.extend(running.iter().map(|status| status.name.as_str().to_owned()));
        names.sort();
        names.dedup();
        names
    }

    /// Reads the configuration anew, makes the host's servers what it says, and waits for those that are new.
    pub(crate) async fn reload(&self, session: &Session<'_>) -> Result<(), Failure> {
        let context = session.context.clone();
        let servers = on_a_thread(move || Servers::load(&context, None)).await??;
        let running = session.host.statuses();
        let is_running = |name: &ServerName| running.iter().any(|status| status.name == *name);
        self.adopt(servers, session).await;
        let newest = self.newest();
        let specs = newest.iter().flat_map(|newest| &newest.specs);
        let starting: Vec<ServerName> = specs
            .filter(|spec| spec.enabled && !is_running(&spec.name))
            .map(|spec| spec.name.clone())
            .collect();
        startup::follow(&session.host, &starting, &session.context.printer).await;
        for status in starting.iter().filter_map(|name| session.host.status(name)) {
            session.tell(&status);
        }
        Ok(())
    }

    /// Does the same, without waiting, whenever the files change; never ends. `tell` hears in one line what came of it.
    pub(crate) async fn follow_files(
        &self,
        session: &Session<'_>,
        mut tell: impl FnMut(String),
    ) -> Infallible {
        let context = session.context;
        let mut watcher = match FileWatcher::new(files(session)) {
            Ok(watcher) => watcher,
            Err(error) => {
                context.printer.detail(error.to_string());
                return pending().await;
            }
        };
        loop {
            watcher.changed().await;
            let reader = context.clone();
            let Ok(servers) = on_a_thread(move || Servers::load_quietly(&reader)).await else {
                continue;
            };
            // Nobody ends their servers by an unfinished edit.
            if let Some(finding) = self.newly_broken(&servers, session) {
                let place = finding.place.to_string();
                let (place, message) = (visible(&place), visible(&finding.message));
                tell(format!(
                    "{place}: {message}; keeping the previous configuration"
                ));
                continue;
            }
            let changes = self.adopt(servers, session).await;
            if !changes.is_empty() {
                tell(format!(
                    "the configuration has changed: {}",
                    changes.join(", ")
                ));
            }
        }
    }

    /// What is wrong with a file that said something the last time, and now says nothing.
    fn newly_broken<'s>(&self, now: &'s Servers, session: &Session<'_>) -> Option<&'s Diagnostic> {
        let newest = self.newest();
        let before = servers(newest.as_deref(), session);
        let was_broken = |finding: &Diagnostic| {
            let mut before = broken(before);
            before.any(|before| before.place.file() == finding.place.file())
        };
        broken(now).find(|finding| !was_broken(finding))
    }

    /// Makes the host's servers, and the rules for them, what was read. Tells what is different.
    async fn adopt(&self, servers: Servers, session: &Session<'_>) -> Vec<String> {
        let context = session.context;
        let (mut specs, held_back) = servers.plan(context, &session.audit);
        // A server that is gone stays known as one that is switched off: who has a list with it must not start it again.
        for spec in &session.specs {
            if !specs.iter().any(|each| each.name == spec.name) {
                let mut off = spec.clone();
                off.enabled = false;
                specs.push(off);
            }
        }
        let changes = match self.newest() {
            Some(newest) => differences(&newest.specs, &specs, &held_back),
            None => differences(&session.specs, &specs, &held_back),
        };
        session.unavailable.set(unavailable(&held_back));
        let mut changes = changes;
        let before = self.newest();
        if self::servers(before.as_deref(), session).config.rules != servers.config.rules {
            changes.push("permission rules".to_owned());
        }
        let engine = session::engine(&servers, context, Policy::agent());
        session.gate.set_engine(engine);
        session.host.apply(specs.clone()).await;
        *self.newest.borrow_mut() = Some(Rc::new(Newest {
            servers,
            specs,
            held_back,
        }));
        changes
    }
}

/// The servers of the last reading, or of the first.
pub(crate) fn servers<'a>(newest: Option<&'a Newest>, session: &Session<'a>) -> &'a Servers {
    newest.map_or(session.servers, |newest| &newest.servers)
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

/// What became of which server, one after the other.
fn differences(before: &[ServerSpec], now: &[ServerSpec], held_back: &[HeldBack]) -> Vec<String> {
    let on = |specs: &'_ [ServerSpec], name: &ServerName| {
        let spec = specs.iter().find(|spec| spec.name == *name);
        spec.filter(|spec| spec.enabled).map(|spec| spec.key)
    };
    let gone = before
        .iter()
        .filter(|spec| spec.enabled && on(now, &spec.name).is_none())
        .map(|spec| {
            let held = held_back
                .iter()
                .find(|held| held.name == spec.name.as_str());
            let what = held.map_or_else(
                || "is gone".to_owned(),
                |held| format!("is {}: {}", held.state, held.reason),
            );
            (&spec.name, what)
        });
    let rest =
        now.iter()
            .filter(|spec| spec.enabled)
            .filter_map(|spec| match on(before, &spec.name) {
                None => Some((&spec.name, "is new".to_owned())),
                Some(key) if key != spec.key => Some((&spec.name, "is started anew".to_owned())),
                Some(_) => None,
            });
    let all = gone.chain(rest);
    all.map(|(name, what)| format!("{} {what}", visible(name.as_str())))
        .collect()
}

/// Runs what reads files, and may fetch something for seconds: it has no business on the runtime, whose only thread goes on
/// with calls and servers meanwhile. A thread whose result nobody waits for any longer does not hold up the program's end.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (sender, done) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("configuration".to_owned());
    let started = thread.spawn(move || drop(sender.send(work())));
    started.map_err(|error| Failure::failed("could not read the configuration").because(error))?;
    done.await
        .map_err(|_| Failure::failed("the command ended unexpectedly"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_goes_on_while_the_configuration_is_read() {
        let runtime = session::runtime().unwrap();
        let (let_go, held) = std::sync::mpsc::channel::<()>();
        let order = runtime.block_on(async {
            let reading = on_a_thread(move || held.recv().is_ok());
            // Only work on the same thread lets the reading end.
            let calling = async { let_go.send(()) };
            tokio::join!(reading, calling)
        });
        assert!(order.0.unwrap() && order.1.is_ok());
    }
}
