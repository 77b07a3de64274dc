//! From a configuration entry to a server that can be connected.
//!
//! Owns the reading of resolved entries: which connector, which deadlines, which tools. Whether a server may run at
//! all (trust, lists, faults) has been decided by the configuration before. Nothing is started here.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use switchboard_config::entry::{ServerEntry, Transport};
use switchboard_config::files::{LOCAL_FILE, PROJECT_FILES};
use switchboard_config::resolve::Server;
use switchboard_config::secret::Secret;
use switchboard_config::settings::{Setting, Settings};
use switchboard_config::trust::Fingerprint;

use crate::catalog::ToolRules;
use crate::sandbox::{Policy, State};
use crate::service::Service;
use crate::spec::{ConnectionKey, ServerSpec, Start};
use crate::transport::http::{
    HeadersHelper, HttpClient, HttpSettings, LegacyConnector, ProxySettings, RemoteServer,
    StreamableConnector,
};
use crate::transport::in_process::InProcessConnector;
use crate::transport::stdio::{Grace, GuardCommand, StdioConnector, StdioLimits};
use crate::transport::websocket::WebSocketConnector;
use crate::transport::{Connector, TransportError};

/// What entries are turned into servers with.
pub struct Recipes {
    /// The environment of the host.
    pub environment: Arc<[(OsString, OsString)]>,
    /// The folder of the project, where servers start that name none.
    pub folder: PathBuf,
    /// The guard that stdio servers are started under.
    pub guard: Option<GuardCommand>,
    /// In-process servers by the name an entry with `transport = "sdk"` has.
    pub services: HashMap<String, Arc<dyn Service>>,
    /// Folders that no server in a sandbox may look into or change: the program's own.
    pub private: Vec<PathBuf>,
    /// The client for remote servers, made when the first one needs it.
    http: OnceLock<Result<HttpClient, TransportError>>,
}

/// Why an entry cannot be turned into a server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// It says neither how to start nor where to find it.
    #[error("the entry has neither a command nor a url")]
    NoEndpoint,
    /// A variable it needs is not set.
    #[error("the variable {0} is not set")]
    MissingVariable(String),
    /// No such in-process server is part of this program.
    #[error("this program has no in-process server of that name")]
    NoSuchService,
    /// It wants a sandbox, and there is none to be had.
    #[error("the entry wants a sandbox, and there is none {0}")]
    NoSandbox(&'static str),
    /// Its address, its headers or the machine's certificates cannot be used.
    #[error("{0}")]
    Transport(TransportError),
}

impl Recipes {
    /// Recipes without a guard and without in-process servers.
    pub fn new(environment: Arc<[(OsString, OsString)]>, folder: PathBuf) -> Self {
        Self {
            environment,
            folder,
            guard: None,
            services: HashMap::new(),
            private: Vec::new(),
            http: OnceLock::new(),
        }
    }

    /// The server of a resolved entry.
    pub fn spec(&self, server: &Server, settings: &Settings) -> Result<ServerSpec, RecipeError> {
        let entry = server.effective();
        let connector = self.connector(&server.name, entry, settings)?;
        Ok(ServerSpec {
            enabled: entry.enabled.unwrap_or(true),
            required: entry.required.unwrap_or_default(),
            start: Start::Eager,
            startup_timeout: entry
                .startup_timeout
                .unwrap_or_else(|| settings.duration(Setting::StartupTimeout)),
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
            identity: identity(&server.name, entry),
            rules: ToolRules::of(entry),
            sandbox: State {
                policy: Policy::of(entry.sandbox, self.folder.clone()),
                folder: self.folder.clone(),
            },
            trust_annotations: entry.trust_annotations.unwrap_or_default(),
            ..ServerSpec::new(server.name.as_str(), connector, key(&server.name, entry))
        })
    }

