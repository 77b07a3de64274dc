//! What is wrong with a server, and how to fix it.
//!
//! Owns the examination that `doctor` shows: every step on the way to a server is taken once, timed and noted, and
//! whatever goes wrong or looks wrong becomes a [`Finding`] with its reason and its remedy. It speaks with servers by
//! itself, independent of a [`Host`](crate::Host), and leaves nothing behind: no state, no memory, no process. What it
//! could repair it hands over as a [`Repair`], to be run when the user says so.
//!
//! | where | what |
//! |---|---|
//! | `examine` | takes the steps |
//! | `steps`, `heard` | notes them, and what the server says meanwhile |
//! | `causes` | why a step failed: one function for each cause |
//! | `habits` | what is odd about a server that works |
//! | `npx` | whether npx's installed copy of a server is complete, and how it is repaired |
//! | `variables` | what the server does not get of the user's environment |
//!
//! What servers write is quoted in findings with everything invisible made visible; the tail of their stderr is
//! passed on as it came.

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

/// How servers are examined.
#[derive(Clone)]
pub struct DoctorOptions {
    /// The numbers of the host: pools, deadlines, limits.
    pub settings: HostSettings,
    /// The user's home, to look for programs that are installed outside the `PATH`. Without it nobody looks.
    pub home: Option<PathBuf>,
    /// What servers are told they may ask, which some of them list more tools for. Nothing is asked by listing.
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

/// What was found out about one server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The server.
    pub server: ServerName,
    /// The transport it is configured with.
    pub transport: Option<Transport>,
    /// How it stands, in a word.
    pub verdict: Verdict,
    /// The steps that were taken, in their order.
    pub steps: Vec<StepReport>,
    /// What is wrong or odd, the worst first.
    pub findings: Vec<Finding>,
    /// What can be repaired here, if the user says so.
    pub repairs: Vec<Repair>,
    /// What the server is, if there was a conversation.
    pub facts: Option<Facts>,
    /// The last lines of its stderr, oldest first, as it wrote them.
    pub stderr: Vec<String>,
}

/// How a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It works.
    Healthy,
    /// It was not examined, because it may not be started.
    NotExamined,
    /// It works, and something about it should be looked at.
    Troubled,
    /// It requires a login.
    NeedsLogin,
    /// It does not accept the token of its entry.
    TokenRejected,
    /// It cannot be used.
    Unreachable,
    /// Its entry cannot be used.
    Misconfigured,
}

impl Verdict {
    /// One word for reports and scripts.
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

/// Something that is wrong or odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind of finding it is, for scripts: `program-not-found`. Stable from version to version.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in a line.
    pub what: String,
    /// How that is known, or where it comes from.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The server, or a part of it, cannot be used.
    Error,
    /// It works, and costs something: time, tokens, tools.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    /// One word for reports and scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// What a server is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Facts {
    /// The transport that is used in the end; `http` may have become `sse`.
    pub transport: Transport,
    /// The revision that is spoken.
    pub revision: Revision,
    /// Its name for programs, as it wrote it.
    pub name: Option<String>,
    /// Its version, as it wrote it.
    pub version: Option<String>,
    /// What it says it can do.
    pub capabilities: Vec<&'static str>,
    /// How many tools it offers.
    pub tools: usize,
    /// How many tools it lists, by what becomes of them.
    pub count: ToolCount,
    /// How many prompts it lists, if it has any.
    pub prompts: Option<usize>,
    /// How many resources it lists, if it has any.
    pub resources: Option<usize>,
    /// What all its tools cost in a model's context.
    pub tokens: Tokens,
    /// Its tools that are not offered.
    pub set_aside: Vec<SetAside>,
    /// What is repaired in the schemas of its tools.
    pub lints: Vec<ToolLint>,
}

/// Something in the schema of a tool that model providers would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLint {
    /// The tool, as its server spells it.
    pub tool: String,
    /// What it is, and what was done about it.
    pub finding: SchemaFinding,
}

/// Examines one server: connects, lists, probes, and ends the connection again.
///
/// It takes no longer than the server may take to start, and some seconds more. Dropping the future ends whatever was
/// begun.
pub async fn diagnose(spec: &ServerSpec, options: &DoctorOptions) -> Diagnosis {
    examine::examine(spec, options).await
}

/// Examines servers side by side, as many as the host would start at once. The order is that of `specs`.
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
    /// A server whose entry cannot be used at all.
    pub fn of_connector(server: ServerName, error: &ConnectorError) -> Self {
        Self::without_steps(
            server,
            Verdict::Misconfigured,
            vec![causes::connector(error)],
        )
    }

    /// A server of which this is known without a try.
    pub fn without_steps(server: ServerName, verdict: Verdict, findings: Vec<Finding>) -> Self {
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

    /// How long all steps took together.
    pub fn duration(&self) -> Duration {
        self.steps.iter().map(|report| report.duration).sum()
    }
}
