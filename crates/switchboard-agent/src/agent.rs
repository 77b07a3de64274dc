//! Entry point for embedders: an [`Agent`] holds a host, a model and a session store, and creates sessions.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard::Host;
use switchboard::internal::configured::{ConfiguredHost, bash_sandbox};
use switchboard::internal::places::LOCK_FOLDER;
use switchboard_config::settings::{Setting, Settings, ToolSearch};
use switchboard_store::{MemoryStore, Store, Timestamp};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::context::Shared;
use crate::lock::SessionLock;
use crate::provider::{Provider, ProviderSettings, SettingsError};
use crate::record::{self, Journal};
use crate::session::{Session, SessionError, SessionId};
use crate::tools::{LocalTool, Shell};

/// Creates, resumes, lists and deletes sessions. Cheap to clone.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) options: Arc<AgentOptions>,
    connected: OnceCell<()>,
}

/// Configuration of an [`Agent`]. [`AgentOptions::new`] fills in the defaults.
#[derive(Clone)]
pub struct AgentOptions {
    /// Its servers are started by the first message of a session. Sessions and sub-agents share its connections.
    pub host: Host,
    /// Sends requests to the model.
    pub provider: Arc<dyn Provider>,
    /// Stores sessions. The default keeps them in memory.
    pub store: Arc<dyn Store>,
    /// Folder for the locks of sessions in use; `None`: other processes are not kept from continuing a session.
    pub lock_folder: Option<PathBuf>,
    /// Environment, supervisor and sandbox of shell commands.
    pub shell: Shell,
    /// Tools of the embedding program, in addition to the built-in ones. Shared by all sessions.
    pub tools: Vec<Arc<dyn LocalTool>>,
    /// Folder for outputs that exceed `max_output_tokens`; `None`: the excess is dropped.
    pub spill_folder: Option<PathBuf>,
    /// Maximum size of one tool result, in tokens of text.
    pub max_output_tokens: u64,
    /// Appended to the system prompt of every session.
    pub instructions: Option<String>,
    /// When tools are found by search instead of being listed in every request.
    pub search: SearchMode,
    /// Minimum context window, in tokens, for tool search, unless `search` is [`SearchMode::On`].
    pub min_context_window: u64,
    /// Maximum number of model requests per turn.
    pub max_requests: u32,
    /// Maximum number of tokens per turn; `None`: unlimited.
    pub max_tokens: Option<u64>,
    /// How long the first message waits for servers that are not required. Slower servers join the session later.
    pub patience: Duration,
    /// Additional wait for servers that a package runner is still installing. Zero if there will be a next turn.
    pub install_patience: Duration,
}

/// When tools are found by search instead of being listed, as set by `ENABLE_TOOL_SEARCH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// If their definitions take at least ten per cent of the context window.
    #[default]
    Auto,
    /// If their definitions take at least this percentage of the context window.
    AutoFrom(u8),
    /// Always.
    On,
    /// Never.
    Off,
}

/// Metadata of a stored session.
#[derive(Debug, Clone)]
pub struct SessionSummary {
    /// Pass it to [`Agent::resume`].
    pub id: SessionId,
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The beginning of the first message.
    pub title: String,
    /// Time of the last write.
    pub written_at: Timestamp,
    /// Number of messages sent by the user.
    pub messages: u64,
}

