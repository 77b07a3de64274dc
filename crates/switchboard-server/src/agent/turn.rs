//! A running turn, which may outlive the request that started it.
//!
//! The turn runs in its own task, which is aborted when the turn is dropped, so cancelling a request cancels its turn.
//! If the client has to answer a question by repeating the call, the turn is parked for a while.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use switchboard::service::{Failure, RequestContext};
use switchboard_agent::{Reply, Session, SessionError, SessionEvent};
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitResult};
use switchboard_protocol::types::tool::CallToolRequestParams;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, sleep_until};

use super::conversations::Busy;
use super::questions::{Asked, Line};
use super::report::Report;

/// Event buffer size. The turn waits when it is full.
const EVENTS: usize = 64;
/// Time a parked turn waits for its client.
const PARKED: Duration = Duration::from_secs(5 * 60);
/// Maximum number of parked turns.
const MAX_PARKED: usize = 256;
/// Prefix of question keys, followed by the session id and a number.
const KEY: &str = "switchboard/";

/// A running turn. Dropping it interrupts it.
pub(super) struct Turn {
    session_id: String,
    events: mpsc::Receiver<Result<SessionEvent, SessionError>>,
    arriving: mpsc::Receiver<Asked>,
    /// Questions to ask; the first is being asked.
    questions: VecDeque<Asked>,
    asked: u32,
    _task: Ending,
    _line: Arc<Line>,
    _busy: Busy,
}

/// The result of [`Turn::follow`].
pub(super) enum TurnEnd {
    /// The turn is finished.
    Done(Reply),
    /// The turn failed with this error.
    Failed(String),
    /// The turn waits for the client's answer to a question.
    Asks {
        /// The key of the question.
        key: String,
        /// The response to the request.
        failure: Failure,
    },
}

impl Turn {
    /// Starts a turn whose questions go to `line`.
    pub(super) fn begin(
        session: Arc<Session>,
        text: String,
        (line, arriving): (Arc<Line>, mpsc::Receiver<Asked>),
        busy: Busy,
    ) -> Self {
        let (sender, events) = mpsc::channel(EVENTS);
        let session_id = session.id().to_string();
        let run = async move {
            let mut stream = session.stream(text);
            while let Some(event) = stream.next().await {
                if sender.send(event).await.is_err() {
                    break;
                }
            }
        };
        let task = tokio::spawn(Arc::clone(&line).scope(run));
        Self {
            session_id,
            events,
            arriving,
            questions: VecDeque::new(),
            asked: 0,
            _task: Ending::of(&task),
            _line: line,
            _busy: busy,
        }
    }

    pub(super) fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Reports events and forwards questions to the client of a request, until the turn is finished or the client has
    /// to repeat the call with an answer.
    pub(super) async fn follow(&mut self, context: &RequestContext) -> TurnEnd {
        let mut report = Report::new(context);
        let mut asking: Option<BoxFuture<'_, Result<ElicitResult<'static>, Failure>>> = None;
        loop {
            while self.questions.front().is_some_and(Asked::is_withdrawn) {
                asking = None;
                self.asked += 1;
                self.questions.pop_front();
            }
            if asking.is_none()
                && let Some(asked) = self.questions.front()
            {
                let (key, params) = (self.key(), asked.params.clone());
                asking = Some(Box::pin(async move { context.elicit(&key, params).await }));
            }
            let answer = async {
                match &mut asking {
                    Some(asking) => asking.await,
                    None => pending().await,
                }
            };
            let due = report.due();
            let flush = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Ok(SessionEvent::Ended(reply))) => return TurnEnd::Done(reply),
                    Some(Ok(event)) => report.event(event),
                    Some(Err(error)) => return TurnEnd::Failed(error.to_string()),
                    // Happens only if the task panicked.
                    None => return TurnEnd::Failed("the turn ended without an answer".to_owned()),
                },
                Some(asked) = self.arriving.recv() => self.questions.push_back(asked),
                answered = answer => {
                    asking = None;
                    if let Err(failure @ Failure::InputRequired(_)) = answered {
                        return TurnEnd::Asks { key: self.key(), failure };
                    }
                    // A client that fails to answer has not consented.
                    let result = answered.unwrap_or_else(|_| ElicitResult::new(ElicitAction::Cancel));
                    self.asked += 1;
                    if let Some(asked) = self.questions.pop_front() {
                        asked.answer(result);
                    }
                }
                () = flush => report.flush(),
            }
        }
    }

    /// The key of the first unanswered question.
    fn key(&self) -> String {
        format!("{KEY}{}/{}", self.session_id, self.asked)
    }
}

/// Parked turns, by the keys of their questions.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<HashMap<String, (Turn, Ending)>>>);

impl Parked {
    /// Stores a turn for a while; returns `false` if there are too many, and drops it.
    pub(super) fn park(&self, key: String, turn: Turn) -> bool {
        let (parked, expired) = (Arc::downgrade(&self.0), key.clone());
        let expiry = tokio::spawn(async move {
            sleep(PARKED).await;
            if let Some(parked) = parked.upgrade() {
                let turn = parked
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&expired);
                drop(turn);
            }
        });
        let ending = Ending::of(&expiry);
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = parked.len() < MAX_PARKED;
        if has_room {
            parked.insert(key, (turn, ending));
        }
        has_room
    }

    /// Removes the turn whose question a call answers. An error carries its session id if the turn is no longer parked.
    pub(super) fn take(&self, call: &CallToolRequestParams<'_>) -> Option<Result<Turn, String>> {
        let mut keys = call.input_responses.iter().map(|(key, _)| key);
        let key = keys.find(|key| key.starts_with(KEY))?;
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = parked.remove(key).map(|(turn, _)| turn);
        let session_id = || key.strip_prefix(KEY)?.split('/').next().map(str::to_owned);
        Some(turn.ok_or_else(|| session_id().unwrap_or_default()))
    }
}

/// Aborts a task on drop.
struct Ending(AbortHandle);

impl Ending {
    fn of(task: &JoinHandle<()>) -> Self {
        Self(task.abort_handle())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}
