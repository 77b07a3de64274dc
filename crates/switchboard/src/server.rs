//! A builder for servers described in code, with the settings of a table in `mcp.toml`.
//!
//! Only describes a server. [`Host::add`](crate::Host::add) connects it in the same way as a configured entry: with the
//! same environment, deadlines, roots, masking and tool rules.

use std::sync::Arc;
use std::time::Duration;

use switchboard_config::entry::{ServerEntry, Transport};
use switchboard_config::secret::Secret;
use switchboard_config::settings::Settings;

use crate::auth::interactive::logins::LoginTarget;
use crate::connectors::{ConnectorError, Connectors};
use crate::service::Service;
use crate::spec::{ConnectionKey, ServerSpec, Start};
use crate::transport::Connector;
use crate::transport::in_process::InProcessConnector;

/// A server to connect to.
///
/// ```
/// use switchboard::Server;
///
/// let files = Server::stdio("files", "npx").args(["-y", "@modelcontextprotocol/server-filesystem", "."]);
/// let docs = Server::http("docs", "https://mcp.example.com/mcp").header("Authorization", "Bearer …");
/// ```
#[derive(Clone)]
pub struct Server {
    name: String,
    entry: ServerEntry,
    connector: Option<Arc<dyn Connector>>,
    start: Start,
}

impl Server {
    /// A program that speaks MCP over its standard input and output.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self::from_entry(
            name,
            ServerEntry {
                command: Some(command.into()),
                ..ServerEntry::default()
            },
        )
    }

    /// A remote server: Streamable HTTP, or WebSocket for a `ws://` or `wss://` URL.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::from_entry(
            name,
            ServerEntry {
                url: Some(url.into()),
                ..ServerEntry::default()
            },
        )
    }

    /// A remote server that still speaks HTTP+SSE, the transport of 2024-11-05.
    pub fn sse(name: impl Into<String>, url: impl Into<String>) -> Self {
        let mut server = Self::http(name, url);
        server.entry.transport = Some(Transport::Sse);
        server
    }

    /// A Rust value that serves MCP in this process.
    pub fn in_process(name: impl Into<String>, service: impl Service) -> Self {
        let mut server = Self::over(name, InProcessConnector::new(Arc::new(service)));
        // Its tools change only with this program, so they are not pinned.
        server.entry.transport = Some(Transport::Sdk);
        server
    }

    /// A server behind a transport of your own.
    pub fn over(name: impl Into<String>, connector: impl Connector + 'static) -> Self {
        Self {
            connector: Some(Arc::new(connector)),
            ..Self::from_entry(name, ServerEntry::default())
        }
    }

    /// A server described by a configuration entry, with every key that the configuration has.
    pub fn from_entry(name: impl Into<String>, entry: ServerEntry) -> Self {
        Self {
            name: name.into(),
            entry,
            connector: None,
            start: Start::Eager,
        }
    }

    /// Adds arguments to the command.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.entry.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable of the process. Its value is masked in the server's output.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.entry
            .env
            .push((name.into(), Secret::new(value.into())));
        self
    }

    /// Passes on a variable of this process. By default, servers inherit only the variables that programs need to run.
    #[must_use]
    pub fn pass_env(mut self, name: impl Into<String>) -> Self {
        self.entry.env_vars.push(name.into());
        self
    }

    /// Sets the working directory of the process. Defaults to the current folder.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<String>) -> Self {
        self.entry.cwd = Some(folder.into());
        self
    }

    /// Adds an HTTP header to every request. Its value is masked in the server's output.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.entry
            .headers
            .push((name.into(), Secret::new(value.into())));
        self
    }

    /// Sets the deadline from the start of the process to its list of tools. Defaults to 60 seconds.
    #[must_use]
    pub const fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.entry.startup_timeout = Some(timeout);
        self
    }

    /// Sets the idle deadline of a call: the time without progress or a result. Defaults to 60 seconds.
    #[must_use]
    pub const fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.entry.tool_timeout = Some(timeout);
        self
    }

    /// Offers only these tools.
    #[must_use]
    pub fn only_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.entry
            .enabled_tools
            .extend(tools.into_iter().map(Into::into));
        self
    }

    /// Sets whether what the server declares about its tools counts for permissions: an agent may then call read-only
    /// tools without approval. Defaults to true, since the program's author chose the server.
    #[must_use]
    pub const fn trust_annotations(mut self, is_trusted: bool) -> Self {
        self.entry.trust_annotations = Some(is_trusted);
        self
    }

    /// Connects on first use instead of at once.
    #[must_use]
    pub const fn lazy(mut self) -> Self {
        self.start = Start::Lazy;
        self
    }

    /// How to log in to it; `None` if it needs no login.
    pub(crate) fn login_target(
        &self,
        connectors: &Connectors,
    ) -> Result<Option<LoginTarget>, ConnectorError> {
        match self.connector {
            Some(_) => Ok(None),
            None => LoginTarget::of_entry(&self.entry, connectors, &Settings::default()),
        }
    }

    /// Converts it to the host's internal form.
    pub(crate) fn into_spec(
        mut self,
        connectors: &Connectors,
    ) -> Result<ServerSpec, ConnectorError> {
        self.entry.trust_annotations.get_or_insert(true);
        let settings = Settings::default();
        let spec = match self.connector {
            None => connectors.of_entry(&self.name, &self.entry, &settings)?,
            Some(connector) => {
                // Each in-process value is a separate server, so no two share a key.
                let address = Arc::as_ptr(&connector).addr().to_le_bytes();
                let key = ConnectionKey::of(&[self.name.as_bytes(), &address]);
                connectors.with_connector(&self.name, &self.entry, &settings, connector, key)
            }
        };
        Ok(ServerSpec {
            start: self.start,
            ..spec
        })
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Server")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
