//! The agent: a host, a model and a store, from which sessions are made.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard::Host;
use switchboard_store::{MemoryStore, Store, Timestamp};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::provider::{Provider, ProviderSettings, SettingsError};
use crate::record::{self, Journal};
use crate::session::{Session, SessionError, SessionId};
use crate::tools::{LocalTool, Shell};

/// An agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) options: Arc<AgentOptions>,
    connected: OnceCell<()>,
}

/// What an agent is made of. [`AgentOptions::new`] has what is usual.
#[derive(Clone)]
pub struct AgentOptions {
    /// The host whose servers it uses, and starts with the first message of a session. Sessions and sub-agents share its
    /// connections.
    pub host: Host,
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// Where sessions are kept.
    pub store: Arc<dyn Store>,
    /// What commands run in.
    pub shell: Shell,
    /// Tools of the program that embeds the agent, beside those that are built in. All sessions share them.
    pub tools: Vec<Arc<dyn LocalTool>>,
    /// Where large outputs go.
    pub spill_folder: Option<PathBuf>,
    /// The most tokens of text that one result of a tool may have.
    pub max_output_tokens: u64,
    /// What the model is told in addition to what every session is told.
    pub instructions: Option<String>,
    /// When tools are searched for instead of listed.
    pub search: SearchMode,
    /// The smallest window, in tokens, of a model that searches for tools unless `search` is [`SearchMode::On`].
    pub min_context_window: u64,
    /// How many requests to the model one turn may take.
    pub max_requests: u32,
    /// How many tokens one turn may cost; no limit if not stated.
    pub max_tokens: Option<u64>,
    /// How long the first message waits for servers that are not required. Those that come later join the session.
    pub patience: Duration,
    /// How much longer it waits for servers that a package runner is installing. Zero where there will be a next turn.
    pub install_patience: Duration,
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

impl AgentOptions {
    /// What is usual. Sessions are kept as long as the program runs, and commands see no environment.
    ///
    /// All calls, of built-in tools too, pass the host's permission gate. On a host without one, no turn begins
    /// ([`SessionError::NoGate`]).
    pub fn new(host: Host, provider: Arc<dyn Provider>) -> Self {
        Self {
            host,
            provider,
            store: Arc::new(MemoryStore::new()),
            shell: Shell::default(),
            tools: Vec::new(),
            spill_folder: None,
            max_output_tokens: 25_000,
            instructions: None,
            search: SearchMode::default(),
            min_context_window: 32_000,
            max_requests: 200,
            max_tokens: None,
            patience: Duration::from_secs(10),
            install_patience: Duration::ZERO,
        }
    }
}

impl Agent {
    /// An agent made of these.
    pub fn new(options: AgentOptions) -> Self {
        Self(Arc::new(Inner {
            options: Arc::new(options),
            connected: OnceCell::new(),
        }))
    }

    /// An agent with the model that the environment of this process selects: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, or
    /// `OPENAI_BASE_URL` for an endpoint of your own.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use switchboard::Host;
    /// use switchboard_agent::Agent;
    ///
    /// let agent = Agent::from_env(Host::from_config(".").await?).await?;
    /// let reply = agent.session(".").send("What is this folder about?").await?;
    /// println!("{}", reply.response);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If no variable selects a model, or the endpoint cannot be asked which models it has.
    pub async fn from_env(host: Host) -> Result<Self, SettingsError> {
        let settings = ProviderSettings::from_variables(|name| std::env::var(name).ok());
        Ok(Self::new(AgentOptions::new(
            host,
            settings.provider().await?,
        )))
    }

    /// A new session that works in this folder. Nothing is connected or written before the first message.
    pub fn session(&self, workspace: impl AsRef<Path>) -> Session {
        let id = SessionId::random();
        let journal = Journal::new(Arc::clone(&self.0.options.store), id.clone());
        Session::new(Arc::clone(&self.0), id, workspace.as_ref(), journal)
    }

    /// A stored session, to go on with it. Calls whose end was not recorded are answered as interrupted; none is made
    /// again.
    pub async fn resume(&self, id: &SessionId) -> Result<Session, SessionError> {
        let store = Arc::clone(&self.0.options.store);
        let journal = Journal::read(store, id.clone()).await?;
        let header = journal.conversation().header();
        let workspace = header.map(|header| header.workspace.clone());
        let workspace = workspace.unwrap_or_default();
        Ok(Session::new(
            Arc::clone(&self.0),
            id.clone(),
            &workspace,
            journal,
        ))
    }

    /// The stored sessions, the latest first.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, SessionError> {
        record::sessions(&*self.0.options.store).await
    }

    /// Removes a stored session; `false` if there is none of that id.
    pub async fn delete(&self, id: &SessionId) -> Result<bool, SessionError> {
        record::delete(&*self.0.options.store, id).await
    }
}

impl Inner {
    /// Whether the servers have been connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.initialized()
    }

    /// Connects the servers, the first time. Only those that are required are waited for as long as it takes.
    pub(crate) async fn connect(&self) -> Result<(), SessionError> {
        let options = &self.options;
        let connect = async {
            let statuses = options.host.statuses();
            let is_first = statuses.iter().any(|status| status.state.is_not_started());
            options.host.start_all().await;
            if is_first {
                options.host.connect_all().await;
            }
            // What cannot be connected is told with the state of its server.
            let _ = timeout(options.patience, options.host.started()).await;
            // What is being installed may be there only for the next turn, unless there is none.
            let _ = timeout(options.install_patience, options.host.installed()).await;
            options.host.ready().await
        };
        self.connected.get_or_try_init(|| connect).await?;
        Ok(())
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Agent")
            .field("host", &self.0.options.host)
            .field("provider", &self.0.options.provider)
            .finish_non_exhaustive()
    }
}
