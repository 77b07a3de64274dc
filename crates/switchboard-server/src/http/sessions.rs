//! Sessions of the stateful era: opening, lookup, expiry, and the streams stored for resumption.
//!
//! A session has a standalone stream for messages outside of requests, and one stream per request whose answer became a
//! stream. Finished streams are stored for a while, up to a limit, so that a client that lost its connection can resume
//! them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard::internal::service::Sink;
use switchboard_protocol::Revision;
use tokio::time::Instant;

use super::grant::Grant;
use super::options::HttpLimits;
use super::stream::EventStream;
use super::token::random_text;
use crate::handler::{ClientKind, Exchange, Handler, SessionKey};

/// The number of the standalone stream.
pub(super) const STANDALONE: u64 = 0;

/// Maximum number of finished streams stored per session.
const MAX_ENDED_STREAMS: usize = 64;

pub(super) struct Sessions {
    open: Mutex<HashMap<SessionKey, Arc<ClientSession>>>,
    /// Maximum number of sessions.
    room: usize,
    idle: Duration,
    max_replay_bytes: usize,
}

/// A session whose handshake is not complete.
pub(super) struct Beginning {
    pub(super) key: SessionKey,
    owner: Grant,
    pub(super) exchange: Box<dyn Exchange>,
    standalone: Arc<EventStream>,
    sink: Arc<dyn Sink>,
}

pub(super) struct ClientSession {
    /// The grant of its handshake.
    owner: Grant,
    /// The revision negotiated in its handshake.
    pub(super) revision: Revision,
    pub(super) exchange: Box<dyn Exchange>,
    /// Sink of the standalone stream.
    pub(super) sink: Arc<dyn Sink>,
    state: Mutex<SessionStreams>,
    max_replay_bytes: usize,
}

struct SessionStreams {
    streams: BTreeMap<u64, Arc<EventStream>>,
    next: u64,
    /// Current number of connections.
    connected: usize,
    /// When the last connection ended.
    used: Instant,
}

impl Sessions {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        Self {
            open: Mutex::default(),
            room: limits.max_sessions,
            idle: limits.session_idle,
            max_replay_bytes: limits.max_replay_bytes,
        }
    }

    /// Creates a session; `None` if the system returned no random bytes for its id.
    pub(super) fn begin(
        &self,
        handler: &dyn Handler,
        limits: &HttpLimits,
        owner: &Grant,
    ) -> Option<Beginning> {
        let key = match handler.session_key() {
            Some(key) => key,
            None => SessionKey::new(&random_text()?)?,
        };
        let (standalone, sink) = self.standalone(limits);
        let client = owner.client(ClientKind::Session(key.clone()));
        let exchange = handler.open(&client, Arc::clone(&sink));
        Some(Beginning {
            key,
            owner: owner.owner(),
            exchange,
            standalone,
            sink,
        })
    }

    /// Stores a session whose handshake is complete; returns `false` if there is no room for it.
    pub(super) fn enter(&self, beginning: Beginning, revision: Revision) -> bool {
        let mut open = self.lock();
        if open.contains_key(&beginning.key) {
            // A concurrent request has already resumed it.
            return true;
        }
        let evicted = if open.len() < self.room {
            None
        } else {
            // Evict the session that has been idle longest.
            let idle = open.iter().filter_map(|(key, session)| {
                let since = session.idle_since()?;
                Some((since, key.clone()))
            });
            let Some((_, key)) = idle.min_by_key(|(since, _)| *since) else {
                return false;
            };
            open.remove(&key)
        };
        let key = beginning.key.clone();
        open.insert(
            key,
            Arc::new(beginning.into_session(self.max_replay_bytes, revision)),
        );
        drop(open);
        if let Some(session) = evicted {
            session.end();
        }
        true
    }

    /// Returns the session with this id, resuming it through the handler if this process did not open it. `None` if it
    /// does not exist or belongs to another client, which must not learn the difference.
    pub(super) fn find(
        &self,
        name: &str,
        grant: &Grant,
        handler: &dyn Handler,
        limits: &HttpLimits,
    ) -> Option<Arc<ClientSession>> {
        let key = SessionKey::new(name)?;
        let own = |session: &Arc<ClientSession>| {
            let is_own = session.owner.covers(grant);
            is_own.then(|| Arc::clone(session))
        };
        if let Some(session) = self.lock().get(&key) {
            return own(session);
        }
        let (standalone, sink) = self.standalone(limits);
        let client = grant.client(ClientKind::Session(key.clone()));
        let (exchange, revision) = handler.resume(&client, Arc::clone(&sink))?;
        let resumed = Beginning {
            key: key.clone(),
            owner: grant.owner(),
            exchange,
            standalone,
            sink,
        };
        if !self.enter(resumed, revision) {
            return None;
        }
        self.lock().get(&key).and_then(own)
    }

    /// Ends the session with this id; `None` if it does not exist.
    pub(super) fn end(&self, name: &str) -> Option<SessionKey> {
        let key = SessionKey::new(name)?;
        let session = self.lock().remove(&key)?;
        session.end();
        Some(key)
    }

    /// Ends sessions that have been idle for too long, and those whose owner has lost access.
    pub(super) fn end_idle(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        self.lock().retain(|_, session| {
            let since = session.idle_since();
            let is_old = since.is_some_and(|since| now.duration_since(since) >= self.idle);
            let is_over = is_old || session.owner.is_over();
            if is_over {
                ended.push(Arc::clone(session));
            }
            !is_over
        });
        for session in ended {
            session.end();
        }
    }

    /// Ends all sessions and returns them; their requests may still be running.
    pub(super) fn end_all(&self) -> Vec<Arc<ClientSession>> {
        let ended: Vec<_> = self.lock().drain().map(|(_, session)| session).collect();
        for session in &ended {
            session.end();
        }
        ended
    }

    /// The number of requests that are running.
    pub(super) fn running(&self) -> usize {
        let open = self.lock();
        open.values()
            .map(|session| session.exchange.in_flight())
            .sum()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    fn standalone(&self, limits: &HttpLimits) -> (Arc<EventStream>, Arc<dyn Sink>) {
        let stream = EventStream::new(limits.max_queued_bytes, self.max_replay_bytes);
        let sink = stream.sink();
        (stream, sink)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<ClientSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beginning {
    fn into_session(self, max_replay_bytes: usize, revision: Revision) -> ClientSession {
        ClientSession {
            owner: self.owner,
            revision,
            exchange: self.exchange,
            sink: self.sink,
            state: Mutex::new(SessionStreams {
                streams: [(STANDALONE, self.standalone)].into(),
                next: STANDALONE + 1,
                connected: 0,
                used: Instant::now(),
            }),
            max_replay_bytes,
        }
    }
}

impl ClientSession {
    /// Counts a connection until the returned value is dropped.
    pub(super) fn connect(self: &Arc<Self>) -> Connected {
        self.lock().connected += 1;
        Connected(Arc::clone(self))
    }

    /// Stores a stream for resumption and returns its number. Drops the oldest finished streams over the limit.
    pub(super) fn keep(&self, stream: &Arc<EventStream>) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.streams.insert(number, Arc::clone(stream));
        // Newest first, so that the oldest exceed the limit.
        let (mut bytes, mut count) = (0, 0);
        let mut dropped = Vec::new();
        for (number, stream) in state.streams.iter().rev() {
            if *number == STANDALONE || !stream.is_finished() {
                continue;
            }
            bytes += stream.bytes();
            count += 1;
            if bytes > self.max_replay_bytes || count > MAX_ENDED_STREAMS {
                dropped.push(*number);
            }
        }
        for number in dropped {
            state.streams.remove(&number);
        }
        number
    }

    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        self.lock().streams.get(&number).map(Arc::clone)
    }

    /// Cancels running requests and ends all streams.
    fn end(&self) {
        self.exchange.close();
        let streams = std::mem::take(&mut self.lock().streams);
        for stream in streams.into_values() {
            stream.finish();
        }
    }

    /// The time since when no connection is open and no request is running; `None` while in use.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.connected == 0 && self.exchange.in_flight() == 0).then_some(state.used)
    }

    fn lock(&self) -> MutexGuard<'_, SessionStreams> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as a connection to a session until dropped.
