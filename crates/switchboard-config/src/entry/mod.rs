//! Server entry: the settings of one server in one file, before variables are expanded.
//!
//! [`keys`] is the single list of keys, shared by decoding, encoding, the JSON Schema and the suggestions for mistyped
//! keys.

mod decode;
mod encode;
mod expanded;
pub mod keys;
mod literals;
mod reader;
mod validate;

use std::fmt;
use std::time::Duration;

use crate::secret::Secret;
use crate::tree::Span;

pub(crate) use decode::decode;
pub use keys::Field;
pub(crate) use reader::Reader;
pub(crate) use validate::ValueFault;

/// A server as written in one file, with `${…}` not yet expanded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerEntry {
    /// `None`: inferred from `command` or `url`.
    pub transport: Option<Transport>,
    /// Program of a stdio server.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables set for the program, in order.
    pub env: Vec<(String, Secret)>,
    /// Names of variables passed on from our own environment.
    pub env_vars: Vec<String>,
    /// Whether the whole environment is passed on; `None`: no.
    pub inherit_env: Option<bool>,
    /// Working folder of the program.
    pub cwd: Option<String>,
    /// URL of a remote server.
    pub url: Option<String>,
    /// HTTP headers, in order.
    pub headers: Vec<(String, Secret)>,
    /// Program and arguments that print further headers as JSON.
    pub headers_helper: Vec<String>,
    /// Environment variable that holds a bearer token.
    pub bearer_token_env_var: Option<String>,
    /// Overrides of OAuth discovery.
    pub oauth: Option<OAuthEntry>,
    /// PEM file with certificates trusted for this server only.
    pub ca_file: Option<String>,
    /// Whether it may connect; `None`: yes.
    pub enabled: Option<bool>,
    /// Whether start-up waits for it and fails without it; `None`: no.
    pub required: Option<bool>,
    /// Deadline from spawn to listed tools; `None`: the setting.
    pub startup_timeout: Option<Duration>,
    /// Idle deadline of a call; `None`: the setting.
    pub tool_timeout: Option<Duration>,
    /// Total deadline of a call; `None`: the setting.
    pub tool_max: Option<Duration>,
    /// If not empty, only these tools are offered.
    pub enabled_tools: Vec<String>,
    /// Tools that are not offered.
    pub disabled_tools: Vec<String>,
    /// Settings of individual tools, by tool name.
    pub tools: Vec<(String, ToolEntry)>,
    /// Whether its read-only and destructive hints count for permissions; `None`: no.
    pub trust_annotations: Option<bool>,
    /// Whether changed tools are set aside until approved; `None`: yes.
    pub pin: Option<bool>,
    /// What its process may access.
    pub sandbox: Option<Sandbox>,
    /// Whether clients may share one process; `None`: [`Sharing::Auto`].
    pub shared: Option<Sharing>,
    /// Idle time after which it is stopped; it restarts on next use. `None`: never.
    pub idle_shutdown: Option<Duration>,
    /// Folders offered as roots; `None`: the workspace, unless its arguments name folders.
    pub roots: Option<RootsEntry>,
    /// How many calls run at once, and when calls are paused.
    pub limits: Option<LimitsEntry>,
}

impl ServerEntry {
    /// The stated transport, or the one implied by `command` or `url`.
    pub fn effective_transport(&self) -> Option<Transport> {
        self.transport.or_else(|| match (&self.command, &self.url) {
            (Some(_), _) => Some(Transport::Stdio),
            (None, Some(url)) => Some(Transport::of_url(url)),
            (None, None) => None,
        })
    }

    /// Environment variables that hold secrets of a remote server, with the keys that name them.
    pub(crate) fn secret_variables(&self) -> impl Iterator<Item = (Field, &'static str, &str)> {
        let is_remote = self
            .effective_transport()
            .is_some_and(|transport| !transport.is_local());
        let bearer = self.bearer_token_env_var.as_deref();
        let bearer = bearer.map(|name| (Field::BearerTokenEnvVar, "bearer_token_env_var", name));
        let oauth = self.oauth.iter().flat_map(|oauth| {
            let keys = [
                // A file or an inline value takes precedence.
                (
                    "oauth.client_secret_env_var",
                    oauth
                        .client_secret_env_var
                        .as_deref()
                        .filter(|_| oauth.client_secret.is_none()),
                ),
                (
                    "oauth.private_key_env_var",
                    oauth
                        .private_key_env_var
                        .as_deref()
                        .filter(|_| oauth.private_key_file.is_none()),
                ),
                (
                    "oauth.idp_client_secret_env_var",
                    oauth.idp_client_secret_env_var.as_deref(),
                ),
                (
                    "oauth.assertion_env_var",
                    oauth
                        .assertion_env_var
                        .as_deref()
                        .filter(|_| oauth.assertion_file.is_none()),
                ),
            ];
            let named = keys.into_iter();
            named.filter_map(|(key, name)| Some((Field::OAuth, key, name?)))
        });
        bearer.into_iter().chain(oauth).filter(move |_| is_remote)
    }
}