impl AgentOptions {
    /// Defaults: sessions are stored in memory, and commands get an empty environment.
    ///
    /// All calls, including those of built-in tools, pass the host's permission gate. On a host without one, turns fail
    /// with [`SessionError::NoGate`].
    pub fn new(host: Host, provider: Arc<dyn Provider>) -> Self {
        Self {
            host,
            provider,
            store: Arc::new(MemoryStore::new()),
            lock_folder: None,
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

    /// Applies the settings of a configuration: limits of output, and tool search.
    #[doc(hidden)]
    #[must_use]
    pub fn with_settings(self, settings: &Settings) -> Self {
        Self {
            max_output_tokens: settings.count(Setting::MaxOutputTokens),
            search: match settings.tool_search() {
                ToolSearch::Auto(percent) => SearchMode::AutoFrom(percent),
                ToolSearch::On => SearchMode::On,
                ToolSearch::Off => SearchMode::Off,
            },
            min_context_window: settings.count(Setting::MinContextWindow),
            ..self
        }
    }

    /// The options of the program `switchboard` for an agent on this host: stored sessions, and commands with its
    /// environment, supervisor and sandbox.
    #[doc(hidden)]
    pub fn configured(configured: &ConfiguredHost, provider: Arc<dyn Provider>) -> Self {
        let ConfiguredHost {
            host,
            config,
            folders,
            environment,
            store,
            supervisor,
            spill_folder,
        } = configured;
        let settings = &config.settings;
        let sandbox = bash_sandbox(settings, folders, spill_folder, supervisor.as_ref());
        Self {
            store: Arc::clone(store),
            lock_folder: Some(folders.state.join(LOCK_FOLDER)),
            shell: Shell::new(environment.iter().cloned())
                .without_tokens_of(config)
                .supervised_by(supervisor.clone())
                .confined_to(sandbox),
            spill_folder: Some(spill_folder.clone()),
            ..Self::new(host.clone(), provider).with_settings(settings)
        }
    }
}

impl Agent {
    /// Connects nothing; servers start with the first message.
    pub fn new(options: AgentOptions) -> Self {
        Self(Arc::new(Inner {
            options: Arc::new(options),
            connected: OnceCell::new(),
        }))
    }

    /// Selects the model from the environment of this process: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, or
    /// `OPENAI_BASE_URL` for a self-hosted endpoint. Without any of them, a model server on this machine is used, if one
    /// is found (`SWITCHBOARD_LOCAL_MODELS`).
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
    /// If no variable selects a model and none is found, or the endpoint cannot list its models.
    pub async fn from_env(host: Host) -> Result<Self, SettingsError> {
        let settings = ProviderSettings::from_variables(|name| std::env::var(name).ok());
        Ok(Self::new(AgentOptions::new(
            host,
            settings.provider().await?,
        )))
    }

    /// Creates a session that works in this folder. Nothing is connected or written before the first message.
    pub fn session(&self, workspace: impl AsRef<Path>) -> Session {
        let id = SessionId::random();
        let journal = Journal::new(Arc::clone(&self.0.options.store), id.clone());
        let shared = Shared::default();
        Session::new(Arc::clone(&self.0), id, workspace.as_ref(), journal, shared)
    }

    /// Loads a stored session; fails if another process is using it. Calls without a recorded result are answered as
    /// interrupted; none is repeated.
    pub async fn resume(&self, id: &SessionId) -> Result<Session, SessionError> {
        let lock = self.lock(id)?;
        let store = Arc::clone(&self.0.options.store);
        let shared = Shared::read(&*store, id).await?;
        let journal = Journal::read(store, id.clone()).await?;
        let header = journal.conversation().header();
        let workspace = header.map(|header| header.workspace.clone());
        let workspace = workspace.unwrap_or_default();
        let agent = Arc::clone(&self.0);
        let session = Session::new(agent, id.clone(), &workspace, journal, shared);
        session.hold().await?;
        drop(lock);
        Ok(session)
    }

    fn lock(&self, id: &SessionId) -> Result<Option<Arc<SessionLock>>, SessionError> {
        match &self.0.options.lock_folder {
            Some(folder) => SessionLock::take(folder, id),
            None => Ok(None),
        }
    }

    /// Lists the stored sessions, newest first.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, SessionError> {
        record::sessions(&*self.0.options.store).await
    }

    /// Deletes a stored session, with its sub-agents and changes; `false` if the id is unknown. Fails if another process
    /// is using it.
    pub async fn delete(&self, id: &SessionId) -> Result<bool, SessionError> {
        let _lock = self.lock(id)?;
        record::delete(&*self.0.options.store, id).await
    }
}

impl Inner {
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.initialized()
    }

    /// Connects the servers once. Waits up to `patience` for optional servers, and without limit for required ones.
    pub(crate) async fn connect(&self) -> Result<(), SessionError> {
        let options = &self.options;
        let connect = async {
            let statuses = options.host.statuses();
            let is_first = statuses.iter().any(|status| status.state.is_not_started());
            options.host.start_all().await;
            if is_first {
                options.host.connect_all().await;
            }
            // Connection failures are reported with the state of the server.
            let _ = timeout(options.patience, options.host.started()).await;
            // A package that is still installing usually joins in the next turn; wait for it only if there is none.
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
