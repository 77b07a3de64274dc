//! A running host for the length of one command: started, interrupted, and ended in order.
//!
//! The runtime has one thread. What a command does is wait for servers, so more threads would only cost their start,
//! and a message that is read where it is awaited needs no second thread to be woken. Supervisors are tied to the thread
//! that starts them, and the main thread is the one that lives as long as the program.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard::Host;
use switchboard::audit::{Audit, AuditSettings};
use switchboard::auth::interactive::logins::Logins;
use switchboard::call::gate::Gate;
use switchboard::handler::ClientHandler;
use switchboard::names::ServerName;
use switchboard::options::{HostOptions, HostSettings};
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::places::{SPILL_FOLDER, STORE_FILE};
use switchboard::status::{ServerState, ServerStatus};
use switchboard::workspace;
use switchboard_agent::events::FailedServer;
use switchboard_config::text::visible;
use switchboard_server::agent::ClientQuestions;
use switchboard_store::{Key, MemoryStore, Space, SqliteStore, Store, UnavailableStore};
use tokio::runtime::Runtime;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::questions::{AtTerminal, SamplingModel};
use crate::servers::{Servers, look_closer};
use crate::startup;
use crate::state::{self, unusable};
use crate::{consent, report, view};

/// Who makes the calls of this program, in the audit log.
const FRONT_END: &str = "cli";
/// How long work on files may go on once everything else has ended.
const LAST_WORK: Duration = Duration::from_secs(2);

/// A host with the servers a command wants. The host has all of them, those that cannot be started included.
pub(crate) struct Session<'c> {
    pub(crate) host: Host,
    pub(crate) context: &'c Context,
    pub(crate) servers: &'c Servers,
    pub(crate) gate: Arc<PermissionGate>,
    /// Where agent sessions are kept.
    pub(crate) store: Arc<dyn Store>,
    /// The model that servers may ask, where there is one.
    pub(crate) sampling: Arc<SamplingModel>,
    /// Where calls and logins are written down.
    pub(crate) audit: Audit,
    /// Whether one command is all there is: nobody is asked, and there is no next turn.
    pub(crate) is_scripted: bool,
    told: OnceCell<()>,
}

/// How a host is used.
#[derive(Debug, Clone)]
pub(crate) struct SessionMode {
    /// What holds where no rule does.
    pub(crate) policy: Policy,
    /// Who makes the calls, in the audit log.
    pub(crate) front_end: &'static str,
    /// Whether somebody may be asked, where there is a terminal to ask on.
    pub(crate) attended: bool,
    /// Whether servers are only looked at: nothing is called, so nobody is asked anything.
    pub(crate) looks: bool,
    /// Whether a model may begin logins.
    pub(crate) logins: bool,
    /// Who is asked in place of a person at the terminal, where others connect to this program.
    pub(crate) clients: Option<ClientQuestions>,
}

impl SessionMode {
    /// A command that a person typed.
    const TYPED: Self = Self {
        policy: Policy::typed(),
        front_end: FRONT_END,
        attended: true,
        looks: false,
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
    run_typed(SessionMode::TYPED, context, servers, work)
}

/// Does the same for a command that lists what servers have and calls nothing. Servers are told that they may ask, as they
/// are in a chat at a terminal: some list fewer tools to others, and every command should list the same.
pub(crate) fn look(
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&Session<'_>) -> Outcome,
) -> Outcome {
    let mode = SessionMode {
        looks: true,
        ..SessionMode::TYPED
    };
    run_typed(mode, context, servers, work)
}

fn run_typed(
    mode: SessionMode,
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&Session<'_>) -> Outcome,
) -> Outcome {
    run_in(mode, context, servers, async |session, mut interrupts| {
        tokio::select! {
            // Dropping the work calls off what it waits for, and the servers are told.
            exit = interrupts.first() => Err(Failure::interrupted(exit)),
            outcome = work(session) => outcome,
        }
    })
}

/// Runs work that hears of signals itself, in a mode of its own.
pub(crate) fn run_in(
    mode: SessionMode,
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&Session<'_>, Interrupts) -> Outcome,
) -> Outcome {
    let unable = |error: std::io::Error| Failure::failed("could not start").because(error);
    let runtime = runtime().map_err(unable)?;
    let interrupts = Interrupts::listen().map_err(unable)?;
    let outcome = runtime.block_on(async {
        let Stores {
            state,
            conversations,
        } = open_store(servers, context).await;
        let settings = AuditSettings::from(&servers.config.settings);
        let audit = Audit::start(Arc::clone(&state), settings, mode.front_end);
        warn_of_audit(&audit, context);
        let desired = servers.desired(context, &audit);
        let gate = gate(servers, context, audit.clone(), &mode);
        let sampling = Arc::new(SamplingModel::default());
        let logins = mode.logins.then(|| servers.logins(context));
        let is_scripted = !mode.attended && mode.clients.is_none();
        let session = Session {
            is_scripted,
            host: Host::with_options(HostOptions {
                settings: HostSettings::from(&servers.config.settings),
                gate: Arc::clone(&gate) as Arc<dyn Gate>,
                handler: match mode.clients {
                    Some(clients) => Arc::new(clients) as Arc<dyn ClientHandler>,
                    None => handler(&mode, context, &sampling),
                },
                store: state,
                spill_folder: Some(spill_folder(context)),
                logins: logins.map(|logins| Arc::new(logins) as Arc<dyn Logins>),
                desired,
            }),
            gate,
            store: conversations,
            sampling,
            audit: audit.clone(),
            context,
            servers,
            told: OnceCell::new(),
        };
        let outcome = work(&session, interrupts).await;
        // The answer is out. Servers end by themselves, and their supervisor makes sure of it.
        session.host.leave().await;
        audit.close().await;
        outcome
    });
    runtime.shutdown_timeout(LAST_WORK);
    outcome
}

impl Session<'_> {
    /// Starts every server and waits until each is connected or has failed. Those that have failed are told of, and
    /// those that cannot be started.
    pub(crate) async fn start(&self) {
        self.tell_withheld();
        self.start_some(|_| true).await;
        self.tell_idle_rules();
    }

