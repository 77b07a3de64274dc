//! One connection of one server, from its start to its end, as one task.
//!
//! Owns everything that happens over a connection by itself: opening it, listing, watching its health, refreshing
//! lists that changed, listening for changes. It reports to the manager and decides nothing about states. Dropping
//! the task ends the connection.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, pending};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use switchboard_config::entry::Transport;
use switchboard_config::redact::Redactor;
use switchboard_protocol::types::subscription::{
    SubscriptionFilter, SubscriptionsListenRequestParams,
};
use switchboard_protocol::types::wire::List;
use switchboard_protocol::{Era, Method};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::Report;
use super::install::Signs;
use super::lists::Lists;
use crate::catalog::suspicion;
use crate::catalog::{
    ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolReader, ToolRules,
};
use crate::events::{Event, Events, LogLine, LogSource};
use crate::handler::ClientHandler;
use crate::host::server_tools;
use crate::json::SharedJson;
use crate::logs::LogRing;
use crate::memory::Memory;
use crate::names::{Generation, ServerName, WireName};
use crate::options::HostSettings;
use crate::peer::{
    self, ListKind, Notice, Observer, OpenError, OpenErrorKind, OpenOptions, OpenStep, Pages, Peer,
    RequestError, RequestOptions,
};
use crate::pins::{Judgement, Listing};
use crate::sandbox;
use crate::spec::ServerSpec;
use crate::status::{Cause, Failure};
use crate::transport::Closed;

/// How well a connection is.
struct Health {
    /// When to look at it next.
    next: Instant,
    /// Probes that have failed in a row.
    failures: u32,
    way: ProbeBy,
}

/// How a server is asked whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeBy {
    /// By the probe of its era.
    Era,
    /// By the first page of a list that it has.
    List,
}

impl Health {
    fn new(interval: Duration) -> Self {
        Self {
            next: Instant::now() + interval,
            failures: 0,
            way: ProbeBy::Era,
        }
    }

    /// Something was heard at that moment.
    fn alive(&mut self, heard: Instant, interval: Duration) {
        self.failures = 0;
        self.next = (heard + interval).max(Instant::now() + SHORTEST_WAIT);
    }
}

impl ProbeBy {
    const fn other(self) -> Self {
        match self {
            Self::Era => Self::List,
            Self::List => Self::Era,
        }
    }
}

/// What a connection is made from.
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
    pub(super) sandbox: watch::Receiver<sandbox::State>,
    /// How long the server may rest before it is ended.
    pub(super) idle_shutdown: watch::Receiver<Option<Duration>>,
    pub(super) reports: mpsc::Sender<(ServerName, Generation, Report)>,
    /// Whether something differs from its pin, so that an approval is looked out for.
    pub(super) pins_wait: AtomicBool,
    /// What was last told of the pins.
    pub(super) pins_told: Mutex<Judgement>,
    /// Tools that nobody has looked over yet.
    pub(super) unexamined: Mutex<Option<Arc<ServerTools>>>,
}

/// What wakes a connection's task.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    woken: Notify,
    tools: AtomicBool,
    prompts: AtomicBool,
    resources: AtomicBool,
    probe: AtomicBool,
}

impl Signals {
    /// Asks for a probe at once.
    pub(crate) fn probe(&self) {
        self.probe.store(true, Ordering::Release);
        self.woken.notify_one();
    }

