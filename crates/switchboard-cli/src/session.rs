//! Runs a host for the duration of one command: startup, interruption and orderly shutdown.
//!
//! The runtime has one thread: a command mostly waits for servers, so more threads would only add startup cost and
//! wakeups across threads. Supervisors are tied to the thread that spawns them; the main thread lives as long as the
//! program.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use switchboard::internal::audit::{Audit, AuditSettings};
use switchboard::internal::auth::interactive::logins::Logins;
use switchboard::internal::places::{SPILL_FOLDER, STORE_FILE};
use switchboard::internal::sharing::SharedConnections;
use switchboard::permissions::{Approver, Engine, PermissionGate, Policy};
use switchboard::status::{ServerState, ServerStatus};
use switchboard::{ClientHandler, Gate, Host, HostOptions, HostSettings, ServerName};
use switchboard_agent::FailedServer;
use switchboard_config::text::visible;
use switchboard_store::{Key, MemoryStore, Space, SqliteStore, Store, UnavailableStore};
use tokio::runtime::Runtime;

use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::questions::{AtTerminal, SamplingModel};
use crate::server_logs::Recorder;
use crate::servers::{Servers, doctor_hint};
use crate::startup;
use crate::state::{self, unusable};
use crate::{consent, report, view};

/// The front end recorded in the audit log.
const FRONT_END: &str = "cli";
/// Idle time after which a server is stopped that clients share, unless its entry sets another.
const IDLE_SHUTDOWN: Duration = Duration::from_secs(600);
/// Grace period for blocking file work when the runtime shuts down.
const LAST_WORK: Duration = Duration::from_secs(2);

/// A host with the servers of a command, including those that cannot be started.
pub(crate) struct CommandHost<'c> {
    pub(crate) host: Host,
    pub(crate) context: &'c Context,
    pub(crate) servers: &'c Servers,
    pub(crate) gate: Arc<PermissionGate>,
    /// The default policy, for calls that no rule matches.
    pub(crate) policy: Policy,
    /// The store of agent sessions.
    pub(crate) store: Arc<dyn Store>,
    /// The model for sampling requests of servers, if any.
    pub(crate) sampling: Arc<SamplingModel>,
    /// The log of calls and logins.
    pub(crate) audit: Audit,
    /// Whether this run is non-interactive: no prompts and no later turns.
    pub(crate) is_scripted: bool,
    withheld_reported: OnceCell<()>,
}

#[derive(Debug, Clone)]
pub(crate) struct SessionMode {
    /// The default policy, for calls that no rule matches.
    pub(crate) policy: Policy,
    /// The front end recorded in the audit log.
    pub(crate) front_end: &'static str,
    /// Whether the user may be prompted, if there is a terminal.
    pub(crate) attended: bool,
    /// Whether servers are only listed: nothing is called, so the user is never prompted.
    pub(crate) lists_only: bool,
    /// Whether a model may start logins.
    pub(crate) logins: bool,
    /// Forwards prompts to connected clients instead of the terminal.
    pub(crate) clients: Option<ClientPrompts>,
}

/// Forwards prompts and requests of servers to connected clients.
#[derive(Clone)]
pub(crate) struct ClientPrompts {
    handler: Arc<dyn ClientHandler>,
    approver: Arc<dyn Approver>,
    /// Connections that clients share; `None` if there is one client.
    shared: Option<SharedConnections>,
}

impl ClientPrompts {
    pub(crate) fn of<T: ClientHandler + Approver + Clone>(questions: &T) -> Self {
        Self {
            handler: Arc::new(questions.clone()),
            approver: Arc::new(questions.clone()),
            shared: None,
        }
    }

    /// The same, for several clients, which share these connections with those of other hosts.
    pub(crate) fn sharing(self, connections: &SharedConnections) -> Self {
        Self {
            shared: Some(connections.clone()),
            ..self
        }
    }
}

impl std::fmt::Debug for ClientPrompts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClientPrompts")
            .finish_non_exhaustive()
    }
}

