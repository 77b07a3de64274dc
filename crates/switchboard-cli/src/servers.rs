//! From a configuration to the servers of a host: those that can be started, and those that cannot, each with its reason.
//!
//! Nothing is started here, and no state is kept: that is the host's.

use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use switchboard::audit::Audit;
use switchboard::auth::interactive::logins::{BackgroundLogins, LoginTarget};
use switchboard::auth::vault::Vault;
use switchboard::auth::vault::sealed::SealedVault;
use switchboard::catalog::ToolRules;
use switchboard::connectors::{ConnectorError, Connectors, project_files};
use switchboard::desired::{Desired, WithheldServer};
use switchboard::names::ServerName;
use switchboard::permissions::SecretPlaces;
use switchboard::places::LOGINS_FOLDER;
use switchboard::remembered::{self, Outline, Remembered};
use switchboard::sandbox::Policy;
use switchboard::spec::{ConnectionKey, ServerIdentity, ServerSpec};
use switchboard::status::{Refusal, ServerState};
use switchboard::transport::in_process::InProcessConnector;
use switchboard::transport::stdio::SupervisorCommand;
use switchboard::transport::{TransportError, TransportErrorKind};
use switchboard::workspace::{self, Workspace};
use switchboard_agent::events::FailedServer;
use switchboard_config::entry::{Sandbox, SandboxMode, Transport};
use switchboard_config::resolve::{Config, Server, Status};
use switchboard_config::text::visible;
use switchboard_store::{SqliteStore, StoreError};

use crate::context::Context;
use crate::error::Failure;
use crate::session;
use crate::vault::{VaultWarning, WarningVault};
use crate::{report, state};

/// The argument that makes this program a supervisor. Not part of the help: only the host passes it.
pub(crate) const SUPERVISOR: &str = "__supervisor";

/// The servers of a configuration.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) config: Config,
    /// The one server that was asked for; all of them if none was.
    wanted: Option<String>,
    /// Whether it was said that nothing can be remembered.
    warned: OnceLock<()>,
    /// Where logins are kept, once that was asked.
    vault: OnceLock<Arc<dyn Vault>>,
    pub(crate) vault_warning: VaultWarning,
}

impl Servers {
    /// The servers of the configuration, or one of them.
    pub(crate) fn load(context: &Context, wanted: Option<&str>) -> Result<Self, Failure> {
        let servers = Self::of(context.load(), wanted);
        match wanted {
            Some(wanted) if !servers.has(wanted) => Err(servers.unknown(wanted)),
            _ => Ok(servers),
        }
    }

    /// The servers of the configuration, with what is wrong with it left to the caller.
    pub(crate) fn load_quietly(context: &Context) -> Self {
        Self::of(context.load_quietly(), None)
    }

    fn of(config: Config, wanted: Option<&str>) -> Self {
        Self {
            config,
            wanted: wanted.map(str::to_owned),
            warned: OnceLock::new(),
            vault: OnceLock::new(),
            vault_warning: VaultWarning::default(),
        }
    }

    /// Whether the embedded server is there although no entry names it: nothing is configured at all.
    pub(crate) fn is_embedded_only(&self) -> bool {
        self.config.servers.is_empty()
    }

    /// Whether the server of that name is the embedded one.
    pub(crate) fn is_embedded(&self, name: &str) -> bool {
        let is_own = |server: &Server| server.transport() == Some(Transport::Sdk);
        name == workspace::NAME
            && (self.is_embedded_only() || self.config.server(name).is_some_and(is_own))
    }

