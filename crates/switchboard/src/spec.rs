//! One server as the host wants it: how to reach it, and how to treat it.
//!
//! Owns the value that the manager reconciles with what is there. Making one from a configuration entry is
//! [`crate::connectors`]'s business; a program that embeds the host may make one itself.

use std::sync::Arc;
use std::time::Duration;

use switchboard_config::entry::ServerEntry;
use switchboard_config::redact::Redactor;

use crate::catalog::ToolRules;
use crate::names::ServerName;
use crate::roots::Roots;
use crate::sandbox::SandboxState;
use crate::transport::Connector;

pub use crate::identity::{ConnectionKey, ServerIdentity};

/// A server to manage.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name.
    pub name: ServerName,
    /// How a link to it is made.
    pub connector: Arc<dyn Connector>,
    /// When it differs from before, the server is connected again; when only the rest differs, it is not.
    pub key: ConnectionKey,
    /// Which server it is, whatever its secrets and deadlines are.
    pub identity: ServerIdentity,
    /// Whether it may connect.
    pub enabled: bool,
    /// Whether start-up waits for it.
    pub required: bool,
    /// When it is connected.
    pub start: Start,
    /// How long it may take from the start to its tools.
    pub startup_timeout: Duration,
    /// How long nobody may use it before it is ended, to be connected again by its next use; `None` is for ever.
    pub idle_shutdown: Option<Duration>,
    /// How long a call may be silent.
    pub tool_timeout: Duration,
    /// How long a call may take in all.
    pub tool_max: Duration,
    /// How long a call of these tools may be silent.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// Which of its tools are offered, and how.
    pub rules: ToolRules,
    /// What it is told of its sandbox, if it wants to know. A change is told too.
    pub sandbox: SandboxState,
    /// Whether its hints about its tools count for permissions.
    pub trust_annotations: bool,
    /// Which folders it is told about.
    pub roots: Roots,
    /// Knows the secrets it is given, to mask them in its errors and its log.
    pub redactor: Redactor,
}

/// When a server is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At once.
    #[default]
    Eager,
    /// When it is first used.
    Lazy,
}

impl ServerSpec {
    /// How long a call of this tool may be silent.
    pub(crate) fn timeout_of(&self, tool: &str) -> Duration {
        let own = self.tool_timeouts.iter().find(|(name, _)| name == tool);
        own.map_or(self.tool_timeout, |(_, timeout)| *timeout)
    }

    /// A server with the defaults of the program. Its identity follows from its key.
    pub fn new(
        name: impl Into<ServerName>,
        connector: Arc<dyn Connector>,
        key: ConnectionKey,
    ) -> Self {
        Self {
            name: name.into(),
            connector,
            key,
            identity: ServerIdentity::of_connection(key),
            enabled: true,
            required: false,
            start: Start::Eager,
            startup_timeout: Duration::from_secs(60),
            idle_shutdown: None,
            tool_timeout: Duration::from_secs(60),
            tool_max: Duration::from_secs(100_000),
            tool_timeouts: Vec::new(),
            rules: ToolRules::of(&ServerEntry::default()),
            sandbox: SandboxState::default(),
            trust_annotations: false,
            roots: Roots::OfHandler,
            redactor: Redactor::default(),
        }
    }
}