impl SessionMode {
    /// A command that a user typed.
    const TYPED: Self = Self {
        policy: Policy::typed(),
        front_end: FRONT_END,
        attended: true,
        lists_only: false,
        logins: false,
        clients: None,
    };
}

/// Runs a command's work with a host, and shuts the host down afterwards. No server starts before the work calls
/// [`CommandHost::start`] or one of its variants.
pub(crate) fn run(
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Outcome,
) -> Outcome {
    run_typed(SessionMode::TYPED, context, servers, work)
}

/// Like [`run`], for a command that lists what servers offer and calls nothing. It declares the same client
/// capabilities as a chat at a terminal, since some servers list fewer tools without them.
pub(crate) fn run_listing(
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Outcome,
) -> Outcome {
    let mode = SessionMode {
        lists_only: true,
        ..SessionMode::TYPED
    };
    run_typed(mode, context, servers, work)
}

fn run_typed(
    mode: SessionMode,
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&CommandHost<'_>) -> Outcome,
) -> Outcome {
    run_in(mode, context, servers, async |session, mut interrupts| {
        tokio::select! {
            // Dropping the work cancels its pending requests, and the servers are notified.
            exit = interrupts.first() => Err(Failure::interrupted(exit)),
            outcome = work(session) => outcome,
        }
    })
}

/// Runs work that handles signals itself, in the given mode.
pub(crate) fn run_in(
    mode: SessionMode,
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&CommandHost<'_>, Interrupts) -> Outcome,
) -> Outcome {
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let runtime = runtime().map_err(startup_failure)?;
    let interrupts = Interrupts::listen().map_err(startup_failure)?;
    let whole: LocalBoxFuture<'_, Outcome> = Box::pin(async {
        let (session, recorder) = CommandHost::open(mode, context, servers).await;
        let outcome = work(&session, interrupts).await;
        session.close(recorder).await;
        outcome
    });
    // Boxed, so that the runtime's code is not compiled again for each command.
    let outcome = runtime.block_on(whole);
    runtime.shutdown_timeout(LAST_WORK);
    outcome
}

