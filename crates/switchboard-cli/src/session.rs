//! A running host for the length of one command: started, interrupted, and ended in order.
//!
//! The runtime has one thread. What a command does is wait for servers, so more threads would only cost their start,
//! and a message that is read where it is awaited needs no second thread to be woken. Guards are tied to the thread
//! that starts them, and the main thread is the one that lives as long as the program.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard::Host;
use switchboard::audit::{Audit, AuditSettings};
use switchboard::auth::interactive::logins::Logins;
use switchboard::call::gate::Gate;
use switchboard::catalog::text::neutralise;
use switchboard::handler::ClientHandler;
use switchboard::names::ServerName;
use switchboard::options::{HostOptions, HostSettings};
use switchboard::permissions::{Engine, Guard, Policy};
use switchboard::spec::ServerSpec;
use switchboard::status::{Cause, ServerStatus, State};
use switchboard::workspace;
use switchboard_config::text::visible;
use switchboard_server::agent::ClientQuestions;
use switchboard_store::{Key, MemoryStore, Space, SqliteStore, Store};
use tokio::runtime::Runtime;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::questions::{AtTerminal, Lent};
use crate::servers::{HeldBack, Servers, look_closer};
use crate::startup;
use crate::terminal::{self, fitted};
use crate::{consent, view};

/// What is remembered between runs, in the state folder.
const STORE_FILE: &str = "switchboard.db";
/// Where output that is too large for a model is kept, in the state folder.
const SPILL_FOLDER: &str = "output";
/// Who makes the calls of this program, in the audit log.
const FRONT_END: &str = "cli";
/// How long work on files may go on once everything else has ended.
const LAST_WORK: Duration = Duration::from_secs(2);
/// So much of a reason is shown on the narrowest terminal.
const SHORTEST_REASON: usize = 30;

/// A host with the servers a command wants.
pub(crate) struct Session<'c> {
    pub(crate) host: Host,
    pub(crate) context: &'c Context,
    pub(crate) servers: &'c Servers,
    /// The servers that can be started.
    pub(crate) specs: Vec<ServerSpec>,
    /// The servers that are not started, and why.
    pub(crate) held_back: Vec<HeldBack>,
    pub(crate) guard: Arc<Guard>,
    /// What is remembered between runs.
    pub(crate) store: Arc<dyn Store>,
    /// The model that servers may ask, where there is one.
    pub(crate) lent: Arc<Lent>,
    /// Where calls and logins are written down.
    pub(crate) audit: Audit,
    told: OnceCell<()>,
}

/// How a host is used.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// What holds where no rule does.
    pub(crate) policy: Policy,
    /// Who makes the calls, in the audit log.
    pub(crate) front_end: &'static str,
    /// Whether somebody may be asked, where there is a terminal to ask on.
    pub(crate) attended: bool,
    /// Whether a model may begin logins.
    pub(crate) logins: bool,
    /// Who is asked in place of a person at the terminal, where others connect to this program.
    pub(crate) clients: Option<ClientQuestions>,
}

impl Manner {
    /// A command that a person typed.
    const TYPED: Self = Self {
        policy: Policy::typed(),
        front_end: FRONT_END,
        attended: true,
        logins: false,
        clients: None,
    };
}

/// Runs a command's work with a host, and ends the host whatever comes of it. No server is started before the work
/// asks for it, with [`Session::start`] and its kin.
pub(crate) fn run(
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&Session<'_>) -> Outcome,
) -> Outcome {
    run_in(
        Manner::TYPED,
        context,
        servers,
        async |session, mut interrupts| {
            tokio::select! {
                // Dropping the work calls off what it waits for, and the servers are told.
                exit = interrupts.first() => Err(Failure::interrupted(exit)),
                outcome = work(session) => outcome,
            }
        },
    )
}

/// Runs work that hears of signals itself, in a manner of its own.
pub(crate) fn run_in(
    manner: Manner,
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&Session<'_>, Interrupts) -> Outcome,
) -> Outcome {
    let unable = |error: std::io::Error| Failure::failed("could not start").because(error);
    let runtime = runtime().map_err(unable)?;
    let interrupts = Interrupts::listen().map_err(unable)?;
    let outcome = runtime.block_on(async {
        let store = open_store(servers, context).await;
        let settings = AuditSettings::from(&servers.config.settings);
        let audit = Audit::start(Arc::clone(&store), settings, manner.front_end);
        let (specs, held_back) = servers.plan(context, &audit);
        let guard = guard(servers, context, audit.clone(), &manner);
        let lent = Arc::new(Lent::default());
        let logins = manner.logins.then(|| servers.logins(context));
        let session = Session {
            host: Host::new(HostOptions {
                settings: HostSettings::from(&servers.config.settings),
                gate: Arc::clone(&guard) as Arc<dyn Gate>,
                handler: match manner.clients {
                    Some(clients) => Arc::new(clients) as Arc<dyn ClientHandler>,
                    None => Arc::new(AtTerminal::new(context, manner.attended, Arc::clone(&lent))),
                },
                store: Arc::clone(&store),
                spill_folder: Some(spill_folder(context)),
                logins: logins.map(|logins| Arc::new(logins) as Arc<dyn Logins>),
            }),
            guard,
            store,
            lent,
            audit: audit.clone(),
            context,
            servers,
            specs,
            held_back,
            told: OnceCell::new(),
        };
        let outcome = work(&session, interrupts).await;
        session.host.shutdown().await;
        audit.close().await;
        outcome
    });
    runtime.shutdown_timeout(LAST_WORK);
    outcome
}