    /// Does the same for a command that shows the reasons itself.
    pub(crate) async fn start_quietly(&self) {
        self.bring_up(|_| true).await;
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
        let statuses = self.host.statuses().into_iter();
        let starting: Vec<ServerName> = statuses
            .filter(|status| status.state.is_not_started() && wanted(&status.name))
            .map(|status| status.name)
            .collect();
        if starting.is_empty() {
            return starting;
        }
        self.host.start(&starting).await;
        startup::follow(&self.host, &starting, &self.context.printer).await;
        // The command goes on now, and is over before another attempt could be.
        self.host.give_up().await;
        starting
    }

    /// Connects every server that is not connected yet and waits until each has settled, without a word: what came of it
    /// is told when somebody asks.
    pub(crate) async fn begin_all(&self) {
        self.host.start_all().await;
        self.host.settled().await;
    }

    /// The failure of a command that needs this server, if it cannot be used.
    pub(crate) fn need(&self, name: &str) -> Result<(), Failure> {
        match self.host.status(&name.into()) {
            Some(status) => unusable(&status).map_or(Ok(()), Err),
            None => Err(self.servers.unknown(name)),
        }
    }

    /// How a command ends that has done what it could: not well if a required server is missing.
    pub(crate) fn exit(&self) -> Exit {
        // A server that is switched off, or that the command has no use for, is not missed.
        let is_meant = |status: &&ServerStatus| {
            let state = &status.state;
            status.required
                && !state.is_not_started()
                && !matches!(state, ServerState::Disabled { .. })
        };
        let statuses = self.host.statuses();
        let mut required = statuses.iter().filter(is_meant);
        let failed = required.find_map(unusable);
        failed.map_or(Exit::Done, |failure| failure.exit)
    }

    /// The names of all configured servers.
    pub(crate) fn names(&self) -> Vec<String> {
        let statuses = self.host.statuses();
        let names = statuses
            .iter()
            .map(|status| status.name.as_str().to_owned());
        names.collect()
    }

    /// Every server whose tools are missed, with the reason. What each command says of missing servers comes from here.
    pub(crate) fn missing(&self) -> Vec<FailedServer> {
        let statuses = self.host.statuses();
        let absent = statuses.iter().filter_map(ServerStatus::absence);
        absent.map(FailedServer::from).collect()
    }

    /// Reports each server that cannot be started, in one line and only once. Disabled servers are left out, and so are
    /// errors of entries that were already reported with the configuration.
    pub(crate) fn tell_withheld(&self) {
        if self.told.set(()).is_err() {
            return;
        }
        let were_all_told =
            report::shows_all(&self.servers.config.diagnostics, &self.context.printer);
        for status in self.host.statuses() {
            let is_known = were_all_told && state::is_in_findings(status.word());
            if status.state.is_withheld() && status.absence().is_some() && !is_known {
                self.tell_not_started(&status);
            }
        }
    }

