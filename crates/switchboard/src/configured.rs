//! A host from configuration files or server entries, for programs that embed it.
//!
//! Resolves the options that the program `switchboard` would use in a folder, and adds the callbacks of the embedding
//! program.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use switchboard_config::diagnostic::{Diagnostic, Severity};
use switchboard_config::document::Source;
use switchboard_config::entry::{Sandbox, SandboxMode};
use switchboard_config::files::{Disk, Files, Folders, ReadError, detached_source};
use switchboard_config::format::Format;
use switchboard_config::resolve::{Config, Inputs, Status};
use switchboard_config::scope::Scope;
use switchboard_config::settings::Settings;
use switchboard_config::trust::{Decisions, TRUST_FILE};
use switchboard_store::{MemoryStore, SqliteStore, Store};

use crate::audit::{Audit, AuditSettings};
use crate::auth::interactive::logins::BackgroundLogins;
use crate::auth::vault::sealed::SealedVault;
use crate::connectors::{Connectors, project_files};
use crate::desired::Desired;
use crate::error::Error;
use crate::handler::{ClientHandler, DeclineAll};
use crate::hooks::Registration;
use crate::host::Host;
use crate::options::{HostOptions, HostSettings};
use crate::permissions::{Approver, Engine, PermissionGate, Policy, SecretPlaces};
use crate::places::{LOGINS_FOLDER, Places, SPILL_FOLDER, STORE_FILE};
use crate::sandbox;
use crate::server::Server;
use crate::supervisor;
use crate::transport::stdio::SupervisorCommand;
use crate::watch::on_thread;
use crate::workspace::{self, Workspace};

/// The front end in audit entries.
const FRONT_END: &str = "embedded";

/// The name of entries passed by the program, in messages.
const ENTRIES: &str = "servers";

impl Host {
    /// Creates a host with the servers that the program `switchboard` would use in this folder, none of them started:
    /// those of the machine's, the user's and the project's files, with their settings, server lists, permission rules
    /// and hooks. Pins, logins and the audit log are those of the program. [`statuses`](Self::statuses) lists the
    /// servers that cannot be started, with the reason; the others start with [`start_all`](Self::start_all) or the
    /// first call.
    ///
    /// Entries of files that a repository can contain are [refused](crate::status::Refusal::Untrusted) until the user
    /// has approved them with `switchboard trust approve`. A call that no rule matches is allowed, as for calls typed
    /// at the command line; a call that requires approval is denied, since no prompt is available.
    ///
    /// Unlike the program, it does not download the servers of `cloud_url`, offers no embedded server if nothing is
    /// configured, and does not follow later edits of the files. [`Host::builder`] adds callbacks and more servers.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), switchboard::Error> {
    /// use serde_json::json;
    /// use switchboard::Host;
    ///
    /// let host = Host::from_config(".").await?;
    /// for server in host.statuses() {
    ///     println!("{}: {}", server.name, server.word());
    /// }
    /// let found = host.call("search/query", json!({"text": "rust"})).await?;
    /// println!("{}", found.text());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the folder or the user's home folder does not exist, or if the trust decisions cannot be read. An invalid
    /// entry is not an error: the status of its server has the reason.
    pub async fn from_config(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().folder(folder.as_ref()).build().await
    }

    /// Builds a host from configuration files, server entries and callbacks.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }
}

impl Server {
    /// A server described by an entry as JSON text, with every key that an entry in `.mcp.json` has, such as
    /// `{"command": "npx", "args": ["-y", "…"]}` or `{"url": "https://…"}`. Variables are expanded.
    ///
    /// # Errors
    ///
    /// If the text is not an object, or describes no usable server.
    pub fn from_json(name: impl Into<String>, entry: &str) -> Result<Self, Error> {
        let name = name.into();
        let entry: serde_json::Value = serde_json::from_str(entry)
            .map_err(|error| Error::configuration(format!("the entry is not JSON: {error}")))?;
        let inputs = Inputs {
            environment: std::env::vars().collect(),
            further: vec![entries(json!({"mcpServers": {&*name: entry}}).to_string())],
            ..Inputs::default()
        };
        let config = Config::load(&inputs, &NamedFiles(&[]));
        check_given(&config.diagnostics, &[])?;
        let server = config.servers.into_iter().next();
        let server = server.ok_or_else(|| Error::configuration("the entry is empty"))?;
        Ok(Self::from_entry(name, server.effective().clone()))
    }
}