impl Session<'_> {
    /// Starts every server and waits until each is connected or has failed. Those that have failed are told of, and
    /// those that are held back.
    pub(crate) async fn start(&self) {
        self.tell_held_back();
        self.start_some(|_| true).await;
        self.tell_idle_rules();
    }

    /// Starts one server that the command cannot do without, and tells why it cannot be used.
    pub(crate) async fn start_one(&self, name: &str) -> Result<(), Failure> {
        self.bring_up(|each| each.as_str() == name).await;
        self.need(name)
    }

    /// Connects a server anew and waits until it has settled. That it wanted a login is forgotten.
    pub(crate) async fn restart(&self, name: &ServerName) {
        self.host.restart(name).await;
        let starting = std::slice::from_ref(name);
        startup::follow(&self.host, starting, &self.context.printer).await;
    }

    /// Starts some of the servers, those that run already aside, and waits for them as [`start`](Self::start) does.
    pub(crate) async fn start_some(&self, wanted: impl Fn(&ServerName) -> bool) {
        let started = self.bring_up(wanted).await;
        for status in self.host.statuses() {
            if started.contains(&status.name) {
                self.tell(&status);
            }
        }
    }

    /// Starts some of the servers, those that run already aside, and waits until they have settled. Tells which.
    async fn bring_up(&self, wanted: impl Fn(&ServerName) -> bool) -> Vec<ServerName> {
        let running = self.names();
        let names = self.specs.iter().map(|spec| spec.name.clone());
        let starting: Vec<ServerName> = names
            .filter(|name| wanted(name) && !running.contains(name))
            .collect();
        if starting.is_empty() {
            return starting;
        }
        let is_up = |name: &ServerName| running.contains(name) || starting.contains(name);
        let all = self.specs.iter().filter(|spec| is_up(&spec.name));
        self.host.apply(all.cloned().collect()).await;
        startup::follow(&self.host, &starting, &self.context.printer).await;
        starting
    }

    /// The failure of a command that needs this server, if it cannot be used.
    pub(crate) fn need(&self, name: &str) -> Result<(), Failure> {
        if let Some(held_back) = self.held_back.iter().find(|held| held.name == name) {
            return Err(held_back.failure());
        }
        match self.host.status(&name.into()) {
            Some(status) => unusable(&status).map_or(Ok(()), Err),
            None => Err(self.servers.unknown(name)),
        }
    }

    /// How a command ends that has done what it could: not well if a required server is missing.
    pub(crate) fn exit(&self) -> Exit {
        let is_required = |name: &str| {
            let server = self.servers.config.server(name);
            server.is_some_and(|server| server.effective().required == Some(true))
        };
        let statuses = self.host.statuses();
        let failed = statuses
            .iter()
            .filter(|status| status.required)
            .find_map(unusable)
            .map(|failure| failure.exit);
        let held_back = self
            .held_back
            .iter()
            .find(|held| is_required(&held.name) && held.state != "disabled")
            .map(|held| held.exit);
        failed.or(held_back).unwrap_or(Exit::Done)
    }

    fn names(&self) -> Vec<ServerName> {
        let statuses = self.host.statuses().into_iter();
        statuses.map(|status| status.name).collect()
    }

    /// Says in one line each which servers are not started, once. A server that was switched off is no news, and what
    /// is wrong with an entry has been told with the configuration.
    pub(crate) fn tell_held_back(&self) {
        if self.told.set(()).is_err() {
            return;
        }
        let is_news = |held: &&HeldBack| !["disabled", "invalid"].contains(&held.state);
        for held in self.held_back.iter().filter(is_news) {
            let hint = held.hint.as_deref().unwrap_or_default();
            let name = visible(&held.name);
            self.context
                .printer
                .note(format!("{name} is not started: {}; {hint}", held.reason));
        }
    }

    /// Warns of permission rules that are about no tool at all, where every server could be asked.
    pub(crate) fn tell_idle_rules(&self) {
        let statuses = self.host.statuses();
        let has_all = self.held_back.is_empty()
            && statuses
                .iter()
                .all(|status| status.state == State::Connected);
        if !has_all {
            return;
        }
        let engine = self.guard.engine();
        for rule in engine.idle_rules(&self.host.catalog()) {
            let place = view::place(&rule.origin, &self.context.environment.home);
            let tool = visible(&rule.tool);
            let message = format!("{place}: the rule for \"{tool}\" is about no tool there is");
            let hint = "`switchboard tools` shows the names";
            self.context.printer.warning(message, Some(hint));
        }
    }

    /// Tells how a server stands that was just started.
    pub(crate) fn tell(&self, status: &ServerStatus) {
        let printer = &self.context.printer;
        let name = visible(status.name.as_str());
        match status.state {
            State::Failed => {
                let reason = reason(status).unwrap_or_default();
                let hint = look_closer(&name);
                // The hint is worth more than the end of a long reason, which it leads to.
                let reason = match terminal::error_size() {
                    Some(size) => {
                        let taken = "warning:  failed: ; ".len() + name.len() + hint.len();
                        fitted(
                            &reason,
                            size.columns.saturating_sub(taken).max(SHORTEST_REASON),
                        )
                    }
                    None => reason.as_str().into(),
                };
                printer.warning(format!("{name} failed: {reason}; {hint}"), None);
            }
            State::NeedsAuth => {
                let message = format!("{name} wants a login; {}", login_hint(&name));
                printer.warning(message, None);
            }
            State::Connected => printer.detail(format!("{name} is connected")),
            State::Pending | State::Disabled => {}
        }
    }
}

