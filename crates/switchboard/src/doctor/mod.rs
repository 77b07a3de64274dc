//! Diagnoses servers and suggests fixes.
//!
//! Implements the `doctor` command: runs and times every step of connecting to a server once, and reports each problem
//! as a [`Finding`] with its reason and remedy. Connects independently of a [`Host`](crate::Host), and leaves no state,
//! cache or process behind. Possible repairs are returned as a [`Repair`], to be run on the user's request.
//!
//! | module | content |
//! |---|---|
//! | `examine` | runs the steps |
//! | `steps`, `heard` | record the steps and the server's log |
//! | `causes` | causes of a failed step, one function each |
//! | `habits` | warnings about a working server |
//! | `npx` | detects and repairs a broken npx installation |
//! | `variables` | variables of the user's environment that the server does not inherit |
//!
//! Findings quote server output sanitized; the tail of stderr is returned unsanitized.

mod causes;
mod examine;
mod habits;
mod heard;
mod npx;
mod steps;
mod variables;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use switchboard_config::entry::Transport;
use switchboard_protocol::Revision;
use tokio::sync::Semaphore;

use crate::catalog::schema::SchemaFinding;
use crate::catalog::{SetAside, Tokens, ToolCount};
use crate::connectors::ConnectorError;
use crate::handler::{ClientHandler, DeclineAll};
use crate::names::ServerName;
use crate::options::HostSettings;
use crate::spec::ServerSpec;

pub use npx::Repair;
pub use steps::{Outcome, Step, StepReport};

/// Options of an examination.
#[derive(Clone)]
pub struct DoctorOptions {
    /// The settings of the host: concurrency, deadlines, limits.
    pub settings: HostSettings,
    /// The user's home, to search for programs outside the `PATH`. `None`: no search.
    pub home: Option<PathBuf>,
    /// Declares the client capabilities, on which some servers' tool lists depend. Listing sends no requests to it.
    pub handler: Arc<dyn ClientHandler>,
}

impl Default for DoctorOptions {
    fn default() -> Self {
        Self {
            settings: HostSettings::default(),
            home: None,
            handler: Arc::new(DeclineAll),
        }
    }
}

/// The result of examining one server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The server.
    pub server: ServerName,
    /// The transport it is configured with.
    pub transport: Option<Transport>,
    /// The overall result.
    pub verdict: Health,
    /// The steps, in order.
    pub steps: Vec<StepReport>,
    /// Problems, the most severe first.
    pub findings: Vec<Finding>,
    /// Repairs that the user can confirm.
    pub repairs: Vec<Repair>,
    /// Facts about the server, if it could be connected.
    pub facts: Option<Facts>,
    /// The last lines of its stderr, oldest first, unsanitized.
    pub stderr: Vec<String>,
}

/// The overall result of an examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// It works.
    Healthy,
    /// It was not examined, because it may not be started.
    NotExamined,
    /// It works, with warnings.
    Troubled,
    /// It requires a login.
    NeedsLogin,
    /// It rejects the token of its entry.
    TokenRejected,
    /// It cannot be used.
    Unreachable,
    /// Its entry is invalid.
    Misconfigured,
}

impl Health {
    /// The result in one word, for reports and scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::NotExamined => "not-examined",
            Self::Troubled => "troubled",
            Self::NeedsLogin => "needs-login",
            Self::TokenRejected => "token-rejected",
            Self::Unreachable => "unreachable",
            Self::Misconfigured => "misconfigured",
        }
    }
}

/// A problem or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding, for scripts: `program-not-found`. Stable across versions.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The problem, in one line.
    pub what: String,
    /// The evidence or origin.
    pub why: String,
    /// The suggested fix.
    pub remedy: String,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The server, or a part of it, cannot be used.
    Error,
    /// It works, at a cost of time, tokens or tools.
    Warning,
    /// Information only.
    Note,
}

impl Severity {
    /// The severity in one word, for reports and scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Facts about a connected server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Facts {
    /// The transport in use; `http` may have fallen back to `sse`.
    pub transport: Transport,
    /// The negotiated protocol revision.
    pub revision: Revision,
    /// Its programmatic name, unsanitized.
    pub name: Option<String>,
    /// Its version, unsanitized.
    pub version: Option<String>,
    /// Its declared capabilities.
    pub capabilities: Vec<&'static str>,
    /// The number of tools it offers.
    pub tools: usize,
    /// The tools it lists, counted by whether they are offered.
    pub count: ToolCount,
    /// The number of prompts it lists; `None` if it has none.
    pub prompts: Option<usize>,
    /// The number of resources it lists; `None` if it has none.
    pub resources: Option<usize>,
    /// The token cost of all its tools in a model's context.
    pub tokens: Tokens,
    /// Its tools that are not offered.
    pub set_aside: Vec<SetAside>,
    /// Repairs applied to the schemas of its tools.
    pub lints: Vec<ToolLint>,
}

/// A part of a tool's schema that model providers would reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLint {
    /// The tool, as its server spells it.
    pub tool: String,
    /// The problem and its repair.
    pub finding: SchemaFinding,
}

/// Examines one server: connects, lists, probes, and closes the connection.
///
/// Takes at most the server's start-up deadline and a few seconds more. Dropping the future stops everything it
/// started.
pub async fn diagnose(spec: &ServerSpec, options: &DoctorOptions) -> Diagnosis {
    examine::examine(spec, options).await
}

/// Examines servers concurrently, as many as the host would start at once. Returns results in the order of `specs`.
pub async fn diagnose_all(specs: &[ServerSpec], options: &DoctorOptions) -> Vec<Diagnosis> {
    let local = Semaphore::new(options.settings.local_connections.max(1));
    let remote = Semaphore::new(options.settings.remote_connections.max(1));
    let examinations = specs.iter().map(|spec| {
        let pool = match spec.connector.transport() {
            Transport::Stdio | Transport::Sdk => &local,
            _ => &remote,
        };
        async move {
            let _turn = pool.acquire().await;
            diagnose(spec, options).await
        }
    });
    join_all(examinations).await
}

impl Diagnosis {
    /// The diagnosis of a server whose entry is invalid.
    pub fn of_connector(server: ServerName, error: &ConnectorError) -> Self {
        Self::without_steps(
            server,
            Health::Misconfigured,
            vec![causes::connector(error)],
        )
    }

    /// A diagnosis without an examination.
    pub fn without_steps(server: ServerName, verdict: Health, findings: Vec<Finding>) -> Self {
        Self {
            server,
            transport: None,
            verdict,
            steps: Vec::new(),
            findings,
            repairs: Vec::new(),
            facts: None,
            stderr: Vec::new(),
        }
    }

    /// The total duration of all steps.
    pub fn duration(&self) -> Duration {
        self.steps.iter().map(|report| report.duration).sum()
    }
}
