//! Agent session: sends messages, streams events, and resumes by id.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use ring::rand::{SecureRandom as _, SystemRandom};
use switchboard::{Server, ServerError};
use switchboard_store::StoreError;
use tokio::sync::{Mutex, OnceCell, mpsc};

use crate::agent::Inner;
use crate::budget::Budget;
use crate::changes::{FileChange, UndoError};
use crate::context::{AgentContext, Shared};
use crate::events::{Reply, SessionEvent};
use crate::lock::SessionLock;
use crate::message::{Message, Part, Role, ToolDefinition};
use crate::provider::{Provider, ProviderError, Usage};
use crate::record::{Entry, Journal};
use crate::startup;
use crate::sub_agents::SubAgentSummary;
use crate::turn::{Emitter, Turn, TurnState};
use crate::window::{self, WindowUse};

/// Capacity of the event channel. A turn waits while it is full.
const EVENTS: usize = 64;

/// An agent session. Runs one turn at a time; further turns queue.
pub struct Session {
    agent: Arc<Inner>,
    context: Arc<AgentContext>,
    state: Mutex<TurnState>,
    /// What fills the window, as of the start of the running turn.
    window: std::sync::Mutex<Option<WindowUse>>,
    /// Held from the first message on, or from the start if the session was resumed.
    lock: OnceCell<Option<Arc<SessionLock>>>,
}

/// Id of a session: letters, digits and `-`. Unguessable if generated here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(pub(crate) String);

/// A message of the user.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// Texts and images, in order.
    pub parts: Vec<Part>,
}

/// Error of a session.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No stored session has this id.
    #[error("no such session: \"{0}\"")]
    Unknown(String),
    /// Another process is using the session.
    #[error("the session \"{session}\" is in use by {}", process(*.pid))]
    InUse {
        /// Id of the session.
        session: String,
        /// Id of the process, if known.
        pid: Option<u32>,
    },
    /// The session cannot be read or written.
    #[error("cannot read or write the session: {0}")]
    Store(Arc<StoreError>),
    /// The message is empty and no turn is unfinished.
    #[error("there is nothing to answer: the message is empty")]
    Empty,
    /// The request to the model failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The host has no permission gate, so calls would be unrestricted.
    #[error("the host has no permission gate; set `HostOptions::gate`")]
    NoGate,
    /// A required server is unavailable.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl Session {
    pub(crate) fn new(
        agent: Arc<Inner>,
        id: SessionId,
        workspace: &Path,
        journal: Journal,
        shared: Shared,
    ) -> Self {
        let context = AgentContext::new(Arc::clone(&agent.options), id, workspace, shared);
        let context = Arc::new(context);
        let state = Mutex::new(TurnState::new(&context, journal));
        Self {
            agent,
            context,
            state,
            window: std::sync::Mutex::new(None),
            lock: OnceCell::new(),
        }
    }

    /// Keeps other processes from continuing the session.
    pub(crate) async fn hold(&self) -> Result<(), SessionError> {
        let take = async || {
            let folder = self.context.options.lock_folder.as_deref();
            let Some(folder) = folder else {
                return Ok(None);
            };
            SessionLock::take(folder, self.id())
        };
        self.lock.get_or_try_init(take).await.map(|_| ())
    }

    /// Pass it to [`Agent::resume`](crate::Agent::resume).
    pub fn id(&self) -> &SessionId {
        &self.context.id
    }

    /// The folder that the session works in.
    pub fn workspace(&self) -> &Path {
        &self.context.calls.workspace
    }

    /// Sends a message and waits for the end of the turn.
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<Reply, SessionError> {
        let (sender, mut events) = mpsc::channel(EVENTS);
        let turn = self.turn(prompt.into(), sender);
        let mut turn = pin!(turn);
        loop {
            tokio::select! {
                reply = &mut turn => return reply,
                // Drain the events, so that the turn is not blocked by a full channel.
                Some(_) = events.recv() => {}
            }
        }
    }

    /// Sends a message and streams the events of the turn. The last item is [`SessionEvent::Ended`] or an error.
    /// Dropping the stream interrupts the turn: it cancels the model's answer and the running calls, and notifies their
    /// servers.
    pub fn stream(
        &self,
        prompt: impl Into<Prompt>,
    ) -> BoxStream<'_, Result<SessionEvent, SessionError>> {
        let (sender, events) = mpsc::channel(EVENTS);
        let running = Running {
            turn: Some(self.turn(prompt.into(), sender).boxed()),
            events,
            last: None,
        };
        running.boxed()
    }

    /// Adds a server to the host and returns the number of its tools, available from the next turn on. The model may
    /// call those that the server declares read-only; the others need a rule or an approval.
    pub async fn add_mcp_server(&self, server: Server) -> Result<usize, switchboard::Error> {
        self.context.options.host.add(server).await
    }

    /// Switches the model, from the next turn on.
    pub fn set_provider(&self, provider: Arc<dyn Provider>) {
        self.context.set_provider(provider);
    }

    /// The conversation so far, as sent to the model. Waits for a running turn to end.
    pub async fn messages(&self) -> Vec<Message> {
        let state = self.state.lock().await;
        state.journal.conversation().messages().to_vec()
    }

    /// The listed tools, in the order of the request.
    pub async fn tools(&self) -> Vec<ToolDefinition> {
        self.state.lock().await.view.definitions().to_vec()
    }

    /// Usage of the session so far.
    pub async fn usage(&self) -> Usage {
        self.state.lock().await.journal.conversation().usage()
    }

    /// The whole conversation, with the messages that were compacted. Waits for a running turn to end.
    pub async fn transcript(&self) -> Result<Vec<Message>, SessionError> {
        let _ended = self.state.lock().await;
        let store = Arc::clone(&self.context.options.store);
        Journal::transcript(store, self.id().clone()).await
    }

    /// What fills the context window; while a turn runs, as of its start.
    pub async fn window(&self) -> WindowUse {
        if let Ok(state) = self.state.try_lock() {
            return window::of(&self.context, &state);
        }
        let known = self.window.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(window) => window,
            None => window::of(&self.context, &*self.state.lock().await),
        }
    }

    /// The sub-agents of the session, oldest first, those of earlier turns included.
    pub fn sub_agents(&self) -> Vec<SubAgentSummary> {
        self.context.shared.agents.summaries()
    }

    /// The files changed by built-in tools, oldest change first.
    pub fn changes(&self) -> Vec<FileChange> {
        self.context.shared.changes.list()
    }

    /// Undoes a change of a file: the one with this number, or the last one. The model is told with the next message.
    /// Waits for a running turn to end.
    pub async fn undo(&self, number: Option<usize>) -> Result<FileChange, UndoError> {
        let mut state = self.state.lock().await;
        let changes = Arc::clone(&self.context.shared.changes);
        let undoing = tokio::task::spawn_blocking(move || changes.undo(number));
        let undone = undoing.await.unwrap_or(Err(UndoError::Nothing))?;
        let unrecorded = |error: SessionError| UndoError::Unrecorded(error.to_string());
        let (store, id) = (&*self.context.options.store, self.id());
        let saved = self.context.shared.changes.save(store, id).await;
        saved.map_err(|error| unrecorded(error.into()))?;
        let text = format!(
            "[Note of the program: the user took back your change of {}.]",
            undone.name
        );
        let note = Entry::Said {
            message: Message::text(Role::User, text),
            is_note: true,
            introduces: Vec::new(),
        };
        state.repair().await.map_err(unrecorded)?;
        state.journal.append(note).await.map_err(unrecorded)?;
        Ok(undone)
    }

    /// Records what an interrupted turn left open: its partial answer, and that calls were interrupted. Without this, the
    /// next turn does it, and the partial answer is lost if there is none. Waits for a running turn to end.
    pub async fn settle(&self) -> Result<(), SessionError> {
        self.state.lock().await.repair().await
    }

    /// Compacts the conversation now.
    pub async fn compact(&self) -> Result<(), SessionError> {
        self.hold().await?;
        let (sender, mut events) = mpsc::channel(EVENTS);
        let mut state = self.state.lock().await;
        let turn = self.turn_on(&mut state, sender);
        let mut work = pin!(turn.only_compact());
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(_) = events.recv() => {}
            }
        }
    }

    async fn turn(
        &self,
        prompt: Prompt,
        events: mpsc::Sender<SessionEvent>,
    ) -> Result<Reply, SessionError> {
        if !self.context.options.host.has_gate() {
            return Err(SessionError::NoGate);
        }
        self.hold().await?;
        let mut state = self.state.lock().await;
        let window = window::of(&self.context, &state);
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) = Some(window);
        if !self.agent.is_connected() {
            let emitter = Emitter::new(events.clone());
            startup::follow(&self.context, &emitter, self.agent.connect()).await?;
        }
        self.turn_on(&mut state, events).run(prompt).await
    }

    fn turn_on<'a>(
        &'a self,
        state: &'a mut TurnState,
        events: mpsc::Sender<SessionEvent>,
    ) -> Turn<'a> {
        let options = &self.context.options;
        let budget = Budget::new(options.max_requests, options.max_tokens);
        Turn::new(&self.context, state, Emitter::new(events), Arc::new(budget))
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

