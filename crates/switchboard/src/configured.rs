//! A host from the configuration of a folder, for programs that embed it.
//!
//! Resolves the options that the program `switchboard` would use in that folder.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use switchboard_config::files::{Disk, Files as _, Folders};
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::trust::{Decisions, TRUST_FILE};
use switchboard_store::{SqliteStore, Store};

use crate::audit::{Audit, AuditSettings};
use crate::auth::vault::sealed::SealedVault;
use crate::connectors::Connectors;
use crate::desired::Desired;
use crate::error::Error;
use crate::host::Host;
use crate::options::{HostOptions, HostSettings};
use crate::permissions::{Engine, PermissionGate, Policy, SecretPlaces};
use crate::places::{LOGINS_FOLDER, Places, SPILL_FOLDER, STORE_FILE};
use crate::supervisor;
use crate::watch::on_thread;
use crate::workspace::{self, Workspace};

/// The front end in audit entries.
const FRONT_END: &str = "embedded";

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
    /// configured, and does not follow later edits of the files.
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
        Self::from_config_of(folder, std::env::vars_os().collect()).await
    }

    /// Like [`from_config`](Self::from_config), but with another environment than that of this process: its variables
    /// name the folders, and servers inherit them.
    ///
    /// # Errors
    ///
    /// As of [`from_config`](Self::from_config).
    pub async fn from_config_of(
        folder: impl AsRef<Path>,
        environment: Arc<[(OsString, OsString)]>,
    ) -> Result<Self, Error> {
        let folder = folder.as_ref().to_owned();
        let read = on_thread(move || Configured::read(&folder, environment)).await;
        let configured = read.map_err(Error::configuration)??;
        Ok(Self::with_options(configured.into_options()))
    }
}

/// The resolved configuration, and the folders it was read from.
struct Configured {
    config: Config,
    folders: Folders,
    environment: Arc<[(OsString, OsString)]>,
}

impl Configured {
    fn read(folder: &Path, environment: Arc<[(OsString, OsString)]>) -> Result<Self, Error> {
        let unusable = |error| Error::configuration(format!("{}: {error}", folder.display()));
        let folder = folder.canonicalize().map_err(unusable)?;
        let places = Places::of(&environment).map_err(Error::configuration)?;
        let folders = places.folders(&folder);
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        let inputs = Inputs {
            environment: environment
                .iter()
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect(),
            decisions: decisions(&folders.state.join(TRUST_FILE))?,
            folders: folders.clone(),
            ..Inputs::default()
        };
        Ok(Self {
            config: Config::load(&inputs, &Disk),
            folders,
            environment,
        })
    }

    fn into_options(self) -> HostOptions {
        let Self {
            config,
            folders,
            environment,
        } = self;
        let settings = &config.settings;
        let state = &folders.state;
        let store: Arc<dyn Store> = Arc::new(SqliteStore::new(state.join(STORE_FILE)));
        let audit = Audit::start(Arc::clone(&store), AuditSettings::from(settings), FRONT_END);
        let spill_folder = state.join(SPILL_FOLDER);
        let policy = Policy::typed().with_settings(settings);
        let engine = Engine::new(&config, &folders, policy).open_folder(spill_folder.clone());
        let mut connectors = Connectors::new(environment, folders.project.clone());
        connectors.supervisor = supervisor::own();
        connectors.private = vec![folders.config.clone(), state.clone()];
        connectors.audit = Some(audit.clone());
        let logins = SealedVault::new(state.join(LOGINS_FOLDER), settings.login_store());
        connectors.vault = Arc::new(logins);
        let secrets = SecretPlaces::new(&folders);
        if let Ok(embedded) = Workspace::passing_over(&folders.project, secrets) {
            let name = workspace::NAME.to_owned();
            connectors.services.insert(name, Arc::new(embedded));
        }
        HostOptions {
            settings: HostSettings::from(settings),
            desired: Desired::of(&config.servers, settings, &connectors),
            gate: Arc::new(PermissionGate::new(engine).recording(audit)),
            store,
            spill_folder: Some(spill_folder),
            ..HostOptions::default()
        }
    }
}

/// Reads the trust decisions. An unreadable file is an error, since otherwise everything in the project would be
/// refused.
fn decisions(file: &Path) -> Result<Decisions, Error> {
    let unusable = |error: &dyn std::fmt::Display| {
        Error::configuration(format!("{}: {error}", file.display()))
    };
    let bytes = Disk.read(file).map_err(|error| unusable(&error))?;
    let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|error| unusable(&error))?;
    Decisions::parse(&text).map_err(|error| unusable(&error))
}
