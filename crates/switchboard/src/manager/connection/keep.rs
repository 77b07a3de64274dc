//! A connection while it stands: what can happen to it, one event after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, pending};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::super::Report;
use super::super::lists::Lists;
use super::health::Health;
use super::{Connection, Signals};
use crate::catalog::ToolRules;
use crate::peer::{ListKind, Peer, RequestError};
use crate::sandbox;
use crate::status::Failure;
use crate::transport::Closed;

/// Changes of a list that follow each other this fast count as one.
const COALESCED: Duration = Duration::from_millis(100);
/// The most that this becomes for a list that never stops changing.
const MOST_COALESCED: Duration = Duration::from_secs(5);
/// How long tools wait to be looked over, so that it is in nobody's way.
const EXAMINED_AFTER: Duration = Duration::from_secs(1);
/// How often an approval is looked out for, while something waits for one.
const APPROVALS: Duration = Duration::from_secs(1);
/// How often a store that cannot be used is tried again.
const UNUSABLE_STORE: Duration = Duration::from_secs(10);
/// However short-lived a server says its list is, it is not fetched more often by itself, unless `catalog_ttl` is shorter.
const SHORTEST_REFRESH: Duration = Duration::from_secs(30);

/// Looks after a connection until it is lost.
pub(super) struct Keeper<'c> {
    connection: &'c Connection,
    peer: &'c Peer,
    lists: &'c Arc<Lists>,
    health: Health,
    /// When the tools are listed again by themselves.
    next_refresh: Instant,
    /// When they were last listed because the server said that they had changed.
    listed: Option<Instant>,
    /// The least time between two such lists.
    spacing: Duration,
    /// When an approval is looked for next, while something differs from its pin.
    next_look: Instant,
    /// When tools that are new are looked over.
    next_examination: Instant,
    rules: watch::Receiver<ToolRules>,
    sandbox: watch::Receiver<sandbox::SandboxState>,
    subscriptions: watch::Receiver<Vec<String>>,
    /// The subscription to changes, in the way of the era.
    listening: BoxFuture<'static, Result<(), RequestError>>,
}

/// What can happen to a connection. Everything it waits for is one of these.
enum ConnectionEvent {
    /// The transport has ended.
    Closed(Closed),
    /// The manager no longer has the server.
    Abandoned,
    /// A signal was set: a probe is wanted, or a list has changed.
    Signalled,
    /// The list of tools is too old.
    RefreshDue,
    /// It is time to look whether the server answers.
    ProbeDue,
    /// Other tools are wanted than before.
    RulesChanged,
    /// Tools wait to be looked over.
    ExaminationDue,
    /// The server may do more or less than before.
    SandboxChanged,
    /// Something differs from its pin, and may have been approved.
    ApprovalDue,
    /// The subscription has ended.
    ListeningEnded(Result<(), RequestError>),
    /// Other resources are to be watched.
    SubscriptionsChanged,
}

impl<'c> Keeper<'c> {
    pub(super) fn new(connection: &'c Connection, peer: &'c Peer, lists: &'c Arc<Lists>) -> Self {
        let mut subscriptions = connection.subscriptions.clone();
        let listening = connection.listen(peer, &subscriptions.borrow_and_update());
        Self {
            connection,
            peer,
            lists,
            health: Health::new(connection.settings.health_interval),
            next_refresh: connection.next_refresh(lists),
            listed: None,
            spacing: COALESCED,
            next_look: Instant::now() + APPROVALS,
            next_examination: Instant::now() + EXAMINED_AFTER,
            rules: connection.rules.clone(),
            sandbox: connection.sandbox.clone(),
            subscriptions,
            listening,
        }
    }

    /// Handles events until the connection is lost, and says how that happened.
    pub(super) async fn run(mut self) -> Failure {
        loop {
            let event = self.next_event().await;
            if let Err(failure) = self.handle(event).await {
                return failure;
            }
        }
    }

    async fn next_event(&mut self) -> ConnectionEvent {
        let connection = self.connection;
        let has_unexamined = connection.unexamined().is_some();
        let awaits_approval = connection.pins_wait.load(Ordering::Acquire);
        let if_known = |changed: Result<(), watch::error::RecvError>, event| match changed {
            Ok(()) => event,
            Err(_) => ConnectionEvent::Abandoned,
        };
        tokio::select! {
            closed = self.peer.closed() => ConnectionEvent::Closed(closed),
            () = connection.signals.woken.notified() => ConnectionEvent::Signalled,
            () = sleep_until(self.next_refresh) => ConnectionEvent::RefreshDue,
            () = sleep_until(self.health.next) => ConnectionEvent::ProbeDue,
            changed = self.rules.changed() => if_known(changed, ConnectionEvent::RulesChanged),
            () = sleep_until(self.next_examination), if has_unexamined => ConnectionEvent::ExaminationDue,
            changed = self.sandbox.changed() => if_known(changed, ConnectionEvent::SandboxChanged),
            () = sleep_until(self.next_look), if awaits_approval => ConnectionEvent::ApprovalDue,
            ended = &mut self.listening => ConnectionEvent::ListeningEnded(ended),
            changed = self.subscriptions.changed() => if_known(changed, ConnectionEvent::SubscriptionsChanged),
        }
    }