/// Builds a [`Host`]; see [`Host::builder`].
///
/// ```no_run
/// # async fn example() -> Result<(), switchboard::Error> {
/// use switchboard::Host;
///
/// let servers = r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]}}}"#;
/// let host = Host::builder().servers(servers).build().await?;
/// host.start_all().await;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct HostBuilder {
    folder: Option<PathBuf>,
    files: Vec<PathBuf>,
    servers: Option<String>,
    environment: Option<Arc<[(OsString, OsString)]>>,
    handler: Option<Arc<dyn ClientHandler>>,
    approver: Option<Arc<dyn Approver>>,
    hooks: Vec<Registration>,
    supervisor: Option<SupervisorCommand>,
}

impl HostBuilder {
    /// Uses the configuration of a folder, as [`Host::from_config`] does.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Reads one more configuration file, such as `agent.hcl`. It needs no approval, since the program names it.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push(file.into());
        self
    }

    /// Adds servers in the form of `.mcp.json`: a JSON object of entries by name, alone or under `mcpServers`. They need
    /// no approval, and what they declare about their tools is trusted, unless an entry sets `trust_annotations` to
    /// `false`.
    #[must_use]
    pub fn servers(mut self, json: impl Into<String>) -> Self {
        self.servers = Some(json.into());
        self
    }

    /// Uses another environment than that of this process: its variables name the folders, and servers inherit them.
    #[must_use]
    pub fn environment(mut self, environment: Arc<[(OsString, OsString)]>) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Answers requests from servers. The default declines all of them.
    #[must_use]
    pub fn handler(mut self, handler: Arc<dyn ClientHandler>) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Prompts for calls that require approval. Without it, they are denied.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Inspects calls with a hook. It runs after those of the configuration, and after earlier ones of the program.
    #[doc(hidden)]
    #[must_use]
    pub fn hook(mut self, hook: Registration) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Supervises servers with the program `switchboard` at this path, for a program that cannot call
    /// [`supervise`](crate::supervise).
    #[must_use]
    pub fn supervisor(mut self, program: impl Into<PathBuf>) -> Self {
        self.supervisor = Some(SupervisorCommand {
            program: program.into(),
            args: vec![supervisor::ARGUMENT.into()],
        });
        self
    }

    /// Creates the host. None of its servers is started.
    ///
    /// # Errors
    ///
    /// As of [`Host::from_config`], and if a [file](Self::file), [entry](Self::servers) or pattern of a hook that the
    /// program passed is invalid.
    pub async fn build(self) -> Result<Host, Error> {
        Ok(self.configured().await?.host)
    }

    /// Creates the host, and returns with it what an agent on it needs.
    #[doc(hidden)]
    pub async fn configured(self) -> Result<ConfiguredHost, Error> {
        let resolved = on_thread(move || self.resolve()).await;
        let resolved = resolved.map_err(Error::configuration)??;
        Ok(resolved.into_host())
    }

    fn resolve(self) -> Result<Resolved, Error> {
        let environment = self
            .environment
            .unwrap_or_else(|| std::env::vars_os().collect());
        let folders = match &self.folder {
            Some(folder) => folders_of(folder, &environment)?,
            None => folders_of_program(&environment)?,
        };
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        let named_files = self.files.clone();
        let inputs = Inputs {
            environment: environment
                .iter()
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect(),
            decisions: match &self.folder {
                Some(_) => decisions(&folders.state.join(TRUST_FILE))?,
                None => Decisions::default(),
            },
            folders: folders.clone(),
            extra_files: self.files,
            further: self.servers.map(entries).into_iter().collect(),
            ..Inputs::default()
        };
        let mut config = match &self.folder {
            Some(_) => Config::load(&inputs, &Disk),
            None => Config::load(&inputs, &NamedFiles(&named_files)),
        };
        check_given(&config.diagnostics, &named_files)?;
        let mut servers = config.servers.iter_mut();
        while let Some(server) = servers.find(|server| server.origin.path() == Path::new(ENTRIES)) {
            server.trust_annotations_by_default();
        }
        let mut hooks = self.hooks.iter();
        if let Some(hook) = hooks.find(|hook| !hook.has_valid_pattern()) {
            let reason = format!("the pattern \"{}\" of a hook cannot be used", hook.tool);
            return Err(Error::configuration(reason));
        }
        Ok(Resolved {
            config,
            folders,
            environment,
            is_of_folder: self.folder.is_some(),
            handler: self.handler,
            approver: self.approver,
            hooks: self.hooks,
            supervisor: self.supervisor.or_else(supervisor::own),
        })
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostBuilder")
            .field("folder", &self.folder)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

/// A host, with the configuration that it was built from.
#[doc(hidden)]
pub struct ConfiguredHost {
    /// The host.
    pub host: Host,
    /// The resolved configuration.
    pub config: Config,
    /// The folders it was read from.
    pub folders: Folders,
    /// The environment of its servers.
    pub environment: Arc<[(OsString, OsString)]>,
    /// Where state is stored.
    pub store: Arc<dyn Store>,
    /// The supervisor of its servers and of an agent's commands.
    pub supervisor: Option<SupervisorCommand>,
    /// The folder for output too large for a model.
    pub spill_folder: PathBuf,
}

/// The resolved configuration, and the folders it was read from.
struct Resolved {
    config: Config,
    folders: Folders,
    environment: Arc<[(OsString, OsString)]>,
    /// Whether the configuration of a folder is used, with the stored state of the user.
    is_of_folder: bool,
    handler: Option<Arc<dyn ClientHandler>>,
    approver: Option<Arc<dyn Approver>>,
    hooks: Vec<Registration>,
    supervisor: Option<SupervisorCommand>,
}

impl Resolved {
    fn into_host(self) -> ConfiguredHost {
        let Self {
            config,
            folders,
            environment,
            is_of_folder,
            handler,
            approver,
            hooks,
            supervisor,
        } = self;
        let settings = &config.settings;
        let state = &folders.state;
        let store: Arc<dyn Store> = if is_of_folder {
            Arc::new(SqliteStore::new(state.join(STORE_FILE)))
        } else {
            Arc::new(MemoryStore::new())
        };
        let audit = Audit::start(Arc::clone(&store), AuditSettings::from(settings), FRONT_END);
        let spill_folder = state.join(SPILL_FOLDER);
        let policy = Policy::typed().with_settings(settings);
        let mut engine = Engine::new(&config, &folders, policy)
            .open_folder(spill_folder.clone())
            .with_hooks(hooks);
        if lacks_bash_sandbox(settings, supervisor.as_ref()) {
            engine = engine.asking_before_commands();
        }
        let mut connectors = Connectors::new(Arc::clone(&environment), folders.project.clone());
        connectors.supervisor.clone_from(&supervisor);
        connectors.private = vec![folders.config.clone(), state.clone()];
        connectors.audit = Some(audit.clone());
        let logins = SealedVault::new(state.join(LOGINS_FOLDER), settings.login_store());
        connectors.vault = Arc::new(logins);
        let secrets = SecretPlaces::new(&folders);
        if let Ok(embedded) = Workspace::passing_over(&folders.project, secrets) {
            let name = workspace::NAME.to_owned();
            connectors.services.insert(name, Arc::new(embedded));
        }
        let ready = config
            .servers
            .iter()
            .filter(|server| server.status == Status::Ready);
        let logins = BackgroundLogins::of(ready, &connectors, settings);
        let mut gate = PermissionGate::new(engine).recording(audit);
        if let Some(approver) = approver {
            gate = gate.asking(approver);
        }
        let host = Host::with_options(HostOptions {
            settings: HostSettings::from(settings),
            desired: Desired::of(&config.servers, settings, &connectors),
            gate: Arc::new(gate),
            handler: handler.unwrap_or_else(|| Arc::new(DeclineAll)),
            store: Arc::clone(&store),
            spill_folder: Some(spill_folder.clone()),
            logins: Some(Arc::new(logins)),
            shared: None,
            connectors: Some(Arc::new(connectors)),
        });
        ConfiguredHost {
            host,
            config,
            folders,
            environment,
            store,
            supervisor,
            spill_folder,
        }
    }
}

/// The sandbox of an agent's commands. `None` if the user switched it off, or if this system has none and no mode
/// stricter than the default is set: then commands that no rule allows require a prompt.
pub fn bash_sandbox(
    settings: &Settings,
    folders: &Folders,
    spill_folder: &Path,
    supervisor: Option<&SupervisorCommand>,
) -> Option<sandbox::Policy> {
    let mode = settings.bash_sandbox();
    if mode == SandboxMode::Off || lacks_bash_sandbox(settings, supervisor) {
        return None;
    }
    let sandbox = Sandbox {
        mode,
        network: None,
    };
    let mut policy = sandbox::Policy::of(Some(sandbox), folders.project.clone())?;
    policy.hidden = vec![folders.config.clone(), folders.state.clone()];
    policy.readable = vec![spill_folder.to_owned()];
    // Unlike the project's files, these take effect without approval.
    policy
        .protected
        .push(folders.home.join(".claude/settings.json"));
    policy.protected.extend(folders.managed_file.clone());
    if mode == SandboxMode::Workspace {
        policy.protected.extend(project_files(&folders.project));
    }
    Some(policy)
}

/// Whether commands run without the configured sandbox because this system has none.
pub fn lacks_bash_sandbox(settings: &Settings, supervisor: Option<&SupervisorCommand>) -> bool {
    settings.bash_sandbox() == SandboxMode::OwnFiles
        && (supervisor.is_none() || !sandbox::is_available())
}

/// The folders that the program would use in this one.
fn folders_of(folder: &Path, environment: &[(OsString, OsString)]) -> Result<Folders, Error> {
    let unusable = |error| Error::configuration(format!("{}: {error}", folder.display()));
    let folder = folder.canonicalize().map_err(unusable)?;
    let places = Places::of(environment).map_err(Error::configuration)?;
    Ok(places.folders(&folder))
}

/// The folders of a program that passes its servers itself: it works in the current folder.
fn folders_of_program(environment: &[(OsString, OsString)]) -> Result<Folders, Error> {
    let unusable = |error| Error::configuration(format!("the current folder: {error}"));
    let current = std::env::current_dir().map_err(unusable)?;
    Ok(Folders {
        project: current.clone(),
        ..folders_of(&current, environment)?
    })
}

/// The entries that a program passed, as a source of the highest scope that needs no approval.
fn entries(json: String) -> Source {
    detached_source(Scope::Local, ENTRIES, Format::Json, json)
}

/// Fails if something that the program passed itself is invalid: a program acts on an error, but may never
/// look at the status of a server.
fn check_given(diagnostics: &[Diagnostic], files: &[PathBuf]) -> Result<(), Error> {
    let is_given = |diagnostic: &&Diagnostic| {
        let file = diagnostic.place.file();
        diagnostic.severity == Severity::Error
            && file.is_some_and(|file| {
                file == Path::new(ENTRIES) || files.iter().any(|given| given == file)
            })
    };
    let mut invalid = diagnostics.iter().filter(is_given).peekable();
    if invalid.peek().is_none() {
        return Ok(());
    }
    let reasons: Vec<String> = invalid.map(ToString::to_string).collect();
    Err(Error::configuration(reasons.join("\n")))
}

/// Only the files that a program named; the configuration of the user and the machine is not read.
struct NamedFiles<'f>(&'f [PathBuf]);

impl Files for NamedFiles<'_> {
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
        if self.0.iter().any(|named| named == path) {
            Disk.read(path)
        } else {
            Ok(None)
        }
    }

    fn folders(&self, _: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn exists(&self, path: &Path) -> bool {
        Disk.exists(path)
    }

    fn is_program(&self, path: &Path) -> bool {
        Disk.is_program(path)
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        Disk.real_path(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        Disk.is_folder(path)
    }

    fn digest(&self, path: &Path) -> Result<Option<([u8; 32], u64)>, ReadError> {
        Disk.digest(path)
    }
}

/// Reads the trust decisions. An unreadable file is an error, since otherwise everything in the project would be
/// refused.
fn decisions(file: &Path) -> Result<Decisions, Error> {
    let unusable =
        |error: &dyn fmt::Display| Error::configuration(format!("{}: {error}", file.display()));
    let bytes = Disk.read(file).map_err(|error| unusable(&error))?;
    let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|error| unusable(&error))?;
    Decisions::parse(&text).map_err(|error| unusable(&error))
}