/// Folders offered to a server as roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootsEntry {
    /// The project folder.
    Workspace,
    /// The roots capability is not offered.
    None,
    /// These folders; relative ones start in the project folder. Never empty.
    Folders(Vec<String>),
}

impl RootsEntry {
    /// Parses the keywords; other values are lists of folders.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "workspace" => Some(RootsEntry::Workspace),
            "none" => Some(RootsEntry::None),
            _ => None,
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A child process.
    Stdio,
    /// Streamable HTTP, falling back to HTTP+SSE by the specification's rule.
    Http,
    /// The legacy HTTP+SSE transport.
    Sse,
    /// A WebSocket.
    Ws,
    /// A server in this process.
    Sdk,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 5] = [
        Transport::Stdio,
        Transport::Http,
        Transport::Sse,
        Transport::Ws,
        Transport::Sdk,
    ];

    /// The schemes that the URL of a server may have.
    pub const SCHEMES: [&str; 5] = ["https", "http", "ws", "wss", "unix"];

    /// Name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Ws => "ws",
            Transport::Sdk => "sdk",
        }
    }

    /// Parses a name, in any of the common spellings.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().replace(['_', ' '], "-").as_str() {
            "stdio" | "local" => Some(Transport::Stdio),
            "http" | "streamable-http" | "streamablehttp" | "remote" => Some(Transport::Http),
            "sse" => Some(Transport::Sse),
            "ws" | "websocket" => Some(Transport::Ws),
            "sdk" | "in-process" => Some(Transport::Sdk),
            _ => None,
        }
    }

    /// The transport implied by a URL.
    pub fn of_url(url: &str) -> Self {
        let scheme = url.split("://").next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("ws") || scheme.eq_ignore_ascii_case("wss") {
            Transport::Ws
        } else {
            Transport::Http
        }
    }

    /// Whether the server runs on this machine, as a child process or in this process.
    pub fn is_local(self) -> bool {
        matches!(self, Transport::Stdio | Transport::Sdk)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// The `oauth` table of an entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OAuthEntry {
    /// Pre-registered client.
    pub client_id: Option<String>,
    /// Secret of the client.
    pub client_secret: Option<Secret>,
    /// Environment variable that holds the client secret.
    pub client_secret_env_var: Option<String>,
    /// Scopes to request.
    pub scopes: Vec<String>,
    /// Authorization server, to override discovery.
    pub issuer: Option<String>,
    /// Metadata URL of the authorization server, if non-standard.
    pub metadata_url: Option<String>,
    /// Resource indicator, if not the server's URL.
    pub resource: Option<String>,
    /// Port of the loopback callback.
    pub callback_port: Option<u16>,
    /// Full redirect URI, if the port is not enough.
    pub redirect_uri: Option<String>,
    /// `authorization_code` (the default), `client_credentials`, `enterprise_managed` or `workload_identity`.
    pub grant_type: Option<String>,
    /// File with the private key (PKCS #8 in PEM) of a client that signs instead of sending a secret.
    pub private_key_file: Option<String>,
    /// Environment variable that holds that key.
    pub private_key_env_var: Option<String>,
    /// Id of that key, if the authorization server requires one.
    pub key_id: Option<String>,
    /// URL of a client metadata document, for authorization servers that support it.
    pub client_metadata_url: Option<String>,
    /// Token endpoint of the enterprise's identity provider, for `enterprise_managed`.
    pub idp_token_endpoint: Option<String>,
    /// Client at the identity provider, if not `client_id`.
    pub idp_client_id: Option<String>,
    /// Environment variable that holds that client's secret.
    pub idp_client_secret_env_var: Option<String>,
    /// File with the identity token to exchange (`enterprise_managed`, `workload_identity`).
    pub assertion_file: Option<String>,
    /// Environment variable that holds that token.
    pub assertion_env_var: Option<String>,
    /// Whether tokens are bound to a key (`DPoP`); `None`: only if the server requires it.
    pub dpop: Option<bool>,
}

