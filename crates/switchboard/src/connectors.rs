//! Converts configuration entries to servers that can be connected.
//!
//! Reads resolved entries: connector, deadlines, tools. The configuration has already decided whether a server may run
//! at all (trust, lists, errors). Nothing is started here.

mod itself;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use switchboard_config::entry::{OAuthEntry, ServerEntry, Transport};
use switchboard_config::files::{LOCAL_FILE, PROJECT_FILES};
use switchboard_config::redact::Redactor;
use switchboard_config::resolve::Server;
use switchboard_config::secret::Secret;
use switchboard_config::settings::{Setting, Settings};
use url::Url;

use crate::audit::{Audit, What};
use crate::auth::vault::{MemoryVault, Vault};
use crate::auth::{AuthSettings, Fetcher, Grant, OAuth, ProtectedServer, Renewals, SecretSource};
use crate::catalog::ToolRules;
use crate::load::ServerLoad;
use crate::names::ServerName;
use crate::roots::Roots;
use crate::sandbox::{Policy, SandboxState};
use crate::service::Service;
use crate::spec::{ConnectionKey, ServerIdentity, ServerSpec, Start};
use crate::supervisor;
use crate::transport::http::{
    HeadersHelper, HttpClient, HttpSettings, LegacyConnector, ProxySettings, RemoteServer,
    StreamableConnector,
};
use crate::transport::in_process::InProcessConnector;
use crate::transport::stdio::{Grace, StdioConnector, StdioLimits, SupervisorCommand};
use crate::transport::websocket::WebSocketConnector;
use crate::transport::{Connector, TransportError};

pub(crate) use itself::own_gateway;

/// The context for converting entries to servers.
pub struct Connectors {
    /// The environment of the host.
    pub environment: Arc<[(OsString, OsString)]>,
    /// The project folder, the default working directory of servers.
    pub folder: PathBuf,
    /// The supervisor for stdio servers.
    pub supervisor: Option<SupervisorCommand>,
    /// In-process servers by their name in entries with `transport = "sdk"`.
    pub services: HashMap<String, Arc<dyn Service>>,
    /// Folders that sandboxed servers may neither read nor change: the program's own.
    pub private: Vec<PathBuf>,
    /// Stores logins.
    pub vault: Arc<dyn Vault>,
    /// Records token refreshes.
    pub audit: Option<Audit>,
    /// The client for remote servers, created on first use.
    http: OnceLock<Result<HttpClient, TransportError>>,
}

