//! A conversation with a model that uses tools.

use std::fmt;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use switchboard::host::ServerError;
use switchboard::spec::ServerSpec;
use switchboard_store::StoreError;

use crate::events::{Reply, SessionEvent};
use crate::message::{Message, Part, ToolDefinition};
use crate::provider::{Provider, ProviderError, Usage};

/// A conversation. One turn at a time: a second one waits.
pub struct Session(());

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
    /// The model gave no answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A server that is required cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
}

#[expect(
    clippy::todo,
    clippy::unused_async,
    reason = "the interface comes first"
)]
impl Session {
    /// Its id.
    pub fn id(&self) -> &SessionId {
        todo!()
    }

    /// Sends a message and waits for the end of the turn.
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<Reply, SessionError> {
        let _ = prompt.into();
        todo!()
    }

    /// Sends a message and tells what happens. The last item is [`SessionEvent::Ended`] or an error. Dropping the stream
    /// interrupts the turn: the model's answer is called off, and so are calls under way, whose servers are told.
    pub fn stream(
        &self,
        prompt: impl Into<Prompt>,
    ) -> BoxStream<'_, Result<SessionEvent, SessionError>> {
        let _ = prompt.into();
        todo!()
    }

    /// Adds a server to the host and tells how many tools it has; they are there from the next turn on.
    pub async fn add_mcp_server(&self, spec: ServerSpec) -> Result<usize, ServerError> {
        let _ = spec;
        todo!()
    }

    /// Uses another model from the next turn on.
    pub fn set_provider(&self, provider: Arc<dyn Provider>) {
        let _ = provider;
        todo!()
    }

    /// The conversation so far, as the model will be shown it.
    pub async fn messages(&self) -> Vec<Message> {
        todo!()
    }

    /// The tools that the model is told of, in the order it is told of them.
    pub async fn tools(&self) -> Vec<ToolDefinition> {
        todo!()
    }

    /// What the session has cost so far.
    pub async fn usage(&self) -> Usage {
        todo!()
    }

    /// Makes the conversation shorter now.
    pub async fn compact(&self) -> Result<(), SessionError> {
        todo!()
    }
}

impl SessionId {
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
