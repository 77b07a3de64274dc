//! The agent and its sessions, for programs in other languages.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_agent::provider::ProviderSettings;
use switchboard_agent::{AgentOptions, SessionId};
use tokio::sync::{Mutex, Notify, mpsc};

use crate::failure::Failure;
use crate::host::{self, Host, HostConfig};
use crate::questions::Callbacks;
use crate::runtime::{Operation, Runtime};

/// Events of a turn that wait for the program before the turn waits for it.
const EVENTS: usize = 256;

/// What an agent is built from.
#[derive(Debug, Clone, Default)]
pub struct AgentConfig {
    /// A configuration file such as `agent.hcl`, or a folder with one; `None`: the current folder.
    pub path: Option<PathBuf>,
    /// The model; `None`: as the environment selects.
    pub model: Option<String>,
    /// Appended to the system prompt.
    pub instructions: Option<String>,
    /// The maximum number of model requests in a turn.
    pub max_requests: Option<u32>,
    /// The maximum number of tokens in a turn.
    pub max_tokens: Option<u64>,
    /// Further parts of the host.
    pub host: HostConfig,
}

/// An agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    host: Host,
    agent: switchboard_agent::Agent,
}

/// A session of an agent. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    host: Host,
    inner: Arc<switchboard_agent::Session>,
    interrupted: Arc<Notify>,
}

impl Agent {
    /// Creates an agent on a host of its own.
    pub fn create(config: AgentConfig, callbacks: &Callbacks) -> Operation<Self> {
        let callbacks = callbacks.clone();
        host::start(move |runtime| async move { Self::build(runtime, config, &callbacks).await })
    }

    async fn build(
        runtime: Runtime,
        config: AgentConfig,
        callbacks: &Callbacks,
    ) -> Result<Self, Failure> {
        let AgentConfig {
            path,
            model,
            instructions,
            max_requests,
            max_tokens,
            host,
        } = config;
        let host = with_path(host, path)?;
        let configured = host::configure(host, callbacks).await?;
        let settings = ProviderSettings {
            model,
            window: configured.config.settings.model_window(),
            ..ProviderSettings::from_variables(|name| {
                let mut variables = configured.environment.iter();
                let found = variables.find(|(known, _)| known == name);
                found.and_then(|(_, value)| value.to_str().map(str::to_owned))
            })
        };
        let mut options = AgentOptions::configured(&configured, settings.provider().await?);
        options.instructions = instructions;
        options.max_tokens = max_tokens;
        if let Some(max_requests) = max_requests {
            options.max_requests = max_requests;
        }
        Ok(Self {
            host: Host::new(runtime, &configured),
            agent: switchboard_agent::Agent::new(options),
        })
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Creates a session that works in a folder.
    ///
    /// # Errors
    ///
    /// If the folder does not exist; in a forked child, and after the host was closed.
    pub fn session(&self, folder: &Path) -> Result<Session, Failure> {
        self.host.check()?;
        let unusable = |error| Failure::invalid_arguments(format!("{}: {error}", folder.display()));
        let folder = folder.canonicalize().map_err(unusable)?;
        let _guard = self.host.runtime().handle().enter();
        Ok(self.wrap(self.agent.session(folder)))
    }

    /// Loads a stored session.
    pub fn resume(&self, id: &str) -> Operation<Session> {
        let agent = self.clone();
        let id = SessionId::parse(id);
        self.host.start(async move |_| {
            let id =
                id.ok_or_else(|| Failure::invalid_arguments("this is not the id of a session"))?;
            let session = agent.agent.resume(&id).await?;
            Ok(agent.wrap(session))
        })
    }

    /// Lists the stored sessions, newest first, as a JSON array.
    pub fn sessions(&self) -> Operation<String> {
        let agent = self.agent.clone();
        self.host.start(async move |_| {
            let sessions = agent.sessions().await?.into_iter();
            let sessions = sessions.map(|session| {
                json!({
                    "id": session.id.as_str(),
                    "workspace": session.workspace.to_string_lossy(),
                    "title": session.title,
                    "messages": session.messages,
                })
            });
            Ok(Value::Array(sessions.collect()).to_string())
        })
    }

    /// Deletes a stored session; `false` if there is none with this id.
    pub fn delete(&self, id: &str) -> Operation<bool> {
        let agent = self.agent.clone();
        let id = SessionId::parse(id);
        self.host.start(async move |_| match id {
            Some(id) => Ok(agent.delete(&id).await?),
            None => Ok(false),
        })
    }

    fn wrap(&self, session: switchboard_agent::Session) -> Session {
        Session {
            host: self.host.clone(),
            inner: Arc::new(session),
            interrupted: Arc::default(),
        }
    }
}

impl Session {
    /// Its id, to resume it with.
    pub fn id(&self) -> &str {
        self.inner.id().as_str()
    }

