//! The open agent sessions, and which of them have a turn running.
//!
//! The longest-idle sessions are closed when there are too many; they remain in the store and are loaded again when
//! needed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_agent::{Agent, Session, SessionError, SessionId};

/// Maximum number of open sessions without a running turn.
const MAX_IDLE: usize = 32;

#[derive(Default)]
pub(super) struct Conversations(Mutex<Open>);

#[derive(Default)]
struct Open {
    sessions: HashMap<String, Entry>,
    /// Counts turns, to find the least recently used session.
    clock: u64,
}

struct Entry {
    session: Arc<Session>,
    is_busy: bool,
    used: u64,
}

/// The reason a session cannot take a turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unavailable {
    #[error("session {0} is busy: wait for its answer, or cancel that call")]
    Busy(String),
    #[error("no session {0:?}; call switchboard to start one")]
    Unknown(String),
    #[error(transparent)]
    Session(SessionError),
}

impl Conversations {
    /// Returns the session with this id, loading it from the store if it is not open.
    pub(super) async fn find(&self, id: &str, agent: &Agent) -> Result<Arc<Session>, Unavailable> {
        if let Some(entry) = self.lock().sessions.get(id) {
            return Ok(Arc::clone(&entry.session));
        }
        let unknown = || Unavailable::Unknown(id.chars().take(80).collect());
        let id = SessionId::parse(id).ok_or_else(unknown)?;
        match agent.resume(&id).await {
            Ok(session) => Ok(Arc::new(session)),
            Err(SessionError::Unknown(_)) => Err(unknown()),
            Err(error) => Err(Unavailable::Session(error)),
        }
    }

    /// Starts a turn. The session is busy until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>, session: &Arc<Session>) -> Result<Busy, Unavailable> {
        let id = session.id().as_str();
        let mut open = self.lock();
        open.clock += 1;
        let used = open.clock;
        let entry = open.sessions.entry(id.to_owned()).or_insert_with(|| Entry {
            session: Arc::clone(session),
            is_busy: false,
            used,
        });
        // Another request may have loaded the same session concurrently, and its copy is in use.
        if entry.is_busy || !Arc::ptr_eq(&entry.session, session) {
            return Err(Unavailable::Busy(id.to_owned()));
        }
        entry.is_busy = true;
        entry.used = used;
        open.let_go();
        Ok(Busy {
            conversations: Arc::clone(self),
            id: id.to_owned(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes the longest-idle sessions over the limit.
    fn let_go(&mut self) {
        let idle = self.sessions.iter().filter(|(_, entry)| !entry.is_busy);
        let mut idle: Vec<(u64, String)> =
            idle.map(|(id, entry)| (entry.used, id.clone())).collect();
        let excess = idle.len().saturating_sub(MAX_IDLE);
        idle.sort_unstable();
        for (_, id) in idle.into_iter().take(excess) {
            self.sessions.remove(&id);
        }
    }
}

/// Marks a session as busy until dropped.
pub(super) struct Busy {
    conversations: Arc<Conversations>,
    id: String,
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(entry) = self.conversations.lock().sessions.get_mut(&self.id) {
            entry.is_busy = false;
        }
    }
}
