//! One connection of one server, from its start to its end, as one task.
//!
//! Owns everything that happens over a connection by itself: opening it, listing, watching its health, refreshing
//! lists that changed, listening for changes. It reports to the manager and decides nothing about states. Dropping
//! the task ends the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, pending};
use switchboard_config::entry::Transport;
use switchboard_protocol::types::subscription::{
    SubscriptionFilter, SubscriptionsListenRequestParams,
};
use switchboard_protocol::types::wire::List;
use switchboard_protocol::{Era, Method};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::lists::Lists;
use super::{Report, backoff};
use crate::catalog::{Provenance, Reach, ServerCatalog, ServerTools, ToolRules};
use crate::events::{Event, Events, LogLine, LogSource};
use crate::handler::ClientHandler;
use crate::host::server_tools;
use crate::logs::LogRing;
use crate::memory::Memory;
use crate::names::{Generation, ServerName};
use crate::options::HostSettings;
use crate::peer::{
    self, ListKind, Notice, Observer, OpenError, OpenErrorKind, OpenOptions, OpenStep, Pages, Peer,
    RequestError, RequestOptions,
};
use crate::spec::ServerSpec;
use crate::status::{Cause, Failure};
use crate::transport::Closed;

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
    pub(super) reports: mpsc::Sender<(ServerName, Generation, Report)>,
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
        let step = AtomicU8::new(0);
        let outcome = timeout(self.spec.startup_timeout, self.establish(&step)).await;
        drop(permit);
        let failure = match outcome {
            Ok(Ok(established)) => {
                let (peer, lists) = (established.peer.clone(), Arc::clone(&established.lists));
                self.report(Report::Established(Box::new(established)))
                    .await;
                let lost = self.keep(&peer, &lists).await;
                return self.report(Report::Lost(lost)).await;
            }
            Ok(Err(error)) => self.failure(&error),
            Err(_) => {
                let limit = self.spec.startup_timeout.as_secs_f64();
                Failure {
                    step: Some(step_of(step.load(Ordering::Relaxed))),
                    cause: Cause::Timeout,
                    message: format!("not ready within {limit} s"),
                    stderr: self.logs.stderr_tail(STDERR_SHOWN),
                }
            }
        };
        self.report(Report::Failed(Box::new(failure))).await;
    }

    async fn establish(&self, step: &AtomicU8) -> Result<Established, OpenError> {
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
        });
        let at = |begun: OpenStep| step.store(begun as u8, Ordering::Relaxed);
        let peer = peer::open(
            &self.spec.name,
            &*self.spec.connector,
            &options,
            observer,
            Arc::clone(&self.handler),
            &at,
        )
        .await?;
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
        let pages = lists
            .fetch(ListKind::Tools, self.settings.list_timeout)
            .await?;
        let (catalog, tools) = self.offered(peer, &pages);
        self.memory.remember_catalog(self.spec.key, &catalog).await;
        Ok(Arc::new(tools))
    }

    /// What a list of tools comes to by the rules of the moment.
    fn offered(&self, peer: &Peer, pages: &Pages) -> (ServerCatalog, ServerTools) {
        let catalog = ServerCatalog {
            tools: pages.pages.clone(),
            instructions: peer.facts().instructions.clone(),
            ..ServerCatalog::default()
        };
        if let Some(cut) = &pages.cut {
            tracing::warn!(server = %self.spec.name, cut, "the list of tools is not complete");
        }
        let facts = peer.facts();
        let reach = match (facts.transport, facts.revision.era()) {
            (Transport::Http, Era::Stateless) => Reach::StatelessHttp,
            _ => Reach::Other,
        };
        let rules = self.rules.borrow().clone();
        let tools = server_tools(&self.spec.name, &rules, &catalog, reach, Provenance::Live);
        (catalog, tools)
    }

    /// Looks after a connection until it is lost, and says how.
    async fn keep(&self, peer: &Peer, lists: &Arc<Lists>) -> Failure {
        let mut next_probe = Instant::now() + self.settings.health_interval;
        let mut next_refresh = self.next_refresh(lists);
        let mut listed: Option<Instant> = None;
        let mut spacing = COALESCED;
        let mut rules = self.rules.clone();
        let mut subscriptions = self.subscriptions.clone();
        let mut listening = self.listen(peer, &subscriptions.borrow_and_update());
        loop {
            tokio::select! {
                closed = peer.closed() => return self.lost(&closed),
                () = self.signals.woken.notified() => {
                    if let Err(failure) = self.act_on_signals(peer, lists).await {
                        return failure;
                    }
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
                () = sleep_until(next_probe) => {
                    let interval = self.settings.health_interval;
                    // A server that is at work may be too busy to answer, and its callers have deadlines.
                    let is_idle = !peer.is_busy() && peer.heard().elapsed() >= interval;
                    if is_idle && let Err(failure) = self.probe(peer).await {
                        return failure;
                    }
                    let heard = if peer.is_busy() { Instant::now() } else { peer.heard() };
                    next_probe = (heard + interval).max(Instant::now() + SHORTEST_WAIT);
                }
                changed = rules.changed() => {
                    if changed.is_err() {
                        return self.lost(&Closed::ByUs);
                    }
                    self.apply_rules(peer, lists).await;
                }
                ended = &mut listening => {
                    tracing::debug!(server = %self.spec.name, ?ended, "the subscription has ended");
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
        stale.max(now + SHORTEST_REFRESH)
    }

    /// Offers the tools by rules that have changed. The server need not know.
    async fn apply_rules(&self, peer: &Peer, lists: &Arc<Lists>) {
        match lists.get(ListKind::Tools, self.settings.list_timeout).await {
            Ok(pages) => {
                let (_, tools) = self.offered(peer, &pages);
                self.report(Report::Tools(Arc::new(tools))).await;
            }
            Err(error) => {
                tracing::warn!(server = %self.spec.name, %error, "the tools could not be listed again");
            }
        }
    }

    async fn act_on_signals(&self, peer: &Peer, lists: &Arc<Lists>) -> Result<(), Failure> {
        if Signals::take(&self.signals.probe) {
            self.probe(peer).await?;
        }
        for kind in [ListKind::Prompts, ListKind::Resources] {
            if Signals::take(self.signals.flag(kind)) {
                lists.changed(kind);
                self.report(Report::ListChanged(kind)).await;
            }
        }
        Ok(())
    }

    async fn list_again(&self, peer: &Peer, lists: &Arc<Lists>) {
        Signals::take(&self.signals.tools);
        lists.changed(ListKind::Tools);
        match self.fetch_tools(peer, lists).await {
            Ok(tools) => self.report(Report::Tools(tools)).await,
            Err(error) => {
                // The old list stays: better tools that may be gone than none.
                tracing::warn!(server = %self.spec.name, %error, "the tools could not be listed again");
            }
        }
    }

    async fn probe(&self, peer: &Peer) -> Result<(), Failure> {
        let asked = Instant::now();
        match peer.probe(self.settings.health_timeout).await {
            Ok(()) => {
                self.report(Report::Probed(asked.elapsed())).await;
                Ok(())
            }
            Err(error) => Err(Failure {
                step: None,
                cause: Cause::Lost,
                message: format!("it did not answer a probe: {error}"),
                stderr: self.logs.stderr_tail(STDERR_SHOWN),
            }),
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
        async move {
            sleep(backoff::before_attempt(attempt)).await;
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

    async fn report(&self, report: Report) {
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
/// Lines of stderr that go with a failure.
const STDERR_SHOWN: usize = 10;
/// However short-lived a list is, it is not fetched more often by itself.
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
}

impl ConnectionObserver {
    fn log(&self, source: LogSource, text: String) {
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
            Notice::ResourceUpdated(uri) => self.events.send(Event::ResourceUpdated {
                server: self.server.clone(),
                uri: uri.to_owned(),
            }),
            Notice::Diagnostic(line) => self.log(LogSource::Stderr, line.to_owned()),
            Notice::Noise(text) => self.log(LogSource::Noise, text.to_owned()),
            Notice::Log(message) => {
                let source = LogSource::Message {
                    level: message.level.as_str().to_owned(),
                    logger: message.logger.map(std::borrow::Cow::into_owned),
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