/// The reason an entry cannot be converted to a server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// It has neither a command nor a URL.
    #[error("the entry has neither a command nor a url")]
    NoEndpoint,
    /// It starts this program as a bridge or a gateway to the servers that it would be one of.
    #[error(
        "it starts Switchboard itself (`switchboard {0}`), which would connect to itself without end"
    )]
    Itself(&'static str),
    /// A variable it needs is not set.
    #[error("the variable {0} is not set")]
    MissingVariable(String),
    /// This program has no in-process server of that name.
    #[error("this program has no in-process server of that name")]
    NoSuchService,
    /// It requires a sandbox, which is not available.
    #[error("the entry requires a sandbox, which is not available {0}")]
    NoSandbox(&'static str),
    /// A setting in its `oauth` table is invalid.
    #[error("`oauth.{0}` {1}")]
    BadAuthorization(&'static str, &'static str),
    /// Its certificate file cannot be used.
    #[error("`ca_file` {file} cannot be used: {reason}")]
    CaFile {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// Its URL, its headers or the system's certificates cannot be used.
    #[error("{0}")]
    Transport(TransportError),
}

impl Connectors {
    /// Connectors for a program that embeds the host: its own environment and folder, and its supervisor, if any.
    pub(crate) fn of_this_process() -> Self {
        let folder = std::env::current_dir().unwrap_or_default();
        Self {
            supervisor: supervisor::own(),
            ..Self::new(std::env::vars_os().collect(), folder)
        }
    }

    /// Connectors without a supervisor or in-process servers, whose logins are lost on exit.
    pub fn new(environment: Arc<[(OsString, OsString)]>, folder: PathBuf) -> Self {
        Self {
            environment,
            folder,
            supervisor: None,
            services: HashMap::new(),
            private: Vec::new(),
            vault: Arc::new(MemoryVault::default()),
            audit: None,
            http: OnceLock::new(),
        }
    }

    /// Converts a resolved entry.
    pub fn spec(&self, server: &Server, settings: &Settings) -> Result<ServerSpec, ConnectorError> {
        self.of_entry(&server.name, server.effective(), settings)
    }

    /// Converts an entry that needs no resolving.
    pub(crate) fn of_entry(
        &self,
        name: &str,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<ServerSpec, ConnectorError> {
        let redactor = Redactor::of_entry(entry, |name| self.variable(name));
        let connector = self.connector(name, entry, settings, &redactor)?;
        let key = ConnectionKey::of_entry(name, entry);
        Ok(ServerSpec {
            identity: ServerIdentity::of_entry(name, entry),
            share_key: self.share_key(key, entry),
            redactor,
            ..self.with_connector(name, entry, settings, connector, key)
        })
    }

    /// Applies an entry's settings to a server with a custom connector.
    pub(crate) fn with_connector(
        &self,
        name: &str,
        entry: &ServerEntry,
        settings: &Settings,
        connector: Arc<dyn Connector>,
        key: ConnectionKey,
    ) -> ServerSpec {
        ServerSpec {
            enabled: entry.enabled.unwrap_or(true),
            required: entry.required.unwrap_or_default(),
            start: Start::Eager,
            startup_timeout: entry
                .startup_timeout
                .unwrap_or_else(|| settings.duration(Setting::StartupTimeout)),
            idle_shutdown: entry.idle_shutdown,
            sharing: entry.shared.unwrap_or_default(),
            tool_timeout: entry
                .tool_timeout
                .unwrap_or_else(|| settings.duration(Setting::ToolTimeout)),
            tool_max: entry
                .tool_max
                .unwrap_or_else(|| settings.duration(Setting::ToolMax)),
            tool_timeouts: entry
                .tools
                .iter()
                .filter_map(|(name, tool)| Some((name.clone(), tool.timeout?)))
                .collect(),
            rules: ToolRules::of(entry).with_settings(settings),
            sandbox: SandboxState {
                policy: Policy::of(entry.sandbox, self.folder.clone()),
                folder: self.folder.clone(),
            },
            roots: Roots::of(entry, &self.folder, &self.cwd(entry)),
            load: Arc::new(ServerLoad::new(entry.limits.unwrap_or_default().into())),
            ..ServerSpec::new(name, connector, key)
        }
    }

    fn connector(
        &self,
        name: &str,
        entry: &ServerEntry,
        settings: &Settings,
        redactor: &Redactor,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(match entry.effective_transport() {
            None => return Err(ConnectorError::NoEndpoint),
            Some(Transport::Stdio) => Arc::new(self.stdio(entry, settings)?),
            Some(Transport::Http) => {
                let (client, server) = self.remote(name, entry, settings, redactor)?;
                Arc::new(
                    StreamableConnector::new(&client, server).map_err(ConnectorError::Transport)?,
                )
            }
            Some(Transport::Sse) => {
                let (client, server) = self.remote(name, entry, settings, redactor)?;
                Arc::new(LegacyConnector::new(&client, server).map_err(ConnectorError::Transport)?)
            }
            Some(Transport::Ws) => {
                let (client, server) = self.remote(name, entry, settings, redactor)?;
                Arc::new(
                    WebSocketConnector::new(&client, server).map_err(ConnectorError::Transport)?,
                )
            }
            Some(Transport::Sdk) => {
                let service = self
                    .services
                    .get(name)
                    .ok_or(ConnectorError::NoSuchService)?;
                Arc::new(InProcessConnector::new(Arc::clone(service)))
            }
        })
    }

    fn stdio(
        &self,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<StdioConnector, ConnectorError> {
        let command = entry.command.as_ref().ok_or(ConnectorError::NoEndpoint)?;
        if let Some(own) = own_gateway(entry) {
            return Err(ConnectorError::Itself(own.name()));
        }
        let cwd = self.cwd(entry);
        Ok(StdioConnector {
            program: command.into(),
            args: entry.args.iter().map(OsString::from).collect(),
            env: entry.env.clone(),
            env_vars: entry.env_vars.clone(),
            inherit_env: entry.inherit_env.unwrap_or_default(),
            base_env: Arc::clone(&self.environment),
            cwd: Some(cwd),
            supervisor: self.supervisor.clone(),
            sandbox: self.sandbox(entry)?,
            limits: StdioLimits {
                max_message_bytes: max_message_bytes(settings),
                max_queued_bytes: max_message_bytes(settings).saturating_mul(4),
            },
            grace: Grace::default(),
        })
    }

    /// The key under which hosts of several projects may share a connection: the entry, and the folders that it depends
    /// on. `None` for a server that runs within the host.
    fn share_key(&self, key: ConnectionKey, entry: &ServerEntry) -> Option<ConnectionKey> {
        let mut folders = Vec::new();
        match entry.effective_transport()? {
            Transport::Sdk => return None,
            Transport::Stdio => folders.push(self.cwd(entry)),
            Transport::Http | Transport::Sse | Transport::Ws => {}
        }
        let has_files = entry.ca_file.is_some()
            || !entry.headers_helper.is_empty()
            || entry.oauth.as_ref().is_some_and(|oauth| {
                oauth.private_key_file.is_some() || oauth.assertion_file.is_some()
            });
        if entry.sandbox.is_some() || entry.roots.is_some() || has_files {
            folders.push(self.folder.clone());
        }
        let digest = key.to_hex();
        let folders = folders
            .iter()
            .map(|folder| folder.as_os_str().as_encoded_bytes());
        let parts: Vec<&[u8]> = [digest.as_bytes()].into_iter().chain(folders).collect();
        Some(ConnectionKey::of(&parts))
    }

    /// The working directory of an entry's server.
    fn cwd(&self, entry: &ServerEntry) -> PathBuf {
        let cwd = entry.cwd.as_ref();
        cwd.map_or_else(|| self.folder.clone(), |cwd| self.folder.join(cwd))
    }

    /// The sandbox policy of an entry. An error if it cannot be enforced.
    fn sandbox(&self, entry: &ServerEntry) -> Result<Option<Policy>, ConnectorError> {
        let Some(mut policy) = Policy::of(entry.sandbox, self.folder.clone()) else {
            return Ok(None);
        };
        if !cfg!(target_os = "linux") {
            return Err(ConnectorError::NoSandbox("on this system"));
        }
        if self.supervisor.is_none() {
            return Err(ConnectorError::NoSandbox("without a supervisor"));
        }
        policy.hidden.clone_from(&self.private);
        policy.protected = project_files(&self.folder);
        Ok(Some(policy))
    }

    fn remote(
        &self,
        name: &str,
        entry: &ServerEntry,
        settings: &Settings,
        redactor: &Redactor,
    ) -> Result<(HttpClient, RemoteServer), ConnectorError> {
        let url = entry.url.as_ref().ok_or(ConnectorError::NoEndpoint)?;
        let mut headers = entry.headers.clone();
        if let Some(variable) = &entry.bearer_token_env_var {
            let token = self
                .variable(variable)
                .ok_or_else(|| ConnectorError::MissingVariable(variable.clone()))?;
            headers.push((
                "Authorization".to_owned(),
                Secret::new(format!("Bearer {token}")),
            ));
        }
        let mut server = RemoteServer::new(url.clone());
        let is_static = |(name, _): &(String, Secret)| name.eq_ignore_ascii_case("authorization");
        let is_authorized = headers.iter().any(is_static);
        server.headers = headers;
        server.headers_helper = HeadersHelper::from_words(&entry.headers_helper);
        if let Some(helper) = &mut server.headers_helper {
            helper.folder = Some(self.folder.clone());
            helper.redactor = redactor.clone();
        }
        let client = self.client_of(entry, settings)?;
        // Credentials in the entry take precedence over a login.
        if !is_authorized && let Some(protected) = self.protected(entry)? {
            let fetcher = Fetcher::new(&client);
            let oauth = OAuth::new(protected, fetcher, Arc::clone(&self.vault));
            let mut oauth = oauth.redacting(redactor.clone());
            if let Some(audit) = &self.audit {
                oauth = oauth.telling(renewals(audit.clone(), name.into()));
            }
            server.authorizer = Some(Arc::new(oauth));
        }
        Ok((client, server))
    }

    /// The parameters for logging in to an entry's server; `None` if it does not use logins.
    pub fn login(
        &self,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<Option<(ProtectedServer, Fetcher)>, ConnectorError> {
        let Some(protected) = self.protected(entry)? else {
            return Ok(None);
        };
        let client = self.client_of(entry, settings)?;
        Ok(Some((protected, Fetcher::new(&client))))
    }

    fn protected(&self, entry: &ServerEntry) -> Result<Option<ProtectedServer>, ConnectorError> {
        let is_remote = entry
            .effective_transport()
            .is_some_and(|transport| !transport.is_local());
        let url = entry.url.as_ref().filter(|_| is_remote);
        let Some(url) = url.and_then(|url| Url::parse(url).ok()) else {
            return Ok(None);
        };
        let settings = match &entry.oauth {
            Some(oauth) => self.auth_settings(oauth)?,
            None => AuthSettings::default(),
        };
        Ok(ProtectedServer::new(&url, settings))
    }

    /// The `oauth` table of an entry, with variables resolved.
    fn auth_settings(&self, oauth: &OAuthEntry) -> Result<AuthSettings, ConnectorError> {
        let variable = |name: &Option<String>| match name {
            Some(name) => match self.variable(name) {
                Some(value) => Ok(Some(Secret::new(value))),
                None => Err(ConnectorError::MissingVariable(name.clone())),
            },
            None => Ok(None),
        };
        let source = |file: &Option<String>, name: &Option<String>| match file {
            Some(file) => Ok(Some(SecretSource::File(self.folder.join(file)))),
            None => Ok(variable(name)?.map(SecretSource::Value)),
        };
        let address = |key: &'static str, text: &Option<String>| match text {
            Some(text) => match Url::parse(text) {
                Ok(url) => Ok(Some(url)),
                Err(_) => Err(ConnectorError::BadAuthorization(key, "is not a valid URL")),
            },
            None => Ok(None),
        };
        let missing = |key| move || ConnectorError::BadAuthorization(key, "is missing");
        let assertion = || {
            let source = source(&oauth.assertion_file, &oauth.assertion_env_var)?;
            source.ok_or_else(missing("assertion_file"))
        };
        let grant = match oauth.grant_type.as_deref() {
            Some("client_credentials") => Grant::ClientCredentials,
            Some("enterprise_managed") => Grant::EnterpriseManaged {
                token_endpoint: address("idp_token_endpoint", &oauth.idp_token_endpoint)?
                    .ok_or_else(missing("idp_token_endpoint"))?,
                client_id: oauth.idp_client_id.clone(),
                client_secret: variable(&oauth.idp_client_secret_env_var)?,
                id_token: assertion()?,
            },
            Some("workload_identity") => Grant::WorkloadIdentity {
                assertion: assertion()?,
            },
            _ => Grant::AuthorizationCode,
        };
        Ok(AuthSettings {
            client_id: oauth.client_id.clone(),
            client_secret: match &oauth.client_secret {
                Some(secret) => Some(secret.clone()),
                None => variable(&oauth.client_secret_env_var)?,
            },
            private_key: source(&oauth.private_key_file, &oauth.private_key_env_var)?,
            key_id: oauth.key_id.clone(),
            client_metadata_url: address("client_metadata_url", &oauth.client_metadata_url)?,
            scopes: oauth.scopes.clone(),
            issuer: oauth.issuer.clone(),
            metadata_url: address("metadata_url", &oauth.metadata_url)?,
            resource: oauth.resource.clone(),
            grant,
            dpop: oauth.dpop,
        })
    }

    /// The shared client, or a separate one for an entry with additional certificates.
    fn client_of(
        &self,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<HttpClient, ConnectorError> {
        let Some(file) = &entry.ca_file else {
            let client = self.http.get_or_init(|| self.client(settings, Vec::new()));
            return client.clone().map_err(ConnectorError::Transport);
        };
        let roots =
            certificates(&self.folder.join(file)).map_err(|reason| ConnectorError::CaFile {
                file: file.clone(),
                reason,
            })?;
        self.client(settings, roots)
            .map_err(ConnectorError::Transport)
    }

    fn client(
        &self,
        settings: &Settings,
        extra_roots: Vec<Vec<u8>>,
    ) -> Result<HttpClient, TransportError> {
        HttpClient::new(HttpSettings {
            proxy: ProxySettings::from_variables(|name| self.variable(name)),
            max_message_bytes: max_message_bytes(settings),
            extra_roots,
            ..HttpSettings::default()
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.to_str().map(str::to_owned))
    }
}

impl std::fmt::Debug for Connectors {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold secrets, so it is not printed.
        formatter
            .debug_struct("Connectors")
            .field("folder", &self.folder)
            .field("supervisor", &self.supervisor)
            .field("services", &self.services.keys())
            .finish_non_exhaustive()
    }
}

/// The maximum size of a certificate file, in bytes.
const LARGEST_CA_FILE: u64 = 4 * 1024 * 1024;

/// Reads the certificates of a PEM file. The error is the reason there are none.
fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let unreadable = |error: std::io::Error| error.to_string();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = Vec::new();
    file.take(LARGEST_CA_FILE + 1)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > LARGEST_CA_FILE {
        return Err(format!("it is larger than {LARGEST_CA_FILE} bytes"));
    }
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| format!("it is not valid PEM ({error})"))?;
    if found.is_empty() {
        return Err("it has no certificate in PEM form (-----BEGIN CERTIFICATE-----)".to_owned());
    }
    Ok(found
        .iter()
        .map(|certificate| certificate.to_vec())
        .collect())
}

/// Records token refreshes of a server.
fn renewals(audit: Audit, server: ServerName) -> Renewals {
    Renewals::heard_by(move |succeeded| {
        audit.record(What::Login {
            server: server.clone(),
            event: "refresh",
            succeeded,
        });
    })
}

/// The existing configuration files of a project: servers may not change what was approved. A file that a server adds
/// has no effect until it is approved.
pub fn project_files(folder: &Path) -> Vec<PathBuf> {
    let shared = PROJECT_FILES.iter().map(|(name, _)| *name);
    let names = shared.chain([LOCAL_FILE]);
    let paths = names.map(|name| folder.join(name));
    paths
        .filter(|path| path.symlink_metadata().is_ok())
        .collect()
}

fn max_message_bytes(settings: &Settings) -> usize {
    usize::try_from(settings.count(Setting::MaxMessageBytes)).unwrap_or(usize::MAX)
}
