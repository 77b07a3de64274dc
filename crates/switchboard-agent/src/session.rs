//! A conversation with a model that uses tools.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use ring::rand::{SecureRandom as _, SystemRandom};
use switchboard::ServerError;
use switchboard::internal::spec::ServerSpec;
use switchboard_store::StoreError;
use tokio::sync::{Mutex, mpsc};

use crate::agent::Inner;
use crate::budget::Budget;
use crate::context::AgentContext;
use crate::events::{Reply, SessionEvent};
use crate::message::{Message, Part, ToolDefinition};
use crate::provider::{Provider, ProviderError, Usage};
use crate::record::Journal;
use crate::startup;
use crate::turn::{Emitter, Turn, TurnState};

/// How many events may wait for whoever watches a turn. The turn waits when there are more.
const EVENTS: usize = 64;

/// A conversation. One turn at a time: a second one waits.
pub struct Session {
    agent: Arc<Inner>,
    context: Arc<AgentContext>,
    state: Mutex<TurnState>,
}

/// The id of a session: letters, digits and `-`, which can be typed and cannot be guessed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(pub(crate) String);

/// What a person says: text, and what is attached to it.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// Texts and pictures, in order.
    pub parts: Vec<Part>,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is none of that id.
    #[error("there is no session \"{0}\"")]
    Unknown(String),
    /// Somebody else goes on with it at the same time.
    #[error("the session \"{0}\" is in use by another process")]
    InUse(String),
    /// It cannot be read or written.
    #[error("the session cannot be kept: {0}")]
    Store(Arc<StoreError>),
    /// Nothing was said, and there is nothing to go on with.
    #[error("there is nothing to answer: the message is empty")]
    Empty,
    /// The model gave no answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The host's calls pass no permission gate, so that a model could do anything.
    #[error("the host has no permission gate; set `HostOptions::gate`")]
    NoGate,
    /// A server that is required cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl Session {
    pub(crate) fn new(
        agent: Arc<Inner>,
        id: SessionId,
        workspace: &Path,
        journal: Journal,
    ) -> Self {
        let context = AgentContext::new(Arc::clone(&agent.options), id, workspace);
        let context = Arc::new(context);
        let state = Mutex::new(TurnState::new(&context, journal));
        Self {
            agent,
            context,
            state,
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.context.id
    }

    /// The folder it works in.
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
                // Nobody wants to know, but the turn must not wait for room.
                Some(_) = events.recv() => {}
            }
        }
    }

    /// Sends a message and tells what happens. The last item is [`SessionEvent::Ended`] or an error. Dropping the stream
    /// interrupts the turn: the model's answer is called off, and so are calls under way, whose servers are told.
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

    /// Adds a server to the host and tells how many tools it has; they are there from the next turn on.
    pub async fn add_mcp_server(&self, spec: ServerSpec) -> Result<usize, ServerError> {
        self.context.options.host.add_server(spec).await
    }

    /// Uses another model from the next turn on.
    pub fn set_provider(&self, provider: Arc<dyn Provider>) {
        self.context.set_provider(provider);
    }

    /// The conversation so far, as the model will be shown it. It waits for the end of a turn that is under way.
    pub async fn messages(&self) -> Vec<Message> {
        let state = self.state.lock().await;
        state.journal.conversation().messages().to_vec()
    }

    /// The tools that the model is told of, in the order it is told of them.
    pub async fn tools(&self) -> Vec<ToolDefinition> {
        self.state.lock().await.view.definitions().to_vec()
    }

    /// What the session has cost so far.
    pub async fn usage(&self) -> Usage {
        self.state.lock().await.journal.conversation().usage()
    }

    /// Makes the conversation shorter now.
    pub async fn compact(&self) -> Result<(), SessionError> {
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
        let mut state = self.state.lock().await;
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

/// A turn that somebody watches. It runs only while it is watched, and is gone when it is dropped.
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
        // It may have told something just now; that comes before its end.
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
    /// A new id that nobody can guess.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        if SystemRandom::new().fill(&mut bytes).is_err() {
            // No system of today gets here. An id must be new all the same, even where it can be guessed.
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

    /// An id that somebody typed; `None` for what can be none.
    pub fn parse(text: &str) -> Option<Self> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(is_good);
        fits.then(|| Self(text.to_owned()))
    }

    /// The id as text.
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