    /// Asks for a list to be fetched again.
    pub(crate) fn refresh(&self, kind: ListKind) {
        self.flag(kind).store(true, Ordering::Release);
        self.woken.notify_one();
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

/// A connection that has been made.
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
                    lost = self.keep(&peer, &lists) => Report::Lost(lost),
                    () = self.unused(&peer) => Report::Unused,
                };
                return self.report(end).await;
            }
            Ok(Err(error)) => self.failure(&error),
            Err(elapsed) => {
                let limit = self.spec.startup_timeout;
                // What was being installed had longer.
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
        let at = |begun: OpenStep| {
            if begun == OpenStep::Connect {
                starts.fetch_add(1, Ordering::Relaxed);
            }
            signs.step.store(begun as u8, Ordering::Relaxed);
        };
        let opened = peer::open(
            &self.spec.name,
            &*self.spec.connector,
            &options,
            observer,
            self.spec.roots.handler(&self.handler),
            &at,
        );
        let peer = match opened.await {
            Ok(peer) => peer,
            Err(error) => {
                let is_program = self.spec.connector.transport() == Transport::Stdio;
                if is_program && starts.load(Ordering::Relaxed) > 1 {
                    // It ended over the first question and over the handshake alike. Which of the two it minds is not
                    // known, and next time it is started once.
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

    /// Lists the tools anew and remembers the list.
    async fn fetch_tools(
        &self,
        peer: &Peer,
        lists: &Lists,
    ) -> Result<Arc<ServerTools>, RequestError> {
        let rules = self.rules.borrow().clone();
        let limits = ListLimits::default();
        let (name, reach) = (&self.spec.name, reach(peer));
        let mut reader = ToolReader::new(name, &rules, reach, Provenance::Live, limits);
        let read = |page: &SharedJson| reader.page(page);
        let pages = lists
            .fetch(ListKind::Tools, self.settings.list_timeout, read)
            .await?;
        let tools = reader.finish();
        let (bytes, tools) = self.offered(peer, &pages, Some((tools, rules))).await;
        self.memory.remember_catalog(self.spec.key, bytes).await;
        Ok(tools)
    }

    /// What a list of tools comes to by the rules and the pins of the moment. There is no other way to an offer, so
    /// nothing is offered that was not compared. The first part is the list as it is kept.
    ///
    /// Tools that have been `read` are taken as they are, unless the rules they were read by have changed since.
    async fn offered(
        &self,
        peer: &Peer,
        pages: &Pages,
        read: Option<(ServerTools, ToolRules)>,
    ) -> (Bytes, Arc<ServerTools>) {
        let facts = peer.facts();
        let catalog = ServerCatalog {
            tools: pages.pages.clone(),
            instructions: facts.instructions.clone(),
            ..ServerCatalog::default()
        };
        if let Some(cut) = &pages.cut {
            tracing::warn!(server = %self.spec.name, cut, "the list of tools is not complete");
        }
        let reach = reach(peer);
        let rules = self.rules.borrow().clone();
        let tools = match read {
            Some((tools, by)) if by == rules => tools,
            _ => server_tools(&self.spec.name, &rules, &catalog, reach, Provenance::Live),
        };
        let bytes = catalog.to_record();
        if !rules.pins() {
            self.pins_wait.store(false, Ordering::Release);
            return (bytes, self.to_be_examined(tools));
        }
        let listing = Listing {
            server: &self.spec.name,
            tools: &tools,
            instructions: facts.instructions.as_deref(),
            bytes: &bytes,
            reach,
        };
        let policy = self.settings.pins;
        let judgement = self
            .memory
            .compare(self.spec.identity, listing, policy)
            .await;
        let tools = judgement.apply(tools);
        self.tell_of_pins(judgement);
        (bytes, self.to_be_examined(tools))
    }

    /// Says what is new and what differs, once for each difference.
    fn tell_of_pins(&self, judgement: Judgement) {
        self.pins_wait.store(judgement.waits(), Ordering::Release);
        let server = || self.spec.name.clone();
        if !judgement.added.is_empty() {
            self.events.send(Event::ToolsPinned {
                server: server(),
                tools: judgement.added.clone(),
            });
        }
        let judgement = Judgement {
            added: Vec::new(),
            ..judgement
        };
        let mut told = self.pins_told();
        let revision = judgement.revision;
        let is_news = Judgement {
            revision,
            ..told.clone()
        } != judgement;
        if is_news && judgement.waits() {
            let changed = judgement.changed.iter().map(|(name, _)| name.clone());
            let renamed = judgement.renamed.iter().map(|(name, _)| name.clone());
            let mut tools: Vec<WireName> = changed.chain(renamed).collect();
            tools.sort();
            tracing::warn!(server = %self.spec.name, tools = tools.len(), "something differs from its pin and is withheld");
            self.events.send(Event::PinsDiffer {
                server: server(),
                tools,
                instructions: judgement.instructions_changed,
            });
        }
        *told = judgement;
    }

    fn to_be_examined(&self, tools: ServerTools) -> Arc<ServerTools> {
        let tools = Arc::new(tools);
        *self.unexamined() = Some(Arc::clone(&tools));
        tools
    }

    /// Tells of what looks suspicious, if anybody listens. It takes its time, so it is done beside everything else.
    fn examine(&self, peer: &Peer) {
        let Some(tools) = self.unexamined().take() else {
            return;
        };
        if !self.events.has_listeners() {
            return;
        }
        let (server, events) = (self.spec.name.clone(), self.events.clone());
        let instructions = peer.facts().instructions.clone();
        tokio::task::spawn_blocking(move || {
            let of_tools = tools
                .tools()
                .iter()
                .map(|tool| (Some(tool.reference().tool.clone()), tools.flags(tool)));
            let instructions = instructions.unwrap_or_default();
            let of_instructions = suspicion::of_text("instructions", &instructions);
            let found: Vec<_> = of_tools
                .chain([(None, of_instructions)])
                .filter(|(_, flags)| !flags.is_empty())
                .collect();
            if !found.is_empty() {
                events.send(Event::Suspicious { server, found });
            }
        });
    }

    fn unexamined(&self) -> MutexGuard<'_, Option<Arc<ServerTools>>> {
        self.unexamined
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells a server that wants to know what it may do.
    async fn tell_of_sandbox(&self, peer: &Peer) {
        let capabilities = peer.facts().capabilities.as_ref();
        let is_wanted = capabilities.is_some_and(|capabilities| {
            let mut experimental = capabilities.experimental.iter();
            experimental.any(|(name, _)| name == sandbox::STATE_CAPABILITY)
        });
        if !is_wanted {
            return;
        }
        let params = self.sandbox.borrow().params();
        let params = params.and_then(|params| serde_json::value::to_raw_value(&params).ok());
        let Some(params) = params else {
            return;
        };
        let told = peer.notify_by_name(sandbox::STATE_UPDATE, Some(&params));
        if let Err(error) = told.await {
            tracing::warn!(server = %self.spec.name, error = %self.spec.redactor.redact(&error.to_string()), "it could not be told of its sandbox");
        }
    }

    fn pins_told(&self) -> MutexGuard<'_, Judgement> {
        self.pins_told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks after a connection until it is lost, and says how.
    async fn keep(&self, peer: &Peer, lists: &Arc<Lists>) -> Failure {
        let mut health = Health::new(self.settings.health_interval);
        let mut next_refresh = self.next_refresh(lists);
        let mut listed: Option<Instant> = None;
        let mut spacing = COALESCED;
        let mut rules = self.rules.clone();
        let mut sandbox = self.sandbox.clone();
        let mut next_look = Instant::now() + APPROVALS;
        let mut next_examination = Instant::now() + EXAMINED_AFTER;
        let mut subscriptions = self.subscriptions.clone();
        let mut listening = self.listen(peer, &subscriptions.borrow_and_update());
        loop {
            tokio::select! {
                closed = peer.closed() => return self.lost(&closed),
                () = self.signals.woken.notified() => {
                    if Signals::take(&self.signals.probe)
                        && let Err(failure) = self.probe_at_once(peer, &mut health).await
                    {
                        return failure;
                    }
                    self.act_on_signals(lists).await;
                    if self.signals.tools.load(Ordering::Acquire) {
                        let earliest = listed.map(|listed| listed + spacing);
                        if let Some(earliest) = earliest.filter(|at| Instant::now() < *at) {
                            // However often a list changes, it is not fetched each time.
                            next_refresh = earliest;
                        } else {
                            // The longer it goes on changing, the less often it is fetched.
                            let goes_on = listed.is_some_and(|at| at.elapsed() < 2 * spacing);
                            spacing = if goes_on { (2 * spacing).min(MOST_COALESCED) } else { COALESCED };
                            self.list_again(peer, lists).await;
                            listed = Some(Instant::now());
                            next_refresh = self.next_refresh(lists);
                        }
                    }
                }
                () = sleep_until(next_refresh) => {
                    // In case the signal finds the list unchanged or unreadable, it is not asked for in a loop.
                    next_refresh = Instant::now() + SHORTEST_REFRESH;
                    self.signals.refresh(ListKind::Tools);
                }
                () = sleep_until(health.next) => {
                    let interval = self.settings.health_interval;
                    // A server that is at work may be too busy to answer, and its callers have deadlines.
                    let is_due = health.failures > 0 || peer.heard().elapsed() >= interval;
                    if is_due && !peer.is_busy() {
                        if let Err(failure) = self.probe(peer, &mut health).await {
                            return failure;
                        }
                    } else {
                        let heard = if peer.is_busy() { Instant::now() } else { peer.heard() };
                        health.alive(heard, interval);
                    }
                }
                changed = rules.changed() => {
                    if changed.is_err() {
                        return self.lost(&Closed::ByUs);
                    }
                    self.apply_rules(peer, lists).await;
                }
                () = sleep_until(next_examination), if self.unexamined().is_some() => {
                    self.examine(peer);
                    next_examination = Instant::now() + EXAMINED_AFTER;
                }
                changed = sandbox.changed() => {
                    if changed.is_err() {
                        return self.lost(&Closed::ByUs);
                    }
                    self.tell_of_sandbox(peer).await;
                }
                () = sleep_until(next_look), if self.pins_wait.load(Ordering::Acquire) => {
                    let revision = self.memory.pins_revision(self.spec.identity).await;
                    let (is_news, pause) = {
                        let told = self.pins_told();
                        match revision {
                            // The store cannot be read, as before.
                            Err(_) => (false, UNUSABLE_STORE),
                            // It may have become writable, which only a write shows.
                            Ok(_) if told.unpinned.is_some() => (true, UNUSABLE_STORE),
                            Ok(revision) => {
                                let is_back = told.unreadable.is_some() && told.revision.is_none();
                                (is_back || revision != told.revision, APPROVALS)
                            }
                        }
                    };
                    if is_news {
                        self.apply_rules(peer, lists).await;
                    }
                    next_look = Instant::now() + pause;
                }
                ended = &mut listening => {
                    // As text and not in full: the body of a refusal may hold anything.
                    let error = ended.as_ref().err().map(tracing::field::display);
                    tracing::debug!(server = %self.spec.name, error, "the subscription has ended");
                    listening = match ended {
                        Ok(()) => self.listen_later(peer, &subscriptions.borrow(), 4),
                        // A server that refuses to be listened to is not asked again.
                        Err(RequestError::Rejected(_)) => pending().boxed(),
                        Err(_) => self.listen_later(peer, &subscriptions.borrow(), 6),
                    };
                }
                changed = subscriptions.changed() => {
                    if changed.is_err() {
                        return self.lost(&Closed::ByUs);
                    }
                    listening = self.listen(peer, &subscriptions.borrow_and_update());
                }
            }
        }
    }

    /// When the tools are listed again by themselves.
    fn next_refresh(&self, lists: &Lists) -> Instant {
        let now = Instant::now();
        let stale = lists
            .fresh_until(ListKind::Tools)
            .unwrap_or(now + self.settings.catalog_ttl);
        // The user's own word is not doubted, a server's is.
        stale.max(now + SHORTEST_REFRESH.min(self.settings.catalog_ttl))
    }

    /// Offers the tools by rules that have changed. The server need not know.
    async fn apply_rules(&self, peer: &Peer, lists: &Arc<Lists>) {
        match lists.get(ListKind::Tools, self.settings.list_timeout).await {
            Ok(pages) => {
                let (_, tools) = self.offered(peer, &pages, None).await;
                self.report(Report::Tools(tools)).await;
            }
            Err(error) => {
                tracing::warn!(server = %self.spec.name, error = %self.spec.redactor.redact(&error.to_string()), "the tools could not be listed again");
            }
        }
    }

    async fn act_on_signals(&self, lists: &Arc<Lists>) {
        for kind in [ListKind::Prompts, ListKind::Resources] {
            if Signals::take(self.signals.flag(kind)) {
                lists.changed(kind);
                self.report(Report::ListChanged(kind)).await;
            }
        }
    }

    async fn list_again(&self, peer: &Peer, lists: &Arc<Lists>) {
        Signals::take(&self.signals.tools);
        lists.changed(ListKind::Tools);
        match self.fetch_tools(peer, lists).await {
            Ok(tools) => self.report(Report::Tools(tools)).await,
            Err(error) => {
                // The old list stays: better tools that may be gone than none.
                tracing::warn!(server = %self.spec.name, error = %self.spec.redactor.redact(&error.to_string()), "the tools could not be listed again");
            }
        }
    }

    /// Asks whether the server is there. The connection is lost when so many probes in a row have failed and nothing
    /// else was heard meanwhile.
    async fn probe(&self, peer: &Peer, health: &mut Health) -> Result<(), Failure> {
        let settings = &self.settings;
        let asked = Instant::now();
        let answer = match health.way {
            ProbeBy::Era => peer.probe(settings.health_timeout).await,
            ProbeBy::List => peer.probe_by_list(settings.health_timeout).await,
        };
        let error = match answer {
            Ok(()) => {
                self.report(Report::Probed(asked.elapsed())).await;
                health.alive(peer.heard(), settings.health_interval);
                return Ok(());
            }
            Err(error) => error,
        };
        if error.session_expired() || error.wants_authorization() {
            // There is no doubt about what it says.
            return Err(self.unanswered(1, &error));
        }
        if peer.heard() > asked || peer.is_busy() {
            // It talks, if not about this; or it is at work, and its callers have deadlines.
            health.alive(Instant::now(), settings.health_interval);
            return Ok(());
        }
        health.failures += 1;
        tracing::debug!(server = %self.spec.name, failures = health.failures, %error, "a probe failed");
        if health.failures >= settings.health_failures {
            return Err(self.unanswered(health.failures, &error));
        }
        let pause = if matches!(error, RequestError::Idle(_) | RequestError::Expired(_)) {
            // It may be busy with itself, and has time until the next probe. Or it answers everything but `ping`: what it
            // has answered before tells whether it is there.
            health.way = health.way.other();
            (asked + settings.health_interval).saturating_duration_since(Instant::now())
        } else {
            // It cannot be reached, which is known sooner.
            settings.backoff.before_attempt(health.failures - 1)
        };
        health.next = Instant::now() + pause.max(SHORTEST_WAIT);
        Ok(())
    }

    /// Asks whether the server is there when there is reason to doubt it: a call met with trouble, or the machine slept.
    /// Callers wait for the outcome, so the probes overlap.
    async fn probe_at_once(&self, peer: &Peer, health: &mut Health) -> Result<(), Failure> {
        let settings = &self.settings;
        let count = settings.health_failures.max(1);
        let pause = settings.health_timeout / count.saturating_mul(4);
        let begun = Instant::now();
        let mut probes: FuturesUnordered<_> = (0..count)
            .map(|number| async move {
                sleep(pause * number).await;
                if number % 2 == 0 {
                    peer.probe(settings.health_timeout).await
                } else {
                    peer.probe_by_list(settings.health_timeout).await
                }
            })
            .collect();
        let mut last = None;
        while let Some(answer) = probes.next().await {
            match answer {
                Ok(()) => {
                    self.report(Report::Probed(begun.elapsed())).await;
                    health.alive(peer.heard(), settings.health_interval);
                    return Ok(());
                }
                Err(_) if peer.heard() > begun => {
                    health.alive(peer.heard(), settings.health_interval);
                    return Ok(());
                }
                Err(error) if error.session_expired() || error.wants_authorization() => {
                    return Err(self.unanswered(1, &error));
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(self.unanswered(count, &error)),
            None => Ok(()),
        }
    }

    fn unanswered(&self, probes: u32, error: &RequestError) -> Failure {
        Failure {
            step: None,
            cause: Cause::Lost,
            message: match probes {
                1 => format!("it did not answer a probe: {error}"),
                probes => format!("it did not answer {probes} probes in a row: {error}"),
            },
            stderr: self.logs.stderr_tail(STDERR_SHOWN),
        }
    }

    /// Listens for changes in the way of the era, for as long as the future lives.
    fn listen(
        &self,
        peer: &Peer,
        resources: &[String],
    ) -> BoxFuture<'static, Result<(), RequestError>> {
        let peer = peer.clone();
        match peer.revision().era() {
            Era::Stateful => {
                let resources = resources.to_vec();
                let deadline = self.settings.list_timeout;
                async move {
                    subscribe_to_each(&peer, &resources, deadline).await;
                    pending().await
                }
                .boxed()
            }
            Era::Stateless => {
                let Some(filter) = filter(&peer, resources) else {
                    return pending().boxed();
                };
                async move {
                    let params = SubscriptionsListenRequestParams::new(filter);
                    let options = RequestOptions::within(LISTEN);
                    peer.ask(Method::SubscriptionsListen, &params, &options)
                        .await
                        .map(|_| ())
                }
                .boxed()
            }
        }
    }

    fn listen_later(
        &self,
        peer: &Peer,
        resources: &[String],
        attempt: u32,
    ) -> BoxFuture<'static, Result<(), RequestError>> {
        let listening = self.listen(peer, resources);
        let wait = self.settings.backoff.before_attempt(attempt);
        async move {
            sleep(wait).await;
            listening.await
        }
        .boxed()
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
        // Whatever a server wrote into its error is shown by many.
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

/// Changes of a list that follow each other this fast count as one.
const COALESCED: Duration = Duration::from_millis(100);
/// The most that this becomes for a list that never stops changing.
const MOST_COALESCED: Duration = Duration::from_secs(5);
/// The least time between two looks at a connection's health.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// How long tools wait to be looked over, so that it is in nobody's way.
const EXAMINED_AFTER: Duration = Duration::from_secs(1);
/// How often an approval is looked out for, while something waits for one.
const APPROVALS: Duration = Duration::from_secs(1);
/// How often a store that cannot be used is tried again.
const UNUSABLE_STORE: Duration = Duration::from_secs(10);
/// How late a deadline may be noticed on a busy machine.
const LATE: Duration = Duration::from_secs(1);
/// Lines of stderr that go with a failure.
const STDERR_SHOWN: usize = 10;
/// However short-lived a server says its list is, it is not fetched more often by itself, unless `catalog_ttl` is shorter.
const SHORTEST_REFRESH: Duration = Duration::from_secs(30);
/// How long one subscription may stand: as long as anything may.
const LISTEN: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What to ask a server of the stateless era to tell of; `None` if it has nothing to tell.
fn filter(peer: &Peer, resources: &[String]) -> Option<SubscriptionFilter<'static>> {
    let capabilities = peer.facts().capabilities.as_ref()?;
    let mut filter = SubscriptionFilter::default();
    let tells = |told: Option<bool>| told == Some(true);
    let tools = capabilities
        .tools
        .as_ref()
        .and_then(|list| list.list_changed);
    let prompts = capabilities
        .prompts
        .as_ref()
        .and_then(|list| list.list_changed);
    let listed = capabilities
        .resources
        .as_ref()
        .and_then(|list| list.list_changed);
    filter.tools_list_changed = tells(tools).then_some(true);
    filter.prompts_list_changed = tells(prompts).then_some(true);
    filter.resources_list_changed = tells(listed).then_some(true);
    filter.resource_subscriptions = resources
        .iter()
        .map(|uri| uri.clone().into())
        .collect::<List<'_, _>>();
    let wants = tells(tools) || tells(prompts) || tells(listed) || !resources.is_empty();
    wants.then_some(filter)
}

/// Subscribes to resources one by one, as the stateful era has it. One that is refused costs only itself.
async fn subscribe_to_each(peer: &Peer, resources: &[String], deadline: Duration) {
    use switchboard_protocol::types::resource::ResourceRequestParams;
    for uri in resources {
        let params = ResourceRequestParams::new(uri.clone().into());
        let options = RequestOptions::within(deadline);
        if let Err(error) = peer
            .ask(Method::ResourcesSubscribe, &params, &options)
            .await
        {
            tracing::warn!(server = %peer.server(), uri, %error, "a subscription was refused");
        }
    }
}

/// How calls reach a server.
fn reach(peer: &Peer) -> Reach {
    let facts = peer.facts();
    match (facts.transport, facts.revision.era()) {
        (Transport::Http, Era::Stateless) => Reach::StatelessHttp,
        _ => Reach::Other,
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

/// Brings what a server says unasked to where it belongs.
struct ConnectionObserver {
    server: ServerName,
    events: Events,
    logs: Arc<LogRing>,
    signals: Arc<Signals>,
    signs: Arc<Signs>,
    redactor: Redactor,
}

impl ConnectionObserver {
    fn log(&self, source: LogSource, text: String) {
        self.signs.lines.fetch_add(1, Ordering::Relaxed);
        let text = match self.redactor.redact(&text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        };
        let line = LogLine { source, text };
        if self.events.has_listeners() {
            self.events.send(Event::Log {
                server: self.server.clone(),
                line: line.clone(),
            });
        }
        self.logs.push(line);
    }
}

impl Observer for ConnectionObserver {
    fn notice(&self, notice: Notice<'_>) {
        match notice {
            Notice::ListChanged(kind) => self.signals.refresh(kind),
            Notice::Started(process) => self.signs.process.store(process, Ordering::Relaxed),
            Notice::ResourceUpdated(uri) => self.events.send(Event::ResourceUpdated {
                server: self.server.clone(),
                uri: uri.to_owned(),
            }),
            Notice::Diagnostic(line) => self.log(LogSource::Stderr, line.to_owned()),
            Notice::Noise(text) => self.log(LogSource::Noise, text.to_owned()),
            Notice::Log(message) => {
                let source = LogSource::Message {
                    level: message.level.as_str().to_owned(),
                    logger: message.logger.map(Cow::into_owned),
                };
                self.log(source, text_of(message.data.get()));
            }
            Notice::ElicitationComplete(_)
            | Notice::TaskChanged(_)
            | Notice::SubscriptionAcknowledged => {}
        }
    }

    fn closed(&self, _: &Closed) {}
}

/// The data of a log message as text: a string as it is, anything else as JSON.
fn text_of(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}