    /// The folder that it works in.
    pub fn workspace(&self) -> &Path {
        self.inner.workspace()
    }

    /// The host of its agent.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Sends a message and waits for the end of the turn. Returns the reply as a JSON object.
    pub fn send(&self, text: String) -> Operation<String> {
        let session = self.clone();
        self.host.start(async move |_| {
            tokio::select! {
                reply = session.inner.send(text) => json_of(&reply?),
                () = session.interrupted.notified() => Err(Failure::cancelled()),
            }
        })
    }

    /// Sends a message. The events of the turn are JSON objects, the last of type `ended`.
    pub fn stream(&self, text: String) -> TurnEvents {
        let (sender, receiver) = mpsc::channel(EVENTS);
        let session = self.clone();
        let turn: Operation<()> = self.host.start(async move |_| {
            let mut events = session.inner.stream(text);
            loop {
                let event = tokio::select! {
                    event = events.next() => match event {
                        Some(Ok(event)) => json_of(&event),
                        Some(Err(error)) => Err(error.into()),
                        None => return Ok(()),
                    },
                    () = session.interrupted.notified() => Err(Failure::cancelled()),
                };
                let is_last = event.is_err();
                // Without a receiver, the turn is interrupted.
                if sender.send(event).await.is_err() || is_last {
                    return Ok(());
                }
            }
        });
        TurnEvents(Arc::new(TurnInner {
            runtime: self.host.runtime().clone(),
            turn,
            receiver: Mutex::new(receiver),
        }))
    }

    /// Interrupts the running turn, if any: its model request and its calls are cancelled.
    pub fn interrupt(&self) {
        self.interrupted.notify_waiters();
    }

    /// Adds a server to the host, and returns the number of its tools.
    pub fn add_mcp_server(&self, name: String, entry: String) -> Operation<usize> {
        self.host.add_server(name, entry)
    }

    /// The messages so far, as a JSON array.
    pub fn messages(&self) -> Operation<String> {
        let session = self.clone();
        self.host
            .start(async move |_| json_of(&session.inner.messages().await))
    }

    /// The tokens used so far, as a JSON object.
    pub fn usage(&self) -> Operation<String> {
        let session = self.clone();
        self.host
            .start(async move |_| json_of(&session.inner.usage().await))
    }

    /// Compacts the conversation.
    pub fn compact(&self) -> Operation<()> {
        let session = self.clone();
        self.host
            .start(async move |_| Ok(session.inner.compact().await?))
    }
}

/// The events of a turn. Cheap to clone; clones share one queue. Dropping the last one interrupts the turn.
#[derive(Clone)]
pub struct TurnEvents(Arc<TurnInner>);

struct TurnInner {
    runtime: Runtime,
    turn: Operation<()>,
    receiver: Mutex<mpsc::Receiver<Result<String, Failure>>>,
}

impl TurnEvents {
    /// Waits for the next event, as a JSON object; `None` after the last one.
    pub fn next(&self) -> Operation<Option<String>> {
        let inner = Arc::clone(&self.0);
        self.0.runtime.start_operation(async move {
            match inner.receiver.lock().await.recv().await {
                Some(event) => event.map(Some),
                // A turn that could not begin has sent nothing.
                None => match inner.turn.take() {
                    Some(Err(failure)) => Err(failure),
                    _ => Ok(None),
                },
            }
        })
    }

    /// Interrupts the turn: its model request and its calls are cancelled.
    pub fn interrupt(&self) {
        self.0.turn.cancel();
    }
}

impl Drop for TurnInner {
    fn drop(&mut self) {
        self.turn.cancel();
    }
}

/// Adds a file or the configuration of a folder to the description of a host.
fn with_path(mut host: HostConfig, path: Option<PathBuf>) -> Result<HostConfig, Failure> {
    let path = path.unwrap_or_else(|| PathBuf::from("."));
    let unusable = |error| {
        let failure = Failure::invalid_arguments(format!("{}: {error}", path.display()));
        failure.with_hint("pass a configuration file such as agent.hcl, or a folder")
    };
    let path = path.canonicalize().map_err(unusable)?;
    if path.is_dir() {
        host.folder = Some(path);
    } else {
        host.folder = path.parent().map(Path::to_owned);
        host.files.push(path);
    }
    Ok(host)
}

fn json_of(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::internal(error.to_string()))
}

impl fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Agent").field(&self.agent).finish()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Session").field(&self.inner).finish()
    }
}

impl fmt::Debug for TurnEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TurnEvents").finish_non_exhaustive()
    }
}