    /// Whether there is a server of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.config.server(name).is_some() || (self.is_embedded_only() && name == workspace::NAME)
    }

    /// That there is no server of a name.
    pub(crate) fn unknown(&self, name: &str) -> Failure {
        let configured = self.config.servers.iter();
        let embedded = self.is_embedded_only().then_some(workspace::NAME);
        let known = configured.map(|server| server.name.as_str());
        no_such_server(name, known.chain(embedded))
    }

    /// What is needed to find what is remembered of the servers that could be started.
    pub(crate) fn outlines(&self, context: &Context) -> Vec<Outline> {
        if self.is_embedded_only() {
            return vec![Outline {
                name: workspace::NAME.into(),
                key: embedded_key(context),
                identity: ServerIdentity::of_connection(embedded_key(context)),
                rules: ToolRules::default().with_settings(&self.config.settings),
            }];
        }
        let ready = |server: &&Server| server.status == Status::Ready;
        let ready = self.selected().filter(ready);
        let outlines = ready.map(|server| Outline::of(server, &self.config.settings));
        outlines.collect()
    }

    /// What the servers that could be started offered last time, each in its place.
    pub(crate) fn remembered(&self, context: &Context) -> (Vec<Outline>, Vec<Remembered>) {
        let outlines = self.outlines(context);
        let store = SqliteStore::new(session::store_file(context));
        let read = |space, keys: &[_]| store.get_many_blocking(space, keys);
        let mut lists = remembered::lists(&outlines, read).unwrap_or_else(|error| {
            self.warn_of_store(&error, context);
            outlines.iter().map(|_| Remembered::default()).collect()
        });
        // The last one to close a database tidies it up, which takes longer than what was asked of it. Whoever only
        // reads and ends leaves that to those who write; nothing is lost by it.
        std::mem::forget(store);
        for (outline, list) in outlines.iter().zip(&mut lists) {
            // What the embedded server offers is part of this program.
            if self.is_embedded(outline.name.as_str()) {
                *list = workspace::catalog().into();
            }
        }
        (outlines, lists)
    }

    /// Warns, once, that the state cannot be used. What is pinned is set aside then; the rest goes on without.
    pub(crate) fn warn_of_store(&self, error: &StoreError, context: &Context) {
        if self.warned.set(()).is_ok() {
            let message = format!("the state cannot be used: {}", visible(&error.to_string()));
            context.printer.warning(message, error.hint());
        }
    }

    /// The servers as a host should have them.
    pub(crate) fn desired(&self, context: &Context, audit: &Audit) -> Desired {
        let mut connectors = self.connectors(context);
        connectors.audit = Some(audit.clone());
        let secrets = SecretPlaces::new(&context.folders());
        let embedded = Workspace::passing_over(&context.project, secrets).map(Arc::new);
        if self.is_embedded_only() {
            return self.embedded(embedded, context);
        }
        if let Ok(embedded) = embedded {
            let name = workspace::NAME.to_owned();
            connectors.services.insert(name, embedded);
        }
        Desired::of(self.selected(), &self.config.settings, &connectors)
    }

    /// The embedded server alone.
    fn embedded(&self, embedded: std::io::Result<Arc<Workspace>>, context: &Context) -> Desired {
        match embedded {
            Ok(embedded) => {
                let connector = Arc::new(InProcessConnector::new(embedded));
                let key = embedded_key(context);
                let mut spec = ServerSpec::new(workspace::NAME, connector, key);
                // What is part of this program changes with it, so nothing of it is pinned.
                spec.rules = ToolRules::default().with_settings(&self.config.settings);
                vec![spec].into()
            }
            // The folder was there a moment ago.
            Err(error) => {
                let message = format!("its folder cannot be used: {error}");
                let error = TransportError::new(TransportErrorKind::Io, message);
                let error = ConnectorError::Transport(error);
                Desired {
                    servers: Vec::new(),
                    withheld: vec![WithheldServer {
                        name: workspace::NAME.into(),
                        transport: Some(Transport::Sdk),
                        required: false,
                        state: ServerState::Refused(Refusal::Unusable(error)),
                    }],
                }
            }
        }
    }

    /// The servers that cannot be started and are missed, with the reason, as far as their entries tell.
    pub(crate) fn unusable(&self) -> Vec<FailedServer> {
        let missed = self.selected().filter_map(|server| {
            let state = ServerState::of_configured(server)?;
            let is_missed = matches!(state, ServerState::Refused(_));
            is_missed.then(|| FailedServer {
                name: server.name.clone(),
                state: state.word().to_owned(),
                reason: state.reason().unwrap_or_default(),
                stderr: Vec::new(),
            })
        });
        missed.collect()
    }

    /// Says which servers cannot be started, where the findings about the configuration do not.
    pub(crate) fn tell_unusable(&self, context: &Context) {
        let were_all_told = report::shows_all(&self.config.diagnostics, &context.printer);
        for server in self.unusable() {
            if !(were_all_told && state::is_in_findings(&server.state)) {
                let name = visible(&server.name);
                let hint = look_closer(&server.name);
                let reason = visible(&server.reason);
                context
                    .printer
                    .note(format!("{name} is left out: {reason}; {hint}"));
            }
        }
    }

    /// What entries are turned into servers with.
    pub(crate) fn connectors(&self, context: &Context) -> Connectors {
        let environment = Arc::clone(&context.environment.all);
        let mut connectors = Connectors::new(environment, context.project.clone());
        connectors.supervisor = self.supervisor();
        let warning = self.vault_warning.clone();
        let vault = WarningVault::new(self.vault(context), warning, context.printer.clone());
        connectors.vault = Arc::new(vault);
        connectors.private = vec![
            context.environment.config.clone(),
            context.environment.state.clone(),
        ];
        connectors
    }

    /// What processes are started under.
    #[expect(clippy::unused_self, reason = "servers alone start processes")]
    pub(crate) fn supervisor(&self) -> Option<SupervisorCommand> {
        supervisor()
    }

    /// The sandbox of the agent's commands; `None` where the user has switched it off, or where this system has none and
    /// nothing stricter than the default is set: then commands that no rule allows ask.
    pub(crate) fn bash_sandbox(&self, context: &Context) -> Option<Policy> {
        let mode = self.config.settings.bash_sandbox();
        if mode == SandboxMode::Off || self.lacks_bash_sandbox() {
            return None;
        }
        let sandbox = Sandbox {
            mode,
            network: None,
        };
        let mut policy = Policy::of(Some(sandbox), context.project.clone())?;
        let folders = context.folders();
        policy.hidden = vec![folders.config, folders.state];
        policy.readable = vec![session::spill_folder(context)];
        // These count without anybody's approval; files of the project have no effect before it.
        policy
            .protected
            .push(folders.home.join(".claude/settings.json"));
        policy.protected.extend(folders.managed_file);
        if mode == SandboxMode::Workspace {
            policy.protected.extend(project_files(&context.project));
        }
        Some(policy)
    }

    /// Whether commands run without the sandbox that they should have, because this system has none.
    pub(crate) fn lacks_bash_sandbox(&self) -> bool {
        self.config.settings.bash_sandbox() == SandboxMode::OwnFiles
            && (self.supervisor().is_none() || !switchboard::sandbox::is_available())
    }

    /// Logins that a model may begin, to every server that can be logged in to.
    pub(crate) fn logins(&self, context: &Context) -> BackgroundLogins {
        let connectors = self.connectors(context);
        let settings = &self.config.settings;
        let target = |server: &Server| {
            let target = LoginTarget::of(server, &connectors, settings).ok()??;
            Some((ServerName::from(server.name.as_str()), target))
        };
        let ready = |server: &&Server| server.status == Status::Ready;
        let targets = self.selected().filter(ready).filter_map(target).collect();
        BackgroundLogins::new(targets, self.vault(context))
    }

    /// Where logins are kept. Nothing is looked at before one is needed.
    pub(crate) fn vault(&self, context: &Context) -> Arc<dyn Vault> {
        let make = || -> Arc<dyn Vault> {
            let folder = context.environment.state.join(LOGINS_FOLDER);
            Arc::new(SealedVault::new(folder, self.config.settings.login_store()))
        };
        Arc::clone(self.vault.get_or_init(make))
    }

    fn selected(&self) -> impl Iterator<Item = &Server> {
        let wanted = self.wanted.as_deref();
        let servers = self.config.servers.iter();
        servers.filter(move |server| wanted.is_none_or(|wanted| wanted == server.name))
    }
}

/// There is no server of that name, but perhaps one of nearly that name.
pub(crate) fn no_such_server<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Failure {
    let failure = Failure::failed(format!("there is no server `{}`", visible(name)));
    match switchboard_config::entry::keys::nearest(name, known) {
        Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
        None => failure.hint("`switchboard mcp list` shows all servers"),
    }
}

/// The hint that leads to everything that can be found out about a server.
pub(crate) fn look_closer(name: &str) -> String {
    format!("see `switchboard doctor {}`", visible(name))
}

/// The embedded server depends on nothing but its folder.
fn embedded_key(context: &Context) -> ConnectionKey {
    let folder = context.project.as_os_str().as_encoded_bytes();
    ConnectionKey::of(&[workspace::NAME.as_bytes(), folder])
}

/// This program as a supervisor. Where its own path is not known, servers run without one.
fn supervisor() -> Option<SupervisorCommand> {
    let program = std::env::current_exe().ok()?;
    Some(SupervisorCommand {
        program,
        args: vec![OsString::from(SUPERVISOR)],
    })
}
