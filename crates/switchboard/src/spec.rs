//! The desired settings of one server: how to connect to it, and how to treat it.
//!
//! The manager reconciles running servers with this value. [`crate::connectors`] builds it from a configuration entry;
//! a program that embeds the host may build it directly.

use std::sync::Arc;
use std::time::Duration;

use switchboard_config::entry::{ServerEntry, Sharing};
use switchboard_config::redact::Redactor;

use crate::catalog::ToolRules;
use crate::load::{LoadLimits, ServerLoad};
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
    /// Opens connections to it.
    pub connector: Arc<dyn Connector>,
    /// If this changes, the server is reconnected; if only other fields change, it is not.
    pub key: ConnectionKey,
    /// Connections with the same key may be shared by the hosts of a daemon; `None`: never.
    #[doc(hidden)]
    pub share_key: Option<ConnectionKey>,
    /// Whether clients share a connection.
    #[doc(hidden)]
    pub sharing: Sharing,
    /// Identifies the server regardless of its secrets and deadlines.
    pub identity: ServerIdentity,
    /// Whether it may connect.
    pub enabled: bool,
    /// Whether start-up waits for it.
    pub required: bool,
    /// When it is connected.
    pub start: Start,
    /// The deadline from start until its tools are listed.
    pub startup_timeout: Duration,
    /// Idle time after which the server is stopped; it restarts on next use. `None`: never.
    pub idle_shutdown: Option<Duration>,
    /// The maximum time without progress of a call.
    pub tool_timeout: Duration,
    /// The maximum duration of a call.
    pub tool_max: Duration,
    /// The maximum time without progress, by tool.
    pub tool_timeouts: Vec<(String, Duration)>,
    /// Which of its tools are offered, pinned, and trusted in what they declare.
    pub rules: ToolRules,
    /// The sandbox state announced to the server, if it supports that. Changes are announced, too.
    pub sandbox: SandboxState,
    /// The folders announced as its roots.
    pub roots: Roots,
    /// Masks its secrets in errors and log lines.
    pub redactor: Redactor,
    /// Its running and waiting requests, within their limits.
    #[doc(hidden)]
    pub load: Arc<ServerLoad>,
}

/// When a server is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At once.
    #[default]
    Eager,
    /// On first use.
    Lazy,
}

impl ServerSpec {
    /// The maximum time without progress of a call of this tool.
    pub(crate) fn timeout_of(&self, tool: &str) -> Duration {
        let own = self.tool_timeouts.iter().find(|(name, _)| name == tool);
        own.map_or(self.tool_timeout, |(_, timeout)| *timeout)
    }

    /// The same server with other limits of its requests.
    #[must_use]
    #[doc(hidden)]
    pub fn with_limits(mut self, limits: LoadLimits) -> Self {
        self.load = Arc::new(ServerLoad::new(limits));
        self
    }

    /// A server with default settings. Its identity is derived from its key.
    pub fn new(
        name: impl Into<ServerName>,
        connector: Arc<dyn Connector>,
        key: ConnectionKey,
    ) -> Self {
        Self {
            name: name.into(),
            connector,
            key,
            share_key: None,
            sharing: Sharing::default(),
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
            roots: Roots::OfHandler,
            redactor: Redactor::default(),
            load: Arc::new(ServerLoad::new(LoadLimits::default())),
        }
    }
}
