//! One connection of one server, from start to end, as one task.
//!
//! Owns everything that happens on a connection without a caller. It reports to the manager and does not decide on
//! states. Dropping the task closes the connection.
//!
//! This file opens the connection; `keep` is its event loop, `health` probes it, `offer` lists tools and compares them
//! with their pins, `listen` subscribes to changes, `observer` routes unsolicited messages.

mod health;
mod keep;
mod listen;
mod observer;
mod offer;

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_config::entry::{Sharing, Transport};
use switchboard_protocol::Era;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};

use super::Report;
use super::install::Signs;
use super::lists::Lists;
use crate::catalog::{ServerTools, ToolRules};
use crate::events::Events;
use crate::handler::ClientHandler;
use crate::logs::LogRing;
use crate::memory::Memory;
use crate::names::{Generation, ServerName};
use crate::options::HostSettings;
use crate::peer::{
    self, ListKind, Observer, OpenError, OpenErrorKind, OpenOptions, OpenStep, Peer, RequestError,
};
use crate::pins::Judgement;
use crate::sandbox;
use crate::sharing::{BindingHandler, ClientConnections, SharedConnections};
use crate::spec::ServerSpec;
use crate::status::{Cause, Failure};
use crate::transport::Closed;
use keep::Keeper;
use observer::ConnectionObserver;

pub(super) struct Connection {
    pub(super) spec: Arc<ServerSpec>,
    pub(super) generation: Generation,
    pub(super) delay: Duration,
    pub(super) settings: Arc<HostSettings>,
    pub(super) pool: Arc<Semaphore>,
    pub(super) memory: Memory,
    pub(super) handler: Arc<dyn ClientHandler>,
    pub(super) events: Events,
    pub(super) logs: Arc<LogRing>,
    pub(super) signals: Arc<Signals>,
    pub(super) subscriptions: watch::Receiver<Vec<String>>,
    pub(super) rules: watch::Receiver<ToolRules>,
    pub(super) sandbox: watch::Receiver<sandbox::SandboxState>,
    /// Idle timeout; `None`: never.
    pub(super) idle_shutdown: watch::Receiver<Option<Duration>>,
    /// Connections shared with other hosts.
    pub(super) shared: Option<SharedConnections>,
    /// Connections of single clients; `None` if the host has one client.
    pub(super) clients: Option<Arc<ClientConnections>>,
    pub(super) reports: mpsc::Sender<(ServerName, Generation, Report)>,
    /// Whether something differs from its pin, so that approvals are checked.
    pub(super) pins_wait: AtomicBool,
    /// The pin result last reported.
    pub(super) pins_told: Mutex<Judgement>,
    /// Tools not yet examined.
    pub(super) unexamined: Mutex<Option<Arc<ServerTools>>>,
}

/// How late a deadline may be noticed on a busy machine.
const LATE: Duration = Duration::from_secs(1);
/// Lines of stderr included in a failure.
const STDERR_SHOWN: usize = 10;

/// Wakes a connection's task.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    woken: Notify,
    tools: AtomicBool,
    prompts: AtomicBool,
    resources: AtomicBool,
    probe: AtomicBool,
    /// Callers that wait until the tools are listed.
    listing: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Signals {
    /// Requests an immediate probe.
    pub(crate) fn probe(&self) {
        self.probe.store(true, Ordering::Release);
        self.woken.notify_one();
    }

    /// Requests that a list is fetched again.
    pub(crate) fn refresh(&self, kind: ListKind) {
        self.flag(kind).store(true, Ordering::Release);
        self.woken.notify_one();
    }

    /// Requests that the tools are listed at once.
    pub(crate) fn list_tools(&self, done: oneshot::Sender<()>) {
        self.listing().push(done);
        self.woken.notify_one();
    }

    fn listing(&self) -> MutexGuard<'_, Vec<oneshot::Sender<()>>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flag(&self, kind: ListKind) -> &AtomicBool {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources | ListKind::Templates => &self.resources,
        }
    }

    fn take(flag: &AtomicBool) -> bool {
        flag.swap(false, Ordering::AcqRel)
    }
}

#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) peer: Peer,
    pub(crate) lists: Arc<Lists>,
    pub(crate) tools: Arc<ServerTools>,
    pub(crate) startup: Duration,
    pub(crate) latency: Duration,
}

impl Connection {
    pub(super) async fn run(self) {
        if !self.delay.is_zero() {
            sleep(self.delay).await;
        }
        let Ok(permit) = self.pool.acquire().await else {
            return;
        };
        self.report(Report::Begun).await;
        let signs = Arc::new(Signs::default());
        let outcome = self
            .within_deadline(self.establish(&signs), &signs, permit)
            .await;
        let failure = match outcome {
            Ok(Ok(established)) => {
                let (peer, lists) = (established.peer.clone(), Arc::clone(&established.lists));
                self.report(Report::Established(Box::new(established)))
                    .await;
                let end = tokio::select! {
                    lost = Keeper::new(&self, &peer, &lists).run() => Report::Lost(lost),
                    () = self.unused(&peer) => Report::Unused,
                };
                if matches!(end, Report::Lost(_)) {
                    peer.give_up();
                }
                return self.report(end).await;
            }
            Ok(Err(error)) => self.failure(&error),
            Err(elapsed) => {
                let limit = self.spec.startup_timeout;
                // An installation had more time than the limit.
                let limit = if elapsed > limit + LATE {
                    elapsed
                } else {
                    limit
                };
                let limit = (limit.as_secs_f64() * 10.0).round() / 10.0;
                Failure {
                    step: Some(step_of(signs.step.load(Ordering::Relaxed))),
                    cause: Cause::Timeout,
                    message: format!("not ready within {limit} s"),
                    stderr: self.logs.stderr_tail(STDERR_SHOWN),
                }
            }
        };
        self.report(Report::Failed(Box::new(failure))).await;
    }

