//! Turns a configuration into the servers of a host: those that can be started, and those that cannot, each with its
//! reason.
//!
//! Starts nothing and holds no server state: the host does.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use switchboard::Workspace;
use switchboard::internal::audit::Audit;
use switchboard::internal::auth::interactive::logins::BackgroundLogins;
use switchboard::internal::auth::vault::Vault;
use switchboard::internal::auth::vault::sealed::SealedVault;
use switchboard::internal::catalog::ToolRules;
use switchboard::internal::configured::{bash_sandbox, lacks_bash_sandbox};
use switchboard::internal::connectors::{ConnectorError, Connectors};
use switchboard::internal::desired::{Desired, WithheldServer};
use switchboard::internal::places::LOGINS_FOLDER;
use switchboard::internal::remembered::{LastKnown, Outline, Remembered};
use switchboard::internal::sandbox::Policy;
use switchboard::internal::spec::{ConnectionKey, ServerIdentity, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::internal::transport::stdio::SupervisorCommand;
use switchboard::internal::{remembered, supervisor, workspace};
use switchboard::permissions::SecretPlaces;
use switchboard::status::{Refusal, ServerState};
use switchboard::transport::{TransportError, TransportErrorKind};
use switchboard_agent::FailedServer;
use switchboard_config::entry::Transport;
use switchboard_config::resolve::{Config, Server, Status};
use switchboard_config::text::visible;
use switchboard_store::{SqliteStore, StoreError};

use crate::adhoc::AdHoc;
use crate::context::Context;
#[cfg(unix)]
use crate::daemon;
use crate::error::Failure;
use crate::exit::Exit;
use crate::session;
use crate::vault::{VaultWarning, WarningVault};
use crate::{report, state};

/// Printed where only the embedded server is there.
pub(crate) const NO_SERVERS: &str =
    "no servers configured; add one with `switchboard mcp add NAME URL`";

/// The servers of a configuration.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) config: Config,
    /// The one selected server; `None` selects all.
    wanted: Option<String>,
    /// Whether reading the cache leaves no file behind.
    leaves_no_files: bool,
    /// Set once the warning about an unusable store has been printed.
    store_warning: OnceLock<()>,
    /// The login vault, opened on first use.
    vault: OnceLock<Arc<dyn Vault>>,
    pub(crate) vault_warning: VaultWarning,
}

impl Servers {
    /// Loads the configuration, optionally limited to one server. Fails if that server does not exist.
    pub(crate) fn load(context: &Context, wanted: Option<&str>) -> Result<Self, Failure> {
        let servers = Self::of(context.load(), wanted);
        match wanted {
            Some(wanted) if !servers.has(wanted) => Err(servers.unknown(wanted)),
            _ => Ok(servers),
        }
    }

    /// Loads the configuration with one more server from the command line, limited to it. Returns its name. A configured
    /// server with the same URL or command is used instead.
    pub(crate) fn load_with(context: &Context, adhoc: &AdHoc) -> Result<(Self, String), Failure> {
        let config = context.load_quietly();
        if let Some(name) = adhoc.configured(&config) {
            return Ok((Self::load(context, Some(&name))?, name));
        }
        let name = adhoc.name(&config);
        let config = context.load_with(adhoc.source(&name));
        Ok((Self::of(config, Some(&name)), name))
    }

    /// Loads the configuration without fetching anything or leaving files behind, and leaves its diagnostics to the
    /// caller.
    pub(crate) fn load_offline(context: &Context) -> Self {
        Self {
            leaves_no_files: true,
            ..Self::of(context.load_offline(), None)
        }
    }

    /// The names of all servers, the embedded one included.
    pub(crate) fn names(&self) -> Vec<String> {
        if self.is_embedded_only() {
            return vec![workspace::NAME.to_owned()];
        }
        let configured = self.config.servers.iter();
        configured.map(|server| server.name.clone()).collect()
    }

    /// The cached resources of a server, as a JSON array.
    pub(crate) fn cached_resources(&self, name: &str, context: &Context) -> Option<Vec<u8>> {
        let mut outlines = self.outlines(context);
        outlines.retain(|outline| outline.name.as_str() == name);
        let store = SqliteStore::new(session::store_file(context));
        let read = |space, keys: &[_]| store.get_many_blocking(space, keys);
        let found = remembered::resources(&outlines, read);
        self.leave(store);
        let bytes = found.ok()?.pop()??;
        Some(bytes.to_vec())
    }

    /// Loads the configuration and leaves its diagnostics to the caller.
    pub(crate) fn load_quietly(context: &Context) -> Self {
        Self::of(context.load_quietly(), None)
    }

