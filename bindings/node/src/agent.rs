//! The agent, its sessions and turns.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use napi::bindgen_prelude::Either;
use napi_derive::napi;
use switchboard_bindings::{Agent, AgentConfig, Session, TurnEvents};

use crate::bridge::{Bridge, Port, Value};
use crate::host::{HostHandle, HostOptions, Owner, either, nothing, optional};
use crate::values::Failed;

/// What an agent is built from.
#[napi(object)]
pub struct AgentOptions {
    /// A configuration file, or a folder.
    pub path: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Appended to the system prompt.
    pub instructions: Option<String>,
    /// The maximum number of model requests in a turn.
    pub max_requests: Option<u32>,
    /// The maximum number of tokens in a turn.
    pub max_tokens: Option<i64>,
    /// Further parts of the host.
    pub host: HostOptions,
}

#[napi]
impl Bridge {
    /// Creates an agent.
    #[napi]
    pub fn create_agent(&self, id: u32, options: AgentOptions) {
        let table = options.host.table;
        let (host, callbacks) = options.host.split(&self.0);
        let config = AgentConfig {
            path: options.path.map(PathBuf::from),
            model: options.model,
            instructions: options.instructions,
            max_requests: options.max_requests,
            // JavaScript has checked that it is not negative.
            max_tokens: options
                .max_tokens
                .and_then(|tokens| u64::try_from(tokens).ok()),
            host,
        };
        let port = self.0.clone();
        let created = Agent::create(config, &callbacks);
        self.0.report(id, created, move |agent| {
            let owner = Arc::new(Owner(agent.host().clone()));
            Value::F(AgentHandle {
                agent,
                owner,
                port,
                table,
            })
        });
    }
}

/// An agent.
#[napi]
pub struct AgentHandle {
    agent: Agent,
    owner: Arc<Owner>,
    port: Port,
    table: u32,
}

#[napi]
impl AgentHandle {
    /// Its host.
    #[napi]
    pub fn host(&self) -> HostHandle {
        HostHandle::new(&self.owner, &self.port, self.table)
    }

    /// Creates a session that works in a folder.
    #[napi]
    pub fn session(&self, folder: String) -> Either<SessionHandle, Failed> {
        let session = self.agent.session(Path::new(&folder));
        either(session.map(|session| SessionHandle::new(session, &self.owner, &self.port)))
    }

    /// Loads a stored session.
    #[napi]
    pub fn resume(&self, id: u32, session: String) {
        let (owner, port) = (Arc::clone(&self.owner), self.port.clone());
        let resumed = self.agent.resume(&session);
        self.port.report(id, resumed, move |session| {
            Value::G(SessionHandle::new(session, &owner, &port))
        });
    }

    /// Lists the stored sessions.
    #[napi]
    pub fn sessions(&self, id: u32) {
        self.port.report(id, self.agent.sessions(), Value::B);
    }

    /// Deletes a stored session.
    #[napi]
    pub fn delete(&self, id: u32, session: String) {
        self.port.report(id, self.agent.delete(&session), Value::D);
    }
}

/// A session of an agent.
#[napi]
pub struct SessionHandle {
    session: Session,
    /// Keeps the host open.
    _owner: Arc<Owner>,
    port: Port,
}

impl SessionHandle {
    fn new(session: Session, owner: &Arc<Owner>, port: &Port) -> Self {
        Self {
            session,
            _owner: Arc::clone(owner),
            port: port.clone(),
        }
    }
}

#[napi]
impl SessionHandle {
    /// Its id.
    #[napi]
    pub fn id(&self) -> &str {
        self.session.id()
    }

    /// The folder that it works in.
    #[napi]
    pub fn workspace(&self) -> String {
        self.session.workspace().to_string_lossy().into_owned()
    }

    /// Sends a message.
    #[napi]
    pub fn send(&self, id: u32, text: String) {
        self.port.report(id, self.session.send(text), Value::B);
    }

    /// Sends a message, and gives the events of the turn.
    #[napi]
    pub fn stream(&self, text: String) -> TurnHandle {
        TurnHandle {
            turn: self.session.stream(text),
            port: self.port.clone(),
        }
    }

    /// Interrupts the running turn.
    #[napi]
    pub fn interrupt(&self) {
        self.session.interrupt();
    }

    /// The messages so far.
    #[napi]
    pub fn messages(&self, id: u32) {
        self.port.report(id, self.session.messages(), Value::B);
    }

    /// The tokens used so far.
    #[napi]
    pub fn usage(&self, id: u32) {
        self.port.report(id, self.session.usage(), Value::B);
    }

    /// Compacts the conversation.
    #[napi]
    pub fn compact(&self, id: u32) {
        self.port.report(id, self.session.compact(), nothing);
    }
}

/// The events of a turn.
#[napi]
pub struct TurnHandle {
    turn: TurnEvents,
    port: Port,
}

#[napi]
impl TurnHandle {
    /// Waits for the next event.
    #[napi]
    pub fn next(&self, id: u32) {
        self.port.report(id, self.turn.next(), optional);
    }

    /// Interrupts the turn.
    #[napi]
    pub fn interrupt(&self) {
        self.turn.interrupt();
    }
}
