//! A turn under way, which may outlive the request that began it.
//!
//! The turn runs in a task of its own, which ends when the turn is dropped: a request that is cancelled takes its turn
//! along. Where the client has to answer a question by asking again, the turn is parked in between, for a while.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use switchboard::service::{Failure, RequestContext};
use switchboard_agent::events::{Reply, SessionEvent};
use switchboard_agent::session::{Session, SessionError};
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitResult};
use switchboard_protocol::types::tool::CallToolRequestParams;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{sleep, sleep_until};

use super::conversations::Busy;
use super::questions::{Asked, Line};
use super::report::Report;

/// How many events may wait for the request. The turn waits when there are more.
const EVENTS: usize = 64;
/// How long a turn waits for a client to come back with an answer.
const PARKED: Duration = Duration::from_secs(5 * 60);
/// How many turns may wait for their clients.
const MAX_PARKED: usize = 256;
/// What the keys of questions begin with. The rest is the session and a number.
const KEY: &str = "switchboard/";

/// A turn. Dropping it interrupts it.
pub(super) struct Turn {
    session_id: String,
    events: mpsc::Receiver<Result<SessionEvent, SessionError>>,
    arriving: mpsc::Receiver<Asked>,
    /// Questions that were not asked yet, the first of them under its key.
    questions: VecDeque<Asked>,
    asked: u32,
    _task: Ending,
    _line: Arc<Line>,
    _busy: Busy,
}

/// How following a turn came to an end.
pub(super) enum TurnEnd {
    /// The turn is done.
    Done(Reply),
    /// It failed, and this is why.
    Failed(String),
    /// It goes on once the client has answered what is under this key.
    Asks {
        /// The key of the question.
        key: String,
        /// What the request is answered with.
        failure: Failure,
    },
}

impl Turn {
    /// Begins a turn. Its questions come by the line.
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

    /// Tells the client of a request what happens and asks it what is asked, until the turn is done or the client has
    /// to come again.
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
                    // It does not end without a word, unless it panicked.
                    None => return TurnEnd::Failed("the turn has ended without an answer".to_owned()),
                },
                Some(asked) = self.arriving.recv() => self.questions.push_back(asked),
                answered = answer => {
                    asking = None;
                    if let Err(failure @ Failure::InputRequired(_)) = answered {
                        return TurnEnd::Asks { key: self.key(), failure };
                    }
                    // A client that fails to answer has not said yes.
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

    /// The key of the first question that was not answered yet.
    fn key(&self) -> String {
        format!("{KEY}{}/{}", self.session_id, self.asked)
    }
}

/// Turns that wait for their clients to come back, by the keys of their questions.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<HashMap<String, (Turn, Ending)>>>);

impl Parked {
    /// Keeps a turn for a while; `false` if so many wait already that this one is interrupted.
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

    /// The turn that waits for what a call answers; an error with its session if it no longer does.
    pub(super) fn take(&self, call: &CallToolRequestParams<'_>) -> Option<Result<Turn, String>> {
        let mut keys = call.input_responses.iter().map(|(key, _)| key);
        let key = keys.find(|key| key.starts_with(KEY))?;
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = parked.remove(key).map(|(turn, _)| turn);
        let session_id = || key.strip_prefix(KEY)?.split('/').next().map(str::to_owned);
        Some(turn.ok_or_else(|| session_id().unwrap_or_default()))
    }
}

/// A task that ends when this is dropped.
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
