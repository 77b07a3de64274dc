//! The agent: a host, a model and a store, from which sessions are made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard::Host;
use switchboard::permissions::Guard;
use switchboard::spec::ServerSpec;
use switchboard_store::{Store, Timestamp};

use crate::provider::Provider;
use crate::session::{Session, SessionError, SessionId};
use crate::tools::Shell;

/// An agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent(#[expect(dead_code, reason = "the interface comes first")] Arc<AgentOptions>);

/// What an agent is made of.
#[derive(Clone)]
pub struct AgentOptions {
    /// The host whose servers it uses. Sessions and sub-agents share its connections.
    pub host: Host,
    /// The servers to connect on the first message of a session (AGT-5); the host may have others already.
    pub servers: Vec<ServerSpec>,
    /// The host's gate, which built-in tools pass, too.
    pub guard: Arc<Guard>,
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// Where sessions are kept.
    pub store: Arc<dyn Store>,
    /// What commands run in.
    pub shell: Shell,
    /// Where large outputs go.
    pub spill_folder: Option<PathBuf>,
    /// What the model is told in addition to what every session is told.
    pub instructions: Option<String>,
    /// When tools are searched for instead of listed (CTX-1).
    pub search: SearchMode,
    /// How many requests to the model one turn may take.
    pub max_requests: u32,
    /// How many tokens one turn may cost; no limit if not stated.
    pub max_tokens: Option<u64>,
}

/// When tools are searched for instead of listed: what `ENABLE_TOOL_SEARCH` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// When their definitions take at least ten per cent of the window.
    #[default]
    Auto,
    /// When they take at least so many per cent of it.
    AutoFrom(u8),
    /// Always.
    On,
    /// Never.
    Off,
}

/// A stored session, as a list has it.
#[derive(Debug, Clone)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// The folder it worked in.
    pub workspace: PathBuf,
    /// The first words of its first message.
    pub title: String,
    /// When it was last written to.
    pub written_at: Timestamp,
    /// How many messages a person sent.
    pub messages: u64,
}

#[expect(
    clippy::todo,
    clippy::unused_async,
    reason = "the interface comes first"
)]
impl Agent {
    /// An agent made of these.
    pub fn new(options: AgentOptions) -> Self {
        Self(Arc::new(options))
    }

    /// A new session that works in this folder. Nothing is connected or written before the first message.
    pub fn session(&self, workspace: &Path) -> Session {
        let _ = workspace;
        todo!()
    }

    /// A stored session, to go on with it. Calls whose end was not recorded are answered as interrupted; none is made
    /// again.
    pub async fn resume(&self, id: &SessionId) -> Result<Session, SessionError> {
        let _ = id;
        todo!()
    }

    /// The stored sessions, the latest first.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, SessionError> {
        todo!()
    }

    /// Removes a stored session; `false` if there is none of that id.
    pub async fn delete(&self, id: &SessionId) -> Result<bool, SessionError> {
        let _ = id;
        todo!()
    }
}