/// Why a server cannot be used, unless it can.
pub(crate) fn unusable(status: &ServerStatus) -> Option<Failure> {
    let name = visible(status.name.as_str());
    let failure = match status.state {
        State::Connected => return None,
        State::NeedsAuth => {
            let message = format!("the server `{name}` wants a login");
            Failure::new(Exit::NeedsLogin, message).hint(login_hint(&name))
        }
        State::Disabled => Failure::failed(format!("the server `{name}` is disabled"))
            .hint(format!("`switchboard mcp enable {name}`")),
        State::Failed | State::Pending => {
            let message = format!("the server `{name}` is not connected");
            let failure = Failure::new(Exit::Unreachable, message);
            let failure = match reason(status) {
                Some(reason) => failure.because(reason),
                None => failure,
            };
            failure.hint(look_closer(&name))
        }
    };
    Some(failure)
}

/// Why a server is not connected, in one line that is safe to show: what happened, and its own last word on it.
pub(crate) fn reason(status: &ServerStatus) -> Option<String> {
    let failure = status.failure.as_ref()?;
    let summary = failure.summary();
    let mut reason = visible(&summary).into_owned();
    let last_word = failure
        .stderr
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty());
    if let (Cause::Exited, Some(line)) = (failure.cause, last_word) {
        let _ = write!(reason, ": {}", visible(&neutralise(line.trim())));
    }
    Some(reason)
}

/// The rules of a configuration, for calls that a person types unless the policy says otherwise.
pub(crate) fn engine(servers: &Servers, context: &Context, policy: Policy) -> Engine {
    let policy = policy.with_settings(&servers.config.settings);
    let engine =
        Engine::new(&servers.config, &context.folders(), policy).open_folder(spill_folder(context));
    let engine = if servers.lacks_bash_sandbox() {
        engine.asking_before_commands()
    } else {
        engine
    };
    if servers.is_embedded(workspace::NAME) {
        // What it says of itself is part of this program.
        engine.trusting(workspace::NAME)
    } else {
        engine
    }
}

fn guard(servers: &Servers, context: &Context, audit: Audit, manner: &Manner) -> Arc<Guard> {
    let engine = engine(servers, context, manner.policy);
    if servers.lacks_bash_sandbox() && manner.front_end != FRONT_END {
        context.printer.warning(
            "commands of the agent run without a sandbox: this kernel has no Landlock; each one that no rule allows asks",
            Some("`bash_sandbox = \"off\"` in your user file accepts that"),
        );
    }
    for problem in engine.problems() {
        let place = view::place(&problem.origin, &context.environment.home);
        let message = format!("{place}: {}", visible(&problem.message));
        context.printer.warning(message, None);
    }
    let guard = Guard::new(engine).recording(audit).in_session(format!(
        "{}-{}",
        manner.front_end,
        std::process::id()
    ));
    Arc::new(match &manner.clients {
        Some(clients) => guard.asking(Arc::new(clients.clone())),
        None if manner.attended => guard.asking(Arc::new(consent::Terminal::new(context))),
        None => guard,
    })
}

pub(crate) fn spill_folder(context: &Context) -> PathBuf {
    context.environment.state.join(SPILL_FOLDER)
}

/// What to do about a server that wants a login.
fn login_hint(name: &str) -> String {
    format!("`switchboard mcp login {name}`")
}

/// The file that remembers.
pub(crate) fn store_file(context: &Context) -> PathBuf {
    context.environment.state.join(STORE_FILE)
}

pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// What is remembered between runs. Memory is a convenience: where it cannot be had, the command goes on without.
async fn open_store(servers: &Servers, context: &Context) -> Arc<dyn Store> {
    let store = SqliteStore::new(store_file(context));
    let probe = async {
        let key = Key::new("probe")?;
        store.get(Space::new("eras"), &key).await
    };
    match probe.await {
        Ok(_) => Arc::new(store),
        Err(error) => {
            servers.warn_of_store(&error, context);
            Arc::new(MemoryStore::new())
        }
    }
}