/// Runs work with a host on the current runtime, and shuts the host down afterwards.
#[cfg(unix)]
pub(crate) async fn open_for(
    mode: SessionMode,
    context: &Context,
    servers: &Servers,
    work: impl AsyncFnOnce(&CommandHost<'_>),
) {
    let (session, recorder) = CommandHost::open(mode, context, servers).await;
    work(&session).await;
    session.close(recorder).await;
}

impl<'c> CommandHost<'c> {
    async fn open(
        mode: SessionMode,
        context: &'c Context,
        servers: &'c Servers,
    ) -> (Self, Recorder) {
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
        let shared = mode.clients.as_ref().and_then(|it| it.shared.clone());
        let session = Self {
            is_scripted,
            host: Host::with_options(HostOptions {
                settings: HostSettings {
                    idle_shutdown: shared.is_some().then_some(IDLE_SHUTDOWN),
                    ..HostSettings::from(&servers.config.settings)
                },
                shared,
                gate: Arc::clone(&gate) as Arc<dyn Gate>,
                handler: match mode.clients {
                    Some(clients) => clients.handler,
                    None => handler(&mode, context, &sampling),
                },
                store: state,
                spill_folder: Some(spill_folder(context)),
                logins: logins.map(|logins| Arc::new(logins) as Arc<dyn Logins>),
                desired,
                ..HostOptions::default()
            }),
            gate,
            policy: mode.policy,
            store: conversations,
            sampling,
            audit,
            context,
            servers,
            withheld_reported: OnceCell::new(),
        };
        let recorder = Recorder::start(&session.host, Arc::clone(&session.store));
        (session, recorder)
    }

    /// Ends the host. The output is complete: servers exit by themselves, and their supervisor ensures it.
    async fn close(&self, recorder: Recorder) {
        self.host.leave().await;
        recorder.stop().await;
        self.audit.close().await;
    }

    /// Starts every server and waits until each is connected or has failed. Reports those that failed and those that
    /// cannot be started.
    pub(crate) async fn start(&self) {
        self.report_withheld();
        self.start_some(|_| true).await;
        self.warn_of_idle_rules();
    }

    /// Like [`start`](Self::start), for a command that prints the reasons itself.
    pub(crate) async fn start_quietly(&self) {
        self.bring_up(|_| true).await;
        self.warn_of_idle_rules();
    }

    /// Starts the one server that the command needs, and fails if it cannot be used.
    pub(crate) async fn start_one(&self, name: &str) -> Result<(), Failure> {
        self.bring_up(|each| each.as_str() == name).await;
        self.need(name)
    }

    /// Reconnects a server and waits until it has settled. Clears a pending login requirement.
    pub(crate) async fn restart(&self, name: &ServerName) {
        self.host.restart(name).await;
        let starting = std::slice::from_ref(name);
        startup::follow(&self.host, starting, &self.context.printer).await;
    }

    /// Starts the servers matching `wanted` that are not running, waits for them, and reports failures.
    pub(crate) async fn start_some(&self, wanted: impl Fn(&ServerName) -> bool) {
        let started = self.bring_up(wanted).await;
        for status in self.host.statuses() {
            if started.contains(&status.name) {
                self.report_start(&status);
            }
        }
    }

    /// Starts the servers matching `wanted` that are not running, waits until they have settled, and returns them.
    async fn bring_up(&self, wanted: impl Fn(&ServerName) -> bool) -> Vec<ServerName> {
        // Includes servers that a chat is connecting in the background.
        let is_starting = |state: &ServerState| {
            state.is_not_started() || matches!(state, ServerState::Pending { .. })
        };
        let statuses = self.host.statuses().into_iter();
        let starting: Vec<ServerName> = statuses
            .filter(|status| is_starting(&status.state) && wanted(&status.name))
            .map(|status| status.name)
            .collect();
        if starting.is_empty() {
            return starting;
        }
        self.host.start(&starting).await;
        startup::follow(&self.host, &starting, &self.context.printer).await;
        // The command continues now and ends before a retry could succeed.
        self.host.give_up().await;
        starting
    }

    /// Fails if this server cannot be used.
    pub(crate) fn need(&self, name: &str) -> Result<(), Failure> {
        match self.host.status(&name.into()) {
            Some(status) => unusable(&status).map_or(Ok(()), Err),
            None => Err(self.servers.unknown(name)),
        }
    }

    /// The exit code of a command that succeeded otherwise: a failure if a required server is missing.
    pub(crate) fn exit(&self) -> Exit {
        // Disabled servers and those that the command did not start do not count as missing.
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

    pub(crate) fn names(&self) -> Vec<String> {
        let statuses = self.host.statuses();
        let names = statuses
            .iter()
            .map(|status| status.name.as_str().to_owned());
        names.collect()
    }

    /// Every server whose tools are missing, with the reason. All commands report missing servers from this list.
    pub(crate) fn missing(&self) -> Vec<FailedServer> {
        let statuses = self.host.statuses();
        let absent = statuses.iter().filter_map(ServerStatus::absence);
        absent.map(FailedServer::from).collect()
    }

    /// Reports each server that cannot be started, in one line and only once. Disabled servers are left out, and so are
    /// errors of entries that were already reported with the configuration.
    pub(crate) fn report_withheld(&self) {
        if self.withheld_reported.set(()).is_err() {
            return;
        }
        let all_reported =
            report::shows_all(&self.servers.config.diagnostics, &self.context.printer);
        for status in self.host.statuses() {
            let is_known = all_reported && state::is_in_findings(status.word());
            if status.state.is_withheld() && status.absence().is_some() && !is_known {
                self.report_not_started(&status);
            }
        }
    }

    /// Prints one line: the server, why it cannot be started, and the remedy.
    pub(crate) fn report_not_started(&self, status: &ServerStatus) {
        let name = visible(status.name.as_str());
        let reason = status.reason().unwrap_or_default();
        let remedy = status.remedy().map(|remedy| remedy.to_string());
        let remedy = remedy.unwrap_or_default();
        self.context
            .printer
            .note(format!("{name} is not started: {reason}; {remedy}"));
    }

    /// Suggests `doctor` for servers that have failed, for a command that has printed the reasons.
    pub(crate) fn suggest_doctor(&self) {
        let statuses = self.host.statuses();
        let failed = statuses
            .iter()
            .filter(|status| matches!(status.state, ServerState::Failed { .. }));
        let names: Vec<_> = failed
            .map(|status| visible(status.name.as_str()).into_owned())
            .collect();
        match names.as_slice() {
            [] => {}
            [name] => self.context.printer.note(doctor_hint(name)),
            _ => self.context.printer.note("see `switchboard doctor`"),
        }
    }

    /// Warns about permission rules that match no tool. Needs every server to be connected.
    pub(crate) fn warn_of_idle_rules(&self) {
        // A rule may be about a server that this command leaves out.
        if self.servers.is_limited() {
            return;
        }
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

    /// Reports the outcome of starting a server.
    pub(crate) fn report_start(&self, status: &ServerStatus) {
        let printer = &self.context.printer;
        if let Some(warning) = state::warning(status) {
            printer.warning(warning, None);
        } else if status.state.is_connected() {
            printer.detail(format!("{} is connected", visible(status.name.as_str())));
        }
    }
}

/// The handler for requests from servers.
fn handler(
    mode: &SessionMode,
    context: &Context,
    sampling: &Arc<SamplingModel>,
) -> Arc<dyn ClientHandler> {
    let asks = AtTerminal::new(context, mode.attended, Arc::clone(sampling));
    Arc::new(if mode.lists_only {
        asks.listing()
    } else {
        asks
    })
}

/// Builds the permission engine from the rules of a configuration.
pub(crate) fn engine(servers: &Servers, context: &Context, policy: Policy) -> Engine {
    let policy = policy.with_settings(&servers.config.settings);
    let engine =
        Engine::new(&servers.config, &context.folders(), policy).open_folder(spill_folder(context));
    if servers.lacks_bash_sandbox() {
        engine.asking_before_commands()
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
    let has_commands = mode.front_end != FRONT_END && mode.policy != Policy::gateway();
    if servers.lacks_bash_sandbox() && has_commands {
        context.printer.warning(
            "the agent's commands run without a sandbox, since this kernel does not support Landlock; commands that no rule allows require a prompt",
            Some("`bash_sandbox = \"off\"` in your user file accepts this"),
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
        Some(clients) => gate.asking(Arc::clone(&clients.approver)),
        None if mode.attended => gate.asking(Arc::new(consent::Terminal::new(context))),
        None => gate,
    })
}

pub(crate) fn spill_folder(context: &Context) -> PathBuf {
    context.environment.state.join(SPILL_FOLDER)
}

pub(crate) fn store_file(context: &Context) -> PathBuf {
    context.environment.state.join(STORE_FILE)
}

pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Opens the state store. One that cannot be opened is represented by a store whose operations fail: it must not look
/// like an empty one.
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

struct Stores {
    /// Pins, the audit log and caches.
    state: Arc<dyn Store>,
    /// Agent sessions; in memory if the file cannot be used.
    conversations: Arc<dyn Store>,
}

/// Warns, once, if audit entries cannot be written.
fn warn_of_audit(audit: &Audit, context: &Context) {
    let printer = context.printer.clone();
    audit.on_failure(move |error| {
        let message = format!(
            "calls are not recorded in the audit log: {}",
            visible(&error.to_string())
        );
        let hint = error
            .hint()
            .unwrap_or("`audit = \"required\"` refuses such calls");
        printer.warning(message, Some(hint));
    });
}