    fn of(config: Config, wanted: Option<&str>) -> Self {
        Self {
            config,
            wanted: wanted.map(str::to_owned),
            leaves_no_files: false,
            store_warning: OnceLock::new(),
            vault: OnceLock::new(),
            vault_warning: VaultWarning::default(),
        }
    }

    /// Whether the embedded server runs by default because no server is configured.
    pub(crate) fn is_embedded_only(&self) -> bool {
        self.config.servers.is_empty()
    }

    /// Whether the server of that name is the embedded one.
    pub(crate) fn is_embedded(&self, name: &str) -> bool {
        let is_own = |server: &Server| server.transport() == Some(Transport::Sdk);
        name == workspace::NAME
            && (self.is_embedded_only() || self.config.server(name).is_some_and(is_own))
    }

    /// Whether what the tools of that server declare about themselves is used for permissions.
    pub(crate) fn trusts_annotations(&self, name: &str) -> bool {
        let is_trusted = |server: &Server| server.effective().trust_annotations == Some(true);
        self.is_embedded(name) || self.config.server(name).is_some_and(is_trusted)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.config.server(name).is_some() || (self.is_embedded_only() && name == workspace::NAME)
    }

    /// Fails unless clients can use this profile.
    pub(crate) fn need_profile(&self, name: &str) -> Result<(), Failure> {
        let shown = visible(name);
        let Some(profile) = self.config.profile(name) else {
            let known = self.config.profiles.iter();
            let known = known.map(|profile| profile.name.as_str());
            let hint = match switchboard_config::entry::keys::nearest(name, known) {
                Some(near) => format!("did you mean `{}`?", visible(near)),
                None => format!("add [profiles.{shown}] to your configuration"),
            };
            let message = format!("no profile named `{shown}`");
            return Err(Failure::new(Exit::Configuration, message).hint(hint));
        };
        let Some(fault) = profile.faults.first() else {
            return Ok(());
        };
        let message = format!("the profile `{shown}` cannot be used");
        Err(Failure::new(Exit::Configuration, message)
            .because(visible(fault))
            .hint("see `switchboard config check`"))
    }

    /// The failure for an unknown server name.
    pub(crate) fn unknown(&self, name: &str) -> Failure {
        let configured = self.config.servers.iter();
        let embedded = self.is_embedded_only().then_some(workspace::NAME);
        let known = configured.map(|server| server.name.as_str());
        no_such_server(name, known.chain(embedded))
    }

    /// Whether a name looks like a misspelled one of a server.
    pub(crate) fn is_near(&self, name: &str) -> bool {
        let names = self.names();
        let known = names.iter().map(String::as_str);
        switchboard_config::entry::keys::nearest(name, known).is_some()
    }

    /// The failure for a word that is neither a server nor a tool.
    pub(crate) fn unknown_server_or_tool(&self, name: &str) -> Failure {
        let shown = visible(name);
        Failure {
            message: format!("no server and no tool named `{shown}`"),
            ..self.unknown(name)
        }
    }

    /// Whether these are not all servers.
    pub(crate) fn is_limited(&self) -> bool {
        self.wanted.is_some()
    }

    /// These servers, limited to one.
    #[must_use]
    pub(crate) fn only(mut self, name: &str) -> Self {
        self.wanted = Some(name.to_owned());
        self
    }

    /// Ends reading the store. Closing the last connection to a SQLite database checkpoints it, which takes longer than
    /// a read. A short-lived reader can leave that to a writer, unless it must leave no files behind.
    fn leave(&self, store: SqliteStore) {
        if !self.leaves_no_files {
            std::mem::forget(store);
        }
    }

    /// The names and keys under which startable servers are cached.
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

    /// Returns the cached lists of the servers that could be started, in the same order as their outlines.
    pub(crate) fn remembered(&self, context: &Context) -> (Vec<Outline>, Vec<Remembered>) {
        let outlines = self.outlines(context);
        let store = SqliteStore::new(session::store_file(context));
        let read = |space, keys: &[_]| store.get_many_blocking(space, keys);
        let mut lists = remembered::lists(&outlines, read).unwrap_or_else(|error| {
            self.warn_of_store(&error, context);
            outlines.iter().map(|_| Remembered::default()).collect()
        });
        self.leave(store);
        for (outline, list) in outlines.iter().zip(&mut lists) {
            // The embedded server's catalogue is compiled in.
            if self.is_embedded(outline.name.as_str()) {
                *list = workspace::catalog().into();
            }
        }
        (outlines, lists)
    }

    /// What the last connections to the servers that could be started left behind, by name.
    pub(crate) fn last_known(&self, context: &Context) -> HashMap<String, LastKnown> {
        let outlines = self.outlines(context);
        let store = SqliteStore::new(session::store_file(context));
        let read = |space, keys: &[_]| store.get_many_blocking(space, keys);
        let known = remembered::last_known(&outlines, read).unwrap_or_else(|error| {
            self.warn_of_store(&error, context);
            Vec::new()
        });
        self.leave(store);
        let names = outlines
            .iter()
            .map(|outline| outline.name.as_str().to_owned());
        names.zip(known).collect()
    }

