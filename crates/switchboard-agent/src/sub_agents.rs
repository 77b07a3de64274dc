//! The sub-agents of a session: what each is doing and what came of it, in memory and in the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use switchboard_config::sort;

use serde::{Deserialize, Serialize};
use switchboard_store::{Key, Space, Store, StoreError, Timestamp, Write};

use crate::events::SessionEvent;
use crate::provider::Usage;
use crate::record;
use crate::session::SessionId;

/// One record per sub-agent, under `SESSION/JOURNAL`.
const SUB_AGENTS: Space = Space::new("sub-agents");

/// Lines kept of what a sub-agent said and did last.
const MAX_LINES: usize = 5;
/// Maximum length of such a line.
const MAX_LINE: usize = 200;

/// A sub-agent of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubAgentSummary {
    /// Id of the `Agent` call that started it, as in events.
    pub id: String,
    /// Its task.
    pub prompt: String,
    /// How it is doing.
    pub state: SubAgentState,
    /// The last lines of its text and calls, oldest first. Not sanitized.
    pub last_lines: Vec<String>,
    /// Number of calls it has begun.
    pub calls: u64,
    /// Tokens it has used, without those of its own sub-agents while these run.
    pub usage: Usage,
    /// Running time so far.
    pub elapsed_ms: u64,
    /// When it started, in milliseconds since 1970.
    pub started_at_ms: i64,
}

/// State of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubAgentState {
    /// It works on its task.
    Running,
    /// It has answered.
    Done,
    /// It ended without an answer.
    Failed,
    /// The turn, or the process, ended before it.
    Interrupted,
}

/// All sub-agents of a session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct SubAgents(Mutex<Vec<Arc<Watched>>>);

/// A sub-agent that is being watched.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Id of its journal.
    journal: SessionId,
    state: Mutex<WatchedState>,
}

#[derive(Debug)]
struct WatchedState {
    summary: SubAgentSummary,
    /// Set while it runs.
    started: Option<Instant>,
    lines: VecDeque<String>,
    /// Whether the last line continues with the next text.
    is_open: bool,
}

/// Marks a sub-agent that is dropped as interrupted.
pub(crate) struct Running(pub(crate) Arc<Watched>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end(SubAgentState::Interrupted, Usage::default());
    }
}

impl SubAgents {
    /// Loads the sub-agents of a stored session. None of them runs any more.
    pub(crate) async fn read(store: &dyn Store, session: &SessionId) -> Result<Self, StoreError> {
        let mut found = Vec::new();
        for (key, value) in record::all_below(store, SUB_AGENTS, session).await? {
            let summary: Option<SubAgentSummary> = serde_json::from_slice(&value).ok();
            let journal = key.as_str().rsplit('/').next().and_then(SessionId::parse);
            if let (Some(mut summary), Some(journal)) = (summary, journal) {
                if summary.state == SubAgentState::Running {
                    summary.state = SubAgentState::Interrupted;
                }
                found.push(Arc::new(Watched::new(journal, summary, None)));
            }
        }
        sort::by_key(&mut found, |watched| watched.lock().summary.started_at_ms);
        Ok(Self(Mutex::new(found)))
    }

    /// Deletes the records and journals of a session's sub-agents.
    pub(crate) async fn delete(store: &dyn Store, session: &SessionId) -> Result<(), StoreError> {
        for (key, _) in record::all_below(store, SUB_AGENTS, session).await? {
            if let Some(journal) = key.as_str().rsplit('/').next().and_then(SessionId::parse) {
                record::delete_entries(store, &journal).await?;
            }
            let anything = switchboard_store::Expected::Anything;
            store.remove(SUB_AGENTS, &key, anything).await?;
        }
        Ok(())
    }

    pub(crate) fn begin(&self, id: String, prompt: &str) -> Arc<Watched> {
        let summary = SubAgentSummary {
            id,
            prompt: prompt.to_owned(),
            state: SubAgentState::Running,
            last_lines: Vec::new(),
            calls: 0,
            usage: Usage::default(),
            elapsed_ms: 0,
            started_at_ms: Timestamp::from(SystemTime::now()).as_millis(),
        };
        let watched = Watched::new(SessionId::random(), summary, Some(Instant::now()));
        let watched = Arc::new(watched);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&watched));
        watched
    }

    pub(crate) fn summaries(&self) -> Vec<SubAgentSummary> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|watched| watched.summary()).collect()
    }
}

