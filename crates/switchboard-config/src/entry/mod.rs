//! One server entry: what a file says about a server, before variables are expanded.
//!
//! Owns the meaning of the keys of a server table. [`keys`] is the one list of them; decoding, encoding, the
//! JSON Schema and the suggestions for mistyped keys all read it.

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

/// A server as one file describes it. Strings are as written, with `${…}` still in them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerEntry {
    /// How to reach it; inferred from `command` or `url` when absent.
    pub transport: Option<Transport>,
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set for it, in order.
    pub env: Vec<(String, Secret)>,
    /// Names of variables passed on from our own environment.
    pub env_vars: Vec<String>,
    /// Whether the whole environment is passed on.
    pub inherit_env: Option<bool>,
    /// The folder it starts in.
    pub cwd: Option<String>,
    /// Where it listens.
    pub url: Option<String>,
    /// HTTP headers, in order.
    pub headers: Vec<(String, Secret)>,
    /// A command, as program and arguments, that prints further headers.
    pub headers_helper: Vec<String>,
    /// The variable that holds a bearer token.
    pub bearer_token_env_var: Option<String>,
    /// OAuth settings.
    pub oauth: Option<OAuthEntry>,
    /// A PEM file with certificates that are trusted for this server alone.
    pub ca_file: Option<String>,
    /// Whether it may connect; yes when absent.
    pub enabled: Option<bool>,
    /// Whether start-up waits for it and fails without it.
    pub required: Option<bool>,
    /// Deadline from spawn to listed tools.
    pub startup_timeout: Option<Duration>,
    /// Idle deadline of a call.
    pub tool_timeout: Option<Duration>,
    /// Total deadline of a call.
    pub tool_max: Option<Duration>,
    /// If not empty, the only tools that are offered.
    pub enabled_tools: Vec<String>,
    /// Tools that are not offered.
    pub disabled_tools: Vec<String>,
    /// Settings of single tools.
    pub tools: Vec<(String, ToolEntry)>,
    /// Whether its read-only and destructive hints count for permissions.
    pub trust_annotations: Option<bool>,
    /// Whether tools that changed are set aside until the change is approved; yes when absent.
    pub pin: Option<bool>,
    /// What its process may touch.
    pub sandbox: Option<Sandbox>,
    /// Whether sessions may share one process of it.
    pub shared: Option<bool>,
    /// How long it may idle before it is ended.
    pub idle_shutdown: Option<Duration>,
    /// Which folders it is told about; when absent, the workspace unless its own arguments name folders.
    pub roots: Option<RootsEntry>,
}

impl ServerEntry {
    /// The transport that is stated, or that `command` or `url` imply.
    pub fn effective_transport(&self) -> Option<Transport> {
        self.transport.or_else(|| match (&self.command, &self.url) {
            (Some(_), _) => Some(Transport::Stdio),
            (None, Some(url)) => Some(Transport::of_url(url)),
            (None, None) => None,
        })
    }

