//! Which sessions are open, and which of them have a turn under way.
//!
//! Owns the sessions of this process. A session that nobody has used for long gives way to others; it is in the store,
//! and read from there when it is wanted again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_agent::Agent;
use switchboard_agent::session::{Session, SessionError, SessionId};

/// How many sessions without a turn under way are kept open.
const MAX_IDLE: usize = 32;

/// The sessions that are open.
#[derive(Default)]
pub(super) struct Conversations(Mutex<Open>);

#[derive(Default)]
struct Open {
    sessions: HashMap<String, Entry>,
    /// Counts turns, to tell which session was used last.
    clock: u64,
}

struct Entry {
    session: Arc<Session>,
    is_busy: bool,
    used: u64,
}

/// Why a conversation cannot go on now.
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
    /// The session of that id, from the store if it is not open.
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

    /// Begins a turn. The session is busy until what is returned is dropped.
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
        // Somebody else may have read the same one from the store at the same moment: then that one is in use.
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
    /// Closes the sessions that were idle longest, if there are too many.
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

/// A session with a turn under way.
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
