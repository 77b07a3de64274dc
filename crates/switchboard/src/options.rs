//! The numbers a host runs by, and what an embedder may put in place of the defaults.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_config::settings::{Setting, Settings};
use switchboard_protocol::Limits;
use switchboard_store::{MemoryStore, Store};

use crate::auth::interactive::logins::Logins;
use crate::call::gate::Gate;
use crate::desired::Desired;
use crate::handler::{ClientHandler, DeclineAll, QuestionLimits};
use crate::peer::OpenOptions;
use crate::permissions::{Engine, PermissionGate, Policy};
use crate::pins::PinPolicy;

/// The numbers. [`Default`] is what `defaults.toml` of the configuration says.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// How many local servers start at once.
    pub local_connections: usize,
    /// How many remote servers connect at once.
    pub remote_connections: usize,
    /// How often an idle connection is probed.
    pub health_interval: Duration,
    /// How long a probe may take.
    pub health_timeout: Duration,
    /// How many probes in a row may fail before a connection counts as lost.
    pub health_failures: u32,
    /// How often a connection that was lost, or failed for a reason that may pass, is tried again.
    pub reconnect_attempts: u32,
    /// How long is waited before each of these attempts.
    pub backoff: Backoff,
    /// How long a package runner may install a server while it makes progress.
    pub install_timeout: Duration,
    /// How long a server's lists are believed.
    pub catalog_ttl: Duration,
    /// How long one page of a list, or one resource, may take.
    pub list_timeout: Duration,
    /// How long it is remembered that a server requires a login.
    pub needs_auth_memory: Duration,
    /// How often a long call shows that it is alive.
    pub progress_interval: Duration,
    /// Output beyond this is cut for the model.
    pub max_output_tokens: u64,
    /// How much each server may ask of the user and of the model.
    pub questions: QuestionLimits,
    /// Bounds on what servers may send.
    pub limits: Limits,
    /// How conversations are opened.
    pub open: OpenOptions,
    /// What becomes of something new that cannot be pinned.
    pub pins: PinPolicy,
}

/// How long is waited before attempts to reconnect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The wait before the first attempt.
    pub initial: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How much longer each wait is than the one before it; 1 or more.
    pub factor: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            longest: Duration::from_secs(10),
            factor: 2.0,
        }
    }
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            local_connections: 3,
            remote_connections: 20,
            health_interval: Duration::from_secs(30),
            health_timeout: Duration::from_secs(5),
            health_failures: 5,
            reconnect_attempts: 5,
            backoff: Backoff::default(),
            install_timeout: Duration::from_secs(600),
            catalog_ttl: Duration::from_secs(300),
            list_timeout: Duration::from_secs(60),
            needs_auth_memory: Duration::from_secs(900),
            progress_interval: Duration::from_secs(30),
            max_output_tokens: 25_000,
            questions: QuestionLimits::default(),
            limits: Limits::DEFAULT,
            open: OpenOptions::default(),
            pins: PinPolicy::default(),
        }
    }
}

impl From<&Settings> for HostSettings {
    fn from(settings: &Settings) -> Self {
        let count = |setting| usize::try_from(settings.count(setting)).unwrap_or(usize::MAX);
        Self {
            local_connections: count(Setting::LocalConnections),
            remote_connections: count(Setting::RemoteConnections),
            health_interval: settings.duration(Setting::HealthInterval),
            health_timeout: settings.duration(Setting::HealthTimeout),
            health_failures: u32::try_from(settings.count(Setting::HealthFailures))
                .unwrap_or(u32::MAX),
            install_timeout: settings.duration(Setting::InstallTimeout),
            reconnect_attempts: u32::try_from(settings.count(Setting::ReconnectAttempts))
                .unwrap_or(u32::MAX),
            backoff: Backoff {
                initial: settings.duration(Setting::ReconnectInitial),
                longest: settings.duration(Setting::ReconnectMax),
                factor: settings.factor(Setting::ReconnectFactor),
            },
            catalog_ttl: settings.duration(Setting::CatalogTtl),
            needs_auth_memory: settings.duration(Setting::NeedsAuthMemory),
            progress_interval: settings.duration(Setting::ProgressInterval),
            max_output_tokens: settings.count(Setting::MaxOutputTokens),
            questions: QuestionLimits {
                waiting: count(Setting::MaxWaitingQuestions),
                per_minute: count(Setting::QuestionsPerMinute),
            },
            limits: Limits {
                max_bytes: count(Setting::MaxMessageBytes),
                ..Limits::DEFAULT
            },
            pins: if settings.requires_pins() {
                PinPolicy::Required
            } else {
                PinPolicy::BestEffort
            },
            ..Self::default()
        }
    }
}

/// What a host is made of.
#[derive(Clone)]
pub struct HostOptions {
    /// The numbers.
    pub settings: HostSettings,
    /// Who answers what servers ask.
    pub handler: Arc<dyn ClientHandler>,
    /// Who permits calls and sees them pass. By default a gate without rules: what the program calls is allowed, and what
    /// a model calls is decided by [`Policy::agent`].
    pub gate: Arc<dyn Gate>,
    /// Where things are remembered between runs.
    pub store: Arc<dyn Store>,
    /// Where output that is too large for the model is kept whole.
    pub spill_folder: Option<PathBuf>,
    /// Who begins a login when a model asks for it. Without, the model is told what the user can do.
    #[doc(hidden)]
    pub logins: Option<Arc<dyn Logins>>,
    /// The servers it begins with. None is connected before [`Host::start`](crate::Host::start) or its first use.
    #[doc(hidden)]
    pub desired: Desired,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            settings: HostSettings::default(),
            handler: Arc::new(DeclineAll),
            gate: Arc::new(PermissionGate::new(Engine::without_rules(Policy::typed()))),
            store: Arc::new(MemoryStore::new()),
            spill_folder: None,
            logins: None,
            desired: Desired::default(),
        }
    }
}

impl fmt::Debug for HostOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostOptions")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
