//! The settings of a host, and the components that an embedder can replace.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_config::settings::{Setting, Settings};
use switchboard_protocol::Limits;
use switchboard_store::{MemoryStore, Store};

use crate::auth::interactive::logins::Logins;
use crate::call::gate::Gate;
use crate::connectors::Connectors;
use crate::desired::Desired;
use crate::handler::{ClientHandler, DeclineAll, QuestionLimits};
use crate::peer::OpenOptions;
use crate::permissions::{Engine, PermissionGate, Policy};
use crate::pins::PinPolicy;
use crate::sharing::SharedConnections;

/// Limits and intervals. [`Default`] matches `defaults.toml` of the configuration.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// Local servers that start concurrently.
    pub local_connections: usize,
    /// Remote servers that connect concurrently.
    pub remote_connections: usize,
    /// The interval of health probes on an idle connection.
    pub health_interval: Duration,
    /// The timeout of a health probe.
    pub health_timeout: Duration,
    /// Consecutive failed probes after which a connection counts as lost.
    pub health_failures: u32,
    /// Attempts to reconnect after a lost connection or a transient failure.
    pub reconnect_attempts: u32,
    /// The delay before each attempt.
    pub backoff: Backoff,
    /// The maximum duration of an installation by a package runner that makes progress.
    pub install_timeout: Duration,
    /// The lifetime of cached lists.
    pub catalog_ttl: Duration,
    /// The timeout of one page of a list, or one resource.
    pub list_timeout: Duration,
    /// The lifetime of the record that a server requires a login.
    pub needs_auth_memory: Duration,
    /// The interval of progress events for long calls.
    pub progress_interval: Duration,
    /// The maximum output passed to the model; the rest is truncated.
    pub max_output_tokens: u64,
    /// Rate limits of requests from servers to the user and the model.
    pub questions: QuestionLimits,
    /// Limits of messages from servers.
    pub limits: Limits,
    /// Options for opening connections.
    pub open: OpenOptions,
    /// The policy for new definitions that cannot be pinned.
    pub pins: PinPolicy,
    /// Idle time after which servers are stopped whose entries set none; `None`: never.
    #[doc(hidden)]
    pub idle_shutdown: Option<Duration>,
}

/// The delays between attempts to reconnect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The delay before the first attempt.
    pub initial: Duration,
    /// The maximum delay.
    pub longest: Duration,
    /// The factor by which each delay grows; 1 or more.
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
            idle_shutdown: None,
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

/// The components and settings of a host.
#[derive(Clone)]
pub struct HostOptions {
    /// Limits and intervals.
    pub settings: HostSettings,
    /// Answers requests from servers.
    pub handler: Arc<dyn ClientHandler>,
    /// Permits and observes calls. The default is a gate without rules: calls by the program are allowed, and calls by
    /// a model are decided by [`Policy::agent`].
    pub gate: Arc<dyn Gate>,
    /// Stores caches and pins between runs.
    pub store: Arc<dyn Store>,
    /// The folder for full output that is truncated for the model; `None`: not stored.
    pub spill_folder: Option<PathBuf>,
    /// Starts a login at a model's request. Without it, the model gets instructions for the user.
    #[doc(hidden)]
    pub logins: Option<Arc<dyn Logins>>,
    /// The initial servers. None is connected before [`Host::start`](crate::Host::start) or its first use.
    #[doc(hidden)]
    pub desired: Desired,
    /// Connections that are shared with other hosts, for a host with several clients; `None`: the host shares none, and
    /// has one client.
    #[doc(hidden)]
    pub shared: Option<SharedConnections>,
    /// Builds servers that [`Host::add`](crate::Host::add) describes; `None`: with the environment of this process.
    #[doc(hidden)]
    pub connectors: Option<Arc<Connectors>>,
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
            shared: None,
            connectors: None,
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
