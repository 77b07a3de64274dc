//! Event loop of an open connection.

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

/// Changes of a list within this time are coalesced.
const COALESCED: Duration = Duration::from_millis(100);
/// Upper bound of that time for a list that keeps changing.
const MOST_COALESCED: Duration = Duration::from_secs(5);
/// Delay before tools are examined, so that it does not compete with the start.
const EXAMINED_AFTER: Duration = Duration::from_secs(1);
/// Interval for checking approvals while something awaits one.
const APPROVALS: Duration = Duration::from_secs(1);
/// Interval for retrying a store that cannot be used.
const UNUSABLE_STORE: Duration = Duration::from_secs(10);
/// Shortest interval between automatic refreshes, whatever lifetime the server states, unless `catalog_ttl` is shorter.
const SHORTEST_REFRESH: Duration = Duration::from_secs(30);

/// Maintains a connection until it is lost.
pub(super) struct Keeper<'c> {
    connection: &'c Connection,
    peer: &'c Peer,
    lists: &'c Arc<Lists>,
    health: Health,
    /// Time of the next automatic refresh of the tools.
    next_refresh: Instant,
    /// When they were last listed because of a change notification.
    listed: Option<Instant>,
    /// Shortest interval between two such lists.
    spacing: Duration,
    /// Time of the next approval check, while something differs from its pin.
    next_look: Instant,
    /// Time at which new tools are examined.
    next_examination: Instant,
    rules: watch::Receiver<ToolRules>,
    sandbox: watch::Receiver<sandbox::SandboxState>,
    subscriptions: watch::Receiver<Vec<String>>,
    /// The subscription to changes, in the form of the era.
    listening: BoxFuture<'static, Result<(), RequestError>>,
}

enum ConnectionEvent {
    /// The transport has ended.
    Closed(Closed),
    /// The manager has dropped the server.
    Abandoned,
    /// A signal was set: a probe is requested, or a list has changed.
    Signalled,
    /// The list of tools is stale.
    RefreshDue,
    /// A health check is due.
    ProbeDue,
    /// The tool rules have changed.
    RulesChanged,
    /// New tools are due for examination.
    ExaminationDue,
    /// The sandbox state has changed.
    SandboxChanged,
    /// Something differs from its pin, and may have been approved.
    ApprovalDue,
    ListeningEnded(Result<(), RequestError>),
    /// The set of subscribed resources has changed.
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

    /// Handles events until the connection is lost, and returns the reason.
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

    /// Handles one event; an error means that the connection is lost.
    async fn handle(&mut self, event: ConnectionEvent) -> Result<(), Failure> {
        let (connection, peer) = (self.connection, self.peer);
        match event {
            ConnectionEvent::Closed(closed) => return Err(connection.lost(&closed)),
            ConnectionEvent::Abandoned => return Err(connection.lost(&Closed::ByUs)),
            ConnectionEvent::Signalled => self.act_on_signals().await?,
            ConnectionEvent::RefreshDue => {
                // Prevents a refresh loop if the list turns out unchanged or unreadable.
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
        if !signals.listing().is_empty() {
            // A caller knows that the tools have changed. The rate limit is for servers that say so.
            connection.list_again(peer, lists).await;
            self.next_refresh = connection.next_refresh(lists);
            return Ok(());
        }
        if !signals.tools.load(Ordering::Acquire) {
            return Ok(());
        }
        let earliest = self.listed.map(|listed| listed + self.spacing);
        if let Some(earliest) = earliest.filter(|at| Instant::now() < *at) {
            // Rate limit: a list that changes often is not fetched each time.
            self.next_refresh = earliest;
            return Ok(());
        }
        // The longer a list keeps changing, the less often it is fetched.
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
        // A busy server may be too busy to answer, and its callers have deadlines.
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
            let last = connection.pins_told();
            match revision {
                // The store still cannot be read.
                Err(_) => (false, UNUSABLE_STORE),
                // The store may have become writable, which only a write shows.
                Ok(_) if last.unpinned.is_some() => (true, UNUSABLE_STORE),
                Ok(revision) => {
                    let is_back = last.unreadable.is_some() && last.revision.is_none();
                    (is_back || revision != last.revision, APPROVALS)
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
        // Display only: the debug form could include the body of a refusal.
        let error = ended.as_ref().err().map(tracing::field::display);
        tracing::debug!(server = %connection.spec.name, error, "the subscription has ended");
        let resources = self.subscriptions.borrow();
        self.listening = match ended {
            Ok(()) => connection.listen_later(peer, &resources, 4),
            // A server that rejects the subscription is not asked again.
            Err(RequestError::Rejected(_)) => pending().boxed(),
            Err(_) => connection.listen_later(peer, &resources, 6),
        };
    }
}

impl Connection {
    /// Time of the next automatic refresh of the tools.
    fn next_refresh(&self, lists: &Lists) -> Instant {
        let now = Instant::now();
        let stale = lists
            .fresh_until(ListKind::Tools)
            .unwrap_or(now + self.settings.catalog_ttl);
        // The user's setting is taken as it is; the server's has a lower bound.
        stale.max(now + SHORTEST_REFRESH.min(self.settings.catalog_ttl))
    }

    /// Sends the sandbox state to a server that supports it.
    pub(super) async fn tell_of_sandbox(&self, peer: &Peer) {
        let capabilities = peer.facts().capabilities.as_ref();
        let is_wanted = capabilities.is_some_and(|capabilities| {
            let mut experimental = capabilities.experimental.iter();
            experimental.any(|(name, _)| name == sandbox::STATE_CAPABILITY)
        });
        // The state of one host says nothing about the others.
        if !is_wanted || peer.is_shared() {
            return;
        }
        let params = self.sandbox.borrow().params();
        let params = params.and_then(|params| serde_json::value::to_raw_value(&params).ok());
        let Some(params) = params else {
            return;
        };
        let sent = peer.notify_by_name(sandbox::STATE_UPDATE, Some(&params));
        if let Err(error) = sent.await {
            tracing::warn!(server = %self.spec.name, error = %self.spec.redactor.redact(&error.to_string()), "failed to send the sandbox state");
        }
    }
}