    /// Warns, once, that the state store cannot be used. Pinned tools are then set aside; everything else works without
    /// it.
    pub(crate) fn warn_of_store(&self, error: &StoreError, context: &Context) {
        if self.store_warning.set(()).is_ok() {
            let message = format!("the state cannot be used: {}", visible(&error.to_string()));
            context.printer.warning(message, error.hint());
        }
    }

    /// Builds the servers for the host to manage.
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
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only unix has a daemon"))]
        let mut desired = Desired::of(self.selected(), &self.config.settings, &connectors);
        #[cfg(unix)]
        if context.uses_daemon {
            daemon::use_daemon(&mut desired, context);
        }
        desired
    }

    fn embedded(&self, embedded: std::io::Result<Arc<Workspace>>, context: &Context) -> Desired {
        match embedded {
            Ok(embedded) => {
                let connector = Arc::new(InProcessConnector::new(embedded));
                let key = embedded_key(context);
                let mut spec = ServerSpec::new(workspace::NAME, connector, key);
                // Its tools are part of this program: they are not pinned, and what they declare is true.
                let rules = ToolRules::default().trusting_annotations();
                spec.rules = rules.with_settings(&self.config.settings);
                vec![spec].into()
            }
            // The folder existed at startup.
            Err(error) => {
                let message = format!("cannot open its folder: {error}");
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

    /// Servers that are refused by configuration, with the reason.
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

    /// Reports servers that cannot be started, unless a diagnostic of the configuration already has.
    pub(crate) fn report_unusable(&self, context: &Context) {
        let all_reported = report::shows_all(&self.config.diagnostics, &context.printer);
        for server in self.unusable() {
            if !(all_reported && state::is_in_findings(&server.state)) {
                let name = visible(&server.name);
                let hint = doctor_hint(&server.name);
                let reason = visible(&server.reason);
                context
                    .printer
                    .note(format!("{name} is skipped: {reason}; {hint}"));
            }
        }
    }

    /// The factory that turns entries into connectors.
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

    /// The command that runs the supervisor.
    #[expect(clippy::unused_self, reason = "servers alone start processes")]
    pub(crate) fn supervisor(&self) -> Option<SupervisorCommand> {
        supervisor()
    }

    /// The sandbox of the agent's commands. `None` if the user switched it off, or if this system has none and no mode
    /// stricter than the default is set: then commands that no rule allows require a prompt.
    pub(crate) fn bash_sandbox(&self, context: &Context) -> Option<Policy> {
        let folders = context.folders();
        let spill_folder = session::spill_folder(context);
        let supervisor = self.supervisor();
        bash_sandbox(
            &self.config.settings,
            &folders,
            &spill_folder,
            supervisor.as_ref(),
        )
    }

    /// Whether commands run without the configured sandbox because this system has none.
    pub(crate) fn lacks_bash_sandbox(&self) -> bool {
        lacks_bash_sandbox(&self.config.settings, self.supervisor().as_ref())
    }

    /// The logins that a model may start, for every server that supports login.
    pub(crate) fn logins(&self, context: &Context) -> BackgroundLogins {
        let ready = |server: &&Server| server.status == Status::Ready;
        let servers = self.selected().filter(ready);
        BackgroundLogins::of(servers, &self.connectors(context), &self.config.settings)
    }

    /// The login vault, opened on first use.
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

/// The failure for an unknown server name, with the nearest known name as a hint.
pub(crate) fn no_such_server<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Failure {
    let failure = Failure::failed(format!("no server named `{}`", visible(name)));
    match switchboard_config::entry::keys::nearest(name, known) {
        Some(near) => failure.hint(format!("did you mean `{}`?", visible(near))),
        None => failure.hint("`switchboard mcp list` shows all servers"),
    }
}

/// The hint to run `doctor` for a server.
pub(crate) fn doctor_hint(name: &str) -> String {
    format!("see `switchboard doctor {}`", visible(name))
}

/// The key of the embedded server, which depends only on its folder.
fn embedded_key(context: &Context) -> ConnectionKey {
    let folder = context.project.as_os_str().as_encoded_bytes();
    ConnectionKey::of(&[workspace::NAME.as_bytes(), folder])
}

/// This program as a supervisor. `None` if its own path is unknown: servers then run without one.
fn supervisor() -> Option<SupervisorCommand> {
    let program = std::env::current_exe().ok()?;
    Some(SupervisorCommand {
        program,
        args: vec![OsString::from(supervisor::ARGUMENT)],
    })
}