    async fn establish(&self, signs: &Arc<Signs>) -> Result<Established, OpenError> {
        let started = Instant::now();
        let options = OpenOptions {
            known: self.memory.revision(self.spec.key).await,
            limits: self.settings.limits,
            ..self.settings.open.clone()
        };
        let observer = Arc::new(ConnectionObserver {
            server: self.spec.name.clone(),
            events: self.events.clone(),
            logs: Arc::clone(&self.logs),
            signals: Arc::clone(&self.signals),
            signs: Arc::clone(signs),
            redactor: self.spec.redactor.clone(),
        });
        let starts = AtomicU8::new(0);
        let at = |step: OpenStep| {
            if step == OpenStep::Connect {
                starts.fetch_add(1, Ordering::Relaxed);
            }
            signs.step.store(step as u8, Ordering::Relaxed);
        };
        let opened = self.open(&options, observer, &at).await;
        let peer = match opened {
            Ok(peer) => peer,
            Err(error) => {
                let is_program = self.spec.connector.transport() == Transport::Stdio;
                if is_program && starts.load(Ordering::Relaxed) > 1 {
                    // It exited on discovery and on the handshake alike. Remembering a stateful revision avoids the
                    // second start next time.
                    let supported = options.supported.iter().copied();
                    if let Some(revision) = supported.filter(|one| one.era() == Era::Stateful).max()
                    {
                        self.memory.remember_revision(self.spec.key, revision).await;
                    }
                }
                return Err(error);
            }
        };
        self.tell_of_sandbox(&peer).await;
        at(OpenStep::List);
        let listing = Instant::now();
        let lists = Arc::new(Lists::new(peer.clone(), self.settings.catalog_ttl));
        let tools = match self.fetch_tools(&peer, &lists).await {
            Ok(tools) => tools,
            Err(error) => {
                peer.close().await;
                return Err(OpenError {
                    step: OpenStep::List,
                    kind: unauthorized_or(error),
                });
            }
        };
        if options.known != Some(peer.revision()) {
            self.memory
                .remember_revision(self.spec.key, peer.revision())
                .await;
        }
        Ok(Established {
            peer,
            lists,
            tools,
            startup: started.elapsed(),
            latency: listing.elapsed(),
        })
    }

    /// Opens the connection, or attaches to that of another host.
    async fn open(
        &self,
        options: &OpenOptions,
        observer: Arc<dyn Observer>,
        at: &(dyn Fn(OpenStep) + Send + Sync),
    ) -> Result<Peer, OpenError> {
        let mut handler = self.spec.roots.handler(&self.handler);
        let mut is_bound = false;
        if let Some(clients) = &self.clients {
            if self.spec.sharing == Sharing::Auto && self.memory.is_bound(self.spec.key).await {
                clients.bind();
            }
            is_bound = clients.is_bound();
            if self.spec.sharing == Sharing::Auto && !is_bound {
                handler = Arc::new(BindingHandler {
                    handler,
                    spec: Arc::clone(&self.spec),
                    memory: self.memory.clone(),
                    clients: Arc::clone(clients),
                });
            }
        }
        let (name, connector) = (&self.spec.name, &*self.spec.connector);
        match (&self.shared, self.spec.share_key) {
            (Some(shared), Some(key)) if !is_bound => {
                let open = |observer| peer::open(name, connector, options, observer, handler, at);
                shared.attach(key, observer, open).await
            }
            _ => peer::open(name, connector, options, observer, handler, at).await,
        }
    }

    fn failure(&self, error: &OpenError) -> Failure {
        Failure {
            step: Some(error.step),
            cause: Cause::from(&error.kind),
            message: error.to_string(),
            stderr: self.logs.stderr_tail(STDERR_SHOWN),
        }
    }

    fn lost(&self, closed: &Closed) -> Failure {
        let cause = match closed {
            Closed::Exited(_) | Closed::Signalled(_) => Cause::Exited,
            _ => Cause::Lost,
        };
        Failure {
            step: None,
            cause,
            message: closed.to_string(),
            stderr: self.logs.stderr_tail(STDERR_SHOWN),
        }
    }

    pub(super) async fn report(&self, mut report: Report) {
        // Failures are shown to users, so secrets the server echoed are masked.
        let failure = match &mut report {
            Report::Failed(failure) => Some(&mut **failure),
            Report::Lost(failure) => Some(failure),
            _ => None,
        };
        if let Some(failure) = failure {
            failure.message = self.spec.redactor.redact(&failure.message).into_owned();
        }
        let (server, generation) = (self.spec.name.clone(), self.generation);
        let _ = self.reports.send((server, generation, report)).await;
    }
}

/// Observes connections of single clients: their log lines are those of the server.
pub(super) fn observer_of(
    spec: &ServerSpec,
    events: Events,
    logs: Arc<LogRing>,
) -> impl Observer + use<> {
    ConnectionObserver {
        server: spec.name.clone(),
        events,
        logs,
        signals: Arc::default(),
        signs: Arc::default(),
        redactor: spec.redactor.clone(),
    }
}

fn unauthorized_or(error: RequestError) -> OpenErrorKind {
    match error {
        RequestError::Refused(refusal) if refusal.status == 401 || refusal.wants_more_scope() => {
            OpenErrorKind::Unauthorized(refusal)
        }
        error => OpenErrorKind::Request(error),
    }
}

fn step_of(number: u8) -> OpenStep {
    [
        OpenStep::Connect,
        OpenStep::Discover,
        OpenStep::Initialize,
        OpenStep::List,
    ]
    .into_iter()
    .find(|step| *step as u8 == number)
    .unwrap_or(OpenStep::Connect)
}