    /// The environment variables that a remote server's secrets are read from, with the keys that name them.
    pub(crate) fn secret_variables(&self) -> impl Iterator<Item = (Field, &'static str, &str)> {
        let is_remote = self
            .effective_transport()
            .is_some_and(|transport| !transport.is_local());
        let bearer = self.bearer_token_env_var.as_deref();
        let bearer = bearer.map(|name| (Field::BearerTokenEnvVar, "bearer_token_env_var", name));
        let oauth = self.oauth.iter().flat_map(|oauth| {
            let keys = [
                // A file or a value in the entry comes first.
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

/// Which folders a server is told about (`roots`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootsEntry {
    /// The folder of the project.
    Workspace,
    /// None: the server is not offered roots at all.
    None,
    /// These folders, from the folder of the project if they are relative. Never empty.
    Folders(Vec<String>),
}

impl RootsEntry {
    /// The words that stand for themselves; anything else is a list of folders.
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
    /// WebSocket.
    Ws,
    /// In-process.
    Sdk,
}

impl Transport {
    /// Every transport.
    pub const ALL: [Transport; 5] = [
        Transport::Stdio,
        Transport::Http,
        Transport::Sse,
        Transport::Ws,
        Transport::Sdk,
    ];

    /// The schemes that the URL of a server may have.
    pub const SCHEMES: [&str; 5] = ["https", "http", "ws", "wss", "unix"];

    /// The name used in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
            Transport::Ws => "ws",
            Transport::Sdk => "sdk",
        }
    }

    /// The transport of that name, in any of the spellings that are in use.
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

    /// What a bare URL means.
    pub fn of_url(url: &str) -> Self {
        let scheme = url.split("://").next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("ws") || scheme.eq_ignore_ascii_case("wss") {
            Transport::Ws
        } else {
            Transport::Http
        }
    }

    /// Whether the server runs on this machine, as a child or in this process.
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
    /// A client registered beforehand.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
    /// The variable that holds its secret.
    pub client_secret_env_var: Option<String>,
    /// The scopes to ask for.
    pub scopes: Vec<String>,
    /// The authorization server, when discovery should not choose.
    pub issuer: Option<String>,
    /// The authorization server's metadata document, when it is at an unusual place.
    pub metadata_url: Option<String>,
    /// The resource indicator, when it is not the server's URL.
    pub resource: Option<String>,
    /// The port of the loopback callback.
    pub callback_port: Option<u16>,
    /// The whole redirect URI, when the port is not enough.
    pub redirect_uri: Option<String>,
    /// `authorization_code` (the default), `client_credentials`, `enterprise_managed` or `workload_identity`.
    pub grant_type: Option<String>,
    /// The file with its private key (PKCS #8 in PEM), when it signs instead of showing a secret.
    pub private_key_file: Option<String>,
    /// The variable that holds that key.
    pub private_key_env_var: Option<String>,
    /// The name of that key, where the authorization server wants one.
    pub key_id: Option<String>,
    /// The address of a client metadata document, for authorization servers that read such.
    pub client_metadata_url: Option<String>,
    /// The token endpoint of the enterprise's identity provider, for `enterprise_managed`.
    pub idp_token_endpoint: Option<String>,
    /// The client there, when it is not `client_id`.
    pub idp_client_id: Option<String>,
    /// The variable that holds the secret of that client.
    pub idp_client_secret_env_var: Option<String>,
    /// The file with the identity token that is exchanged (`enterprise_managed`, `workload_identity`).
    pub assertion_file: Option<String>,
    /// The variable that holds that token.
    pub assertion_env_var: Option<String>,
    /// Whether tokens are bound to a key (`DPoP`); when it is absent, where the server asks for it.
    pub dpop: Option<bool>,
}

/// The value of a field that is set.
#[derive(Debug, Clone, Copy)]
pub enum FieldValue<'e> {
    /// Text that may be shown once it is masked.
    Text(&'e str),
    /// Text that is never shown.
    Secret(&'e Secret),
    /// Several texts.
    List(&'e [String]),
    /// A number.
    Number(u16),
    /// Yes or no.
    Flag(bool),
}

impl OAuthEntry {
    /// The fields that are set, by name. Approvals and connection keys hash them in this order.
    pub fn fields<'e>(&'e self) -> impl Iterator<Item = (&'static str, FieldValue<'e>)> {
        // Destructured in full: a new field does not compile until it is named here.
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
    /// Idle deadline of this tool's calls.
    pub timeout: Option<Duration>,
    /// What calls of this tool need.
    pub permission: Option<Permission>,
    /// Whether the model does not get to see it.
    pub hidden: Option<bool>,
}

/// What a call needs before it is made. The order is the strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Nothing.
    Allow,
    /// A person's consent.
    Ask,
    /// It is not made.
    Deny,
}

impl Permission {
    /// Every permission, from lax to strict.
    pub const ALL: [Permission; 3] = [Permission::Allow, Permission::Ask, Permission::Deny];

    /// The name used in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Permission::Allow => "allow",
            Permission::Ask => "ask",
            Permission::Deny => "deny",
        }
    }

    /// The permission of that name.
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

/// What a stdio server's process may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sandbox {
    /// Which files.
    pub mode: SandboxMode,
    /// Whether the network, when it is stated.
    pub network: Option<bool>,
}

/// Which files a sandboxed process may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxMode {
    /// Every file the user may.
    Off,
    /// Read all, write nothing.
    ReadOnly,
    /// Read all, write below the workspace.
    Workspace,
    /// Every file the user may, except Switchboard's own.
    OwnFiles,
}

impl SandboxMode {
    /// Every mode, from lax to strict.
    pub const ALL: [SandboxMode; 4] = [
        SandboxMode::Off,
        SandboxMode::OwnFiles,
        SandboxMode::Workspace,
        SandboxMode::ReadOnly,
    ];

    /// The name used in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            SandboxMode::Off => "off",
            SandboxMode::ReadOnly => "read-only",
            SandboxMode::Workspace => "workspace",
            SandboxMode::OwnFiles => "own-files",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// A decoded entry with the places of its fields.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) entry: ServerEntry,
    /// Where each field that was stated stands.
    pub(crate) spans: Vec<(Field, Span)>,
    /// What is wrong with it. A faulty entry is never used in part.
    pub(crate) faults: Vec<String>,
}