    /// Does what an event calls for; the error is how the connection was lost.
    async fn handle(&mut self, event: ConnectionEvent) -> Result<(), Failure> {
        let (connection, peer) = (self.connection, self.peer);
        match event {
            ConnectionEvent::Closed(closed) => return Err(connection.lost(&closed)),
            ConnectionEvent::Abandoned => return Err(connection.lost(&Closed::ByUs)),
            ConnectionEvent::Signalled => self.act_on_signals().await?,
            ConnectionEvent::RefreshDue => {
                // In case the signal finds the list unchanged or unreadable, it is not asked for in a loop.
                self.next_refresh = Instant::now() + SHORTEST_REFRESH;
                connection.signals.refresh(ListKind::Tools);
            }
            ConnectionEvent::ProbeDue => self.probe_if_silent().await?,
            ConnectionEvent::RulesChanged => connection.apply_rules(peer, self.lists).await,
            ConnectionEvent::ExaminationDue => {
                connection.examine(peer);
                self.next_examination = Instant::now() + EXAMINED_AFTER;
            }
            ConnectionEvent::SandboxChanged => connection.tell_of_sandbox(peer).await,
            ConnectionEvent::ApprovalDue => self.look_for_approval().await,
            ConnectionEvent::ListeningEnded(ended) => self.listen_again(&ended),
            ConnectionEvent::SubscriptionsChanged => {
                self.listening = connection.listen(peer, &self.subscriptions.borrow_and_update());
            }
        }
        Ok(())
    }

    async fn act_on_signals(&mut self) -> Result<(), Failure> {
        let (connection, peer, lists) = (self.connection, self.peer, self.lists);
        let signals = &connection.signals;
        if Signals::take(&signals.probe) {
            connection.probe_at_once(peer, &mut self.health).await?;
        }
        for kind in [ListKind::Prompts, ListKind::Resources] {
            if Signals::take(signals.flag(kind)) {
                lists.changed(kind);
                connection.report(Report::ListChanged(kind)).await;
            }
        }
        if !signals.tools.load(Ordering::Acquire) {
            return Ok(());
        }
        let earliest = self.listed.map(|listed| listed + self.spacing);
        if let Some(earliest) = earliest.filter(|at| Instant::now() < *at) {
            // However often a list changes, it is not fetched each time.
            self.next_refresh = earliest;
            return Ok(());
        }
        // The longer it goes on changing, the less often it is fetched.
        let goes_on = self
            .listed
            .is_some_and(|at| at.elapsed() < 2 * self.spacing);
        self.spacing = if goes_on {
            (2 * self.spacing).min(MOST_COALESCED)
        } else {
            COALESCED
        };
        connection.list_again(peer, lists).await;
        self.listed = Some(Instant::now());
        self.next_refresh = connection.next_refresh(lists);
        Ok(())
    }

    async fn probe_if_silent(&mut self) -> Result<(), Failure> {
        let (connection, peer) = (self.connection, self.peer);
        let interval = connection.settings.health_interval;
        // A server that is at work may be too busy to answer, and its callers have deadlines.
        let is_due = self.health.failures > 0 || peer.heard().elapsed() >= interval;
        if is_due && !peer.is_busy() {
            return connection.probe(peer, &mut self.health).await;
        }
        let heard = if peer.is_busy() {
            Instant::now()
        } else {
            peer.heard()
        };
        self.health.alive(heard, interval);
        Ok(())
    }

    async fn look_for_approval(&mut self) {
        let connection = self.connection;
        let revision = connection
            .memory
            .pins_revision(connection.spec.identity)
            .await;
        let (is_news, pause) = {
            let told = connection.pins_told();
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
            connection.apply_rules(self.peer, self.lists).await;
        }
        self.next_look = Instant::now() + pause;
    }

    fn listen_again(&mut self, ended: &Result<(), RequestError>) {
        let (connection, peer) = (self.connection, self.peer);
        // As text and not in full: the body of a refusal may hold anything.
        let error = ended.as_ref().err().map(tracing::field::display);
        tracing::debug!(server = %connection.spec.name, error, "the subscription has ended");
        let resources = self.subscriptions.borrow();
        self.listening = match ended {
            Ok(()) => connection.listen_later(peer, &resources, 4),
            // A server that refuses to be listened to is not asked again.
            Err(RequestError::Rejected(_)) => pending().boxed(),
            Err(_) => connection.listen_later(peer, &resources, 6),
        };
    }
}

impl Connection {
    /// When the tools are listed again by themselves.
    fn next_refresh(&self, lists: &Lists) -> Instant {
        let now = Instant::now();
        let stale = lists
            .fresh_until(ListKind::Tools)
            .unwrap_or(now + self.settings.catalog_ttl);
        // The user's own word is not doubted, a server's is.
        stale.max(now + SHORTEST_REFRESH.min(self.settings.catalog_ttl))
    }

    /// Tells a server that wants to know what it may do.
    pub(super) async fn tell_of_sandbox(&self, peer: &Peer) {
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
}