pub(super) struct Connected(Arc<ClientSession>);

impl Drop for Connected {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.connected -= 1;
        state.used = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use switchboard::internal::service::ClientFrame;
    use tokio::time::advance;

    use super::*;
    use crate::handler::{Client, Principal};

    /// A handler whose exchanges do nothing and report this many running requests.
    struct Idle(usize);

    impl Handler for Idle {
        fn open(&self, _client: &Client, _sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
            Box::new(Self(self.0))
        }
    }

    impl Exchange for Idle {
        fn receive(&self, _frame: ClientFrame, _sink: &Arc<dyn Sink>) {}

        fn in_flight(&self) -> usize {
            self.0
        }

        fn close(&self) {}

        fn ended(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    fn enter(sessions: &Sessions, limits: &HttpLimits, running: usize) -> Arc<ClientSession> {
        let handler = Idle(running);
        let owner = Grant::new(Principal::Anyone);
        let beginning = sessions.begin(&handler, limits, &owner).unwrap();
        let name = beginning.key.as_str().to_owned();
        assert!(sessions.enter(beginning, Revision::V2025_11_25));
        sessions.find(&name, &owner, &handler, limits).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_session_ends() {
        let limits = HttpLimits {
            session_idle: Duration::from_secs(100),
            ..HttpLimits::default()
        };
        let sessions = Sessions::new(&limits);
        let unused = enter(&sessions, &limits, 0);
        let running = enter(&sessions, &limits, 1);
        let connected = enter(&sessions, &limits, 0);
        let connection = connected.connect();
        advance(Duration::from_secs(99)).await;
        sessions.end_idle();
        assert_eq!(sessions.count(), 3);
        advance(Duration::from_secs(1)).await;
        sessions.end_idle();
        assert_eq!(sessions.count(), 2);
        let is_over = |session: &ClientSession| session.stream(STANDALONE).is_none();
        assert_eq!(
            [&unused, &running, &connected].map(|one| is_over(one)),
            [true, false, false]
        );
        // Idle time counts from the end of the last connection.
        drop(connection);
        advance(Duration::from_secs(99)).await;
        sessions.end_idle();
        assert_eq!(sessions.count(), 2);
        advance(Duration::from_secs(1)).await;
        sessions.end_idle();
        assert_eq!(sessions.count(), 1);
        assert_eq!(sessions.end_all().len(), 1);
        assert!(is_over(&running));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_stores_a_bounded_number_of_finished_streams() {
        let limits = HttpLimits {
            max_replay_bytes: 10_000,
            ..HttpLimits::default()
        };
        let sessions = Sessions::new(&limits);
        let session = enter(&sessions, &limits, 0);
        let running = EventStream::new(10_000, 10_000);
        let _sink = running.sink();
        assert_eq!(session.keep(&running), 1);
        for _ in 0..1_000 {
            let stream = EventStream::new(10_000, 10_000);
            stream.sink().frame("x".repeat(1_000).into());
            session.keep(&stream);
        }
        let stored: Vec<u64> = session.lock().streams.keys().copied().collect();
        // The standalone one, the running one, and the newest of the others.
        let expected: Vec<u64> = [0, 1].into_iter().chain(993..=1_001).collect();
        assert_eq!(stored, expected);
    }
}