    /// Says in one line that a server cannot be started, why, and what to do about it.
    pub(crate) fn tell_not_started(&self, status: &ServerStatus) {
        let name = visible(status.name.as_str());
        let reason = status.reason().unwrap_or_default();
        let remedy = status.remedy().map(|remedy| remedy.to_string());
        let remedy = remedy.unwrap_or_default();
        self.context
            .printer
            .note(format!("{name} is not started: {reason}; {remedy}"));
    }

    /// Says where to learn more of servers that have failed, for a command that has shown the reasons.
    pub(crate) fn tell_doctor(&self) {
        let statuses = self.host.statuses();
        let failed = statuses
            .iter()
            .filter(|status| matches!(status.state, ServerState::Failed { .. }));
        let names: Vec<_> = failed
            .map(|status| visible(status.name.as_str()).into_owned())
            .collect();
        match names.as_slice() {
            [] => {}
            [name] => self.context.printer.note(look_closer(name)),
            _ => self.context.printer.note("see `switchboard doctor`"),
        }
    }

    /// Warns of permission rules that are about no tool at all, where every server could be asked.
    pub(crate) fn tell_idle_rules(&self) {
        let statuses = self.host.statuses();
        if !statuses.iter().all(|status| status.state.is_connected()) {
            return;
        }
        let engine = self.gate.engine();
        for rule in engine.idle_rules(&self.host.catalog()) {
            let place = view::place(&rule.origin, &self.context.environment.home);
            let tool = visible(&rule.tool);
            let message = format!("{place}: rule \"{tool}\" matches no tool");
            let hint = "`switchboard tools` shows the names";
            self.context.printer.warning(message, Some(hint));
        }
    }

    /// Tells what came of a server that was just started.
    pub(crate) fn tell(&self, status: &ServerStatus) {
        let printer = &self.context.printer;
        if let Some(warning) = state::warning(status) {
            printer.warning(warning, None);
        } else if status.state.is_connected() {
            printer.detail(format!("{} is connected", visible(status.name.as_str())));
        }
    }
}

/// Who answers what servers ask.
fn handler(
    mode: &SessionMode,
    context: &Context,
    sampling: &Arc<SamplingModel>,
) -> Arc<dyn ClientHandler> {
    let asks = AtTerminal::new(context, mode.attended, Arc::clone(sampling));
    Arc::new(if mode.looks { asks.looking() } else { asks })
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

fn gate(
    servers: &Servers,
    context: &Context,
    audit: Audit,
    mode: &SessionMode,
) -> Arc<PermissionGate> {
    let engine = engine(servers, context, mode.policy);
    if servers.lacks_bash_sandbox() && mode.front_end != FRONT_END {
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
    let gate = PermissionGate::new(engine)
        .recording(audit)
        .in_session(format!("{}-{}", mode.front_end, std::process::id()));
    Arc::new(match &mode.clients {
        Some(clients) => gate.asking(Arc::new(clients.clone())),
        None if mode.attended => gate.asking(Arc::new(consent::Terminal::new(context))),
        None => gate,
    })
}

pub(crate) fn spill_folder(context: &Context) -> PathBuf {
    context.environment.state.join(SPILL_FOLDER)
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

/// What is kept between runs, and whether it can be used. A store that cannot be read stands for itself: nobody may take
/// it for an empty one.
async fn open_store(servers: &Servers, context: &Context) -> Stores {
    let store = SqliteStore::new(store_file(context));
    let probe = async {
        let key = Key::new("probe")?;
        store.get(Space::new("eras"), &key).await
    };
    match probe.await {
        Ok(_) => {
            let store = Arc::new(store) as Arc<dyn Store>;
            Stores {
                state: Arc::clone(&store),
                conversations: store,
            }
        }
        Err(error) => {
            servers.warn_of_store(&error, context);
            Stores {
                state: Arc::new(UnavailableStore::new(error)),
                conversations: Arc::new(MemoryStore::new()),
            }
        }
    }
}

/// Where a command keeps things.
struct Stores {
    /// Pins, the audit log, and what is cached.
    state: Arc<dyn Store>,
    /// Agent sessions, which go on in memory where there is no file.
    conversations: Arc<dyn Store>,
}

/// Warns, once, that calls are not recorded.
fn warn_of_audit(audit: &Audit, context: &Context) {
    let printer = context.printer.clone();
    audit.on_failure(move |error| {
        let message = format!(
            "calls are not recorded in the audit log: {}",
            visible(&error.to_string())
        );
        let hint = error
            .hint()
            .unwrap_or("`audit = \"required\"` refuses them");
        printer.warning(message, Some(hint));
    });
}