impl Watched {
    fn new(journal: SessionId, summary: SubAgentSummary, started: Option<Instant>) -> Self {
        let lines = summary.last_lines.iter().cloned().collect();
        Self {
            journal,
            state: Mutex::new(WatchedState {
                summary,
                started,
                lines,
                is_open: false,
            }),
        }
    }

    pub(crate) fn journal(&self) -> &SessionId {
        &self.journal
    }

    /// Follows what the sub-agent says and does.
    pub(crate) fn note(&self, event: &SessionEvent) {
        let mut state = self.lock();
        match event {
            SessionEvent::Text { text } => state.say(text),
            SessionEvent::CallBegins { tool, server, .. } => {
                state.summary.calls += 1;
                let server = server.as_ref().map(|server| format!("{server}/"));
                let line = format!("→ {}{tool}", server.unwrap_or_default());
                state.add(line);
            }
            SessionEvent::CallEnds {
                tool,
                is_error: true,
                ..
            } => state.add(format!("{tool} failed")),
            SessionEvent::Retrying { reason, .. } => state.add(format!("retrying: {reason}")),
            SessionEvent::Usage { usage, .. } => state.summary.usage += *usage,
            _ => {}
        }
    }

    /// Ends it, unless it has ended already.
    pub(crate) fn end(&self, ended: SubAgentState, usage: Usage) {
        let mut state = self.lock();
        if let Some(started) = state.started.take() {
            state.summary.state = ended;
            state.summary.elapsed_ms = milliseconds(started.elapsed());
            if usage != Usage::default() {
                state.summary.usage = usage;
            }
        }
    }

    /// Writes its record.
    pub(crate) async fn save(
        &self,
        store: &dyn Store,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        let key = Key::new(format!("{session}/{}", self.journal))?;
        let value = serde_json::to_vec(&self.summary()).unwrap_or_default();
        store.put(SUB_AGENTS, &key, Write::new(value)).await?;
        Ok(())
    }

    fn summary(&self) -> SubAgentSummary {
        let state = self.lock();
        let mut summary = state.summary.clone();
        summary.last_lines = state.lines.iter().cloned().collect();
        if let Some(started) = state.started {
            summary.elapsed_ms = milliseconds(started.elapsed());
        }
        summary
    }

    fn lock(&self) -> MutexGuard<'_, WatchedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedState {
    fn say(&mut self, text: &str) {
        for (place, piece) in text.split('\n').enumerate() {
            let continues = place == 0 && self.is_open;
            match self.lines.back_mut() {
                Some(last) if continues => {
                    let room = MAX_LINE.saturating_sub(last.chars().count());
                    last.extend(piece.chars().take(room));
                }
                _ if piece.trim().is_empty() => {}
                _ => self.add(piece.chars().take(MAX_LINE).collect()),
            }
            self.is_open = !piece.trim().is_empty() || continues;
        }
    }

    fn add(&mut self, line: String) {
        if self.lines.len() >= MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        self.is_open = false;
    }
}

fn milliseconds(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let agents = SubAgents::default();
        let watched = agents.begin("task".to_owned(), "Find out.");
        for text in ["I lo", "ok.\n\nThe", " second\n", &"x".repeat(999)] {
            let text = text.to_owned();
            watched.note(&SessionEvent::Text { text });
        }
        let lines = agents.summaries()[0].last_lines.clone();
        assert_eq!(lines[..2], ["I look.", "The second"]);
        assert_eq!(lines[2].len(), MAX_LINE);
        let text = "1\n2\n3\n4\n5\n6\n7".to_owned();
        watched.note(&SessionEvent::Text { text });
        assert_eq!(agents.summaries()[0].last_lines, ["3", "4", "5", "6", "7"]);
        watched.end(SubAgentState::Done, Usage::default());
        drop(Running(watched));
        assert_eq!(agents.summaries()[0].state, SubAgentState::Done);
    }
}