/// Value of a field that is set.
#[derive(Debug, Clone, Copy)]
pub enum FieldValue<'e> {
    /// A text to mask before it is shown.
    Text(&'e str),
    /// A text that is never shown.
    Secret(&'e Secret),
    /// Texts to mask before they are shown.
    List(&'e [String]),
    /// A port.
    Number(u16),
    /// A boolean.
    Flag(bool),
}

impl OAuthEntry {
    /// The fields that are set, by name. Approvals and connection keys hash them in this order.
    pub fn fields<'e>(&'e self) -> impl Iterator<Item = (&'static str, FieldValue<'e>)> {
        // Destructured completely, so that a new field does not compile until it is handled here.
        let Self {
            client_id,
            client_secret,
            client_secret_env_var,
            scopes,
            issuer,
            metadata_url,
            resource,
            callback_port,
            redirect_uri,
            grant_type,
            private_key_file,
            private_key_env_var,
            key_id,
            client_metadata_url,
            idp_token_endpoint,
            idp_client_id,
            idp_client_secret_env_var,
            assertion_file,
            assertion_env_var,
            dpop,
        } = self;
        let text = |text: &'e Option<String>| text.as_deref().map(FieldValue::Text);
        let scopes = (!scopes.is_empty()).then_some(FieldValue::List(scopes));
        let fields = [
            (
                "client_secret",
                client_secret.as_ref().map(FieldValue::Secret),
            ),
            ("client_id", text(client_id)),
            ("client_secret_env_var", text(client_secret_env_var)),
            ("issuer", text(issuer)),
            ("metadata_url", text(metadata_url)),
            ("resource", text(resource)),
            ("callback_port", callback_port.map(FieldValue::Number)),
            ("redirect_uri", text(redirect_uri)),
            ("grant_type", text(grant_type)),
            ("private_key_file", text(private_key_file)),
            ("private_key_env_var", text(private_key_env_var)),
            ("key_id", text(key_id)),
            ("client_metadata_url", text(client_metadata_url)),
            ("idp_token_endpoint", text(idp_token_endpoint)),
            ("idp_client_id", text(idp_client_id)),
            ("idp_client_secret_env_var", text(idp_client_secret_env_var)),
            ("assertion_file", text(assertion_file)),
            ("assertion_env_var", text(assertion_env_var)),
            ("scopes", scopes),
            ("dpop", dpop.map(FieldValue::Flag)),
        ];
        let set = fields.into_iter();
        set.filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The `tools.NAME` table of an entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolEntry {
    /// Idle deadline of this tool's calls; `None`: that of the server.
    pub timeout: Option<Duration>,
    /// Permission for this tool's calls.
    pub permission: Option<Permission>,
    /// Whether it is hidden from the model; `None`: no.
    pub hidden: Option<bool>,
}

/// Permission needed by a call, ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// The call is made.
    Allow,
    /// The user is asked for consent.
    Ask,
    /// The call is rejected.
    Deny,
}

impl Permission {
    /// All permissions, from lax to strict.
    pub const ALL: [Permission; 3] = [Permission::Allow, Permission::Ask, Permission::Deny];

    /// Name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Permission::Allow => "allow",
            Permission::Ask => "ask",
            Permission::Deny => "deny",
        }
    }

    /// Parses a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|permission| permission.name() == name)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What the process of a stdio server may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sandbox {
    /// File access.
    pub mode: SandboxMode,
    /// Network access; `None`: allowed.
    pub network: Option<bool>,
}

/// Limits of the calls to a server; `None`: the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitsEntry {
    /// Calls that run at once.
    pub concurrent_calls: Option<u64>,
    /// Further calls that wait.
    pub queued_calls: Option<u64>,
    /// Failures in a row after which calls are paused.
    pub failures: Option<u64>,
    /// How long calls are paused.
    pub pause: Option<Duration>,
}

/// File access of a sandboxed process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxMode {
    /// No restriction.
    Off,
    /// Reads everything, writes nothing.
    ReadOnly,
    /// Reads everything, writes only in the workspace.
    Workspace,
    /// No access to Switchboard's own files; otherwise unrestricted.
    OwnFiles,
}

/// Whether clients of a gateway share one process of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sharing {
    /// Until the server proves to be bound to a client.
    #[default]
    Auto,
    /// Whatever the server does.
    Always,
    /// Each client has a process of its own.
    Never,
}

impl Sharing {
    /// Every value.
    pub const ALL: [Sharing; 3] = [Sharing::Auto, Sharing::Always, Sharing::Never];

    /// Name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Sharing::Auto => "auto",
            Sharing::Always => "always",
            Sharing::Never => "never",
        }
    }

    /// Parses a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sharing| sharing.name() == name)
    }
}

impl SandboxMode {
    /// Every mode, from lax to strict.
    pub const ALL: [SandboxMode; 4] = [
        SandboxMode::Off,
        SandboxMode::OwnFiles,
        SandboxMode::Workspace,
        SandboxMode::ReadOnly,
    ];

    /// Name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            SandboxMode::Off => "off",
            SandboxMode::ReadOnly => "read-only",
            SandboxMode::Workspace => "workspace",
            SandboxMode::OwnFiles => "own-files",
        }
    }

    /// Parses a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) entry: ServerEntry,
    /// Position of each stated field.
    pub(crate) spans: Vec<(Field, Span)>,
    /// Errors. A faulty entry is never used in part.
    pub(crate) faults: Vec<String>,
}