/// Stream of a turn's events. Polling it drives the turn; dropping it cancels the turn.
struct Running<'a> {
    turn: Option<BoxFuture<'a, Result<Reply, SessionError>>>,
    events: mpsc::Receiver<SessionEvent>,
    last: Option<Result<SessionEvent, SessionError>>,
}

impl Stream for Running<'_> {
    type Item = Result<SessionEvent, SessionError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(event)) = self.events.poll_recv(context) {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(turn) = &mut self.turn
            && let Poll::Ready(reply) = turn.poll_unpin(context)
        {
            self.turn = None;
            self.last = Some(reply.map(SessionEvent::Ended));
        }
        // The poll above may have sent events, which come before the end.
        if let Poll::Ready(Some(event)) = self.events.poll_recv(context) {
            return Poll::Ready(Some(Ok(event)));
        }
        match &self.turn {
            Some(_) => Poll::Pending,
            None => Poll::Ready(self.last.take()),
        }
    }
}

impl SessionId {
    /// Generates an unguessable id.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        if SystemRandom::new().fill(&mut bytes).is_err() {
            // Not reached on current systems. The id must still be unique, even if guessable.
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let nanoseconds = now.map_or(0, |since| since.as_nanos());
            bytes = (nanoseconds ^ (u128::from(std::process::id()) << 96)).to_le_bytes();
        }
        let id = bytes
            .iter()
            .enumerate()
            .fold(String::new(), |mut id, (place, byte)| {
                if place % 4 == 0 && place > 0 {
                    id.push('-');
                }
                let _ = write!(id, "{byte:02x}");
                id
            });
        Self(id)
    }

    /// Validates an id typed by the user.
    pub fn parse(text: &str) -> Option<Self> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(is_good);
        fits.then(|| Self(text.to_owned()))
    }

    /// Borrows the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self {
            parts: vec![Part::Text { text: text.into() }],
        }
    }
}