    fn connector(
        &self,
        name: &str,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<Arc<dyn Connector>, RecipeError> {
        Ok(match entry.effective_transport() {
            None => return Err(RecipeError::NoEndpoint),
            Some(Transport::Stdio) => Arc::new(self.stdio(entry, settings)?),
            Some(Transport::Http) => {
                let (client, server) = self.remote(entry, settings)?;
                Arc::new(StreamableConnector::new(&client, server).map_err(RecipeError::Transport)?)
            }
            Some(Transport::Sse) => {
                let (client, server) = self.remote(entry, settings)?;
                Arc::new(LegacyConnector::new(&client, server).map_err(RecipeError::Transport)?)
            }
            Some(Transport::Ws) => {
                let (client, server) = self.remote(entry, settings)?;
                Arc::new(WebSocketConnector::new(&client, server).map_err(RecipeError::Transport)?)
            }
            Some(Transport::Sdk) => {
                let service = self.services.get(name).ok_or(RecipeError::NoSuchService)?;
                Arc::new(InProcessConnector::new(Arc::clone(service)))
            }
        })
    }

    fn stdio(
        &self,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<StdioConnector, RecipeError> {
        let command = entry.command.as_ref().ok_or(RecipeError::NoEndpoint)?;
        let cwd = entry
            .cwd
            .as_ref()
            .map_or_else(|| self.folder.clone(), |cwd| self.folder.join(cwd));
        Ok(StdioConnector {
            program: command.into(),
            args: entry.args.iter().map(OsString::from).collect(),
            env: entry.env.clone(),
            env_vars: entry.env_vars.clone(),
            inherit_env: entry.inherit_env.unwrap_or_default(),
            base_env: Arc::clone(&self.environment),
            cwd: Some(cwd),
            guard: self.guard.clone(),
            sandbox: self.sandbox(entry)?,
            limits: StdioLimits {
                max_message_bytes: max_message_bytes(settings),
                max_queued_bytes: max_message_bytes(settings).saturating_mul(4),
            },
            grace: Grace::default(),
        })
    }

    /// What the server of an entry may do. Where it cannot be held to that, it is no server.
    fn sandbox(&self, entry: &ServerEntry) -> Result<Option<Policy>, RecipeError> {
        let Some(mut policy) = Policy::of(entry.sandbox, self.folder.clone()) else {
            return Ok(None);
        };
        if !cfg!(target_os = "linux") {
            return Err(RecipeError::NoSandbox("on this system"));
        }
        if self.guard.is_none() {
            return Err(RecipeError::NoSandbox("without a guard"));
        }
        policy.hidden.clone_from(&self.private);
        policy.protected = project_files(&self.folder);
        Ok(Some(policy))
    }

    fn remote(
        &self,
        entry: &ServerEntry,
        settings: &Settings,
    ) -> Result<(HttpClient, RemoteServer), RecipeError> {
        let url = entry.url.as_ref().ok_or(RecipeError::NoEndpoint)?;
        let mut headers = entry.headers.clone();
        if let Some(variable) = &entry.bearer_token_env_var {
            let token = self
                .variable(variable)
                .ok_or_else(|| RecipeError::MissingVariable(variable.clone()))?;
            headers.push((
                "Authorization".to_owned(),
                Secret::new(format!("Bearer {token}")),
            ));
        }
        let mut server = RemoteServer::new(url.clone());
        server.headers = headers;
        server.headers_helper = HeadersHelper::from_words(&entry.headers_helper);
        if let Some(helper) = &mut server.headers_helper {
            helper.folder = Some(self.folder.clone());
        }
        let client = self.http.get_or_init(|| {
            HttpClient::new(HttpSettings {
                proxy: ProxySettings::from_variables(|name| self.variable(name)),
                max_message_bytes: max_message_bytes(settings),
                ..HttpSettings::default()
            })
        });
        Ok((client.clone().map_err(RecipeError::Transport)?, server))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = self.environment.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.to_str().map(str::to_owned))
    }
}

impl std::fmt::Debug for Recipes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold secrets, so it is not shown.
        formatter
            .debug_struct("Recipes")
            .field("folder", &self.folder)
            .field("guard", &self.guard)
            .field("services", &self.services.keys())
            .finish_non_exhaustive()
    }
}

/// The files of a project that say what runs in it, those that are there: no server may change what was approved. One
/// that it adds has no effect before it is approved.
fn project_files(folder: &Path) -> Vec<PathBuf> {
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

/// Who the server of an entry is: what an approval of it would bind, but for what it is allowed to do. A secret that
/// is renewed makes it no other server, and neither does a program that was updated.
pub(crate) fn identity(name: &str, entry: &ServerEntry) -> ConnectionKey {
    let fingerprint = Fingerprint::of_server(entry, None);
    let components = fingerprint.components.iter();
    let identifying = components.filter(|component| !ALLOWANCES.contains(&component.name.as_str()));
    let mut parts: Vec<&[u8]> = vec![name.as_bytes()];
    for component in identifying {
        parts.extend([component.name.as_bytes(), component.digest.as_bytes()]);
    }
    ConnectionKey::of(&parts)
}

/// The parts of a fingerprint that say what a server may do, and not who it is.
const ALLOWANCES: [&str; 4] = ["trust_annotations", "pin", "sandbox", "allowed tools"];

/// What the link of an entry depends on.
pub(crate) fn key(name: &str, entry: &ServerEntry) -> ConnectionKey {
    // Everything an entry says about its tools and deadlines is left out: it can change under a connection.
    let link = ServerEntry {
        enabled: None,
        required: None,
        startup_timeout: None,
        tool_timeout: None,
        tool_max: None,
        enabled_tools: Vec::new(),
        disabled_tools: Vec::new(),
        tools: Vec::new(),
        trust_annotations: None,
        pin: None,
        shared: None,
        idle_shutdown: None,
        ..entry.clone()
    };
    let mut parts: Vec<u8> = Vec::new();
    let mut text = |text: &str| {
        parts.extend_from_slice(&(text.len() as u64).to_le_bytes());
        parts.extend_from_slice(text.as_bytes());
    };
    text(name);
    // `Debug` shows no secret, so the secrets follow by themselves.
    text(&format!("{link:?}"));
    let pairs = link.env.iter().chain(&link.headers);
    let oauth = link
        .oauth
        .iter()
        .filter_map(|oauth| oauth.client_secret.as_ref());
    for secret in pairs.map(|(_, secret)| secret).chain(oauth) {
        text(secret.expose());
    }
    ConnectionKey::of(&[&parts])
}
